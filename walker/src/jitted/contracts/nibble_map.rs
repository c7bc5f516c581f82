//! The nibble map: from an address in a code heap to the start of its method.
//!
//! Each 32 bytes of the heap have a nibble: 0 if no method starts there, otherwise 1 + a quarter of
//! the start's offset. Eight nibbles are a unit, the first in its highest bits. From version 2 of the
//! contract on, a unit within a long method is the method's start: its lowest nibble is 9 to 12.
//!
//! Source: docs/design/datacontracts/ExecutionManager.md in dotnet/runtime. The same map is in
//! runtimes without the contract (version 1 until .NET 9), but nothing that is exported leads to it.

use super::error::CodeLookupError;
use crate::jitted::header::copy;
use alloc::vec::Vec;
use clr_unwind::Memory;

const BYTES_PER_NIBBLE: u64 = 32;
const NIBBLES_PER_UNIT: u64 = 8;
const BYTES_PER_UNIT: u64 = BYTES_PER_NIBBLE * NIBBLES_PER_UNIT;
const SIZE_OF_UNIT: u64 = 4;
/// Limit of a heap: 2²⁸ bytes of code. The runtime's own limit is 2 GiB, beyond which relative calls
/// do not reach; no process was seen with a heap above 64 MiB.
const UNIT_LIMIT: u64 = 1 << 20;

/// The nibble map of a code heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct NibbleMap {
    /// Address of the first unit (VA).
    pub(super) units: u64,
    /// Address that the first nibble stands for (VA).
    pub(super) base: u64,
    /// True from version 2 on.
    pub(super) has_pointers: bool,
}

/// A unit, read.
#[derive(Clone, Copy)]
enum Unit {
    /// The 8 nibbles.
    Nibbles(u32),
    /// The distance of the method's start from the map's base, in bytes.
    Pointer(u32),
}

impl NibbleMap {
    /// Returns the last start at or before `address` (VA); `None` if there is none near enough.
    pub(super) fn find<M: Memory + ?Sized>(
        self,
        memory: &M,
        address: u64,
    ) -> Result<Option<u64>, CodeLookupError> {
        let Some(offset) = address.checked_sub(self.base) else { return Ok(None) };
        let index = offset / BYTES_PER_UNIT;
        let unit = memory.read_u32(self.address_of(index))?;
        // The nibbles up to that of the address, which counts if its method starts early enough.
        let slot = offset % BYTES_PER_UNIT / BYTES_PER_NIBBLE;
        let here = (offset % BYTES_PER_NIBBLE / 4 + 1) as u32;
        let found = match self.decode(index, unit)? {
            Unit::Pointer(distance) => Some(self.base.wrapping_add(distance.into())),
            Unit::Nibbles(unit) if (1..=here).contains(&nibble(unit, slot)) => {
                Some(self.start(index, slot, nibble(unit, slot)))
            }
            Unit::Nibbles(unit) => self.last_start(index, unit, slot),
        };
        let found = match found {
            None => self.find_before(memory, index)?,
            found => found,
        };
        match found {
            Some(start) if start > address => {
                Err(CodeLookupError::NibbleMap { address: self.address_of(index), unit })
            }
            found => Ok(found),
        }
    }

    /// Returns the last start in the units before `index`. With pointers, only the unit before can
    /// have it.
    fn find_before<M: Memory + ?Sized>(
        self,
        memory: &M,
        index: u64,
    ) -> Result<Option<u64>, CodeLookupError> {
        let limit = if self.has_pointers { 1 } else { UNIT_LIMIT };
        for index in (0..index).rev().take(limit as usize) {
            let unit = memory.read_u32(self.address_of(index))?;
            let found = match self.decode(index, unit)? {
                Unit::Pointer(distance) => Some(self.base.wrapping_add(distance.into())),
                Unit::Nibbles(unit) => self.last_start(index, unit, NIBBLES_PER_UNIT),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns all starts for code before `end` (VA), ascending.
    pub(super) fn starts<M: Memory + ?Sized>(
        self,
        memory: &M,
        end: u64,
    ) -> Result<Vec<u64>, CodeLookupError> {
        let count = end.saturating_sub(self.base).div_ceil(BYTES_PER_UNIT);
        if count > UNIT_LIMIT {
            return Err(CodeLookupError::Endless { address: self.units });
        }
        let units = copy(memory, self.units, (count * SIZE_OF_UNIT) as u32)?;
        let mut starts = Vec::new();
        for (index, unit) in (0..).zip(units.as_chunks().0) {
            if let Unit::Nibbles(unit) = self.decode(index, u32::from_le_bytes(*unit))? {
                let slots = (0..NIBBLES_PER_UNIT).filter(|&slot| nibble(unit, slot) != 0);
                starts.extend(slots.map(|slot| self.start(index, slot, nibble(unit, slot))));
            }
        }
        Ok(starts)
    }

    /// Returns the last start of the first `slots` nibbles of a unit.
    fn last_start(self, index: u64, unit: u32, slots: u64) -> Option<u64> {
        let slot = (0..slots).rev().find(|&slot| nibble(unit, slot) != 0)?;
        Some(self.start(index, slot, nibble(unit, slot)))
    }

    fn decode(self, index: u64, unit: u32) -> Result<Unit, CodeLookupError> {
        match nibble(unit, NIBBLES_PER_UNIT - 1) {
            kind @ 9..=12 if self.has_pointers => Ok(Unit::Pointer(unit & !15 | (kind - 9) << 2)),
            _ if (0..NIBBLES_PER_UNIT).all(|slot| nibble(unit, slot) <= 8) => {
                Ok(Unit::Nibbles(unit))
            }
            _ => Err(CodeLookupError::NibbleMap { address: self.address_of(index), unit }),
        }
    }

    const fn address_of(self, index: u64) -> u64 {
        self.units.wrapping_add(index.wrapping_mul(SIZE_OF_UNIT))
    }

    /// Returns the start that a nibble stands for (VA).
    fn start(self, index: u64, slot: u64, nibble: u32) -> u64 {
        let offset = index * BYTES_PER_UNIT + slot * BYTES_PER_NIBBLE;
        self.base.wrapping_add(offset + u64::from(nibble.saturating_sub(1)) * 4)
    }
}

/// Returns nibble `slot` of a unit; the first is in the highest bits.
const fn nibble(unit: u32, slot: u64) -> u32 {
    unit >> (28 - 4 * slot as u32) & 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::Segment;
    use core::ops::Range;

    const BASE: u64 = 0x7F00_0000_1000;
    const UNITS: u64 = 0x7E00_0000_0000;
    const SIZE: u64 = 0x6000;

    /// Returns numbers that look random, the same ones for each seed.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) % below
        }
    }

    /// Draws methods as offsets from the heap's base: short ones, some longer than a unit, close to each
    /// other or far apart. Each has a multiple of 4 bytes and a nibble of its own.
    fn draw(seed: u64) -> Vec<Range<u64>> {
        let mut draw = numbers(seed);
        let (mut methods, mut at) = (Vec::new(), 0);
        loop {
            let gap = if draw(4) == 0 { 4 * draw(300) } else { 4 * draw(4) };
            let size = if draw(5) == 0 { 4 + 4 * draw(400) } else { 4 + 4 * draw(30) };
            let mut start = at + gap;
            if methods.last().is_some_and(|last: &Range<u64>| last.start / 32 == start / 32) {
                start = start.next_multiple_of(32);
            }
            if start + size > SIZE {
                return methods;
            }
            methods.push(start..start + size);
            at = start + size;
        }
    }

    /// Writes the map as the runtime does, method by method: a nibble for the start, and from version 2 on
    /// a pointer into each unit that the method has whole.
    fn written(methods: &[Range<u64>], has_pointers: bool) -> Vec<u8> {
        let mut units = vec![0_u32; (SIZE / 256) as usize];
        for method in methods {
            let place = method.start % 256 / 32;
            units[(method.start / 256) as usize] |=
                (method.start % 32 / 4 + 1) as u32 * 0x1000_0000_u32.wrapping_shr(4 * place as u32);
            for (unit, number) in units.iter_mut().zip(0..) {
                if has_pointers && number > method.start / 256 && (number + 1) * 256 <= method.end {
                    *unit = (method.start as u32 & !15) + 9 + (method.start as u32 % 16) / 4;
                }
            }
        }
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    }

    #[test]
    fn each_address_of_drawn_heaps_leads_to_the_start_of_its_method() {
        let mut within_long_methods = 0;
        for (seed, has_pointers) in (1..=60).flat_map(|seed| [(seed, false), (seed, true)]) {
            let methods = draw(seed);
            let bytes = written(&methods, has_pointers);
            let memory = Segment::new(UNITS, &bytes);
            let map = NibbleMap { units: UNITS, base: BASE, has_pointers };
            for offset in 0..SIZE {
                let before = methods.iter().rev().find(|method| method.start <= offset);
                let expected = before.map(|method| BASE + method.start);
                let found = map.find(&memory, BASE + offset).unwrap();
                let method = before.filter(|method| method.contains(&offset));
                if has_pointers && method.is_none() {
                    // Beyond a method its start may be too far away.
                    assert!(found.is_none() || found == expected, "{seed} {offset:#x}: {found:x?}");
                } else {
                    assert_eq!(found, expected, "{seed} {offset:#x}");
                }
                let units = |method: &Range<u64>| offset / 256 - method.start / 256;
                within_long_methods += u64::from(method.is_some_and(|method| units(method) > 1));
            }
            let starts: Vec<_> = methods.iter().map(|method| BASE + method.start).collect();
            assert_eq!(map.starts(&memory, BASE + SIZE), Ok(starts), "{seed}");
        }
        assert!(within_long_methods > 10_000, "{within_long_methods}");
    }
}
