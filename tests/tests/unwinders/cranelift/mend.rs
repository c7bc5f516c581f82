//! The unwind info that cranelift should have emitted.

use clr_walker::code_map::CodeRegion;
use clr_walker::image::FunctionTable;
use clr_walker::registers::Gpr;
use clr_walker::unwind::win64::{Operation, UnwindCode, UnwindInfo};

const PUSH_NONVOL: u16 = 0;
const ALLOC_LARGE: u16 = 1;
const SET_FPREG: u16 = 3;
const SAVE_NONVOL: u16 = 4;
const SAVE_XMM128: u16 = 8;

/// A mistake in cranelift's unwind info (`src/isa/unwind/winx64.rs` of cranelift-codegen, and
/// `src/isa/x64/abi.rs` for the last two).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The operand of UWOP_SAVE_NONVOL is in units of 16 bytes, instead of 8.
    Unit,
    /// The header's frame offset has the low four bits of a number of bytes, which are always 0,
    /// instead of a number of units of 16. Saves therefore lie above the address in rbp, instead of
    /// below.
    FrameOffset,
    /// No UWOP_ALLOC accounts for the space of the saves. This is harmless as long as rbp seems to
    /// point to the base of the frame.
    NoAllocation,
    /// UWOP_SET_FPREG takes effect after the stack probes, instead of after `mov rbp, rsp`.
    LateFrame,
}

impl Mistake {
    pub(crate) const ALL: [Self; 4] =
        [Self::Unit, Self::FrameOffset, Self::NoAllocation, Self::LateFrame];
}

/// Returns the places where cranelift stores saved registers: integers at the bottom and vectors
/// above them, each in the order of the prologue; and the total size in bytes.
fn places(codes: &[UnwindCode]) -> (Vec<u32>, u32) {
    let mut end = 0_u32;
    let mut place = |code: &UnwindCode| {
        let size = match code.operation {
            Operation::SaveNonvol(..) => 8,
            Operation::SaveXmm128(..) => 16,
            _ => 0,
        };
        let at = if size == 0 { 0 } else { end.next_multiple_of(size) };
        end = end.max(at + size);
        at
    };
    let places = codes.iter().map(&mut place).collect();
    (places, end.next_multiple_of(16))
}

/// Fixes all mistakes in the unwind info but `left`.
pub(crate) fn mend(unwind_info: &[u8], left: Option<Mistake>) -> Vec<u8> {
    let region = CodeRegion::heap(0, unwind_info, FunctionTable::default()).unwrap();
    let info = UnwindInfo::read(&region, 0).unwrap();
    let mut codes: Vec<UnwindCode> = info.codes().map(Result::unwrap).collect();
    codes.reverse();
    let (places, size) = places(&codes);
    let mut mended: Vec<Vec<u16>> = Vec::new();
    let mut push = |offset: u8, operation: u16, number: u8, operand: Option<u32>| {
        let first = u16::from(offset) | operation << 8 | u16::from(number) << 12;
        mended.push([first].into_iter().chain(operand.map(|value| value as u16)).collect());
    };
    for (code, place) in codes.iter().zip(places) {
        match code.operation {
            Operation::PushNonvol(register) => {
                push(code.offset, PUSH_NONVOL, register.number(), None);
            }
            Operation::SetFpreg => {
                // `push rbp; mov rbp, rsp` has 4 bytes.
                let offset = if left == Some(Mistake::LateFrame) { code.offset } else { 4 };
                if size > 0 && left != Some(Mistake::NoAllocation) {
                    push(offset, ALLOC_LARGE, 0, Some(size / 8));
                }
                push(offset, SET_FPREG, 0, None);
            }
            Operation::SaveNonvol(register, _) => {
                let unit = if left == Some(Mistake::Unit) { 16 } else { 8 };
                push(code.offset, SAVE_NONVOL, register.number(), Some(place / unit));
            }
            Operation::SaveXmm128(number, _) => {
                push(code.offset, SAVE_XMM128, number, Some(place / 16));
            }
            other => panic!("cranelift does not emit {other:?}"),
        }
    }
    let slots: Vec<u16> = mended.into_iter().rev().flatten().collect();
    let frame_offset = if left == Some(Mistake::FrameOffset) { 0 } else { (size / 16) as u8 };
    let frame = Gpr::Rbp.number() | frame_offset << 4;
    let mut bytes = vec![1, info.prologue_size(), slots.len() as u8, frame];
    bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
    bytes
}
