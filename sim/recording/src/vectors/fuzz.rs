//! Artificial unwinds: random unwind information, code and registers, with the answers of wine and
//! CoreCLR. The correct answer is unknown; where both agree, another unwinder should agree too.
//!
//! The image is at [`IMAGE_BASE`] and completely known ([`FuzzRecord::content`]). Each word of the
//! stack is computed from its address ([`FuzzMemory`]).

use super::records::{Cursor, Records};
use super::{FormatError, UnwindAnswer};
use clr_machine::SplitMix64;
use clr_unwind::{Memory, Registers, Segment, Unreadable};
use std::ops::Range;

const MAGIC: [u8; 8] = *b"W64UFUZ1";

/// Load address of the image (VA).
pub const IMAGE_BASE: u64 = 0x1_E000_0000;

/// Start of the image bytes that a record contains (RVA).
pub const BLOB_RVA: u32 = 0x1000;

/// End of the image's content (RVA): from here on the image is zero.
pub const FILL_END: u32 = 0x1600;

/// The addresses of the stack (VA).
pub const STACK: Range<u64> = 0x1_E100_0000..0x1_E120_0000;

const CONTENT_LEN: usize = (FILL_END - BLOB_RVA) as usize;

/// The byte that fills content missing in the record: int3.
const FILL: u8 = 0xCC;

/// A file of fuzz records.
pub type FuzzFile<'a> = Records<'a, FuzzRecord<'a>>;

impl<'a> FuzzFile<'a> {
    /// Parses the decompressed bytes of a file, and checks that they divide into the records that
    /// the header counts. The records themselves are checked when they are read.
    ///
    /// # Errors
    /// Returns [`FormatError`] if the header is wrong or the lengths of the records do not add up.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::after_magic(bytes, MAGIC)?;
        let count = cursor.u32()?;
        cursor.zeroes(4)?;
        Self::new(cursor, count, FuzzRecord::read)
    }
}

/// The way in which a record was generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FuzzKind {
    /// Ordinary unwind codes.
    Plain,
    /// Code like that of an epilogue at the instruction.
    EpilogueLike,
    /// A malformed record: random operations, versions and flags.
    Malformed,
    /// A record with one to three chain parents.
    Chained,
    /// Version 2 with EPILOG codes.
    EpilogCodes,
    /// Random legal operations in any order.
    AnyOrder,
    /// Unwind codes with a machine frame.
    MachineFrame,
}

/// The relation of the instruction to epilogues, as determined by CoreCLR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// The instruction is not in an epilogue.
    No,
    /// The instruction is in an epilogue according to the bytes of code.
    ByCode,
    /// The instruction is in an epilogue according to EPILOG codes.
    ByEpilogCodes,
}

/// An artificial case.
#[derive(Clone, Debug)]
pub struct FuzzRecord<'a> {
    /// Address of the instruction (RVA).
    pub pc_rva: u32,
    /// Way in which the record was generated.
    pub kind: FuzzKind,
    /// Wine and CoreCLR both succeeded and gave the same rip, integer registers, and xmm6 to xmm15.
    /// Other records can only show that an unwinder does not misbehave.
    pub agree: bool,
    /// Relation of the instruction to epilogues.
    pub epilogue: Epilogue,
    /// RUNTIME_FUNCTIONs: BeginAddress, EndAddress and the address of the UNWIND_INFO (RVAs). The
    /// last one covers the instruction, the others are its chain parents.
    pub functions: Vec<[u32; 3]>,
    /// Bytes of the image from [`BLOB_RVA`]; they end at [`FILL_END`] or before.
    pub blob: &'a [u8],
    /// Registers before the unwind.
    pub registers: Registers,
    /// Answer of wine's RtlVirtualUnwind.
    pub wine: UnwindAnswer,
    /// Answer of CoreCLR's unwinder.
    pub coreclr: UnwindAnswer,
}

impl<'a> FuzzRecord<'a> {
    /// Returns the bytes of the image from [`BLOB_RVA`] to [`FILL_END`]: the blob, then int3.
    pub fn content(&self) -> [u8; CONTENT_LEN] {
        let mut content = [FILL; CONTENT_LEN];
        for (byte, given) in content.iter_mut().zip(self.blob) {
            *byte = *given;
        }
        content
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, FormatError> {
        let pc_rva = cursor.u32()?;
        let offset = cursor.at;
        let kind = match cursor.u8()? {
            0 => FuzzKind::Plain,
            1 => FuzzKind::EpilogueLike,
            2 => FuzzKind::Malformed,
            3 => FuzzKind::Chained,
            4 => FuzzKind::EpilogCodes,
            5 => FuzzKind::AnyOrder,
            6 => FuzzKind::MachineFrame,
            _ => return Err(FormatError::BadKind { offset }),
        };
        let function_count = cursor.u8()?;
        let offset = cursor.at;
        let agree = match cursor.u8()? {
            0 => false,
            1 => true,
            _ => return Err(FormatError::BadAgreement { offset }),
        };
        let offset = cursor.at;
        let epilogue = match cursor.u8()? {
            0 => Epilogue::No,
            1 => Epilogue::ByCode,
            2 => Epilogue::ByEpilogCodes,
            _ => return Err(FormatError::BadEpilogue { offset }),
        };
        let mut functions = Vec::new();
        for _ in 0..function_count {
            functions.push([cursor.u32()?, cursor.u32()?, cursor.u32()?]);
        }
        let offset = cursor.at;
        let blob_len = cursor.u32()? as usize;
        if blob_len > CONTENT_LEN {
            return Err(FormatError::BlobTooLong { offset });
        }
        Ok(Self {
            pc_rva,
            kind,
            agree,
            epilogue,
            functions,
            // The fields are read in the order written here, which is the order in the file.
            blob: cursor.take(blob_len)?,
            registers: cursor.registers(IMAGE_BASE + u64::from(pc_rva))?,
            wine: UnwindAnswer::read(cursor)?,
            coreclr: UnwindAnswer::read(cursor)?,
        })
    }
}

/// Returns the 8-byte word of the stack at an address that is a multiple of 8: splitmix64 of the
/// address.
pub const fn stack_word(aligned_address: u64) -> u64 {
    SplitMix64(aligned_address).draw()
}

/// The memory of a fuzz record: the computed stack, and the image. All other addresses are
/// unreadable, and so are accesses across the end of either.
#[derive(Clone, Copy, Debug)]
pub struct FuzzMemory<'a> {
    image: Segment<'a>,
}

impl<'a> FuzzMemory<'a> {
    /// Creates the memory with `image` at [`IMAGE_BASE`]. The stack takes precedence over an image
    /// that reaches it.
    pub const fn new(image: &'a [u8]) -> Self {
        Self { image: Segment::new(IMAGE_BASE, image) }
    }
}

impl Memory for FuzzMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if !STACK.contains(&address) {
            return self.image.read(address, buffer);
        }
        if buffer.len() as u64 > STACK.end - address {
            return Err(Unreadable { address, len: buffer.len() as u32 });
        }
        for (byte, address) in buffer.iter_mut().zip(address..) {
            let word = stack_word(address & !7).to_le_bytes();
            *byte = word[(address & 7) as usize];
        }
        Ok(())
    }

    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        // Nearly all reads of a walk: each byte would compute the word again.
        if STACK.contains(&address) && address.is_multiple_of(8) {
            return Ok(stack_word(address));
        }
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        if STACK.contains(&address) && address.is_multiple_of(16) {
            let high = u128::from(stack_word(address + 8));
            return Ok(high << 64 | u128::from(stack_word(address)));
        }
        let mut bytes = [0; 16];
        self.read(address, &mut bytes)?;
        Ok(u128::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::UnwindStatus;
    use crate::vectors::tests::{fixture, outcome, patched};
    use clr_unwind::Gpr;

    const HEADER: usize = 16;
    const KIND: usize = HEADER + 8;
    const BLOB: usize = HEADER + 12 + 2 * 12;
    const WINE: usize = BLOB + 4 + 5 + 16 * 8 + 10 * 16;
    const PADDING: usize = WINE + 32 + 8 + 32;
    const END: usize = PADDING + 3;

    fn file(records: &[&[u8]]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((records.len() as u64).to_le_bytes());
        [bytes, records.concat()].concat()
    }

    /// Returns a record with two functions and five bytes of image.
    fn record() -> Vec<u8> {
        let mut bytes = ((END - HEADER) as u32).to_le_bytes().to_vec();
        bytes.extend(0x1003_u32.to_le_bytes());
        bytes.extend([3, 2, 1, 2]);
        for word in [0x1100_u32, 0x1200, 0x1300, 0x1000, 0x1050, 0x1400, 5] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(b"image");
        for word in 0..16_u64 {
            bytes.extend((STACK.start + word).to_le_bytes());
        }
        for word in 0..10_u128 {
            bytes.extend((1 << 100 | word).to_le_bytes());
        }
        bytes.extend(outcome(1, 0x10, 0));
        bytes.extend(outcome(4, 0, 0));
        bytes.extend([0; 3]);
        bytes
    }

    /// Reads all fields.
    fn read_all(bytes: &[u8]) -> Result<Vec<FuzzRecord<'_>>, FormatError> {
        let records: Vec<_> = FuzzFile::parse(bytes)?.iter().collect::<Result<_, _>>()?;
        for record in &records {
            for outcome in [record.wine, record.coreclr] {
                let _ = outcome.apply(&record.registers);
            }
            assert!(record.content().starts_with(record.blob));
        }
        Ok(records)
    }

    #[test]
    fn words_are_those_that_their_bytes_make() {
        let memory = FuzzMemory::new(b"0123456789abcdefg");
        let starts = [STACK.start, STACK.start + 0x4F8, STACK.end - 24, IMAGE_BASE - 1];
        for address in starts.into_iter().flat_map(|start| start..start + 24) {
            let mut bytes = [0; 8];
            let read = memory.read(address, &mut bytes).map(|()| u64::from_le_bytes(bytes));
            assert_eq!(memory.read_u64(address), read, "{address:#x}");
            let mut bytes = [0; 16];
            let read = memory.read(address, &mut bytes).map(|()| u128::from_le_bytes(bytes));
            assert_eq!(memory.read_u128(address), read, "{address:#x}");
        }
    }

    #[test]
    fn every_field_is_where_it_should_be() {
        let bytes = file(&[&record()]);
        assert_eq!(bytes.len(), END);
        let file = FuzzFile::parse(&bytes).unwrap();
        assert_eq!((file.len(), file.is_empty()), (1, false));

        let record = file.get(0).unwrap().unwrap();
        assert_eq!((record.pc_rva, record.kind, record.agree), (0x1003, FuzzKind::Chained, true));
        assert_eq!(record.epilogue, Epilogue::ByEpilogCodes);
        assert_eq!(record.functions, [[0x1100, 0x1200, 0x1300], [0x1000, 0x1050, 0x1400]]);
        assert_eq!(record.blob, b"image");
        let content = record.content();
        assert_eq!((content.len(), &content[..6]), (0x600, &b"image\xCC"[..]));
        assert!(content[5..].iter().all(|&byte| byte == 0xCC));
        assert_eq!(record.registers.rip, 0x1_E000_1003);
        assert_eq!(record.registers.get(Gpr::R15), STACK.start + 15);
        assert_eq!(record.registers.xmm[9], 1 << 100 | 9);
        assert_eq!(record.wine.apply(&record.registers).rsp(), 0xA0);
        assert_eq!(record.coreclr.status, UnwindStatus::ReadOutsideWindow);

        let empty = self::file(&[]);
        let empty = FuzzFile::parse(&empty).unwrap();
        assert!(empty.is_empty() && empty.iter().next().is_none() && empty.get(0).is_none());
    }

    #[test]
    fn malformed_files_are_refused() {
        let good = file(&[&record()]);
        let cases: &[(usize, &[u8], FormatError)] = &[
            (7, b"2", FormatError::BadMagic),
            (12, &[1], FormatError::NotZero { offset: 12 }),
            (8, &[0], FormatError::TrailingBytes { offset: HEADER }),
            (8, &[0xFF; 4], FormatError::TooShort { offset: END }),
            (HEADER, &[3, 0], FormatError::BadLength { offset: HEADER }),
            (KIND, &[7], FormatError::BadKind { offset: KIND }),
            (KIND + 1, &[0xFF], FormatError::TooShort { offset: END }),
            (KIND + 2, &[2], FormatError::BadAgreement { offset: KIND + 2 }),
            (KIND + 3, &[3], FormatError::BadEpilogue { offset: KIND + 3 }),
            (BLOB, &[1, 6], FormatError::BlobTooLong { offset: BLOB }),
            (BLOB, &[0xFF; 4], FormatError::BlobTooLong { offset: BLOB }),
            (BLOB, &[0, 6], FormatError::TooShort { offset: BLOB + 4 }),
            (WINE, &[9], FormatError::BadStatus { offset: WINE }),
            (WINE + 5, &[4], FormatError::MaskOutOfRange { offset: WINE + 4 }),
            (PADDING + 2, &[1], FormatError::NotZero { offset: PADDING }),
        ];
        for &(offset, patch, error) in cases {
            let result = read_all(&patched(&good, offset, patch)).map(|_| ());
            assert_eq!(result, Err(error), "{patch:x?} at {offset:#x}");
        }
    }

    #[test]
    fn damage_anywhere_is_survived() {
        let good = file(&[&record()]);
        for len in 0..good.len() {
            assert!(FuzzFile::parse(&good[..len]).is_err(), "{len} bytes");
        }
        // Cut in the same way, with a length that hides the cut.
        for len in (HEADER + 4..END).step_by(4) {
            let cut = patched(&good[..len], HEADER, &((len - HEADER) as u32).to_le_bytes());
            assert!(matches!(read_all(&cut), Err(FormatError::TooShort { .. })), "{len} bytes");
        }
        for offset in 0..good.len() {
            for byte in [0, 1, 0x7F, 0x80, 0xFF, !good[offset]] {
                let _ = read_all(&patched(&good, offset, &[byte]));
            }
        }
    }

    #[test]
    fn the_stack_is_computed_and_the_image_is_given() {
        let memory = FuzzMemory::new(b"0123456789");
        let (low, high) = (stack_word(STACK.start), stack_word(STACK.start + 8));
        assert_eq!(memory.read_u64(STACK.start), Ok(low));
        assert_eq!(memory.read_u64(STACK.start + 3), Ok(low >> 24 | high << 40));
        assert_eq!(memory.read_u128(STACK.start), Ok(u128::from(low) | u128::from(high) << 64));
        assert_eq!(memory.read_u64(STACK.end - 8), Ok(stack_word(STACK.end - 8)));
        assert_eq!(memory.read_u64(IMAGE_BASE + 2), Ok(u64::from_le_bytes(*b"23456789")));
        let mut byte = [0];
        assert_eq!(memory.read(STACK.end - 1, &mut byte), Ok(()));
        assert_eq!(byte[0], stack_word(STACK.end - 8).to_le_bytes()[7]);
        for address in
            [0, IMAGE_BASE - 1, IMAGE_BASE + 3, STACK.start - 1, STACK.end - 7, STACK.end, u64::MAX]
        {
            assert_eq!(memory.read_u64(address), Err(Unreadable { address, len: 8 }));
        }
    }

    #[test]
    fn the_fixture_is_read_whole() {
        let bytes = fixture("win64/diff/fuzz.bin.gz");
        let all = read_all(&bytes).unwrap();
        let memory = FuzzMemory::new(&[]);
        let mut kinds = [0; 7];
        let mut plain_returns = 0;
        for record in &all {
            kinds[record.kind as usize] += 1;
            let &[begin, end, _] = record.functions.last().unwrap();
            assert!((begin..end).contains(&record.pc_rva));
            assert!(STACK.contains(&record.registers.rsp()));
            let wine = record.wine.apply(&record.registers);
            let coreclr = record.coreclr.apply(&record.registers);
            let fine = [record.wine, record.coreclr].map(|outcome| outcome.status)
                == [UnwindStatus::Fine; 2];
            assert_eq!(record.agree, fine && wine == coreclr);
            // Without a machine frame, the return address is directly below the caller's frame.
            if record.agree && record.kind == FuzzKind::Plain {
                assert_eq!(memory.read_u64(wine.rsp() - 8), Ok(wine.rip));
                plain_returns += 1;
            }
        }
        assert_eq!(all.len(), 409);
        assert_eq!(kinds, [52, 49, 60, 61, 58, 59, 70]);
        assert_eq!(all.iter().filter(|record| record.agree).count(), 286);
        assert_eq!(plain_returns, 49);
        let by_codes = |record: &&FuzzRecord<'_>| record.epilogue == Epilogue::ByEpilogCodes;
        assert_eq!(all.iter().filter(by_codes).count(), 4);
    }
}
