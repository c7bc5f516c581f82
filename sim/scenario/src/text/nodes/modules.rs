//! The names of modules, types and methods.

use crate::text::codec::Codec;
use crate::text::grammar::{Kind, Level};
use clr_runtime::metadata::{FieldNames, MethodNames, ModuleNames, TypeNames};

pub(super) fn module(module: &mut ModuleNames, c: &mut Codec<'_>) {
    c.arg(&mut module.path);
    c.with("assembly", &mut module.assembly);
    c.block(Level::Module, |c| types(&mut module.types, c));
}

fn types(all: &mut Vec<TypeNames>, c: &mut Codec<'_>) {
    c.each("type", all, &TypeNames::default(), |one, c| {
        c.arg(&mut one.name);
        c.block(Level::Type, |c| {
            described(&mut one.parameters, &mut one.attributes, c);
            c.each("field", &mut one.fields, &FieldNames::default(), |field, c| {
                c.arg(&mut field.name);
                c.with("kind", &mut field.kind);
                c.with("static", &mut field.is_static);
            });
            c.each("method", &mut one.methods, &MethodNames::default(), method);
            types(&mut one.types, c);
        });
    });
}

fn method(method: &mut MethodNames, c: &mut Codec<'_>) {
    c.arg(&mut method.name);
    c.block(Level::Method, |c| described(&mut method.parameters, &mut method.attributes, c));
}

fn described(parameters: &mut Vec<String>, attributes: &mut Vec<String>, c: &mut Codec<'_>) {
    c.words("parameter", Kind::Name, parameters);
    c.words("attribute", Kind::Name, attributes);
}
