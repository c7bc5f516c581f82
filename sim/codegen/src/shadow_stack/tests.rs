//! Code that satisfies the calling convention, and code that violates it.

use super::*;
use clr_machine::{Machine, Protection};
use clr_unwind::Memory as _;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

const CODE: u64 = 0x1_0000;
const STACK: u64 = 0x2_0000;
const RSP: u64 = STACK + 0x800;

/// Executes code up to its `hlt`, which this machine does not implement, and returns the shadow
/// stack.
fn run_from(
    mut shadow_stack: ShadowStack,
    code: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> (ShadowStack, Machine) {
    let mut assembler = CodeAssembler::new(64).unwrap();
    code(&mut assembler).unwrap();
    let mut machine = Machine::new();
    machine.map(CODE, 1, Protection::READ_EXECUTE).unwrap();
    machine.map(STACK, 1, Protection::READ_WRITE).unwrap();
    machine.write(CODE, &assembler.assemble(CODE).unwrap()).unwrap();
    let cpu = machine.cpu_mut();
    cpu.set(Gpr::Rsp, RSP);
    cpu.set_rip(CODE);
    while machine.step_with(&mut shadow_stack).is_ok() {}
    (shadow_stack, machine)
}

/// Returns the violation by a function that `main` calls.
fn callee(
    convention: CallingConvention,
    code: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Option<Broken> {
    let (shadow_stack, _) = run_from(ShadowStack::new(convention), |a| {
        let mut function = a.create_label();
        a.call(function)?;
        a.hlt()?;
        a.set_label(&mut function)?;
        code(a)
    });
    assert!(shadow_stack.callers().is_empty());
    shadow_stack.broken()
}

/// The call has 5 bytes, `hlt` one.
const FUNCTION: u64 = CODE + 6;
const RETURN_ADDRESS: u64 = CODE + 5;

fn inc(a: &mut CodeAssembler, register: Gpr) -> Result<(), IcedError> {
    let register = iced_x86::Register::RAX + u32::from(register.number());
    a.inc(gpr64::get_gpr64(register).unwrap())
}

#[test]
fn each_nonvolatile_register_must_be_kept() {
    for convention in [CallingConvention::WindowsX64, CallingConvention::SystemV] {
        for register in Gpr::ALL.into_iter().filter(|register| *register != Gpr::Rsp) {
            let broken = callee(convention, |a| {
                inc(a, register)?;
                a.ret()
            });
            let from = FUNCTION + 3;
            let nonvolatile = convention.is_nonvolatile(register);
            let expected = nonvolatile.then_some(Broken::Register { from, register });
            assert_eq!(broken, expected, "{register:?} {convention:?}");
        }
    }
}

#[test]
fn each_nonvolatile_vector_register_must_be_kept() {
    for number in 0..16 {
        let xmm = xmm::get_xmm(iced_x86::Register::XMM0 + u32::from(number)).unwrap();
        let change = |a: &mut CodeAssembler| {
            a.mov(eax, 1)?;
            a.movq(xmm, rax)?;
            a.ret()
        };
        let broken = callee(CallingConvention::WindowsX64, change);
        // movq has a byte more with a REX prefix for xmm8 and up, and it has that one for W anyway.
        let from = FUNCTION + 5 + 5;
        assert_eq!(broken, (number >= 6).then_some(Broken::Xmm { from, number }));
        assert_eq!(callee(CallingConvention::SystemV, change), None);
    }
}

#[test]
fn restored_registers_are_the_callers() {
    let broken = callee(CallingConvention::WindowsX64, |a| {
        a.push(rbx)?;
        a.mov(ebx, 1)?;
        a.pop(rbx)?;
        a.ret()
    });
    assert_eq!(broken, None);
}

#[test]
fn rsp_must_be_kept() {
    let broken = callee(CallingConvention::WindowsX64, |a| a.ret_1(8));
    assert_eq!(broken, Some(Broken::Register { from: FUNCTION, register: Gpr::Rsp }));
}

#[test]
fn control_must_come_back_behind_the_call() {
    let broken = callee(CallingConvention::WindowsX64, |a| {
        a.lea(rax, qword_ptr(FUNCTION + 13))?;
        a.mov(qword_ptr(rsp), rax)?;
        a.ret()?;
        a.hlt()
    });
    let (rip, expected) = (FUNCTION + 13, RETURN_ADDRESS);
    assert_eq!(broken, Some(Broken::Place { from: FUNCTION + 12, rip, expected }));
}

#[test]
fn a_return_needs_a_call() {
    let (shadow_stack, _) =
        run_from(ShadowStack::new(CallingConvention::WindowsX64), CodeAssembler::ret);
    assert_eq!(shadow_stack.broken(), Some(Broken::NoCall { from: CODE }));
    let (shadow_stack, _) = run_from(ShadowStack::new(CallingConvention::WindowsX64), |a| {
        machine_frame(a, CODE + 0x100)?;
        a.iretq()
    });
    assert!(matches!(shadow_stack.broken(), Some(Broken::NoCall { from }) if from > CODE));
}

#[test]
fn the_first_violation_is_kept() {
    let (shadow_stack, _) = run_from(ShadowStack::new(CallingConvention::WindowsX64), |a| {
        let (mut outer, mut inner) = (a.create_label(), a.create_label());
        a.call(outer)?;
        a.hlt()?;
        a.set_label(&mut outer)?;
        a.call(inner)?;
        a.inc(rsi)?;
        a.ret()?;
        a.set_label(&mut inner)?;
        a.inc(rbx)?;
        a.ret()
    });
    let from = FUNCTION + 5 + 4 + 3;
    assert_eq!(shadow_stack.broken(), Some(Broken::Register { from, register: Gpr::Rbx }));
    assert!(shadow_stack.callers().is_empty());
}

#[test]
fn callers_are_as_they_will_be_when_control_comes_back() {
    let (shadow_stack, machine) = run_from(ShadowStack::new(CallingConvention::WindowsX64), |a| {
        let mut function = a.create_label();
        a.mov(ebx, 7)?;
        a.call(function)?;
        a.set_label(&mut function)?;
        a.mov(ebx, 8)?;
        a.hlt()
    });
    let [caller] = shadow_stack.callers() else { panic!("{shadow_stack:?}") };
    assert_eq!(caller.from, Some(CODE + 5));
    assert_eq!(caller.position, Position::ReturnAddress);
    assert_eq!(caller.registers.rip, CODE + 10);
    assert_eq!(caller.registers.rsp(), RSP);
    assert_eq!(caller.registers.get(Gpr::Rbx), 7);
    assert_eq!(machine.read_u64(RSP - 8), Ok(CODE + 10));
}

#[test]
fn jumps_keep_the_stack() {
    let broken = callee(CallingConvention::WindowsX64, |a| {
        let mut target = a.create_label();
        a.push(rbx)?;
        a.inc(rbx)?;
        a.pop(rbx)?;
        a.jmp(target)?;
        a.hlt()?;
        a.set_label(&mut target)?;
        a.ret()
    });
    assert_eq!(broken, None);
}

/// Pushes a machine frame as an interrupt does.
fn machine_frame(a: &mut CodeAssembler, rip: u64) -> Result<(), IcedError> {
    for word in [0x2B, RSP - 0x100, 0x202, 0x33, rip] {
        a.push(word as i32)?;
    }
    Ok(())
}

/// Executes an interrupt that ends with `iretq`, whose machine frame leads to a `hlt` with this
/// rsp.
fn interrupted(
    rip: u64,
    code: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Option<Broken> {
    let mut shadow_stack = ShadowStack::new(CallingConvention::SystemV);
    let mut registers = Registers { rip, gpr: [0; 16], xmm: [0; 10] };
    registers.set(Gpr::Rsp, RSP - 0x100);
    shadow_stack.interrupt(registers, None);
    assert_eq!(shadow_stack.callers()[0].position, Position::Interrupted);
    let (shadow_stack, _) = run_from(shadow_stack, |a| {
        machine_frame(a, CODE + 0x100)?;
        code(a)?;
        a.iretq()?;
        a.hlt()
    });
    shadow_stack.broken()
}

/// After an interrupt, volatile registers must be preserved too.
#[test]
fn an_interrupt_returns_with_all_registers() {
    assert_eq!(interrupted(CODE + 0x100, |_| Ok(())), None);
    let broken = interrupted(CODE + 0x100, |a| a.inc(rax));
    let from = CODE + 5 * 5 + 3;
    // The first pushed word of the machine frame has an 8-bit immediate.
    let broken_from = broken.map(|broken| match broken {
        Broken::Register { from, register: Gpr::Rax } => from,
        other => panic!("{other}"),
    });
    assert!(broken_from.is_some_and(|at| at <= from && at > CODE), "{broken_from:x?}");
    assert!(matches!(interrupted(CODE, |_| Ok(())), Some(Broken::Place { expected: CODE, .. })));
}

#[test]
fn a_cut_leaves_the_outermost_callers() {
    let mut shadow_stack = ShadowStack::new(CallingConvention::WindowsX64);
    for rip in 0..5 {
        shadow_stack.call(Registers { rip, gpr: [0; 16], xmm: [0; 10] });
    }
    shadow_stack.cut(2);
    let rips: Vec<_> = shadow_stack.callers().iter().map(|caller| caller.registers.rip).collect();
    assert_eq!(rips, [0, 1]);
    assert_eq!(shadow_stack.broken(), None);
}
