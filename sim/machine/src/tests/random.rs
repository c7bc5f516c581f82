use super::*;

/// The prefixes and opcodes of most instructions.
const STARTS: [&[u8]; 16] = [
    &[],
    &[0x48],
    &[0x66],
    &[0x0F],
    &[0x48, 0x0F],
    &[0x66, 0x0F],
    &[0xF2, 0x0F],
    &[0xF3, 0x0F],
    &[0xF2, 0x48],
    &[0xF3],
    &[0x65],
    &[0x67],
    &[0x4F],
    &[0xC5],
    &[0xC4, 0xE2],
    &[0xF0],
];

/// Values near overflow.
const EDGES: [u64; 8] =
    [0, 1, u64::MAX, 1 << 63, 0x8000_0000, 0x7FFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF, 0x80];

#[test]
fn no_bytes_panic_and_no_stop_changes_anything() {
    let mut random = SplitMix64(1);
    let mut machine = with_code(&[]);
    let fresh = machine.save();
    let mut executed = 0;
    for _ in 0..40_000 {
        machine.restore(&fresh).unwrap();
        let mut code = STARTS[(random.draw() % 16) as usize].to_vec();
        code.extend((0..3).flat_map(|_| random.draw().to_le_bytes()));
        // Sometimes across the end of the page.
        let start = CODE + [0, 0xFF8, 0x1FFC][(random.draw() % 3) as usize];
        let len = code.len().min((CODE + 0x2000 - start) as usize);
        machine.write(start, &code[..len]).unwrap();
        for register in Gpr::ALL {
            let value = match random.draw() % 4 {
                0 => EDGES[(random.draw() % 8) as usize],
                1 => random.draw(),
                2 => STACK + random.draw() % 0x2000,
                _ => DATA + random.draw() % 0x2000,
            };
            machine.cpu_mut().set(register, value);
        }
        for n in 0..16 {
            let half =
                |random: &mut SplitMix64| EDGES[(random.draw() % 8) as usize] ^ random.draw() >> 20;
            machine
                .cpu_mut()
                .set_xmm(n, u128::from(half(&mut random)) << 64 | u128::from(half(&mut random)));
        }
        machine.cpu_mut().set_rflags(random.draw());
        machine.cpu_mut().set_rip(start);
        for _ in 0..4 {
            let before = *machine.cpu();
            if let Err(stop) = machine.step() {
                assert_eq!(*machine.cpu(), before, "{stop}");
                break;
            }
            executed += 1;
        }
    }
    assert!(executed > 10_000, "{executed}");
}
