//! Second opinions on steps: the unwinders that share no code with the walker's.

use super::steps::{POSITIONS, step};
use crate::{dwarf, mutants};
use clr_unwind::{CodeMap, Memory, Position, Registers, Trust, Unwinder};

/// Steps by UNWIND_INFO from `registers`, with precise rules.
///
/// # Panics
/// If both unwinders find a caller, and not the same one: the second one reads malformed data that the walker
/// refuses.
pub(super) fn compare<M: Memory>(map: &CodeMap<'_>, registers: &Registers, memory: &M) {
    for position in POSITIONS {
        let first = step(Unwinder::new(map), registers, position, memory);
        let mut caller = *registers;
        let second = mutants::Unwinder::new(map).step(&mut caller, position, memory);
        if let (Ok((first, step)), Ok(below)) = (first, second) {
            assert_eq!((first, step.caller), (caller, below), "{position:?}");
        }
    }
}

/// Steps from `registers` by call frame information, which `second` reads, too.
///
/// # Panics
/// If both find a caller, and not the same one, as far as the walker claims to know its registers.
pub(super) fn compare_dwarf<M: Memory>(
    map: &CodeMap<'_>,
    second: &dwarf::Unwinder<'_>,
    registers: &Registers,
    memory: &M,
) {
    for position in POSITIONS {
        let mut caller = *registers;
        let (Ok((first, step)), Ok(below)) = (
            step(Unwinder::new(map), registers, position, memory),
            second.step(&mut caller, position, memory),
        ) else {
            continue;
        };
        // Other steps take call frame information into account among other things; and from an outlined part the
        // walker also leaves the function around it.
        let is_down = caller.rsp() <= registers.rsp() && below == Position::ReturnAddress;
        if !matches!(step.trust, Trust::Cfi | Trust::SignalFrame) || is_down {
            continue;
        }
        let of = |registers: &Registers| {
            let found = step.found.gprs().map(|register| registers.get(register));
            (registers.rip, found.collect::<Vec<_>>())
        };
        assert_eq!((of(&first), step.caller), (of(&caller), below), "{position:?}");
    }
}
