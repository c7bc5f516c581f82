//! Files of vectors that readers take: what damage has done to signatures, checksums, counts and lengths is corrected.
//!
//! Few changes to a file leave all of these as they have to be, so that nearly all changed files are refused at
//! once. The reader's own error says what to correct next.

use clr_recording::vectors::FormatError;
use clr_recording::vectors::fuzz::FuzzFile;
use clr_recording::vectors::win64::VectorFile;
use flate2::read::DeflateDecoder;
use std::io::Read as _;

/// Corrections of a file at most. Some need another file than this.
const LIMIT: usize = 40;
/// Records that are looked at.
const RECORDS: usize = 64;
/// Sizes of a record that are tried.
const SIZES: usize = 1 << 10;
/// Size of a gzip header without a name, in bytes.
const GZIP_HEADER: usize = 10;
/// An address above those of the code and the stacks of recorded processes.
const HIGH: u64 = 0x7000_0000_0000_0000;

/// The two formats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Vectors,
    FuzzRecords,
}

impl Format {
    /// Returns the format whose signature is the more similar one.
    fn of(file: &[u8]) -> Self {
        let similar = |magic: &[u8; 8]| file.iter().zip(magic).filter(|(a, b)| a == b).count();
        if similar(b"W64UFUZ1") > similar(b"W64UVEC1") { Self::FuzzRecords } else { Self::Vectors }
    }

    /// Returns the signature, the place of the number of records, and the size of the header.
    const fn header(self) -> (&'static [u8; 8], usize, usize) {
        match self {
            Self::Vectors => (b"W64UVEC1", 20, 32),
            Self::FuzzRecords => (b"W64UFUZ1", 8, 16),
        }
    }

    /// Returns what is wrong with the first records.
    fn error(self, file: &[u8]) -> Option<FormatError> {
        match self {
            Self::Vectors => match VectorFile::parse(file) {
                Ok(read) => read.iter().take(RECORDS).find_map(Result::err),
                Err(error) => Some(error),
            },
            Self::FuzzRecords => match FuzzFile::parse(file) {
                Ok(read) => read.iter().take(RECORDS).find_map(Result::err),
                Err(error) => Some(error),
            },
        }
    }
}

/// Returns true if `file`, decompressed, is one of vectors or fuzz records whose first records can be read.
#[must_use]
pub fn is_readable(file: &[u8]) -> bool {
    Format::of(file).error(file).is_none()
}

/// Returns a damaged file, decompressed and corrected. What the checksum of a compressed one says does not count, nor what
/// follows the first byte that cannot be decompressed.
#[must_use]
pub fn repaired(file: &[u8], limit: usize) -> Vec<u8> {
    let mut file = content(file, limit);
    let format = Format::of(&file);
    for _ in 0..LIMIT {
        frame(&mut file, format);
        match format.error(&file) {
            Some(error) => correct(&mut file, format, error),
            None => break,
        }
    }
    file
}

/// Returns at most `limit` bytes of what is in a gzip member, or the file, if it does not begin as one.
fn content(file: &[u8], limit: usize) -> Vec<u8> {
    let mut content = Vec::new();
    if file.starts_with(&[0x1F, 0x8B]) {
        let deflated = file.get(GZIP_HEADER..).unwrap_or_default();
        // The bytes before the damage stay.
        let _ = DeflateDecoder::new(deflated).take(limit as u64).read_to_end(&mut content);
    } else {
        content.extend(file.iter().take(limit));
    }
    content
}

fn u32_at(file: &[u8], at: usize) -> usize {
    file.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |it| u32::from_le_bytes(*it) as usize)
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in file.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}

/// Returns the start of the record around `at`, or before.
fn record_at(file: &[u8], format: Format, at: usize) -> usize {
    let (_, _, mut start) = format.header();
    loop {
        let next = start + u32_at(file, start).max(4);
        if next > at || next >= file.len() {
            return start;
        }
        start = next;
    }
}

/// Writes the signature and the number of records, and makes the lengths of the records those of a whole file.
fn frame(file: &mut Vec<u8>, format: Format) {
    let (magic, count_at, header) = format.header();
    file.resize(file.len().max(header), 0);
    put(file, 0, magic);
    put(file, header - 4, &[0; 4]);
    let (mut at, mut count) = (header, 0_u32);
    while at + 4 <= file.len() {
        let rest = (file.len() - at) & !3;
        let len = (u32_at(file, at) & !3).clamp(4, rest);
        put(file, at, &(len as u32).to_le_bytes());
        (at, count) = (at + len, count + 1);
    }
    file.truncate(at);
    put(file, count_at, &count.to_le_bytes());
}

/// Corrects what `error` says of a file that is framed.
fn correct(file: &mut Vec<u8>, format: Format, error: FormatError) {
    match error {
        FormatError::NotZero { offset } => {
            let wrong = file.iter().skip(offset).position(|byte| *byte != 0).unwrap_or(0);
            put(file, offset + wrong, &[0]);
        }
        FormatError::BadKind { offset }
        | FormatError::BadAgreement { offset }
        | FormatError::BadEpilogue { offset } => put(file, offset, &[0]),
        FormatError::BadStatus { offset } => put(file, offset, &[1]),
        FormatError::MaskOutOfRange { offset } => put(file, offset, &[0; 2]),
        FormatError::SegmentOrder { offset } | FormatError::SegmentWraps { offset } => {
            // Addresses that ascend with the places in the file are in order.
            put(file, offset, &(HIGH + ((offset as u64) << 32)).to_le_bytes());
        }
        FormatError::BlobTooLong { offset } => put(file, offset, &32_u32.to_le_bytes()),
        FormatError::TooShort { offset } => lengthen(file, format, offset),
        FormatError::BadLength { offset } => shorten(file, format, offset),
        // The frame is right.
        _ => {}
    }
}

/// Makes room for the field at `offset`, after which its record should go on.
fn lengthen(file: &mut Vec<u8>, format: Format, offset: usize) {
    const MORE: usize = 16;
    let start = record_at(file, format, offset);
    let end = start + u32_at(file, start);
    let (rest, before) = (end.saturating_sub(offset), offset.saturating_sub(4));
    // Of bytes that are counted the count is wrong.
    if before > start && u32_at(file, before) > rest.max(64) {
        return put(file, before, &(rest as u32).to_le_bytes());
    }
    file.splice(end..end, [0; MORE]);
    put(file, start, &((end - start + MORE) as u32).to_le_bytes());
}

/// Removes what the record at `start` has after its last field.
fn shorten(file: &mut Vec<u8>, format: Format, start: usize) {
    let (_, count_at, header) = format.header();
    let len = u32_at(file, start);
    let record = &file[start..start + len];
    let mut alone = [&file[..header], record].concat();
    put(&mut alone, count_at, &1_u32.to_le_bytes());
    let fits = (8..len).step_by(4).take(SIZES).find(|len| {
        put(&mut alone, header, &(*len as u32).to_le_bytes());
        format.error(&alone[..header + len]).is_none()
    });
    let kept = fits.unwrap_or(len - 4);
    file.drain(start + kept..start + len);
    put(file, start, &(kept as u32).to_le_bytes());
}
