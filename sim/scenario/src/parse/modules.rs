//! Parsing of the names of modules, types and methods.

use super::node::Fields;
use super::reader::Reader;
use crate::grammar::Level;
use clr_runtime::metadata::{MethodNames, ModuleNames, TypeNames};

impl Reader {
    pub(super) fn module(&mut self, fields: &Fields<'_>) -> ModuleNames {
        let types = self.nodes(fields.children(), Level::Module);
        ModuleNames {
            path: fields.arg_text().to_owned(),
            assembly: fields.text("assembly").map(str::to_owned),
            types: types.iter().map(|one| self.type_names(one)).collect(),
        }
    }

    fn type_names(&mut self, fields: &Fields<'_>) -> TypeNames {
        let mut names = TypeNames { name: fields.arg_text().to_owned(), ..TypeNames::default() };
        for part in self.nodes(fields.children(), Level::Type) {
            match part.rule.name {
                "parameter" => names.parameters = part.arg_texts(),
                "attribute" => names.attributes = part.arg_texts(),
                "method" => names.methods.push(self.method_names(&part)),
                _ => names.types.push(self.type_names(&part)),
            }
        }
        names
    }

    fn method_names(&mut self, fields: &Fields<'_>) -> MethodNames {
        let mut names =
            MethodNames { name: fields.arg_text().to_owned(), ..MethodNames::default() };
        for part in self.nodes(fields.children(), Level::Method) {
            match part.rule.name {
                "parameter" => names.parameters = part.arg_texts(),
                _ => names.attributes = part.arg_texts(),
            }
        }
        names
    }
}
