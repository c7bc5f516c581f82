//! Benchmark of steps from native code of a real library, against other unwinders of call frame
//! information, and of adding the library.
//!
//! `cargo bench -p clr-unwind --bench dwarf` prints a table; a path after `--` selects another
//! library than the host's libc.so.6. The last two lines are not unwinders but bounds: the time of
//! reads that wait for nothing, and the time when each return address leads to the next by one
//! look-up. Without `--bench`, as `cargo test --benches` runs it, the benchmark takes one round
//! only. If the library is missing, it prints that and ends.

use clr_unwind::cfi::{CfaRule, CfiTable, Column, RegisterRule, Row};
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, ElfImage, Gpr, Memory as _, Position, Registers,
    Section, Sections, Segment, Unwinder,
};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindContext, UnwindSection as _};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

const LIBRARIES: [&str; 3] =
    ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"];

const BASE: u64 = 0x7F12_3456_7000;
const STACK: u64 = 0x7FFE_0000_0000;
const DEPTHS: [usize; 2] = [64, 512];
const ROUNDS: u32 = 101;

/// Minimum number of frames that one sample unwinds.
const FRAMES_PER_SAMPLE: usize = 4096;

/// Larger frames are rare, and would turn this into a benchmark of memory.
const LARGEST_FRAME: i32 = 1024;

/// A place that a call might return to, and its row.
struct Site {
    rva: u32,
    frame: usize,
    /// The slots of the saved registers and of the return address in the frame.
    saved: Vec<usize>,
}

/// A stack and the frames on it.
struct Stack {
    start: Registers,
    bytes: Vec<u8>,
    depth: usize,
    /// Addresses of the words that a walk reads.
    saved: Vec<u32>,
    sizes: Sizes,
}

/// The sizes of a stack's frames by return address, in a hash table without collisions.
struct Sizes {
    factor: u64,
    by_hash: Box<[u16]>,
}

impl Sizes {
    const BITS: u32 = 16;

    fn new(sites: &[&Site]) -> Self {
        let mut factor = 0x9E37_79B9_7F4A_7C15;
        loop {
            let mut table = Self { factor, by_hash: vec![0; 1 << Self::BITS].into() };
            let is_new = |site: &&Site| {
                let place = table.place(BASE + u64::from(site.rva));
                std::mem::replace(&mut table.by_hash[place], site.frame as u16) == 0
            };
            if sites.iter().all(is_new) {
                return table;
            }
            factor += 2;
        }
    }

    fn place(&self, rip: u64) -> usize {
        (rip.wrapping_mul(self.factor) >> (u64::BITS - Self::BITS)) as usize
    }
}

/// A function that counts the callers of a stack.
type Walk<'w> = Box<dyn FnMut(&Stack) -> usize + 'w>;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let rounds = if arguments.iter().any(|it| it == "--bench") { ROUNDS } else { 1 };
    let given = arguments.iter().find(|argument| !argument.starts_with('-'));
    let paths = given.map_or(LIBRARIES.to_vec(), |path| vec![path]);
    let found = paths.iter().find_map(|path| Some((path, std::fs::read(path).ok()?)));
    let Some((path, data)) = found else {
        println!("skipped: none of {paths:?} is there");
        return;
    };
    let Ok(image) = ElfImage::parse(&data) else {
        println!("skipped: {path} is for another processor");
        return;
    };
    let lazy = map(&image, CfiTable::lazy);
    let eager = map(&image, CfiTable::new);
    let table = eager.regions().next().and_then(|region| region.cfi()).expect("it is native");
    let mut sites = sites(table);
    shuffle(&mut sites);
    let stacks = DEPTHS.map(|depth| stack(&sites, depth));

    let framehop = framehop_unwinder(&image);
    let mut contenders: [(&str, Walk<'_>); 9] = [
        ("clr-unwind, no cache", ours(&lazy)),
        ("clr-unwind, no cache, table compiled beforehand", ours(&eager)),
        ("clr-unwind, no cache, nothing compiled yet", first_use(&image)),
        ("clr-unwind, warm cache", ours_cached(&lazy)),
        ("framehop 0.16, new cache for every walk", framehop_walk(&framehop, true)),
        ("framehop 0.16, warm cache", framehop_walk(&framehop, false)),
        ("gimli alone: the row of each frame", gimli_rows(&image)),
        ("nothing but reading what is saved, at known places", Box::new(reads)),
        ("nothing but return addresses, by the size of each frame", Box::new(sizes)),
    ];
    let mut samples = vec![[const { Vec::new() }; DEPTHS.len()]; contenders.len()];
    let mut adding = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for ((_, walk), samples) in contenders.iter_mut().zip(&mut samples) {
            for (stack, samples) in stacks.iter().zip(samples) {
                let passes = FRAMES_PER_SAMPLE.div_ceil(stack.depth);
                let start = Instant::now();
                for _ in 0..passes {
                    assert_eq!(walk(black_box(stack)), stack.depth);
                }
                samples.push(nanoseconds(start) / f64::from((passes * stack.depth) as u32));
            }
        }
        let start = Instant::now();
        let parsed = ElfImage::parse(black_box(&data)).expect("it is an image");
        adding[0].push(nanoseconds(start));
        let start = Instant::now();
        black_box(CfiTable::lazy(&parsed.cfi(), parsed.sections()));
        adding[1].push(nanoseconds(start));
        let start = Instant::now();
        black_box(CfiTable::new(&parsed.cfi(), parsed.sections()));
        adding[2].push(nanoseconds(start));
    }

    println!(
        "{path}: {} places that calls might return to, medians of {rounds} rounds",
        sites.len()
    );
    println!("| ns a frame | depth 64 | depth 512 |\n| --- | --: | --: |");
    for ((name, _), samples) in contenders.iter().zip(&mut samples) {
        let [shallow, deep] = samples.each_mut().map(|samples| median(samples));
        println!("| {name} | {shallow:.1} | {deep:.1} |");
    }
    for stack in &stacks {
        let lines: BTreeSet<_> = stack.saved.iter().map(|at| at / 64).collect();
        let (words, depth, len) = (stack.saved.len(), stack.depth, stack.bytes.len());
        let lines = lines.len();
        println!("Depth {depth}: {len} bytes, of which {words} words in {lines} lines are read.");
    }
    let [parsing, adding, compiling] = adding.each_mut().map(|samples| median(samples) / 1000.0);
    let [rows, rules] = table.counts();
    println!(
        "Adding it takes {parsing:.1} µs for the headers and {adding:.1} µs for the table, which has {} \
         KiB; compiling all beforehand takes {compiling:.0} µs: {} functions, {rows} rows, {rules} \
         different rules, {} KiB.",
        CfiTable::lazy(&image.cfi(), image.sections()).size() >> 10,
        table.functions().count(),
        table.size() >> 10,
    );
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Returns places in the middle of rows that every contender can unwind.
fn sites(table: &CfiTable<'_>) -> Vec<Site> {
    let mut sites = Vec::new();
    for function in table.functions() {
        let mut at = function.start;
        while at < function.end {
            let Ok(Some(row)) = table.row(at) else { break };
            let end = row.range.end.min(function.end);
            if let Some(frame) = frame_size(&row)
                && end - at > 8
            {
                sites.push(Site { rva: at + 5, frame, saved: saved(&row, frame) });
            }
            at = end;
        }
    }
    sites
}

/// Returns the frame's size, if everything counts from rsp.
fn frame_size(row: &Row) -> Option<usize> {
    let CfaRule::Register { register, offset } = row.cfa else { return None };
    let saved =
        |rule: &RegisterRule| matches!(rule, RegisterRule::Offset(at) if (-offset..0).contains(at));
    let usual = register == Column::from(Gpr::Rsp)
        && (16..LARGEST_FRAME).contains(&offset)
        && row.return_address == Some(RegisterRule::Offset(-8))
        && row.registers.iter().flatten().all(saved);
    usual.then_some(usize::try_from(offset).ok()?)
}

/// Returns the offsets in the frame that a step reads.
fn saved(row: &Row, frame: usize) -> Vec<usize> {
    let rules = row.registers.iter().chain([&row.return_address]).flatten();
    let place = |rule: &RegisterRule| match rule {
        RegisterRule::Offset(at) => frame.checked_add_signed(*at as isize),
        _ => None,
    };
    rules.filter_map(place).collect()
}

/// Builds a stack of `depth` frames, different ones if there are enough.
fn stack(sites: &[Site], depth: usize) -> Stack {
    let chosen: Vec<_> = sites.iter().cycle().take(depth).collect();
    let (mut bytes, mut saved) = (Vec::new(), Vec::new());
    for (n, site) in chosen.iter().enumerate() {
        saved.extend(site.saved.iter().map(|at| (bytes.len() + at) as u32));
        let caller = chosen.get(n + 1).map_or(0x10, |next| BASE + u64::from(next.rva));
        bytes.resize(bytes.len() + site.frame - 8, 0x11);
        bytes.extend(caller.to_le_bytes());
    }
    let mut start = Registers { rip: BASE + u64::from(chosen[0].rva), ..Registers::default() };
    start.set(Gpr::Rsp, STACK);
    Stack { start, bytes, depth, saved, sizes: Sizes::new(&chosen) }
}

/// Does the minimum of any walk: it reads the memory, but need not wait for one word to know the
/// place of the next.
fn reads(stack: &Stack) -> usize {
    let word = |at: &u32| u64_at(&stack.bytes, *at as usize).unwrap_or(0);
    black_box(stack.saved.iter().map(word).fold(0, u64::wrapping_add));
    stack.depth
}

/// Does the minimum of a walk by return addresses: each leads to the next by one look-up.
fn sizes(stack: &Stack) -> usize {
    let (mut rip, mut at, mut found) = (stack.start.rip, 0, 0);
    loop {
        let size = usize::from(stack.sizes.by_hash[stack.sizes.place(rip)]);
        if size == 0 {
            return found;
        }
        at += size;
        let Some(caller) = u64_at(&stack.bytes, at - 8) else { return found };
        rip = caller;
        found += 1;
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// Returns a number by Knuth's linear congruential generator: every run makes the same stacks.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 1_u64;
    for last in (1..items.len()).rev() {
        let factor = 6_364_136_223_846_793_005;
        state = state.wrapping_mul(factor).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (state >> 33) as usize % (last + 1));
    }
}

/// Makes a map of the image with one kind of table.
fn map<'a>(
    image: &ElfImage<'a>,
    table: fn(&CfiSections<'a>, &Sections<'_>) -> CfiTable<'a>,
) -> CodeMap<'a> {
    let region = CodeRegion::elf(BASE, image).expect("the image is not empty");
    let mut map = CodeMap::new();
    map.insert(region.with_cfi(table(&image.cfi(), image.sections()))).expect("the map is empty");
    map
}

/// Walks each stack with a new table, and makes that too.
fn first_use<'w>(image: &ElfImage<'w>) -> Walk<'w> {
    let image = image.clone();
    Box::new(move |stack| {
        let map = map(&image, CfiTable::lazy);
        ours(&map)(stack)
    })
}

fn ours<'w>(map: &'w CodeMap<'_>) -> Walk<'w> {
    let unwinder = Unwinder::new(map);
    Box::new(move |stack| {
        let memory = Segment::new(STACK, &stack.bytes);
        let mut registers = stack.start;
        let step =
            |_: &usize| unwinder.step(&mut registers, Position::ReturnAddress, &memory).is_ok();
        let found = (0..=stack.depth).take_while(step).count();
        black_box(&registers);
        found
    })
}

fn ours_cached<'w>(map: &'w CodeMap<'_>) -> Walk<'w> {
    let unwinder = Unwinder::new(map);
    let mut cache = Cache::new();
    Box::new(move |stack| {
        let memory = Segment::new(STACK, &stack.bytes);
        let mut registers = stack.start;
        let step = |_: &usize| {
            let position = Position::ReturnAddress;
            unwinder.step_cached(&mut cache, &mut registers, position, &memory).is_ok()
        };
        let found = (0..=stack.depth).take_while(step).count();
        black_box(&registers);
        found
    })
}

fn framehop_unwinder<'a>(image: &ElfImage<'a>) -> UnwinderX86_64<&'a [u8]> {
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
    let mut unwinder = UnwinderX86_64::new();
    let range = BASE..BASE + u64::from(image.size());
    unwinder.add_module(Module::new("library".into(), range, BASE, sections));
    unwinder
}

fn framehop_walk<'w>(unwinder: &'w UnwinderX86_64<&[u8]>, fresh: bool) -> Walk<'w> {
    let mut cache = CacheX86_64::new();
    Box::new(move |stack| {
        if fresh {
            cache = CacheX86_64::new();
        }
        let memory = Segment::new(STACK, &stack.bytes);
        let mut read = |address| memory.read_u64(address).map_err(|_| ());
        let mut registers = UnwindRegsX86_64::new(stack.start.rip, stack.start.rsp(), 0);
        let mut address = FrameAddress::from_return_address(stack.start.rip);
        let mut found = 0;
        while let Some(frame) = address
            && let Ok(Some(rip)) =
                unwinder.unwind_frame(frame, &mut registers, &mut cache, &mut read)
        {
            address = FrameAddress::from_return_address(rip);
            found += 1;
        }
        black_box(&registers);
        found
    })
}

/// Looks up the row of each frame through `.eh_frame_hdr`, as gimli's users do, and applies its
/// CFA.
fn gimli_rows<'w>(image: &ElfImage<'w>) -> Walk<'w> {
    let cfi = image.cfi();
    let address = |section: Section<'_>| BASE + u64::from(section.rva);
    let (frames, header) =
        (cfi.eh_frame.expect("libraries have it"), cfi.eh_frame_hdr.expect("libraries have it"));
    let bases =
        BaseAddresses::default().set_eh_frame(address(frames)).set_eh_frame_hdr(address(header));
    let section = EhFrame::new(frames.bytes, LittleEndian);
    let parsed = EhFrameHdr::new(header.bytes, LittleEndian).parse(&bases, 8);
    let parsed = parsed.expect("a sound header");
    let mut context = UnwindContext::new();
    Box::new(move |stack| {
        let memory = Segment::new(STACK, &stack.bytes);
        let table = parsed.table().expect("it has a table");
        let (mut rip, mut rsp) = (stack.start.rip, stack.start.rsp());
        let mut found = 0;
        while let Ok(row) = table.unwind_info_for_address(
            &section,
            &bases,
            &mut context,
            rip - 1,
            EhFrame::cie_from_offset,
        ) && let gimli::CfaRule::RegisterAndOffset { offset, .. } = row.cfa()
        {
            rsp = rsp.wrapping_add_signed(*offset);
            let Ok(caller) = memory.read_u64(rsp - 8) else { break };
            rip = caller;
            found += 1;
        }
        found
    })
}
