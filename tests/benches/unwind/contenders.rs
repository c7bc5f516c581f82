//! The contenders: each walks a stack and records the callers it finds.

use crate::images::{FramehopSections, Image, Images};
use crate::stacks::{Frame, Lookup, Stack};
use clr_tests::peers;
use clr_unwind::{Cache, CodeMap, Position, Unwinder};
use framehop::x86_64::{CacheX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};
use std::hint::black_box;

/// A function that fills the slice with a stack's callers from the innermost on, and returns their
/// number.
pub(crate) type Walk<'i> = Box<dyn FnMut(&Stack, &mut [Frame]) -> usize + 'i>;

/// A contender.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) restores: &'static str,
    /// True if the contender finds the callers, so that they can be compared.
    pub(crate) unwinds: bool,
    /// Maker of a walk with empty caches.
    pub(crate) make: for<'i> fn(&'i Images) -> Walk<'i>,
}

pub(crate) const OURS: usize = 0;
pub(crate) const OURS_CACHED: usize = 1;
pub(crate) const FRAMEHOP: usize = 2;
pub(crate) const FRAMEHOP_NEW_CACHE: usize = 3;
pub(crate) const FRAMEHOP_CACHED: usize = 4;

/// In the order of the table.
pub(crate) const CONTENDERS: [Contender; 8] = [
    Contender {
        name: "clr-unwind, no cache but the map's",
        restores: "rip, all integer registers, xmm6–xmm15",
        unwinds: true,
        make: ours,
    },
    Contender {
        name: "clr-unwind, warm cache",
        restores: "rip, all integer registers, xmm6–xmm15",
        unwinds: true,
        make: ours_cached,
    },
    Contender {
        name: "framehop 0.16, new cache for every walk",
        restores: "rip, all integer registers",
        unwinds: true,
        make: framehop,
    },
    Contender {
        name: "of it, making the cache",
        restores: "–",
        unwinds: false,
        make: framehop_new_cache,
    },
    Contender {
        name: "framehop 0.16, warm cache",
        restores: "rip, all integer registers",
        unwinds: true,
        make: framehop_cached,
    },
    Contender {
        name: "pe-unwind-info 0.6",
        restores: "rip, all integer registers, xmm0–xmm15",
        unwinds: true,
        make: pe_unwind_info,
    },
    Contender {
        name: "binary search of .pdata, nothing else",
        restores: "–",
        unwinds: false,
        make: binary_search,
    },
    Contender {
        name: "clr-unwind, unwind data read in every step",
        restores: "rip, all integer registers, xmm6–xmm15",
        unwinds: true,
        make: ours_reading,
    },
];

fn ours(images: &Images) -> Walk<'_> {
    ours_in(&images.map)
}

fn ours_reading(images: &Images) -> Walk<'_> {
    ours_in(&images.map_without_rules)
}

pub(crate) fn ours_in<'i>(map: &'i CodeMap<'static>) -> Walk<'i> {
    let unwinder = Unwinder::new(map);
    Box::new(move |stack, callers| {
        let memory = stack.memory();
        let mut registers = stack.start;
        let mut position = Position::Interrupted;
        let mut found = 0;
        for caller in callers {
            let Ok(step) = unwinder.step(&mut registers, position, &memory) else { break };
            position = step.caller;
            *caller = Frame { rip: registers.rip, rsp: registers.rsp() };
            found += 1;
        }
        black_box(&registers);
        found
    })
}

fn ours_cached(images: &Images) -> Walk<'_> {
    let unwinder = Unwinder::new(&images.map);
    let mut cache = Cache::new();
    Box::new(move |stack, callers| {
        let memory = stack.memory();
        let mut registers = stack.start;
        let mut position = Position::Interrupted;
        let mut found = 0;
        for caller in callers {
            let step = unwinder.step_cached(&mut cache, &mut registers, position, &memory);
            let Ok(step) = step else { break };
            position = step.caller;
            *caller = Frame { rip: registers.rip, rsp: registers.rsp() };
            found += 1;
        }
        black_box(&registers);
        found
    })
}

type Framehop = UnwinderX86_64<&'static [u8]>;

pub(crate) fn framehop_module(image: &Image) -> Module<&'static [u8]> {
    let range = image.base..image.base + u64::from(image.size);
    Module::new(image.name.to_owned(), range, image.base, FramehopSections(&image.file))
}

fn framehop_unwinder(images: &Images) -> Framehop {
    let mut unwinder = Framehop::new();
    for image in &images.all {
        unwinder.add_module(framehop_module(image));
    }
    unwinder
}

fn framehop(images: &Images) -> Walk<'_> {
    let unwinder = framehop_unwinder(images);
    Box::new(move |stack, callers| {
        framehop_walk(&unwinder, &mut CacheX86_64::new(), stack, callers)
    })
}

fn framehop_new_cache(_: &Images) -> Walk<'_> {
    Box::new(|_, _| {
        black_box(CacheX86_64::new());
        0
    })
}

fn framehop_cached(images: &Images) -> Walk<'_> {
    let unwinder = framehop_unwinder(images);
    let mut cache = CacheX86_64::new();
    Box::new(move |stack, callers| framehop_walk(&unwinder, &mut cache, stack, callers))
}

fn framehop_walk(
    unwinder: &Framehop,
    cache: &mut CacheX86_64,
    stack: &Stack,
    callers: &mut [Frame],
) -> usize {
    let memory = stack.memory();
    let mut read = peers::framehop::reader(&memory);
    let mut registers = peers::framehop::registers(&stack.start);
    let mut address = FrameAddress::from_instruction_pointer(stack.start.rip);
    let mut found = 0;
    for caller in callers {
        let unwound = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
        let Ok(Some(rip)) = unwound else { break };
        let Some(next) = FrameAddress::from_return_address(rip) else { break };
        address = next;
        *caller = Frame { rip, rsp: registers.sp() };
        found += 1;
    }
    black_box(&registers);
    found
}

fn pe_unwind_info(images: &Images) -> Walk<'_> {
    Box::new(|stack, callers| {
        let memory = stack.memory();
        let mut rip = stack.start.rip;
        let mut state = peers::pe_unwind_info::State::new(&stack.start, &memory);
        let mut found = 0;
        for caller in callers {
            // A return address may be after the function that made the call, as framehop and
            // clr-unwind know; pe-unwind-info leaves it to its user.
            let address = if found == 0 { rip } else { rip - 1 };
            let Some((image, rva)) = images.find(address) else { break };
            let sections = image.sections;
            let unwound = state.unwind(sections.pdata, move |rva| sections.bytes_from(rva), rva);
            let Some(caller_rip) = unwound else { break };
            rip = caller_rip;
            *caller = Frame { rip, rsp: state.rsp() };
            found += 1;
        }
        black_box(&state);
        found
    })
}

fn binary_search(_: &Images) -> Walk<'_> {
    Box::new(|stack, _| {
        let mut last = 0;
        let zero = black_box(0);
        for Lookup { entries, rva } in &stack.lookups {
            // In a walk, the next address is known only when the last function is.
            let rva = rva + (last & zero);
            let after = entries.partition_point(|entry| begin(entry) <= rva);
            last = after.checked_sub(1).map_or(0, |at| begin(&entries[at]));
        }
        black_box(last);
        0
    })
}

fn begin([b0, b1, b2, b3, ..]: &[u8; 12]) -> u32 {
    u32::from_le_bytes([*b0, *b1, *b2, *b3])
}
