//! Code of glibc with unusual call frame information.

use super::*;

/// The offsets of the outlined part's instructions: `lea rdi, lock`, `sub rsp, 128`, `call`, `add rsp, 128`,
/// `jmp back`, and its end.
const PART: [u32; 6] = [0x80, 0x87, 0x8E, 0x93, 0x9A, 0x9F];

/// The place in the function that the part jumps back to.
const BACK: u32 = 0x30;

/// Returns the call frame information of a function that waits for a lock in an outlined part, as
/// `lowlevellock.h` of glibc 2.17 for x86-64 describes it (`LLL_STUB_UNWIND_INFO_5`).
fn outlined() -> Frames {
    let mut frames = Frames::new();
    let function = frames.cie(&Cie::default());
    frames.fde(function, CODE, 0x80, &[Cfi::DefCfaOffset(24), Cfi::Offset(Gpr::Rbx, 2)]);
    // DW_CFA_def_cfa_sf: rsp - 128.
    let instructions = vec![Cfi::Raw(vec![0x12, 7, 16])];
    let part = frames.cie(&Cie { instructions, ..Cie::default() });
    let [lea, sub, call, add, jump, end] = PART;
    let rip_plus = |distance: u32| vec![0x80, (distance & 0x7F) as u8];
    let called_from_add = |here: u32| Cfi::ValExpression(16, rip_plus(add.wrapping_sub(here)));
    // From the end of the call to the end of `add`: breg16 n; const4s; minus; const4s; plus, where
    // the constants count from their own places in the section.
    let back = |first: u32| {
        let second = first + 6;
        let mut code = rip_plus(second - first);
        code.push(0x0D);
        code.extend((CODE + add).wrapping_sub(first).to_le_bytes());
        code.extend([0x1C, 0x0D]);
        code.extend((CODE + BACK).wrapping_sub(second).to_le_bytes());
        code.push(0x22);
        Cfi::ValExpression(16, code)
    };
    let instructions = |first| {
        [
            called_from_add(lea),
            Cfi::Advance((sub - lea) as u8),
            called_from_add(sub),
            Cfi::Advance((call - sub) as u8),
            Cfi::DefCfaOffset(0),
            called_from_add(call),
            Cfi::Advance((add - call - 1) as u8),
            Cfi::DefCfaOffset(128),
            back(first),
            Cfi::Advance((jump - add + 1) as u8),
            Cfi::Raw(vec![0x13, 16]),
            called_from_add(jump),
        ]
    };
    // Where the first constant will be.
    let encoded: Vec<u8> = instructions(0).iter().flat_map(Cfi::encode).collect();
    let constant = encoded.windows(2).position(|two| two == [0x80, 6]).unwrap() + 3;
    let program = EH_FRAME + frames.bytes.len() as u32 + 17;
    frames.fde(part, CODE + lea, end - lea, &instructions(program + constant as u32));
    frames
}

/// A thread stopped before each instruction of the part, with rsp as it is there.
fn stopped() -> impl Iterator<Item = Case> {
    let frames = outlined();
    let lowered = [false, false, true, true, false];
    PART.into_iter().zip(lowered).map(move |(offset, lowered)| {
        let rsp = slot(if lowered { -16 } else { 0 });
        Case::new(&frames, offset).register(Gpr::Rsp, rsp)
    })
}

#[test]
fn an_outlined_wait_for_a_lock_leads_back_into_its_function() {
    let back = format!("rip={:#x} rsp=0", at(BACK));
    for case in stopped() {
        assert_eq!(case.changes(), back, "{:#x}", case.registers.rip);
        let (_, step) = case.step().unwrap();
        assert_eq!((step.trust, step.caller), (Trust::Cfi, Position::ReturnAddress));
        assert!(step.found.contains(Gpr::Rsp) && step.kept.contains(Gpr::Rbx));
        assert!(step.needed.contains(Gpr::Rsp) && step.needed.gprs().count() == 1);
    }
    let call = Case::new(&outlined(), PART[3]).returned_to().register(Gpr::Rsp, slot(-16));
    assert_eq!(call.changes(), back);
}

#[test]
fn a_walk_goes_on_below_an_outlined_wait() {
    for case in stopped() {
        let map = case.map();
        let bytes: Vec<u8> = (-32..16).flat_map(|n| word(n).to_le_bytes()).collect();
        let memory = Segment::new(slot(-32), &bytes);
        let frames: Result<Vec<Frame>, _> =
            Unwinder::new(&map).walk(&case.registers, &memory).take(3).collect();
        let frames = frames.unwrap();
        let found = |frame: &Frame| (frame.registers.rip, frame.registers.rsp());
        assert_eq!(found(&frames[1]), (at(BACK), slot(0)));
        assert_eq!(found(&frames[2]), (word(2), slot(3)));
        assert_eq!(frames[2].registers.get(Gpr::Rbx), word(1));
    }
}

/// Only two steps of this form are one.
#[test]
fn other_steps_down_are_refused() {
    let to = |place: u32| Cfi::ValExpression(16, vec![0x80, place as u8]);
    let case = |second: &[Cfi]| {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(0), to(0x20)]);
        frames.fde(cie, CODE + 0x10, 0x20, second);
        Case::new(&frames, 0)
    };
    let no_progress = UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(0) };
    let good = [Cfi::DefCfaOffset(8), to(0x20)];
    assert_eq!(case(&good).changes(), format!("rip={:#x} rsp=1", at(0x40)));
    let refused: [&[Cfi]; 3] = [
        &[Cfi::DefCfaOffset(8)],
        &[Cfi::Raw(vec![0x13, 1]), to(0x20)],
        &[Cfi::ValOffset(Gpr::Rbx, 1)],
    ];
    for second in refused {
        assert_eq!(case(second).step(), Err(no_progress), "{second:?}");
    }
    let mut returned = case(&good).returned_to();
    returned.registers.rip += 1;
    assert_eq!(returned.step(), Err(no_progress));
}

/// Registers that either step finds are found, and those that both keep are kept. The second one needs nothing that the
/// first one finds.
#[test]
fn two_steps_find_what_both_find() {
    let to = Cfi::ValExpression(16, vec![0x80, 0x20]);
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let first = [Cfi::DefCfaOffset(0), to.clone(), Cfi::ValOffset(Gpr::Rbx, 1), Cfi::Undefined(12)];
    let copied = Cfi::Register(13, number(Gpr::Rbx));
    frames.fde(cie, CODE, 0x10, &first);
    frames.fde(cie, CODE + 0x10, 0x20, &[Cfi::DefCfa(Gpr::Rbp, 8), to, copied]);
    let case = Case::new(&frames, 0).register(Gpr::Rbp, slot(3));
    let (after, step) = case.step().unwrap();
    assert_eq!((after.rip, after.rsp(), after.get(Gpr::R13)), (at(0x40), slot(4), slot(-1)));
    assert_eq!(step.found, RegisterSet::of(&[Gpr::Rsp, Gpr::Rbx, Gpr::R13]));
    assert_eq!(step.kept, RegisterSet::of(&[Gpr::Rbp, Gpr::R14, Gpr::R15]));
    assert_eq!(step.needed, RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]));
}

/// `__clone` of glibc 2.36 (Debian 12): from `mov eax, 56` to the child's first instruction. Its
/// FDE ends before the system call.
const CLONE: [u8; 17] =
    [0xB8, 0x38, 0, 0, 0, 0x0F, 0x05, 0x48, 0x85, 0xC0, 0x7C, 0x13, 0x74, 0x01, 0xC3, 0x31, 0xED];

fn clone(code: &[u8], instruction: u32, rax: u64) -> Case {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 5, &[]);
    let child = frames.cie(&Cie { instructions: vec![Cfi::Undefined(16)], ..Cie::default() });
    frames.fde(child, CODE + code.len() as u32 - 2, 2, &[Cfi::DefCfa(Gpr::Rsp, 8)]);
    Case::new(&frames, instruction).code(0, code).register(Gpr::Rax, rax)
}

#[test]
fn clone_returns_in_the_parent_and_ends_the_stack_in_the_child() {
    // With near jumps, as a large clone3 would have them.
    let near =
        [&CLONE[..10], &[0x0F, 0x8C, 0x13, 0, 0, 0, 0x0F, 0x84, 1, 0, 0, 0, 0xC3, 0x31, 0xED]]
            .concat();
    let both = [(&CLONE[..], [0, 5, 7, 10, 12, 14, 15]), (&near, [0, 5, 7, 10, 16, 22, 23])];
    for (code, [before, syscall, test, jl, jz, ret, child]) in both {
        for parent in [before, syscall, ret] {
            for rax in [0, 56, 12345, (-11_i64).cast_unsigned()] {
                assert_eq!(clone(code, parent, rax).changes(), "rip=[0] rsp=1", "{parent}");
            }
        }
        for either in [test, jl, jz] {
            let (_, step) = clone(code, either, 12345).step().unwrap();
            assert_eq!(step.trust, Trust::KnownCode);
            assert!(step.needed.contains(Gpr::Rax) && step.kept.contains(Gpr::Rbx));
            assert_eq!(clone(code, either, 12345).changes(), "rip=[0] rsp=1");
            let end = UnwindError::EndOfStack { address: at(either) };
            assert_eq!(clone(code, either, 0).step(), Err(end), "{either}");
        }
        let end = UnwindError::EndOfStack { address: at(child) };
        assert_eq!(clone(code, child, 0).step(), Err(end));
        // A jump under another condition: js and jns.
        for (jump, other) in [(jl, 8), (jz, 9)] {
            let mut code = code.to_vec();
            let at_condition = jump as usize + usize::from(code.len() > CLONE.len());
            code[at_condition] = code[at_condition] & 0xF0 | other;
            let error = UnwindError::NoFrameInformation { address: at(syscall) };
            assert_eq!(clone(&code, syscall, 12345).step(), Err(error));
        }
    }
}

/// `frame_dummy` as gcc 4.8 adds it to images, for example to libclrjit.so of .NET 9.0.7.
const FRAME_DUMMY: [u8; 18] = [
    0x48, 0x8D, 0x3D, 0xF9, 0x1E, 6, 0, // lea rdi, [rip+list]
    0x48, 0x83, 0x3F, 0, // cmp qword ptr [rdi], 0
    0x75, 0x0B, // jne
    0xE9, 0x5E, 0xFF, 0xFF, 0xFF, // jmp
];

#[test]
fn a_constructor_without_call_frame_information_is_known_by_its_code() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE + 0x80, 5, &[]);
    let case = |code: &[u8], at: u32| Case::new(&frames, at).code(0, code);
    for at in [0, 7, 11, 13] {
        assert_eq!(case(&FRAME_DUMMY, at).changes(), "rip=[0] rsp=1", "{at}");
        let (_, step) = case(&FRAME_DUMMY, at).step().unwrap();
        assert_eq!(step.trust, Trust::KnownCode);
        let none = Err(UnwindError::NoFrameInformation { address: self::at(at) });
        if at > 0 {
            assert_eq!(case(&FRAME_DUMMY, at).returned_to().step(), none, "{at}");
        }
        for (changed, byte) in [(0, 0x4C), (2, 0x35), (7, 0x49), (10, 1), (11, 0x74), (13, 0xE8)] {
            let mut code = FRAME_DUMMY;
            code[changed] = byte;
            assert_eq!(case(&code, at).step(), none, "{at} {changed}");
        }
    }
    for at in [1, 6, 8, 12, 14] {
        let none = Err(UnwindError::NoFrameInformation { address: self::at(at) });
        assert_eq!(
            case(&FRAME_DUMMY, at).step(),
            none,
            "within an instruction, or after these: {at}"
        );
    }
}

/// `_init` as glibc adds it to images, for example to libSystem.Native.so of .NET 8.0.4.
const INIT: [u8; 16] = [
    0x48, 0x83, 0xEC, 8, // sub rsp, 8
    0x48, 0x8B, 5, 0xC1, 0x1D, 0, 0, // mov rax, [rip+slot]
    0x48, 0x85, 0xC0, // test rax, rax
    0x74, 5, // je
];

#[test]
fn the_start_of_an_image_is_known_by_its_code() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE + 0x80, 5, &[]);
    let case = |code: &[u8], at: u32| Case::new(&frames, at).code(0, code);
    let none = |at: u32| Err(UnwindError::NoFrameInformation { address: self::at(at) });
    for (at, changes) in
        [(0, "rip=[0] rsp=1"), (4, "rip=[1] rsp=2"), (11, "rip=[1] rsp=2"), (14, "rip=[1] rsp=2")]
    {
        assert_eq!(case(&INIT, at).changes(), changes, "{at}");
        for (changed, byte) in [(1, 0x81), (3, 16), (6, 0x0D), (13, 0xC9), (14, 0x75)] {
            let mut code = INIT;
            code[changed] = byte;
            assert_eq!(case(&code, at).step(), none(at), "{at} {changed}");
        }
    }
    assert_eq!(case(&INIT, 7).step(), none(7), "within an instruction");
}

#[test]
fn other_system_calls_are_not_taken_for_clone() {
    let none = |offset| Err(UnwindError::NoFrameInformation { address: at(offset) });
    // The middle of an instruction, and a return address.
    assert_eq!(clone(&CLONE, 6, 0).step(), none(6));
    assert_eq!(clone(&CLONE, 7, 5).returned_to().step(), none(7));
    for (changed, byte) in [(6, 0x0B), (9, 0xC1), (10, 0x7D), (12, 0x75), (14, 0x90)] {
        let mut code = CLONE;
        code[changed] = byte;
        // A `ret` itself decides, whatever comes before.
        for offset in [5, 7, 10, 12] {
            assert_eq!(clone(&code, offset, 0).step(), none(offset), "{changed} {offset}");
        }
    }
}
