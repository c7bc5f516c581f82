//! Planted faults in the unwind data of single functions, and code that must give no finding.

use clr_lint::{Blame, Cause, Finding, Linter, Report, Subject, explore_all};
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CfiSections, CodeMap, CodeRegion, FunctionTable, Gpr, Section, Sections};
use core::num::NonZeroUsize;
use std::sync::{Mutex, mpsc};

pub(super) const BASE: u64 = 0x1_8000_0000;

/// RVA of the first function's UNWIND_INFO.
const UNWIND_INFO: u32 = 0x800;

/// Judges functions of Windows: the code at RVA 0, and its RUNTIME_FUNCTIONs with UNWIND_INFO.
pub(super) fn windows(code: &[u8], functions: &[(u32, u32, &[u8])]) -> Report {
    windows_on(1, code, functions)
}

/// Judges functions of Windows on a number of threads.
fn windows_on(jobs: usize, code: &[u8], functions: &[(u32, u32, &[u8])]) -> Report {
    let mut bytes = vec![0xCC; 0x1000];
    bytes[..code.len()].copy_from_slice(code);
    let (mut table, mut at) = (Vec::new(), UNWIND_INFO as usize);
    for (begin, end, info) in functions {
        for field in [*begin, *end, at as u32] {
            table.extend_from_slice(&field.to_le_bytes());
        }
        bytes[at..at + info.len()].copy_from_slice(info);
        at += info.len().next_multiple_of(4);
    }
    let mut map = CodeMap::new();
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap();
    map.insert(region).unwrap();
    let (mut done, jobs) = (Vec::new(), NonZeroUsize::new(jobs).unwrap());
    let linter = Linter::new(&map, map.regions().next().unwrap());
    let report = linter.run(&(0..u32::MAX), jobs, &mut |count| done.push(count));
    assert!(done.iter().copied().eq(1..=functions.len()), "{done:?}");
    report
}

/// Judges one function of Windows.
pub(super) fn function(code: &[u8], info: &[u8]) -> Report {
    windows(code, &[(0, code.len() as u32, info)])
}

/// Judges one function of Unix with an FDE of these instructions, behind a CIE by which the CFA is rsp+8.
pub(super) fn unix(code: &[u8], instructions: &[u8]) -> Report {
    let mut bytes = vec![0xCC; 0x1000];
    bytes[..code.len()].copy_from_slice(code);
    let mut frames = Vec::new();
    let mut entry = |content: Vec<u8>| {
        let len = content.len().next_multiple_of(8) + 4;
        frames.extend_from_slice(&(len as u32).to_le_bytes());
        frames.extend_from_slice(&content);
        frames.resize(frames.len() + len - content.len(), 0);
    };
    // Version 1, no augmentation, factors 1 and -8, rip; CFA = rsp+8, rip at cfa-8.
    entry(vec![0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1]);
    let mut fde = vec![28, 0, 0, 0];
    fde.extend_from_slice(&0_u64.to_le_bytes());
    fde.extend_from_slice(&(code.len() as u64).to_le_bytes());
    fde.extend_from_slice(instructions);
    entry(fde);
    let sections =
        Sections::new(vec![Section { rva: 0, bytes: &bytes, executable: true }]).unwrap();
    let eh_frame = Section { rva: 0x2000, bytes: &frames, executable: false };
    let cfi = CfiSections { eh_frame: Some(eh_frame), ..CfiSections::default() };
    let table = CfiTable::new(&cfi, &sections);
    assert_eq!(table.functions().count(), 1);
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::default()).unwrap();
    let mut map = CodeMap::new();
    map.insert(region.with_cfi(table)).unwrap();
    Linter::new(&map, map.regions().next().unwrap()).run(
        &(0..u32::MAX),
        NonZeroUsize::MIN,
        &mut |_| (),
    )
}

/// Returns the only finding: what is wrong, its kind, the wrong part, and its instructions.
#[track_caller]
pub(super) fn only(report: &Report) -> (Blame, Cause, Subject, Vec<u32>) {
    let [Finding { blame, cause, subject, instructions, .. }] = report.findings.as_slice() else {
        panic!("{report:#?}");
    };
    (*blame, *cause, *subject, instructions.clone())
}

#[track_caller]
pub(super) fn none(report: &Report) {
    assert_eq!(report.findings, []);
    let totals = report.totals;
    assert!(totals.right > 0 && totals.wrong == 0, "{totals:?}");
}

/// push rbx; sub rsp, 20h; mov rbx, rcx; call rax; add rsp, 20h; pop rbx; ret
pub(super) const FRAME: [u8; 16] = [
    0x53, 0x48, 0x83, 0xEC, 0x20, 0x48, 0x89, 0xCB, 0xFF, 0xD0, 0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3,
];

/// The UNWIND_INFO of that function: +5 allocate 20h, +1 push rbx.
pub(super) const INFO: [u8; 8] = [1, 5, 2, 0, 5, 0x32, 1, 0x30];

/// The call frame information of that function: +1 CFA = rsp+10h, rbx at cfa-10h; +4 rsp+30h; +9
/// rsp+10h; +1 rsp+8.
const ROWS: [u8; 14] =
    [0x41, 0x0E, 0x10, 0x83, 2, 0x44, 0x0E, 0x30, 0x49, 0x0E, 0x10, 0x41, 0x0E, 8];

#[test]
fn sound_functions_give_no_finding() {
    let report = function(&FRAME, &INFO);
    none(&report);
    let totals = report.totals;
    assert_eq!((totals.instructions, totals.right, totals.executed_bytes), (7, 7, 16));
    none(&unix(&FRAME, &ROWS));
}

#[test]
fn a_wrong_size_of_the_allocation_is_found() {
    // 28h in place of 20h: the epilogue is executed, so it is right.
    let report = function(&FRAME, &[1, 5, 2, 0, 5, 0x42, 1, 0x30]);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGone, Subject::Caller, vec![5, 8]));
    assert_eq!(report.findings[0].calls, 1);
    assert_eq!(report.findings[0].found.expected.unwrap().to_string(), "[rsp+0x28]");
    assert_eq!(report.findings[0].found.got.to_string(), "the word at [rsp+0x30]");
    let report = function(&FRAME, &[1, 5, 2, 0, 5, 0x22, 1, 0x30]);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![5, 8]));
    assert_eq!(report.findings[0].found.got.to_string(), "the caller's rbx");
}

#[test]
fn a_code_that_is_late_is_found() {
    let report = function(&FRAME, &[1, 8, 2, 0, 8, 0x32, 1, 0x30]);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![5]));
}

#[test]
fn a_register_that_is_not_saved_is_found() {
    // Allocated 28h: the push counts as 8 bytes.
    let report = function(&FRAME, &[1, 5, 1, 0, 5, 0x42]);
    let rbx = Subject::Register(Gpr::Rbx);
    let [push, save] = report.findings.as_slice() else { panic!("{report:#?}") };
    assert_eq!((push.cause, push.instructions.as_slice()), (Cause::FrameGrown, &[1][..]));
    assert_eq!((save.blame, save.cause, save.subject), (Blame::Data, Cause::SavedElsewhere, rbx));
    assert_eq!((save.instructions.as_slice(), save.calls), (&[8][..], 1));
    assert_eq!(save.found.expected.unwrap().to_string(), "[rsp+0x20]");
    assert_eq!(save.found.got.to_string(), "rbx as it is here");
}

#[test]
fn rows_that_are_late_wrong_or_missing_are_found() {
    let late = [0x45, 0x0E, 0x10, 0x83, 2, 0x40, 0x0E, 0x30, 0x49, 0x0E, 0x10, 0x41, 0x0E, 8];
    let report = unix(&FRAME, &late);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![1]));
    let mut no_epilogue = ROWS.to_vec();
    no_epilogue.truncate(8);
    let report = unix(&FRAME, &no_epilogue);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGone, Subject::Caller, vec![14, 15]));
    // rbx at cfa-18h.
    let mut wrong_slot = ROWS;
    wrong_slot[4] = 3;
    let rbx = Subject::Register(Gpr::Rbx);
    let report = unix(&FRAME, &wrong_slot);
    assert_eq!(only(&report), (Blame::Data, Cause::SavedElsewhere, rbx, vec![1, 5, 8, 10, 14, 15]));
    // An unknown instruction.
    let report = unix(&FRAME, &[0x41, 0x3C]);
    let (blame, cause, ..) = only(&report);
    assert_eq!((blame, cause), (Blame::Data, Cause::Refused));
}

#[test]
fn popped_slots_do_not_count() {
    // sub rsp, 90h; mov [rsp], rbx; mov rbx, [rsp]; add rsp, 90h; ret. rbx at cfa-98h to the end.
    let code = [
        0x48, 0x81, 0xEC, 0x90, 0, 0, 0, 0x48, 0x89, 0x1C, 0x24, 0x48, 0x8B, 0x1C, 0x24, 0x48,
        0x81, 0xC4, 0x90, 0, 0, 0, 0xC3,
    ];
    let rows = [0x47, 0x0E, 0x98, 1, 0x44, 0x83, 19, 0x4B, 0x0E, 8];
    none(&unix(&code, &rows));
}

#[test]
fn epilogues_are_judged_by_their_form() {
    // vzeroupper before the return: the rules of Windows know no such epilogue.
    let mut vector = FRAME.to_vec();
    vector.splice(15.., [0xC5, 0xF8, 0x77, 0xC3]);
    let report = function(&vector, &INFO);
    let (frame_gone, caller) = (Cause::FrameGone, Subject::Caller);
    assert_eq!(only(&report), (Blame::WindowsRules, frame_gone, caller, vec![14, 15]));
    // A move between the pops: no unwinder takes this for an epilogue.
    let mut moved = FRAME.to_vec();
    moved.splice(14..14, [0x48, 0x89, 0xC8]);
    let report = function(&moved, &INFO);
    assert_eq!(only(&report), (Blame::Data, frame_gone, caller, vec![14]));
    // The long form of pop rbx: the bytes decide, Windows looks for the short one alone.
    let mut long = FRAME.to_vec();
    long.splice(14..15, [0x8F, 0xC3]);
    let report = function(&long, &INFO);
    assert_eq!(only(&report), (Blame::WindowsRules, frame_gone, caller, vec![14]));
}

/// An unwinder cannot know them: Windows documents neither.
#[test]
fn epilogues_of_other_forms_are_faults_of_the_data() {
    let (frame_gone, caller) = (Cause::FrameGone, Subject::Caller);
    // add rsp, 10h; pop rcx; add rsp, 8; pop rbx; ret: two releases, with a pop between them.
    let mut twice = FRAME.to_vec();
    twice.splice(10..14, [0x48, 0x83, 0xC4, 0x10, 0x59, 0x48, 0x83, 0xC4, 8]);
    assert_eq!(only(&function(&twice, &INFO)), (Blame::Data, frame_gone, caller, vec![14]));
    // pop rbx; mov eax, ecx; jmp rcx: elsewhere this is the jump of a switch.
    let mut far = FRAME.to_vec();
    far.splice(15.., [0x89, 0xC8, 0xFF, 0xE1]);
    assert_eq!(only(&function(&far, &INFO)), (Blame::Data, frame_gone, caller, vec![14, 15, 17]));
}

/// push rbp; mov rbp, rsp; sub rsp, 20h; call rax
const WITH_RBP: [u8; 10] = [0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xEC, 0x20, 0xFF, 0xD0];

/// The UNWIND_INFO of V8's built-in functions, whatever their code: +4 set rbp to rsp, +1 push rbp.
const INFO_WITH_RBP: [u8; 8] = [1, 4, 2, 5, 4, 3, 1, 0x50];

/// V8's handlers of bytecode restore rbp by a move, and then release all of the frame.
#[test]
fn an_epilogue_that_restores_the_frame_register_by_a_move_is_a_fault_of_the_data() {
    // …; mov rbp, [rbp]; add rsp, 28h; jmp rcx
    let mut code = WITH_RBP.to_vec();
    code.extend_from_slice(&[0x48, 0x8B, 0x6D, 0, 0x48, 0x83, 0xC4, 0x28, 0xFF, 0xE1]);
    let report = function(&code, &INFO_WITH_RBP);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGone, Subject::Caller, vec![14, 18]));
}

#[test]
fn a_jump_to_code_with_wrong_data_is_a_fault_of_the_data() {
    // …; mov rsp, rbp; pop rbp; lea rax, [r14+11h]; jmp 24h. 20h: int3 (4); xor eax, eax; ret
    let mut code = WITH_RBP.to_vec();
    code.extend_from_slice(&[0x48, 0x89, 0xEC, 0x5D, 0x49, 0x8D, 0x46, 0x11, 0xE9, 13, 0, 0, 0]);
    code.resize(0x24, 0xCC);
    code.extend_from_slice(&[0x31, 0xC0, 0xC3]);
    let functions = [(0, 23, &INFO_WITH_RBP[..]), (0x20, 0x27, &INFO_WITH_RBP)];
    let report = windows(&code, &functions);
    assert!(report.findings.iter().all(|it| it.blame == Blame::Data), "{report:#?}");
    let found = report.findings.iter().find(|it| it.function.start == 0).unwrap();
    assert_eq!((found.cause, found.instructions.as_slice()), (Cause::FrameGone, &[14, 18][..]));
    // …; mov rbp, [rbp]; add rsp, 28h; jmp 24h
    code.splice(10..23, [0x48, 0x8B, 0x6D, 0, 0x48, 0x83, 0xC4, 0x28, 0xE9, 13, 0, 0, 0]);
    let report = windows(&code, &functions);
    assert!(report.findings.iter().all(|it| it.blame == Blame::Data), "{report:#?}");
    let found = report.findings.iter().find(|it| it.function.start == 0).unwrap();
    assert_eq!((found.cause, found.instructions.as_slice()), (Cause::FrameGone, &[14, 18][..]));
}

#[test]
fn code_without_data_is_a_leaf_or_a_finding() {
    // call 10h; ret. At 10h: push rax; pop rax; ret
    let mut code = vec![0x48, 0x83, 0xEC, 0x28, 0xE8, 7, 0, 0, 0, 0x48, 0x83, 0xC4, 0x28, 0xC3];
    code.resize(0x10, 0xCC);
    code.extend_from_slice(&[0x50, 0x58, 0xC3]);
    let info = [1, 4, 1, 0, 4, 0x42];
    let report = windows(&code, &[(0, 14, &info)]);
    assert_eq!(only(&report), (Blame::Data, Cause::NoData, Subject::Caller, vec![0x11]));
    assert_eq!(report.findings[0].function, 0x10..0x12);
    assert_eq!(report.totals.entered_inside, 1);
    code.truncate(0x10);
    code.extend_from_slice(&[0x31, 0xC0, 0xC3]);
    none(&windows(&code, &[(0, 14, &info)]));
}

#[test]
fn code_without_data_may_be_entered_behind_its_first_instruction() {
    // sub rsp, 28h; call 13h; add rsp, 28h; ret. 10h: pop rax; ret; nop. 13h: push rax; jmp 10h
    let mut code = vec![0x48, 0x83, 0xEC, 0x28, 0xE8, 10, 0, 0, 0, 0x48, 0x83, 0xC4, 0x28, 0xC3];
    code.resize(0x10, 0xCC);
    code.extend_from_slice(&[0x58, 0xC3, 0x90, 0x50, 0xEB, 0xFA]);
    let report = windows(&code, &[(0, 14, &[1, 4, 1, 0, 4, 0x42])]);
    assert_eq!(only(&report), (Blame::Data, Cause::NoData, Subject::Caller, vec![0x10, 0x14]));
    assert_eq!(report.findings[0].function, 0x10..0x15);
}

/// The form that gcc for Windows makes of inline assembly which moves rsp.
#[test]
fn an_allocation_within_the_body_is_found() {
    // sub rsp, 18h; sub rsp, 8; fnstcw [rsp+4]; add rsp, 8; add rsp, 18h; ret
    let code = [
        0x48, 0x83, 0xEC, 0x18, 0x48, 0x83, 0xEC, 8, 0xD9, 0x7C, 0x24, 4, 0x48, 0x83, 0xC4, 8,
        0x48, 0x83, 0xC4, 0x18, 0xC3,
    ];
    let report = function(&code, &[1, 4, 1, 0, 4, 0x22]);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![8, 12]));
}

/// In images of Windows, operation 11 has no meaning. Intel's compiler writes it.
#[test]
fn an_operation_without_a_meaning_is_refused() {
    let report = function(&FRAME, &[1, 5, 2, 0, 5, 0x0B, 1, 0x30]);
    let (blame, cause, _, instructions) = only(&report);
    assert_eq!((blame, cause), (Blame::Unknown, Cause::Refused));
    assert!(instructions.contains(&5) && instructions.contains(&8), "{instructions:?}");
}

#[test]
fn version_3_is_judged() {
    // Prologue: +1 allocate 20h, +0 push rbx. Epilogue, 6 bytes before the end: +0, +4, return at +5.
    let info = [3, 5, 6, 0x22, 1, 0, 0x10, 0xFA, 0xFF, 0, 0, 5, 0, 4, 0x38, 0x1C];
    none(&function(&FRAME, &info));
    let mut larger = info;
    larger[14] = 0x48;
    let report = function(&FRAME, &larger);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGone, Subject::Caller, vec![5, 8, 10]));
}

#[test]
fn code_that_is_not_known_is_counted() {
    // A REX2 prefix of APX: push r16; then pop r16; ret.
    let report = function(&[0xD5, 0x10, 0x50, 0xD5, 0x10, 0x58, 0xC3], &[1, 0, 0, 0]);
    assert_eq!((report.totals.undecoded, report.totals.instructions), (1, 0));
}

#[test]
fn a_handler_without_codes_is_named() {
    let report = function(&FRAME, &[0x09, 0, 0, 0, 0, 0, 0, 0]);
    let (blame, cause, _, instructions) = only(&report);
    assert_eq!((blame, cause), (Blame::Data, Cause::HandlerAlone));
    // ntdll looks for no epilogue in a function without codes.
    assert_eq!(instructions, [1, 5, 8, 10, 14]);
}

#[test]
fn a_made_up_return_address_is_not_known_to_be_wrong() {
    // push rcx; sub rsp, 20h; mov rax, rcx; call rax; add rsp, 20h; pop rcx; ret
    let mut code = FRAME.to_vec();
    (code[0], code[7], code[14]) = (0x51, 0xC8, 0x59);
    let info = [1, 5, 1, 0, 5, 0x32];
    let report = function(&code, &info);
    let (blame, cause, _, instructions) = only(&report);
    assert_eq!((blame, cause), (Blame::Unknown, Cause::OwnReturnAddress));
    assert_eq!(instructions, [1, 5, 8]);
    // Called from another function, it is wrong.
    let mut called = code.clone();
    called.extend_from_slice(&[0x48, 0x83, 0xEC, 0x28, 0xE8, 0xE7, 0xFF, 0xFF, 0xFF]);
    called.extend_from_slice(&[0x48, 0x83, 0xC4, 0x28, 0xC3]);
    let report = windows(&called, &[(0, 16, &info), (16, 30, &[1, 4, 1, 0, 4, 0x42])]);
    let (blame, cause, ..) = only(&report);
    assert_eq!((blame, cause), (Blame::Data, Cause::FrameGrown));
}

#[test]
fn the_size_of_an_unknown_allocation_is_not_judged() {
    // push rbx; sub rsp, rcx; mov rbx, rsp; add rsp, rcx; pop rbx; ret
    let code = [0x53, 0x48, 0x29, 0xCC, 0x48, 0x89, 0xE3, 0x48, 0x01, 0xCC, 0x5B, 0xC3];
    let report = function(&code, &[1, 1, 1, 0, 1, 0x30]);
    assert_eq!(report.findings, []);
    assert!(report.totals.not_judged >= 3, "{:?}", report.totals);
    // push rbp; mov rbp, rsp; sub rsp, rcx; mov rsp, rbp; pop rbp; ret
    let code = [0x55, 0x48, 0x89, 0xE5, 0x48, 0x29, 0xCC, 0x48, 0x89, 0xEC, 0x5D, 0xC3];
    none(&unix(&code, &[0x41, 0x0E, 0x10, 0x86, 2, 0x43, 0x0D, 6, 0x47, 0x0C, 7, 8]));
}

#[test]
fn large_frames_are_allocated_by_loops_and_helpers() {
    // lea r11, [rsp-3000h]; 7: sub rsp, 1000h; cmp rsp, r11; jne 7; add rsp, 3000h; ret
    let code = [
        0x4C, 0x8D, 0x9C, 0x24, 0x00, 0xD0, 0xFF, 0xFF, 0x48, 0x81, 0xEC, 0, 0x10, 0, 0, 0x4C,
        0x39, 0xDC, 0x75, 0xF4, 0x48, 0x81, 0xC4, 0, 0x30, 0, 0, 0xC3,
    ];
    // CFA = r11+3008h, then rsp+3008h, then rsp+8.
    let rows = [0x48, 0x0C, 11, 0x88, 0x60, 0x4C, 0x0C, 7, 0x88, 0x60, 0x47, 0x0E, 8];
    none(&unix(&code, &rows));
    let mut one_page_less = rows;
    one_page_less[9] = 0x40;
    let report = unix(&code, &one_page_less);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![20]));
}

#[test]
fn code_behind_a_call_that_does_not_return_is_not_judged_by_it() {
    // push rbx; test ecx, ecx; je 8; pop rbx; ret; 8: sub rsp, 20h; call rax; then a function's data.
    let mut code =
        vec![0x53, 0x85, 0xC9, 0x74, 0x02, 0x5B, 0xC3, 0x48, 0x83, 0xEC, 0x20, 0xFF, 0xD0];
    // Jumped to by a table: the frame is the one of push rbx.
    code.extend_from_slice(&[0x31, 0xC0, 0x5B, 0xC3]);
    let rows = [
        0x41, 0x0E, 0x10, 0x83, 2, 0x45, 0x0E, 8, 0x41, 0x0E, 0x10, 0x44, 0x0E, 0x30, 0x42, 0x0E,
        0x10, 0x43, 0x0E, 8,
    ];
    let report = unix(&code, &rows);
    none(&report);
    assert_eq!(report.totals.unfollowed, 1);
}

#[test]
fn a_function_that_switches_stacks_is_not_judged() {
    // push rbx; mov [rdi], rsp; mov rsp, [rsi]; pop rbx; ret, without a row for the push.
    let code = [0x53, 0x48, 0x89, 0x27, 0x48, 0x8B, 0x26, 0x5B, 0xC3];
    let report = unix(&code, &[]);
    assert_eq!(report.findings, []);
    assert_eq!(report.totals.strange, 1);
}

#[test]
fn registers_that_the_function_does_not_restore_are_not_judged() {
    // mov ebx, 1; ret
    none(&unix(&[0xBB, 1, 0, 0, 0, 0xC3], &[]));
}

#[test]
fn the_report_is_the_same_on_any_number_of_threads() {
    // Each function calls code of its own without data, and every third has a wrong size.
    let mut code = Vec::new();
    for n in 0..60_u32 {
        code.extend_from_slice(&[0x53, 0x48, 0x83, 0xEC, 0x20, 0xE8]);
        code.extend_from_slice(&(16 * 60 + 4 * n - (16 * n + 10)).to_le_bytes());
        code.extend_from_slice(&[0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3]);
    }
    // push rax; pop rax; ret
    code.extend_from_slice(&[0x50, 0x58, 0xC3, 0xCC].repeat(60));
    let ranges = (0..60_u32).map(|n| {
        let info: &[u8] = if n % 3 == 0 { &[1, 5, 2, 0, 5, 0x42, 1, 0x30] } else { &INFO };
        (16 * n, 16 * n + 16, info)
    });
    let ranges: Vec<_> = ranges.collect();
    let one = windows(&code, &ranges);
    assert_eq!((one.totals.functions, one.totals.entered_inside), (120, 60));
    assert_eq!(one.findings.len(), 80);
    for jobs in [2, 3, 100] {
        assert_eq!(windows_on(jobs, &code, &ranges), one, "{jobs} threads");
    }
}

#[test]
fn results_are_taken_in_order_though_the_first_is_late() {
    let entries: Vec<u32> = (0..50).collect();
    let (last, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let explorer = || {
        let (last, wait) = (last.clone(), &wait);
        move |rva: u32| {
            match rva {
                0 => wait.lock().unwrap().recv().unwrap(),
                49 => last.send(()).unwrap(),
                _ => {}
            }
            rva
        }
    };
    let mut taken = Vec::new();
    explore_all(&entries, NonZeroUsize::new(2).unwrap(), explorer, |rva, explored| {
        assert_eq!(explored, rva);
        taken.push(rva);
    });
    assert_eq!(taken, entries);
}

#[test]
fn only_wanted_functions_are_judged() {
    let mut code = FRAME.to_vec();
    code.extend_from_slice(&FRAME);
    let wrong = [1, 5, 2, 0, 5, 0x42, 1, 0x30];
    let report = windows(&code, &[(0, 16, &wrong), (16, 32, &wrong)]);
    assert_eq!(report.findings.len(), 2);
    assert_eq!((report.totals.ranges, report.totals.functions), (2, 2));
}

/// Functions of real files, each with its source, and what a reading of its code finds.
const REAL: &str = include_str!("real.txt");

/// Returns the bytes that follow the line `name:`, in hexadecimal, two spaces before each line.
fn bytes(record: &str, name: &str) -> Option<Vec<u8>> {
    let (_, rest) = record.split_once(&format!("\n{name}:\n"))?;
    let lines = rest.lines().map_while(|line| line.strip_prefix("  "));
    let bytes = lines.flat_map(str::split_whitespace);
    Some(bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect())
}

#[test]
fn real_functions_are_judged_as_by_hand() {
    let mut judged = 0;
    for record in REAL.split("\n\n") {
        let title = record.lines().next().unwrap();
        let code = bytes(record, "code").unwrap();
        let report = match (bytes(record, "windows"), bytes(record, "unix")) {
            (Some(info), None) => function(&code, &info),
            (None, Some(instructions)) => unix(&code, &instructions),
            _ => panic!("{title}: no unwind data"),
        };
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| {
                let Finding { blame, cause, subject, instructions, calls, .. } = finding;
                let (first, last) = (instructions[0], instructions[instructions.len() - 1]);
                let (blame, cause, count) = (blame.name(), cause.name(), instructions.len());
                format!("finds: {blame} {cause}, {subject}: {count} at {first:#x}..{last:#x}, {calls} calls")
            })
            .collect();
        let expected: Vec<_> = record.lines().filter(|line| line.starts_with("finds: ")).collect();
        assert_eq!(found, expected, "{title} {:?}", report.totals);
        judged += 1;
    }
    assert_eq!(judged, 11);
}

/// The form of Intel's compiler, made by hand: its own files may not be copied.
#[test]
fn a_jump_through_a_register_behind_pops_is_an_ending() {
    // push rbx; sub rsp, 20h; mov rbx, rcx; call rax; add rsp, 20h; pop rbx; jmp rax
    let mut code = FRAME.to_vec();
    code.splice(15.., [0xFF, 0xE0]);
    let report = function(&code, &INFO);
    let expected = (Blame::WindowsRules, Cause::FrameGone, Subject::Caller, vec![14, 15]);
    assert_eq!(only(&report), expected);
}

/// Returns the code `cmp ecx, 2; ja end; mov eax, ecx; lea rdx, [table]; movsxd rax, [rdx+rax*4]; add rax,
/// rdx; jmp rax`, three cases, the last of which moves rsp unseen, `end: ret`, and their table.
fn switch() -> Vec<u8> {
    let mut code = vec![0x83, 0xF9, 2, 0x77, 0x1D, 0x89, 0xC8, 0x90];
    // lea rdx, [rip+1Fh]: the table at 2Eh.
    code.extend_from_slice(&[0x48, 0x8D, 0x15, 0x1F, 0, 0, 0]);
    code.extend_from_slice(&[0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xD0, 0xFF, 0xE0]);
    // 18h: nop; ret. 1Ah: nop; ret. 1Ch: push rax; pop rax; ret.
    code.extend_from_slice(&[0x90, 0xC3, 0x90, 0xC3, 0x50, 0x58, 0xC3]);
    code.resize(0x22, 0xCC);
    code.push(0xC3);
    code.resize(0x2E, 0xCC);
    for target in [0x18_i32, 0x1A, 0x1C] {
        code.extend_from_slice(&(target - 0x2E).to_le_bytes());
    }
    code
}

#[test]
fn the_cases_of_a_switch_are_executed() {
    let report = unix(&switch(), &[]);
    assert_eq!(only(&report), (Blame::Data, Cause::FrameGrown, Subject::Caller, vec![0x1D]));
    assert_eq!(report.totals.unknown_jumps, 0);
    // Without the comparison the number of cases is not known.
    let mut unbounded = switch();
    unbounded[..5].fill(0x90);
    let report = unix(&unbounded, &[]);
    assert_eq!(report.findings, []);
    assert_eq!(report.totals.functions, 1);
}
