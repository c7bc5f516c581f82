use super::*;

const ZF: u64 = 1 << 6;
const DF: u64 = 1 << 10;

fn registers<const N: usize>(machine: &Machine, registers: [Gpr; N]) -> [u64; N] {
    registers.map(|register| machine.cpu().get(register))
}

#[test]
fn quotients_that_do_not_fit_are_errors() {
    let machine = run(|a| {
        a.mov(rdx, 1_u64)?;
        a.mov(rax, 3_u64)?;
        a.mov(rbx, 0x10_u64)?;
        a.div(rbx)?;
        a.mov(r8, rax)?;
        a.mov(r9, rdx)?;
        a.mov(rax, 0_u64.wrapping_sub(7))?;
        a.cqo()?;
        a.mov(rbx, 2_u64)?;
        a.idiv(rbx)?;
        a.mov(r10, rax)?;
        a.mov(r11, rdx)?;
        a.mov(ax, 0xFFF9)?;
        a.mov(bl, 2)?;
        a.idiv(bl)
    });
    let all = [Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];
    assert_eq!(registers(&machine, all), [1 << 60, 3, u64::MAX - 2, u64::MAX]);
    assert_eq!(machine.cpu().get(Gpr::Rax) & 0xFFFF, 0xFFFD);
    let programs: [Program; 5] =
        [|a| a.div(rbx), |a| a.idiv(ebx), |a| a.div(cl), |a| a.idiv(rcx), |a| a.idiv(r8)];
    for (n, program) in programs.into_iter().enumerate() {
        let mut machine = super::machine(program);
        // rbx is 0; rdx:rax is too large for rcx; the minimum divided by -1 overflows.
        let values = if n == 4 {
            [(Gpr::Rax, 0), (Gpr::Rdx, 1 << 63), (Gpr::R8, u64::MAX)]
        } else {
            [(Gpr::Rax, 0x100), (Gpr::Rdx, 0x100), (Gpr::Rcx, 1)]
        };
        for (register, value) in values {
            machine.cpu_mut().set(register, value);
        }
        let before = *machine.cpu();
        assert_eq!(machine.step(), Err(StopReason::DivideError { address: CODE }), "program {n}");
        assert_eq!(*machine.cpu(), before);
    }
}

#[test]
fn exchanges_compare_first() {
    let machine = run(|a| {
        a.mov(rbx, DATA)?;
        a.mov(qword_ptr(rbx), 5)?;
        a.mov(eax, 5)?;
        a.mov(ecx, 6)?;
        a.lock().cmpxchg(qword_ptr(rbx), rcx)?;
        a.setz(dl)?;
        a.mov(ecx, 7)?;
        a.lock().cmpxchg(qword_ptr(rbx), rcx)?;
        a.mov(r8, rax)?;
        a.setz(dh)?;
        a.mov(ecx, 10)?;
        a.lock().xadd(qword_ptr(rbx), rcx)?;
        a.mov(r9, qword_ptr(rbx))?;
        a.xchg(qword_ptr(rbx), rcx)?;
        a.mov(r10, qword_ptr(rbx))
    });
    let all = [Gpr::Rdx, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::Rcx];
    assert_eq!(registers(&machine, all), [1, 6, 16, 6, 16]);
    let mut pair = super::machine(|a| a.cmpxchg16b(ptr(rsi)));
    for (register, value) in [(Gpr::Rbx, 3), (Gpr::Rcx, 4), (Gpr::Rsi, DATA)] {
        pair.cpu_mut().set(register, value);
    }
    pair.step().unwrap();
    let old = [value(&pair, DATA), value(&pair, DATA + 8)];
    assert_eq!(registers(&pair, [Gpr::Rax, Gpr::Rdx]), old);
    pair.cpu_mut().set_rip(CODE);
    pair.step().unwrap();
    assert_eq!([value(&pair, DATA), value(&pair, DATA + 8)], [3, 4]);
    pair.cpu_mut().set_rip(CODE);
    pair.cpu_mut().set(Gpr::Rsi, DATA + 8);
    assert_eq!(pair.step(), Err(StopReason::GeneralProtection { address: CODE }));
}

#[test]
fn string_instructions_repeat_element_by_element() {
    let mut machine = machine(|a| {
        a.rep().movsb()?;
        a.std()?;
        a.mov(ecx, 3)?;
        a.rep().stosw()?;
        a.cld()?;
        a.mov(rdi, DATA)?;
        a.mov(ecx, 100)?;
        a.mov(al, 7)?;
        a.repne().scasb()
    });
    for (register, value) in
        [(Gpr::Rsi, DATA + 1), (Gpr::Rdi, DATA + 0x1000), (Gpr::Rcx, 5), (Gpr::Rax, 0xABCD)]
    {
        machine.cpu_mut().set(register, value);
    }
    machine.step().unwrap();
    assert_eq!(registers(&machine, [Gpr::Rcx, Gpr::Rdi]), [4, DATA + 0x1001]);
    assert_eq!(machine.cpu().rip(), CODE, "not done yet");
    machine.run(4);
    assert_eq!(machine.cpu().rip(), CODE + 2);
    assert_eq!(value(&machine, DATA + 0x1000) as u32, 0x0403_0201);
    machine.run(1);
    assert_eq!(machine.cpu().rflags() & DF, DF);
    machine.run(4);
    assert_eq!(machine.cpu().get(Gpr::Rdi), DATA + 0x0FFF);
    assert_eq!(
        value(&machine, DATA + 0x1001),
        0xABCD_ABCD_ABCD_u64 >> 32 | value(&machine, DATA + 0x1001) & !0xFFFF | 0xABCD
    );
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    assert_eq!(registers(&machine, [Gpr::Rcx, Gpr::Rdi]), [92, DATA + 8]);
    assert_eq!(machine.cpu().rflags() & ZF, ZF);
}

#[test]
fn flags_go_to_the_stack_and_back() {
    let machine = run(|a| {
        a.push(0x8D5)?;
        a.popfq()?;
        a.pushfq()?;
        a.pop(r8)?;
        a.stc()?;
        a.cmc()?;
        a.lahf()?;
        a.mov(ah, 0x41)?;
        a.sahf()?;
        a.pushfq()?;
        a.pop(rbx)?;
        a.add(byte_ptr(DATA), 1)?;
        a.or(word_ptr(DATA), cx)?;
        a.and(dword_ptr(DATA), edx)?;
        a.cmp(qword_ptr(DATA), rdx)?;
        a.test(eax, esi)?;
        a.cmp(ax, dx)?;
        a.neg(rcx)?;
        a.not(rcx)
    });
    assert_eq!(machine.cpu().get(Gpr::R8), 0xAD7);
    assert_eq!(machine.cpu().get(Gpr::Rbx), 0xA02 | 0x41);
    assert_eq!(machine.cpu().get(Gpr::Rcx), u64::MAX);
}
