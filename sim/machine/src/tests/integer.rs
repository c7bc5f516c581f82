use super::*;

const CF: u64 = 1;
const ZF: u64 = 1 << 6;
const DF: u64 = 1 << 10;
const OF: u64 = 1 << 11;

fn registers<const N: usize>(machine: &Machine, registers: [Gpr; N]) -> [u64; N] {
    registers.map(|register| machine.cpu().get(register))
}

#[test]
fn narrow_registers_are_parts_of_wide_ones() {
    let machine = run(|a| {
        a.mov(rax, 0x1122_3344_5566_7788_u64)?;
        a.mov(rbx, rax)?;
        a.mov(rcx, rax)?;
        a.mov(rdx, rax)?;
        a.mov(ah, 0xAA)?;
        a.mov(bh, ah)?;
        a.mov(bx, 0x1234)?;
        a.add(bh, al)?;
        a.mov(ecx, ecx)?;
        a.mov(dl, cl)?;
        a.xchg(dl, ah)
    });
    let expected =
        [0x1122_3344_5566_8888, 0x1122_3344_5566_9A34, 0x5566_7788, 0x1122_3344_5566_77AA];
    assert_eq!(registers(&machine, [Gpr::Rax, Gpr::Rbx, Gpr::Rcx, Gpr::Rdx]), expected);
}

#[test]
fn movzx_from_a_word_to_a_word_moves_all_of_it() {
    // movzx cx, dx
    let mut machine = with_code(&[0x66, 0x0F, 0xB7, 0xCA]);
    machine.cpu_mut().set(Gpr::Rcx, 0x1111_1111_1111_1111);
    machine.cpu_mut().set(Gpr::Rdx, 0x8765);
    machine.step().unwrap();
    assert_eq!(machine.cpu().get(Gpr::Rcx), 0x1111_1111_1111_8765);
}

#[test]
fn extensions_fill_the_rest() {
    let machine = run(|a| {
        a.mov(rax, 0x1111_2222_3333_80F0_u64)?;
        a.movsx(rbx, al)?;
        a.movsx(ecx, ax)?;
        a.movsxd(rdx, eax)?;
        a.movzx(esi, ax)?;
        a.movzx(edi, al)?;
        a.mov(r8, rax)?;
        a.cbw()?;
        a.mov(r9, rax)?;
        a.mov(eax, 0x8000_0000_u32)?;
        a.cdq()?;
        a.mov(r10, rdx)?;
        a.cdqe()?;
        a.cqo()?;
        a.mov(r11, rdx)?;
        a.mov(ax, 0x8000)?;
        a.cwde()
    });
    let all = [Gpr::Rbx, Gpr::Rcx, Gpr::Rsi, Gpr::Rdi, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::Rax];
    let expected = [
        0xFFFF_FFFF_FFFF_FFF0,
        0xFFFF_80F0,
        0x80F0,
        0xF0,
        0x1111_2222_3333_FFF0,
        0xFFFF_FFFF,
        u64::MAX,
        0xFFFF_8000,
    ];
    assert_eq!(registers(&machine, all), expected);
}

#[test]
fn products_have_two_halves() {
    let machine = run(|a| {
        a.mov(rax, u64::MAX)?;
        a.mov(rbx, 16_u64)?;
        a.mul(rbx)?;
        a.mov(r8, rax)?;
        a.mov(r9, rdx)?;
        a.mov(rax, u64::MAX - 1)?;
        a.imul(rbx)?;
        a.mov(r10, rax)?;
        a.mov(r11, rdx)?;
        a.imul_3(r12, rbx, -3)?;
        a.mov(eax, 0xFF0C)?;
        a.mov(cl, 20)?;
        a.mul(cl)
    });
    let all = [Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::R12, Gpr::Rax];
    let expected = [u64::MAX - 15, 15, u64::MAX - 31, u64::MAX, u64::MAX - 47, 240];
    assert_eq!(registers(&machine, all), expected);
    assert_eq!(machine.cpu().rflags() & (CF | OF), 0);
    let overflow = run(|a| {
        a.mov(eax, 0x10000)?;
        a.imul_2(eax, eax)
    });
    assert_eq!(overflow.cpu().rflags() & (CF | OF), CF | OF);
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
fn bits_are_tested_and_found() {
    let machine = run(|a| {
        a.mov(rax, DATA)?;
        a.mov(rcx, -9_i64)?;
        // Bit -9 of the second page is bit 7 of the second byte before it.
        a.mov(qword_ptr(rax + 0xFF8), 0)?;
        a.bts(qword_ptr(rax + 0x1000), rcx)?;
        a.bts(dword_ptr(rax + 0x1000), ecx)?;
        a.btc(dword_ptr(rax + 0xFFC), 24)?;
        a.mov(r8, qword_ptr(rax + 0xFF8))?;
        a.mov(edx, 0x50)?;
        a.bsf(rbx, rdx)?;
        a.bsr(rsi, rdx)?;
        a.popcnt(rdi, rdx)?;
        a.tzcnt(r9, rdx)?;
        a.lzcnt(r10, rdx)?;
        a.btr(rdx, 4)?;
        a.mov(r11, rdx)?;
        a.bswap(rdx)?;
        a.bt(r11, 6)
    });
    let all = [Gpr::R8, Gpr::Rbx, Gpr::Rsi, Gpr::Rdi, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::Rdx];
    assert_eq!(registers(&machine, all), [1 << 55 | 1 << 56, 4, 6, 2, 4, 57, 0x40, 0x40 << 56]);
    assert_eq!(machine.cpu().rflags() & CF, CF);
    let none = run(|a| {
        a.mov(rbx, 99_u64)?;
        a.bsf(rbx, rcx)
    });
    assert_eq!(none.cpu().get(Gpr::Rbx), 99, "nothing found, nothing changed");
    assert_eq!(none.cpu().rflags() & ZF, ZF);
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
fn conditions_move_and_set() {
    let machine = run(|a| {
        a.mov(rax, u64::MAX)?;
        a.mov(rbx, u64::MAX)?;
        a.xor(ecx, ecx)?;
        a.cmovne(eax, ecx)?;
        a.cmove(rbx, rcx)?;
        a.sete(byte_ptr(rcx + DATA as i32))?;
        a.setne(byte_ptr(rcx + DATA as i32 + 1))
    });
    // A 32-bit destination loses its upper half even if nothing is moved.
    assert_eq!(registers(&machine, [Gpr::Rax, Gpr::Rbx]), [0xFFFF_FFFF, 0]);
    assert_eq!(value(&machine, DATA) as u16, 1);
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

#[test]
fn bmi_instructions_use_three_operands() {
    // andn rax, rbx, rcx; shlx rdx, rcx, rbx; mulx rsi, rdi, rcx; rorx r8, rcx, 4; blsr r9, rcx
    let mut machine = with_code(&[
        0xC4, 0xE2, 0xE0, 0xF2, 0xC1, 0xC4, 0xE2, 0xE1, 0xF7, 0xD1, 0xC4, 0xE2, 0xC3, 0xF6, 0xF1,
        0xC4, 0x63, 0xFB, 0xF0, 0xC1, 0x04, 0xC4, 0xE2, 0xB0, 0xF3, 0xC9,
    ]);
    machine.cpu_mut().set(Gpr::Rbx, 0x64);
    machine.cpu_mut().set(Gpr::Rcx, 0xF6);
    for n in 0..5 {
        assert_eq!(machine.step(), Ok(()), "instruction {n}");
    }
    let all = [Gpr::Rax, Gpr::Rdx, Gpr::Rdi, Gpr::Rsi, Gpr::R8, Gpr::R9];
    let product = (0xF6 << 36) * 0xF6;
    assert_eq!(registers(&machine, all), [0x92, 0xF6 << 36, product, 0, 0x6 << 60 | 0xF, 0xF4]);
}
