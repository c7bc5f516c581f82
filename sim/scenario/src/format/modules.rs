//! Modules, types and methods with names of their own.

use super::{Line, Printer};
use clr_runtime::metadata::{MethodNames, ModuleNames, TypeNames};

impl Printer<'_> {
    pub(super) fn module(&mut self, module: &ModuleNames) {
        let mut line = Line::new("module").text(&module.path);
        if let Some(assembly) = &module.assembly {
            line = line.property("assembly", super::quoted(assembly));
        }
        self.block(&line, |printer| {
            module.types.iter().for_each(|one| printer.type_names(one));
        });
    }

    fn type_names(&mut self, names: &TypeNames) {
        self.block(&Line::new("type").text(&names.name), |printer| {
            printer.words("parameter", &names.parameters);
            printer.words("attribute", &names.attributes);
            names.methods.iter().for_each(|one| printer.method_names(one));
            names.types.iter().for_each(|one| printer.type_names(one));
        });
    }

    fn method_names(&mut self, names: &MethodNames) {
        self.block(&Line::new("method").text(&names.name), |printer| {
            printer.words("parameter", &names.parameters);
            printer.words("attribute", &names.attributes);
        });
    }

    /// Prints a node with these arguments, unless there are none.
    fn words(&mut self, name: &str, words: &[String]) {
        if !words.is_empty() {
            let line = words.iter().fold(Line::new(name), |line, word| line.text(word));
            self.line(&line);
        }
    }
}
