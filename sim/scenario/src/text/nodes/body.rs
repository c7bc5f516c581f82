//! Bodies: statements and EH clauses.

use crate::text::codec::{Codec, Item, Join, SIZE32, Task, between, nodes};
use crate::text::grammar::{Kind, Level};
use crate::text::keywords::{Keyword as _, REGISTERS, xmm, xmm_number};
use crate::text::nodes::function::exit;
use crate::text::problem::ProblemKind;
use clr_codegen::{
    EhClause, EhClauseKind, Exit, ReturnForm, RuntimeCall, RuntimeCallKind, Statement,
};
use clr_unwind::Gpr;
use std::sync::LazyLock;

/// The statements in a block.
pub(super) fn statements(body: &mut Vec<Statement>, c: &mut Codec<'_>) {
    c.block(Level::Body, |c| c.items(body));
}

nodes! {
    fn statement(node: Statement, c), fn blanks;
    Call(form, callee) => c.node("call", |c| {
        c.arg(callee);
        c.with("by", form);
    }),
    Clobber(register = Gpr::Rax) => *node = clobber(register.word(), c),
    ClobberXmm(number) => *node = clobber(xmm(*number), c),
    Store(offset) => c.node("store", |c| c.arg_of(SIZE32, offset)),
    Work(count) => c.node("work", |c| c.arg(count)),
    Loop(times, body) => c.node("loop", |c| {
        c.arg_of(between(1, u8::MAX.into()), times);
        statements(body, c);
    }),
    If(is_executed, body) => c.node("if", |c| {
        c.arg(is_executed);
        statements(body, c);
    }),
    Exit(form = Exit::Return(ReturnForm::Ret)) => exit(form, c),
    Alloca(units) => c.node("alloca", |c| c.arg(units)),
    Cold(body) => c.node("cold", |c| statements(body, c)),
    Region(saves, body) => c.node("region", |c| {
        c.args(saves);
        statements(body, c);
    }),
    Funclet(body) => c.node("funclet", |c| statements(body, c)),
    Try(body, catch) => {
        c.node("try", |c| statements(body, c));
        c.node_if("catch", !catch.is_empty(), |c| statements(catch, c));
    },
    Guarded(body, clauses) => {
        c.node("guarded", |c| statements(body, c));
        handlers(clauses, c);
    },
    Throw => c.node("throw", |_| {}),
    Trap(handler) => c.node("trap", |c| c.arg(handler)),
    SwitchStack(callee) => c.node("switch-stack", |c| c.arg(callee)),
    Stop => c.node("stop", |_| {}),
    Runtime(call = RuntimeCall { kind: RuntimeCallKind::PInvoke, target: None }) => {
        runtime_call(call, c);
    },
    ; Statement::Primitive(_)
}

fn clobber(mut word: &'static str, c: &mut Codec<'_>) -> Statement {
    c.node("clobber", |c| c.arg_of(Kind::Word(REGISTERS), &mut word));
    match (xmm_number(word), Gpr::from_word(word)) {
        (Some(number), _) => Statement::ClobberXmm(number),
        (None, register) => Statement::Clobber(register.unwrap_or(Gpr::Rax)),
    }
}

/// A call of the runtime: each has a node of its own, with the function that is called in the end.
fn runtime_call(call: &mut RuntimeCall, c: &mut Codec<'_>) {
    for kind in RuntimeCallKind::ALL.iter().copied() {
        c.node_if(kind.word(), call.kind == kind, |c| {
            call.kind = kind;
            if kind.may_name_method() {
                c.optional_arg(&mut call.target);
            } else if kind.target().is_some() {
                c.arg(&mut call.target);
            }
        });
    }
}

const HANDLERS: [(&str, EhClauseKind); 3] = [
    ("on-catch", EhClauseKind::Catch),
    ("on-finally", EhClauseKind::Finally),
    ("on-fault", EhClauseKind::Fault),
];

/// The EH clauses after a guarded block.
fn handlers(clauses: &mut Vec<EhClause>, c: &mut Codec<'_>) {
    match (c.task(), c.item(0), c.item(-1), clauses.last_mut()) {
        (Task::Print, ..) => clauses.iter_mut().for_each(|clause| handler(clause, c)),
        (_, Some("guarded"), ..) => {}
        (_, Some("on-catch"), Some("on-filter"), Some(filtered)) => {
            c.node("on-catch", |c| statements(&mut filtered.body, c));
        }
        _ => {
            let mut clause = EhClause { kind: EhClauseKind::Catch, body: Vec::new() };
            handler(&mut clause, c);
            clauses.push(clause);
        }
    }
}

/// An EH clause. A filter is followed by its handler.
fn handler(clause: &mut EhClause, c: &mut Codec<'_>) {
    let EhClause { kind, body } = clause;
    let is_followed = c.item(1) == Some("on-catch");
    let (mut accepts, mut filter) = (true, Vec::new());
    let is_filtered = matches!(kind, EhClauseKind::Filtered { .. });
    let mut matches = *kind != EhClauseKind::Unmatched;
    if let EhClauseKind::Filtered { accepts: answer, filter: statements } = kind {
        (accepts, filter) = (*answer, core::mem::take(statements));
    }
    c.node_if("on-filter", is_filtered, |c| {
        c.or("accepts", &mut accepts, &true);
        statements(&mut filter, c);
        *kind = EhClauseKind::Filtered { accepts, filter: core::mem::take(&mut filter) };
        c.refuse(!is_followed, ProblemKind::FilterWithoutCatch);
    });
    for (name, other) in HANDLERS {
        let is_catch = other == EhClauseKind::Catch;
        let is_it = *kind == other || is_catch && (is_filtered || !matches);
        c.node_if(name, is_it, |c| {
            *kind = other.clone();
            if is_catch {
                c.or("matches", &mut matches, &true);
                if !matches {
                    *kind = EhClauseKind::Unmatched;
                }
            }
            statements(body, c);
        });
    }
}

impl Item for Statement {
    fn blanks() -> &'static [Self] {
        static BLANKS: LazyLock<Vec<Statement>> = LazyLock::new(blanks);
        &BLANKS
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        statement(self, c);
    }

    fn joins(last: Option<&Self>, c: &Codec<'_>) -> Join {
        let is_handler = |name: &str| name == "on-filter" || HANDLERS.iter().any(|it| it.0 == name);
        match (c.item(0), c.item(-1), last) {
            (Some("catch"), Some("try"), Some(Self::Try(..))) => Join::Continues,
            (Some("catch"), ..) => Join::Stray(ProblemKind::CatchWithoutTry),
            (Some(name), Some(before), Some(Self::Guarded(..)))
                if is_handler(name) && (before == "guarded" || is_handler(before)) =>
            {
                Join::Continues
            }
            (Some(name), ..) if is_handler(name) => {
                Join::Stray(ProblemKind::ClauseWithoutGuarded(name))
            }
            _ => Join::Begins,
        }
    }
}
