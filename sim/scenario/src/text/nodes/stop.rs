//! Stops, and the walks that are expected there.

use crate::model::{Expectation, ExpectedFrame};
use crate::text::codec::{ARGUMENT, Code, Codec, ORDINAL, SIZE64};
use crate::text::grammar::{Kind, Level};
use crate::text::nodes::calls;
use crate::text::problem::ProblemKind;
use crate::{Stop, StopAt};

pub(super) fn stop(stop: &mut Stop, c: &mut Codec<'_>) {
    let mut end = (stop.at == StopAt::End).then_some("end");
    let is_end = c.is_written(ARGUMENT);
    c.optional_arg_of(Kind::Word(&["end"]), &mut end);
    c.with_of("thread", Kind::Thread, &mut stop.thread);
    place(&mut stop.at, is_end, c);
    c.block(Level::Stop, |c| {
        c.each("expect", &mut stop.expect, &Expectation::default(), expectation);
        c.each("other", &mut stop.others, &(0, StopAt::End), |(thread, at), c| {
            c.arg_of(Kind::Thread, thread);
            place(at, false, c);
        });
        calls(&mut stop.snapshots, &mut stop.mixed_walks, c);
    });
}

/// The properties of a position. The end of the program has none.
fn place(at: &mut StopAt, is_end: bool, c: &mut Codec<'_>) {
    let (mut after, mut code, mut callback, mut hook) = (None, None, None, None);
    let (mut instruction, mut visit) = (None, 1);
    match *at {
        StopAt::After(count) => after = Some(count),
        StopAt::Hook(number) => hook = Some(number),
        StopAt::End => {}
        StopAt::Instruction { function, index, visit: number } => {
            (code, instruction, visit) = (Some(Code::Function(function)), Some(index), number);
        }
        StopAt::Runtime { function, index, visit: number } => {
            (code, instruction, visit) = (Some(Code::Runtime(function)), Some(index), number);
        }
        StopAt::Wait { place, visit: number } => (code, visit) = (Some(Code::Wait(place)), number),
        StopAt::Callback { kind, visit: number } => (callback, visit) = (Some(kind), number),
    }
    c.with("after", &mut after);
    c.with("at", &mut code);
    c.with("callback", &mut callback);
    c.with_of("hook", ORDINAL, &mut hook);
    c.with("instruction", &mut instruction);
    c.or_of("visit", ORDINAL, &mut visit, &1);
    // A wrong value counts too: its problem was reported already.
    let count = |names: &[&str]| names.iter().filter(|name| c.is_written(name)).count();
    let places = count(&["after", "at", "callback", "hook"]);
    let is_counted = count(&["at", "callback"]) > 0;
    let is_wrong = places + usize::from(is_end) != 1
        || c.is_written("instruction")
            && (!c.is_written("at") || matches!(code, Some(Code::Wait(_))))
        || c.is_written("visit") && !is_counted;
    c.refuse(is_wrong, ProblemKind::StopPlace);
    let index = instruction.unwrap_or_default();
    *at = match (after, hook, callback, code) {
        _ if is_end => StopAt::End,
        (Some(count), ..) => StopAt::After(count),
        (_, Some(number), ..) => StopAt::Hook(number),
        (_, _, Some(kind), _) => StopAt::Callback { kind, visit },
        (.., Some(Code::Function(function))) => StopAt::Instruction { function, index, visit },
        (.., Some(Code::Runtime(function))) => StopAt::Runtime { function, index, visit },
        (.., Some(Code::Wait(place))) => StopAt::Wait { place, visit },
        (.., None) => StopAt::End,
    };
}

/// The expected result of a walk.
pub(crate) fn expectation(expectation: &mut Expectation, c: &mut Codec<'_>) {
    c.with("rules", &mut expectation.rules);
    c.with("ends", &mut expectation.ends);
    c.block(Level::Expect, |c| {
        c.each("frame", &mut expectation.frames, &ExpectedFrame::default(), |frame, c| {
            c.optional_arg(&mut frame.function);
            c.with("trust", &mut frame.trust);
            c.registers(SIZE64, &mut frame.registers);
        });
    });
}
