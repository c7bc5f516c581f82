//! Unwind vectors of Windows x64 code, taken by executing it one instruction at a time.
//!
//! A [`Vector`] is the registers and the stack at an instruction boundary, the caller's registers
//! as they were once the code had returned, and what wine and CoreCLR made of it.

use super::records::{Cursor, Records};
use super::{FormatError, Outcome};
use clr_walker::memory::Segment;
use clr_walker::registers::Registers;

const MAGIC: [u8; 8] = *b"W64UVEC1";

/// The vectors of one image.
#[derive(Clone, Copy, Debug)]
pub struct VectorFile<'a> {
    image_base: u64,
    size_of_image: u32,
    chains: u32,
    records: Records<'a>,
}

impl<'a> VectorFile<'a> {
    /// Takes the decompressed bytes of a file and checks that they divide into the vectors that
    /// the header counts. The vectors themselves are checked when they are read.
    ///
    /// # Errors
    /// [`FormatError`] if the header is wrong or the lengths of the vectors do not add up.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::after_magic(bytes, MAGIC)?;
        let image_base = cursor.u64()?;
        let size_of_image = cursor.u32()?;
        let count = cursor.u32()?;
        let chains = cursor.u32()?;
        cursor.zeroes(4)?;
        Ok(Self { image_base, size_of_image, chains, records: Records::new(cursor, count)? })
    }

    /// Where the image was loaded (VA): its preferred base.
    #[must_use]
    pub const fn image_base(&self) -> u64 {
        self.image_base
    }

    /// SizeOfImage of the image, in bytes.
    #[must_use]
    pub const fn size_of_image(&self) -> u32 {
        self.size_of_image
    }

    /// How many vectors have a chain, as the header says.
    #[must_use]
    pub const fn chains(&self) -> u32 {
        self.chains
    }

    /// How many vectors there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.count == 0
    }

    /// Reads the vectors in the order of the file. An item that is an error is the last.
    pub fn iter(&self) -> impl Iterator<Item = Result<Vector<'a>, FormatError>> + use<'a> {
        self.records.iter(Vector::read)
    }

    /// Reads vector `n`, counted from 0; `None` if there are not so many. This walks over the
    /// lengths of those before it.
    #[must_use]
    pub fn get(&self, n: usize) -> Option<Result<Vector<'a>, FormatError>> {
        self.records.get(n, Vector::read)
    }
}

/// Which rules unwind the frame at this instruction, by CoreCLR's reckoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// There is no RUNTIME_FUNCTION: rip is at the top of the stack.
    Leaf,
    /// Before the end of the prologue.
    Prologue,
    /// In the body.
    Body,
    /// In an epilogue that the bytes of code tell (version 1).
    CodeEpilogue,
    /// In an epilogue that EPILOG codes tell (version 2).
    CodesEpilogue,
}

/// What is known of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorFlags(u16);

/// What there is in the unwind information of the function and of its chain parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorAttrs(u16);

/// Gives a set of bits its accessors.
macro_rules! bits {
    ($type:ident: $($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl $type {
            /// The bits as stored.
            #[must_use]
            pub const fn bits(self) -> u16 {
                self.0
            }

            $($(#[$doc])*
            #[must_use]
            pub const fn $name(self) -> bool {
                self.0 & $bit != 0
            })*
        }
    };
}

bits! { VectorFlags:
    /// The truth is what wine or CoreCLR says, in rip, rsp, and every nonvolatile register: an
    /// unwinder can and must find it.
    is_gold = 1,
    /// The truth was taken at the return itself; otherwise at the call, an exception having
    /// unwound the frame.
    truth_from_return = 2,
    /// Wine is right in every register that the truth covers.
    wine_right = 4,
    /// CoreCLR is right in every register that the truth covers.
    coreclr_right = 8,
    /// The callee preserved the nonvolatile registers.
    nonvolatiles_preserved = 16,
    /// The frame was entered by a machine frame (an interrupt, say), not by a call.
    entered_by_machine_frame = 32,
    /// The vector has the callers of the caller too.
    has_chain = 64,
    /// Wine is right in rip and rsp.
    wine_rip_rsp_right = 128,
    /// CoreCLR is right in rip and rsp.
    coreclr_rip_rsp_right = 256,
    /// No RUNTIME_FUNCTION covers the instruction.
    no_runtime_function = 512,
}

bits! { VectorAttrs:
    /// There is a frame register.
    frame_register = 1,
    /// The information is chained.
    chained = 2,
    /// There is a PUSH_MACHFRAME.
    machine_frame = 4,
    /// The version is 2 or above.
    version_2 = 8,
    /// There is a SAVE_XMM128, near or far.
    save_xmm = 16,
    /// There is a SAVE_NONVOL, near or far.
    save_nonvol = 32,
    /// There is an ALLOC_LARGE.
    alloc_large = 64,
    /// There is a language handler.
    handler = 128,
    /// There are codes with 32-bit operands.
    far_forms = 256,
}

/// A caller further out than the truth of a vector, as it is right after the return into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainFrame {
    /// The return address (VA).
    pub rip: u64,
    /// The stack pointer (VA).
    pub rsp: u64,
    /// The integer registers of [`Gpr::NONVOLATILE`](clr_walker::registers::Gpr::NONVOLATILE), in
    /// that order.
    pub nonvolatile: [u64; 8],
}

/// One instruction boundary: the instruction at rip has not run yet.
#[derive(Clone, Debug)]
pub struct Vector<'a> {
    /// The instruction (RVA).
    pub rva: u32,
    /// What is known of the vector.
    pub flags: VectorFlags,
    /// Which rules apply.
    pub kind: VectorKind,
    /// What the unwind information has.
    pub attrs: VectorAttrs,
    /// BeginAddress of the RUNTIME_FUNCTION (RVA), 0 if there is none.
    pub begin_address: u32,
    /// The test that ran: a line of the file of test names, counted from 0.
    pub test: u32,
    /// How many calls deep from the test's entry; 1 is the test function itself.
    pub depth: u32,
    /// The registers.
    pub registers: Registers,
    /// The caller as it really was: rip, rsp and the nonvolatile registers. The others are not
    /// known.
    pub truth: Outcome,
    /// What wine's RtlVirtualUnwind answered.
    pub wine: Outcome,
    /// What CoreCLR's unwinder answered.
    pub coreclr: Outcome,
    /// The callers of the caller in `truth`, innermost first. All but the last are in the image:
    /// the last is the program that called the test. Empty in most vectors.
    pub chain: Vec<ChainFrame>,
    /// Ascending by address, not overlapping.
    segments: Vec<Segment<'a>>,
}

impl<'a> Vector<'a> {
    /// The stack as far as it is known: ascending by address, not overlapping. Nothing else may be
    /// read.
    #[must_use]
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
            truth: Outcome::read(cursor)?,
            wine: Outcome::read(cursor)?,
            coreclr: Outcome::read(cursor)?,
            // Fields are read in the order written here, which is that of the file.
            segments: read_segments(cursor, segment_count)?,
            chain: read_chain(cursor, chain_count)?,
        })
    }
}

fn read_segments<'a>(cursor: &mut Cursor<'a>, count: u8) -> Result<Vec<Segment<'a>>, FormatError> {
    let mut segments = Vec::new();
    // Wide enough for the end of a segment with the very last byte of the address space.
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

fn read_chain(cursor: &mut Cursor<'_>, count: u16) -> Result<Vec<ChainFrame>, FormatError> {
    let mut chain = Vec::new();
    for _ in 0..count {
        let (rip, rsp) = (cursor.u64()?, cursor.u64()?);
        let mut nonvolatile = [0; 8];
        for value in &mut nonvolatile {
            *value = cursor.u64()?;
        }
        chain.push(ChainFrame { rip, rsp, nonvolatile });
    }
    Ok(chain)
}

#[cfg(test)]
mod tests;
