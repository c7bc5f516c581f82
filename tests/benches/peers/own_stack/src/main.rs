//! Benchmark of steps on the stack of this process: clr-walker, glibc's `backtrace`, libunwind and
//! framehop. Every round runs all contenders, one after the other.
//!
//! ```console
//! $ cargo bench --manifest-path tests/benches/peers/Cargo.toml --bench own_stack
//! ```
//!
//! The benchmark is for Linux on x86-64 with glibc. libunwind (Debian's package libunwind8) is
//! loaded if installed.

mod own;

use clr_walker::code_map::CodeMap;
use clr_walker::image::Section;
use clr_walker::image::elf::ElfImage;
use clr_walker::memory::{Memory, Segment};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Cache, Position, UnwindError, Unwinder};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use own::{Libunwind, Stack};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

const DEPTHS: [usize; 2] = [64, 512];
const ROUNDS: usize = 101;

/// Minimum number of frames that one sample unwinds.
const FRAMES_PER_SAMPLE: usize = 4096;

/// Size of the address buffer; no stack here has more frames.
const MOST_FRAMES: usize = 1024;

/// Maximum number of stack bytes that a sampler copies.
const COPY_LIMIT: usize = 1 << 20;

/// The file mappings of this process, and the address range of its stack.
struct Mappings {
    /// The lowest address of each file.
    files: BTreeMap<String, u64>,
    stack: Range<u64>,
}

impl Mappings {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut mappings = Self { files: BTreeMap::new(), stack: 0..0 };
        for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [range, .., path] = fields.as_slice() else { continue };
            let (start, end) = range.split_once('-').ok_or("a range of addresses")?;
            let (start, end) = (u64::from_str_radix(start, 16)?, u64::from_str_radix(end, 16)?);
            if *path == "[stack]" {
                mappings.stack = start..end;
            } else if path.starts_with('/') {
                mappings.files.entry((*path).to_owned()).or_insert(start);
            }
        }
        Ok(mappings)
    }
}

type Function = fn(usize, &mut dyn FnMut()) -> u64;

/// Functions with frames of different sizes.
const FUNCTIONS: [Function; 32] = {
    macro_rules! functions {
        ($($n:literal)*) => { [$(descend::<$n>),*] };
    }
    functions!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
};

/// A function with N words of variables, which are used after the call. Each N has a frame of
/// another size.
#[inline(never)]
fn descend<const N: usize>(depth: usize, work: &mut dyn FnMut()) -> u64 {
    let mut words = black_box([depth as u64; N]);
    if depth == 0 {
        work();
    } else {
        // The order is one that a processor cannot predict.
        let at = (depth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59;
        words[0] = black_box(FUNCTIONS[at as usize])(depth - 1, work);
    }
    black_box(words).iter().sum()
}

/// A walk from the given registers that writes return addresses to the buffer and returns their
/// number.
type Walk<'w> = Box<dyn FnMut(&Registers, Stack<'_>, &mut [u64]) -> usize + 'w>;

struct Contender<'w> {
    name: &'static str,
    /// Registers that the contender recovers in each frame.
    restores: &'static str,
    walk: Walk<'w>,
    samples: [Vec<f64>; DEPTHS.len()],
}

impl<'w> Contender<'w> {
    fn new(
        name: &'static str,
        restores: &'static str,
        walk: impl FnMut(&Registers, Stack<'_>, &mut [u64]) -> usize + 'w,
    ) -> Self {
        let samples = [const { Vec::new() }; DEPTHS.len()];
        Self { name, restores, walk: Box::new(walk), samples }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = if std::env::args().any(|it| it == "--bench") { ROUNDS } else { 1 };
    let libunwind = Libunwind::load();
    // The first call loads libgcc.
    own::glibc(&mut [0; 4]);
    let mappings = Mappings::read()?;
    let files: Vec<_> = mappings
        .files
        .iter()
        .filter_map(|(path, base)| Some((path, *base, std::fs::read(path).ok()?)))
        .collect();
    let mut map = CodeMap::new();
    let mut framehop = UnwinderX86_64::new();
    for (path, base, data) in &files {
        if let Ok(image) = ElfImage::parse(data) {
            map.insert_elf(*base, &image)?;
            framehop.add_module(module(path, *base, &image));
        }
    }

    let all = "all integer registers";
    let mut contenders = vec![
        Contender::new("clr-walker, stack copied first", all, copied(&map, false)),
        Contender::new("clr-walker, stack copied first, warm cache", all, copied(&map, true)),
        Contender::new("clr-walker, in place", all, in_place(&map, false)),
        Contender::new("clr-walker, in place, warm cache", all, in_place(&map, true)),
        Contender::new(
            "framehop 0.16, in place, warm cache",
            "rip, rsp, rbp",
            framehop_walk(&framehop),
        ),
        Contender::new("glibc, backtrace", "rip", |_, _, addresses| own::glibc(addresses)),
    ];
    match libunwind {
        Some(it) => contenders.extend([
            Contender::new("libunwind, unw_backtrace", "rip", move |_, _, addresses| {
                it.backtrace(addresses)
            }),
            Contender::new("libunwind, unw_step", all, move |_, _, addresses| it.steps(addresses)),
        ]),
        None => println!("skipped: there is no libunwind.so.8"),
    }

    let mut sizes = [0; DEPTHS.len()];
    for (at, depth) in DEPTHS.into_iter().enumerate() {
        let mut work = || {
            let mut round = |registers: &Registers, stack: Stack<'_>| {
                sizes[at] = compare(&mut contenders, registers, stack);
                for _ in 0..rounds {
                    for contender in &mut contenders {
                        let nanoseconds = measure(&mut contender.walk, depth, registers, stack);
                        contender.samples[at].push(nanoseconds);
                    }
                }
            };
            own::with_stack(&mappings.stack, &mut round).expect("this is the main thread");
        };
        black_box(descend::<2>(depth, &mut work));
    }

    println!("medians of {rounds} rounds; {} images in the map", map.len());
    let [shallow, deep] = DEPTHS;
    println!("| ns a frame | restores | depth {shallow} | depth {deep} |");
    println!("| --- | --- | --: | --: |");
    for Contender { name, restores, samples, .. } in &mut contenders {
        let [shallow, deep] = samples.each_mut().map(|samples| median(samples));
        println!("| {name} | {restores} | {shallow:.1} | {deep:.1} |");
    }
    println!("The stacks take {} and {} bytes.", sizes[0], sizes[1]);
    Ok(())
}

/// Returns nanoseconds per frame.
fn measure(walk: &mut Walk<'_>, depth: usize, registers: &Registers, stack: Stack<'_>) -> f64 {
    let mut addresses = [0; MOST_FRAMES];
    let mut frames = 0;
    let start = Instant::now();
    for _ in 0..FRAMES_PER_SAMPLE.div_ceil(depth) {
        frames += walk(black_box(registers), stack, &mut addresses);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(frames as u32)
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Checks that all contenders find the same frames, since one that found fewer would win.
/// Contenders that start in their own frames find some more at the leaf. Returns the stack's size
/// in bytes.
fn compare(contenders: &mut [Contender<'_>], registers: &Registers, stack: Stack<'_>) -> u64 {
    let mut expected: Option<Vec<u64>> = None;
    for contender in contenders {
        let mut addresses = [0; MOST_FRAMES];
        let count = (contender.walk)(registers, stack, &mut addresses);
        let mut found = addresses[..count].to_vec();
        // Some contenders count the address 0 after the outermost frame as one more frame.
        while found.last() == Some(&0) {
            found.pop();
        }
        let expected = expected.get_or_insert_with(|| found.clone());
        let name = contender.name;
        assert!(found.ends_with(expected), "{name} found {found:x?}, expected {expected:x?}");
        assert!(found.len() <= expected.len() + 12, "{name} found {} frames", found.len());
    }
    stack.len()
}

/// Writes the frames' return addresses, found by steps of the walker, and returns their number.
fn walk<M: Memory>(
    registers: &Registers,
    memory: &M,
    addresses: &mut [u64],
    mut step: impl FnMut(&mut Registers, Position, &M) -> Result<Position, UnwindError>,
) -> usize {
    let mut registers = *registers;
    let mut position = Position::Interrupted;
    let mut found = 0;
    for address in addresses {
        match step(&mut registers, position, memory) {
            Ok(caller) => position = caller,
            Err(UnwindError::EndOfStack { .. }) => break,
            Err(error) => panic!("{error}, after {found} frames"),
        }
        *address = registers.rip;
        found += 1;
    }
    black_box(&registers);
    found
}

fn walk_with<M: Memory>(
    unwinder: Unwinder<'_, '_>,
    cache: Option<&mut Cache>,
    registers: &Registers,
    memory: &M,
    addresses: &mut [u64],
) -> usize {
    match cache {
        Some(cache) => walk(registers, memory, addresses, |registers, position, memory| {
            Ok(unwinder.step_cached(cache, registers, position, memory)?.caller)
        }),
        None => walk(registers, memory, addresses, |registers, position, memory| {
            Ok(unwinder.step(registers, position, memory)?.caller)
        }),
    }
}

fn copied<'w>(
    map: &'w CodeMap<'_>,
    caching: bool,
) -> impl FnMut(&Registers, Stack<'_>, &mut [u64]) -> usize + 'w {
    let unwinder = Unwinder::new(map);
    let mut cache = caching.then(Cache::new);
    let mut bytes = Vec::new();
    move |registers, stack, addresses| {
        stack.copy(&mut bytes, COPY_LIMIT);
        let memory = Segment::new(stack.start(), &bytes);
        walk_with(unwinder, cache.as_mut(), registers, &memory, addresses)
    }
}

fn in_place<'w>(
    map: &'w CodeMap<'_>,
    caching: bool,
) -> impl FnMut(&Registers, Stack<'_>, &mut [u64]) -> usize + 'w {
    let unwinder = Unwinder::new(map);
    let mut cache = caching.then(Cache::new);
    move |registers, stack, addresses| {
        walk_with(unwinder, cache.as_mut(), registers, &stack, addresses)
    }
}

fn module<'a>(path: &str, base: u64, image: &ElfImage<'a>) -> Module<&'a [u8]> {
    let cfi = image.cfi();
    let range = |section: &Section<'_>| -> Range<u64> {
        let start = image.preferred_base() + u64::from(section.rva);
        start..start + section.bytes.len() as u64
    };
    let sections = ExplicitModuleSectionInfo {
        base_svma: image.preferred_base(),
        eh_frame_svma: cfi.eh_frame.as_ref().map(range),
        eh_frame: cfi.eh_frame.map(|section| section.bytes),
        eh_frame_hdr_svma: cfi.eh_frame_hdr.as_ref().map(range),
        eh_frame_hdr: cfi.eh_frame_hdr.map(|section| section.bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(path.to_owned(), base..base + u64::from(image.size()), base, sections)
}

fn framehop_walk<'w>(
    unwinder: &'w UnwinderX86_64<&[u8]>,
) -> impl FnMut(&Registers, Stack<'_>, &mut [u64]) -> usize + 'w {
    let mut cache = CacheX86_64::new();
    move |registers, stack, addresses| {
        let mut read = |address| stack.read_u64(address).map_err(|_| ());
        let mut state =
            UnwindRegsX86_64::new(registers.rip, registers.rsp(), registers.get(Gpr::Rbp));
        let mut frame = FrameAddress::from_instruction_pointer(registers.rip);
        let mut found = 0;
        for address in addresses {
            let Ok(Some(rip)) = unwinder.unwind_frame(frame, &mut state, &mut cache, &mut read)
            else {
                break;
            };
            *address = rip;
            found += 1;
            let Some(caller) = FrameAddress::from_return_address(rip) else { break };
            frame = caller;
        }
        found
    }
}
