//! Tests of CONTEXTs by the offsets of contract §1.7, and of the number of bytes read of a
//! seed.

use super::*;
use crate::generation::Generation;
use clr_unwind::Gpr;

/// .NET 9 on Unix, on a machine with AVX-512.
const SIZE: SeedSize = Generation::Net9Unix.seed_size();

/// Returns a CONTEXT whose bytes are their own offsets.
fn patterned(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_context_is_read_at_its_offsets() {
    let bytes = patterned(0x4D0);
    let context = Context::from_bytes(&bytes).unwrap();
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    assert_eq!(context.flags, u32::from_le_bytes([0x30, 0x31, 0x32, 0x33]));
    assert_eq!(context.registers.rip, word(0xF8));
    assert_eq!(rip_of(&bytes), Some(word(0xF8)));
    assert_eq!(context.registers.get(Gpr::Rax), word(0x78));
    assert_eq!(context.registers.rsp(), word(0x98));
    assert_eq!(context.registers.get(Gpr::R15), word(0xF0));
    assert_eq!(context.registers.xmm[0] as u64, word(0x200));
    assert_eq!((context.registers.xmm[9] >> 64) as u64, word(0x298));
    // Longer ones give the same result, shorter ones none.
    assert_eq!(Context::from_bytes(&patterned(0xC20)), Some(context));
    assert_eq!(Context::from_bytes(&bytes[..0x4CF]), None);
    assert_eq!((rip_of(&bytes[..0x100]), rip_of(&bytes[..0xFF])), (Some(word(0xF8)), None));
    assert_eq!(rip_of(&[]), None);
}

#[test]
fn only_known_registers_are_written() {
    let context = Context::from_bytes(&patterned(0x4D0)).unwrap();
    let bytes = context.to_bytes();
    assert_eq!(bytes.len(), 0x4D0);
    for (at, byte) in bytes.iter().enumerate() {
        let known = (0x30..0x34).contains(&at)
            || (0x78..0x100).contains(&at)
            || (0x200..0x2A0).contains(&at);
        assert_eq!(*byte, if known { (at % 251) as u8 } else { 0 }, "{at:#x}");
    }
    assert_eq!(Context::from_bytes(&bytes), Some(context));
    let mut larger = patterned(0xC20);
    context.write(&mut larger);
    assert_eq!(larger, patterned(0xC20));
    let mut short = [7; 0x4CF];
    context.write(&mut short);
    assert_eq!(short, [7; 0x4CF]);
}

/// The 18 combinations were tried: the process lived, or died because of memory that it could not
/// read.
#[test]
fn a_seed_is_read_as_far_as_was_observed() {
    const PLAIN: u32 = 0x10_000B;
    const XSTATE: u32 = 0x10_004B;
    for (len, flags, mask, lives) in [
        (0x4D8, PLAIN, 0, true),
        (0x4D8, PLAIN, 4, true),
        (0x4D8, PLAIN, 0xE4, true),
        (0x5E0, PLAIN, 0, true),
        (0x5E0, PLAIN, 4, true),
        (0x5E0, PLAIN, 0xE4, true),
        (0xC20, PLAIN, 0, true),
        (0xC20, PLAIN, 4, true),
        (0xC20, PLAIN, 0xE4, true),
        (0x4D8, XSTATE, 0, false),
        (0x4D8, XSTATE, 4, false),
        (0x4D8, XSTATE, 0xE4, false),
        (0x5E0, XSTATE, 0, true),
        (0x5E0, XSTATE, 4, true),
        (0x5E0, XSTATE, 0xE4, false),
        (0xC20, XSTATE, 0, true),
        (0xC20, XSTATE, 4, true),
        (0xC20, XSTATE, 0xE4, true),
    ] {
        let mut seed = vec![0; len];
        seed[0x30..0x34].copy_from_slice(&u32::to_le_bytes(flags));
        seed[0x4D0..0x4D8].copy_from_slice(&u64::to_le_bytes(mask));
        assert_eq!(seed_size(&seed, SIZE) <= len, lives, "{len:#x}, {flags:#x}, {mask:#x}");
    }
}

#[test]
fn how_much_is_read_is_decided_by_xstate_and_its_mask() {
    for (flags, mask, size) in [
        (0, 0xE4, 0x4D8),
        // Neither of the two bits alone is XSTATE.
        (0x40, 0xE4, 0x4D8),
        (0x10_0000, 0xE4, 0x4D8),
        (0x10_0040, 0, 0x5E0),
        (0x10_0040, !0xE0, 0x5E0),
        (0x10_0040, 0x20, 0xC20),
        (0x10_0040, 0x40, 0xC20),
        (0x10_0040, 0x80, 0xC20),
        (0xFFFF_FFFF, u64::MAX, 0xC20),
    ] {
        let mut seed = vec![0; 0xC20];
        seed[0x30..0x34].copy_from_slice(&u32::to_le_bytes(flags));
        seed[0x4D0..0x4D8].copy_from_slice(&u64::to_le_bytes(mask));
        assert_eq!(seed_size(&seed, SIZE), size, "{flags:#x}, {mask:#x}");
    }
    // .NET 10 reads less of a plain seed, and more of one with APX.
    for (flags, mask, size) in [
        (0, u64::MAX, 0x4D0),
        (0x10_0040, 0, 0x5E0),
        (0x10_0040, 0x20, 0xC20),
        (0x10_0040, 1 << 19, 0xCA0),
        (0x10_0040, 0x20 | 1 << 19, 0xCA0),
    ] {
        assert_eq!(Generation::Net10Unix.seed_size().of(flags, mask), size, "{mask:#x}");
    }
    // Neither knows APX before.
    assert_eq!(SIZE.of(0x10_0040, 1 << 19), 0x5E0);
    // The size is larger than each of these.
    for len in [0, 0x33, 0x4D7] {
        assert!(seed_size(&vec![0xFF; len], SIZE) > len);
    }
}
