//! Tests of GetCodeInfo, 2, 3 and 4 and of GetFunctionInfo2.

use super::*;
use crate::profiling::CallbackKind;

const fn range(start: u64, size: u64) -> CodeRange {
    CodeRange { start, size }
}

/// Returns the pieces that a call writes into an array of this length, with the number that it
/// returns.
fn pieces(
    len: usize,
    call: impl FnOnce(&mut [CodeRange]) -> Answer<u32>,
) -> Answer<(u32, Vec<CodeRange>)> {
    let mut ranges = vec![range(0, 0); len];
    let count = call(&mut ranges)?;
    Ok((count, ranges))
}

const HOT: CodeRange = range(SPLIT_AT, 0x30);
const COLD: CodeRange = range(HEAP + 0x900, 0x18);

#[test]
fn code_has_one_or_two_pieces() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(WORKER);
        assert_eq!(caller.get_code_info(SPLIT), Ok(HOT), "{generation}");
        // The number is the total, even if the array is shorter (C-125).
        for (len, expected) in
            [(0, vec![]), (1, vec![HOT]), (2, vec![HOT, COLD]), (3, vec![HOT, COLD, range(0, 0)])]
        {
            let found = pieces(len, |ranges| caller.get_code_info2(SPLIT, ranges));
            assert_eq!(found, Ok((2, expected)), "{generation}, {len}");
        }
        // The most recent version without a ReJIT.
        let found = pieces(2, |ranges| caller.get_code_info2(FOO, ranges));
        assert_eq!(found, Ok((1, vec![range(FOO_TIER1, 0x30), range(0, 0)])), "{generation}");
        assert_eq!(caller.get_code_info(FOO), Ok(range(FOO_TIER1, 0x30)), "{generation}");
    }
}

#[test]
fn what_is_unfinished_is_not_known() {
    const MODULE: u64 = 7;
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(WORKER);
        runtime.unfinished.borrow_mut().compiles(FOO);
        assert_eq!(caller.get_code_info(FOO), failed(FUNCTION_NOT_COMPILED), "{generation}");
        let found = pieces(2, |ranges| caller.get_code_info2(FOO, ranges));
        assert_eq!(found, failed(FUNCTION_NOT_COMPILED), "{generation}");
        assert_eq!(caller.get_code_info(SPLIT), Ok(HOT), "{generation}");
        runtime.unfinished.borrow_mut().compiled(FOO);
        assert!(caller.get_code_info(FOO).is_ok(), "{generation}");
        let note = |kind| runtime.unfinished.borrow_mut().note_load(kind, MODULE);
        note(CallbackKind::ModuleLoadStarted);
        assert!(!caller.is_loaded(MODULE), "{generation}");
        assert!(caller.is_loaded(MODULE + 1), "{generation}");
        note(CallbackKind::ModuleLoadFinished);
        assert!(caller.is_loaded(MODULE), "{generation}");
    }
}

#[test]
fn code_that_is_not_there_has_no_pieces() {
    for generation in Generation::ALL {
        let mut runtime = process(generation);
        for (function, result) in [
            (FunctionId(0), E_INVALIDARG),
            (FunctionId(0x99), E_INVALIDARG),
            (NOT_COMPILED, FUNCTION_NOT_COMPILED),
            (UNRESTORED, DATAINCOMPLETE),
        ] {
            let caller = runtime.on(STRANGER);
            assert_eq!(caller.get_code_info(function), failed(result), "{generation}");
            let found = pieces(2, |ranges| caller.get_code_info2(function, ranges));
            assert_eq!(found, failed(result), "{generation}, {function:?}");
            let found = pieces(2, |ranges| caller.get_code_info3(function, ReJitId(0), ranges));
            let result = if FRAMEWORK_2.contains(generation) { E_NOTIMPL } else { result };
            assert_eq!(found, failed(result), "{generation}, {function:?}");
        }
        assert!(runtime.code.remove_section(HEAP));
        let found = runtime.on(STRANGER).get_code_info(FOO);
        assert_eq!(found, failed(FUNCTION_NOT_COMPILED), "{generation}");
    }
}

#[test]
fn in_a_forbid_suspend_region_only_get_code_info_is_refused() {
    for generation in Generation::ALL {
        // There it calls GetCodeInfo2, which looks at the id before the region (C-116).
        let first = FRAMEWORK_2.contains(generation);
        let runtime = process(generation);
        set_word(&runtime, WORKER_ID, FORBID_SUSPEND, 1);
        let without_id = if first { E_INVALIDARG } else { ASYNCHRONOUS_UNSAFE };
        for (function, result) in [(FOO, ASYNCHRONOUS_UNSAFE), (FunctionId(0), without_id)] {
            let found = runtime.on(WORKER).get_code_info(function);
            assert_eq!(found, failed(result), "{generation}");
        }
        let found = runtime.on(WORKER).get_code_info2(FOO, &mut []);
        assert_eq!(found, if first { failed(ASYNCHRONOUS_UNSAFE) } else { Ok(1) }, "{generation}");
        // Methods that are not about code still answer (contract §5.6).
        assert!(runtime.on(WORKER).get_function_info2(FOO, None, 0).is_ok(), "{generation}");
    }
}

#[test]
fn versions_are_distinguished_by_rejit_id_or_start() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        for (rejit, expected) in [
            (0, Ok((1, vec![range(FOO_TIER1, 0x30)]))),
            (5, Ok((1, vec![range(FOO_REJIT, 0x30)]))),
            (6, failed(FUNCTION_NOT_COMPILED)),
        ] {
            let found = pieces(1, |ranges| caller.get_code_info3(FOO, ReJitId(rejit), ranges));
            assert_eq!(found, expected, "{generation}, {rejit}");
        }
        for (start, expected) in [
            (FOO_TIER0, Ok((1, vec![range(FOO_TIER0, 0x30)]))),
            (FOO_REJIT, Ok((1, vec![range(FOO_REJIT, 0x30)]))),
            (SPLIT_AT, Ok((2, vec![HOT]))),
            // Only the start of the hot piece counts as such; others begin a cold one.
            (FOO_TIER0 + 1, Ok((1, vec![range(0, 0)]))),
            (SPLIT_AT + 1, Ok((2, vec![COLD]))),
            (0, failed(FUNCTION_NOT_COMPILED)),
            (PRECODE_AT, failed(FUNCTION_NOT_COMPILED)),
            (NATIVE, failed(FUNCTION_NOT_COMPILED)),
        ] {
            let found = pieces(1, |ranges| caller.get_code_info4(start, ranges));
            assert_eq!(found, expected, "{generation}, {start:#x}");
        }
    }
}

/// Tests contract §2.6, §5.4, §5.5, H-09.
#[test]
fn while_the_tables_are_written_pieces_are_waited_for_or_refused() {
    for generation in Generation::ALL {
        let refuses = BEFORE_NET_9.contains(generation);
        let runtime = process(generation);
        runtime.change_process(|process| process.code_manager_writer = Some(OsThreadId(9)));
        let blocked = || fatal(Outcome::Blocked);
        for (os, bits, expected) in [
            // A native thread takes no lock.
            (STRANGER, 0, Ok(())),
            (OTHER, 0, if refuses { failed(ASYNCHRONOUS_UNSAFE) } else { blocked() }),
            (OTHER, 3, blocked()),
            // A cooperative thread takes none either, if it may wait.
            (WORKER, 3, Ok(())),
        ] {
            let found = with_state(&runtime, os, bits, |caller| {
                [
                    caller.get_code_info(FOO).map(|_| ()),
                    caller.get_code_info2(FOO, &mut []).map(|_| ()),
                ]
            });
            assert_eq!(found, [expected, expected], "{generation}, {os:?}, {bits}");
        }
        // GetCodeInfo3 and 4 exist only in callbacks, where they wait.
        if WITH_SUSPENSION.contains(generation) {
            let found = with_state(&runtime, OTHER, 3, |caller| {
                [
                    caller.get_code_info3(FOO, ReJitId(5), &mut []).map(|_| ()),
                    caller.get_code_info4(FOO_TIER0, &mut []).map(|_| ()),
                ]
            });
            assert_eq!(found, [fatal(Outcome::Blocked), fatal(Outcome::Blocked)], "{generation}");
        }
    }
}

#[test]
fn functions_have_their_numbers() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        for (asked, type_arguments) in
            [(0, vec![]), (1, vec![0xA1]), (3, vec![0xA1, 0xA2, 0xA3]), (9, vec![0xA1, 0xA2, 0xA3])]
        {
            let expected = FunctionInfo {
                class: 0xC11,
                module: 0xD00,
                token: 0x0600_0011,
                type_argument_count: 3,
                type_arguments,
            };
            let found = caller.get_function_info2(FOO, None, asked);
            assert_eq!(found, Ok(expected), "{generation}, {asked}");
        }
        // C-124.
        assert_eq!(caller.get_function_info2(SHARED, None, 0).unwrap().class, 0, "{generation}");
        for (function, result) in [
            (FunctionId(0), E_INVALIDARG),
            (FunctionId(0x99), E_INVALIDARG),
            (UNRESTORED, DATAINCOMPLETE),
        ] {
            let found = caller.get_function_info2(function, None, 0);
            assert_eq!(found, failed(result), "{generation}, {function:?}");
        }
    }
}

/// Returns a seed in [`FOO`], called from native code.
fn seed(runtime: &Runtime<'_, Machine>) -> Vec<u8> {
    runtime.memory.borrow_mut().write(STACK + 0x100, &NATIVE.to_le_bytes()).unwrap();
    let mut seed = vec![0; 0xC20];
    seed[0xF8..0x100].copy_from_slice(&(FOO_TIER0 + 8).to_le_bytes());
    seed[0x98..0xA0].copy_from_slice(&(STACK + 0x100).to_le_bytes());
    seed
}

/// Tests C-136: the callbacks of a walk are no callbacks of the profiler.
#[test]
fn in_the_callbacks_of_a_walk_methods_are_allowed_as_around_it() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let seed = seed(&runtime);
        let call = SnapshotRequest { seed: Some(&seed), ..SnapshotRequest::default() };
        for (bits, expected) in [(0, failed(UNSUPPORTED_CALL_SEQUENCE)), (1, Ok(())), (3, Ok(()))] {
            let mut answers = Vec::new();
            let outcome = with_state(&runtime, WORKER, bits, |caller| {
                caller.do_stack_snapshot(
                    &call,
                    Some(&mut |_| {
                        answers.push(caller.get_thread_info(OTHER_ID).map(|_| ()));
                        HResult::OK
                    }),
                )
            });
            assert_eq!(outcome, Outcome::Returned(HResult::OK), "{generation}");
            assert_eq!(answers, [expected; 2], "{generation}, {bits}");
        }
    }
}

/// Tests C-101.
#[test]
fn a_frame_info_is_of_its_function_while_its_callback_lasts() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(WORKER);
        let seed = seed(&runtime);
        let call = SnapshotRequest { seed: Some(&seed), ..SnapshotRequest::default() };
        let mut reported = Vec::new();
        let outcome = caller.do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                let ask = |function| caller.get_function_info2(function, Some(frame.frame_info), 0);
                let asked = [FOO, SHARED, FunctionId(0)].map(ask).map(|answer| answer.map(|_| ()));
                reported.push((frame.function, asked, frame.frame_info.handle()));
                HResult::OK
            }),
        );
        assert_eq!(outcome, Outcome::Returned(HResult::OK), "{generation}");
        let [(foo, of_foo, handle), (marker, of_marker, _)] = &reported[..] else {
            panic!("{reported:?}")
        };
        let invalid = || failed(E_INVALIDARG);
        assert_eq!((foo, marker), (&Some(FOO), &None), "{generation}");
        // C-123.
        assert_eq!(of_foo, &[Ok(()), invalid(), invalid()], "{generation}");
        assert_eq!(of_marker, &[invalid(), invalid(), invalid()], "{generation}");
        // After its callback a frameInfo is invalid, like one that was never passed.
        for handle in [*handle, 0, u64::MAX] {
            let stale = caller.get_function_info2(FOO, Some(FrameInfo::new(handle)), 0);
            assert_eq!(stale.map(|_| ()), invalid(), "{generation}");
        }
    }
}

#[test]
fn a_walk_within_a_callback_leaves_its_frame_info_alone() {
    let runtime = process(CoreClr31Windows);
    let caller = runtime.on(WORKER);
    let seed = seed(&runtime);
    let call = SnapshotRequest { seed: Some(&seed), ..SnapshotRequest::default() };
    // The other thread is in the same code.
    set_word(&runtime, OTHER_ID, COOPERATIVE, 1);
    let current = crate::Context::from_bytes(&seed).unwrap();
    runtime.change_thread(OTHER, |thread| thread.current = current);
    let mut answers = Vec::new();
    caller.do_stack_snapshot(
        &call,
        Some(&mut |frame| {
            assert_eq!(walk(caller, OTHER_ID), Outcome::Returned(HResult::OK));
            assert_eq!(walk(caller, WORKER_ID), Outcome::Returned(UNSAFE));
            let info = caller.get_function_info2(FOO, Some(frame.frame_info), 0);
            answers.push(info.map(|info| info.class));
            HResult(1)
        }),
    );
    assert_eq!(answers, [Ok(0xC11)]);
}
