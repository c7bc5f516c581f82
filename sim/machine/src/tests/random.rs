use super::*;

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }
}

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
    let mut random = Random(1);
    let mut machine = with_code(&[]);
    let fresh = machine.save();
    let mut executed = 0;
    for _ in 0..40_000 {
        machine.restore(&fresh).unwrap();
        let mut code = STARTS[(random.next() % 16) as usize].to_vec();
        code.extend((0..3).flat_map(|_| random.next().to_le_bytes()));
        // Sometimes across the end of the page.
        let start = CODE + [0, 0xFF8, 0x1FFC][(random.next() % 3) as usize];
        let len = code.len().min((CODE + 0x2000 - start) as usize);
        machine.write(start, &code[..len]).unwrap();
        for register in Gpr::ALL {
            let value = match random.next() % 4 {
                0 => EDGES[(random.next() % 8) as usize],
                1 => random.next(),
                2 => STACK + random.next() % 0x2000,
                _ => DATA + random.next() % 0x2000,
            };
            machine.cpu_mut().set(register, value);
        }
        for n in 0..16 {
            let half =
                |random: &mut Random| EDGES[(random.next() % 8) as usize] ^ random.next() >> 20;
            machine
                .cpu_mut()
                .set_xmm(n, u128::from(half(&mut random)) << 64 | u128::from(half(&mut random)));
        }
        machine.cpu_mut().set_rflags(random.next());
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
