//! Epilogues and tail jumps that call frame information leaves out: the row of the body goes on.

use super::*;

/// The rows of a body with a frame pointer, and of one without, whose return address would be 10 words up.
const BODY_RBP: [Cfi; 2] = [Cfi::DefCfa(Rbp, 16), Cfi::Offset(Rbp, 2)];
const BODY_RSP: [Cfi; 3] = [Cfi::DefCfaOffset(80), Cfi::Offset(Rbx, 3), Cfi::Offset(Rbp, 2)];

/// Returns a return address in the code: `call rax` is 0x300 bytes into it.
fn called() -> u64 {
    at(0x302)
}

/// Returns a case of a function whose row is that of its body, stopped at `code`, in which rbp is the caller's
/// and leads to the frame at slot 40. A second function begins at 0x200.
fn body(row: &[Cfi], code: &[u8]) -> Case {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x100, row);
    frames.fde(cie, CODE + 0x200, 0x100, &[Cfi::Advance(1), Cfi::DefCfaOffset(16)]);
    // An outlined part.
    frames.fde(cie, CODE + 0x400, 0x100, row);
    Case::new(&frames, 0x40)
        .register(Rbp, slot(40))
        .code(0x40, code)
        .code(0x300, &[0xFF, 0xD0])
        // Stale return addresses, where the rows point.
        .word(41, called())
        .word(9, called())
}

/// Returns `jmp rel32` from `offset` bytes after the interrupted instruction to `target`.
fn jmp(offset: u32, target: u32) -> Vec<u8> {
    let distance = target.wrapping_sub(0x40 + offset + 5);
    [&[0xE9], &distance.to_le_bytes()[..]].concat()
}

#[test]
fn an_undescribed_epilogue_is_executed() {
    for row in [&BODY_RBP[..], &BODY_RSP] {
        for (code, changes) in [
            (&[0xC3][..], "rip=[0] rsp=1"),
            (&[0xF3, 0xC3], "rip=[0] rsp=1"),
            (&[0xF2, 0xC3], "rip=[0] rsp=1"),
            // movzx eax, al; ret, as in libcoreclr.so of .NET Core 3.1
            (&[0x0F, 0xB6, 0xC0, 0xC3], "rip=[0] rsp=1"),
            // mov rax, rbx; pop rbx; pop rbp; ret
            (&[0x48, 0x89, 0xD8, 0x5B, 0x5D, 0xC3], "rbx=[0] rbp=[1] rip=[2] rsp=3"),
            // vzeroupper; add rsp, 24; pop r12; ret
            (&[0xC5, 0xF8, 0x77, 0x48, 0x83, 0xC4, 24, 0x41, 0x5C, 0xC3], "r12=[3] rip=[4] rsp=5"),
            // add rsp, 256; ret
            (&[0x48, 0x81, 0xC4, 0, 1, 0, 0, 0xC3], "rip=[32] rsp=33"),
            // leave; ret
            (&[0xC9, 0xC3], "rbp=[40] rip=[41] rsp=42"),
            // lea rsp, [rbp-16]; pop rbx; pop r14; pop rbp; ret
            (
                &[0x48, 0x8D, 0x65, 0xF0, 0x5B, 0x41, 0x5E, 0x5D, 0xC3],
                "rbx=[38] rbp=[40] r14=[39] rip=[41] rsp=42",
            ),
            // mov rbx, [rsp+8]; add rsp, 24; ret
            (&[0x48, 0x8B, 0x5C, 0x24, 8, 0x48, 0x83, 0xC4, 24, 0xC3], "rbx=[1] rip=[3] rsp=4"),
            // pop rbp; jmp +1; int3; ret
            (&[0x5D, 0xEB, 1, 0xCC, 0xC3], "rbp=[0] rip=[1] rsp=2"),
        ] {
            let case = body(row, code);
            let words = ["rip=[41]", "rip=[9]"];
            let is_stale = words.iter().any(|rip| changes.contains(rip));
            let changes = changes.replace("rip=[41]", &format!("rip={:#x}", called()));
            let (found, (_, step)) = (case.changes(), case.step().unwrap());
            // Where both name the same caller, the row's registers count.
            let by_row = is_stale && step.trust == Trust::Cfi && row.len() == 2;
            assert!(by_row || found == changes, "{code:02x?}: {found}");
            assert!(by_row || step.trust == Trust::EpilogueInstructions, "{code:02x?}");
            assert_eq!(step.caller, Position::ReturnAddress);
        }
    }
}

#[test]
fn behind_a_branch_and_before_a_tail_jump_the_word_has_to_follow_a_call() {
    let jump = |offset, target, before: &[u8]| [before, &jmp(offset, target)].concat();
    for (code, words) in [
        // pop rbx; test eax, eax; jne +8; ret
        (vec![0x5B, 0x85, 0xC0, 0x75, 8, 0xC3], 1),
        // pop rbx; pop rbp; jmp rax
        (vec![0x5B, 0x5D, 0xFF, 0xE0], 2),
        // pop rbp; jmp [rip+0x100]
        (vec![0x5D, 0xFF, 0x25, 0, 1, 0, 0], 1),
        // add rsp, 8; jmp [rax+0x18]
        (vec![0x48, 0x83, 0xC4, 8, 0xFF, 0x60, 0x18], 1),
        // pop rbx; jmp to the start of another function; the jump alone
        (jump(1, 0x200, &[0x5B]), 1),
        (jump(0, 0x200, &[]), 0),
        // pop rbx; jmp out of the image
        (jump(1, 0x4000_0000, &[0x5B]), 1),
    ] {
        for row in [&BODY_RBP[..], &BODY_RSP] {
            let case = body(row, &code).word(words, at(0x302));
            let (after, step) = case.step().unwrap();
            assert_eq!((after.rip, after.rsp()), (called(), slot(words + 1)), "{code:02x?}");
            assert_eq!(step.trust, Trust::EpilogueInstructions);
            // Without a call before the word, the row is as good.
            let (_, step) = body(row, &code).step().unwrap();
            assert_eq!(step.trust, Trust::Cfi, "{code:02x?}");
        }
    }
}

#[test]
fn code_that_stays_in_the_function_proves_nothing() {
    let jump = |offset, target, before: &[u8]| [before, &jmp(offset, target)].concat();
    for code in [
        // jmp rax, without a release before: a `switch`
        vec![0xFF, 0xE0],
        // mov eax, ebx; jmp [rax*8+table]
        vec![0x89, 0xD8, 0xFF, 0x24, 0xC5, 0, 0, 0, 0],
        // pop rbx; jmp to an outlined part, whose row is the body's
        jump(1, 0x400, &[0x5B]),
        // pop rbx; jmp to itself
        vec![0x5B, 0xEB, 0xFD],
        // pop rcx; jmp rcx: a return in another form
        vec![0x5B, 0x59, 0xFF, 0xE1],
        // call rax; ret
        vec![0xFF, 0xD0, 0xC3],
        // push rax; push rcx; ret: a jump
        vec![0x50, 0x51, 0xC3],
        // mov [rsp], r11; ret: a jump
        vec![0x4C, 0x89, 0x1C, 0x24, 0xC3],
        // mov rsp, rax; ret
        vec![0x48, 0x89, 0xC4, 0xC3],
        // xor ebx, ebx; ret: not what callees do
        vec![0x31, 0xDB, 0xC3],
        // and rsp, -16; ret
        vec![0x48, 0x83, 0xE4, 0xF0, 0xC3],
        // syscall; ret
        vec![0x0F, 0x05, 0xC3],
        vec![0x0F, 0x0B],
        vec![0x90; 40],
        // Cut off by the end of the function.
        [vec![0x90; 0xBF], vec![0xC3]].concat(),
    ] {
        for row in [&BODY_RBP[..], &BODY_RSP] {
            let case = (0..4).fold(body(row, &code), |case, n| case.word(n, called()));
            let (_, step) = case.step().unwrap();
            assert_eq!(step.trust, Trust::Cfi, "{code:02x?}");
        }
    }
}

#[test]
fn a_described_epilogue_is_the_rows() {
    // pop rbx; ret
    let row = [Cfi::DefCfaOffset(16), Cfi::Offset(Rbx, 2), Cfi::Offset(R15, 3)];
    let case = body(&row, &[0x5B, 0xC3]);
    assert_eq!(case.changes(), "rbx=[0] r15=[-1] rip=[1] rsp=2");
    assert_eq!(case.step().unwrap().1.trust, Trust::Cfi);
}

#[test]
fn code_without_a_row_is_left_by_its_return() {
    let mut case = body(&BODY_RBP, &[]).code(0x500, &[0x5B, 0x5D, 0xC3]);
    case.registers.rip = at(0x500);
    assert_eq!(case.changes(), "rbx=[0] rbp=[1] rip=[2] rsp=3");
}

/// A function that has taken its return address off the stack describes where it was.
#[test]
fn a_popped_return_address_is_found_below_the_stack_pointer() {
    // CFA = rsp, the return address right below.
    let row = [Cfi::DefCfaOffset(0)];
    let case = body(&row, &[0x90, 0x90, 0xFF, 0xE1]).word(-1, called());
    assert_eq!(case.changes(), format!("rip={:#x} rsp=0", called()));
    let at_call = case.returned_to();
    let error = UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(0) };
    assert_eq!(at_call.step().unwrap_err(), error, "nothing below rsp survives a call");
}
