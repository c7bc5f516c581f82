//! Readers of recorded unwinds: inputs of an unwinder and expected answers.
//!
//! [`win64`] reads steps of code that was executed, with the caller's registers after the return;
//! [`fuzz`] reads artificial cases, with the answers of two unwinders. Both take the decompressed
//! bytes ([`decompress`]), borrow from them, and trust no length or count in them.

pub mod fuzz;
mod records;
pub mod replay;
pub mod win64;

use clr_unwind::Registers;
use flate2::read::GzDecoder;
pub use records::Records;

use records::Cursor;
use std::io::Read;
use thiserror::Error;

/// Maximum size in bytes of a decompressed file: far more than any of our files, and no burden for
/// the machine.
pub const DECOMPRESSED_LIMIT: usize = 256 << 20;

/// The reason why bytes could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// The bytes are not one complete gzip member: another format, cut short, or damaged.
    #[error("incomplete or damaged gzip data after {decompressed:#x} decompressed bytes")]
    Corrupt {
        /// Number of decompressed bytes before the fault.
        decompressed: usize,
    },
    /// The decompressed data exceeds the limit.
    #[error("the decompressed data has more than {limit:#x} bytes")]
    TooLong {
        /// Limit in bytes.
        limit: usize,
    },
}

/// Returns the content of a gzip file of one member, if it is no longer than `limit` bytes. Memory
/// is allocated as content appears, so that a small file cannot request much; bytes after the
/// member are ignored.
///
/// # Errors
/// Returns [`DecompressError`] if `gz` is damaged or contains more than `limit` bytes.
pub fn decompress(gz: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut content = Vec::new();
    let one_too_many = (limit as u64).saturating_add(1);
    let end = GzDecoder::new(gz).take(one_too_many).read_to_end(&mut content);
    if content.len() > limit {
        Err(DecompressError::TooLong { limit })
    } else if end.is_err() {
        Err(DecompressError::Corrupt { decompressed: content.len() })
    } else {
        Ok(content)
    }
}

/// The reason why bytes are not a file of vectors or of fuzz records. Offsets count bytes from the
/// start of the decompressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin with the signature of its format.
    #[error("the signature is missing")]
    BadMagic,
    /// The file, or the record within its given length, ends inside a field.
    #[error("the field at {offset:#x} is cut short")]
    TooShort {
        /// Start of the field.
        offset: usize,
    },
    /// The length of a record is not a multiple of 4, does not include its own field, or exceeds
    /// the content by more than padding.
    #[error("the length of the record at {offset:#x} is wrong")]
    BadLength {
        /// Start of the record.
        offset: usize,
    },
    /// Reserved bytes or padding are not zero.
    #[error("the bytes at {offset:#x} should be zero")]
    NotZero {
        /// Start of these bytes.
        offset: usize,
    },
    /// The kind of a record is undefined.
    #[error("the kind at {offset:#x} is not defined")]
    BadKind {
        /// Offset of the kind.
        offset: usize,
    },
    /// The status of an outcome is undefined.
    #[error("the status at {offset:#x} is not defined")]
    BadStatus {
        /// Offset of the status.
        offset: usize,
    },
    /// The mask of an outcome names a register that does not exist, or any register although the
    /// status means that there is no answer.
    #[error("the mask at {offset:#x} names registers that cannot be present")]
    MaskOutOfRange {
        /// Offset of the mask.
        offset: usize,
    },
    /// Stack segments overlap or are not ascending.
    #[error("the segment at {offset:#x} does not begin after the one before it")]
    SegmentOrder {
        /// Offset of the higher segment.
        offset: usize,
    },
    /// A stack segment exceeds the address space.
    #[error("the segment at {offset:#x} goes beyond the end of the address space")]
    SegmentWraps {
        /// Offset of the segment.
        offset: usize,
    },
    /// The agreement of a fuzz record is neither 0 nor 1.
    #[error("the agreement at {offset:#x} is not defined")]
    BadAgreement {
        /// Offset of the agreement.
        offset: usize,
    },
    /// The epilogue field of a fuzz record is undefined.
    #[error("the epilogue at {offset:#x} is not defined")]
    BadEpilogue {
        /// Offset of the field.
        offset: usize,
    },
    /// The image bytes of a fuzz record reach beyond [`fuzz::FILL_END`].
    #[error("the count of image bytes at {offset:#x} is too large")]
    BlobTooLong {
        /// Offset of their count.
        offset: usize,
    },
    /// The file continues after the last of the counted records.
    #[error("the file should end at {offset:#x}")]
    TrailingBytes {
        /// End of the last record.
        offset: usize,
    },
}

/// The way in which an unwind ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnwindStatus {
    /// The unwind gave an answer.
    Fine,
    /// The unwind gave an answer, after a condition that a debug build of CoreCLR asserts against.
    AssertionFired,
    /// The unwind failed with a fault or an error: no answer.
    Failed,
    /// The unwind read outside the recorded memory (CoreCLR only): no answer.
    ReadOutsideWindow,
}

/// The state after one unwind, which is the caller's state if the unwinder is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindAnswer {
    /// Status of the unwind. The other fields are valid only with an answer
    /// ([`UnwindAnswer::is_answer`]).
    pub status: UnwindStatus,
    /// Integer registers whose values changed: bit n is the one with encoding n.
    pub gpr_mask: u16,
    /// Vector registers whose values changed: bit 0 is xmm6, bit 9 xmm15.
    pub xmm_mask: u16,
    /// Instruction pointer (VA).
    pub rip: u64,
    /// Establisher frame (VA); 0 for an outcome of execution.
    pub frame: u64,
    /// Language-specific handler (RVA) if the frame has one to be called here, otherwise 0; 0 for
    /// an outcome of execution.
    pub handler: u32,
    /// Data of that handler (RVA), otherwise 0.
    pub handler_data: u32,
    /// New values of the integer registers in [`gpr_mask`](Self::gpr_mask), 0 for the others.
    pub gpr: [u64; 16],
    /// New values of the vector registers in [`xmm_mask`](Self::xmm_mask), 0 for the others.
    pub xmm: [u128; 10],
}

impl UnwindAnswer {
    /// Returns true if the unwind gave an answer.
    pub const fn is_answer(&self) -> bool {
        matches!(self.status, UnwindStatus::Fine | UnwindStatus::AssertionFired)
    }

    /// Returns all registers after the unwind, where `input` holds those before it. Without an
    /// answer the result is `input`.
    pub fn apply(&self, input: &Registers) -> Registers {
        if !self.is_answer() {
            return *input;
        }
        let mut registers = Registers { rip: self.rip, ..*input };
        for (register, value) in selected(registers.gpr.iter_mut().zip(self.gpr), self.gpr_mask) {
            *register = value;
        }
        for (register, value) in selected(registers.xmm.iter_mut().zip(self.xmm), self.xmm_mask) {
            *register = value;
        }
        registers
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, FormatError> {
        let offset = cursor.at;
        let status = match cursor.u8()? {
            1 => UnwindStatus::Fine,
            2 => UnwindStatus::AssertionFired,
            3 => UnwindStatus::Failed,
            4 => UnwindStatus::ReadOutsideWindow,
            _ => return Err(FormatError::BadStatus { offset }),
        };
        cursor.zeroes(1)?;
        let masks = cursor.at;
        let (gpr_mask, xmm_mask) = (cursor.u16()?, cursor.u16()?);
        cursor.zeroes(2)?;
        let mut outcome = Self {
            status,
            gpr_mask,
            xmm_mask,
            rip: cursor.u64()?,
            frame: cursor.u64()?,
            handler: cursor.u32()?,
            handler_data: cursor.u32()?,
            gpr: [0; 16],
            xmm: [0; 10],
        };
        let (gpr_limit, xmm_limit) =
            if outcome.is_answer() { (u16::MAX, (1 << outcome.xmm.len()) - 1) } else { (0, 0) };
        if gpr_mask & !gpr_limit != 0 {
            return Err(FormatError::MaskOutOfRange { offset: masks });
        }
        if xmm_mask & !xmm_limit != 0 {
            return Err(FormatError::MaskOutOfRange { offset: masks + 2 });
        }
        for value in selected(&mut outcome.gpr, gpr_mask) {
            *value = cursor.u64()?;
        }
        for value in selected(&mut outcome.xmm, xmm_mask) {
            *value = cursor.u128()?;
        }
        Ok(outcome)
    }
}

/// Returns those of at most sixteen elements whose bits are set in `mask`.
fn selected<T>(elements: impl IntoIterator<Item = T>, mask: u16) -> impl Iterator<Item = T> {
    (0..16).zip(elements).filter(move |(bit, _)| mask >> bit & 1 != 0).map(|(_, element)| element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::Gpr;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// Returns the bytes of an outcome, in which every u64 is different.
    pub(super) fn outcome(status: u8, gpr_mask: u16, xmm_mask: u16) -> Vec<u8> {
        let mut bytes = vec![status, 0];
        bytes.extend(gpr_mask.to_le_bytes());
        bytes.extend(xmm_mask.to_le_bytes());
        bytes.extend([0, 0]);
        for word in [0x1111_u64, 0x2222, 0x4444_0000_3333] {
            bytes.extend(word.to_le_bytes());
        }
        for n in 0..gpr_mask.count_ones() {
            bytes.extend((0xA0 + u64::from(n)).to_le_bytes());
        }
        for n in 0..xmm_mask.count_ones() {
            bytes.extend(((0xB << 64) + 0xC0 + u128::from(n)).to_le_bytes());
        }
        bytes
    }

    /// Returns `bytes` with `patch` written over them at `offset`.
    pub(super) fn patched(bytes: &[u8], offset: usize, patch: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[offset..offset + patch.len()].copy_from_slice(patch);
        bytes
    }

    /// Returns a decompressed fixture.
    pub(super) fn fixture(name: &str) -> Vec<u8> {
        decompress(clr_fixtures::get(name).unwrap(), DECOMPRESSED_LIMIT).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<UnwindAnswer, FormatError> {
        let mut cursor = Cursor::after_magic(bytes, *b"outcome:")?;
        let outcome = UnwindAnswer::read(&mut cursor)?;
        assert_eq!(cursor.at, bytes.len());
        Ok(outcome)
    }

    /// Returns a file of 8 bytes and an outcome.
    fn file(status: u8, gpr_mask: u16, xmm_mask: u16) -> Vec<u8> {
        [b"outcome:".to_vec(), outcome(status, gpr_mask, xmm_mask)].concat()
    }

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn decompressing_stops_at_the_limit() {
        let content = vec![7; 1 << 20];
        let gz = compressed(&content);
        for limit in [1 << 20, DECOMPRESSED_LIMIT, usize::MAX] {
            assert_eq!(decompress(&gz, limit).as_ref(), Ok(&content));
        }
        for limit in [0, 1, (1 << 20) - 1] {
            assert_eq!(decompress(&gz, limit), Err(DecompressError::TooLong { limit }));
        }
        assert_eq!(decompress(&compressed(&[]), 0), Ok(Vec::new()));
    }

    #[test]
    fn damaged_gzip_is_refused() {
        let content: Vec<u8> = (0..=255).collect();
        let gz = compressed(&content);
        for len in 0..gz.len() {
            let result = decompress(&gz[..len], 1000);
            assert!(matches!(result, Err(DecompressError::Corrupt { .. })), "{len} bytes");
        }
        let corrupt = |decompressed| Err(DecompressError::Corrupt { decompressed });
        assert_eq!(decompress(b"not gzip, but long enough for its header", 1000), corrupt(0));
        let bad_checksum = patched(&gz, gz.len() - 8, &[!gz[gz.len() - 8]]);
        assert_eq!(decompress(&bad_checksum, 1000), corrupt(256));
    }

    #[test]
    fn an_outcome_changes_the_registers_it_names() {
        let outcome = read(&file(1, 0x8009, 0x201)).unwrap();
        assert_eq!(outcome.status, UnwindStatus::Fine);
        assert_eq!((outcome.gpr_mask, outcome.xmm_mask), (0x8009, 0x201));
        assert_eq!((outcome.rip, outcome.frame), (0x1111, 0x2222));
        assert_eq!((outcome.handler, outcome.handler_data), (0x3333, 0x4444));

        let input = Registers { rip: 1, gpr: [2; 16], xmm: [3; 10] };
        let mut expected = Registers { rip: 0x1111, ..input };
        expected.set(Gpr::Rax, 0xA0);
        expected.set(Gpr::Rbx, 0xA1);
        expected.set(Gpr::R15, 0xA2);
        expected.xmm[0] = 0xB << 64 | 0xC0;
        expected.xmm[9] = 0xB << 64 | 0xC1;
        assert_eq!(outcome.apply(&input), expected);

        let asserted = read(&file(2, 0xFFFF, 0x3FF)).unwrap();
        assert_eq!(asserted.status, UnwindStatus::AssertionFired);
        assert_eq!(asserted.apply(&input).gpr[15], 0xAF);
        assert_eq!(asserted.apply(&input).xmm[9], 0xB << 64 | 0xC9);
    }

    #[test]
    fn an_outcome_without_an_answer_changes_nothing() {
        let input = Registers { rip: 1, gpr: [2; 16], xmm: [3; 10] };
        for (status, meaning) in [(3, UnwindStatus::Failed), (4, UnwindStatus::ReadOutsideWindow)] {
            let outcome = read(&file(status, 0, 0)).unwrap();
            assert_eq!(outcome.status, meaning);
            assert!(!outcome.is_answer());
            assert_eq!(outcome.apply(&input), input);
        }
    }

    #[test]
    fn a_mask_made_by_hand_is_harmless() {
        let mut outcome = read(&file(1, 0, 0)).unwrap();
        outcome.xmm_mask = 0xFFFF;
        let input = Registers { rip: 1, gpr: [2; 16], xmm: [3; 10] };
        assert_eq!(outcome.apply(&input).xmm, [0; 10]);
    }

    #[test]
    fn malformed_outcomes_are_refused() {
        for status in [0, 5, 255] {
            let result = read(&file(status, 0, 0));
            assert_eq!(result, Err(FormatError::BadStatus { offset: 8 }));
        }
        let good = file(1, 1, 1);
        let result = read(&patched(&good, 9, &[1]));
        assert_eq!(result, Err(FormatError::NotZero { offset: 9 }));
        let result = read(&patched(&good, 15, &[1]));
        assert_eq!(result, Err(FormatError::NotZero { offset: 14 }));
        for xmm_mask in [0x400, 0x8000, 0xFFFF] {
            let result = read(&file(1, 0, xmm_mask));
            assert_eq!(result, Err(FormatError::MaskOutOfRange { offset: 12 }));
        }
        for status in [3, 4] {
            let result = read(&file(status, 0x8000, 0));
            assert_eq!(result, Err(FormatError::MaskOutOfRange { offset: 10 }));
            let result = read(&file(status, 0, 1));
            assert_eq!(result, Err(FormatError::MaskOutOfRange { offset: 12 }));
        }
        for len in 8..good.len() {
            let result = read(&good[..len]);
            assert!(matches!(result, Err(FormatError::TooShort { .. })), "{len} bytes");
        }
        assert_eq!(read(&good[..63]), Err(FormatError::TooShort { offset: 48 }));
        assert_eq!(read(&good[..7]), Err(FormatError::BadMagic));
    }
}
