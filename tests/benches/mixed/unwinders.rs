//! Walks of the same stack by unwinders alone, with all code known.

use crate::scripted::Scripted;
use clr_runtime::Runtime;
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::memory::Memory;
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Cache, Position, Unwinder};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, ModuleSectionInfo, Unwinder as _};
use std::hint::black_box;
use std::ops::Range;

/// Page size in bytes: segments of libraries begin at multiples of it.
const PAGE: usize = 0x1000;

/// Returns the code map of all code of a process.
pub(crate) fn all_code<'a>(runtime: &Runtime<'a>) -> CodeMap<'a> {
    let mut map = CodeMap::new();
    for region in regions(runtime) {
        map.insert(region.clone()).expect("code does not overlap");
    }
    map
}

fn regions<'r, 'a>(runtime: &'r Runtime<'a>) -> impl Iterator<Item = &'r CodeRegion<'a>> {
    runtime.native.map().regions().chain(runtime.code.map().regions())
}

/// Returns the number of frames.
pub(crate) fn bare(map: &CodeMap<'_>, start: &Registers, memory: &Scripted) -> usize {
    let unwinder = Unwinder::new(map);
    let (mut registers, mut position, mut found) = (*start, Position::Interrupted, 0);
    while registers.rip != 0
        && let Ok(step) = unwinder.step(&mut registers, position, memory)
    {
        position = step.caller;
        found += 1;
    }
    black_box(&registers);
    found
}

/// Returns the number of frames, walked with a cache.
pub(crate) fn cached(
    map: &CodeMap<'_>,
    start: &Registers,
    memory: &Scripted,
    cache: &mut Cache,
) -> usize {
    let unwinder = Unwinder::new(map);
    let (mut registers, mut position, mut found) = (*start, Position::Interrupted, 0);
    while registers.rip != 0
        && let Ok(step) = unwinder.step_cached(cache, &mut registers, position, memory)
    {
        position = step.caller;
        found += 1;
    }
    black_box(&registers);
    found
}

pub(crate) type Framehop = UnwinderX86_64<Vec<u8>>;

/// Code with a function table in the form that framehop asks for.
struct Table {
    base: u64,
    text: Vec<u8>,
    pdata: Vec<u8>,
    unwind_data: (u32, Vec<u8>),
}

impl Table {
    fn new(region: &CodeRegion<'_>) -> Self {
        let entries: Vec<_> = region.functions().iter().collect();
        let words = entries.iter().flat_map(|entry| [entry.begin, entry.end, entry.unwind_info]);
        let at = entries.iter().map(|entry| entry.unwind_info).min().expect("it has functions");
        let bytes = |rva| region.bytes_from(rva).expect("it is there").to_vec();
        Self {
            base: region.base(),
            text: bytes(0),
            pdata: words.flat_map(u32::to_le_bytes).collect(),
            unwind_data: (at, bytes(at)),
        }
    }
}

impl ModuleSectionInfo<Vec<u8>> for Table {
    fn base_svma(&self) -> u64 {
        self.base
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let (rva, len) = match name {
            b".text" => (0, self.text.len()),
            b".xdata" => (self.unwind_data.0, self.unwind_data.1.len()),
            _ => return None,
        };
        let start = self.base + u64::from(rva);
        Some(start..start + len as u64)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        match name {
            b".text" => Some(self.text.clone()),
            b".pdata" => Some(self.pdata.clone()),
            b".xdata" => Some(self.unwind_data.1.clone()),
            _ => None,
        }
    }
}

/// Returns the sections of a library: .eh_frame_hdr on the page after the code points to .eh_frame.
fn library(region: &CodeRegion<'_>) -> ExplicitModuleSectionInfo<Vec<u8>> {
    let text = region.bytes_from(PAGE as u32).expect("it has code");
    let header_at = (PAGE + text.len()).next_multiple_of(PAGE);
    let header = region.bytes_from(header_at as u32).expect("it has .eh_frame_hdr");
    let offset = header[4..].first_chunk().copied().map(u32::from_le_bytes).expect("it has more");
    let frames_at = header_at + 4 + offset as usize;
    let frames = region.bytes_from(frames_at as u32).expect("it has .eh_frame");
    let range = |at: usize, bytes: &[u8]| at as u64..(at + bytes.len()) as u64;
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: Some(range(PAGE, text)),
        text: Some(text.to_vec()),
        eh_frame_svma: Some(range(frames_at, frames)),
        eh_frame: Some(frames.to_vec()),
        eh_frame_hdr_svma: Some(range(header_at, header)),
        eh_frame_hdr: Some(header.to_vec()),
        ..ExplicitModuleSectionInfo::default()
    }
}

pub(crate) fn framehop_unwinder(runtime: &Runtime<'_>) -> Framehop {
    let mut unwinder = Framehop::new();
    for region in regions(runtime) {
        let base = region.base();
        let range = base..base + u64::from(region.size());
        let name = format!("{base:x}");
        unwinder.add_module(if region.cfi().is_some() {
            Module::new(name, range, base, library(region))
        } else {
            Module::new(name, range, base, Table::new(region))
        });
    }
    unwinder
}

/// Returns the number of frames that framehop finds.
pub(crate) fn framehop(
    unwinder: &Framehop,
    start: &Registers,
    memory: &impl Memory,
    cache: &mut CacheX86_64,
) -> usize {
    let mut read = |address| memory.read_u64(address).map_err(|_| ());
    let (rsp, rbp) = (start.rsp(), start.get(Gpr::Rbp));
    let mut registers = UnwindRegsX86_64::new(start.rip, rsp, rbp);
    let mut address = Some(FrameAddress::from_instruction_pointer(start.rip));
    let mut found = 0;
    while let Some(frame) = address {
        found += 1;
        let caller = unwinder.unwind_frame(frame, &mut registers, cache, &mut read);
        address = caller.ok().flatten().and_then(FrameAddress::from_return_address);
    }
    black_box(&registers);
    found
}
