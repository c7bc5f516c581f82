//! Decoding of single encodings.

use super::*;
use std::collections::BTreeSet;

fn names(saved: SavedRegisters) -> Vec<(&'static str, u16)> {
    saved.iter().map(|(register, below)| (register.name(), below)).collect()
}

#[test]
fn the_slots_of_a_frame_with_rbp_count_from_the_lowest() {
    // clang: push rbp; mov rbp, rsp; push r15; push r14; push rbx
    let layout = Encoding(0x0103_0161).layout();
    let Ok(Layout::FramePointer(saved)) = layout else { panic!("{layout:?}") };
    assert_eq!(names(saved), [("rbx", 40), ("r14", 32), ("r15", 24)]);
    // A slot may be empty: push rbp; mov rbp, rsp; push rbx; push rax
    let layout = Encoding(0x0102_0008).layout();
    let Ok(Layout::FramePointer(saved)) = layout else { panic!("{layout:?}") };
    assert_eq!(names(saved), [("rbx", 24)]);
}

#[test]
fn a_fixed_frame_has_its_size_in_words() {
    // clang: push rbp; push r14; push rbx, as in `llvm-objdump --unwind-info` of a loop with a call.
    let layout = Encoding(0x0204_0C0B).layout();
    let Ok(Layout::Frameless { size, saved }) = layout else { panic!("{layout:?}") };
    assert_eq!((size, names(saved)), (32, vec![("rbx", 32), ("r14", 24), ("rbp", 16)]));
    let layout = Encoding(0x0310_4400).layout();
    let Ok(Layout::FramelessIndirect { size_at, adjustment, saved }) = layout else {
        panic!("{layout:?}")
    };
    assert_eq!((size_at, adjustment, names(saved)), (16, 16, vec![("rbx", 16)]));
}

/// For each count, permutations and orders of registers are one to one.
#[test]
fn every_permutation_is_a_different_order_of_registers() {
    let mut sums = Vec::new();
    for count in 0..=7_u32 {
        let mut orders = BTreeSet::new();
        let mut valid = 0;
        for permutation in 0..1 << 10 {
            let encoding = Encoding(0x0209_0000 | count << 10 | permutation);
            match encoding.layout() {
                Ok(Layout::Frameless { saved, .. }) => {
                    let order: Vec<_> = saved.iter().map(|(register, _)| register).collect();
                    assert_eq!(order.len(), count as usize, "{encoding:x?}");
                    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), order.len());
                    valid += 1;
                    orders.insert(order);
                }
                Err(problem) => assert_eq!(problem, CompactProblem::Registers(encoding.0)),
                other => panic!("{other:?}"),
            }
        }
        sums.push((valid, orders.len()));
    }
    // Orders of 0, 1 … of six registers; without registers the permutation says nothing.
    let orders = [(1024, 1), (6, 6), (30, 30), (120, 120), (360, 360), (720, 720), (720, 720)];
    assert_eq!(sums[..7], orders);
    assert_eq!(sums[7], (0, 0));
    let highest = Encoding(0x0207_1ACF).layout();
    let Ok(Layout::Frameless { saved, .. }) = highest else { panic!("{highest:?}") };
    let order: Vec<_> = saved.iter().map(|(register, _)| register).collect();
    assert_eq!(order, [Gpr::Rbp, Gpr::R15, Gpr::R14, Gpr::R13, Gpr::R12, Gpr::Rbx]);
}

#[test]
fn impossible_encodings_are_refused() {
    let problem = |encoding| Encoding(encoding).layout().unwrap_err();
    assert_eq!(problem(0x0500_0000), CompactProblem::Mode(0x0500_0000));
    assert_eq!(problem(0x0000_0001), CompactProblem::Mode(1));
    // rbx twice; rbp below rbp; register 7; a slot above rbp.
    for encoding in [0x0102_0009, 0x0101_0006, 0x0101_0007, 0x0101_0008] {
        assert_eq!(problem(encoding), CompactProblem::Registers(encoding), "{encoding:#x}");
    }
    // No room for the return address, or for the registers above it.
    for encoding in [0x0200_0000, 0x0201_0400] {
        assert_eq!(problem(encoding), CompactProblem::FrameSize(encoding), "{encoding:#x}");
    }
}

#[test]
fn flags_do_not_change_the_layout() {
    let encoding = Encoding(0xF000_0000);
    assert_eq!(encoding.layout(), Ok(Layout::Nothing));
    assert!(encoding.has_lsda() && encoding.is_not_function_start());
    assert_eq!(encoding.personality(), 3);
    for (encoding, expected) in [
        (0x8412_3456, (true, false, 0)),
        (0x4412_3456, (false, true, 0)),
        (0x2412_3456, (false, false, 2)),
        (0x1412_3456, (false, false, 1)),
        (0x0FFF_FFFF, (false, false, 0)),
    ] {
        let it = Encoding(encoding);
        let flags = (it.is_not_function_start(), it.has_lsda(), it.personality());
        assert_eq!(flags, expected, "{encoding:#x}");
    }
    assert_eq!(Encoding(0x0412_3456).layout(), Ok(Layout::Dwarf { fde: 0x12_3456 }));
}
