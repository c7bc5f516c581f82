//! Answers of runtimes that the recordings settle: each recorded call that depends on a question is a
//! witness. All witnesses of a runtime agree with its answer, which is called observed.

use super::*;
use clr_runtime::FrameKind;

/// Returns what a recorded call says about a question, in the words of the answers; `None` if it
/// does not depend on it.
type Witness = fn(&Recording, &WalkLine) -> Option<String>;

const WITNESSES: [(&str, Witness); 3] = [
    ("empty_walk", empty_walk),
    ("faulting_context_flags", faulting_context_flags),
    ("has_software_exception_frames", has_software_exception_frames),
];

fn shapes(walk: &WalkLine) -> impl Iterator<Item = FrameShape> {
    let kinds = walk.frames.iter().filter_map(|frame| FrameKind::from_name(&frame.kind));
    kinds.map(FrameKind::shape)
}

/// A walk of a chain of Frames without a stop: E_FAIL, although there are Frames. A suspended thread
/// that the GC has redirected gets E_FAIL for another reason.
fn empty_walk(_: &Recording, walk: &WalkLine) -> Option<String> {
    let from_chain = walk.call.seed.is_none() && walk.leaf.is_none();
    let is_empty =
        walk.result.callbacks.is_empty() && walk.result.hr.is_some_and(|hr| hr.0 == 0x8000_4005);
    let resumable = shapes(walk).any(|shape| shape == FrameShape::Resumable);
    let found = from_chain && is_empty && !resumable && shapes(walk).next().is_some();
    found.then(|| format!("{:?}", EmptyWalk::FailsWithoutStop))
}

/// The first ContextFlags that a walk without a seed delivers, where only a FaultingExceptionFrame has
/// a CONTEXT: those of this CONTEXT, but for the bits that get lost.
fn faulting_context_flags(recording: &Recording, walk: &WalkLine) -> Option<String> {
    let has_context = [FrameShape::Resumable, FrameShape::Software, FrameShape::FuncEval];
    let alone = shapes(walk).all(|shape| !has_context.contains(&shape));
    if walk.call.seed.is_some() || walk.leaf.is_some() || !alone {
        return None;
    }
    let mut delivered = walk.result.callbacks.iter().filter_map(|callback| callback.context_flags);
    let flags = u32::try_from(delivered.find(|flags| flags.0 != 0)?.0).ok()?;
    Some(format!("{:#x}", flags | recording.generation.faulting_context_flags_lost()))
}

/// The newest Frame for a throw in the callback about it.
fn has_software_exception_frames(_: &Recording, walk: &WalkLine) -> Option<String> {
    if walk.situation != "callback:ExceptionThrown" {
        return None;
    }
    let thrown = [FrameShape::Software, FrameShape::HelperMethod];
    let shape = shapes(walk).find(|shape| thrown.contains(shape))?;
    Some(if shape == FrameShape::Software { "yes" } else { "no" }.to_owned())
}

#[test]
fn recorded_calls_settle_answers_of_runtimes() {
    let mut counts = Counts::default();
    let recordings = recordings();
    for (name, witness) in WITNESSES {
        let question = QUESTIONS.iter().find(|question| question.name == name).unwrap();
        for generation in Generation::ALL {
            let of = recordings.iter().filter(|(_, one)| one.generation == generation);
            let walks =
                of.flat_map(|(name, one)| one.walks.iter().map(move |walk| (name, one, walk)));
            for (file, recording, walk) in walks.filter(|(_, _, walk)| walk.replayable) {
                let Some(says) = witness(recording, walk) else { continue };
                let answer = (question.answer)(generation);
                assert_eq!(says, answer, "{name} of {generation}: {file}, walk {}", walk.n);
                let known = (question.known)(generation);
                assert_eq!(known, Known::Observed, "{name} of {generation} was recorded");
                counts.add(format!("{name}, {generation}: {says}"));
            }
        }
    }
    check!(counts);
}
