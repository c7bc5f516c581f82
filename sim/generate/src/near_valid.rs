//! Small damage to unwind tables, which an unwinder must survive without trusting it.
//!
//! A mutation is drawn without knowledge of the tables. Its numbers are taken modulo the actual
//! sizes, so that each mutation hits something unless the tables are empty.

use super::choices::Choices;

/// Bytes of a RUNTIME_FUNCTION.
const ENTRY: usize = 12;

/// Bytes of the header of an UNWIND_INFO, and of a code slot.
const HEADER: usize = 4;
const SLOT: usize = 2;

/// A single mutation of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Inverts a bit of a table.
    Flip {
        /// Table to change.
        table: Table,
        /// Byte in the table.
        at: u32,
        /// Bit in the byte, counted from the lowest.
        bit: u8,
    },
    /// Changes a field of a RUNTIME_FUNCTION.
    Entry {
        /// Entry to change.
        entry: u32,
        /// Field to change.
        field: EntryField,
        /// Number added to the field.
        by: i32,
    },
    /// Swaps two RUNTIME_FUNCTIONs, so that they are out of order.
    SwapEntries(u32, u32),
    /// Sets a field of the header of an UNWIND_INFO.
    Header {
        /// Entry whose UNWIND_INFO is changed.
        entry: u32,
        /// Field to change.
        field: HeaderField,
        /// New value, truncated to the bits of the field.
        value: u8,
    },
    /// Lowers CountOfCodes.
    Truncate {
        /// Entry whose UNWIND_INFO is changed.
        entry: u32,
        /// New count, modulo the old one.
        count: u8,
    },
    /// Sets a field of an UNWIND_CODE.
    Code {
        /// Entry whose UNWIND_INFO is changed.
        entry: u32,
        /// Slot to change, operands included.
        slot: u8,
        /// Field to change.
        field: CodeField,
        /// New value, truncated to the bits of the field.
        value: u8,
    },
    /// Swaps two slots of an UNWIND_INFO.
    SwapCodes {
        /// Entry whose UNWIND_INFO is changed.
        entry: u32,
        /// Slots to swap.
        slots: (u8, u8),
    },
}

/// A table of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// RUNTIME_FUNCTIONs.
    Pdata,
    /// UNWIND_INFOs.
    Xdata,
}

/// A field of a RUNTIME_FUNCTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryField {
    /// BeginAddress.
    Begin,
    /// EndAddress.
    End,
    /// UnwindInfoAddress.
    Info,
}

/// A field of the header of an UNWIND_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderField {
    /// Version, 3 bits.
    Version,
    /// Flags, 5 bits.
    Flags,
    /// SizeOfProlog.
    PrologSize,
    /// CountOfCodes.
    CodeCount,
    /// FrameRegister, 4 bits.
    FrameRegister,
    /// FrameOffset, 4 bits.
    FrameOffset,
}

/// A field of an UNWIND_CODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeField {
    /// CodeOffset.
    Offset,
    /// UnwindOp, 4 bits.
    Operation,
    /// OpInfo, 4 bits.
    Info,
}

impl Mutation {
    /// Draws a mutation.
    pub fn draw<C: Choices>(choices: &mut C) -> Self {
        // As many entries as programs have parts; larger numbers only wrap around.
        let entry = choices.below(1 << 12);
        let value = |choices: &mut C| {
            let small = choices.chance(1, 2);
            choices.below(if small { 16 } else { 256 }) as u8
        };
        let slot = |choices: &mut C| choices.below(32) as u8;
        match choices.weighted(&[3, 2, 1, 3, 1, 4, 1]) {
            0 => Self::Flip {
                table: choices.one([Table::Xdata, Table::Pdata]),
                at: choices.below(1 << 20),
                bit: choices.below(8) as u8,
            },
            1 => Self::Entry {
                entry,
                field: choices.one([EntryField::Begin, EntryField::End, EntryField::Info]),
                by: choices.one([1, -1, 2, 4, -4, 16, -16, 0x1000, i32::MAX, i32::MIN]),
            },
            2 => Self::SwapEntries(entry, choices.below(1 << 12)),
            3 => Self::Header {
                entry,
                field: choices.one([
                    HeaderField::Version,
                    HeaderField::Flags,
                    HeaderField::PrologSize,
                    HeaderField::CodeCount,
                    HeaderField::FrameRegister,
                    HeaderField::FrameOffset,
                ]),
                value: value(choices),
            },
            4 => Self::Truncate { entry, count: choices.below(256) as u8 },
            5 => Self::Code {
                entry,
                slot: slot(choices),
                field: choices.one([CodeField::Offset, CodeField::Operation, CodeField::Info]),
                value: value(choices),
            },
            _ => Self::SwapCodes { entry, slots: (slot(choices), slot(choices)) },
        }
    }

    /// Applies the mutation to a table of RUNTIME_FUNCTIONs and to the bytes of their UNWIND_INFOs,
    /// which begin at the RVA `xdata_rva`. Returns true if anything changed.
    pub fn apply(&self, pdata: &mut [u8], xdata: &mut [u8], xdata_rva: u32) -> bool {
        self.change(pdata, xdata, xdata_rva).unwrap_or(false)
    }

    fn change(&self, pdata: &mut [u8], xdata: &mut [u8], xdata_rva: u32) -> Option<bool> {
        let info = |entry: u32| info_of(pdata, entry, xdata_rva);
        match *self {
            Self::Flip { table, at, bit } => {
                let bytes = if table == Table::Pdata { pdata } else { xdata };
                let at = (at as usize).checked_rem(bytes.len())?;
                bytes[at] ^= 1 << (bit & 7);
                Some(true)
            }
            Self::Entry { entry, field, by } => {
                let at = match field {
                    EntryField::Begin => 0,
                    EntryField::End => 4,
                    EntryField::Info => 8,
                };
                let from = ENTRY * nth(entry, pdata.len() / ENTRY)? + at;
                let value = read(pdata, from)?.wrapping_add_signed(by);
                pdata.get_mut(from..from + 4)?.copy_from_slice(&value.to_le_bytes());
                Some(by != 0)
            }
            Self::SwapEntries(first, second) => {
                let count = pdata.len() / ENTRY;
                Some(swap(pdata, ENTRY * nth(first, count)?, ENTRY * nth(second, count)?, ENTRY))
            }
            Self::Header { entry, field, value } => {
                let (at, shift, bits) = match field {
                    HeaderField::Version => (0, 0, 3),
                    HeaderField::Flags => (0, 3, 5),
                    HeaderField::PrologSize => (1, 0, 8),
                    HeaderField::CodeCount => (2, 0, 8),
                    HeaderField::FrameRegister => (3, 0, 4),
                    HeaderField::FrameOffset => (3, 4, 4),
                };
                Some(set(xdata.get_mut(info(entry)? + at)?, shift, bits, value))
            }
            Self::Truncate { entry, count } => {
                let old = xdata.get_mut(info(entry)? + 2)?;
                *old = count.checked_rem(*old)?;
                Some(true)
            }
            Self::Code { entry, slot, field, value } => {
                let info = info(entry)?;
                let (at, shift, bits) = match field {
                    CodeField::Offset => (0, 0, 8),
                    CodeField::Operation => (1, 0, 4),
                    CodeField::Info => (1, 4, 4),
                };
                let at = slot_of(xdata, info, slot)? + at;
                Some(set(xdata.get_mut(at)?, shift, bits, value))
            }
            Self::SwapCodes { entry, slots: (first, second) } => {
                let info = info(entry)?;
                let (first, second) = (slot_of(xdata, info, first)?, slot_of(xdata, info, second)?);
                let inside = first.max(second) + SLOT <= xdata.len();
                Some(inside && swap(xdata, first, second, SLOT))
            }
        }
    }
}

fn nth(number: u32, count: usize) -> Option<usize> {
    (number as usize).checked_rem(count)
}

fn read(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Returns the offset of an entry's UNWIND_INFO in the bytes of the infos.
fn info_of(pdata: &[u8], entry: u32, xdata_rva: u32) -> Option<usize> {
    let entry = nth(entry, pdata.len() / ENTRY)?;
    let info = read(pdata, ENTRY * entry + 8)?;
    info.checked_sub(xdata_rva).map(|offset| offset as usize)
}

fn slot_of(xdata: &[u8], info: usize, slot: u8) -> Option<usize> {
    let count = *xdata.get(info.checked_add(2)?)?;
    Some(info + HEADER + SLOT * usize::from(slot.checked_rem(count)?))
}

/// Sets some bits of a byte. Returns true if they were different.
const fn set(byte: &mut u8, shift: u8, bits: u8, value: u8) -> bool {
    let mask = (0xFF >> (8 - bits)) << shift;
    let old = *byte;
    *byte = old & !mask | (value << shift) & mask;
    *byte != old
}

/// Swaps two items. Returns true if they were different.
fn swap(bytes: &mut [u8], first: usize, second: usize, len: usize) -> bool {
    let mut changed = false;
    for n in 0..len {
        changed |= bytes[first + n] != bytes[second + n];
        bytes.swap(first + n, second + n);
    }
    changed
}
