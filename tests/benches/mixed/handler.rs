//! Walks as a signal handler makes them: the thread that was interrupted walks its own stack, and asks
//! the runtime nothing.

use crate::process::target;
use crate::scripted::Scripted;
use crate::summary::Summary;
use crate::unwinders::{framehop, framehop_unwinder};
use allocation_counter::measure;
use clr_runtime::Runtime;
use clr_runtime::generation::Generation;
use clr_unwind::{
    CodeMap, CodeRegion,
    Convention::{SystemV, WindowsX64},
    Memory, Registers, Run, Segment, Unreadable,
};
use clr_walker::mixed::{Completeness, Policy, WalkBuffer, Walker};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use framehop::x86_64::CacheX86_64;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Number of frames of a stack.
const DEPTH: usize = 20;

/// Size of a page in bytes.
const PAGE: u64 = 0x1000;

/// Number of walks of a sample.
const WALKS: u32 = 64;

/// Maximum size of an UNWIND_INFO in these stacks in bytes.
const LARGEST_INFO: usize = 64;

/// Size in bytes of the data that other code reads between two walks: more than the caches of one
/// core hold.
const OTHER_DATA: usize = 8 << 20;

const NAMES: [&str; 6] = [
    "clr-walker, `Policy::Signal`",
    "the same, after other code has read 8 MiB",
    "the first walk with a new map, which compiles the rules of native code",
    "framehop 0.16, all code known, new cache for every walk",
    "framehop 0.16, all code known, warm cache",
    "the same, after other code has read 8 MiB",
];

/// An interrupted thread that reads its own stack. As in `clr-recorder`, each read is a copy with a check
/// of its range, and code comes from the map.
struct Interrupted<'s> {
    id: ThreadId,
    stack: Segment<'s>,
    bounds: StackBounds,
    registers: Registers,
}

impl Memory for Interrupted<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.stack.read(address, buffer)
    }
}

impl TargetThread for Interrupted<'_> {
    type Error = Infallible;

    fn id(&self) -> ThreadId {
        self.id
    }

    fn stack(&self) -> StackBounds {
        self.bounds
    }

    fn suspend(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn resume(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, Infallible> {
        Ok(ThreadContext { registers: self.registers, flags: ThreadContext::FULL })
    }
}

/// Returns a new map as the recorder makes it: images of native code that nobody has used, and a region
/// for each jitted method.
fn map_of<'a>(runtime: &Runtime<'a>) -> CodeMap<'a> {
    let mut map = CodeMap::new();
    for region in runtime.native.map().regions() {
        map.insert(unused(region)).expect("code does not overlap");
    }
    for region in runtime.code.map().regions() {
        for function in region.functions().iter() {
            let run = |rva, size| {
                let bytes = region.bytes_from(rva).unwrap_or_default();
                Run { rva, bytes: bytes[..bytes.len().min(size)].to_vec() }
            };
            let code = run(function.begin, (function.end - function.begin) as usize);
            let runs = vec![code, run(function.unwind_info, LARGEST_INFO)];
            let va = |rva| region.base() + u64::from(rva);
            let code = va(function.begin)..va(function.end);
            let method = CodeRegion::generated(code, region.base(), &[function], runs);
            map.insert(method.expect("it is not empty")).expect("code does not overlap");
        }
    }
    map
}

/// Returns the region without the rules that steps have kept.
fn unused<'a>(region: &CodeRegion<'a>) -> CodeRegion<'a> {
    let copy = region.clone();
    match region.cfi() {
        Some(table) => copy.with_cfi(table.clone()),
        // Another convention has other rules.
        None => copy.with_convention(SystemV).with_convention(WindowsX64),
    }
}

/// Measures the walks of a runtime's stack, and returns the microseconds of each.
fn run(generation: Generation, rounds: u32) -> [Summary; NAMES.len()] {
    let set = target(generation, DEPTH).build().expect("it fits together");
    let runtime = set.runtime();
    let script = Scripted::record(&set, &runtime);
    let root = set.registers(DEPTH - 1).expect("it is the last row");
    let thread = Interrupted {
        id: script.id(),
        stack: script.stack_memory(),
        // The first function is near the base.
        bounds: StackBounds { base: root.rsp() + PAGE, ..script.stack() },
        registers: set.registers(0).expect("there are rows"),
    };
    let unwinder = framehop_unwinder(&runtime);
    let map = map_of(&runtime);
    let mut buffer = WalkBuffer::new(DEPTH);
    check(&script, &map, &thread, &mut buffer);

    let mut warm = CacheX86_64::new();
    let other = vec![1_u8; OTHER_DATA];
    let read_other = || {
        // A line of the processor's cache has 64 bytes.
        black_box(other.iter().step_by(64).map(|byte| u32::from(*byte)).sum::<u32>());
    };
    let mut samples: [Vec<f64>; NAMES.len()] = Default::default();
    for _ in 0..rounds {
        let mut sample = |at: usize, walks: u32, walk: &mut dyn FnMut()| {
            let start = Instant::now();
            for _ in 0..walks {
                walk();
            }
            samples[at].push(start.elapsed().as_secs_f64() * 1e6 / f64::from(walks));
        };
        let walker = Walker::new(&script, &map, Policy::Signal);
        sample(0, WALKS, &mut || take(&walker, &thread, &mut buffer));
        read_other();
        sample(1, 1, &mut || take(&walker, &thread, &mut buffer));
        let new = map_of(&runtime);
        let walker = Walker::new(&script, &new, Policy::Signal);
        sample(2, 1, &mut || take(&walker, &thread, &mut buffer));
        let peer = |cache: &mut CacheX86_64| {
            assert_eq!(framehop(&unwinder, &thread.registers, &thread, cache), DEPTH);
        };
        sample(3, WALKS, &mut || peer(&mut CacheX86_64::new()));
        sample(4, WALKS, &mut || peer(&mut warm));
        read_other();
        sample(5, 1, &mut || peer(&mut warm));
    }
    samples.map(Summary::of)
}

fn take(
    walker: &Walker<'_, Scripted, CodeMap<'_>>,
    thread: &Interrupted<'_>,
    buffer: &mut WalkBuffer,
) {
    assert!(walker.take(thread, buffer).is_ok());
    black_box(buffer);
}

/// Checks that a walk finds all frames, and allocates nothing before it asks for their names.
fn check(script: &Scripted, map: &CodeMap<'_>, thread: &Interrupted<'_>, buffer: &mut WalkBuffer) {
    let walker = Walker::new(script, map, Policy::Signal);
    let counted = measure(|| take(&walker, thread, buffer));
    assert_eq!(counted.count_total, 0, "allocated in the handler");
    let Ok(stack) = walker.stitch(buffer);
    let found = (stack.frames.len(), stack.completeness());
    assert_eq!(found, (DEPTH, Completeness::Whole), "{stack:#x?}");
}

/// Measures all, and returns the table and its explanation.
pub(crate) fn markdown(rounds: u32) -> String {
    let unix = run(Generation::Net10Unix, rounds);
    let windows = run(Generation::Net10Windows, rounds);
    let mut text =
        format!("| µs for a walk of {DEPTH} frames | Linux | Windows |\n| --- | --: | --: |\n");
    for (name, (unix, windows)) in NAMES.iter().zip(unix.into_iter().zip(windows)) {
        writeln!(text, "| {name} | {unix:.2} | {windows:.2} |").expect("a String takes all");
    }
    writeln!(
        text,
        "\nHalf of the frames are native, in runs of four; on Linux they have call frame information. The \
         others are jitted methods, each a region of its own. `Walker::take` makes the walks, with all of \
         its checks, and allocates nothing; names come later. Stacks are read as `clr-recorder` reads the \
         interrupted thread's own: word by word, with a check of the range. All contenders read the same \
         memory and find all frames; framehop finds rip, rsp and rbp. After reading 8 MiB the core's caches are \
         cold, but not its branch predictors, as they are after a switch of threads. Medians of {rounds} rounds, in which \
         the contenders take turns, ± half the distance between the quartiles, on {} {}.",
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
    .expect("a String takes all");
    text
}
