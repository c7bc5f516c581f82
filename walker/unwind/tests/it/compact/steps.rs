//! Steps from each instruction of small functions.
//!
//! A step is written as the changes that it made: `rbp=[0] rip=[1] rsp=2` took rbp from stack slot 0,
//! rip from slot 1, and left rsp at slot 2. rsp is at slot 0 before the step, and below it nothing
//! can be read.

use super::*;
use clr_unwind::cfi::CfiTable;
use clr_unwind::{Memory, Unreadable};
use std::fmt::Write as _;

const BASE: u64 = 0x1_0000_0000;
const CODE: u32 = 0x1000;
const STACK: u64 = 0x7FFE_0000_0000;
const SLOTS: u64 = 0x1000;

fn word(slot: u64) -> u64 {
    0x5107_0000_0000 + slot
}

fn held(register: Gpr) -> u64 {
    0x4E60_0000 + u64::from(register.number())
}

/// A copy of the stack from rsp on.
struct Stack;

impl Memory for Stack {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        let slot = address.checked_sub(STACK).ok_or(unreadable)? / 8;
        if !address.is_multiple_of(8) || buffer.len() != 8 || slot >= SLOTS {
            return Err(unreadable);
        }
        buffer.copy_from_slice(&word(slot).to_le_bytes());
        Ok(())
    }
}

/// Functions with their encodings, one after the other from [`CODE`] on; 0x1000 bytes of int3 follow.
pub(crate) struct Functions<'f>(pub(crate) &'f [(&'f [u8], u32)]);

impl Functions<'_> {
    /// Makes a step from the instruction at an offset, with rbp at a stack slot.
    pub(crate) fn step(
        &self,
        position: Position,
        at: u32,
        rbp: u64,
    ) -> Result<(String, Step), UnwindError> {
        let mut code = Vec::new();
        let mut entries = Vec::new();
        for (bytes, encoding) in self.0 {
            entries.push((CODE + code.len() as u32, *encoding));
            code.extend_from_slice(bytes);
        }
        let end = CODE + code.len() as u32;
        code.extend([0xCC; 0x1000]);
        let info = unwind_info(&[], &[], &[Page::Regular(entries)], end, &[]);
        let section = |rva, bytes, executable| Section { rva, bytes, executable };
        let unwind_info = section(0x8000, &info[..], false);
        let sections = vec![section(CODE, &code[..], true), unwind_info];
        let sections = Sections::new(sections).unwrap();
        let compact = CompactTable::new(&CompactSections {
            unwind_info: Some(unwind_info),
            stub_helper: 0x1F00..0x2000,
        });
        let cfi = CfiTable::new(&CfiSections::default(), &sections);
        let functions = FunctionTable::default();
        let region =
            CodeRegion::from_sections(BASE, 0x1_0000, RegionKind::Image, sections, functions);
        let region = region.unwrap().with_cfi(cfi).with_compact(compact);
        let mut map = CodeMap::new();
        map.insert(region).unwrap();

        let mut before = Registers { rip: BASE + u64::from(CODE + at), ..Registers::default() };
        for register in Gpr::ALL {
            before.set(register, held(register));
        }
        before.set(Gpr::Rsp, STACK);
        before.set(Gpr::Rbp, STACK.wrapping_add(rbp.wrapping_mul(8)));
        let unwinder = Unwinder::new(&map);
        let mut registers = before;
        let step = unwinder.step(&mut registers, position, &Stack);
        let mut cache = Cache::new();
        for time in ["first", "second"] {
            let mut cached = before;
            let again = unwinder.step_cached(&mut cache, &mut cached, position, &Stack);
            assert_eq!((again, cached), (step, registers), "cached, {time} time");
        }
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                assert_eq!(registers, before, "{error} has changed registers");
                return Err(error);
            }
        };
        let mut text = String::new();
        for register in Gpr::ALL {
            let (old, new) = (before.get(register), registers.get(register));
            let slot = new.wrapping_sub(word(0));
            if register == Gpr::Rsp {
                continue;
            }
            let known = step.known(RegisterSet::ALL).contains(register);
            let preserved = matches!(register.number(), 3 | 5 | 12..=15);
            assert_eq!(known, preserved, "{}", register.name());
            if new != old {
                assert!(slot < SLOTS, "{} is {new:#x}", register.name());
                write!(text, "{}=[{slot}] ", register.name()).unwrap();
            }
        }
        let (rip, rsp) = (registers.rip.wrapping_sub(word(0)), (registers.rsp() - STACK) / 8);
        write!(text, "rip=[{rip}] rsp={rsp}").unwrap();
        Ok((text, step))
    }

    pub(crate) fn interrupted(&self, at: u32, rbp: u64) -> String {
        self.step(Position::Interrupted, at, rbp).unwrap().0
    }

    pub(crate) fn trust(&self, at: u32, rbp: u64) -> Trust {
        self.step(Position::Interrupted, at, rbp).unwrap().1.trust
    }

    pub(crate) fn error(&self, at: u32, rbp: u64) -> UnwindError {
        self.step(Position::Interrupted, at, rbp).unwrap_err()
    }
}

/// rbp below the frame: it has nothing to do with the function.
pub(crate) const ELSEWHERE: u64 = 0x800;

/// `push rbp; mov rbp, rsp; push r14; push rbx; sub rsp, 16; call; add rsp, 16; pop rbx; pop r14;
/// pop rbp; ret`.
const FRAME: &[u8] = b"\x55\x48\x89\xE5\x41\x56\x53\x48\x83\xEC\x10\xE8\0\0\0\0\
    \x48\x83\xC4\x10\x5B\x41\x5E\x5D\xC3";
const FRAME_ENCODING: u32 = 0x0102_0021;

#[test]
fn a_frame_with_rbp_is_unwound_at_each_instruction() {
    let functions = Functions(&[(FRAME, FRAME_ENCODING)]);
    let body = "rbx=[2] rbp=[4] r14=[3] rip=[5] rsp=6";
    for (at, rbp, expected) in [
        (0, ELSEWHERE, "rip=[0] rsp=1"),
        (1, ELSEWHERE, "rbp=[0] rip=[1] rsp=2"),
        (4, 0, "rbp=[0] rip=[1] rsp=2"),
        (6, 1, "rbp=[1] r14=[0] rip=[2] rsp=3"),
        (7, 2, "rbx=[0] rbp=[2] r14=[1] rip=[3] rsp=4"),
        (11, 4, body),
        (16, 4, body),
        (20, 2, "rbx=[0] rbp=[2] r14=[1] rip=[3] rsp=4"),
        (21, 1, "rbp=[1] r14=[0] rip=[2] rsp=3"),
        (23, 0, "rbp=[0] rip=[1] rsp=2"),
        (24, ELSEWHERE, "rip=[0] rsp=1"),
    ] {
        assert_eq!(functions.interrupted(at, rbp), expected, "at {at}");
    }
    let (call, step) = functions.step(Position::ReturnAddress, 16, 4).unwrap();
    assert_eq!((call.as_str(), step.trust), (body, Trust::Compact));
    assert_eq!(step.needed, RegisterSet::of(&[Gpr::Rbp]));
    assert_eq!(functions.trust(11, 4), Trust::Compact);
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
    assert_eq!(functions.trust(21, 1), Trust::FollowedCode);
}

#[test]
fn a_frame_of_fixed_size_is_unwound_at_each_instruction() {
    // push r15; push rbx; push rax; call; add rsp, 8; pop rbx; pop r15; ret
    let code = b"\x41\x57\x53\x50\xE8\0\0\0\0\x48\x83\xC4\x08\x5B\x41\x5F\xC3";
    // rbx below r15: permutation of two registers, the first of six, then the fourth of the rest.
    let functions = Functions(&[(code, 0x0204_0803)]);
    let body = "rbx=[1] r15=[2] rip=[3] rsp=4";
    for (at, expected) in [
        (0, "rip=[0] rsp=1"),
        (2, "r15=[0] rip=[1] rsp=2"),
        (3, "rbx=[0] r15=[1] rip=[2] rsp=3"),
        (4, body),
        (9, body),
        (13, "rbx=[0] r15=[1] rip=[2] rsp=3"),
        (14, "r15=[0] rip=[1] rsp=2"),
        (16, "rip=[0] rsp=1"),
    ] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), expected, "at {at}");
    }
    let (call, step) = functions.step(Position::ReturnAddress, 9, ELSEWHERE).unwrap();
    assert_eq!((call.as_str(), step.trust), (body, Trust::Compact));
    assert_eq!(step.needed, RegisterSet::of(&[Gpr::Rsp]));
}

/// Each branch but the last leads back to the loop's head: paths end where they repeat, and a way for which
/// there was no room at first is tried later.
#[test]
fn the_way_out_of_a_loop_is_found_behind_branches_that_lead_back() {
    // push rbx; A: je X1; je X2; je X3; je X4; jmp A; X1: jmp A; X2: jmp A; X3: jmp A; X4: pop rbx; ret
    let code = b"\x53\x74\x08\x74\x08\x74\x08\x74\x08\xEB\xF6\xEB\xF4\xEB\xF2\xEB\xF0\x5B\xC3";
    let functions = Functions(&[(code, 0x0202_0400)]);
    for at in [1, 3, 5, 7, 9, 11, 13, 15, 17] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), "rbx=[0] rip=[1] rsp=2", "at {at}");
        assert_eq!(functions.trust(at, ELSEWHERE), Trust::FollowedCode, "at {at}");
    }
}

#[test]
fn a_large_frame_has_its_size_in_the_code() {
    // push rbx; sub rsp, 0x1000; call; add rsp, 0x1000; pop rbx; ret
    let code = b"\x53\x48\x81\xEC\0\x10\0\0\xE8\0\0\0\0\x48\x81\xC4\0\x10\0\0\x5B\xC3";
    // The immediate is at 4, and the return address and rbx are not in it.
    let functions = Functions(&[(&[0x90], 0), (code, 0x0304_4400)]);
    let body = "rbx=[512] rip=[513] rsp=514";
    for (at, expected) in
        [(1, "rip=[0] rsp=1"), (2, "rbx=[0] rip=[1] rsp=2"), (9, body), (14, body)]
    {
        assert_eq!(functions.interrupted(at, ELSEWHERE), expected, "at {at}");
    }
    let (call, _) = functions.step(Position::ReturnAddress, 14, ELSEWHERE).unwrap();
    assert_eq!(call, body);
    // Another instruction at that place.
    let functions = Functions(&[(&[0x90], 0), (code, 0x0305_4400)]);
    let error = functions.step(Position::ReturnAddress, 14, ELSEWHERE).unwrap_err();
    assert!(matches!(error, UnwindError::Compact(_)), "{error}");
}

#[test]
fn code_before_a_late_prologue_and_after_an_early_exit_has_no_frame() {
    // test edi, edi; je end; push rbp; mov rbp, rsp; call; pop rbp; end: xor eax, eax; ret
    let code = b"\x85\xFF\x74\x0A\x55\x48\x89\xE5\xE8\0\0\0\0\x5D\x31\xC0\xC3";
    let functions = Functions(&[(code, 0x0100_0000)]);
    for at in [0, 2, 4, 14, 16] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), "rip=[0] rsp=1", "at {at}");
    }
    assert_eq!(functions.interrupted(5, ELSEWHERE), "rbp=[0] rip=[1] rsp=2");
    assert_eq!(functions.interrupted(13, 0), "rbp=[0] rip=[1] rsp=2");
}

#[test]
fn the_end_of_an_epilogue_may_be_anything_that_leaves() {
    for end in [
        &b"\xC3"[..],            // ret
        b"\xC5\xF8\x77\xC3",     // vzeroupper; ret
        b"\xF3\xC3",             // rep ret
        b"\xFF\xE0",             // jmp rax
        b"\xFF\x25\0\0\0\0",     // jmp [rip]
        b"\xFF\x60\x18",         // jmp [rax+18h]
        b"\xE9\0\0\x10\0",       // jmp out of the image
        b"\x31\xC0\x31\xD2\xC3", // xor eax, eax; xor edx, edx; ret
        b"\xEB\x02\xCC\xCC\xC3", // jmp to a ret
    ] {
        // push rbp; mov rbp, rsp; push rbx; push rax; call; add rsp, 8; pop rbx; pop rbp
        let mut code = b"\x55\x48\x89\xE5\x53\x50\xE8\0\0\0\0\x48\x83\xC4\x08\x5B\x5D".to_vec();
        code.extend_from_slice(end);
        let functions = Functions(&[(&code, 0x0101_0001)]);
        let body = "rbx=[1] rbp=[2] rip=[3] rsp=4";
        assert_eq!(functions.interrupted(11, 2), body, "{end:x?}");
        assert_eq!(functions.interrupted(15, 1), "rbx=[0] rbp=[1] rip=[2] rsp=3", "{end:x?}");
        assert_eq!(functions.interrupted(16, 0), "rbp=[0] rip=[1] rsp=2", "{end:x?}");
        assert_eq!(functions.interrupted(17, ELSEWHERE), "rip=[0] rsp=1", "{end:x?}");
    }
}

#[test]
fn a_switch_is_followed_through_its_table() {
    // lea rcx, [table]; movsxd rax, [rcx+rax*4]; add rax, rcx; jmp rax; case: xor eax, eax; ret;
    // table: the distance to the case
    let code =
        b"\x48\x8D\x0D\x0C\0\0\0\x48\x63\x04\x81\x48\x01\xC8\xFF\xE0\x31\xC0\xC3\xFD\xFF\xFF\xFF";
    let functions = Functions(&[(code, 0x0100_0000)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    // The table's address was computed before the interrupted instruction.
    let address = BASE + u64::from(CODE) + 14;
    let assumed = functions.step(Position::Interrupted, 14, 3).unwrap();
    assert_eq!(
        (assumed.0.as_str(), assumed.1.trust),
        ("rbp=[3] rip=[4] rsp=5", Trust::CompactAssumed)
    );
    // rbp points below the stack: nothing there can be the frame.
    let error = functions.error(14, u64::MAX - 3);
    assert!(
        matches!(error, UnwindError::NoProgress { .. } | UnwindError::CodeContradictsTable { .. }),
        "{error} at {address:#x}"
    );
}

#[test]
fn merged_entries_are_no_obstacle() {
    let twice = [FRAME, FRAME].concat();
    let functions = Functions(&[(&twice, FRAME_ENCODING)]);
    let second = FRAME.len() as u32;
    assert_eq!(functions.interrupted(second, ELSEWHERE), "rip=[0] rsp=1");
    assert_eq!(functions.interrupted(second + 1, ELSEWHERE), "rbp=[0] rip=[1] rsp=2");
    assert_eq!(functions.interrupted(second + 24, ELSEWHERE), "rip=[0] rsp=1");
}

#[test]
fn a_jump_to_another_function_leaves_this_one() {
    // push rbp; mov rbp, rsp; call; pop rbp; jmp to the next function, which begins with pushes and
    // a call of its own: push rbx; call; pop rbx; ret
    let first = b"\x55\x48\x89\xE5\xE8\0\0\0\0\x5D\xE9\0\0\0\0";
    let second = b"\x53\xE8\0\0\0\0\x5B\xC3";
    let functions = Functions(&[(first, 0x0100_0000), (second, 0x0202_0400)]);
    assert_eq!(functions.interrupted(9, 0), "rbp=[0] rip=[1] rsp=2");
    assert_eq!(functions.interrupted(10, ELSEWHERE), "rip=[0] rsp=1");
}

#[test]
fn code_without_information_is_a_leaf_only_if_its_bytes_say_so() {
    // xor eax, eax; push rbx; pop rbx; ret; call; ret
    let functions = Functions(&[(b"\x31\xC0\x53\x5B\xC3\xE8\0\0\0\0\xC3", 0)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    assert_eq!(functions.interrupted(3, ELSEWHERE), "rbx=[0] rip=[1] rsp=2");
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
    let address = BASE + u64::from(CODE) + 5;
    assert_eq!(functions.error(5, ELSEWHERE), UnwindError::NoFrameInformation { address });
    let address = address + 5;
    let error = functions.step(Position::ReturnAddress, 10, ELSEWHERE).unwrap_err();
    assert_eq!(error, UnwindError::NoFrameInformation { address });
}

#[test]
fn code_that_contradicts_its_encoding_is_refused() {
    // The code pushes nothing, and the encoding has rbx and two words more.
    let functions = Functions(&[(b"\x90\xE8\0\0\0\0\xC3", 0x0204_0400)]);
    assert!(functions.step(Position::Interrupted, 1, ELSEWHERE).is_ok(), "at the call it counts");
    // sub rsp, 24 before the call: rbx cannot be in a slot that nothing has written.
    let functions =
        Functions(&[(b"\x48\x83\xEC\x18\xE8\0\0\0\0\x48\x83\xC4\x18\xC3", 0x0204_0400)]);
    let address = BASE + u64::from(CODE);
    assert_eq!(functions.error(0, ELSEWHERE), UnwindError::CodeContradictsTable { address });
    // The interrupted instruction before the call overwrites rbx, which the encoding does not save.
    let functions = Functions(&[(b"\x89\xFB\xE8\0\0\0\0\xC3", 0x0201_0000)]);
    assert_eq!(functions.error(0, ELSEWHERE), UnwindError::CodeContradictsTable { address });
}

#[test]
fn stub_helpers_have_pushed_words() {
    // The helper's parts are at their offset in the code; int3 fills the rest.
    let mut code = vec![0xCC; 0xF00];
    code.extend_from_slice(
        b"\x4C\x8D\x1D\0\0\0\0\x41\x53\xFF\x25\0\0\0\0\x90\x68\0\0\0\0\xE9\0\0\0\0",
    );
    let functions = Functions(&[(&code, 0)]);
    for (at, expected) in [
        (0xF00, "rip=[1] rsp=2"),
        (0xF07, "rip=[1] rsp=2"),
        (0xF09, "rip=[2] rsp=3"),
        (0xF10, "rip=[0] rsp=1"),
        (0xF15, "rip=[1] rsp=2"),
    ] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), expected, "{at:#x}");
        assert_eq!(functions.trust(at, ELSEWHERE), Trust::Stub);
    }
}

#[test]
fn an_impossible_encoding_matters_only_at_calls() {
    // Intel's compilers leave the return address out of the size: xor eax, eax; ret; call; ret
    let functions = Functions(&[(b"\x31\xC0\xC3\xE8\0\0\0\0\xC3", 0x0200_0000)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    for (position, at) in [(Position::Interrupted, 3), (Position::ReturnAddress, 8)] {
        let error = functions.step(position, at, ELSEWHERE).unwrap_err();
        assert!(matches!(error, UnwindError::Compact(_)), "{error}");
    }
}
