use super::*;

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
