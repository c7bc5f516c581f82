//! The vtables of Frames, by which the runtime tells them apart; from .NET 10 on, numbers.
//!
//! They have no names in a released runtime. But its table for debuggers lists them, in an order that
//! is the same in all builds of a version: the table is found by its run of pointers to vtables. Its entries
//! are addresses of 8 bytes in .NET 8 and 9, RVAs of 4 bytes in CoreCLR 3.1 and .NET 6.

use super::layout::{BEHIND, Kind, Layout};
use clr_sampler::os::Segment;
use clr_unwind::{Convention, Memory, Segments};
use clr_walker::jitted::contracts::ContractDescriptor;
use std::collections::BTreeMap;

/// A table has more vtables than this, one after the other.
const LEAST_RUN: usize = 50;

/// The kinds of Frames by the first word of a Frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vtables(BTreeMap<u64, Kind>);

impl Vtables {
    /// Returns the kind of a Frame with this first word.
    pub(super) fn kind(&self, word: u64) -> Option<Kind> {
        self.0.get(&word).copied()
    }

    /// Takes the numbers that stand in place of vtables, which the runtime states.
    pub(super) fn numbered(stated: &ContractDescriptor) -> Self {
        Self(Layout::numbered(stated).collect())
    }

    /// Looks for the table in the runtime's library, whose lowest address (VA) is `base`. `None` if it
    /// is not found.
    pub(super) fn find(
        base: u64,
        segments: &[Segment],
        layout: &Layout,
        memory: &impl Memory,
    ) -> Option<Self> {
        let is_windows = layout.saved.convention == Convention::WindowsX64;
        let is_code = |address: &u64| {
            segments.iter().any(|part| part.is_executable && part.range.contains(address))
        };
        // One read of each part: a read may be a call of the system, and there are thousands.
        let read = |part: &Segment| {
            let mut bytes = vec![0; (part.range.end - part.range.start) as usize];
            memory.read(part.range.start, &mut bytes).ok()?;
            Some((part.is_writable, part.range.start, bytes))
        };
        let data: Vec<_> =
            segments.iter().filter(|part| !part.is_executable).filter_map(read).collect();
        let parts = data.iter().map(|(_, start, bytes)| clr_unwind::Segment::new(*start, bytes));
        let copy = Segments::new(parts).ok()?;
        // Elsewhere tables of functions are constant, too, and on Windows a class has one function alone.
        let functions = if is_windows { 1 } else { 2 };
        let is_vtable = |address: u64| {
            (0..functions)
                .all(|index| copy.read_u64(address + 8 * index).is_ok_and(|word| is_code(&word)))
        };
        // On Windows the table is constant.
        let parts = data.iter().filter(|(is_writable, ..)| *is_writable || is_windows);
        let searches = parts.flat_map(|(_, _, bytes)| [(bytes, 8), (bytes, 4)]);
        for (bytes, width) in searches {
            let mut run = Vec::new();
            for entry in bytes.chunks_exact(width).chain([&[0; 8][..width]]) {
                let mut word = [0; 8];
                word[..width].copy_from_slice(entry);
                let word = u64::from_le_bytes(word);
                let address = match (word, width) {
                    (0, _) => 0,
                    (rva, 4) => base + rva,
                    (address, _) => address,
                };
                if is_vtable(address) {
                    run.push(address);
                } else if run.len() > LEAST_RUN {
                    return Self::of_run(&run, layout);
                } else {
                    run.clear();
                }
            }
        }
        None
    }

    /// Names the vtables of a whole table.
    fn of_run(run: &[u64], layout: &Layout) -> Option<Self> {
        let last = run.len().checked_sub(BEHIND)?;
        let vtables = run.get(..last)?.iter().rev();
        Some(Self(vtables.copied().zip(layout.frames().rev()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::Segment as Bytes;
    use std::ops::Range;

    const BASE: u64 = 0x7000_0000;
    const VTABLES: u64 = BASE + 0x1000;
    const COUNT: usize = LEAST_RUN + 10;

    /// A library of two pages: code, then vtables and a table of them, whose entries have this size in bytes.
    fn library(width: usize) -> Vec<u8> {
        let mut data = Vec::new();
        for function in 0..2 * COUNT as u64 {
            data.extend_from_slice(&(BASE + function).to_le_bytes());
        }
        data.extend_from_slice(&[0; 16]);
        for index in 0..COUNT as u64 {
            let address = VTABLES + 16 * index;
            let entry = if width == 8 { address } else { address - BASE };
            data.extend_from_slice(&entry.to_le_bytes()[..width]);
        }
        data.extend_from_slice(&[0; 16]);
        data
    }

    fn part(range: Range<u64>, is_executable: bool) -> Segment {
        Segment { range, is_writable: !is_executable, is_executable }
    }

    #[test]
    fn frames_are_named_by_their_place_in_the_table() {
        let layout = Layout::of([9, 0, 7], Convention::SystemV, None).unwrap();
        for width in [8, 4] {
            let data = library(width);
            let end = VTABLES + data.len() as u64;
            let memory = Segments::new([Bytes::new(VTABLES, &data)]).unwrap();
            let segments = [part(BASE..VTABLES, true), part(VTABLES..end, false)];
            let found = Vtables::find(BASE, &segments, &layout, &memory).unwrap();
            let name = |from_end: u64| {
                let address = VTABLES + 16 * (COUNT as u64 - from_end);
                found.kind(address).map(|kind| kind.name)
            };
            assert_eq!(name(10), Some("ExceptionFilterFrame"), "nine other classes follow");
            assert_eq!(name(9), None);
            assert_eq!(name(27), Some("HelperMethodFrame"));
            assert_eq!(name(29), Some("FaultingExceptionFrame"));
            let cut = [part(BASE..VTABLES, true), part(VTABLES..end - 100 * width as u64, false)];
            assert_eq!(Vtables::find(BASE, &cut, &layout, &memory), None);
        }
    }
}
