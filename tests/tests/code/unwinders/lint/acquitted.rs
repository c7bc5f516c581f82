//! Right data that was accused once, each beside wrong data in the same code, which is accused still.

use super::planted::{BASE, function, none, only, unix as judge_unix, windows};
use super::tables::{judge, layout, unix};
use clr_lint::{Blame, Cause, Language, Report, Subject};
use clr_unwind::compact::{CompactTable, Encoding, Entry};
use clr_unwind::{CfiSections, FunctionTable, Gpr};

/// push rbp; sub rsp, 40h; lea rbp, [rsp+40h]; mov rdx, rcx; `count` times: lea rax, [rdx+15]; cmp rax, rdx;
/// ja +10; mov rax, 0FFFFFFFFFFFFFF0h; and rax, -16; sub rsp, rax. Then lea rsp, [rbp]; pop rbp; ret.
fn allocas(count: usize) -> Vec<u8> {
    let mut code =
        vec![0x55, 0x48, 0x83, 0xEC, 0x40, 0x48, 0x8D, 0x6C, 0x24, 0x40, 0x48, 0x89, 0xCA];
    for _ in 0..count {
        code.extend([0x48, 0x8D, 0x42, 0x0F, 0x48, 0x39, 0xD0, 0x77, 0x0A, 0x48, 0xB8, 0xF0]);
        code.extend([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x48, 0x83, 0xE0, 0xF0]);
        code.extend([0x48, 0x29, 0xC4]);
    }
    code.extend([0x48, 0x8D, 0x65, 0, 0x5D, 0xC3]);
    code
}

/// rbp = rsp + 40h; allocate 40h; push rbp.
const ALLOCA_INFO: [u8; 12] = [1, 10, 3, 0x45, 10, 3, 5, 0x72, 1, 0x50, 0, 0];

/// MSVC saturates the size of an allocation that overflows. Twelve of them in a row wrapped rsp above the
/// frame, on a path that no execution takes.
#[test]
fn sizes_that_saturate_do_not_wrap_the_stack() {
    let code = allocas(12);
    let report = function(&code, &ALLOCA_INFO);
    none(&report);
    // By rbp the frame is known where rsp is not.
    assert_eq!(report.totals.not_judged, 0, "{:?}", report.totals);
    // rbp = rsp + 30h.
    let mut wrong = ALLOCA_INFO;
    wrong[3] = 0x35;
    let (blame, cause, ..) = only(&function(&code, &wrong));
    assert_eq!((blame, cause), (Blame::Data, Cause::FrameGone));
}

/// Judges functions of macOS with one entry of compact unwind information for all of the code.
fn merged(code: &[u8], encoding: u32, starts: &[u32]) -> Report {
    let entry = Entry::new(0..code.len() as u32, Encoding(encoding));
    let region = unix(code, &CfiSections::default());
    let region = region.with_compact(CompactTable::of_object(vec![entry]));
    let mut layout = layout(code.len() as u32);
    layout.starts = starts.to_vec();
    judge(region, layout)
}

/// UNWIND_X86_64_MODE_RBP_FRAME without saved registers.
const RBP_FRAME: u32 = 0x0100_0000;

/// Linkers join the entries of neighbours with the same frame. Behind a call that does not return the next of
/// them begins.
#[test]
fn code_behind_a_call_that_does_not_return_is_the_next_function() {
    // push rbp; mov rbp, rsp; call far; nop (4). 0Dh: push rbp; mov rbp, rsp; sub rsp, 10h; call far; add rsp,
    // 10h; pop rbp; ret.
    let mut code = vec![0x55, 0x48, 0x89, 0xE5, 0xE8, 0, 0x10, 0, 0, 0x0F, 0x1F, 0x40, 0];
    code.extend([0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xEC, 0x10, 0xE8, 0, 0x10, 0, 0]);
    code.extend([0x48, 0x83, 0xC4, 0x10, 0x5D, 0xC3]);
    let report = merged(&code, RBP_FRAME, &[0, 13]);
    assert_eq!(report.findings, []);
    assert_eq!(report.totals.unfollowed, 1, "{:?}", report.totals);
    // Said to have a frame of 18h bytes without rbp.
    let report = merged(&code, 0x0203_0000, &[0, 13]);
    assert!(report.findings.iter().any(|it| it.calls > 0), "{report:#?}");
}

/// A tail call goes into the middle of an entry that is for several functions: from a prologue the code was
/// followed there, and the frame taken for that function's.
#[test]
fn a_tail_call_into_the_middle_of_a_merged_entry_leaves() {
    // push rbp; mov rbp, rsp; push r12; push rbx; push rax; mov rbx, rdi; add rsp, 8; pop rbx; pop r12; pop rbp;
    // jmp 20h
    let mut code =
        vec![0x55, 0x48, 0x89, 0xE5, 0x41, 0x54, 0x53, 0x50, 0x48, 0x89, 0xFB, 0x48, 0x83];
    code.extend([0xC4, 8, 0x5B, 0x41, 0x5C, 0x5D, 0xE9, 8, 0, 0, 0]);
    // 18h: the first function of the other entry. 20h: push rbp; mov rbp, rsp; call far; pop rbp; ret
    code.extend([0x55, 0x48, 0x89, 0xE5, 0x5D, 0xC3, 0xCC, 0xCC]);
    code.extend([0x55, 0x48, 0x89, 0xE5, 0xE8, 0, 0x10, 0, 0, 0x5D, 0xC3]);
    // rbx at cfa-20h, r12 at cfa-18h; and a frame without saved registers.
    let own = Entry::new(0..0x18, Encoding(0x0102_0011));
    let other = Entry::new(0x18..0x2B, Encoding(RBP_FRAME));
    let region = unix(&code, &CfiSections::default());
    let region = region.with_compact(CompactTable::of_object(vec![own, other]));
    let mut layout = layout(0x2B);
    layout.starts = vec![0, 0x18, 0x20];
    let report = judge(region, layout);
    none(&report);
    assert_eq!(report.totals.not_judged, 0, "{:?}", report.totals);
}

/// A call of the function right after it pushes a return address like any other.
#[test]
fn a_call_of_the_next_function_is_no_push() {
    let mut code = vec![0x55, 0x48, 0x89, 0xE5, 0xE8, 0, 0, 0, 0];
    code.extend([0x55, 0x48, 0x89, 0xE5, 0xE8, 0, 0x10, 0, 0, 0x5D, 0xC3]);
    assert_eq!(merged(&code, RBP_FRAME, &[]).findings, []);
}

/// test edi, edi; lea rax, [rsp-18h]; push rbx; cmove rax, rsi …: where the pointer is one to the stack, the
/// store through it hits the slot of rbx only on a path that does not come here.
#[test]
fn a_store_through_a_pointer_that_another_path_has_set_says_nothing() {
    // push rbx; sub rsp, 20h; lea rax, [rsp+8]; test ecx, ecx; je 2; mov rax, rdx. 14h: mov [rax+18h], rcx (rbx's
    // slot, if rax is on the stack); call r8; add rsp, 20h; pop rbx; ret
    let code = [
        0x53, 0x48, 0x83, 0xEC, 0x20, 0x48, 0x8D, 0x44, 0x24, 0x08, 0x85, 0xC9, 0x74, 0x03, 0x48,
        0x89, 0xD0, 0x48, 0x89, 0x48, 0x18, 0x41, 0xFF, 0xD0, 0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3,
    ];
    let info = [1, 5, 2, 0, 5, 0x32, 1, 0x30];
    assert_eq!(function(&code, &info).findings, []);
    let (blame, cause, ..) = only(&function(&code, &[1, 5, 2, 0, 5, 0x42, 1, 0x30]));
    assert_eq!((blame, cause), (Blame::Data, Cause::FrameGone));
}

/// mov r10, rsp on one side of a branch alone, and a frame that is computed from a slot: a store through a
/// register that is an address of the stack on another path must not be taken to change the slot.
#[test]
fn a_slot_that_leads_to_the_frame_is_not_lost_by_such_a_store() {
    // push rbp; mov rbp, rsp; lea r10, [rbp+10h]; mov [rbp-8], r10 …; CFA = [rbp-8] by an expression.
    // sub rsp, 20h; lea rax, [rbp-18h]; test edi, edi; je 2; mov rax, rsi; mov [rax+10h], rcx; leave; ret
    let code = [
        0x55, 0x48, 0x89, 0xE5, 0x4C, 0x8D, 0x55, 0x10, 0x48, 0x83, 0xEC, 0x20, 0x4C, 0x89, 0x55,
        0xF8, 0x48, 0x8D, 0x45, 0xE8, 0x85, 0xFF, 0x74, 0x03, 0x48, 0x89, 0xF0, 0x48, 0x89, 0x48,
        0x10, 0xC9, 0xC3,
    ];
    // +1 CFA rsp+10h, rbp at cfa-10h; +3 CFA rbp+10h; at +10h CFA = [rbp-8]; at +20h rsp+8.
    let rows = [
        0x41, 0x0E, 0x10, 0x86, 2, 0x43, 0x0D, 6, 0x4C, 0x0F, 3, 0x76, 0x78, 0x06, 0x50, 0x0C, 7, 8,
    ];
    assert_eq!(judge_unix(&code, &rows).findings, []);
}

/// Judges code of a language: `push rax`, rbx overwritten between, and all is as before at the return.
fn in_language(language: Option<Language>) -> Report {
    // sub rsp, 8; mov [rsp], rbx; mov ebx, 1; call rax; mov rbx, [rsp]; add rsp, 8; ret
    let code = vec![
        0x48, 0x83, 0xEC, 8, 0x48, 0x89, 0x1C, 0x24, 0xBB, 1, 0, 0, 0, 0xFF, 0xD0, 0x48, 0x8B,
        0x1C, 0x24, 0x48, 0x83, 0xC4, 8, 0xC3,
    ];
    let mut bytes = code.clone();
    bytes.resize(0x1000, 0xCC);
    let info = [1, 4, 1, 0, 4, 0x02];
    bytes[0x800..0x806].copy_from_slice(&info);
    let entry: Vec<u8> =
        [0, code.len() as u32, 0x800].iter().flat_map(|it| it.to_le_bytes()).collect();
    let region = clr_unwind::CodeRegion::heap(BASE, &bytes, FunctionTable::new(&entry)).unwrap();
    let mut layout = layout(code.len() as u32);
    layout.languages.extend(language.map(|it| (0..u32::MAX, it)));
    judge(region, layout)
}

/// In Go and OCaml rbx is an argument: that a function puts it away for later is not that it saves it.
#[test]
fn arguments_of_other_conventions_are_not_saved_registers() {
    let rbx = Subject::Register(Gpr::Rbx);
    let (blame, cause, subject, _) = only(&in_language(None));
    assert_eq!((blame, cause, subject), (Blame::Data, Cause::SavedElsewhere, rbx));
    for language in [Language::Go, Language::OCaml, Language::Haskell] {
        none(&in_language(Some(language)));
    }
    only(&in_language(Some(Language::Delphi)));
}

/// A handler is entered with the registers of its parent, and may lose them where it throws again.
#[test]
fn a_register_that_only_a_throwing_path_loses_is_open() {
    // sub rsp, 28h; test ecx, ecx; je 9; mov ebx, edx; call rax; int3. 10h: add rsp, 28h; ret
    let code = [
        0x48, 0x83, 0xEC, 0x28, 0x85, 0xC9, 0x74, 5, 0x89, 0xD3, 0xFF, 0xD0, 0xCC, 0x48, 0x83,
        0xC4, 0x28, 0xC3,
    ];
    let info = [1, 4, 1, 0, 4, 0x42];
    none(&function(&code, &info));
    // Where it goes on to the return, it has to restore the register.
    let mut back = code;
    back[12] = 0x90;
    assert_eq!(function(&back, &info).findings, []);
    let report = windows(&code, &[(0, 18, &[1, 4, 1, 0, 4, 0x32])]);
    assert!(!report.findings.is_empty());
}
