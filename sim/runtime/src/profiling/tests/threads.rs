//! Tests of GetCurrentThreadID, GetThreadInfo, GetHandleFromThread, EnumThreads,
//! InitializeCurrentThread.

use super::*;

/// Tests C-120.
#[test]
fn threads_of_the_runtime_have_ids() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        for (os, expected) in [
            (WORKER, Ok(WORKER_ID)),
            (OTHER, Ok(OTHER_ID)),
            (STRANGER, failed(NOT_MANAGED_THREAD)),
            (GC, failed(NOT_MANAGED_THREAD)),
            // A thread that is completely unknown.
            (OsThreadId(99), failed(NOT_MANAGED_THREAD)),
        ] {
            assert_eq!(runtime.on(os).get_current_thread_id(), expected, "{generation}, {os:?}");
        }
    }
}

#[test]
fn ids_lead_to_the_systems_threads() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        let lost = || fatal(Outcome::AccessViolation { at: NOWHERE.0 });
        // C-121.
        let reads = FRAMEWORK_2.contains(generation);
        let refused = || CallError::Failed(E_INVALIDARG);
        let no_thread =
            || if reads { CallError::Fatal(Outcome::AccessViolation { at: 0 }) } else { refused() };
        for (id, os, handle) in [
            (WORKER_ID, Ok(1), Ok(0x41)),
            (OTHER_ID, Ok(2), Ok(0x42)),
            (ThreadId(0), Err(no_thread()), Err(no_thread())),
            (GC_ID, failed(E_INVALIDARG), failed(E_INVALIDARG)),
            // The handle of this thread is invalid.
            (CREATED_ID, Ok(5), failed(E_INVALIDARG)),
            (NO_THREAD, failed(E_INVALIDARG), failed(E_INVALIDARG)),
            (NOWHERE, lost(), fatal(Outcome::AccessViolation { at: NOWHERE.0 })),
        ] {
            assert_eq!(caller.get_thread_info(id), os, "{generation}, {id:x?}");
            assert_eq!(caller.get_handle_from_thread(id), handle, "{generation}, {id:x?}");
        }
    }
}

#[test]
fn threads_that_run_are_enumerated() {
    for generation in FRAMEWORK_2.inverse().iter() {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        assert_eq!(caller.enum_threads(), Ok(vec![WORKER_ID, OTHER_ID]), "{generation}");
        runtime.change_thread(WORKER, |thread| thread.life = ThreadLife::Dead);
        assert_eq!(caller.enum_threads(), Ok(vec![OTHER_ID]), "{generation}");
    }
}

#[test]
fn a_threads_first_call_initializes_it() {
    let initialized = |runtime: &Runtime<'_, Machine>, os| {
        runtime.thread(os, |thread| thread.initialized).unwrap()
    };
    for generation in FRAMEWORK_2.inverse().iter() {
        let runtime = process(generation);
        assert_eq!(runtime.on(STRANGER).initialize_current_thread(), Ok(()), "{generation}");
        assert!(initialized(&runtime, STRANGER) && !initialized(&runtime, OTHER), "{generation}");
        // Any other method initializes the thread too.
        assert!(runtime.on(OTHER).get_function_from_ip(NATIVE).is_err());
        assert!(initialized(&runtime, OTHER) && !initialized(&runtime, WORKER), "{generation}");
    }
}
