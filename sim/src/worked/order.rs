//! The order of the checks: with many troubles at once, the first one decides.

use super::checks::{WHOLE, stage};
use super::{Example, ExampleCall, Target, is_framework_2, is_unix, own_context_flags};
use crate::generation::Generation;
use crate::profiling::{HResult, Outcome};
use crate::runtime::{
    ContextSafety, FrameKind, OsThreadId, ProfilerStatus, Suspension, ThreadLife,
};
use crate::stage::{MANAGED_WALKER, Stage};
use clr_walker::profiling::EventMask;

/// A trouble: what it is, how it comes about, and what it gives if it is the first.
type Trouble = (&'static str, fn(&mut Stage, &mut ExampleCall), Outcome);

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = ladder(
        generation,
        &of_other(generation),
        &ExampleCall::by(MANAGED_WALKER, "by another thread, with all later troubles"),
        |call| {
            call.context_flags(own_context_flags(generation)).gives_on_windows(
                generation,
                WHOLE,
                HResult::OK,
            )
        },
    );
    examples.extend(ladder(
        generation,
        &of_own(generation),
        &ExampleCall::own("by itself, with all later troubles").seeded("App.Foo"),
        |call| call.gives(WHOLE, HResult::OK),
    ));
    examples
}

/// One example for each trouble, with all later ones, and one without any.
fn ladder(
    generation: Generation,
    troubles: &[Trouble],
    call: &ExampleCall,
    without: impl Fn(ExampleCall) -> ExampleCall,
) -> Vec<Example> {
    (0..=troubles.len())
        .map(|first| {
            let mut stage = stage(generation);
            let mut call = call.clone();
            for (_, make, _) in &troubles[first..] {
                make(&mut stage, &mut call);
            }
            let (title, call) = match troubles.get(first) {
                Some((title, _, outcome)) => (*title, call.gives("", *outcome)),
                None => ("no trouble", without(call)),
            };
            Example { id: "C-006", title, stage, calls: vec![call] }
        })
        .collect()
}

/// The troubles before the target's hijack lock.
fn early(generation: Generation) -> Vec<Trouble> {
    let missing = if is_framework_2(generation) {
        HResult::INVALID_ARGUMENT
    } else {
        HResult::INCONSISTENT_WITH_FLAGS
    };
    let detaching: Trouble = (
        "detaching",
        |stage, _| stage.process.profiler = ProfilerStatus::Detaching,
        HResult::PROFILER_DETACHING.into(),
    );
    let gc_special: Trouble =
        ("a thread of the GC", |stage, _| stage.gc_special = true, HResult::OK.into());
    let has_both = !is_framework_2(generation);
    let mut troubles = Vec::new();
    troubles.extend(has_both.then_some(detaching));
    troubles.push((
        "not started",
        |stage, _| stage.process.started = false,
        HResult::UNSAFE.into(),
    ));
    troubles.push((
        "not enabled",
        |stage, _| stage.process.event_mask = EventMask(0),
        missing.into(),
    ));
    troubles.push((
        "bad flags",
        |_, call| *call = call.clone().flags(3),
        HResult::INVALID_ARGUMENT.into(),
    ));
    troubles.extend(has_both.then_some(gc_special));
    troubles.push(("no GC", |stage, _| stage.process.gc_initialized = false, HResult::OK.into()));
    troubles.push((
        "the hijack lock is taken",
        |stage, _| stage.hijack_locked = true,
        HResult::UNSAFE.into(),
    ));
    troubles
}

/// Those of a cooperative thread that another one walks without a seed.
fn of_other(generation: Generation) -> Vec<Trouble> {
    let mut troubles = early(generation);
    troubles.push((
        "threads are being stopped",
        |stage, _| stage.process.suspension = Suspension::Suspending(OsThreadId(9)),
        HResult::UNSAFE.into(),
    ));
    troubles.push((
        "it must not be suspended",
        |stage, _| stage.forbid_suspend = 1,
        HResult::UNSAFE.into(),
    ));
    let dead: Outcome = if is_unix(generation) {
        HResult::NOT_IMPLEMENTED.into()
    } else {
        Outcome::ProcessKilled { code: HResult::INVALID_TARGET_THREAD.0 }
    };
    troubles.push(("it has ended", |stage, _| stage.life = ThreadLife::Dead, dead));
    if is_unix(generation) {
        return troubles;
    }
    troubles.push((
        "it cannot be suspended",
        |stage, _| stage.resists_suspension = true,
        HResult::UNSAFE.into(),
    ));
    troubles.push((
        "its context cannot be read",
        |stage, _| stage.safety = ContextSafety::Unreadable,
        if is_framework_2(generation) { HResult::FAIL } else { HResult::UNSAFE }.into(),
    ));
    let writer = match generation {
        Generation::Framework4 | Generation::CoreClr31Windows => {
            HResult::ASYNCHRONOUS_UNSAFE.into()
        }
        _ => Outcome::Blocked,
    };
    troubles.push((
        "the code manager is being written to",
        |stage, _| stage.process.code_manager_writer = Some(OsThreadId(9)),
        writer,
    ));
    if !is_framework_2(generation) {
        troubles.push((
            "a Frame lies below rsp",
            |stage, _| {
                let marked = stage.clone().mark(FrameKind::DebuggerU2MCatchHandler, 0x1F_E200);
                *stage = marked;
            },
            HResult::UNSAFE.into(),
        ));
    }
    troubles.push((
        "its ip is native code",
        |stage, _| {
            let rows = stage.rows.split_off(0);
            *stage = stage.clone().native_leaf("JIT_WriteBarrier+0x8", 0x1F_E2F8);
            stage.rows.extend(rows);
        },
        HResult::UNMANAGED_CONTEXT.into(),
    ));
    troubles.push((
        "an exception has just ended",
        |stage, _| stage.exceptions.inconsistent = true,
        HResult::UNSAFE.into(),
    ));
    troubles
}

/// Those of a cooperative thread that walks itself with a seed, outside of callbacks.
fn of_own(generation: Generation) -> Vec<Trouble> {
    let mut troubles = early(generation);
    troubles.push((
        "it must not be suspended",
        |stage, _| stage.forbid_suspend = 1,
        HResult::UNSAFE.into(),
    ));
    let gives_up = matches!(
        generation,
        Generation::Framework4 | Generation::CoreClr31Windows | Generation::CoreClr31Unix
    );
    // Elsewhere the lookup takes no lock, but the walk does, which comes last.
    let writer: Trouble = (
        "the code manager is being written to",
        |stage, _| stage.process.code_manager_writer = Some(OsThreadId(9)),
        if gives_up { HResult::ASYNCHRONOUS_UNSAFE.into() } else { Outcome::Blocked },
    );
    troubles.extend(gives_up.then_some(writer));
    troubles.push((
        "the seed is native code",
        |_, call| *call = call.clone().seeded("CallDescrWorkerInternal"),
        HResult::UNMANAGED_CONTEXT.into(),
    ));
    troubles.push((
        "an exception has just ended",
        |stage, _| stage.exceptions.inconsistent = true,
        HResult::UNSAFE.into(),
    ));
    troubles.extend((!gives_up).then_some(writer));
    // The first check of all is the same for a thread that is none.
    if let Some((_, make, _)) = troubles.first_mut()
        && !is_framework_2(generation)
    {
        *make = |stage, call| {
            stage.process.profiler = ProfilerStatus::Detaching;
            call.thread = Target::Value(0x1000);
        };
    }
    troubles
}
