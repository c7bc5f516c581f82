//! Tests of GetFunctionFromIP, 2 and 3.

use super::*;

/// Calls the three methods; results are (function, version of the code).
fn all(caller: Caller<'_, '_, Machine>, ip: u64) -> [Answer<(FunctionId, ReJitId)>; 3] {
    [
        caller.get_function_from_ip(ip).map(|id| (id, ReJitId(0))),
        caller.get_function_from_ip2(ip),
        caller.get_function_from_ip3(ip),
    ]
}

/// Replaces the answers of methods that a generation lacks by E_NOTIMPL.
fn as_far_as_there<T>(generation: Generation, answers: [Answer<T>; 3]) -> [Answer<T>; 3] {
    let [first, second, third] = answers;
    if FRAMEWORK_2.contains(generation) {
        [first, failed(E_NOTIMPL), failed(E_NOTIMPL)]
    } else {
        [first, second, third]
    }
}

/// Tests C-114.
#[test]
fn ips_belong_to_the_function_with_their_code() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        for (ip, first, others) in [
            (FOO_TIER0, FOO, 0),
            (FOO_TIER0 + 0x2F, FOO, 0),
            // The end (exclusive), and the padding after it (C-117, contract §2.6).
            (FOO_TIER0 + 0x30, FOO, 0),
            (FOO_REJIT - 1, FOO, 0),
            (FOO_REJIT, FOO, 5),
            (FOO_TIER1, FOO, 0),
            (HANDLING_AT + 8, HANDLING, 0),
            (SHARED_AT, SHARED, 0),
        ] {
            let answers = [
                Ok((first, ReJitId(0))),
                Ok((first, ReJitId(others))),
                Ok((first, ReJitId(others))),
            ];
            let expected = as_far_as_there(generation, answers);
            assert_eq!(all(runtime.on(STRANGER), ip), expected, "{generation}, {ip:#x}");
        }
        for ip in [0, 1, HEAP, HEAP + 0x3F, NATIVE, PRECODE_AT, HEAP + 0x1000, u64::MAX] {
            let expected =
                as_far_as_there(generation, [const { Err(CallError::Failed(E_FAIL)) }; 3]);
            assert_eq!(all(runtime.on(STRANGER), ip), expected, "{generation}, {ip:#x}");
        }
        // C-115, C-118.
        for (ip, id) in [(DYNAMIC_AT + 1, DYNAMIC), (IL_STUB_AT, IL_STUB)] {
            let answers = [failed(E_FAIL), failed(E_FAIL), Ok((id, ReJitId(0)))];
            let expected = as_far_as_there(generation, answers);
            assert_eq!(all(runtime.on(STRANGER), ip), expected, "{generation}, {ip:#x}");
        }
    }
}

#[test]
fn before_the_gc_is_up_nothing_is_known() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_process(|process| process.gc_initialized = false);
        for ip in [FOO_TIER0, NATIVE] {
            let answers = [const { Err(CallError::Failed(NOT_YET_AVAILABLE)) }; 3];
            let expected = as_far_as_there(generation, answers);
            assert_eq!(all(runtime.on(STRANGER), ip), expected, "{generation}");
        }
        // A forbid-suspend region is checked first.
        set_word(&runtime, WORKER_ID, FORBID_SUSPEND, 1);
        let found = runtime.on(WORKER).get_function_from_ip(FOO_TIER0);
        assert_eq!(found, failed(ASYNCHRONOUS_UNSAFE), "{generation}");
    }
}

/// Tests C-116.
#[test]
fn a_thread_that_must_not_be_suspended_cannot_ask() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        for (count, answer) in
            [(0, Ok(FOO)), (1, failed(ASYNCHRONOUS_UNSAFE)), (7, failed(ASYNCHRONOUS_UNSAFE))]
        {
            set_word(&runtime, WORKER_ID, FORBID_SUSPEND, count);
            let found = runtime.on(WORKER).get_function_from_ip(FOO_TIER0);
            assert_eq!(found, answer, "{generation}, {count}");
            // Only the caller's region matters.
            assert_eq!(runtime.on(OTHER).get_function_from_ip(FOO_TIER0), Ok(FOO));
            assert_eq!(runtime.on(STRANGER).get_function_from_ip(FOO_TIER0), Ok(FOO));
        }
        // The other two do not check it.
        let found = with_state(&runtime, WORKER, 3, |caller| all(caller, FOO_TIER0));
        let version = || Ok((FOO, ReJitId(0)));
        let answers = [failed(ASYNCHRONOUS_UNSAFE), version(), version()];
        assert_eq!(found, as_far_as_there(generation, answers), "{generation}");
    }
}

/// Tests contract §2.6, §5.1, H-09.
#[test]
fn while_the_tables_are_written_some_wait_and_some_are_refused() {
    let blocked = || fatal(Outcome::Blocked);
    for generation in Generation::ALL {
        let refuses = BEFORE_NET_9.contains(generation);
        let async_unsafe = || failed(ASYNCHRONOUS_UNSAFE);
        let runtime = process(generation);
        runtime.change_process(|process| process.code_manager_writer = Some(OsThreadId(9)));
        for (os, bits, expected) in [
            // A native thread takes no lock.
            (STRANGER, 0, Ok(FOO)),
            // Asynchronous calls: refused, or allowed to wait depending on the mode.
            (WORKER, 0, if refuses { async_unsafe() } else { Ok(FOO) }),
            (OTHER, 0, if refuses { async_unsafe() } else { blocked() }),
            // In a callback: cooperative threads take no lock, preemptive ones wait for it.
            (WORKER, 1, Ok(FOO)),
            (OTHER, 1, blocked()),
            // Bits that pass every check pass this one.
            (WORKER, 4, Ok(FOO)),
            (OTHER, 8, blocked()),
        ] {
            let found =
                with_state(&runtime, os, bits, |caller| caller.get_function_from_ip(FOO_TIER0));
            assert_eq!(found, expected, "{generation}, {os:?}, {bits}");
        }
        // The thread that suspends the runtime takes no lock, nor does the writer itself.
        runtime.change_process(|process| process.suspension = Suspension::Suspending(OTHER));
        let found = with_state(&runtime, OTHER, 1, |caller| caller.get_function_from_ip(FOO_TIER0));
        assert_eq!(found, Ok(FOO), "{generation}");
        runtime.change_process(|process| {
            process.suspension = Suspension::None;
            process.code_manager_writer = Some(OTHER);
        });
        assert_eq!(runtime.on(OTHER).get_function_from_ip(FOO_TIER0), Ok(FOO), "{generation}");
    }
}

#[test]
fn a_thread_object_that_is_gone_is_read_all_the_same() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_thread(WORKER, |thread| thread.object = Some(NOWHERE));
        let at = NOWHERE.0 + FORBID_SUSPEND;
        let found = runtime.on(WORKER).get_function_from_ip(FOO_TIER0);
        assert_eq!(found, fatal(Outcome::AccessViolation { at }), "{generation}");
    }
}
