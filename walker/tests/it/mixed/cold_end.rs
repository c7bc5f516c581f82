//! A function of CoreCLR 3.1 on Unix whose rare parts come after its epilogue, with that one's rules.

use super::*;

/// The end of `UMThunkStub` (libcoreclr.so of CoreCLR 3.1.23, 0x24F316), from the instruction after its
/// call.
const END: &[u8] = &[
    0x41, 0xC7, 0x44, 0x24, 0x0C, 0, 0, 0, 0, // mov dword ptr [r12+12], 0
    0x48, 0x8D, 0x65, 0xF8, // lea rsp, [rbp-8]
    0x41, 0x5C, // pop r12
    0x5D, // pop rbp
    0xC3, // ret
    0xE8, 0x94, 0xB1, 0xEF, 0xFF, // call CreateThreadBlockThrow
    0xE9, 0x57, 0xFF, 0xFF, 0xFF, // jmp
    0xE8, 0x6A, 0x71, 0xF4, 0xFF, // call ReversePInvokeBadTransition
    0x4C, 0x89, 0xE7, // mov rdi, r12
    0x48, 0x8B, 0x75, 0xC0, // mov rsi, [rbp-64]
    0xE8, 0x8E, 0x71, 0xF4, 0xFF, // call UMThunkStubRareDisableWorker
    0xE9, 0x69, 0xFF, 0xFF, 0xFF, // jmp
];

/// The call frame information of that function.
const PROGRAM: &[u8] = &[
    0x41, 0x0E, 16, 0x86, 2, // 0x206: rsp+16, rbp at -16
    0x45, 0x0E, 24, 0x8C, 3, // 0x20B: rsp+24, r12 at -24
    0x48, 0x0E, 0xD0, 1, // 0x213: rsp+208
    0x48, 0x85, 9, 0x48, 0x84, 8, 0x48, 0x81, 7, 0x48, 0x82, 6, // rdi, rsi, rdx, rcx
    0x48, 0x88, 5, 0x48, 0x89, 4, 0x48, 0x8A, 10, // r8, r9; 0x24B: r10 at -80
    0x02, 0x2F, 0x0C, 6, 16, // 0x27A: rbp+16
    0x02, 0xA9, 0x0C, 7, 24, // 0x323, before `pop r12`: rsp+24
    0x42, 0x0E, 16, 0xCC, // 0x325, before `pop rbp`: rsp+16
    0x41, 0x0E, 8, 0xC6, // 0x326, before `ret`: rsp+8
];

/// RVA of its first instruction, and its size.
const STUB: (u32, u32) = (0x205, 0x164);
/// RVA of [`END`].
const AT: usize = 0x316;
/// The return address (RVA) of a thread that waits there for the end of a suspension.
const WAITS: u64 = 0x342;
/// A word that is no return address.
const NO_CALL: u64 = 0xA512;
/// Offset of rbp from the stack pointer: 208 bytes below the stub's caller.
const RBP: u64 = 192;

/// Walks a thread that the stub's `code` has called at [`WAITS`], with `rip` as the return address that
/// the stub has for its own caller, and `top` as the word on top of its frame.
fn walk_of_thread_that_waits(code: &[u8], rip: u64, top: u64, read: Read) -> MixedStack {
    let mut mock = Mock::new(&[NATIVE + 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    mock.patch(AT, code);
    let sp = (mock.context.registers.rsp() + 8).next_multiple_of(16);
    let leaf = sp - 8;
    mock.context.registers.set(Gpr::Rsp, leaf);
    let rbp = sp + RBP;
    mock.poke(leaf, NATIVE + WAITS);
    // What the rule of the `ret` takes for the return address.
    mock.poke(sp, top);
    mock.poke(rbp - 8, 0x1212);
    mock.poke(rbp, 0xB0B);
    mock.poke(rbp + 8, rip);
    mock.poke(rbp + 16, 0);
    mock.context.registers.set(Gpr::Rbp, rbp);
    let native =
        |range, program| Functions { range, augmentation: b"zR", instructions: USUAL, program };
    let functions = [native((0, 0x200), &[]), native(STUB, PROGRAM), native((0x400, 0xC00), &[])];
    walk_read(&mock, &functions, Policy::Signal, read)
}

#[test]
fn code_behind_an_epilogue_is_left_by_the_rules_before_it() {
    let caller = returns_to(NATIVE, 5);
    // The word may be an old return address.
    for (read, top) in [(AT_ONCE, NO_CALL), (LAZILY, NO_CALL), (LAZILY, returns_to(NATIVE, 6))] {
        let stack = walk_of_thread_that_waits(END, caller, top, read);
        let frames: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        let sp = stack.frames[0].sp + 8;
        assert_eq!(frames[1..], [(NATIVE + WAITS, sp), (caller, sp + 208)]);
        assert_eq!(stack.frames[2].source, Source::Unwound(Trust::Cfi));
        assert_eq!(stack.completeness(), Completeness::Whole);
    }
}

/// No caller is taken by other rules where the row does not begin with an epilogue, or where they name
/// no call.
#[test]
fn other_code_is_left_by_its_own_rules_alone() {
    let mut no_return = END.to_vec();
    no_return[16] = 0x90;
    for (code, rip) in [(&no_return[..], returns_to(NATIVE, 5)), (END, NATIVE + 0x501)] {
        let stack = walk_of_thread_that_waits(code, rip, NO_CALL, LAZILY);
        assert_eq!(stack.frames.len(), 2, "{rip:#x}");
        let reason = Reason::NotACall { address: NO_CALL };
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
    }
}
