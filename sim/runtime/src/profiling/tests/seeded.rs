//! Tests of seeded walks.

use super::*;

/// Bytes of the largest seed that a runtime reads.
const SEED_SIZE: usize = 0xCA0;
/// rsp of the seed (VA).
const RSP: u64 = STACK + 0x800;

/// Offset of the Thread object's filter context.
const FILTER_CONTEXT: u64 = 0x40;

/// Returns a CONTEXT in [`FOO`] whose other bytes are their own offsets.
fn seed() -> Vec<u8> {
    let mut seed: Vec<u8> = (0..SEED_SIZE).map(|at| (at % 251) as u8).collect();
    seed[0x30..0x34].copy_from_slice(&0x10_000B_u32.to_le_bytes());
    seed[0x98..0xA0].copy_from_slice(&RSP.to_le_bytes());
    seed[0xF8..0x100].copy_from_slice(&(FOO_TIER0 + 1).to_le_bytes());
    seed
}

/// The delivered CONTEXT begins as the seed: what the walk does not know, such as segments, EFlags,
/// MxCsr and the volatile registers, stays as the seed has it in each callback (contract §3.7).
#[test]
fn what_a_walk_does_not_know_comes_from_the_seed() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.memory.borrow_mut().write(RSP, &NATIVE.to_le_bytes()).unwrap();
        let seed = seed();
        let call = SnapshotRequest {
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: Some(&seed),
            ..SnapshotRequest::default()
        };
        let mut contexts = Vec::new();
        let outcome = runtime.on(WORKER).do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                contexts.push((frame.function, frame.context.to_vec()));
                assert_eq!(word(&runtime, WORKER_ID, FILTER_CONTEXT), 1, "{generation}");
                HResult::OK
            }),
        );
        assert_eq!(outcome, HResult::OK.into(), "{generation}");
        assert_eq!(word(&runtime, WORKER_ID, FILTER_CONTEXT), 0, "{generation}");
        let functions: Vec<_> = contexts.iter().map(|(function, _)| *function).collect();
        assert_eq!(functions, [Some(FOO), None], "{generation}");
        for (n, (_, context)) in contexts.iter().enumerate() {
            assert_eq!(context.len(), generation.context_size() as usize, "{generation}");
            for (at, byte) in context.iter().enumerate() {
                let stepped = (0x98..0xA0).contains(&at) || (0xF8..0x100).contains(&at);
                if n == 0 || !stepped {
                    assert_eq!(*byte, seed[at], "{generation}, callback {n}, {at:#x}");
                }
            }
        }
    }
}

/// Row 11 of contract §2.2: a native thread may wait for the code manager, but not one of the GC's
/// (C-036).
#[test]
fn a_native_thread_of_the_gc_must_not_wait_for_the_code_manager() {
    let refuses = BEFORE_NET_9.both(Generations::WINDOWS);
    for generation in Generations::WINDOWS.iter() {
        for special in [false, true] {
            let runtime = process(generation);
            set_word(&runtime, OTHER_ID, COOPERATIVE, 1);
            runtime.change_thread(OTHER, |thread| thread.safety = ContextSafety::Safe);
            runtime.change_thread(STRANGER, |thread| thread.is_gc_special = special);
            runtime.change_process(|process| process.code_manager_writer = Some(OsThreadId(9)));
            let seed = seed();
            let call = SnapshotRequest {
                thread: OTHER_ID,
                seed: Some(&seed),
                ..SnapshotRequest::default()
            };
            let outcome = runtime.on(STRANGER).do_stack_snapshot(&call, Some(&mut |_| HResult::OK));
            let is_unsafe = outcome == ASYNCHRONOUS_UNSAFE.into();
            assert_eq!(
                is_unsafe,
                special && refuses.contains(generation),
                "{generation}, {special}: {outcome}"
            );
        }
    }
}
