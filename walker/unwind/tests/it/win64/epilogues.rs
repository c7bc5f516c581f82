//! Epilogues that are found by their code.

use super::*;

const ALL_RULES: [Rules; 4] = [Rules::Precise, Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll];

/// RVA of the code under test: in the body of FUNCTION.
const PC: u32 = 0x120;

const FUNCTION: [u32; 3] = [0x100, 0x140, 0x800];
/// Chained to FUNCTION.
const CHUNK: [u32; 3] = [0x140, 0x160, 0x840];
/// Between the functions.
const GAP: u32 = 0x170;
const OTHER: [u32; 3] = [0x180, 0x1C0, 0x880];
/// As gcc makes it: unchained, no prologue, all codes at offset 0.
const COLD: [u32; 3] = [0x1C0, 0x1E0, 0x8C0];

/// The step by the unwind codes.
const NO_EPILOGUE: &str = "Body rbx=[4] rbp=[5] rip=[6] rsp=7";

/// Returns a case in which FUNCTION pushes rbp and rbx and allocates 0x20 bytes.
fn program() -> Case {
    let codes = [Small(0x20), Push(Rbx), Push(Rbp)];
    let at = |offsets: [u8; 3]| [0, 1, 2].map(|i| (offsets[i], codes[i]));
    Case::new()
        .function(FUNCTION, &Info::new(8, &at([6, 2, 1])))
        .function(CHUNK, &Info::new(0, &[]).parent(FUNCTION))
        .function(OTHER, &Info::new(4, &[(4, Small(8)), (1, Push(Rsi))]))
        .function(COLD, &Info::new(0, &at([0; 3])))
}

/// Returns the step at PC with this code, which must not depend on the rules: only ntdll's
/// establisher frames are others.
fn at_pc(case: &Case, code: &[u8]) -> String {
    let case = case.clone().put(PC, code);
    let [precise, windows, unix, ntdll] = ALL_RULES.map(|rules| case.rules(rules).at(PC));
    let frameless = |step: &str| step.split(" frame=").next().unwrap().to_owned();
    assert_eq!((&precise, &precise), (&windows, &unix), "{code:02x?}");
    assert_eq!(frameless(&precise), frameless(&ntdll), "{code:02x?}");
    precise
}

/// C-139, C-140.
#[test]
fn an_epilogue_ends_in_a_return_or_a_tail_call() {
    let endings: &[&[u8]] = &[
        &[0xC3],                               // ret
        &[0xC2, 8, 0],                         // ret 8: the caller's matter
        &[0xF3, 0xC3],                         // rep ret
        &[0xF2, 0xC3],                         // bnd ret
        &[0xF2, 0xC2, 8, 0],                   // bnd ret 8
        &[0xF2, 0xF3, 0xC3],                   //
        &[0xFF, 0x25, 0, 1, 0, 0],             // jmp [rip+100h]
        &[0xF2, 0xFF, 0x25, 0, 1, 0, 0],       // bnd jmp [rip+100h]
        &[0x48, 0xFF, 0xE0],                   // rex.w jmp rax
        &[0x49, 0xFF, 0xE2],                   // rex.w jmp r10
        &[0xF2, 0x48, 0xFF, 0xE0],             // bnd rex.w jmp rax
        &[0x48, 0xFF, 0x20],                   // rex.w jmp [rax]
        &[0x48, 0xFF, 0x60, 8],                // rex.w jmp [rax+8]
        &[0x4F, 0xFF, 0xA4, 0xC8, 0, 1, 0, 0], // rex.w jmp [r8+r9*8+100h]
        &[0x48, 0xFF, 0x25, 0, 1, 0, 0],       // rex.w jmp [rip+100h]
    ];
    for ending in endings {
        let code = [&[0x5B, 0x5D], *ending].concat();
        let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
        assert_eq!(at_pc(&program(), &code), expected, "{ending:02x?}");
        // With nothing left to pop.
        let expected = "EpilogueInstructions rip=[0] rsp=1";
        assert_eq!(at_pc(&program(), ending), expected, "{ending:02x?}");
    }
}

#[test]
fn other_code_is_no_epilogue() {
    let endings: &[&[u8]] = &[
        &[0xCF],                            // iret
        &[0x48, 0xCF],                      // iretq
        &[0xCB],                            // retf
        &[0x66, 0xC3],                      // ret, 16 bits
        &[0xF3, 0xC2, 8, 0],                // rep ret 8
        &[0xF3, 0xF2, 0xC3],                // the prefixes the other way round
        &[0xF2, 0xF2, 0xC3],                //
        &[0xF2, 0x5E, 0xC3],                // repne pop rsi; ret
        &[0xF2, 0x48, 0xC3],                // repne rex.w ret
        &[0x47, 0xFF, 0x24, 0xC8],          // jmp [r8+r9*8]
        &[0xFF, 0x24, 0xC5, 0, 1, 0, 0],    // jmp [rax*8+100h]
        &[0x48, 0xFF, 0xD0],                // rex.w call rax
        &[0x48, 0xFF, 0x28],                // rex.w jmp far [rax]
        &[0x74, 0],                         // je
        &[0x0F, 0x84, 0, 0, 0, 0],          // je
        &[0x0F, 0x0B],                      // ud2
        &[0xE8, 0, 0, 0, 0],                // call
        &[0xC9, 0xC3],                      // leave; ret
        &[0x8F, 0xC6, 0xC3],                // pop rsi, which is not pushed, the long way
        &[0x90, 0xC3],                      // nop; ret, without the add
        &[0x48, 0x83, 0xC4, 8, 0xC3],       // add rsp, 8: too late
        &[0x48, 0x8D, 0x64, 0x24, 8, 0xC3], // lea rsp, [rsp+8]
        &[0x66, 0x5E, 0xC3],                // pop si
        &[0x48, 0x48, 0x5E, 0xC3],          // two REX
    ];
    for ending in endings {
        let code = [&[0x5B, 0x5D], *ending].concat();
        assert_eq!(at_pc(&program(), &code), NO_EPILOGUE, "{ending:02x?}");
    }
}

/// Clang and rustc put `vzeroupper` before the return of functions with AVX code; Windows does not
/// know it.
#[test]
fn vzeroupper_may_be_among_the_pops() {
    let code = [0x48, 0x83, 0xC4, 0x20, 0xC5, 0xF8, 0x77, 0x5B, 0x5D, 0xC5, 0xF8, 0x77, 0xC3];
    let at = |rules, done: usize| {
        let case = program().put(PC, &code).rules(rules);
        case.at(PC + done as u32)
    };
    assert_eq!(at(Rules::Precise, 0), "EpilogueInstructions rbx=[4] rbp=[5] rip=[6] rsp=7");
    assert_eq!(at(Rules::Precise, 4), "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3");
    assert_eq!(at(Rules::Precise, 9), "EpilogueInstructions rip=[0] rsp=1");
    assert_eq!(at(Rules::CoreClr, 4), NO_EPILOGUE);
}

/// Only if the code before the return undoes all that the codes describe: wine and CoreCLR agree on
/// artificial functions with such an instruction before a return that the frame does not reach.
#[test]
fn nops_may_be_among_the_pops() {
    let nops: &[&[u8]] = &[
        &[0x90],
        &[0x66, 0x90],
        &[0x0F, 0x1F, 0x00],
        &[0x0F, 0x1F, 0x40, 0],
        &[0x0F, 0x1F, 0x44, 0, 0],
        &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
        &[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
        &[0x90, 0x66, 0x90],
    ];
    let add: &[u8] = &[0x48, 0x83, 0xC4, 0x20];
    for nop in nops {
        let code = [add, nop, &[0x5B], nop, &[0x5D], nop, &[0xC3]].concat();
        let case = program().put(PC, &code);
        let at = |done: usize| case.at(PC + done as u32);
        let expected = "EpilogueInstructions rbx=[4] rbp=[5] rip=[6] rsp=7";
        assert_eq!(at(0), expected, "{code:02x?}");
        let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
        assert_eq!(at(4), expected, "{code:02x?}");
        assert_eq!(at(4 + nop.len()), expected, "{code:02x?}");
        let expected = "EpilogueInstructions rbp=[0] rip=[1] rsp=2";
        assert_eq!(at(5 + nop.len()), expected, "{code:02x?}");
        let expected = "EpilogueInstructions rip=[0] rsp=1";
        assert_eq!(at(6 + 2 * nop.len()), expected, "{code:02x?}");
        assert_eq!(case.coreclr().at(PC + 4), NO_EPILOGUE, "{code:02x?}");
        for (pops, end) in [
            (&[0x5B, 0x5D][..], 0xCC), // no return
            (&[0x5B, 0x5E], 0xC3),     // another register
            (&[0x5B], 0xC3),           // too few
            (&[0x5B, 0x5D, 0x5E], 0xC3),
            (&[0x5B, 0x41, 0x5D], 0xC3),
        ] {
            let code = [add, pops, nop, &[end]].concat();
            assert_eq!(program().put(PC, &code).at(PC + 4), NO_EPILOGUE, "{code:02x?}");
        }
    }
}

/// A signal handler must not read all the padding that a thread was stopped in.
#[test]
fn of_a_long_run_of_nops_only_a_part_is_read() {
    let add: &[u8] = &[0x48, 0x83, 0xC4, 0x20];
    for (count, is_read) in [(32, true), (33, false)] {
        let nops = vec![0x90; count];
        let in_front = [add, &nops, &[0x5B, 0x5D, 0xC3]].concat();
        let behind = [add, &[0x5B, 0x5D], &nops, &[0xC3]].concat();
        let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
        let expected = if is_read { expected } else { NO_EPILOGUE };
        assert_eq!(program().put(PC, &in_front).at(PC + 4), expected, "{count}");
        assert_eq!(program().put(PC, &behind).at(PC + 4), expected, "{count}");
        let expected = if is_read { "EpilogueInstructions rip=[0] rsp=1" } else { NO_EPILOGUE };
        assert_eq!(program().put(PC, &behind).at(PC + 6), expected, "{count}");
    }
}

#[test]
fn of_many_vzerouppers_only_some_are_read() {
    for (count, is_read) in [(32, true), (33, false)] {
        let code = [[0xC5, 0xF8, 0x77].repeat(count), vec![0xC3]].concat();
        let expected = if is_read { "EpilogueInstructions rip=[0] rsp=1" } else { NO_EPILOGUE };
        assert_eq!(program().put(PC, &code).at(PC), expected, "{count}");
    }
}

/// Before a return, nops count only behind the instructions that undo what the codes describe.
#[test]
fn nops_before_a_return_are_an_epilogue_behind_one_that_undoes_the_frame() {
    const RELEASE: [u8; 4] = [0x48, 0x83, 0xC4, 0x20];
    let pops = [(2, Push(Rbx)), (1, Push(Rbp))];
    let saves = [(9, Save(Rsi, 0x28)), (5, Small(0x20)), (1, Push(Rbx))];
    let frame = [(9, SetFrame), (5, Small(0x20)), (1, Push(Rbx))];
    let early = [(5, Push(Rbx)), (4, Small(0x20))];
    let none = Info::new(9, &[(9, Save(Rbx, 8))]);
    for (info, before, undoes) in [
        (Info::new(9, &pops), &[0x5B, 0x5D][..], true),
        // pop r11
        (Info::new(9, &pops), &[0x41, 0x5B, 0x5D], false),
        (Info::new(9, &saves), &[&RELEASE[..], &[0x5B]].concat(), true),
        // The frame register is not given back.
        (Info::new(9, &frame).frame(Rbp, 0), &[&RELEASE[..], &[0x5B]].concat(), false),
        // An allocation before the push would be released behind the pop.
        (Info::new(9, &early), &[&RELEASE[..], &[0x5B]].concat(), false),
        (none, &[], false),
    ] {
        let code = [before, &[0x90, 0xC3]].concat();
        let case = Case::new().function(FUNCTION, &info).put(PC, &code).with(Rbp, slot(20));
        let step = case.at(PC + before.len() as u32);
        assert_eq!(step.starts_with("EpilogueInstructions rip=[0]"), undoes, "{code:02x?} {step}");
    }
}

#[test]
fn pops_may_have_the_long_form() {
    for register in Gpr::ALL.into_iter().filter(|register| *register != Rsp) {
        let (low, high) = (register.number() & 7, register.number() >> 3);
        let name = register.name();
        let info = Info::new(8, &[(6, Small(0x20)), (2, Push(register)), (1, Push(Rsi))]);
        let prefix: &[u8] = if high == 0 { &[] } else { &[0x41] };
        let pop = [prefix, &[0x8F, 0xC0 | low]].concat();
        let code = [&[0x48, 0x83, 0xC4, 0x20], &pop[..], &[0x8F, 0xC6, 0xC3]].concat();
        let case = Case::new().function(FUNCTION, &info).put(PC, &code);
        let expected = match register {
            Rsi => "EpilogueInstructions rsi=[1] rip=[2] rsp=3".to_owned(),
            _ if register.number() < 6 || register == Rdi => {
                format!("EpilogueInstructions {name}=[0] rsi=[1] rip=[2] rsp=3")
            }
            _ => format!("EpilogueInstructions rsi=[1] {name}=[0] rip=[2] rsp=3"),
        };
        let expected = expected.replace("rdi=[0] rsi=[1]", "rsi=[1] rdi=[0]");
        assert_eq!(case.at(PC + 4), expected, "{code:02x?}");
        let behind = PC + 4 + pop.len() as u32;
        assert_eq!(case.at(behind), "EpilogueInstructions rsi=[0] rip=[1] rsp=2", "{code:02x?}");
        for rules in [Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll] {
            assert!(case.rules(rules).at(PC + 4).starts_with("Body "), "{code:02x?}");
        }
    }
    // Another register; no instruction, with another value of the reg field.
    for pop in [[0x8F, 0xC6], [0x8F, 0xCB]] {
        let code = [&[0x48, 0x83, 0xC4, 0x20], &pop[..], &[0x5D, 0xC3]].concat();
        assert_eq!(program().put(PC, &code).at(PC + 4), NO_EPILOGUE, "{code:02x?}");
    }
}

/// Intel's compiler leaves by indirect jumps without REX.W, which elsewhere are those of jump tables.
#[test]
fn an_indirect_jump_leaves_behind_the_pops_of_the_frame() {
    let precise =
        |code: &[u8], at: usize| program().put(PC, code).rules(Rules::Precise).at(PC + at as u32);
    let none = "EpilogueInstructions rip=[0] rsp=1";
    let jumps: &[&[u8]] = &[
        &[0xFF, 0xE0],
        &[0x41, 0xFF, 0xE2],
        &[0xF2, 0xFF, 0xE0],
        &[0xFF, 0x20],                         // jmp [rax]
        &[0xFF, 0x60, 8],                      // jmp [rax+8]
        &[0x43, 0xFF, 0xA4, 0xC8, 0, 1, 0, 0], // jmp [r8+r9*8+100h]
        &[0xC5, 0xF8, 0x77, 0xFF, 0xE0],       // vzeroupper; jmp rax
    ];
    for jump in jumps {
        let code = [&[0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D], *jump].concat();
        let expected = "EpilogueInstructions rbx=[4] rbp=[5] rip=[6] rsp=7";
        assert_eq!(precise(&code, 0), expected, "{jump:02x?}");
        assert_eq!(precise(&code, 5), "EpilogueInstructions rbp=[0] rip=[1] rsp=2", "{jump:02x?}");
        // At the jump itself, what is before it decides.
        assert_eq!(precise(&code, 6), none, "{jump:02x?}");
        for other in [
            [0x48, 0x83, 0xC4, 0x28, 0x5B, 0x5D], // another size
            [0x48, 0x83, 0xC4, 0x20, 0x5D, 0x5B], // another order
            [0x48, 0x83, 0xC0, 0x20, 0x5B, 0x5D], // add rax
            [0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5E], // another register
        ] {
            assert_eq!(precise(&[&other, *jump].concat(), 6), NO_EPILOGUE, "{other:02x?}");
        }
        assert_eq!(program().put(PC, &code).rules(Rules::CoreClr).at(PC), NO_EPILOGUE);
    }
    let long = [0x48, 0x81, 0xC4, 0x20, 0, 0, 0, 0x5B, 0x5D, 0xFF, 0xE0];
    assert_eq!(precise(&long, 9), none);
    // call rax, jmp far [rax]
    for other in [[0xFF, 0xD0], [0xFF, 0x28]] {
        let code = [&[0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D], &other[..]].concat();
        assert_eq!(precise(&code, 6), NO_EPILOGUE, "{other:02x?}");
    }
}

/// The codes of the parents are undone there, too.
#[test]
fn an_indirect_jump_leaves_a_chained_part() {
    let code = [0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D, 0xFF, 0xE0];
    let case = program().put(CHUNK[0] + 4, &code);
    assert_eq!(case.at(CHUNK[0] + 10), "EpilogueInstructions rip=[0] rsp=1");
    assert_eq!(case.coreclr().at(CHUNK[0] + 10), NO_EPILOGUE);
    // The chunk has pushed rsi, which is not popped.
    let info = Info::new(1, &[(1, Push(Rsi))]).parent(FUNCTION);
    let case = case.function([0x160, 0x170, 0x900], &info).put(0x164, &code);
    assert!(case.at(0x164 + 6).starts_with("Body "), "{}", case.at(0x164 + 6));
}

#[test]
fn an_indirect_jump_leaves_a_function_with_a_frame_register() {
    for register in [Rbx, Rbp, Rsi, R12, R13, R15] {
        let (low, high) = (register.number() & 7, register.number() >> 3);
        let pop = if high == 0 { vec![0x58 | low] } else { vec![0x41, 0x58 | low] };
        let lea = |disp: &[u8]| {
            let sib: &[u8] = if low == 4 { &[0x24] } else { &[] };
            let mode = if disp.len() == 1 { 0x60 } else { 0xA0 };
            [&[0x48 | high, 0x8D, mode | low][..], sib, disp].concat()
        };
        let leaves = |codes: &[(u8, Op)], offset: u8, release: &[u8]| {
            let code = [release, &[0x5F], &pop, &[0xFF, 0xE1]].concat();
            let info = Info::new(12, codes).frame(register, offset);
            let case =
                Case::new().function(FUNCTION, &info).put(PC, &code).with(register, slot(20));
            case.at(PC + code.len() as u32 - 2).starts_with("EpilogueInstructions rip=[0] rsp=1 ")
        };
        // Set to rsp+10h after an allocation of 20h bytes: the pushes are 10h above it.
        let after = [(10, SetFrame), (6, Small(0x20)), (2, Push(Rdi)), (1, Push(register))];
        assert!(leaves(&after, 0x10, &lea(&[0x10])), "{register:?}");
        assert!(leaves(&after, 0x10, &lea(&[0x10, 0, 0, 0])), "{register:?}");
        assert!(leaves(&after, 0x10, &[0x48, 0x83, 0xC4, 0x20]), "{register:?}");
        for other in [0x0F, 0x18, 0xF0] {
            assert!(!leaves(&after, 0x10, &lea(&[other])), "{register:?} {other:x}");
        }
        // Set to rsp+20h before it: the pushes are 20h below.
        let before = [(10, Small(0x18)), (6, SetFrame), (2, Push(Rdi)), (1, Push(register))];
        assert!(leaves(&before, 0x20, &lea(&[0xE0])), "{register:?}");
        assert!(leaves(&before, 0x20, &lea(&[0xE0, 0xFF, 0xFF, 0xFF])), "{register:?}");
        assert!(!leaves(&before, 0x20, &lea(&[0xF8])), "{register:?}");
        let to = [0x48 | high << 2, 0x89, 0xC4 | low << 3];
        let from = [0x48 | high, 0x8B, 0xE0 | low];
        for mov in [to, from] {
            assert!(leaves(&before, 0, &mov), "{register:?} {mov:02x?}");
            assert!(!leaves(&before, 0x10, &mov), "{register:?} {mov:02x?}");
        }
        // Set behind its own push, as gcc does: one more push is below it.
        let behind = [(10, Small(0x18)), (6, Push(Rdi)), (2, SetFrame), (1, Push(register))];
        assert!(leaves(&behind, 0, &lea(&[0xF8])), "{register:?}");
        assert!(!leaves(&behind, 0, &to), "{register:?}");
    }
}

#[test]
fn an_indirect_jump_leaves_behind_leave_and_a_pop() {
    let at_jump = |codes: &[(u8, Op)], offset: u8, code: &[u8]| {
        let info = Info::new(12, codes).frame(Rbp, offset);
        let case = Case::new().function(FUNCTION, &info).put(PC, code).with(Rbp, slot(20));
        case.at(PC + code.len() as u32 - 2)
    };
    let codes = [(10, Small(0x18)), (6, SetFrame), (2, Push(Rbp)), (1, Push(Rdi))];
    let leave = [0xC9, 0x5F, 0xFF, 0xE1];
    assert_eq!(at_jump(&codes, 0, &leave), "EpilogueInstructions rip=[0] rsp=1 frame=20");
    assert!(at_jump(&codes, 0x10, &leave).starts_with("Body "));
    // xor ecx, ecx ends in the same byte as leave.
    assert!(at_jump(&codes[..3], 0, &[0x31, 0xC9, 0xFF, 0xE1]).starts_with("Body "));
}

#[test]
fn codes_that_are_cut_off_do_not_matter_in_an_epilogue() {
    // 100 more slots than the section has.
    let codes = [(8, Small(8)), (6, Small(0x18)), (2, Push(Rbx)), (1, Push(Rbp))];
    let info = Info::new(8, &codes).frame(Rbp, 0);
    let case = Case::new().put(SIZE - 12, &info.bytes_with_count(100));
    let case = case.entry([0x100, 0x140, SIZE - 12]).put(PC, &[0x5B, 0x5D, 0xC3]);
    let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
    assert!(case.at(PC).starts_with(expected), "{}", case.at(PC));
    let unmapped = UnwindError::UnwindDataUnmapped { rva: SIZE };
    assert_eq!(case.step(PC + 3).map(|_| ()), Err(unmapped));
    // In the prologue, a code says whether the frame register is set, and thus where the
    // establisher frame is.
    let case = case.put(0x104, &[0x5B, 0x5D, 0xC3]);
    assert_eq!(case.step(0x104).map(|_| ()), Err(unmapped));
}

#[test]
fn pops_may_have_any_rex_prefix() {
    for register in Gpr::ALL.into_iter().filter(|register| *register != Rsp) {
        let (low, high) = (register.number() & 7, register.number() >> 3);
        let expected = format!("EpilogueInstructions {}=[0] rip=[1] rsp=2", register.name());
        if high == 0 {
            assert_eq!(at_pc(&program(), &[0x58 + low, 0xC3]), expected);
        }
        for rex in (0x40..0x50).filter(|rex| rex & 1 == high) {
            assert_eq!(at_pc(&program(), &[rex, 0x58 + low, 0xC3]), expected, "{rex:x}");
        }
    }
    let case = program().with_slot(0, slot(7));
    let expected = "EpilogueInstructions rip=[8] rsp=9";
    assert_eq!(at_pc(&case, &[0x5C, 0xC3]), expected, "rsp: 8 is added to the value that was read");
}

#[test]
fn an_epilogue_may_begin_with_add_rsp() {
    let cases: &[(&[u8], &str)] = &[
        (&[0x48, 0x83, 0xC4, 0x20, 0xC3], "EpilogueInstructions rip=[4] rsp=5"),
        (&[0x48, 0x83, 0xC4, 0x78, 0xC3], "EpilogueInstructions rip=[15] rsp=16"),
        // Displacements are signed.
        (&[0x48, 0x83, 0xC4, 0xF8, 0xC3], "EpilogueInstructions rip=[-1] rsp=0"),
        (&[0x48, 0x83, 0xC4, 0x80, 0xC3], "EpilogueInstructions rip=[-16] rsp=-15"),
        (&[0x48, 0x81, 0xC4, 0, 1, 0, 0, 0xC3], "EpilogueInstructions rip=[32] rsp=33"),
        (&[0x48, 0x81, 0xC4, 0xF8, 0xFF, 0xFF, 0xFF, 0xC3], "EpilogueInstructions rip=[-1] rsp=0"),
        (
            &[0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D, 0x41, 0x5F, 0xC3],
            "EpilogueInstructions rbx=[4] rbp=[5] r15=[6] rip=[7] rsp=8",
        ),
        // add esp; add r12; other REX prefixes; sub; add rsp, rax; a second add.
        (&[0x83, 0xC4, 0x20, 0xC3], NO_EPILOGUE),
        (&[0x49, 0x83, 0xC4, 0x20, 0xC3], NO_EPILOGUE),
        (&[0x49, 0x81, 0xC4, 0, 1, 0, 0, 0xC3], NO_EPILOGUE),
        (&[0x4A, 0x83, 0xC4, 0x20, 0xC3], NO_EPILOGUE),
        (&[0x4C, 0x83, 0xC4, 0x20, 0xC3], NO_EPILOGUE),
        (&[0x48, 0x83, 0xEC, 0xE0, 0xC3], NO_EPILOGUE),
        (&[0x48, 0x81, 0xEC, 0, 1, 0, 0, 0xC3], NO_EPILOGUE),
        (&[0x48, 0x03, 0xE0, 0xC3], NO_EPILOGUE),
        (&[0x48, 0x83, 0xC4, 8, 0x48, 0x83, 0xC4, 0x18, 0x5B, 0x5D, 0xC3], NO_EPILOGUE),
    ];
    for (code, expected) in cases {
        assert_eq!(at_pc(&program(), code), *expected, "{code:02x?}");
    }
}

/// Returns a case with a frame register that points to slot 20, 16 bytes above the frame base.
fn framed(register: Gpr) -> Case {
    let info = Info::new(6, &[(6, SetFrame), (2, Push(Rdi)), (1, Push(register))]);
    Case::new().function(FUNCTION, &info.frame(register, 0x10)).with(register, slot(20))
}

#[test]
fn an_epilogue_may_begin_with_lea_rsp_from_the_frame_register() {
    for register in [Rcx, Rbx, Rbp, Rsi, Rdi, R13, R15] {
        let rex = 0x48 | register.number() >> 3;
        let short = 0x60 | register.number() & 7;
        let long = 0xA0 | register.number() & 7;
        let cases: &[(&[u8], &str)] = &[
            (&[rex, 0x8D, short, 0x18, 0xC3], "EpilogueInstructions rip=[23] rsp=24 frame=18"),
            (&[rex, 0x8D, short, 0xF0, 0xC3], "EpilogueInstructions rip=[18] rsp=19 frame=18"),
            (&[rex, 0x8D, long, 0, 1, 0, 0, 0xC3], "EpilogueInstructions rip=[52] rsp=53 frame=18"),
            (
                &[rex, 0x8D, long, 0xF0, 0xFF, 0xFF, 0xFF, 0xC3],
                "EpilogueInstructions rip=[18] rsp=19 frame=18",
            ),
            (
                &[rex, 0x8D, short, 0xF0, 0x58, 0x59, 0xC3],
                "EpilogueInstructions rax=[18] rcx=[19] rip=[20] rsp=21 frame=18",
            ),
        ];
        for (code, expected) in cases {
            assert_eq!(at_pc(&framed(register), code), *expected, "{register:?} {code:02x?}");
        }
    }
}

/// C-142.
#[test]
fn other_lea_is_no_epilogue() {
    let codes: &[&[u8]] = &[
        &[0x48, 0x8D, 0x63, 0xF0, 0xC3],       // lea rsp, [rbx-10h]
        &[0x49, 0x8D, 0x65, 0xF0, 0xC3],       // lea rsp, [r13-10h]
        &[0x48, 0x8D, 0x6D, 0xF0, 0xC3],       // lea rbp, [rbp-10h]
        &[0x4C, 0x8D, 0x65, 0xF0, 0xC3],       // lea r12, [rbp-10h]
        &[0x8D, 0x65, 0xF0, 0xC3],             // lea esp, [rbp-10h]
        &[0x48, 0x8D, 0x25, 0, 1, 0, 0, 0xC3], // lea rsp, [rip+100h]
        &[0x48, 0x8D, 0xE5, 0xC3],             // no instruction
        &[0x48, 0x89, 0xEC, 0xC3],             // mov rsp, rbp
        &[0x48, 0x8D, 0x64, 0x24, 0xF0, 0xC3], // lea rsp, [rsp-10h]
        &[0x48, 0x8D, 0x60, 0xF0, 0xC3],       // lea rsp, [rax-10h]
    ];
    let no_epilogue = "Body rbp=[19] rdi=[18] rip=[20] rsp=21 frame=18";
    for code in codes {
        assert_eq!(at_pc(&framed(Rbp), code), no_epilogue, "{code:02x?}");
    }
    for register in (0..8).filter(|register| *register != Rsp.number()) {
        // lea of another register from rbp.
        let short = [0x48, 0x8D, 0x45 | register << 3, 0xF0, 0xC3];
        assert_eq!(at_pc(&framed(Rbp), &short), no_epilogue, "{short:02x?}");
        let long = [0x48, 0x8D, 0x85 | register << 3, 0xF0, 0xFF, 0xFF, 0xFF, 0xC3];
        assert_eq!(at_pc(&framed(Rbp), &long), no_epilogue, "{long:02x?}");
    }
    // lea rsp, [rbx]; pop rbx; ret: a form without displacement.
    let no_epilogue = "Body rbx=[19] rdi=[18] rip=[20] rsp=21 frame=18";
    assert_eq!(at_pc(&framed(Rbx), &[0x48, 0x8D, 0x23, 0xC3]), no_epilogue);
    assert_eq!(at_pc(&framed(Rbx), &[0x48, 0x8D, 0x23, 0x5B, 0xC3]), no_epilogue);
    // Register 0 is no frame register.
    let code = [0x48, 0x8D, 0x60, 0x20, 0xC3];
    assert_eq!(at_pc(&program().with(Rax, slot(9)), &code), NO_EPILOGUE);
}

#[test]
fn lea_from_r12_has_a_sib_byte() {
    // Windows takes it for the displacement, and the displacement for an instruction.
    let body = "Body rdi=[18] r12=[19] rip=[20] rsp=21 frame=18";
    let cases: &[(&[u8], &str)] = &[
        // lea rsp, [r12-8h]; pop r12; ret
        (
            &[0x49, 0x8D, 0x64, 0x24, 0xF8, 0x41, 0x5C, 0xC3],
            "EpilogueInstructions r12=[19] rip=[20] rsp=21 frame=18",
        ),
        (
            &[0x49, 0x8D, 0xA4, 0x24, 0x80, 0, 0, 0, 0xC3],
            "EpilogueInstructions rip=[36] rsp=37 frame=18",
        ),
        // lea rsp, [r12+r8-8]; lea rsp, [r12*1-8]; lea rsp, [rsp-8]
        (&[0x4B, 0x8D, 0x64, 0x04, 0xF8, 0xC3], body),
        (&[0x49, 0x8D, 0x64, 0x64, 0xF8, 0xC3], body),
        (&[0x48, 0x8D, 0x64, 0x24, 0xF8, 0xC3], body),
    ];
    for (code, expected) in cases {
        let case = framed(R12).put(PC, code);
        assert_eq!(case.at(PC), *expected, "{code:02x?}");
        assert_eq!(case.coreclr().at(PC), body, "{code:02x?}");
    }
}

#[test]
fn windows_is_misled_by_lea_from_r12_with_the_displacement_of_a_pop() {
    // lea rsp, [r12+58h]; ret is to Windows lea rsp, [r12+24h]; pop rax; ret.
    let code = [0x49, 0x8D, 0x64, 0x24, 0x58, 0xC3];
    let case = framed(R12).put(PC, &code).with(R12, slot(20) - 0x24);
    let misled = "EpilogueInstructions rax=[20] rip=[21] rsp=22 frame=13+4";
    assert_eq!(case.coreclr().at(PC), misled);
    let case = case.with(R12, slot(20));
    assert_eq!(case.at(PC), "EpilogueInstructions rip=[31] rsp=32 frame=18");
}

#[test]
fn code_decides_even_where_a_prologue_is() {
    let case = program().put(0x100, &[0x5B, 0x5D, 0xC3]).put(0x104, &[0xC3]);
    let steps = [
        (0x100, "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3"),
        (0x101, "EpilogueInstructions rbp=[0] rip=[1] rsp=2"),
        (0x103, "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3"),
        (0x104, "EpilogueInstructions rip=[0] rsp=1"),
    ];
    for (rva, expected) in steps {
        assert_eq!(case.at(rva), expected, "{rva:#x}");
        assert_eq!(case.coreclr().at(rva), expected, "{rva:#x}");
    }
}

#[test]
fn an_epilogue_may_run_beyond_the_functions_end() {
    let case = program().put(0x13F, &[0x5B, 0x5D, 0xC3]);
    let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
    assert_eq!(case.at(0x13F), expected);
    assert_eq!(case.coreclr().at(0x13F), expected);
}

/// Returns `jmp` from `pc` to `target`, in the short form if possible.
fn jmp8(pc: u32, target: u32) -> Option<Vec<u8>> {
    let distance = target.wrapping_sub(pc).wrapping_sub(2).cast_signed();
    Some(vec![0xEB, i8::try_from(distance).ok()?.cast_unsigned()])
}

/// Returns the long form.
fn jmp32(pc: u32, target: u32) -> Vec<u8> {
    let distance = target.wrapping_sub(pc).wrapping_sub(5);
    [&[0xE9][..], &distance.to_le_bytes()].concat()
}

/// C-141.
#[test]
fn a_jump_that_leaves_the_function_ends_an_epilogue() {
    let cases = [
        // From, to, whether it is an epilogue by precise rules and by those of Windows.
        (PC, FUNCTION[0], true, true),
        (PC, PC + 8, false, false),
        (PC, FUNCTION[0] + 1, false, false),
        (PC, FUNCTION[1] - 1, false, false),
        (PC, CHUNK[0], false, false),
        (PC, CHUNK[0] + 8, false, false),
        (PC, GAP, true, true),
        (PC, OTHER[0], true, true),
        (PC, OTHER[0] + 8, false, true),
        (PC, COLD[0], false, true),
        (PC, COLD[0] + 8, false, true),
        // From the chunk.
        (CHUNK[0] + 8, CHUNK[0], false, false),
        (CHUNK[0] + 8, FUNCTION[0], true, true),
        (CHUNK[0] + 8, FUNCTION[0] + 0x20, false, false),
        (CHUNK[0] + 8, OTHER[0], true, true),
        // From the cold part back into the function: the frame is still there.
        (COLD[0] + 8, FUNCTION[0] + 0x20, false, true),
        (COLD[0] + 8, FUNCTION[0], true, true),
        (COLD[0] + 8, OTHER[0], true, true),
    ];
    for (from, to, precise, windows) in cases {
        for prefix in [&[][..], &[0xF2]] {
            let at = from + prefix.len() as u32;
            let jumps = [jmp8(at, to), Some(jmp32(at, to))];
            assert!(jumps[0].is_some() || to.abs_diff(from) >= 0x80);
            for jump in jumps.into_iter().flatten() {
                let code = [prefix, &jump].concat();
                let case = program().put(from, &code);
                let leaves = "EpilogueInstructions rip=[0] rsp=1";
                for (case, leaving) in [(case.clone(), precise), (case.coreclr(), windows)] {
                    let expected = if leaving { leaves } else { NO_EPILOGUE };
                    assert_eq!(case.at(from), expected, "{from:#x} to {to:#x} {code:02x?}");
                }
            }
        }
    }
}

/// V8's built-in functions continue in the middle of others. A part that gcc has moved away jumps back with
/// its frame.
#[test]
fn a_jump_to_where_another_function_has_a_frame_leaves_behind_the_release_of_the_whole_frame() {
    let with_rbp = Info::new(4, &[(4, SetFrame), (1, Push(Rbp))]).frame(Rbp, 0);
    let with_rbp = program().function([0x200, 0x240, 0x900], &with_rbp).with(Rbp, slot(20));
    let before = |case: &Case, start: u32, code: &[u8]| {
        let at = start + code.len() as u32;
        case.clone().put(start, &[code, &jmp32(at, OTHER[0] + 8)].concat()).at(at)
    };
    for release in [[0x48, 0x8B, 0xE5], [0x48, 0x89, 0xEC]] {
        let step = before(&with_rbp, 0x210, &[&release[..], &[0x5D]].concat());
        assert!(step.starts_with("EpilogueInstructions rip=[0] rsp=1 "), "{step}");
    }
    // The last byte may be an operand, and a release of another size is one of a part.
    for other in [&[0x5D][..], &[0x89, 0x5D], &[0x8B, 0xE5, 0x5D], &[0x48, 0x8B, 0xE5]] {
        let step = before(&with_rbp, 0x210, other);
        assert!(step.starts_with("Body "), "{other:02x?} {step}");
    }
    let epilogue = [0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D];
    assert_eq!(before(&program(), PC, &epilogue), "EpilogueInstructions rip=[0] rsp=1");
    assert_eq!(before(&program(), PC, &epilogue[4..]), NO_EPILOGUE);
    assert_eq!(before(&program(), PC, &[0x48, 0x83, 0xC4, 0x28, 0x5B, 0x5D]), NO_EPILOGUE);
}

#[test]
fn epilog_codes_at_the_target_are_nothing_to_unwind() {
    // Their offsets, here 0, are not those of a prologue.
    let epilogs = [(4, Epilog(1)), (0x20, Epilog(0)), (0, Epilog(2)), (0, Epilog(0))];
    let info = Info::new(4, &[&epilogs[..], &[(4, Push(Rsi))]].concat()).version(2);
    let case = program().function([0x300, 0x600, 0x900], &info).put(PC, &jmp32(PC, 0x300));
    assert_eq!(case.at(PC), "EpilogueInstructions rip=[0] rsp=1");
    let case = case.put(PC, &jmp32(PC, 0x304));
    assert_eq!(case.at(PC), NO_EPILOGUE);
}

#[test]
fn a_jump_may_leave_the_image() {
    for target in [0xFFFF_FF00, SIZE, 0x4000_0000] {
        let code = jmp32(PC, target);
        assert_eq!(at_pc(&program(), &code), "EpilogueInstructions rip=[0] rsp=1", "{target:#x}");
    }
}

#[test]
fn a_jump_may_go_to_code_at_a_lower_address() {
    // Two regions with the same function at their begin.
    let below = 0x1_0000;
    let info = Info::new(5, &[(5, Small(0x20)), (1, Push(Rbx))]);
    let program = Case::new().also_at(BASE - below).function([0, 0x40, 0x800], &info);
    let jump =
        |target: u32| program.clone().put(0x20, &jmp32(0x20, target.wrapping_sub(below as u32)));
    let leaves = "EpilogueInstructions rip=[0] rsp=1";
    let no_epilogue = "Body rbx=[4] rip=[5] rsp=6";
    for (target, precise, windows) in [
        // The frame exists there. To Windows, functions with one begin are the same even if the
        // regions differ, and the target, relative to our region, is not that begin.
        (0x20, no_epilogue, no_epilogue),
        // No frame yet: a tail call. To Windows it is that same function again.
        (0, leaves, no_epilogue),
        // No function.
        (0x50, leaves, leaves),
    ] {
        let case = jump(target);
        assert_eq!(case.at(0x20), precise, "to {target:#x}");
        assert_eq!(case.coreclr().at(0x20), windows, "to {target:#x}");
        assert_eq!(case.rules(Rules::CoreClrUnix).at(0x20), windows, "to {target:#x}");
    }
}

#[test]
fn a_jump_to_broken_unwind_data_is_no_tail_call() {
    let target = 0x1E0;
    for rva in [SIZE, 0x4_0000] {
        let case = program().entry([target, 0x200, rva]).put(PC, &jmp32(PC, target));
        assert_eq!(case.at(PC), NO_EPILOGUE, "{rva:#x}");
        let error = UnwindError::UnwindDataUnmapped { rva };
        for rules in [Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll] {
            assert_eq!(case.rules(rules).step(PC), Err(error), "{rva:#x}");
        }
    }
    // A jump to unwind info of an unknown version is none either: Windows treats it as 2.
    let unknown = Info::new(0, &[]).version(4);
    let case = program().function([target, 0x200, 0x900], &unknown).put(PC, &jmp32(PC, target));
    assert_eq!(case.at(PC), NO_EPILOGUE);
    assert_eq!(case.coreclr().at(PC), "EpilogueInstructions rip=[0] rsp=1");
}

#[test]
fn precise_rules_follow_a_jump_to_a_shared_tail() {
    let tail = 0x130;
    let case = program()
        .put(PC, &[&[0x48, 0x83, 0xC4, 0x20], &jmp8(PC + 4, tail).unwrap()[..]].concat())
        .put(tail, &[0x5B, 0x5D, 0xC3]);
    let followed = "EpilogueInstructions rbx=[4] rbp=[5] rip=[6] rsp=7";
    assert_eq!(case.at(PC), followed);
    assert_eq!(case.coreclr().at(PC), NO_EPILOGUE);
    // The difference shows between the add and the jump.
    assert_eq!(case.at(PC + 4), "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3");
    assert_eq!(case.coreclr().at(PC + 4), NO_EPILOGUE);
    // A tail that is none; a tail in the prologue, for a jump from there.
    let case = case.put(tail, &[0x90]);
    assert_eq!(case.at(PC + 4), NO_EPILOGUE);
    let case = program().put(0x102, &jmp8(0x102, tail).unwrap()).put(tail, &[0x5B, 0x5D, 0xC3]);
    assert_eq!(case.at(0x102), "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3");
}

#[test]
fn a_few_jumps_are_followed_but_no_circle() {
    // pop; jmp to the next, 8 times; then ret.
    let hops = (0..8).fold(program(), |case, n| {
        let at = PC + 3 * n;
        case.put(at, &[&[0x59][..], &jmp8(at + 1, at + 3).unwrap()].concat())
    });
    let case = hops.put(PC + 24, &[0xC3]);
    assert_eq!(case.at(PC), "EpilogueInstructions rcx=[7] rip=[8] rsp=9");
    assert_eq!(case.coreclr().at(PC), NO_EPILOGUE);
    let circles: &[&[u8]] = &[&[0xEB, 0xFE], &[0x58, 0xEB, 0xFD], &[0xEB, 0, 0xEB, 0xFC]];
    for circle in circles {
        assert_eq!(at_pc(&program(), circle), NO_EPILOGUE, "{circle:02x?}");
    }
}

#[test]
fn precise_rules_know_rex_ret() {
    for rex in 0x40..0x50 {
        let case = program().put(PC, &[0x5B, 0x5D, rex, 0xC3]);
        let expected = "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=3";
        assert_eq!(case.at(PC), expected, "{rex:x}");
        assert_eq!(case.coreclr().at(PC), NO_EPILOGUE, "{rex:x}");
    }
    let case = program().put(0x102, &[0x48, 0xC3]);
    assert_eq!(case.at(0x102), "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3");
}

#[test]
fn code_that_runs_out_of_the_image_is_an_error_to_windows() {
    let endings: &[&[u8]] = &[
        &[0x5B],
        &[0x48],
        &[0x48, 0x83],
        &[0x48, 0x83, 0xC4],
        &[0x48, 0x81, 0xC4, 0, 1, 0],
        &[0x5B, 0x41],
        &[0xF2],
        &[0xF3],
        &[0xEB],
        &[0xE9, 0, 0, 0],
        &[0xFF],
        &[0x48, 0xFF],
    ];
    for ending in endings {
        let pc = 0x8E0;
        let end = pc + ending.len() as u32;
        let case = program().entry([0x880, 0x900, 0x800]).put(pc, ending).cut(end);
        let error = UnwindError::CodeUnmapped { rva: end };
        assert_eq!(case.coreclr().step(pc), Err(error), "{ending:02x?}");
        assert_eq!(case.at(pc), NO_EPILOGUE, "{ending:02x?}");
    }
}

#[test]
fn iretq_ends_a_function_that_was_entered_over_a_machine_frame() {
    let pops = [0x5B, 0x5D];
    let function = |frame| {
        let codes = [(2, Push(Rbx)), (1, Push(Rbp)), (0, frame)];
        Case::new().function(FUNCTION, &Info::new(2, &codes)).with_slot(5, slot(50))
    };
    let without_error = function(Op::MachineFrame).put(PC, &[&pops[..], &[0x48, 0xCF]].concat());
    assert_eq!(
        without_error.at(PC),
        "EpilogueInstructions rbx=[0] rbp=[1] rip=[2] rsp=50 interrupted"
    );
    // Windows undoes the whole prologue wherever it is.
    let popped = without_error.clone().with_slot(3, slot(40));
    assert_eq!(popped.at(PC + 2), "EpilogueInstructions rip=[0] rsp=40 interrupted");
    assert_eq!(popped.coreclr().at(PC + 2), "Body rbx=[0] rbp=[1] rip=[2] rsp=50 interrupted");

    let code = [&pops[..], &[0x48, 0x83, 0xC4, 8, 0x48, 0xCF]].concat();
    let with_error = function(Op::MachineFrameWithError).with_slot(6, slot(60)).put(PC, &code);
    assert_eq!(
        with_error.at(PC),
        "EpilogueInstructions rbx=[0] rbp=[1] rip=[3] rsp=60 interrupted"
    );
    let dropped = with_error.clone().with_slot(4, slot(40));
    assert_eq!(dropped.at(PC + 2), "EpilogueInstructions rip=[1] rsp=40 interrupted");
    let far = format!("EpilogueInstructions rip=[0] rsp={:#x} interrupted", word(3));
    assert_eq!(dropped.at(PC + 6), far);

    // A function that was called does not return so.
    assert_eq!(program().put(PC, &[0x48, 0xCF]).at(PC), NO_EPILOGUE);
}
