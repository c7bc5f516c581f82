//! Refusals: walks keep the frames that they have, and give the reason for the gap.

use super::*;

const IPS: [u64; 4] =
    [NATIVE + 0x20, returns_to(MANAGED, 1), returns_to(MANAGED, 2), returns_to(NATIVE, 3)];

#[test]
fn a_refused_snapshot_leaves_the_unwinders_frames() {
    for result in [
        HResult::UNMANAGED_CONTEXT,
        HResult::UNSAFE,
        HResult::ASYNCHRONOUS_UNSAFE,
        HResult::UNEXPECTED,
        HResult::NOT_IMPLEMENTED,
        HResult::PROFILER_DETACHING,
        HResult::INCONSISTENT_WITH_FLAGS,
        HResult(0x8013_1377),
    ] {
        let mut mock = Mock::new(&IPS);
        mock.reports.clear();
        mock.result = result;
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(stack.snapshot, Some(result));
        let ips: Vec<_> = stack.frames.iter().map(|frame| frame.ip).collect();
        assert_eq!(ips, IPS[..2], "{result}");
        assert!(stack.frames.iter().all(|frame| frame.seen_by() == SeenBy::Unwinder));
        assert!(matches!(stack.completeness(), Completeness::Partial(_)), "{result}");
        assert_eq!(mock.calls().last(), Some(&Done::Resumed));
        // With unwind data the stack is complete, whatever the runtime answers.
        mock.knows_managed = true;
        assert_eq!(mock.walk(Policy::Seeded).completeness(), Completeness::Whole, "{result}");
        // Without an unwinder there is nothing.
        assert!(mock.walk(Policy::Unseeded).frames.is_empty());
        assert!(mock.walk(Policy::RuntimeSuspended).frames.is_empty());
    }
}

/// A redirected thread pretends to have been called where it was interrupted: the runtime gives up,
/// and the unwinder's frames there cannot be trusted.
#[test]
fn a_frame_that_the_runtime_gives_up_at_is_not_believed() {
    let mut mock = Mock::new(&IPS);
    mock.knows_managed = true;
    mock.reports.clear();
    mock.result = HResult::FAIL;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.frames.len(), 1);
    assert_eq!(stack.completeness(), Completeness::Partial(Reason::Snapshot(HResult::FAIL)));
}

#[test]
fn a_thread_that_cannot_be_resumed_is_reported() {
    let mut mock = Mock::new(&IPS);
    assert!(!mock.walk(Policy::Seeded).is_stuck);
    mock.cannot_resume = true;
    assert!(mock.walk(Policy::Seeded).is_stuck);
    assert!(mock.walk(Policy::FramePointers).is_stuck);
}

#[test]
fn a_runtime_that_cannot_be_resumed_is_reported() {
    let mut mock = Mock::new(&IPS);
    assert!(!mock.walk(Policy::RuntimeSuspended).is_stuck);
    mock.resume_runtime = HResult::FAIL;
    let stack = mock.walk(Policy::RuntimeSuspended);
    assert!(stack.is_stuck);
    assert_eq!(stack.completeness(), Completeness::WithoutLeaf, "its frames are good");
}

#[test]
fn a_thread_is_resumed_when_its_stop_ends() {
    let mock = Mock::new(&IPS);
    drop(Stopped::suspend(&mock).unwrap());
    assert_eq!(mock.calls(), [Done::Suspended, Done::Resumed]);
    // The calling thread was not suspended.
    drop(Stopped::itself(&mock));
    assert_eq!(mock.calls().len(), 2);
}

/// Code without unwind data that has pushed a 0 is no thread's first function.
#[test]
fn a_zero_on_the_stack_is_no_root() {
    let mut mock = Mock::new(&[NATIVE_LEAF + 0x10, returns_to(MANAGED, 1)]);
    mock.poke(sp(0), 0);
    mock.reports.clear();
    mock.result = HResult::UNMANAGED_CONTEXT;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.completeness(), Completeness::Partial(Reason::NotACall { address: 0 }));
}

#[test]
fn a_walk_that_ends_early_keeps_its_frames() {
    let mut mock = Mock::new(&IPS);
    mock.reports.truncate(2);
    mock.result = HResult::FAIL;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.frames.len(), 3);
    assert_eq!(stack.completeness(), Completeness::Partial(Reason::Snapshot(HResult::FAIL)));
}

#[test]
fn success_without_callbacks_is_no_whole_stack() {
    let mut mock = Mock::new(&IPS);
    mock.reports.clear();
    for policy in [Policy::Seeded, Policy::Synchronous, Policy::Unseeded] {
        let stack = mock.walk(policy);
        assert!(matches!(stack.completeness(), Completeness::Partial(_)), "{policy:?}");
    }
}

#[test]
fn code_that_cannot_be_looked_up_ends_the_leaf() {
    let mut mock = Mock::new(&IPS);
    mock.lookup = Some(HResult::ASYNCHRONOUS_UNSAFE);
    mock.reports.clear();
    mock.result = HResult::UNSAFE;
    let stack = mock.walk_itself(&mut WalkBuffer::new(32));
    let reason = Reason::Lookup(HResult::ASYNCHRONOUS_UNSAFE);
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
    assert_eq!(stack.frames.len(), 1, "the thread is there, whatever its code is");
    assert_eq!(mock.calls().last(), Some(&Done::Snapshot { seed: None }));
}

#[test]
fn a_thread_that_cannot_be_suspended_is_left_alone() {
    let mut mock = Mock::new(&IPS);
    mock.cannot_suspend = true;
    for policy in [Policy::Seeded, Policy::FramePointers] {
        let stack = mock.walk(policy);
        assert_eq!(stack.completeness(), Completeness::Partial(Reason::NotStopped));
        assert!(stack.frames.is_empty() && mock.calls().is_empty());
    }
}

#[test]
fn registers_that_may_be_old_are_not_used() {
    let mut mock = Mock::new(&IPS);
    mock.context.flags |= ThreadContext::EXCEPTION_REPORTING | ThreadContext::EXCEPTION_ACTIVE;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.completeness(), Completeness::Partial(Reason::StaleContext));
    assert_eq!(mock.calls(), [Done::Suspended, Done::ContextRead, Done::Resumed]);
    // A system call is no reason.
    mock.context.flags =
        ThreadContext::FULL | ThreadContext::EXCEPTION_REPORTING | ThreadContext::SERVICE_ACTIVE;
    assert_eq!(mock.walk(Policy::Seeded).completeness(), Completeness::Reportable);
}

#[test]
fn a_runtime_that_cannot_be_suspended_is_not_asked() {
    let mut mock = Mock::new(&IPS);
    mock.suspend_runtime = HResult::SUSPENSION_IN_PROGRESS;
    let stack = mock.walk(Policy::RuntimeSuspended);
    let reason = Reason::Suspend(HResult::SUSPENSION_IN_PROGRESS);
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
    assert_eq!(mock.calls(), [Done::RuntimeSuspended]);
}

#[test]
fn a_seed_that_could_end_the_process_is_not_passed() {
    for (rsp, refused) in [
        (sp(0) - 0x2000, SeedRefused::OutsideStack { sp: sp(0) - 0x2000 }),
        (sp(1000), SeedRefused::OutsideStack { sp: sp(1000) }),
        (sp(0) + 4, SeedRefused::Unaligned { sp: sp(0) + 4 }),
        (0, SeedRefused::OutsideStack { sp: 0 }),
    ] {
        let mut mock = Mock::new(&[MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)]);
        mock.context.registers.set(Gpr::Rsp, rsp);
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(stack.completeness(), Completeness::Partial(Reason::Seed(refused)));
        assert_eq!(mock.calls(), [Done::Suspended, Done::ContextRead, Done::Resumed]);
    }
}

/// A wrong stack pointer on the stack (H-17, H-25): unwind data, where present, show that the word
/// in the return address's place is none.
#[test]
fn a_seed_that_has_no_caller_is_not_passed() {
    let ips =
        [MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(MANAGED, 2), returns_to(NATIVE, 3)];
    // The word that a method has below its return address; the 0 above the thread's first function;
    // the base.
    for rsp in [sp(0) + 8, sp(1) - 8, sp(3) + 8, sp(4) + 8, sp(5), sp(5) + 0x18, sp(6) - 8] {
        let mut mock = Mock::new(&ips);
        mock.context.registers.set(Gpr::Rsp, rsp);
        mock.knows_managed = true;
        let walks: [fn(&Mock) -> MixedStack; 2] =
            [|mock| mock.walk(Policy::Seeded), |mock| mock.walk_itself(&mut WalkBuffer::new(32))];
        for walk in walks {
            mock.done.borrow_mut().clear();
            let stack = walk(&mock);
            let refused = Reason::Seed(SeedRefused::NoCaller { sp: rsp });
            assert_eq!(stack.completeness(), Completeness::Partial(refused), "{rsp:#x}");
            assert_eq!((stack.frames.len(), stack.snapshot), (1, None), "{rsp:#x}");
        }
        // Without unwind data nothing shows it.
        mock.knows_managed = false;
        assert_ne!(mock.walk(Policy::Seeded).snapshot, None, "{rsp:#x}");
    }
    // A caller that is not on the stack.
    let mut mock = Mock::new(&ips);
    mock.knows_managed = true;
    mock.bounds.base = sp(1);
    let refused = Reason::Seed(SeedRefused::NoCaller { sp: sp(0) });
    assert_eq!(mock.walk(Policy::Seeded).completeness(), Completeness::Partial(refused));
}

/// A frame whose return address has been overwritten is no seed either, except if the GC did it:
/// that address leads to code (H-15).
#[test]
fn a_hijacked_return_address_makes_no_worse_seed() {
    let ips = [MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)];
    for (address, seeds) in [(NATIVE + 0x500, true), (UNKNOWN + 0x500, false), (0xDEAD_BEEF, false)]
    {
        let mut mock = Mock::new(&ips);
        mock.knows_managed = true;
        mock.poke(sp(1) - 8, address);
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(stack.snapshot.is_some(), seeds, "{address:#x}");
    }
}

/// After native code the runtime is asked all the same, but without a seed: if the thread has left
/// managed code it begins at a Frame.
#[test]
fn without_a_good_seed_the_runtime_may_know_a_frame() {
    let mut mock = Mock::new(&IPS);
    mock.knows_managed = true;
    mock.poke(sp(2) - 8, 0xDEAD_BEEF);
    let stack = mock.walk(Policy::Seeded);
    let calls = mock.calls();
    assert!(calls.contains(&Done::Snapshot { seed: None }), "{calls:?}");
    let seen: Vec<_> = stack.frames.iter().map(MixedFrame::seen_by).collect();
    assert_eq!(seen, [SeenBy::Unwinder, SeenBy::Both, SeenBy::Snapshot, SeenBy::Both]);
    let reason = Reason::NotACall { address: 0xDEAD_BEEF };
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}
