//! Threads that CoreCLR on Windows has sent to a stub of its own.

use super::*;

/// The stub in coreclr.dll of CoreCLR 3.1.23, 0x1465E0.
const STUB: [u8; 39] = [
    0x50, // push rax
    0x55, // push rbp
    0x48, 0x83, 0xEC, 0x28, // sub rsp, 28h
    0x48, 0x8B, 0xEC, // mov rbp, rsp
    0x48, 0x83, 0xE4, 0xF0, // and rsp, -16
    0xE8, 0x4E, 0x63, 0x0C, 0x00, // call GetCurrentSavedRedirectContext
    0x48, 0x89, 0x45, 0x20, // mov [rbp+20h], rax
    0x48, 0x8B, 0x80, 0xF8, 0, 0, 0, // mov rax, [rax+0F8h]
    0x48, 0x89, 0x45, 0x30, // mov [rbp+30h], rax
    0xE8, 0x0A, 0x48, 0x0C, 0x00, // call
    0xCC, // int3
];
/// Offset of the instruction after the store.
const STORED: u64 = 0x21;
/// An instruction of a method that follows no call.
const INTERRUPTED: u64 = MANAGED + 0x230;

/// Creates a thread with these frames; function 1 of the native code is `stub`.
fn thread(stub: &[u8], ips: &[u64]) -> Mock {
    let mut mock = Mock::new(ips);
    // For the first instruction, before the frame is made.
    mock.poke(sp(0), ips[1]);
    mock.knows_managed = true;
    mock.patch(0x100, stub);
    mock
}

fn walk(stub: &[u8], ips: &[u64]) -> MixedStack {
    thread(stub, ips).walk(Policy::Signal)
}

#[test]
fn the_stub_is_left_to_the_interrupted_instruction() {
    let ips = |leaf: &[u64]| {
        [leaf, &[INTERRUPTED, returns_to(MANAGED, 3), returns_to(NATIVE, 4)]].concat()
    };
    let waits = NATIVE + 0x100 + STORED + 5;
    for leaf in [&[NATIVE + 0x20, waits][..], &[NATIVE + 0x100 + STORED]] {
        let ips = ips(leaf);
        let stack = walk(&STUB, &ips);
        let found: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        let expected: Vec<_> = (0..).zip(&ips).map(|(n, ip)| (*ip, sp(n))).collect();
        assert_eq!(found, expected);
        assert_eq!(stack.frames[leaf.len()].position, Position::Interrupted);
        assert_eq!(stack.completeness(), Completeness::Whole);
    }
    // Other code is not left so.
    let mut other = STUB;
    other[0x18] = 0xF0;
    let stack = walk(&other, &ips(&[NATIVE + 0x20, waits]));
    let reason = Reason::NotACall { address: INTERRUPTED };
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}

/// As in .NET 8.0.4 for Windows.
#[test]
fn a_runtime_that_gives_up_on_the_interrupted_method_is_not_needed() {
    let waits = NATIVE + 0x100 + STORED + 5;
    let ips = [NATIVE + 0x20, waits, INTERRUPTED, returns_to(MANAGED, 3), returns_to(NATIVE, 4)];
    let mut mock = thread(&STUB, &ips);
    (mock.reports, mock.result) = (Vec::new(), HResult::FAIL);
    let stack = mock.walk(Policy::Seeded);
    let method = |frame: &MixedFrame| match frame.kind {
        FrameKind::Managed(function) => Some(function),
        _ => None,
    };
    let found: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, method(frame))).collect();
    assert_eq!(found, ips.map(|ip| (ip, is_managed(ip).then(|| function_at(ip)))));
    assert_eq!(stack.completeness(), Completeness::Whole);
}

/// The word on top of the stack is a return address, but not the stub's.
#[test]
fn a_thread_that_has_just_entered_the_stub_has_no_known_caller() {
    let address = returns_to(MANAGED, 3);
    for at in [0x00, 0x04, 0x06, 0x0D, 0x12, 0x1D] {
        let stack = walk(&STUB, &[NATIVE + 0x100 + at, address, returns_to(NATIVE, 4)]);
        assert_eq!(stack.frames.len(), 1, "{at:#x}");
        let reason = Reason::NotACall { address };
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
    }
}
