//! Bodies of statements.

use super::function::exit;
use super::node::{Fields, Value};
use super::reader::Reader;
use crate::code::{CallForm, Exit, ReturnForm, RuntimeCall, RuntimeCallKind, Statement};
use crate::scenario::error::Span;
use crate::scenario::grammar::Level;
use crate::scenario::problem::ProblemKind;
use clr_walker::registers::Gpr;
use kdl::KdlNode;

impl Reader {
    /// The statements of a block. Their places go to `places`, in the order of the text.
    pub(super) fn body(&mut self, nodes: &[KdlNode], places: &mut Vec<Span>) -> Vec<Statement> {
        let mut body = Vec::new();
        let mut behind_try = false;
        for node in self.nodes(nodes, Level::Body) {
            if node.rule.name == "catch" {
                let statements = self.body(node.children(), places);
                match body.last_mut() {
                    Some(Statement::Try(_, catch)) if behind_try => *catch = statements,
                    _ => self.problem(node.span(), ProblemKind::CatchWithoutTry),
                }
                behind_try = false;
                continue;
            }
            behind_try = node.rule.name == "try";
            places.push(node.span());
            body.push(self.statement(&node, places));
        }
        body
    }

    fn statement(&mut self, node: &Fields<'_>, places: &mut Vec<Span>) -> Statement {
        let inner = match node.rule.block {
            Some(_) => self.body(node.children(), places),
            None => Vec::new(),
        };
        let function = node.arg_function().unwrap_or_default();
        match node.rule.name {
            "call" => Statement::Call(node.term::<CallForm>("by").unwrap_or_default(), function),
            "clobber" => match node.args.first() {
                Some(Value::Xmm(number)) => Statement::ClobberXmm(*number),
                Some(Value::Gpr(register)) => Statement::Clobber(*register),
                _ => Statement::Clobber(Gpr::Rax),
            },
            "store" => Statement::Store(node.arg_number()),
            "work" => Statement::Work(node.arg_number()),
            "loop" => Statement::Loop(node.arg_number(), inner),
            "if" => Statement::If(node.arg_flag(), inner),
            "alloca" => Statement::Alloca(node.arg_number()),
            "cold" => Statement::Cold(inner),
            "region" => Statement::Region(node.arg_gprs(), inner),
            "funclet" => Statement::Funclet(inner),
            "try" => Statement::Try(inner, Vec::new()),
            "throw" => Statement::Throw,
            "trap" => Statement::Trap(function),
            "switch-stack" => Statement::SwitchStack(function),
            "stop" => Statement::Stop,
            name if let Some(kind) = RuntimeCallKind::from_word(name) => {
                let target = kind.target().map(|_| function);
                Statement::Runtime(RuntimeCall { kind, target })
            }
            _ => Statement::Exit(exit(node).unwrap_or(Exit::Return(ReturnForm::Ret))),
        }
    }
}
