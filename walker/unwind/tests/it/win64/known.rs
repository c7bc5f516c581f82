//! The caller's registers that are known after a step.

use super::*;

const FUNCTION: [u32; 3] = [0x100, 0x140, 0x800];
const WINDOWS: RegisterSet = Convention::WindowsX64.nonvolatile();
const SYSTEM_V: RegisterSet = Convention::SystemV.nonvolatile();

fn step(case: &Case, rva: u32) -> Step {
    case.step(rva).unwrap().1
}

#[test]
fn calls_preserve_nonvolatile_registers() {
    let info = Info::new(9, &[(9, Xmm(7, 0)), (3, Push(Rcx)), (2, Push(Rbx))]);
    let case = Case::new().function(FUNCTION, &info);
    for case in [case.clone(), case.returned_to()] {
        let step = step(&case, 0x120);
        // A volatile register's slot may hold a variable by now.
        assert_eq!(step.found, RegisterSet::of(&[Rbx, Rsp]).with_xmm(7));
        assert_eq!(step.kept, WINDOWS.difference(step.found));
        assert_eq!(step.needed, RegisterSet::of(&[Rsp]));
        assert_eq!(step.known(RegisterSet::ALL), WINDOWS);
        // A restored register is known whatever was known before; the others keep their state.
        assert_eq!(step.known(step.needed), step.found);
        assert_eq!(step.known(WINDOWS.without(Rbp)), WINDOWS.without(Rbp));
    }
}

#[test]
fn a_leaf_preserves_nonvolatile_registers() {
    let step = step(&Case::new(), 0x120);
    assert_eq!(step.trust, Trust::Leaf);
    assert_eq!(step.known(RegisterSet::ALL), WINDOWS);
    assert_eq!(step.known(WINDOWS.without(Rbx)), WINDOWS.without(Rbx));
}

#[test]
fn a_frame_register_must_be_known() {
    let case = Case::new().function(FUNCTION, &Info::new(4, &[(4, SetFrame)]).frame(Rbp, 0));
    for case in [case.clone(), case.returned_to()] {
        let case = case.with(Rbp, slot(3));
        // In the prologue it is not set yet.
        assert_eq!(step(&case, 0x102).needed, RegisterSet::of(&[Rsp]));
        let step = step(&case, 0x120);
        assert_eq!(step.needed, RegisterSet::of(&[Rsp, Rbp]));
        assert_eq!(step.known(RegisterSet::ALL), WINDOWS);
        assert_eq!(step.known(WINDOWS.without(Rbp)), RegisterSet::EMPTY);
    }
}

/// The handler's volatile registers are not those of the code that it interrupted.
#[test]
fn below_a_machine_frame_pushed_registers_are_known() {
    let info = Info::new(2, &[(2, Push(Rcx)), (1, Push(Rax)), (0, MachineFrame)]);
    let step = step(&Case::new().function(FUNCTION, &info), 0x120);
    assert_eq!(step.caller, Position::Interrupted);
    assert_eq!(step.known(RegisterSet::ALL), WINDOWS.with(Rax).with(Rcx));
    assert_eq!(step.known(WINDOWS.without(Rbx)), WINDOWS.with(Rax).with(Rcx).without(Rbx));
}

/// In the epilogue only its own instructions run, and it pops the pushed registers.
#[test]
fn an_interrupts_epilogue_that_is_executed_preserves_all() {
    let info = Info::new(1, &[(1, Push(Rax)), (0, MachineFrame)]);
    let case = Case::new().function(FUNCTION, &info).put(0x120, &[0x58, 0x48, 0xCF]);
    for (rva, rax) in [(0x120, true), (0x121, false)] {
        let step = step(&case, rva);
        assert_eq!((step.trust, step.caller), (Trust::EpilogueInstructions, Position::Interrupted));
        assert_eq!(step.found.contains(Rax), rax);
        assert_eq!(step.known(RegisterSet::ALL), RegisterSet::ALL);
    }
    // A return leaves the volatile registers to the caller as they are.
    let step = step(&case.put(0x120, &[0x58, 0xC3]), 0x120);
    assert_eq!(step.known(RegisterSet::ALL), WINDOWS);
}

#[test]
fn managed_code_on_unix_preserves_the_registers_of_system_v() {
    let info = Info::new(3, &[(3, Push(Rsi)), (2, Push(Rbx))]);
    let case = Case::new().function(FUNCTION, &info);
    case.with_map(|map| {
        for (convention, preserved) in
            [(Convention::WindowsX64, WINDOWS), (Convention::SystemV, SYSTEM_V)]
        {
            let unwinder = Unwinder::new(map).with_convention(convention);
            for position in [Position::Interrupted, Position::ReturnAddress] {
                let mut registers = case.registers;
                registers.rip = BASE + 0x120;
                let step = unwinder.step(&mut registers, position, &case.stack).unwrap();
                assert_eq!(step.known(RegisterSet::ALL), preserved, "{convention:?}");
            }
        }
    });
}

#[test]
fn a_walk_has_the_known_registers_of_each_frame() {
    let info = Info::new(2, &[(2, Push(Rbx))]);
    let interrupt = Info::new(1, &[(1, Push(Rax)), (0, MachineFrame)]);
    let case = Case::new()
        .function(FUNCTION, &info)
        .function([0x140, 0x180, 0x810], &interrupt)
        // The interrupt came in the function, which a function of the same kind had called.
        .with_slot(1, BASE + 0x120)
        .with_slot(4, slot(6))
        .with_slot(7, BASE + 0x130)
        .with_slot(9, 0xE15E);
    let mut registers = case.registers;
    registers.rip = BASE + 0x150;
    let known: Vec<_> = case.with_map(|map| {
        let walk = Unwinder::new(map).walk(&registers, &case.stack);
        walk.flatten().map(|frame| frame.known).collect()
    });
    assert_eq!(known, [RegisterSet::ALL, WINDOWS.with(Rax), WINDOWS, WINDOWS]);
}
