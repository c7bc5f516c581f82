//! Tests of walks at the boundaries of frames, of stacks, and of the part that an exception has unwound.

use super::*;
use crate::frame::{FrameFields, FrameKind, FrameWriter};
use crate::generation::{EmptyWalk, StackCheck};
use crate::{ExceptionTracker, Pass};
use clr_unwind::{Gpr, Registers};

/// rsp of a walk's seed (VA).
const RSP: u64 = STACK + 0x800;
/// rsp of the method that a Frame leads to (VA).
const OUTER_RSP: u64 = STACK + 0xA00;
/// Base of the stack (VA).
const BASE: u64 = STACK + 0x1000;

/// Writes a Frame that leads to this address (VA), the only one of the worker's chain.
fn link_frame(runtime: &Runtime<'_, Machine>, at: u64, kind: FrameKind, rip: u64) {
    let mut registers = Registers { rip, ..Registers::default() };
    registers.set(Gpr::Rsp, OUTER_RSP);
    let fields = FrameFields { method: 0x7FF8_1000, registers, ..FrameFields::default() };
    let Runtime { generation, identities, memory, .. } = runtime;
    let memory = &mut *memory.borrow_mut();
    FrameWriter { generation: *generation, identities, memory }
        .write(at, FRAME_TOP, kind, &fields)
        .unwrap();
    memory.write(OUTER_RSP, &NATIVE.to_le_bytes()).unwrap();
    let stack = (0x10_0000, BASE);
    let fields =
        ThreadFields { cooperative: true, stack, top_frame: at, ..ThreadFields::default() };
    fields.write(memory, WORKER_ID).unwrap();
}

/// Returns what a walk of the worker reports, and its outcome. The walk begins in [`FOO`] with this rsp.
fn walk_from(runtime: &Runtime<'_, Machine>, rsp: u64) -> (Vec<Option<FunctionId>>, Outcome) {
    runtime.memory.borrow_mut().write(rsp, &NATIVE.to_le_bytes()).unwrap();
    let mut seed = vec![0; 0xCA0];
    seed[0x98..0xA0].copy_from_slice(&rsp.to_le_bytes());
    seed[0xF8..0x100].copy_from_slice(&(FOO_TIER0 + 1).to_le_bytes());
    let call = SnapshotRequest { seed: Some(&seed), ..SnapshotRequest::default() };
    let mut functions = Vec::new();
    let outcome = runtime.on(WORKER).do_stack_snapshot(
        &call,
        Some(&mut |frame| {
            functions.push(frame.function);
            HResult::OK
        }),
    );
    (functions, outcome)
}

/// Tests C-056: a method has no room of its own from its caller's rsp on, so a Frame there is of a caller.
#[test]
fn a_frame_is_dropped_only_below_the_caller_of_a_method() {
    for generation in Generation::ALL {
        let caller_sp = RSP + 8;
        for (at, expected) in [
            (caller_sp, &[Some(FOO), None, Some(FOO), None][..]),
            (RSP - 0x100, &[Some(FOO), None]),
        ] {
            let runtime = process(generation);
            link_frame(&runtime, at, FrameKind::InlinedCall, FOO_TIER1 + 1);
            let expected = (expected.to_vec(), HResult::OK.into());
            assert_eq!(walk_from(&runtime, RSP), expected, "{generation}, {at:#x}");
        }
    }
}

/// Tests C-109, C-110: the base of the stack does not belong to it.
#[test]
fn an_unwound_stack_pointer_is_below_the_base() {
    for generation in Generation::ALL {
        let is_bound = generation.stack_check() == StackCheck::Bounds;
        let at_base = if is_bound { E_FAIL } else { HResult::OK };
        for (unwound, result) in [(BASE, at_base), (BASE - 8, HResult::OK)] {
            let runtime = process(generation);
            let (functions, outcome) = walk_from(&runtime, unwound - 8);
            assert_eq!(outcome, result.into(), "{generation}, {unwound:#x}");
            assert_eq!(functions[0], Some(FOO), "{generation}, {unwound:#x}");
        }
    }
}

/// Tests C-086: a walk that finds only what is unwound has found nothing (C-107).
#[test]
fn a_frame_that_an_exception_has_unwound_is_no_stop() {
    for generation in Generation::ALL {
        let is_empty = generation.empty_walk() != EmptyWalk::FailsWithoutFrame;
        let hidden = if is_empty { E_FAIL } else { HResult::OK };
        for (unwound, result) in
            [((RSP - 8, RSP), hidden), ((RSP, RSP + 8), HResult::OK), ((0, RSP - 8), HResult::OK)]
        {
            let runtime = process(generation);
            link_frame(&runtime, RSP, FrameKind::PrestubMethod, NATIVE);
            let tracker = ExceptionTracker {
                pass: Pass::Second,
                entered_managed_code: true,
                unwound: Some(unwound),
                ..ExceptionTracker::default()
            };
            runtime.change_thread(WORKER, |thread| thread.exceptions.trackers = vec![tracker]);
            let found = walk(runtime.on(WORKER), ThreadId(0));
            assert_eq!(found, result.into(), "{generation}, {unwound:x?}");
        }
    }
}
