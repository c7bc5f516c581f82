//! The UNWIND_INFO of a jitted method's functions.

use super::JittedCodeError;
use super::header::{copy, entry_address, functions};
use alloc::boxed::Box;
use alloc::vec::Vec;
use clr_unwind::win64::{Operation, UNW_FLAG_EHANDLER, UNW_FLAG_UHANDLER, UnwindInfo};
use clr_unwind::{Memory, RuntimeFunction};

const SIZE_OF_HEADER: u32 = 4;
const SIZE_OF_CODE: u32 = 2;
/// Size of the RVA of the personality routine, after the codes.
const SIZE_OF_PERSONALITY_ROUTINE: u32 = 4;
/// `CEEJitInfo::allocUnwindInfo` sets both flags on every OS, and the JIT writes version 1.
const FIRST_BYTE: u8 = 1 | (UNW_FLAG_EHANDLER | UNW_FLAG_UHANDLER) << 3;

/// The UNWIND_INFO of all functions of a method, one after the other.
pub(super) struct UnwindData {
    /// RVA of the first.
    pub(super) rva: u32,
    pub(super) bytes: Box<[u8]>,
}

/// Reads the unwind data of the functions in `entries`, which lie at address `first` (VA).
///
/// `CEEJitInfo::allocMem` reserves one block for it, after the code and its read-only data.
pub(super) fn read<M: Memory + ?Sized>(
    memory: &M,
    base: u64,
    first: u64,
    entries: &[u8],
) -> Result<UnwindData, JittedCodeError> {
    let code_begin = functions(entries).next().map_or(0, |function| function.begin);
    let code_end = functions(entries).last().map_or(0, |function| function.end);
    let mut bytes = Vec::new();
    let mut next = None;
    for (index, function) in functions(entries).enumerate() {
        let rva = function.unwind_info;
        let place = JittedCodeError::UnwindDataPlace {
            entry: entry_address(first, index),
            unwind_info: rva,
        };
        if rva != next.unwrap_or(rva) || !rva.is_multiple_of(4) || rva < code_end {
            return Err(place);
        }
        let address = base.wrapping_add(rva.into());
        let info = read_one(memory, address, rva, function, code_begin)?;
        next = Some(rva.checked_add(info.len() as u32).ok_or(place)?);
        bytes.extend_from_slice(&info);
    }
    let rva = next.map_or(0, |end| end - bytes.len() as u32);
    Ok(UnwindData { rva, bytes: bytes.into_boxed_slice() })
}

/// Reads and checks the UNWIND_INFO of `function` at `address` (VA), with the RVA of the personality
/// routine behind it.
fn read_one<M: Memory + ?Sized>(
    memory: &M,
    address: u64,
    rva: u32,
    function: RuntimeFunction,
    code_begin: u32,
) -> Result<Box<[u8]>, JittedCodeError> {
    let mut header = [0; SIZE_OF_HEADER as usize];
    memory.read(address, &mut header)?;
    let [byte, prologue, count, _] = header;
    if byte != FIRST_BYTE {
        return Err(JittedCodeError::UnwindInfoHeader { address, byte });
    }
    if u32::from(prologue) > function.end.saturating_sub(function.begin) {
        return Err(JittedCodeError::PrologueSize { address, size: prologue });
    }
    let codes = (SIZE_OF_HEADER + u32::from(count) * SIZE_OF_CODE).next_multiple_of(4);
    let bytes = copy(memory, address, codes + SIZE_OF_PERSONALITY_ROUTINE)?;
    // The runtime may free the method between the two reads.
    let info = UnwindInfo::from_bytes(rva, &bytes).filter(|_| bytes.starts_with(&header));
    info.and_then(check_codes).ok_or(JittedCodeError::UnwindCodes { address })?;
    // The routine is a jump in the heap's head.
    let routine = bytes.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    if routine >= code_begin {
        return Err(JittedCodeError::PersonalityRoutine { address, rva: routine });
    }
    Ok(bytes)
}

/// Returns `None` if the unwind codes are not those of a JIT compiler.
fn check_codes(info: UnwindInfo<'_>) -> Option<()> {
    let (mut slots, mut offset, mut sets_frame) = (0, info.prologue_size(), false);
    for code in info.codes() {
        let code = code.ok()?;
        if code.offset > offset {
            return None;
        }
        match code.operation {
            Operation::PushNonvol(_)
            | Operation::Alloc(_)
            | Operation::SaveNonvol(..)
            | Operation::SaveXmm128(..) => {}
            Operation::SetFpreg | Operation::SetFpregLarge(_) if !sets_frame => sets_frame = true,
            _ => return None,
        }
        offset = code.offset;
        slots += usize::from(code.slots);
    }
    (slots == info.slot_count() && sets_frame == (info.frame_register() != 0)).then_some(())
}
