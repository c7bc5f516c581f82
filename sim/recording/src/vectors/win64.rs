//! Unwind vectors of Windows x64 code, recorded by executing it one instruction at a time.
//!
//! A [`Vector`] has the registers and the stack at an instruction boundary, the caller's registers
//! after the return, and the answers of wine and CoreCLR.

use super::records::{Cursor, Records};
use super::{FormatError, UnwindAnswer};
use clr_unwind::{Registers, Segment};
use std::ops::Deref;

const MAGIC: [u8; 8] = *b"W64UVEC1";

/// The vectors of one image.
#[derive(Clone, Copy, Debug)]
pub struct VectorFile<'a> {
    image_base: u64,
    size_of_image: u32,
    chains: u32,
    records: Records<'a, Vector<'a>>,
}

impl<'a> VectorFile<'a> {
    /// Parses the decompressed bytes of a file, and checks that they divide into the vectors that
    /// the header counts. The vectors themselves are checked when they are read.
    ///
    /// # Errors
    /// Returns [`FormatError`] if the header is wrong or the lengths of the vectors do not add up.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::after_magic(bytes, MAGIC)?;
        let image_base = cursor.u64()?;
        let size_of_image = cursor.u32()?;
        let count = cursor.u32()?;
        let chains = cursor.u32()?;
        cursor.zeroes(4)?;
        let records = Records::new(cursor, count, Vector::read)?;
        Ok(Self { image_base, size_of_image, chains, records })
    }

    /// Returns the load address of the image (VA), which is its preferred base.
    pub const fn image_base(&self) -> u64 {
        self.image_base
    }

    /// Returns SizeOfImage of the image, in bytes.
    pub const fn size_of_image(&self) -> u32 {
        self.size_of_image
    }

    /// Returns the number of vectors with a chain, as given in the header.
    pub const fn chains(&self) -> u32 {
        self.chains
    }
}

impl<'a> Deref for VectorFile<'a> {
    type Target = Records<'a, Vector<'a>>;

    fn deref(&self) -> &Self::Target {
        &self.records
    }
}

/// The rules that apply to the frame at this instruction, as determined by CoreCLR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// No RUNTIME_FUNCTION covers the instruction: the return address is at the top of the stack.
    Leaf,
    /// The instruction is before the end of the prologue.
    Prologue,
    /// The instruction is in the body.
    Body,
    /// The instruction is in an epilogue according to the bytes of code (version 1).
    CodeEpilogue,
    /// The instruction is in an epilogue according to EPILOG codes (version 2).
    CodesEpilogue,
}

/// The facts about a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorFlags(u16);

/// The features of the unwind information of the function and of its chain parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorAttrs(u16);

/// Generates the accessors of a set of bits.
macro_rules! bits {
    ($type:ident: $($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl $type {
            /// Returns the bits as stored.
            pub const fn bits(self) -> u16 {
                self.0
            }

            $($(#[$doc])*
            pub const fn $name(self) -> bool {
                self.0 & $bit != 0
            })*
        }
    };
}

bits! { VectorFlags:
    /// Returns true if wine or CoreCLR agrees with the execution in rip, rsp, and every nonvolatile
    /// register: an unwinder can and must find these values.
    is_gold = 1,
    /// Returns true if the caller's registers were recorded at the return; otherwise at the call,
    /// since an exception unwound the frame.
    truth_from_return = 2,
    /// Returns true if wine is right in every register that was recorded of the caller.
    wine_right = 4,
    /// Returns true if CoreCLR is right in every register that was recorded of the caller.
    coreclr_right = 8,
    /// Returns true if the callee preserved the nonvolatile registers.
    nonvolatiles_preserved = 16,
    /// Returns true if the frame was entered by a machine frame (for example an interrupt), not by
    /// a call.
    entered_by_machine_frame = 32,
    /// Returns true if the vector has the callers of the caller too.
    has_chain = 64,
    /// Returns true if wine is right in rip and rsp.
    wine_rip_rsp_right = 128,
    /// Returns true if CoreCLR is right in rip and rsp.
    coreclr_rip_rsp_right = 256,
    /// Returns true if no RUNTIME_FUNCTION covers the instruction.
    no_runtime_function = 512,
}

bits! { VectorAttrs:
    /// Returns true if there is a frame register.
    frame_register = 1,
    /// Returns true if the information is chained.
    chained = 2,
    /// Returns true if there is a PUSH_MACHFRAME.
    machine_frame = 4,
    /// Returns true if the version is 2 or above.
    version_2 = 8,
    /// Returns true if there is a SAVE_XMM128, near or far.
    save_xmm = 16,
    /// Returns true if there is a SAVE_NONVOL, near or far.
    save_nonvol = 32,
    /// Returns true if there is an ALLOC_LARGE.
    alloc_large = 64,
    /// Returns true if there is a language-specific handler.
    handler = 128,
    /// Returns true if there are codes with 32-bit operands.
    far_forms = 256,
}

/// A caller further out than the caller of a vector, in its state directly after the return into
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterCaller {
    /// Return address (VA).
    pub rip: u64,
    /// Stack pointer (VA).
    pub rsp: u64,
    /// Integer registers of [`Gpr::NONVOLATILE`](clr_unwind::Gpr::NONVOLATILE), in that
    /// order.
    pub nonvolatile: [u64; 8],
}

/// An instruction boundary: the instruction at rip has not been executed yet.
#[derive(Clone, Debug)]
pub struct Vector<'a> {
    /// Address of the instruction (RVA).
    pub rva: u32,
    /// Facts about the vector.
    pub flags: VectorFlags,
    /// Rules that apply to the frame.
    pub kind: VectorKind,
    /// Features of the unwind information.
    pub attrs: VectorAttrs,
    /// BeginAddress of the RUNTIME_FUNCTION (RVA), 0 without one.
    pub begin_address: u32,
    /// Index of the executed test: a line of the file of test names, counted from 0.
    pub test: u32,
    /// Depth of calls from the test's entry; 1 is the test function itself.
    pub depth: u32,
    /// Registers at the boundary.
    pub registers: Registers,
    /// Caller's state as execution reached it: rip, rsp and the nonvolatile registers. The others
    /// are unknown.
    pub truth: UnwindAnswer,
    /// Answer of wine's RtlVirtualUnwind.
    pub wine: UnwindAnswer,
    /// Answer of CoreCLR's unwinder.
    pub coreclr: UnwindAnswer,
    /// Callers of the caller in `truth`, innermost first. All but the last are in the image; the
    /// last one is the program that called the test. Empty in most vectors.
    pub chain: Vec<OuterCaller>,
    /// Known parts of the stack, ascending by address, not overlapping.
    segments: Vec<Segment<'a>>,
}

impl<'a> Vector<'a> {
    /// Returns the known parts of the stack, ascending by address, not overlapping. No other memory
    /// may be read.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = Segment<'a>> {
        self.segments.iter().copied()
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, FormatError> {
        let rva = cursor.u32()?;
        let flags = VectorFlags(cursor.u16()?);
        let offset = cursor.at;
        let kind = match cursor.u8()? {
            0 => VectorKind::Leaf,
            1 => VectorKind::Prologue,
            2 => VectorKind::Body,
            3 => VectorKind::CodeEpilogue,
            4 => VectorKind::CodesEpilogue,
            _ => return Err(FormatError::BadKind { offset }),
        };
        let segment_count = cursor.u8()?;
        let attrs = VectorAttrs(cursor.u16()?);
        let chain_count = cursor.u16()?;
        let begin_address = cursor.u32()?;
        let test = cursor.u32()?;
        let depth = cursor.u32()?;
        let rip = cursor.u64()?;
        Ok(Self {
            rva,
            flags,
            kind,
            attrs,
            begin_address,
            test,
            depth,
            registers: cursor.registers(rip)?,
            truth: UnwindAnswer::read(cursor)?,
            wine: UnwindAnswer::read(cursor)?,
            coreclr: UnwindAnswer::read(cursor)?,
            // The fields are read in the order written here, which is the order in the file.
            segments: read_segments(cursor, segment_count)?,
            chain: read_chain(cursor, chain_count)?,
        })
    }
}

fn read_segments<'a>(cursor: &mut Cursor<'a>, count: u8) -> Result<Vec<Segment<'a>>, FormatError> {
    let mut segments = Vec::new();
    // Wide enough for the end of a segment that includes the last byte of the address space.
    let mut end = 0_u128;
    for _ in 0..count {
        let offset = cursor.at;
        let address = cursor.u64()?;
        let len = cursor.u32()?;
        let bytes = cursor.take(len as usize)?;
        if u128::from(address) < end {
            return Err(FormatError::SegmentOrder { offset });
        }
        end = u128::from(address) + u128::from(len);
        if end > 1 << 64 {
            return Err(FormatError::SegmentWraps { offset });
        }
        segments.push(Segment::new(address, bytes));
    }
    Ok(segments)
}

fn read_chain(cursor: &mut Cursor<'_>, count: u16) -> Result<Vec<OuterCaller>, FormatError> {
    let mut chain = Vec::new();
    for _ in 0..count {
        let (rip, rsp) = (cursor.u64()?, cursor.u64()?);
        let mut nonvolatile = [0; 8];
        for value in &mut nonvolatile {
            *value = cursor.u64()?;
        }
        chain.push(OuterCaller { rip, rsp, nonvolatile });
    }
    Ok(chain)
}

#[cfg(test)]
mod tests;
