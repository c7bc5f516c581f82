use super::*;
use core::ops::ControlFlow;

#[test]
fn calls_and_returns_keep_the_stack() {
    let machine = run(|a| {
        let (mut callee, mut end) = (a.create_label(), a.create_label());
        a.push(5)?;
        a.call(callee)?;
        a.lea(rbx, ptr(callee))?;
        a.push(7)?;
        a.call(rbx)?;
        a.push(rbx)?;
        a.push(9)?;
        a.call(qword_ptr(rsp + 8))?;
        a.jmp(end)?;
        a.set_label(&mut callee)?;
        a.add(rax, qword_ptr(rsp + 8))?;
        a.ret_1(8)?;
        a.set_label(&mut end)?;
        a.pop(rdx)
    });
    let cpu = machine.cpu();
    assert_eq!(cpu.get(Gpr::Rax), 5 + 7 + 9);
    assert_eq!((cpu.rsp(), cpu.get(Gpr::Rdx)), (RSP, cpu.get(Gpr::Rbx)));
}

#[test]
fn the_stack_pointer_is_pushed_and_popped_as_the_manual_says() {
    let machine = run(|a| {
        a.push(rsp)?;
        a.push(qword_ptr(rsp))?;
        a.mov(rax, rsp)?;
        // The destination's address counts from rsp after the pop.
        a.pop(qword_ptr(rsp + 8))?;
        a.pop(rbx)?;
        a.push(DATA as i32)?;
        a.pop(rsp)?;
        a.mov(rcx, rsp)?;
        a.mov(rsp, RSP)?;
        a.push(rbp)?;
        a.mov(rbp, rsp)?;
        a.sub(rsp, 0x100)?;
        a.leave()
    });
    let cpu = machine.cpu();
    assert_eq!(cpu.get(Gpr::Rax), RSP - 16);
    assert_eq!(value(&machine, RSP), RSP);
    assert_eq!(cpu.get(Gpr::Rbx), RSP);
    assert_eq!(cpu.get(Gpr::Rcx), DATA);
    assert_eq!((cpu.rsp(), cpu.get(Gpr::Rbp)), (RSP, 0));
}

#[test]
fn an_interrupt_return_takes_five_words() {
    let program = |cs: i32, ss: i32| {
        machine(move |a| {
            let mut target = a.create_label();
            a.push(ss)?;
            a.push(0x1234)?;
            a.push(0x8D5)?;
            a.push(cs)?;
            a.lea(rax, ptr(target))?;
            a.push(rax)?;
            a.iretq()?;
            a.set_label(&mut target)?;
            a.nop()
        })
    };
    let mut good = program(0x33, 0x2B);
    assert!(matches!(good.run(100), StopReason::Int3 { .. }));
    assert_eq!((good.cpu().rsp(), good.cpu().rflags()), (0x1234, 0xAD7));
    for (cs, ss) in [(0x23, 0x2B), (0x33, 0x33)] {
        let mut bad = program(cs, ss);
        assert!(matches!(bad.run(100), StopReason::GeneralProtection { .. }));
        assert_eq!(bad.cpu().rsp(), RSP - 40);
    }
}

#[test]
fn loops_count_down() {
    let machine = run(|a| {
        let (mut start, mut skip) = (a.create_label(), a.create_label());
        a.mov(ecx, 10)?;
        a.set_label(&mut start)?;
        a.inc(rax)?;
        a.loop_(start)?;
        a.jrcxz(skip)?;
        a.mov(rax, 0_u64)?;
        a.set_label(&mut skip)?;
        a.nop()
    });
    assert_eq!((machine.cpu().get(Gpr::Rax), machine.executed()), (10, 23));
}

#[test]
fn services_stop_whether_mapped_or_not() {
    let mut machine = machine(|a| {
        a.mov(rax, 0x7777_0000_u64)?;
        a.call(rax)?;
        a.nop()
    });
    machine.add_trap(0x7777_0000, 3);
    assert_eq!(machine.run(100), StopReason::Trap { address: 0x7777_0000, id: 3 });
    assert_eq!(machine.run(100), StopReason::Trap { address: 0x7777_0000, id: 3 }, "still there");
    assert_eq!(machine.step(), Err(StopReason::Trap { address: 0x7777_0000, id: 3 }));
    assert_eq!(machine.executed(), 2);
    // The host returns on behalf of the service, and the next call reaches another service.
    let back = value(&machine, machine.cpu().rsp());
    machine.cpu_mut().set(Gpr::Rsp, RSP);
    machine.cpu_mut().set_rip(back);
    assert_eq!(machine.add_trap(back, 9), None);
    assert_eq!(machine.run(100), StopReason::Trap { address: back, id: 9 });
    assert_eq!(machine.remove_trap(back), Some(9));
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    machine.remove_trap(0x7777_0000);
    machine.cpu_mut().set_rip(0x7777_0000);
    let fault = Fault { address: 0x7777_0000, access: Access::Execute, cause: Cause::Unmapped };
    assert_eq!(machine.run(100), StopReason::Fault { at: 0x7777_0000, fault });
}

#[test]
fn breakpoints_stop_before_and_are_passed_over_at_the_start() {
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.set_label(&mut start)?;
        a.inc(rax)?;
        a.jmp(start)
    });
    assert_eq!(machine.run(10), StopReason::Limit);
    assert!(machine.add_breakpoint(CODE));
    assert!(!machine.add_breakpoint(CODE));
    for n in 6..9 {
        assert_eq!(machine.run(100), StopReason::Breakpoint { address: CODE });
        assert_eq!(machine.cpu().get(Gpr::Rax), n);
    }
    assert_eq!(machine.run(0), StopReason::Limit);
    assert_eq!(machine.run(1), StopReason::Limit);
    assert_eq!(machine.step(), Ok(()));
    assert_eq!(machine.step(), Ok(()), "even with a breakpoint");
    assert_eq!(machine.step(), Ok(()));
    assert_eq!(machine.step(), Ok(()));
    assert_eq!(machine.cpu().get(Gpr::Rax), 11);
    assert!(machine.remove_breakpoint(CODE));
    assert!(!machine.remove_breakpoint(CODE));
    assert_eq!(machine.run(100), StopReason::Limit);
}

#[test]
fn a_run_stops_where_a_condition_holds() {
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.set_label(&mut start)?;
        a.inc(rax)?;
        a.jmp(start)
    });
    let stop = machine.run_until(|cpu| cpu.get(Gpr::Rax) == 50, 1000);
    assert!(matches!(stop, StopReason::Observer { .. }));
    assert_eq!((machine.executed(), machine.cpu().get(Gpr::Rax)), (99, 50));
    assert_eq!(machine.run_until(|_| false, 1000), StopReason::Limit);
}

/// An observer that records all events.
#[derive(Default)]
struct Diary(Vec<(&'static str, u64, u64, u64)>);

impl Observer for Diary {
    const STEPS: bool = true;

    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        self.0.push(("step", cpu.rip() - CODE, 0, cpu.rsp()));
        ControlFlow::Continue(())
    }

    fn on_call(&mut self, cpu: &Cpu, from: u64, back: u64) {
        self.0.push(("call", from - CODE, cpu.rip() - CODE, cpu.rsp()));
        self.0.push(("back", back - CODE, 0, 0));
    }

    fn on_return(&mut self, cpu: &Cpu, from: u64) {
        self.0.push(("return", from - CODE, cpu.rip() - CODE, cpu.rsp()));
    }

    fn on_jump(&mut self, cpu: &Cpu, from: u64) {
        self.0.push(("jump", from - CODE, cpu.rip() - CODE, cpu.rsp()));
    }
}

#[test]
fn observers_get_all_events_in_order() {
    // call +3; jne +1 (taken once); int3; nop; ret
    let mut machine = with_code(&[0xE8, 3, 0, 0, 0, 0x75, 1, 0xCC, 0x90, 0xC3]);
    machine.cpu_mut().set(Gpr::Rsp, RSP);
    let mut diary = Diary::default();
    assert_eq!(machine.run_with(&mut diary, 4), StopReason::Limit);
    let expected = [
        ("step", 0, 0, RSP),
        ("call", 0, 8, RSP - 8),
        ("back", 5, 0, 0),
        ("step", 8, 0, RSP - 8),
        ("step", 9, 0, RSP - 8),
        ("return", 9, 5, RSP),
        ("step", 5, 0, RSP),
        ("jump", 5, 8, RSP),
    ];
    assert_eq!(diary.0, expected);
    // A jump that is not taken is not reported; a stop is not a step.
    machine.cpu_mut().set_rip(CODE + 5);
    machine.cpu_mut().set_rflags(1 << 6);
    diary.0.clear();
    assert_eq!(machine.run_with(&mut diary, 4), StopReason::Int3 { address: CODE + 7 });
    assert_eq!(diary.0, [("step", 5, 0, RSP), ("step", 7, 0, RSP)]);
}

#[test]
fn unsupported_instructions_are_named() {
    let stop = |code: &[u8]| {
        let mut machine = with_code(code);
        let before = *machine.cpu();
        let stop = machine.step().unwrap_err();
        assert_eq!(*machine.cpu(), before);
        stop.to_string()
    };
    assert_eq!(stop(&[0x0F, 0x31]), "Rdtsc at 0x10000 is not implemented");
    assert_eq!(stop(&[0xD9, 0xC0]), "Fld_sti at 0x10000 is not implemented");
    let zmm = stop(&[0x62, 0xF1, 0x7C, 0x48, 0x10, 0x00]);
    assert_eq!(zmm, "EVEX_Vmovups_zmm_k1z_zmmm512 at 0x10000 is not implemented");
    let ymm = stop(&[0xC5, 0xFC, 0x10, 0x00]);
    assert_eq!(ymm, "VEX_Vmovups_ymm_ymmm256 at 0x10000 is not implemented");
    assert_eq!(stop(&[0x67, 0x8B, 0x00]), "Mov_r32_rm32 at 0x10000 is not implemented");
    assert_eq!(stop(&[0x0F, 0x0B]), "invalid instruction at 0x10000");
    assert_eq!(stop(&[0x06]), "invalid instruction at 0x10000");
    assert_eq!(stop(&[0xF4]), "general protection fault at 0x10000");
    assert_eq!(stop(&[0x0F, 0x05]), "interrupt or system call at 0x10000");
    assert_eq!(stop(&[0xCC]), "int3 at 0x10000");
}

#[test]
fn segments_have_bases() {
    let mut machine = with_code(&[
        0x65, 0x48, 0x8B, 0x04, 0x25, 0x30, 0, 0, 0, // mov rax, gs:[0x30]
        0x65, 0x48, 0x8B, 0x4B, 0x08, // mov rcx, gs:[rbx+8]
        0x64, 0x48, 0x8B, 0x14, 0xDD, 0, 0, 0, 0, // mov rdx, fs:[rbx*8]
        0x65, 0x48, 0x8B, 0x14, 0x1B, // mov rdx, gs:[rbx+rbx]: no place left
    ]);
    machine.cpu_mut().set_gs_base(DATA);
    machine.cpu_mut().set_fs_base(DATA + 0x100);
    machine.cpu_mut().set(Gpr::Rbx, 0x10);
    assert!(matches!(machine.run(9), StopReason::Unimplemented { .. }));
    let cpu = machine.cpu();
    let expected = [(Gpr::Rax, 0x30), (Gpr::Rcx, 0x18), (Gpr::Rdx, 0x180)];
    for (register, at) in expected {
        assert_eq!(cpu.get(register), value(&machine, DATA + at), "{}", register.name());
    }
}

#[test]
fn lea_adds_no_base_of_a_segment() {
    // lea rax, gs:[rbx+rbx]
    let mut machine = with_code(&[0x65, 0x48, 0x8D, 0x04, 0x1B]);
    machine.cpu_mut().set_gs_base(DATA);
    machine.cpu_mut().set(Gpr::Rbx, 0x10);
    machine.step().unwrap();
    assert_eq!(machine.cpu().get(Gpr::Rax), 0x20);
}

#[test]
fn addresses_relative_to_rip_count_from_the_next_instruction() {
    let machine = run(|a| {
        let mut data = a.create_label();
        let mut end = a.create_label();
        a.cmp(dword_ptr(data), 0x1234_5678)?;
        a.jne(end)?;
        a.mov(eax, dword_ptr(data))?;
        a.lea(r15, ptr(data))?;
        a.jmp(end)?;
        a.set_label(&mut data)?;
        a.dd(&[0x1234_5678])?;
        a.set_label(&mut end)?;
        a.nop()
    });
    assert_eq!(machine.cpu().get(Gpr::Rax), 0x1234_5678);
    assert_eq!(value(&machine, machine.cpu().get(Gpr::R15)) as u32, 0x1234_5678);
}
