use super::*;

/// The code that a store puts in place of `inc rax`.
const DEC_RAX: [u8; 3] = [0x48, 0xFF, 0xC8];

#[test]
fn code_that_changes_itself_is_decoded_anew() {
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.lea(rbx, ptr(start))?;
        a.mov(ecx, 5)?;
        a.set_label(&mut start)?;
        a.inc(rax)?;
        // inc to dec, and back.
        a.xor(byte_ptr(rbx + 2), 8)?;
        a.dec(rcx)?;
        a.jne(start)
    });
    machine.protect(CODE, 1, Protection::READ_EXECUTE | Protection::WRITE).unwrap();
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    assert_eq!(machine.cpu().get(Gpr::Rax), 1, "up, down, up, down, up");
}

#[test]
fn string_instructions_and_the_host_change_code_too() {
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.set_label(&mut start)?;
        a.inc(rax)?;
        a.mov(rsi, DATA + 0x1000)?;
        a.lea(rdi, ptr(start))?;
        a.mov(ecx, 3)?;
        a.rep().movsb()?;
        a.jmp(start)
    });
    machine.protect(CODE, 1, Protection::READ_EXECUTE | Protection::WRITE).unwrap();
    machine.write(DATA + 0x1000, &DEC_RAX).unwrap();
    assert_eq!(machine.run(8 + 8 + 1), StopReason::Limit);
    assert_eq!(machine.cpu().get(Gpr::Rax), u64::MAX);
    machine.write(CODE, &[0x48, 0xFF, 0xC0]).unwrap();
    machine.cpu_mut().set_rip(CODE);
    machine.step().unwrap();
    assert_eq!(machine.cpu().get(Gpr::Rax), 0);
}

#[test]
fn an_instruction_over_the_end_of_a_page_has_bytes_on_both() {
    let mut machine = with_code(&[]);
    let at = CODE + 0xFFD;
    // mov rax, 0x1122334455667788
    let code = [0x48, 0xB8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
    machine.write(at, &code).unwrap();
    let load = |machine: &mut Machine| {
        machine.cpu_mut().set_rip(at);
        machine.step().map(|()| machine.cpu().get(Gpr::Rax))
    };
    assert_eq!(load(&mut machine), Ok(0x1122_3344_5566_7788));
    machine.write(CODE + 0x1006, &[0xEE]).unwrap();
    assert_eq!(load(&mut machine), Ok(0xEE22_3344_5566_7788));
    let fault = |cause| Fault { address: CODE + 0x1000, access: Access::Execute, cause };
    machine.protect(CODE + 0x1000, 1, Protection::READ_WRITE).unwrap();
    let stop = StopReason::Fault { at, fault: fault(Cause::Protected) };
    assert_eq!(load(&mut machine), Err(stop));
    machine.unmap(CODE + 0x1000, 1).unwrap();
    let stop = StopReason::Fault { at, fault: fault(Cause::Unmapped) };
    assert_eq!(load(&mut machine), Err(stop));
    // An instruction that ends with the page is not affected.
    machine.write(CODE + 0xFFF, &[0x90]).unwrap();
    machine.cpu_mut().set_rip(CODE + 0xFFF);
    assert_eq!(machine.step(), Ok(()));
}

#[test]
fn faults_leave_everything_as_it_was() {
    let programs: [(Program, Access, u64); 12] = [
        (|a| a.push(rax), Access::Write, 0x5_0000 - 8),
        (|a| a.pop(rax), Access::Read, 0x5_0000),
        (|a| a.call(rax), Access::Write, 0x5_0000 - 8),
        (|a| a.ret(), Access::Read, 0x5_0000),
        (|a| a.pop(qword_ptr(rbx)), Access::Read, 0x5_0000),
        (|a| a.push(qword_ptr(rbx)), Access::Read, 0x6_0000),
        (|a| a.add(qword_ptr(rbx), rcx), Access::Read, 0x6_0000),
        (|a| a.sub(qword_ptr(rdx), rcx), Access::Write, CODE),
        (|a| a.xadd(qword_ptr(rdx), rcx), Access::Write, CODE),
        (|a| a.xchg(qword_ptr(rdx), rcx), Access::Write, CODE),
        (|a| a.movsb(), Access::Write, CODE),
        (|a| a.iretq(), Access::Read, 0x5_0000),
    ];
    for (n, (program, access, address)) in programs.into_iter().enumerate() {
        let mut machine = machine(program);
        for (register, value) in [
            (Gpr::Rsp, 0x5_0000),
            (Gpr::Rbx, 0x6_0000),
            (Gpr::Rdx, CODE),
            (Gpr::Rcx, 77),
            (Gpr::Rsi, DATA),
            (Gpr::Rdi, CODE),
        ] {
            machine.cpu_mut().set(register, value);
        }
        machine.cpu_mut().set_rflags(0x8D5);
        let before = *machine.cpu();
        let code = value(&machine, CODE);
        let cause = if address == CODE { Cause::Protected } else { Cause::Unmapped };
        let fault = Fault { address, access, cause };
        assert_eq!(machine.step(), Err(StopReason::Fault { at: CODE, fault }), "program {n}");
        assert_eq!(*machine.cpu(), before, "program {n}");
        assert_eq!((value(&machine, CODE), machine.executed()), (code, 0), "program {n}");
    }
}

#[test]
fn a_pop_that_cannot_be_stored_is_none() {
    let mut machine = machine(|a| a.pop(qword_ptr(rdx)));
    machine.cpu_mut().set(Gpr::Rdx, CODE);
    let fault = Fault { address: CODE, access: Access::Write, cause: Cause::Protected };
    assert_eq!(machine.step(), Err(StopReason::Fault { at: CODE, fault }));
    assert_eq!(machine.cpu().rsp(), RSP);
}

#[test]
fn the_host_takes_access_away_at_once() {
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.set_label(&mut start)?;
        a.inc(qword_ptr(rbx))?;
        a.mov(rcx, qword_ptr(rbx))?;
        a.jmp(start)
    });
    machine.cpu_mut().set(Gpr::Rbx, DATA);
    machine.write(DATA, &[0; 8]).unwrap();
    assert_eq!(machine.run(6), StopReason::Limit);
    let mut stop = |protection, access, cause| {
        let fault = Fault { address: DATA, access, cause };
        machine.protect(DATA, 1, protection).unwrap();
        let stop = machine.run(100);
        assert_eq!(stop, StopReason::Fault { at: machine.cpu().rip(), fault });
        machine.protect(DATA, 1, Protection::READ_WRITE).unwrap();
        assert_eq!(machine.run(6), StopReason::Limit);
    };
    stop(Protection::READ, Access::Write, Cause::Protected);
    stop(Protection::NONE, Access::Read, Cause::Protected);
    machine.unmap(DATA, 1).unwrap();
    let fault = Fault { address: DATA, access: Access::Read, cause: Cause::Unmapped };
    assert_eq!(machine.run(6), StopReason::Fault { at: CODE, fault });
    machine.map(DATA, 1, Protection::READ_WRITE).unwrap();
    assert_eq!(machine.run(6), StopReason::Limit);
    assert_eq!(machine.cpu().get(Gpr::Rcx), 2, "a new page, of zeroes");
}

#[test]
fn guard_pages_stop_until_the_host_lifts_them() {
    let mut machine = machine(|a| a.mov(byte_ptr(rbx), 1));
    machine.cpu_mut().set(Gpr::Rbx, STACK + 8);
    machine.protect(STACK, 1, Protection::READ_WRITE | Protection::GUARD).unwrap();
    let fault = Fault { address: STACK + 8, access: Access::Write, cause: Cause::Guard };
    for _ in 0..2 {
        assert_eq!(machine.step(), Err(StopReason::Fault { at: CODE, fault }));
        assert!(machine.read_u64(STACK).is_err());
    }
    machine.protect(STACK, 1, Protection::READ_WRITE).unwrap();
    assert_eq!(machine.step(), Ok(()));
    assert_eq!(value(&machine, STACK + 8), 1);
}

#[test]
fn the_log_has_the_accesses_of_instructions() {
    let mut machine = machine(|a| {
        a.push(rax)?;
        a.add(byte_ptr(rbx), al)?;
        a.movups(xmm0, ptr(rbx))?;
        a.pop(rcx)
    });
    machine.cpu_mut().set(Gpr::Rax, 0x0101_0101_0101_0105);
    machine.cpu_mut().set(Gpr::Rbx, DATA + 1);
    machine.set_access_log(true);
    machine.run(100);
    let access = |address, size, kind, value| MemoryAccess { address, size, kind, value };
    let vector = 0x100F_0E0D_0C0B_0A09_0807_0605_0403_0206;
    let expected = [
        access(RSP - 8, 8, AccessKind::Write, 0x0101_0101_0101_0105),
        access(DATA + 1, 1, AccessKind::Read, 1),
        access(DATA + 1, 1, AccessKind::Write, 6),
        access(DATA + 1, 16, AccessKind::Read, vector),
        access(RSP - 8, 8, AccessKind::Read, 0x0101_0101_0101_0105),
    ];
    assert_eq!(machine.take_accesses(), expected);
    machine.set_access_log(false);
    machine.cpu_mut().set_rip(CODE);
    machine.run(100);
    assert_eq!(machine.take_accesses(), []);
}

#[test]
fn runs_are_rewound_to_any_saved_step() {
    // Every state depends on the previous ones, in registers and in memory.
    let mut machine = machine(|a| {
        let mut start = a.create_label();
        a.set_label(&mut start)?;
        a.mov(rax, 6_364_136_223_846_793_005_u64)?;
        a.imul_2(rbx, rax)?;
        a.add(rbx, rsp)?;
        a.mov(rcx, rbx)?;
        a.and(rcx, 0x1FF8)?;
        a.add(qword_ptr(rcx + DATA as i32), rbx)?;
        a.add(rbx, qword_ptr(rcx + DATA as i32))?;
        a.jmp(start)
    });
    let state = |machine: &Machine| {
        let mut memory = vec![0; 0x2000];
        machine.read(DATA, &mut memory).unwrap();
        (*machine.cpu(), memory, machine.executed())
    };
    let mut saved = Vec::new();
    for _ in 0..20 {
        saved.push((machine.save(), state(&machine)));
        assert_eq!(machine.run(1001), StopReason::Limit);
    }
    let end = state(&machine);
    for (snapshot, expected) in saved.iter().rev() {
        machine.restore(snapshot).unwrap();
        assert!(state(&machine) == *expected);
        assert_eq!(snapshot.cpu(), machine.cpu());
        assert_eq!(machine.run(1001), StopReason::Limit);
    }
    machine.restore(&saved[0].0).unwrap();
    assert_eq!(machine.restore(&saved[1].0), Err(StaleSavePoint));
    assert_eq!(machine.run(20 * 1001), StopReason::Limit);
    assert!(state(&machine) == end, "the same execution again");
    machine.forget_snapshots();
    assert_eq!(machine.restore(&saved[0].0), Err(StaleSavePoint));
    assert!(state(&machine) == end);
}

#[test]
fn code_is_rewound_too() {
    let mut machine = with_code(&[0x48, 0xFF, 0xC0, 0xEB, 0xFB]);
    machine.protect(CODE, 1, Protection::READ_EXECUTE | Protection::WRITE).unwrap();
    machine.run(4);
    let before = machine.save();
    machine.write(CODE, &DEC_RAX).unwrap();
    machine.run(20);
    assert_eq!(machine.cpu().get(Gpr::Rax), 2_u64.wrapping_sub(10));
    machine.restore(&before).unwrap();
    machine.run(20);
    assert_eq!(machine.cpu().get(Gpr::Rax), 12);
    machine.unmap(CODE, 1).unwrap();
    assert!(matches!(machine.run(20), StopReason::Fault { .. }));
    machine.restore(&before).unwrap();
    assert_eq!(machine.run(20), StopReason::Limit);
}

/// The host reads the same bytes by all paths: on a page that an instruction has used, on one that
/// none has used, across the end of a page, and on unreadable pages.
#[test]
fn the_host_reads_the_same_in_every_way() {
    let mut machine = Machine::new();
    machine.map(0x1000, 1, Protection::READ_EXECUTE).unwrap();
    machine.map(0x8000, 2, Protection::READ_WRITE).unwrap();
    machine.map(0xA000, 1, Protection::READ_WRITE | Protection::GUARD).unwrap();
    let bytes: Vec<u8> = (0..0x2000).map(|i: u32| (i ^ i >> 8) as u8).collect();
    machine.write(0x8000, &bytes).unwrap();
    // mov rax, [rsp]
    machine.write(0x1000, &[0x48, 0x8B, 0x04, 0x24]).unwrap();
    assert!(machine.window(0x9000, 8).is_some(), "it was written to");
    // Pages are not remembered while accesses are logged.
    machine.set_access_log(true);
    machine.set_access_log(false);
    for touched in [false, true] {
        if touched {
            machine.cpu_mut().set_rip(0x1000);
            machine.cpu_mut().set(Gpr::Rsp, 0x8010);
            machine.step().unwrap();
        }
        for address in [0x8000, 0x8010, 0x8FF8, 0x8FF9, 0x9000, 0x9FF0, 0x9FF9, 0xA000, 0x7FFF] {
            let mut plain = [0; 16];
            let read = machine.read(address, &mut plain);
            assert_eq!(machine.read_u128(address), read.map(|()| u128::from_le_bytes(plain)));
            let mut plain = [0; 8];
            let read = machine.read(address, &mut plain);
            assert_eq!(machine.read_u64(address), read.map(|()| u64::from_le_bytes(plain)));
            if let Some(window) = machine.window(address, 8) {
                assert!(touched && address < 0x9000, "{address:#x}");
                assert_eq!(window, plain);
            }
        }
    }
    assert_eq!(machine.window(0x8FF9, 8), None, "it crosses the end of the page");
    assert!(machine.window(0x8FF8, 8).is_some());
}
