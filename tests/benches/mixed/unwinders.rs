//! Walks of the same stack by unwinders alone, with all code known.

use crate::scripted::Scripted;
use clr_runtime::Runtime;
use clr_tests::peers::framehop::{Sections, reader};
use clr_unwind::{Cache, CodeMap, CodeRegion, Gpr, Memory, Position, Registers, Unwinder};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use std::hint::black_box;

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
            let sections = Sections::of(region).expect("it has functions");
            Module::new(name, range, base, sections)
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
    let mut read = reader(memory);
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
