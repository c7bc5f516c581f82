use super::*;

#[test]
fn moves_take_as_many_bytes_as_their_size() {
    let mut machine = machine(|a| {
        a.movups(xmm0, ptr(rbx + 1))?;
        a.movaps(ptr(rbx + 0x100), xmm0)?;
        a.movsd_2(xmm0, qword_ptr(rbx))?;
        a.movss(xmm1, dword_ptr(rbx))?;
        a.movsd_2(xmm2, xmm0)?;
        a.movhps(xmm3, qword_ptr(rbx))?;
        a.movlhps(xmm3, xmm2)?;
        a.movq(rax, xmm0)?;
        a.movd(xmm4, eax)?;
        a.movq(xmm5, xmm2)?;
        a.movlps(qword_ptr(rbx + 0x200), xmm3)?;
        a.movhps(qword_ptr(rbx + 0x208), xmm2)?;
        a.movss(dword_ptr(rbx + 0x210), xmm0)
    });
    machine.cpu_mut().set(Gpr::Rbx, DATA);
    for n in 0..6 {
        machine.cpu_mut().set_xmm(n, 0xEE << 120 | 0xDD);
    }
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    let cpu = machine.cpu();
    let low = 0x0706_0504_0302_0100;
    assert_eq!(value(&machine, DATA + 0x100), 0x0807_0605_0403_0201);
    assert_eq!(value(&machine, DATA + 0x108), 0x100F_0E0D_0C0B_0A09);
    assert_eq!((cpu.xmm(0), cpu.xmm(1)), (low, low & 0xFFFF_FFFF));
    assert_eq!((cpu.xmm(2), cpu.xmm(5)), (0xEE << 120 | low, low));
    assert_eq!(cpu.xmm(3), low << 64 | 0xDD);
    assert_eq!((cpu.get(Gpr::Rax), cpu.xmm(4)), (low as u64, low & 0xFFFF_FFFF));
    assert_eq!((value(&machine, DATA + 0x200), value(&machine, DATA + 0x208)), (0xDD, 0xEE << 56));
    assert_eq!(value(&machine, DATA + 0x210) as u32, 0x0302_0100);
}

#[test]
fn aligned_operands_must_be() {
    let programs: [Program; 4] = [
        |a| a.movaps(xmm0, ptr(rbx)),
        |a| a.movdqa(ptr(rbx), xmm0),
        |a| a.paddd(xmm0, xmmword_ptr(rbx)),
        |a| a.xorps(xmm0, xmmword_ptr(rbx)),
    ];
    for program in programs {
        let mut machine = machine(program);
        machine.cpu_mut().set(Gpr::Rbx, DATA + 8);
        assert_eq!(machine.step(), Err(StopReason::GeneralProtection { address: CODE }));
        machine.cpu_mut().set(Gpr::Rbx, DATA + 16);
        assert_eq!(machine.step(), Ok(()));
    }
    // The VEX encoding does not require alignment: vpaddd xmm0, xmm1, [rbx]
    let mut machine = with_code(&[0xC5, 0xF1, 0xFE, 0x03]);
    machine.cpu_mut().set(Gpr::Rbx, DATA + 8);
    machine.cpu_mut().set_xmm(1, 1);
    assert_eq!(machine.step(), Ok(()));
    let expected = u128::from(value(&machine, DATA + 8)) + 1;
    assert_eq!(machine.cpu().xmm(0) as u64, expected as u64);
}

#[test]
fn floats_compute_and_compare() {
    let mut machine = machine(|a| {
        a.cvtsi2sd(xmm0, rax)?;
        a.movsd_2(xmm1, xmm0)?;
        a.mulsd(xmm1, xmm0)?;
        a.sqrtsd(xmm2, xmm1)?;
        a.cvttsd2si(rcx, xmm2)?;
        a.divsd(xmm2, qword_ptr(rbx))?;
        a.cvtsd2si(rdx, xmm2)?;
        a.cvtsd2ss(xmm3, xmm2)?;
        a.cvtss2sd(xmm3, xmm3)?;
        a.movmskpd(esi, xmm0)?;
        a.ucomisd(xmm0, xmm1)
    });
    machine.write(DATA, &(-2.0_f64).to_le_bytes()).unwrap();
    machine.cpu_mut().set(Gpr::Rbx, DATA);
    machine.cpu_mut().set(Gpr::Rax, 0_u64.wrapping_sub(11));
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    let cpu = machine.cpu();
    assert_eq!(cpu.get(Gpr::Rcx), 11);
    assert_eq!(cpu.get(Gpr::Rdx), 0_u64.wrapping_sub(6), "-5.5 to the even");
    assert_eq!(f64::from_bits(cpu.xmm(3) as u64).to_bits(), (-5.5_f64).to_bits());
    assert_eq!(cpu.get(Gpr::Rsi), 1);
    assert_eq!(cpu.rflags() & 0x8D5, 1, "less: CF");
    for (a, b, flags) in
        [(1.0, 1.0, 1 << 6), (2.0, 1.0, 0), (f64::NAN, 1.0, 0x45), (f64::INFINITY, f64::NAN, 0x45)]
    {
        let mut machine = super::machine(|a| a.comisd(xmm0, xmm1));
        machine.cpu_mut().set_xmm(0, f64::to_bits(a).into());
        machine.cpu_mut().set_xmm(1, f64::to_bits(b).into());
        machine.cpu_mut().set_rflags(0x8D5);
        machine.step().unwrap();
        assert_eq!(machine.cpu().rflags() & 0x8D5, flags, "{a} {b}");
    }
}

#[test]
fn vectors_shift_shuffle_and_go_to_integers() {
    let mut machine = machine(|a| {
        a.pcmpeqd(xmm1, xmm1)?;
        a.psrlq(xmm1, 60)?;
        a.psllw(xmm1, xmm2)?;
        a.pshufd(xmm3, xmm0, 0x1B)?;
        a.pextrw(eax, xmm0, 7)?;
        a.pinsrw(xmm4, esi, 3)?;
        a.pmovmskb(ecx, xmm0)?;
        a.psrldq(xmm0, 8)?;
        a.movq(r8, xmm0)
    });
    machine.cpu_mut().set_xmm(0, 0x8070_6050_4030_2010_0807_0605_0403_0281);
    machine.cpu_mut().set_xmm(2, 3);
    machine.cpu_mut().set(Gpr::Rsi, 0x1_ABCD);
    assert!(matches!(machine.run(100), StopReason::Int3 { .. }));
    let cpu = machine.cpu();
    assert_eq!(cpu.xmm(1), 0x78 << 64 | 0x78);
    assert_eq!(cpu.xmm(3), 0x0403_0281_0807_0605_4030_2010_8070_6050);
    assert_eq!(cpu.get(Gpr::Rax), 0x8070);
    assert_eq!(cpu.xmm(4), 0xABCD << 48);
    assert_eq!(cpu.get(Gpr::Rcx), 0x8001);
    assert_eq!(cpu.get(Gpr::R8), 0x8070_6050_4030_2010);
}

#[test]
fn mxcsr_accepts_only_supported_bits() {
    let mut machine = machine(|a| {
        a.stmxcsr(dword_ptr(rbx))?;
        a.ldmxcsr(dword_ptr(rbx + 4))?;
        a.ldmxcsr(dword_ptr(rbx + 8))
    });
    machine.cpu_mut().set(Gpr::Rbx, DATA);
    machine.write(DATA + 4, &0x1FA0_u32.to_le_bytes()).unwrap();
    machine.write(DATA + 8, &0x3F80_u32.to_le_bytes()).unwrap();
    let stop = machine.run(100);
    assert!(stop.to_string().starts_with("Ldmxcsr_m32 at "), "{stop}");
    assert_eq!(value(&machine, DATA) as u32, 0x1F80);
    assert_eq!(machine.cpu().mxcsr(), 0x1FA0);
}
