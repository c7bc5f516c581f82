//! Windows minidumps: the streams with memory, threads and modules.
//!
//! The structures are those of minidumpapiset.h (`MINIDUMP_…`) and winnt.h (`CONTEXT`) of the Windows SDK.

use crate::bytes::{DumpBytes, Source};
use crate::dumped::Run;
use crate::error::DumpError;
use crate::fields::Fields;
use crate::segments::read_part;
use crate::threads::Thread;
use clr_unwind::PeIdentity;
use std::ops::Range;

const SIGNATURE: &[u8; 4] = b"MDMP";
/// Size of the header, and of an entry of the directory.
const HEADER: usize = 32;
const ENTRY: usize = 12;
/// Kinds of streams (`MINIDUMP_STREAM_TYPE`).
const THREADS: u32 = 3;
const MODULES: u32 = 4;
const MEMORY: u32 = 5;
const SYSTEM: u32 = 7;
const MEMORY64: u32 = 9;
/// `PROCESSOR_ARCHITECTURE_AMD64`.
const AMD64: u16 = 9;
/// Sizes of entries.
const THREAD: usize = 48;
const MODULE: usize = 108;
const RANGE: usize = 16;
/// The first word of `VS_FIXEDFILEINFO`.
const VERSION: u32 = 0xFEEF_04BD;
/// Size of a path at most, in bytes: that of the system's own limit.
const PATH_LIMIT: u32 = 1 << 16;

/// An image that Windows has loaded.
#[derive(Clone, Debug)]
pub(crate) struct LoadedImage {
    pub(crate) range: Range<u64>,
    pub(crate) identity: PeIdentity,
    pub(crate) path: String,
    pub(crate) version: Option<[u16; 4]>,
}

/// What the streams of a minidump say.
#[derive(Debug, Default)]
pub(crate) struct Minidump {
    pub(crate) runs: Vec<Run>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) images: Vec<LoadedImage>,
}

/// Reads the parts of a minidump, all together not more than it has bytes: damaged ones may name the same part again and again.
struct Reader<'s, 'd> {
    source: &'s Source<'d>,
    left: u64,
}

/// A part of the dump.
struct Part {
    bytes: Vec<u8>,
    offset: u64,
}

impl Part {
    const fn fields(&self) -> Fields<'_> {
        Fields::of_stream(self.bytes.as_slice(), self.offset)
    }
}

impl Reader<'_, '_> {
    fn part(&mut self, offset: u64, size: u64) -> Result<Part, DumpError> {
        let end = self.source.size();
        let truncated = DumpError::Truncated { offset, size, end };
        let is_in = offset.checked_add(size).is_some_and(|part_end| part_end <= end);
        self.left = self.left.checked_sub(size).filter(|_| is_in).ok_or(truncated)?;
        Ok(Part { bytes: read_part(self.source, offset, size)?, offset })
    }

    /// Reads the part that a `MINIDUMP_LOCATION_DESCRIPTOR` names: its size and offset.
    fn located(&mut self, fields: Fields<'_>, at: usize) -> Result<Part, DumpError> {
        self.part(fields.u32(at + 4)?.into(), fields.u32(at)?.into())
    }
}

/// Returns true if the dump begins as a minidump does.
pub(crate) fn is_one(source: &Source<'_>) -> bool {
    let mut start = [0; SIGNATURE.len()];
    source.read_at(0, &mut start).is_some() && start == *SIGNATURE
}

impl Minidump {
    /// Reads the streams.
    pub(crate) fn read(source: &Source<'_>) -> Result<Self, DumpError> {
        let mut reader = Reader { source, left: source.size() };
        let header = reader.part(0, HEADER as u64)?;
        let (count, directory) = (header.fields().u32(8)?, header.fields().u32(12)?);
        let directory = reader.part(directory.into(), u64::from(count) * ENTRY as u64)?;
        let (mut this, mut is_amd64, mut system) = (Self::default(), false, 0);
        for at in (0..directory.bytes.len()).step_by(ENTRY) {
            let entry = directory.fields().part(at, ENTRY)?;
            match entry.u32(0)? {
                THREADS => this.add_threads(&reader.located(entry, 4)?, &mut reader)?,
                MODULES => this.add_modules(&reader.located(entry, 4)?, &mut reader)?,
                MEMORY => this.add_memory(&reader.located(entry, 4)?)?,
                MEMORY64 => this.add_memory64(&reader.located(entry, 4)?)?,
                SYSTEM => {
                    let stream = reader.located(entry, 4)?;
                    (is_amd64, system) = (stream.fields().u16(0)? == AMD64, stream.offset);
                }
                _ => {}
            }
        }
        if !is_amd64 {
            return Err(DumpError::Processor { offset: system });
        }
        this.finish(source.size())?;
        Ok(this)
    }

    fn add_threads(&mut self, stream: &Part, reader: &mut Reader<'_, '_>) -> Result<(), DumpError> {
        for thread in entries(stream, THREAD)? {
            let thread = thread?;
            let context = reader.located(thread, 40)?;
            let id = thread.u32(0)?;
            self.threads.push(Thread::of_context(id, thread.u64(16)?, context.fields())?);
            // Of a full dump it is among the rest, and has no place of its own.
            let (address, size) = (thread.u64(24)?, thread.u32(32)?.into());
            let offset = thread.u32(36)?.into();
            if offset != 0 {
                self.runs.push(Run { address, offset, size });
            }
        }
        Ok(())
    }

    fn add_modules(&mut self, stream: &Part, reader: &mut Reader<'_, '_>) -> Result<(), DumpError> {
        for module in entries(stream, MODULE)? {
            let module = module?;
            let (start, size_of_image) = (module.u64(0)?, module.u32(8)?);
            let range = start..start.checked_add(size_of_image.into()).ok_or(module.damaged(0))?;
            let name = module.u32(20)?;
            let len = reader.part(name.into(), 4)?.fields().u32(0)?;
            if len > PATH_LIMIT {
                return Err(DumpError::Stream { offset: name.into() });
            }
            let text = reader.part(u64::from(name) + 4, len.into())?;
            let (units, _) = text.bytes.as_chunks();
            let units: Vec<_> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
            let (high, low) = (module.u32(32)?, module.u32(36)?);
            let halves = |word: u32| [(word >> 16) as u16, word as u16];
            let ([major, minor], [build, revision]) = (halves(high), halves(low));
            let is_version = module.u32(24)? == VERSION && (high, low) != (0, 0);
            self.images.push(LoadedImage {
                range,
                identity: PeIdentity {
                    time_stamp: module.u32(16)?,
                    size_of_image,
                    check_sum: module.u32(12)?,
                },
                path: String::from_utf16_lossy(&units),
                version: is_version.then_some([major, minor, build, revision]),
            });
        }
        Ok(())
    }

    fn add_memory(&mut self, stream: &Part) -> Result<(), DumpError> {
        for range in entries(stream, RANGE)? {
            let range = range?;
            let (size, offset) = (range.u32(8)?.into(), range.u32(12)?.into());
            self.runs.push(Run { address: range.u64(0)?, offset, size });
        }
        Ok(())
    }

    /// Adds the ranges whose bytes lie after one another, from one offset on.
    fn add_memory64(&mut self, stream: &Part) -> Result<(), DumpError> {
        let fields = stream.fields();
        let (count, mut offset) = (fields.u64(0)?, fields.u64(8)?);
        let count = usize::try_from(count).ok().and_then(|count| count.checked_mul(RANGE));
        let ranges = fields.part(16, count.ok_or(fields.damaged(0))?)?;
        for at in (0..ranges.len()).step_by(RANGE) {
            let (address, size) = (ranges.u64(at)?, ranges.u64(at + 8)?);
            self.runs.push(Run { address, offset, size });
            offset = offset.checked_add(size).ok_or(ranges.damaged(at + 8))?;
        }
        Ok(())
    }

    /// Checks that the dump has all bytes of its memory, and puts threads and images in order. A byte that two ranges have is taken
    /// from the one that begins first: stacks are often both with their threads and among the memory.
    fn finish(&mut self, end: u64) -> Result<(), DumpError> {
        self.runs.sort_by_key(|run| run.address);
        let mut next = 0_u64;
        for run in &mut self.runs {
            let Run { address, offset, size } = *run;
            if offset.checked_add(size).is_none_or(|run_end| run_end > end) {
                return Err(DumpError::Truncated { offset, size, end });
            }
            let run_end = address.checked_add(size);
            let run_end = run_end.ok_or(DumpError::Segment { address, offset })?;
            let known = next.saturating_sub(address).min(size);
            *run = Run { address: address + known, offset: offset + known, size: size - known };
            next = next.max(run_end);
        }
        self.threads.sort_by_key(|thread| thread.id);
        self.images.sort_by_key(|image| image.range.start);
        let mut pairs = self.images.iter().zip(self.images.iter().skip(1));
        if let Some((_, next)) = pairs.find(|(image, next)| next.range.start < image.range.end) {
            return Err(DumpError::Image { address: next.range.start });
        }
        if self.threads.is_empty() { Err(DumpError::NoThreads) } else { Ok(()) }
    }
}

/// Returns the entries of a list: their number, and then they. Some writers align them to 8 bytes.
fn entries(
    stream: &Part,
    size: usize,
) -> Result<impl Iterator<Item = Result<Fields<'_>, DumpError>>, DumpError> {
    let fields = stream.fields();
    let len = (fields.u32(0)? as usize).checked_mul(size).ok_or(fields.damaged(0))?;
    let start = if fields.len().checked_sub(len) == Some(8) { 8 } else { 4 };
    let list = fields.part(start, len)?;
    Ok((0..len).step_by(size).map(move |at| list.part(at, size)))
}
