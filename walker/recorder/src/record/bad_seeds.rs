//! Seeds that are wrong on purpose: `seeds=bad`.

use super::call::NamedSeed;
use super::walk::Seed;
use clr_unwind::Gpr;

/// Zeroes that are on no stack. A method of a workload has a smaller frame.
static ZEROES: [u64; 0x1000] = [0; 0x1000];

/// A stack pointer that nothing can be read at.
#[cfg(windows)]
const UNREADABLE: u64 = 0xDEAD_BEEF_DEAD_BEE8;

/// Returns true for the address (VA) of one of the zeroes, which a recording may show.
pub(super) fn is_of_zeroes(address: u64) -> bool {
    let start = ZEROES.as_ptr() as u64;
    (start..start + size_of_val(&ZEROES) as u64).contains(&address)
}

/// Returns wrong seeds by one that is right: its stack pointer leads to zeroes, or, where that does not end the process
/// (C-054), nowhere; and without ContextFlags.
pub(super) fn bad_seeds(good: &Seed) -> Vec<NamedSeed> {
    let at = |made, sp| {
        let mut seed = Seed { made, ..*good };
        seed.registers.set(Gpr::Rsp, sp);
        (made, seed)
    };
    vec![
        at("bad-seed:rsp-zeroes", ZEROES.as_ptr() as u64),
        #[cfg(windows)]
        at("bad-seed:rsp-unreadable", UNREADABLE),
        ("bad-seed:flags0", Seed { made: "bad-seed:flags0", flags: 0, ..*good }),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::text::SEED_FLAGS;
    use super::*;
    use clr_unwind::Registers;

    #[test]
    fn wrong_seeds_keep_what_is_not_wrong() {
        let registers = Registers { rip: 7, ..Registers::default() };
        let good = Seed { made: "a test", registers, flags: SEED_FLAGS };
        let seeds = bad_seeds(&good);
        assert!(seeds.iter().all(|(name, seed)| seed.registers.rip == 7 && seed.made == *name));
        let (_, zeroes) = seeds[0];
        assert!(is_of_zeroes(zeroes.registers.rsp()) && zeroes.flags == SEED_FLAGS);
        assert!(!is_of_zeroes(zeroes.registers.rsp() - 1));
        let (_, plain) = seeds[seeds.len() - 1];
        assert_eq!((plain.flags, plain.registers), (0, registers));
    }
}
