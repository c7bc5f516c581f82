//! Walks of threads with intact stacks.

use super::*;
use crate::mixed::mock::PADDING;

/// Returns the frames of native code called by managed code called by native code, twice.
fn sandwich() -> [u64; 7] {
    [
        NATIVE + 0x20,
        returns_to(NATIVE, 1),
        returns_to(MANAGED, 2),
        returns_to(NATIVE, 3),
        returns_to(MANAGED, 4),
        returns_to(MANAGED, 5),
        returns_to(NATIVE, 6),
    ]
}

fn ips(stack: &MixedStack) -> Vec<u64> {
    stack.frames.iter().map(|frame| frame.ip).collect()
}

fn seen(stack: &MixedStack) -> Vec<SeenBy> {
    stack.frames.iter().map(clr_walker::mixed::MixedFrame::seen_by).collect()
}

#[test]
fn a_stack_with_unwind_data_everywhere_is_whole() {
    use SeenBy::{Both, Unwinder};
    let mut mock = Mock::new(&sandwich());
    mock.knows_managed = true;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.completeness(), Completeness::Whole);
    assert_eq!(ips(&stack), sandwich());
    assert_eq!(seen(&stack), [Unwinder, Unwinder, Both, Both, Both, Both, Both]);
    assert_eq!(stack.frames[2].kind, FrameKind::Managed(function_at(sandwich()[2])));
    let native = FrameKind::Native { image: NATIVE, rva: 0x342 };
    assert_eq!(stack.frames[3].kind, native.or_heap());
    assert_eq!(stack.frames[0].source, Source::Context);
    assert_eq!(stack.frames[1].source, Source::Unwound(Trust::Body));
    let seed = Some((sandwich()[2], sp(2)));
    let calls = [Done::Suspended, Done::ContextRead, Done::Snapshot { seed }, Done::Resumed];
    assert_eq!(mock.calls(), calls);
}

/// The code of this mock is in heaps, which does not show its kind.
trait OrHeap {
    fn or_heap(self) -> FrameKind;
}

impl OrHeap for FrameKind {
    fn or_heap(self) -> FrameKind {
        Self::Hidden(None)
    }
}

#[test]
fn without_data_of_managed_code_the_runtime_names_the_next_frame() {
    use SeenBy::{Both, Snapshot, Unwinder};
    let mock = Mock::new(&sandwich());
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.completeness(), Completeness::Reportable);
    assert_eq!(ips(&stack), sandwich());
    assert_eq!(
        seen(&stack),
        [Unwinder, Unwinder, Both, Snapshot, Both, Snapshot, Snapshot],
        "each marker's run begins at the marker"
    );
}

/// A marker at the stack pointer of a native frame that was found before the runtime was asked.
#[test]
fn a_report_that_is_no_frame_of_the_way_comes_after_the_frame_at_its_stack_pointer() {
    let mut mock = Mock::new(&sandwich());
    let ip = returns_to(NATIVE, 9);
    mock.reports.insert(0, Report { managed: false, ip, sp: sp(1) });
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(ips(&stack)[..4], [sandwich()[0], sandwich()[1], ip, sandwich()[2]]);
}

/// The runtime counts the bytes after a method as part of it (contract §2.6).
#[test]
fn padding_is_no_method() {
    let mut mock = Mock::new(&[PADDING, returns_to(MANAGED, 1)]);
    mock.knows_managed = true;
    mock.context.registers.set(Gpr::Rsp, sp(1) - 8);
    let stack = mock.walk(Policy::Signal);
    assert_eq!(ips(&stack), [PADDING, returns_to(MANAGED, 1)]);
    assert_eq!(stack.frames[0].kind, FrameKind::Hidden(None));
}

#[test]
fn the_own_thread_is_not_suspended() {
    let mock = Mock::new(&sandwich());
    assert_eq!(mock.walk_itself(&mut WalkBuffer::new(32)).completeness(), Completeness::Reportable);
    let seed = Some((sandwich()[2], sp(2)));
    assert_eq!(mock.calls(), [Done::ContextRead, Done::Snapshot { seed }]);

    let mock = Mock::new(&sandwich());
    assert_eq!(mock.walk(Policy::Synchronous).completeness(), Completeness::Reportable);
    assert_eq!(mock.calls(), [Done::ContextRead, Done::Snapshot { seed: None }]);
}

#[test]
fn a_suspended_runtime_says_nothing_of_the_leaf() {
    let mock = Mock::new(&sandwich());
    let stack = mock.walk(Policy::RuntimeSuspended);
    assert_eq!(stack.completeness(), Completeness::WithoutLeaf);
    assert_eq!(stack.gaps, []);
    assert_eq!(ips(&stack), sandwich()[2..]);
    let calls = [Done::RuntimeSuspended, Done::Snapshot { seed: None }, Done::RuntimeResumed];
    assert_eq!(mock.calls(), calls);

    let native = Mock::new(&[NATIVE + 0x20]);
    let stack = native.walk(Policy::RuntimeSuspended);
    assert_eq!(stack.completeness(), Completeness::WithoutLeaf, "nothing but what runs on");
    assert_eq!(stack.frames, []);

    let mut refused = Mock::new(&sandwich());
    refused.reports.clear();
    refused.result = HResult::UNSAFE;
    let stack = refused.walk(Policy::RuntimeSuspended);
    let reason = Reason::Snapshot(HResult::UNSAFE);
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}

#[test]
fn the_naive_way_leaves_holes() {
    let mock = Mock::new(&sandwich());
    let stack = mock.walk(Policy::Unseeded);
    assert_eq!(ips(&stack), sandwich()[2..]);
    let at: Vec<_> = stack.gaps.iter().map(|gap| gap.at).collect();
    assert_eq!(at, [0, 2, 5], "the leaf, and after each marker");
    assert_eq!(mock.calls(), [Done::Snapshot { seed: None }]);
}

#[test]
fn frame_pointers_lead_nowhere_without_frame_pointers() {
    let stack = Mock::new(&sandwich()).walk(Policy::FramePointers);
    assert_eq!(ips(&stack), [sandwich()[0]]);
    assert_eq!(stack.completeness(), Completeness::Partial(Reason::FramePointers));
}

/// A function that has called with nothing on its stack but its frame pointer saves an rbp that is
/// its caller's rsp; and one that has just pushed rbp has it at rsp.
#[test]
fn a_frame_pointer_may_be_the_stack_pointer() {
    let frames = [NATIVE + 0x20, returns_to(NATIVE, 1), returns_to(NATIVE, 2)];
    let mut mock = Mock::new(&frames);
    let (leaf, caller) = (sp(0), sp(0) + 16);
    for (at, word) in [(leaf, caller), (leaf + 8, frames[1])] {
        mock.poke(at, word);
    }
    for (at, word) in [(caller, 0), (caller + 8, frames[2])] {
        mock.poke(at, word);
    }
    mock.context.registers.set(Gpr::Rbp, leaf);
    let stack = mock.walk(Policy::FramePointers);
    assert_eq!(ips(&stack), frames);
    let stack_pointers: Vec<_> = stack.frames.iter().map(|frame| frame.sp).collect();
    assert_eq!(stack_pointers, [leaf, caller, caller + 16]);
}

/// A Frame does not restore the nonvolatile registers of the method that it leads to, but a marker's
/// context has those of the method that native code was called from (contract §3.7).
#[test]
fn registers_behind_a_marker_are_stale_in_a_method_and_known_in_native_code() {
    let frames = [
        returns_to(MANAGED, 1),
        returns_to(NATIVE, 2),
        returns_to(NATIVE, 3),
        returns_to(MANAGED, 4),
        returns_to(MANAGED, 5),
    ];
    let marker = |n: u64| Report { managed: false, ip: frames[n as usize], sp: sp(n) };
    let method = |n: u64| Report { managed: true, ip: frames[n as usize], sp: sp(n) };
    // Returns true if the caller of frame `at` was found by its rbx.
    let unwinds = |reports: &[Report], at: usize| {
        let mut mock = Mock::new(&frames);
        mock.use_rbx_as_frame_pointer();
        mock.knows_managed = true;
        mock.reports = reports.to_vec();
        mock.reported_rbx = sp(at as u64);
        let stack = mock.walk(Policy::RuntimeSuspended);
        let found = stack.frames.iter().position(|frame| frame.ip == frames[at]);
        let next = stack.frames.get(found.unwrap() + 1);
        next.is_some_and(|next| {
            matches!(next.source, Source::Unwound(_)) && next.ip == frames[at + 1]
        })
    };
    assert!(unwinds(&[marker(1)], 1), "a marker");
    assert!(unwinds(&[marker(1), marker(2)], 2), "a marker after another one");
    assert!(!unwinds(&[marker(2), method(3)], 3), "the first method after a marker");
    assert!(unwinds(&[method(0), method(3)], 3), "a method after another one");
}

#[test]
fn a_stack_without_managed_code_needs_no_runtime() {
    let mock = Mock::new(&[NATIVE + 0x20, returns_to(NATIVE, 1)]);
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(stack.completeness(), Completeness::Whole);
    assert_eq!((stack.frames.len(), stack.snapshot), (2, None));
}

#[test]
fn the_first_call_of_a_thread_is_made_before_it_suspends_another() {
    let mock = Mock::new(&sandwich());
    let _ = mock.walk(Policy::Seeded);
    assert_eq!(mock.done.borrow()[..2], [Done::LookedUp(0), Done::Suspended]);
    let mock = Mock::new(&sandwich());
    assert_eq!(mock.prepare(), Preparation::Done);
    assert_eq!(mock.calls(), [Done::Snapshot { seed: None }]);
    let native = Mock::new(&[NATIVE + 0x20]);
    assert_eq!(native.prepare(), Preparation::Again, "no frame was reported");
    let mut unix = Mock::new(&[NATIVE + 0x20]);
    unix.result = HResult::NOT_IMPLEMENTED;
    assert_eq!(unix.prepare(), Preparation::NotNeeded, "no attempt would ever succeed");
}

/// Two markers in a row: hidden code without unwind data is between the native runs.
#[test]
fn hidden_code_behind_a_managed_frame_is_passed_over() {
    let ips_of = [
        MANAGED + 0x20,
        returns_to(MANAGED, 1),
        returns_to(NATIVE, 2),
        returns_to(UNKNOWN, 3),
        returns_to(NATIVE, 4),
    ];
    let mock = Mock::new(&ips_of);
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(ips(&stack), ips_of);
    let address = returns_to(UNKNOWN, 3);
    let unknown = Reason::Unwind(UnwindError::UnknownCode { address });
    assert_eq!(stack.gaps, [Gap { at: 4, reason: unknown }], "it may be called by anything");
    assert_eq!(stack.frames[3].kind, FrameKind::Unknown);
}

/// Code without unwind data may be managed: its frame is tried as a seed, and the runtime knows it.
#[test]
fn hidden_code_at_the_leaf_is_tried_as_a_seed() {
    let ips_of = [UNKNOWN + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)];
    let mut mock = Mock::new(&ips_of);
    let stack = mock.walk_itself(&mut WalkBuffer::new(32));
    assert_eq!(ips(&stack), ips_of);
    let unknown = Reason::Unwind(UnwindError::UnknownCode { address: ips_of[0] });
    assert_eq!(stack.gaps, [Gap { at: 1, reason: unknown }]);
    let seeded = Done::Snapshot { seed: Some((ips_of[0], sp(0))) };
    assert_eq!(mock.calls(), [Done::ContextRead, seeded.clone()]);
    // The code is not managed: only the runtime's frames without a seed are left.
    mock.done.borrow_mut().clear();
    mock.reports.clear();
    mock.result = HResult::UNMANAGED_CONTEXT;
    assert_eq!(ips(&mock.walk_itself(&mut WalkBuffer::new(32))), ips_of[..1]);
    let unseeded = Done::Snapshot { seed: None };
    assert_eq!(mock.calls(), [Done::ContextRead, seeded, unseeded.clone()]);
    // Nor need it be the leaf: native code may have been called by an IL stub.
    let ips_of = [NATIVE + 0x20, returns_to(UNKNOWN, 1), returns_to(MANAGED, 2)];
    let mock = Mock::new(&ips_of);
    assert_eq!(ips(&mock.walk_itself(&mut WalkBuffer::new(32))), ips_of);
    let seeded = Done::Snapshot { seed: Some((ips_of[1], sp(1))) };
    assert_eq!(mock.calls(), [Done::ContextRead, seeded]);
    // Nor does a walk without seeds begin to pass some.
    let mock = Mock::new(&[UNKNOWN + 0x20, returns_to(MANAGED, 1)]);
    mock.walk(Policy::Synchronous);
    assert_eq!(mock.calls(), [Done::ContextRead, unseeded]);
}

/// A return address that was overwritten: the runtime reports it as a marker, and continues
/// elsewhere.
#[test]
fn a_marker_that_follows_no_call_is_no_frame() {
    let frames = [MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)];
    let mut mock = Mock::new(&frames);
    let garbage = Report { managed: false, ip: 0xDEAD_BEEF, sp: sp(1) };
    mock.reports[1] = garbage;
    let stack = mock.walk_itself(&mut WalkBuffer::new(32));
    assert_eq!(ips(&stack), [frames[0], frames[2]]);
    let address = 0xDEAD_BEEF;
    assert_eq!(stack.gaps, [Gap { at: 1, reason: Reason::NotACall { address } }]);
    mock.reports.truncate(2);
    mock.result = HResult::FAIL;
    let stack = mock.walk_itself(&mut WalkBuffer::new(32));
    assert_eq!(ips(&stack), frames[..1]);
    assert_eq!(stack.gaps, [Gap { at: 1, reason: Reason::NotACall { address } }]);
}

#[test]
fn the_call_is_where_the_unwinder_says() {
    let mut mock = Mock::new(&sandwich());
    // The runtime takes the return address of another call in the same function (C-156).
    mock.reports[0].ip -= 0x10;
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(ips(&stack), sandwich());
    assert_eq!(stack.frames[2].seen_by(), SeenBy::Both);
    // A return address of another function is a disagreement.
    let other = returns_to(MANAGED, 9);
    mock.reports[0].ip = other;
    assert_eq!(mock.walk(Policy::Seeded).frames[2].ip, other);
}

#[test]
fn a_hijacked_return_address_is_no_frame() {
    let mut mock = Mock::new(&sandwich());
    mock.knows_managed = true;
    // No call returns to the begin of a function.
    mock.poke(sp(4) + 24, NATIVE + 0x700);
    mock.reports.truncate(3);
    mock.result = HResult::FAIL;
    for hides_code in [false, true] {
        mock.hides_code = hides_code;
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(ips(&stack), sandwich()[..5]);
        let reason = Reason::NotACall { address: NATIVE + 0x700 };
        assert_eq!(stack.gaps, [Gap { at: 5, reason }]);
    }
}

#[test]
fn code_need_not_be_readable() {
    let mut mock = Mock::new(&sandwich());
    (mock.knows_managed, mock.hides_code) = (true, true);
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(
        (ips(&stack).as_slice(), stack.completeness()),
        (&sandwich()[..], Completeness::Whole)
    );
}

/// The runtime's next frame is where the unwinder says, so nothing was passed by: an instruction after
/// a call at a function's end is a return address, though the function behind it, interrupted at its
/// beginning, would have a caller too.
#[test]
fn a_frame_at_the_next_reported_stack_pointer_is_not_passed_by() {
    let ends_with_call = NATIVE + 4 * 0x100;
    let frames = [MANAGED + 0x20, ends_with_call, returns_to(NATIVE, 5), returns_to(MANAGED, 6)];
    let mut mock = Mock::new(&frames);
    mock.end_with_call(3);
    // As left by an earlier call.
    mock.poke(sp(1), returns_to(NATIVE, 9));
    mock.poke(sp(2) + 24, frames[3]);
    mock.reports = [(true, 0), (false, 1), (false, 2)]
        .map(|(managed, n)| Report { managed, ip: frames[n as usize], sp: sp(n) })
        .into();
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(ips(&stack)[..3], frames[..3]);
    assert_eq!(stack.frames[1].position, Position::ReturnAddress);
}

#[test]
fn frames_that_the_unwinder_skips_are_reported() {
    let mut mock = Mock::new(&sandwich());
    // The frame of the marker is said to return to the second managed frame's caller.
    mock.knows_managed = true;
    let between = Report { managed: true, ip: returns_to(MANAGED, 8), sp: sp(4) - 8 };
    mock.reports.insert(2, between);
    let stack = mock.walk(Policy::Seeded);
    let reason = Reason::Disagreement { sp: sp(4) - 8 };
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
    assert_eq!(stack.frames.iter().filter(|frame| frame.sp == sp(4)).count(), 1);
}

#[test]
fn walks_are_cut_at_the_maximum_depth() {
    for size in 0..7 {
        let mock = Mock::new(&sandwich());
        let stack = mock.walk_in(Policy::Seeded, &mut WalkBuffer::new(size));
        assert!(matches!(stack.completeness(), Completeness::Partial(_)), "{size}: {stack:?}");
        assert!(sandwich().starts_with(&ips(&stack)), "{size}: {stack:?}");
        assert!(stack.frames.len() <= size, "{size}: {stack:?}");
        let last = stack.gaps.iter().filter(|gap| gap.at >= stack.frames.len());
        assert_eq!(last.count(), 1, "{size}: {stack:?}");
    }
    let mock = Mock::new(&sandwich());
    let stack = mock.walk_in(Policy::Seeded, &mut WalkBuffer::new(7));
    assert_eq!(stack.completeness(), Completeness::Reportable);
}

/// The runtime ended the walk because the callback wanted no more.
#[test]
fn a_callback_without_room_is_the_buffers_fault() {
    let frames = [MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)];
    let mock = Mock::new(&frames);
    let stack = mock.walk_itself(&mut WalkBuffer::new(1));
    assert_eq!((ips(&stack), stack.snapshot), (vec![frames[0]], Some(HResult::ABORTED)));
    assert_eq!(stack.gaps, [Gap { at: 1, reason: Reason::BufferFull }]);
    // A runtime that ends the walk by itself is another case.
    let mut mock = Mock::new(&frames);
    mock.reports.truncate(1);
    mock.result = HResult::ABORTED;
    let stack = mock.walk_itself(&mut WalkBuffer::new(1));
    assert_eq!(stack.gaps, [Gap { at: 1, reason: Reason::Snapshot(HResult::ABORTED) }]);
}

#[test]
fn frames_of_only_one_source_need_room_too() {
    let ips_of = [MANAGED + 0x20, returns_to(MANAGED, 1), returns_to(NATIVE, 2)];
    let mut mock = Mock::new(&ips_of);
    mock.reports.remove(0);
    for size in 0..3 {
        let stack = mock.walk_in(Policy::Seeded, &mut WalkBuffer::new(size));
        assert_eq!(ips(&stack), ips_of[..size], "{stack:?}");
        let last = stack.gaps.last().map(|gap| gap.at);
        assert_eq!(last, Some(size), "more is missing: {stack:?}");
    }
    let stack = mock.walk_in(Policy::Seeded, &mut WalkBuffer::new(3));
    assert_eq!(ips(&stack), ips_of);
}

/// The code at an address may have changed after the thread runs on (H-18).
#[test]
fn methods_that_are_unloaded_meanwhile_keep_their_ids() {
    for policy in Policy::ALL {
        for result in [HResult::OK, HResult::UNEXPECTED] {
            let mut mock = Mock::new(&sandwich());
            mock.knows_managed = true;
            mock.result = result;
            if result != HResult::OK {
                // The unwinder finds the others.
                mock.reports.truncate(2);
            }
            let stack = mock.walk(policy);
            mock.done.borrow_mut().clear();
            mock.unloads = true;
            assert_eq!(mock.walk(policy), stack, "{policy:?}, {result}");
            let done = mock.done.borrow();
            let resumed =
                done.iter().position(|done| matches!(done, Done::Resumed | Done::RuntimeResumed));
            let after = resumed.map_or(&[][..], |resumed| &done[resumed..]);
            assert!(!after.iter().any(|done| matches!(done, Done::LookedUp(_))), "{policy:?}");
        }
    }
}

/// One suspension of the runtime serves any number of threads.
#[test]
fn many_threads_are_walked_in_one_suspension() {
    let mock = Mock::new(&sandwich());
    let alone = mock.walk(Policy::RuntimeSuspended);
    mock.done.borrow_mut().clear();
    let map = mock.map();
    let walker = Walker::new(&mock, &map, Policy::RuntimeSuspended);
    // Leftovers of an earlier walk do not count.
    let mut buffers = [WalkBuffer::new(32), WalkBuffer::new(32)];
    for buffer in &mut buffers {
        mock.walk_in(Policy::Seeded, buffer);
    }
    mock.done.borrow_mut().clear();
    let suspension = RuntimeSuspension::new(&mock).unwrap();
    for buffer in &mut buffers {
        walker.take_suspended(&suspension, &mock, buffer).unwrap();
    }
    suspension.resume().unwrap();
    let shot = Done::Snapshot { seed: None };
    assert_eq!(
        mock.calls(),
        [Done::RuntimeSuspended, shot.clone(), shot, Done::RuntimeResumed],
        "nobody is suspended twice, and no registers are read"
    );
    for buffer in &buffers {
        let Ok(stack) = walker.stitch(buffer);
        assert_eq!(stack, alone);
    }
    // A suspension that is not resumed explicitly ends all the same.
    mock.done.borrow_mut().clear();
    drop(RuntimeSuspension::new(&mock).unwrap());
    assert_eq!(mock.calls(), [Done::RuntimeSuspended, Done::RuntimeResumed]);
}

/// A return address one past a method's end is the method's, and not the next one's that begins there:
/// neither by name, nor by unwind data.
#[test]
fn a_method_may_end_with_its_call() {
    for (managed, native) in [(true, false), (false, true), (true, true)] {
        let at = |code: u64, n: u64, ends: bool| {
            if ends { code + (n + 1) * 0x100 } else { returns_to(code, n) }
        };
        let caller = at(MANAGED, 1, managed);
        let ips = [NATIVE + 0x20, at(NATIVE, 2, native), caller, returns_to(NATIVE, 4)];
        let mut mock = Mock::new(&ips);
        mock.end_with_call(1);
        mock.end_with_call(2);
        mock.knows_managed = true;
        // Only the profiler itself knows this code.
        mock.reports.clear();
        mock.result = HResult::UNMANAGED_CONTEXT;
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(self::ips(&stack), ips);
        assert_eq!(stack.completeness(), Completeness::Whole);
        assert_eq!(stack.frames[2].kind, FrameKind::Managed(function_at(MANAGED + 0x100)));
        // The seed's registers are passed unchanged: rip is not for the profiler to correct.
        assert!(mock.calls().contains(&Done::Snapshot { seed: Some((caller, sp(2))) }));
        let looked_up = |ip| mock.done.borrow().contains(&Done::LookedUp(ip));
        assert!(looked_up(caller - 1) && !(managed && looked_up(caller)));
    }
}
