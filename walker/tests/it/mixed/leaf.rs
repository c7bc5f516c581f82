//! Walks that begin in a stub of the runtime, which has neither unwind data nor a name.

use super::*;

/// The interrupted instruction.
const LEAF: u64 = UNKNOWN + 0x60;

/// The stack's frames: the method that has called the stub, another one, and native code.
const IPS: [u64; 4] = [LEAF, returns_to(MANAGED, 1), returns_to(MANAGED, 2), returns_to(NATIVE, 3)];

/// Creates a thread that was interrupted in this code, with `word` on top of its stack. The runtime refuses
/// seeds that are no methods.
fn thread(code: &[u8], word: u64) -> Mock {
    let mut mock = Mock::new(&IPS);
    mock.context.registers.set(Gpr::Rsp, sp(1) - 8);
    mock.poke(sp(1) - 8, word);
    mock.patch(0x60, code);
    mock
}

/// Returns `mov r10, target; jmp r10`.
fn jump(target: u64) -> Vec<u8> {
    [&[0x49, 0xBA][..], &target.to_le_bytes(), &[0x41, 0xFF, 0xE2]].concat()
}

/// Returns the seeds of all snapshots.
fn seeds(mock: &Mock) -> Vec<Option<(u64, u64)>> {
    let calls = mock.calls();
    let seed = |call: &Done| match call {
        Done::Snapshot { seed } => Some(*seed),
        _ => None,
    };
    calls.iter().filter_map(seed).collect()
}

fn ips(stack: &MixedStack) -> Vec<u64> {
    stack.frames.iter().map(|frame| frame.ip).collect()
}

/// The target may be known to the code map, or to the runtime alone, as code that the runtime has generated (coreclr#25676).
#[test]
fn a_stub_is_left_if_it_jumps_to_known_code() {
    for target in [NATIVE + 0x700, MANAGED + 0x700] {
        let mock = thread(&jump(target), IPS[1]);
        let stack = mock.walk(Policy::Seeded);
        assert_eq!((ips(&stack), stack.completeness()), (IPS.into(), Completeness::Reportable));
        assert_eq!(stack.frames[1].source, Source::Unwound(Trust::Stub), "{target:#x}");
        assert_eq!(seeds(&mock), [Some((IPS[1], sp(1)))], "the stub itself is no seed");
    }
}

#[test]
fn a_stub_that_jumps_elsewhere_or_was_not_called_is_tried_as_a_method() {
    let (known, unknown) = (jump(NATIVE + 0x700), jump(UNKNOWN + 0x700));
    for (code, word) in [(&unknown, IPS[1]), (&known, IPS[1] + 1), (&known, 7)] {
        let mock = thread(code, word);
        let stack = mock.walk(Policy::Seeded);
        assert_eq!(seeds(&mock), [Some((LEAF, sp(1) - 8))], "{word:#x}");
        assert!(stack.frames.iter().all(|it| it.source != Source::Unwound(Trust::Stub)));
    }
}

/// The runtime has refused the stub as a seed. If it knows a method that the word on top of the stack
/// returns to, that is the next seed.
#[test]
fn refused_code_is_left_if_a_method_has_called_it() {
    for (word, is_left) in
        [(IPS[1], true), (IPS[1] + 1, false), (returns_to(UNKNOWN, 1), false), (0x1234, false)]
    {
        let mut mock = thread(&[0x90; 16], word);
        mock.result = HResult::UNMANAGED_CONTEXT;
        mock.reports.clear();
        let stack = mock.walk(Policy::Seeded);
        let second = is_left.then_some((IPS[1], sp(1)));
        assert_eq!(seeds(&mock), [Some((LEAF, sp(1) - 8)), second], "{word:#x}");
        assert_eq!(stack.frames.len(), 1 + usize::from(is_left), "{word:#x}");
        if is_left {
            let method = stack.frames[1];
            assert_eq!(method.kind, FrameKind::Managed(function_at(IPS[1])));
            assert_eq!(method.source, Source::Unwound(Trust::StackTop));
        } else {
            let reason = Reason::Unwind(UnwindError::UnknownCode { address: LEAF });
            assert_eq!(stack.completeness(), Completeness::Partial(reason));
        }
    }
}

/// Native code has called the code that the runtime has refused: a trampoline of a library, say. The runtime
/// refuses that as well, but unwind data lead from it to a method.
#[test]
fn refused_code_is_left_to_a_method_further_rootward() {
    let native = |n| returns_to(NATIVE, n);
    let frames = [LEAF, native(1), native(2), returns_to(MANAGED, 3), native(4)];
    let mut mock = Mock::new(&frames);
    mock.context.registers.set(Gpr::Rsp, sp(1) - 8);
    mock.refuses_native_seeds = true;
    mock.reports.retain(|report| report.sp >= sp(3));
    let stack = mock.walk(Policy::Seeded);
    let seed = |n: u64| Some((frames[n as usize], sp(n)));
    assert_eq!(seeds(&mock), [Some((LEAF, sp(1) - 8)), seed(1), seed(3)]);
    let guessed = Completeness::Guessed(Trust::StackTop);
    assert_eq!((ips(&stack), stack.completeness()), (frames.into(), guessed));
    assert_eq!(stack.frames[1].source, Source::Unwound(Trust::StackTop));
}

/// Code that has called something has its return address elsewhere.
#[test]
fn only_interrupted_code_is_left_by_the_top_of_the_stack() {
    let frames = [NATIVE + 0x20, returns_to(UNKNOWN, 1), returns_to(MANAGED, 2)];
    let mut mock = Mock::new(&frames);
    mock.poke(sp(1), frames[2]);
    mock.patch(0x140 + 2, &jump(NATIVE + 0x700));
    mock.result = HResult::UNMANAGED_CONTEXT;
    mock.reports.clear();
    let stack = mock.walk(Policy::Seeded);
    assert_eq!(ips(&stack), frames[..2]);
    assert_eq!(seeds(&mock), [Some((frames[1], sp(1))), None]);
}
