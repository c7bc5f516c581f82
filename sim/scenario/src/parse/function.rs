//! Parsing of functions and their shapes.

use super::node::{Fields, Value};
use super::reader::Reader;
use super::rules::FunctionPlaces;
use crate::Export;
use crate::grammar::Level;
use crate::problem::ProblemKind;
use clr_codegen::{
    CodeKind, Exit, FrameRegister, Function, FunctionShape, ReturnForm, TailCallForm,
};
use clr_walker::registers::Gpr;

/// Names of the nodes that state the function's end.
const ENDS: [&str; 3] = ["return", "tail-call", "no-end"];

impl Reader {
    pub(super) fn function(
        &mut self,
        fields: &Fields<'_>,
    ) -> (Function, Option<Export>, FunctionPlaces) {
        let mut function = Function {
            name: fields.arg_text().to_owned(),
            kind: fields.term::<CodeKind>("kind").unwrap_or_default(),
            shape: FunctionShape::default(),
            body: Vec::new(),
            end: Some(Exit::Return(ReturnForm::default())),
        };
        let mut places = FunctionPlaces::new(fields.span());
        let (mut end, mut export) = (None, None);
        for part in self.nodes(fields.children(), Level::Function) {
            let name = part.rule.name;
            places.parts.push((name, part.span()));
            if ENDS.contains(&name) {
                if let Some(other) = end.filter(|other| *other != name) {
                    self.problem(part.span(), ProblemKind::Excluded(other, name));
                }
                end = Some(name);
                places.end = part.span();
                function.end = exit(&part);
            } else if name == "export" {
                let (name, arguments) = (part.arg_text().to_owned(), part.arg_numbers());
                export = Some(Export { name, arguments });
            } else if name == "body" {
                function.body = self.body(part.children(), &mut places.statements);
            } else {
                shape(&mut function.shape, &part);
            }
        }
        (function, export, places)
    }
}

fn shape(shape: &mut FunctionShape, part: &Fields<'_>) {
    match part.rule.name {
        "entry" => shape.entry = part.arg_term(),
        "home" => {
            for (slot, value) in shape.home.iter_mut().zip(&part.args) {
                *slot = match value {
                    Value::Gpr(register) => Some(*register),
                    _ => None,
                };
            }
        }
        "push" => shape.pushes = part.arg_gprs(),
        "locals" => shape.locals = part.arg_number(),
        "save" => {
            shape.saves = part.arg_gprs();
            shape.xmm_saves = part.arg_xmms();
            shape.save_area = part.term("area").unwrap_or_default();
        }
        "allocation" => shape.allocation = part.arg_term(),
        "frame" => {
            shape.frame = part.arg_gprs().first().map(|&register: &Gpr| FrameRegister {
                register,
                offset: part.number("offset").unwrap_or_default(),
                set: part.term("set").unwrap_or_default(),
                described: part.flag("described").unwrap_or(true),
            });
        }
        "release" => shape.release = part.arg_term(),
        "scheduled" => shape.scheduled = true,
        "unwind" => {
            shape.unwind = part.arg_term();
            shape.handler = part.flag("handler").unwrap_or_default();
        }
        "wrap" => shape.wrap = part.arg_term(),
        "realign" => shape.realign = part.arg_term(),
        "arguments" => shape.arguments = part.arg_number(),
        "epilogue-cfi" => shape.epilogue_cfi = part.arg_term(),
        _ => shape.cold = part.arg_term(),
    }
}

/// Returns the exit of a function; `None` for `no-end`.
pub(super) fn exit(node: &Fields<'_>) -> Option<Exit> {
    match node.rule.name {
        "return" => Some(Exit::Return(node.arg_term())),
        "tail-call" => {
            let form = node.term::<TailCallForm>("by").unwrap_or_default();
            Some(Exit::TailCall(form, node.arg_function().unwrap_or_default()))
        }
        _ => None,
    }
}
