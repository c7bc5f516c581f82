//! Calls of native code that the runtime has recorded, after code that cannot be unwound.

use super::*;

/// A library's code without unwind data, called by its own JIT's code, called by a method.
const IPS: [u64; 5] = [
    UNKNOWN + 0x20,
    returns_to(UNKNOWN, 1),
    returns_to(MANAGED, 2),
    returns_to(MANAGED, 3),
    returns_to(NATIVE, 4),
];

/// The InlinedCallFrame, in the frame of the method.
const AT: u64 = sp(2) + 16;

/// Creates a thread whose Thread object has the list's head at `head`. `frames` are the Frames on the stack, at
/// their addresses.
fn thread(head: usize, first: u64, frames: &[(u64, &[u64])]) -> Mock {
    // The frames of the methods have room for the Frame.
    let mut mock = Mock::new(&[&IPS[..], &[returns_to(NATIVE, 5); 8]].concat());
    mock.knows_managed = true;
    mock.object[head..][..8].copy_from_slice(&first.to_le_bytes());
    for (at, words) in frames {
        for (at, word) in (*at..).step_by(8).zip(*words) {
            mock.poke(at, *word);
        }
    }
    mock
}

/// Where the frame of method 2 would be in a stack with larger frames.
const SITE: u64 = sp(2);

fn frames_of(stack: &MixedStack) -> Vec<(u64, u64)> {
    stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect()
}

#[test]
fn the_methods_that_have_called_unknown_code_are_found_by_the_runtimes_record() {
    const END: u64 = u64::MAX;
    // vtable, next, datum, [another word,] stack pointer, return address, rbp
    let to_8 = [7, END, 7, 0, SITE, IPS[2], AT];
    let from_9 = [7, END, 7, SITE, IPS[2], AT];
    for (head, frame) in [(0x10, &to_8[..]), (0x18, &from_9), (0xF8, &from_9)] {
        let mut mock = thread(head, AT, &[(AT, frame)]);
        // The method's caller: the Frame has overwritten its return address.
        mock.use_wide_frames();
        let stack = mock.walk(Policy::Signal);
        let reason = Reason::Unwind(UnwindError::UnknownCode { address: IPS[0] });
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
        assert_eq!(stack.gaps.len(), 1, "{:?}", stack.gaps);
        assert_eq!(frames_of(&stack)[1], (IPS[2], SITE), "{head:#x}");
        assert_eq!(stack.frames[1].source, Source::CallFrame);
        assert!(stack.frames.len() > 2, "{stack:?}");
    }
}

#[test]
fn words_that_are_no_active_call_lead_nowhere() {
    let frame = |sp, rip, rbp| [7, u64::MAX, 7, 0, sp, rip, rbp];
    for (head, first, frame) in [
        (0x10, AT, frame(SITE, 0, AT)),          // not active
        (0x10, AT, frame(SITE, IPS[2] + 1, AT)), // behind no call
        (0x10, AT, frame(SITE, IPS[1], AT)),     // in no method
        (0x10, AT, frame(SITE + 8, IPS[2], AT)), // not aligned
        (0x10, AT, frame(AT + 16, IPS[2], AT)),  // above the Frame
        (0x10, AT, frame(SITE, IPS[2], 0)),      // without a frame pointer
        (0x10, AT + 1, frame(SITE, IPS[2], AT)), // no Frame
        (0x10, 0, frame(SITE, IPS[2], AT)),
        (0x100, AT, frame(SITE, IPS[2], AT)), // too far
    ] {
        let mut mock = thread(head, first, &[(AT, &frame)]);
        mock.use_wide_frames();
        assert_eq!(mock.walk(Policy::Signal).frames.len(), 1, "{frame:x?}");
    }
}

/// Other Frames come first: of a helper, say.
#[test]
fn the_list_of_frames_is_followed_rootward() {
    let call = [7, u64::MAX, 7, SITE, IPS[2], AT];
    let below = sp(1);
    let mut mock = thread(0x10, below, &[(below, &[5, AT]), (AT, &call)]);
    mock.use_wide_frames();
    assert_eq!(frames_of(&mock.walk(Policy::Signal))[1], (IPS[2], SITE));
    // Leafward they cannot be linked.
    let mut mock = thread(0x10, AT, &[(AT, &[5, below]), (below, &call)]);
    mock.use_wide_frames();
    assert_eq!(mock.walk(Policy::Signal).frames.len(), 1);
}
