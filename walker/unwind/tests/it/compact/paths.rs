//! Steps that depend on the way from the interrupted instruction to a call or a return.

use super::*;
use crate::compact::steps::{ELSEWHERE, Functions};

/// Frames with rbp, and one word or two words with the return address above rsp.
const WITH_RBP: u32 = 0x0100_0000;
const NO_FRAME: u32 = 0x0201_0000;
const ONE_WORD: u32 = 0x0202_0000;
/// The same with rbx in the word.
const RBX: u32 = 0x0202_0400;

/// Returns the registers that the step from an interrupted instruction depends on.
fn needed(functions: &Functions<'_>, at: u32, rbp: u64) -> RegisterSet {
    functions.step(Position::Interrupted, at, rbp).unwrap().1.needed
}

/// Old compilers, and those of Intel, save and restore by `mov`.
#[test]
fn registers_are_saved_and_restored_by_mov() {
    // sub rsp, 24; mov [rsp+8], rbx; mov [rsp+16], rbp; call; mov rbx, [rsp+8]; mov rbp, [rsp+16];
    // add rsp, 24; ret
    let code = b"\x48\x83\xEC\x18\x48\x89\x5C\x24\x08\x48\x89\x6C\x24\x10\xE8\0\0\0\0\
        \x48\x8B\x5C\x24\x08\x48\x8B\x6C\x24\x10\x48\x83\xC4\x18\xC3";
    // Two registers, rbx below rbp: the first of six, then the fifth of the rest.
    let functions = Functions(&[(code, 0x0204_0804)]);
    let body = "rbx=[1] rbp=[2] rip=[3] rsp=4";
    for (at, expected) in [
        (0, "rip=[0] rsp=1"),
        (4, "rip=[3] rsp=4"),
        (9, "rbx=[1] rip=[3] rsp=4"),
        (14, body),
        (19, body),
        (24, "rbp=[2] rip=[3] rsp=4"),
        (29, "rip=[3] rsp=4"),
        (33, "rip=[0] rsp=1"),
    ] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), expected, "at {at}");
    }
}

/// A loop may store a preserved register that the function has no use for, or has overwritten, many times.
#[test]
fn stores_that_save_nothing_new_do_not_count() {
    // mov [rsp], rbx, 12 times; call; add rsp, 16; ret
    let same = [&b"\x48\x89\x1C\x24".repeat(12)[..], b"\xE8\0\0\0\0\x48\x83\xC4\x10\xC3"].concat();
    // mov rbx, [rsp+8]; then the same
    let other = [&b"\x48\x8B\x5C\x24\x08"[..], &same[..]].concat();
    for (code, trust) in [(&same, Trust::FollowedCode), (&other, Trust::Compact)] {
        let functions = Functions(&[(code, 0x0203_0000)]);
        let (text, step) = functions.step(Position::Interrupted, 0, ELSEWHERE).unwrap();
        assert!(text.ends_with("rip=[2] rsp=3"), "{text}");
        assert_eq!(step.trust, trust);
    }
}

/// An aligned frame: what is pushed after `and rsp` is below the aligned address.
#[test]
fn a_frame_is_aligned_in_the_prologue() {
    // push rbp; mov rbp, rsp; push r14; and rsp, -16; push rbx; call; lea rsp, [rbp-24]; pop rbx;
    // add rsp, 8; pop r14; pop rbp; ret
    let code = b"\x55\x48\x89\xE5\x41\x56\x48\x83\xE4\xF0\x53\xE8\0\0\0\0\x48\x8D\x65\xE8\x5B\
        \x48\x83\xC4\x08\x41\x5E\x5D\xC3";
    // From 24 bytes below rbp on: rbx, nothing, r14.
    let functions = Functions(&[(code, 0x0103_0101)]);
    let body = "rbx=[0] rbp=[3] r14=[2] rip=[4] rsp=5";
    for (at, rbp, expected) in [
        (1, ELSEWHERE, "rbp=[0] rip=[1] rsp=2"),
        (4, 0, "rbp=[0] rip=[1] rsp=2"),
        (10, 2, "rbp=[2] r14=[1] rip=[3] rsp=4"),
        (11, 3, body),
        (16, 3, body),
        (20, 3, body),
        (21, 2, "rbp=[2] r14=[1] rip=[3] rsp=4"),
    ] {
        assert_eq!(functions.interrupted(at, rbp), expected, "at {at}");
    }
}

#[test]
fn a_step_needs_rbp_where_the_frame_is_found_by_it() {
    // push rbp; mov rbp, rsp; push rbx; call; lea rsp, [rbp-8]; pop rbx; leave; ret
    let code = b"\x55\x48\x89\xE5\x53\xE8\0\0\0\0\x48\x8D\x65\xF8\x5B\xC9\xC3";
    let functions = Functions(&[(code, 0x0101_0001)]);
    let (rsp, both) = (RegisterSet::of(&[Gpr::Rsp]), RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]));
    for (at, rbp, text, expected) in [
        (0, ELSEWHERE, "rip=[0] rsp=1", rsp),
        (1, ELSEWHERE, "rbp=[0] rip=[1] rsp=2", rsp),
        (4, 0, "rbp=[0] rip=[1] rsp=2", both),
        (5, 1, "rbx=[0] rbp=[1] rip=[2] rsp=3", both),
        // rsp has gone down for a moment.
        (10, 4, "rbx=[3] rbp=[4] rip=[5] rsp=6", both),
        (14, 1, "rbx=[0] rbp=[1] rip=[2] rsp=3", both),
        (15, 3, "rbp=[3] rip=[4] rsp=5", both),
        (16, ELSEWHERE, "rip=[0] rsp=1", rsp),
    ] {
        assert_eq!(functions.interrupted(at, rbp), text, "at {at}");
        assert_eq!(needed(&functions, at, rbp), expected, "at {at}");
    }
    // mov rbp, rsp; lea rsp, [rbp]; pop rbp; ret: rbp is the function's own by then.
    let functions = Functions(&[(b"\x48\x89\xE5\x48\x8D\x65\0\x5D\xC3", WITH_RBP)]);
    assert_eq!(needed(&functions, 0, ELSEWHERE), rsp);
}

/// What the table says of a call holds before it, too, if nothing is moved in between.
#[test]
fn a_frame_is_the_tables_only_if_nothing_changes_before_the_call() {
    for (before, expected) in [
        (&b"\x90"[..], Trust::Compact),                                 // nop
        (b"\x48\x83\xC4\0", Trust::Compact),                            // add rsp, 0
        (b"\x48\x8D\x24\x24", Trust::Compact),                          // lea rsp, [rsp]
        (b"\x48\x83\xEC\x10", Trust::FollowedCode),                     // sub rsp, 16
        (b"\x48\x83\xC4\x08", Trust::FollowedCode),                     // add rsp, 8
        (b"\x48\x8D\x64\x24\x08", Trust::FollowedCode),                 // lea rsp, [rsp+8]
        (b"\x48\x8D\x65\xF0", Trust::FollowedCode),                     // lea rsp, [rbp-16]
        (b"\x48\x83\xC4\x08\x48\x83\xEC\x08", Trust::FollowedCode),     // add rsp, 8; sub rsp, 8
        (b"\x48\x83\xC4\x08\x48\x8D\x64\x24\xF8", Trust::FollowedCode), // add rsp, 8; lea rsp, [rsp-8]
        (b"\x50\x58", Trust::FollowedCode),                             // push rax; pop rax
        (b"\x50\x58\x48\x83\xEC\0", Trust::FollowedCode), // push rax; pop rax; sub rsp, 0
        (b"\x48\x89\xC4", Trust::FollowedCode),           // mov rsp, rax: room for an array
        (b"\x48\x89\xC4\x50", Trust::FollowedCode),       // mov rsp, rax; push rax
        (b"\x66\x50\x66\x58", Trust::CompactAssumed),     // push ax; pop ax
        (b"\x66\x50", Trust::CompactAssumed),             // push ax
    ] {
        let code = [before, b"\xE8\0\0\0\0\xC3"].concat();
        let functions = Functions(&[(&code, WITH_RBP)]);
        let (text, step) = functions.step(Position::Interrupted, 0, 5).unwrap();
        assert_eq!((text.as_str(), step.trust), ("rbp=[5] rip=[6] rsp=7", expected), "{before:x?}");
    }
}

#[test]
fn a_frame_by_a_register_that_was_overwritten_is_refused() {
    for code in [
        &b"\x89\xFD\xC9\xC3"[..],    // mov ebp, edi; leave; ret
        b"\x89\xFD\xE8\0\0\0\0\xC3", // mov ebp, edi; call
    ] {
        let functions = Functions(&[(code, WITH_RBP)]);
        let error = functions.error(0, 3);
        assert!(matches!(error, UnwindError::NoFrameInformation { .. }), "{error}");
    }
    // mov rsp, rax; call: the frame is counted from rsp.
    let functions = Functions(&[(b"\x48\x89\xC4\xE8\0\0\0\0\xC3", ONE_WORD)]);
    let error = functions.error(0, 3);
    assert!(matches!(error, UnwindError::NoFrameInformation { .. }), "{error}");
}

/// A function that never returns and calls nothing, as one that waits for ever.
#[test]
fn a_path_without_end_has_the_frame_that_it_makes() {
    for start in [&b"\x55\x48\x89\xE5"[..], b"\x55\x48\x8B\xEC"] {
        // push rbp; mov rbp, rsp; jmp to itself
        let code = [start, b"\xEB\xFE"].concat();
        let functions = Functions(&[(&code, WITH_RBP)]);
        assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
        assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
        assert_eq!(functions.interrupted(4, 0), "rbp=[0] rip=[1] rsp=2");
        assert_eq!(functions.trust(4, 0), Trust::CompactAssumed);
    }
    for (code, at, expected) in [
        // push rbx; pause; jmp to the pause
        (&b"\x53\xF3\x90\xEB\xFC"[..], 0, "rip=[0] rsp=1"),
        (b"\x53\xF3\x90\xEB\xFC", 1, "rbx=[0] rip=[1] rsp=2"),
        // push rbx; je to: push rax; ud2; ud2
        (b"\x53\x74\x02\x0F\x0B\x50\x0F\x0B", 0, "rip=[0] rsp=1"),
        // nop; add rsp, 8; ud2: a part of the frame is gone only where the path is lost.
        (b"\x90\x48\x83\xC4\x08\x0F\x0B", 0, "rbx=[0] rip=[1] rsp=2"),
    ] {
        let functions = Functions(&[(code, RBX)]);
        assert_eq!(functions.interrupted(at, ELSEWHERE), expected, "{code:x?}");
        assert_eq!(functions.trust(at, ELSEWHERE), Trust::CompactAssumed, "{code:x?}");
    }
}

/// A jump to the start of another function leaves this one, whatever the other does. Into the middle of a
/// function leads a jump to a part that the compiler has moved away.
#[test]
fn only_a_jump_to_another_function_is_an_exit() {
    const PART: u32 = 0x8000_0000 | WITH_RBP;
    // test edi, edi; jne over a jump of 16 bytes; push rbp; mov rbp, rsp; call; pop rbp; ret
    let first = b"\x85\xFF\x75\x02\xEB\x0C\x55\x48\x89\xE5\xE8\0\0\0\0\x5D\xC3\x90";
    let dead = b"\x0F\x0B\x0F\x0B";
    for (other, encoding, expected) in [
        (&[][..], WITH_RBP, "rip=[0] rsp=1"),
        (&[0x90], WITH_RBP, "rbp=[3] rip=[4] rsp=5"),
        (&[], PART, "rbp=[3] rip=[4] rsp=5"),
        (&[], 0, "rip=[0] rsp=1"),
        (&[0x90], 0, "rip=[0] rsp=1"),
    ] {
        let other = [other, dead].concat();
        let into = other.len() as u8 - dead.len() as u8;
        let mut code = first.to_vec();
        code[5] += into;
        let functions = Functions(&[(&code, WITH_RBP), (&other, encoding)]);
        assert_eq!(functions.interrupted(4, 3), expected, "{other:x?} {encoding:#x}");
    }
    // ud2; jmp to the ud2: the function's own start is none.
    let functions = Functions(&[(b"\x0F\x0B\xEB\xFC", WITH_RBP)]);
    assert_eq!(functions.interrupted(2, 3), "rbp=[3] rip=[4] rsp=5");
    // pop rbx; jmp to the next entry; pop rbx; jmp into it. An entry may be of several functions, so what
    // has released its frame leaves, but not to a part that the compiler has moved away.
    for (encoding, trust) in [(WITH_RBP, Trust::FollowedCode), (PART, Trust::CompactAssumed)] {
        let next = (&b"\x0F\x0B\x0F\x0B"[..], encoding);
        let functions = Functions(&[(b"\x5B\xEB\x03\x5B\xEB\x02", RBX), next]);
        for at in [0, 3] {
            assert_eq!(functions.interrupted(at, ELSEWHERE), "rbx=[0] rip=[1] rsp=2");
            assert_eq!(functions.trust(at, ELSEWHERE), trust, "{encoding:#x} {at}");
        }
    }
}

/// A path ends where another was before in the same state; in another state it may lead on.
#[test]
fn paths_that_meet_are_reported_apart_by_their_states() {
    // je over a jump: to add rsp, 8; jmp to the jump, which leads to: jmp rax
    let released = b"\x74\x02\xEB\x06\x48\x83\xC4\x08\xEB\xF8\xFF\xE0";
    let functions = Functions(&[(released, ONE_WORD)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[1] rsp=2");
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
    // The same with add rsp, 8; sub rsp, 8: the stack pointer is where it was.
    let undone = b"\x74\x02\xEB\x0A\x48\x83\xC4\x08\x48\x83\xEC\x08\xEB\xF4\xFF\xE0";
    let functions = Functions(&[(undone, NO_FRAME)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
    // je over a jump: to lea rcx, [table]; jmp to the jump, which leads to: jmp rax; case: ret; table
    let switch = b"\x74\x02\xEB\x09\x48\x8D\x0D\x05\0\0\0\xEB\xF5\xFF\xE0\xC3\xFF\xFF\xFF\xFF";
    let functions = Functions(&[(switch, NO_FRAME)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
}

#[test]
fn jumps_are_reported_apart_by_their_places() {
    // Jumps with 32 bytes between them, and two more.
    for distance in [30, 31, 62] {
        let mut code = vec![0xEB, distance];
        code.resize(usize::from(distance) + 2, 0xCC);
        code.extend([0xEB, 0, 0xC3]);
        let functions = Functions(&[(&code, NO_FRAME)]);
        assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
        assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode, "{distance}");
    }
}

/// The straight path is too long, and comes by a jump from which a shorter one leads to the return.
#[test]
fn a_jump_where_a_path_was_too_long_is_followed_again_by_a_shorter_one() {
    // je to the jump; nop, 300 times; jmp to: nop, 250 times; ret
    let mut code = vec![0x0F, 0x84, 44, 1, 0, 0];
    code.extend([0x90; 300]);
    code.extend([0xEB, 0]);
    code.extend([0x90; 250]);
    code.push(0xC3);
    let functions = Functions(&[(&code, NO_FRAME)]);
    assert_eq!(functions.interrupted(0, ELSEWHERE), "rip=[0] rsp=1");
    assert_eq!(functions.trust(0, ELSEWHERE), Trust::FollowedCode);
}

/// The branch to the way out comes after a jump, which other paths have to follow again: there was no room
/// for this branch when the first one came.
#[test]
fn a_branch_that_was_left_out_is_reached_through_a_jump_that_was_followed() {
    // push rbx; A: je X1; je X2; je X3; jmp B; B: je X4; jmp A; X1: jmp A; X2: jmp A; X3: jmp A;
    // X4: pop rbx; ret
    let code =
        b"\x53\x74\x0A\x74\x0A\x74\x0A\xEB\0\x74\x08\xEB\xF4\xEB\xF2\xEB\xF0\xEB\xEE\x5B\xC3";
    let functions = Functions(&[(code, RBX)]);
    for at in [1, 3, 5, 7, 9, 11, 13, 15, 17, 19] {
        assert_eq!(functions.interrupted(at, ELSEWHERE), "rbx=[0] rip=[1] rsp=2", "at {at}");
        assert_eq!(functions.trust(at, ELSEWHERE), Trust::FollowedCode, "at {at}");
    }
}
