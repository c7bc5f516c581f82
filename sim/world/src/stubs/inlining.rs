//! Inlining that a profiler can refuse.
//!
//! A method that others are inlined into tests a word for each of them, and calls it if the word is not 0: the runtime decides when it
//! compiles the method. A CLR compiles other code instead; here the test comes before the method's first statement.

use super::frames::{TRAP_RETURNING_THREADS, set};
use clr_codegen::{
    FunctionIndex, Primitive, Program, RuntimeCall, RuntimeCallKind, Statement, Value, Word,
};
use clr_unwind::Gpr;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Number of the words: they follow the first one of their page.
const WORDS: u64 = 511;

/// Returns the words of all inlinings (VA), with caller and inlined method. An inlining that there is no word for is not refused.
pub(crate) fn words(
    inlines: &BTreeMap<FunctionIndex, Vec<FunctionIndex>>,
) -> impl Iterator<Item = (FunctionIndex, FunctionIndex, u64)> {
    let all = inlines.iter().flat_map(|(caller, all)| all.iter().map(|one| (*caller, *one)));
    (1..=WORDS)
        .zip(all)
        .map(|(number, (caller, inlined))| (caller, inlined, TRAP_RETURNING_THREADS + 8 * number))
}

/// Returns the program with calls for the inlinings that the runtime does not make.
pub fn with_refusable<'p>(
    program: Cow<'p, Program>,
    inlines: &BTreeMap<FunctionIndex, Vec<FunctionIndex>>,
) -> Cow<'p, Program> {
    if inlines.is_empty() {
        return program;
    }
    let mut program = program.into_owned();
    let mut calls = BTreeMap::<FunctionIndex, Vec<Statement>>::new();
    for (caller, inlined, word) in words(inlines) {
        calls.entry(caller).or_default().extend(call_if(word, inlined));
    }
    for (caller, mut calls) in calls {
        if let Some(function) = program.functions.get_mut(caller.index()) {
            calls.append(&mut function.body);
            function.body = calls;
        }
    }
    Cow::Owned(program)
}

/// Calls a method if a word is not 0.
fn call_if(word: u64, method: FunctionIndex) -> [Statement; 3] {
    let (kind, target) = (RuntimeCallKind::FirstCall, Some(method));
    let call = Statement::Runtime(RuntimeCall { kind, target });
    [
        set(Word::Register(Gpr::Rax), Value::Number(word)),
        set(Word::Register(Gpr::Rax), Value::At(Gpr::Rax, 0)),
        Statement::Primitive(Primitive::When(vec![call])),
    ]
}
