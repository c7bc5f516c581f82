//! Functions in code that no unwind data describes.

use crate::coverage::after_padding;
use crate::layout::Layout;
use crate::point::Explored;
use clr_unwind::CodeRegion;
use core::ops::Range;

/// Maximum size in bytes of what a linker puts in front of the code of each program or shared object for
/// Unix: `deregister_tm_clones` up to `frame_dummy`, in crtbegin.o.
const STARTUP_SIZE: u32 = 0x110;

/// Returns the parts of `gaps` that may be functions: what linkers add has no data in any image.
pub(crate) fn without_startup(region: &CodeRegion<'_>, gaps: &mut Vec<Range<u32>>) -> u64 {
    let mut size = 0;
    for gap in gaps.iter_mut() {
        let start = startup(region, gap.clone());
        size += u64::from(start - gap.start);
        gap.start = after_padding(region, start..gap.end);
    }
    gaps.retain(|gap| !gap.is_empty());
    size
}

/// Returns where a gap goes on after the functions of crtbegin.o, or begins.
fn startup(region: &CodeRegion<'_>, gap: Range<u32>) -> u32 {
    let mut at = gap.start;
    // _start comes before it, and has data in most programs.
    let bytes = region.bytes_from(at).unwrap_or_default();
    // deregister_tm_clones: lea rdi, [rip+…]; lea rax, [rip+…]; cmp rax, rdi; je. Fixed addresses: mov eax, …;
    // cmp rax, …; je. Older ones subtract the addresses, and push rbp.
    let is_startup = matches!(
        bytes,
        [0x48, 0x8D, 0x3D, _, _, _, _, 0x48, 0x8D, 0x05, _, _, _, _, 0x48, 0x39, 0xF8, 0x74, ..]
            | [0xB8, _, _, _, _, 0x48, 0x3D, _, _, _, _, 0x74, ..]
            | [0x48, 0x8D, 0x3D, _, _, _, _, 0x55, 0x48, 0x8D, 0x05, ..]
            | [
                0x48,
                0x8D,
                0x05,
                _,
                _,
                _,
                _,
                0x48,
                0x8D,
                0x3D,
                _,
                _,
                _,
                _,
                0x55,
                0x48,
                0x29,
                0xF8,
                ..
            ]
    );
    if is_startup {
        at = gap.end.min(at + STARTUP_SIZE);
    }
    at
}

/// Returns the RVAs at which functions may begin in `gaps`: by symbols, or as the first code after padding.
/// True if it is certain.
pub(crate) fn entries(layout: &Layout<'_>, gaps: &[Range<u32>]) -> Vec<(u32, bool)> {
    let mut entries = Vec::new();
    for gap in gaps {
        if !layout.is_start(gap.start) {
            entries.push((gap.start, false));
        }
        let first = layout.starts.partition_point(|start| *start < gap.start);
        let starts = layout.starts.get(first..).unwrap_or_default();
        entries.extend(starts.iter().take_while(|start| **start < gap.end).map(|it| (*it, true)));
    }
    entries
}

/// Minimum number of instructions of a function with a frame that nothing names.
const SHORTEST: usize = 4;

/// Returns true if what was executed at `entry` can only be a function: it returns with all registers of its
/// caller, and each byte is one of an instruction. Tables and texts in code are no such functions; what looks
/// like a leaf of a few bytes may be one.
pub(crate) fn is_sound(region: &CodeRegion<'_>, entry: u32, explored: &Explored) -> bool {
    let is_function = explored.returns
        && explored.undecoded == 0
        && !explored.is_strange
        && explored.unknown_jumps == 0
        && explored.not_restored.gprs().next().is_none();
    let is_accused = explored.points.values().any(|point| point.finding().is_some());
    let is_frame = makes_frame(region, entry) && explored.points.len() >= SHORTEST;
    is_function && (is_frame || !is_accused)
}

/// Returns true if a compiler's frame begins at `rva`: `push` of a preserved register, or `sub rsp`.
fn makes_frame(region: &CodeRegion<'_>, rva: u32) -> bool {
    let code = region.bytes_from(rva).unwrap_or_default();
    let code = code.strip_prefix(&[0xF3, 0x0F, 0x1E, 0xFA]).unwrap_or(code);
    matches!(
        code,
        [0x53 | 0x55, ..]
            | [0x56 | 0x57, 0x41 | 0x48 | 0x53 | 0x55 | 0x57, ..]
            | [0x41, 0x54..=0x57, ..]
            | [0x48, 0x83 | 0x81, 0xEC, ..]
    )
}

/// Returns the RVA after the last instruction that was executed without a hole from `entry`.
pub(crate) fn end(entry: u32, explored: &Explored) -> u32 {
    let mut end = entry;
    for (rva, point) in explored.points.range(entry..) {
        // A jump over padding.
        if *rva > end.saturating_add(16) {
            break;
        }
        end = end.max(rva.saturating_add(point.len.into()));
    }
    end
}
