//! Parsing of bodies: statements and EH clauses.

use super::function::exit;
use super::node::{Fields, Value};
use super::reader::Reader;
use crate::document::Node;
use crate::error::Span;
use crate::grammar::Level;
use crate::problem::ProblemKind;
use clr_codegen::{
    CallForm, EhClause, EhClauseKind, Exit, ReturnForm, RuntimeCall, RuntimeCallKind, Statement,
};
use clr_walker::registers::Gpr;

/// The kind of the preceding node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Try,
    Guarded,
    /// A filter, which its handler must follow.
    Filter(Span),
    Other,
}

impl Behind {
    const fn is_guarded(self) -> bool {
        matches!(self, Self::Guarded | Self::Filter(_))
    }
}

impl Reader {
    /// Parses the statements of a block. Their source ranges are added to `places`, in the order of
    /// the text.
    pub(super) fn body(&mut self, nodes: &[Node<'_>], places: &mut Vec<Span>) -> Vec<Statement> {
        let mut body = Vec::new();
        let mut behind = Behind::Other;
        for node in self.nodes(nodes, Level::Body) {
            let name = node.rule.name;
            self.check_filter(behind, name);
            behind = match name {
                "catch" => {
                    let statements = self.body(node.children(), places);
                    match body.last_mut() {
                        Some(Statement::Try(_, catch)) if behind == Behind::Try => {
                            *catch = statements;
                        }
                        _ => self.problem(node.span(), ProblemKind::CatchWithoutTry),
                    }
                    Behind::Other
                }
                "on-filter" | "on-catch" | "on-finally" | "on-fault" => {
                    let statements = self.body(node.children(), places);
                    match body.last_mut() {
                        Some(Statement::Guarded(_, clauses)) if behind.is_guarded() => {
                            clause(clauses, &node, behind, statements);
                        }
                        _ => self.problem(node.span(), ProblemKind::ClauseWithoutGuarded(name)),
                    }
                    match name {
                        "on-filter" => Behind::Filter(node.span()),
                        _ => Behind::Guarded,
                    }
                }
                _ => {
                    places.push(node.span());
                    body.push(self.statement(&node, places));
                    match name {
                        "try" => Behind::Try,
                        "guarded" => Behind::Guarded,
                        _ => Behind::Other,
                    }
                }
            };
        }
        self.check_filter(behind, "");
        body
    }

    /// Reports a problem if a filter is not followed by its handler.
    fn check_filter(&mut self, behind: Behind, name: &str) {
        if let Behind::Filter(span) = behind
            && name != "on-catch"
        {
            self.problem(span, ProblemKind::FilterWithoutCatch);
        }
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
            "guarded" => Statement::Guarded(inner, Vec::new()),
            "throw" => Statement::Throw,
            "trap" => Statement::Trap(function),
            "switch-stack" => Statement::SwitchStack(function),
            "stop" => Statement::Stop,
            name if let Some(kind) = RuntimeCallKind::from_word(name) => {
                let target = if kind.may_unload() {
                    node.arg_function()
                } else {
                    kind.target().map(|_| function)
                };
                Statement::Runtime(RuntimeCall { kind, target })
            }
            _ => Statement::Exit(exit(node).unwrap_or(Exit::Return(ReturnForm::Ret))),
        }
    }
}

/// Adds an EH clause. A block that follows a filter is its handler.
fn clause(
    clauses: &mut Vec<EhClause>,
    node: &Fields<'_>,
    behind: Behind,
    mut statements: Vec<Statement>,
) {
    let kind = match (node.rule.name, behind) {
        ("on-catch", Behind::Filter(_)) => {
            if let Some(filtered) = clauses.last_mut() {
                filtered.body = statements;
            }
            return;
        }
        ("on-filter", _) => EhClauseKind::Filtered {
            accepts: node.flag("accepts").unwrap_or(true),
            filter: core::mem::take(&mut statements),
        },
        ("on-finally", _) => EhClauseKind::Finally,
        ("on-fault", _) => EhClauseKind::Fault,
        _ => EhClauseKind::Catch,
    };
    clauses.push(EhClause { kind, body: statements });
}
