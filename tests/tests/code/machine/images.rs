//! Tests of the machine with real code. Whole test functions of the recorded images run to their
//! return, and recorded frames run to theirs, where the recording has the registers.

use clr_machine::{AccessKind, Cpu, Machine, PAGE_SIZE, Protection, SplitMix64, StopReason};
use clr_recording::vectors::win64::{Vector, VectorFile};
use clr_recording::vectors::{DECOMPRESSED_LIMIT, decompress};
use clr_tests::oracle_images;
use clr_unwind::{Gpr, PeImage, Registers};
use std::collections::BTreeMap;
use std::ops::Range;

const STACK: Range<u64> = 0x0010_0000..0x0020_0000;
const BACK: u64 = 0x7FFE_0000_1230;
/// Maximum number of instructions of a test.
const LIMIT: u64 = 200_000_000;
/// Maximum number of instructions of a recorded frame, exceeded only if missing registers lead
/// execution astray.
const FRAME_LIMIT: u64 = 1_000_000;
/// Maximum stack depth in bytes of a recorded frame's callees.
const DEPTH: u64 = 0x10_0000;

fn field(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
}

/// Loads an image at its preferred base, like the system's loader.
fn load(machine: &mut Machine, data: &[u8], image: &PeImage<'_>) {
    let base = image.preferred_base();
    let pages = |size: u32| u64::from(size).div_ceil(PAGE_SIZE);
    machine.map(base, pages(image.size()), Protection::READ).unwrap();
    for section in image.sections().as_slice() {
        machine.write(base + u64::from(section.rva), section.bytes).unwrap();
    }
    // The characteristics are in the section table after the optional header.
    let headers = field(data, 0x3C) as usize;
    let count = field(data, headers + 6) as usize & 0xFFFF;
    let table = headers + 24 + (field(data, headers + 20) as usize & 0xFFFF);
    for header in (0..count).map(|n| table + 40 * n) {
        let characteristics = field(data, header + 36);
        let bit = |bit: u32, protection| {
            if characteristics >> bit & 1 != 0 { protection } else { Protection::NONE }
        };
        let protection =
            bit(29, Protection::EXECUTE) | bit(30, Protection::READ) | bit(31, Protection::WRITE);
        let start = base + u64::from(field(data, header + 12));
        machine.protect(start, pages(field(data, header + 8)), protection).unwrap();
    }
}

/// Returns names and addresses (VA) of the tests of an image.
fn tests<'a>(image: &PeImage<'a>) -> Vec<(&'a str, u64)> {
    let symbols = image.symbols();
    let named = symbols.as_slice().iter().filter(|(_, name)| name.starts_with("t_"));
    named.map(|(rva, name)| (*name, image.preferred_base() + u64::from(*rva))).collect()
}

/// Returns the number of a test's variants: n if the name ends in `__nN`, else 1.
fn variants(name: &str) -> u64 {
    name.rsplit_once("__n").and_then(|(_, n)| n.parse().ok()).unwrap_or(1)
}

/// Calls a test in the same way as the recorder, with random values in all registers that the test
/// must preserve. Returns the stop, and the registers that a caller expects.
fn call(
    machine: &mut Machine,
    address: u64,
    k: u64,
    random: &mut SplitMix64,
) -> (StopReason, Registers) {
    let rsp = STACK.end - 0x1008;
    let mut before = Registers { rip: BACK, ..Registers::default() };
    for value in &mut before.gpr {
        *value = random.draw();
    }
    for value in &mut before.xmm {
        *value = u128::from(random.draw()) << 64 | u128::from(random.draw());
    }
    before.set(Gpr::Rsp, rsp);
    before.set(Gpr::Rcx, k);
    before.set(Gpr::Rdx, random.draw() & 0xFFFF);
    before.set(Gpr::R8, random.draw() & 0xFF);
    machine.write(rsp, &BACK.to_le_bytes()).unwrap();
    machine.cpu_mut().set_registers(&Registers { rip: address, ..before });
    machine.cpu_mut().set_rflags(0);
    let stop = machine.run(LIMIT);
    before.set(Gpr::Rsp, rsp + 8);
    (stop, before)
}

/// Returns true if a caller finds the registers that it expects.
fn preserved(cpu: &Cpu, expected: &Registers) -> bool {
    let found = cpu.registers();
    let same = |register: &Gpr| found.get(*register) == expected.get(*register);
    found.rip == expected.rip
        && found.rsp() == expected.rsp()
        && Gpr::NONVOLATILE.iter().all(same)
        && found.xmm == expected.xmm
}

/// Returns the result of a test, from the register for its result type.
fn result(test: &str, cpu: &Cpu) -> u64 {
    let double = test.starts_with("t_fp") || test == "t_deepd";
    if double { cpu.xmm(0) as u64 } else { cpu.get(Gpr::Rax) }
}

/// The calls of an image's tests.
#[derive(Debug, Default)]
struct Calls<'a> {
    tests: u32,
    instructions: u64,
    /// Results by name and variant.
    results: Vec<(&'a str, u64, u64)>,
}

/// Runs every test of an image in all its variants.
fn run_image<'a>(name: &str, data: &'a [u8]) -> Calls<'a> {
    let image = PeImage::parse(data).unwrap();
    let mut machine = Machine::new();
    load(&mut machine, data, &image);
    let pages = (STACK.end - STACK.start) / PAGE_SIZE;
    machine.map(STACK.start, pages, Protection::READ_WRITE).unwrap();
    machine.add_trap(BACK, 1);
    let fresh = machine.save();
    let mut done = Calls::default();
    for (test, address) in tests(&image) {
        done.tests += 1;
        for k in 0..variants(test) {
            machine.restore(&fresh).unwrap();
            // The seed is the same for all images that have a test of that name.
            let seed = test.bytes().fold(k, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
            let (stop, expected) = call(&mut machine, address, k, &mut SplitMix64(seed));
            done.results.push((test, k, result(test, machine.cpu())));
            let what = format!("{name}, {test}({k}): {stop}");
            assert_eq!(stop, StopReason::Trap { address: BACK, id: 1 }, "{what}");
            assert!(preserved(machine.cpu(), &expected), "{what}: {:#x?}", machine.cpu());
            done.instructions += machine.executed();
        }
    }
    done
}

/// Counts of recorded frames by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frames {
    /// Frames whose registers after the return are those recorded.
    agree: u32,
    /// Frames that read memory which was not recorded.
    not_enough_memory: u32,
    /// Frames whose path depends on registers that were not recorded: flags and xmm0 to xmm5.
    astray: u32,
}

/// Returns the range of the stack memory of all vectors, with room for their callees below (VA).
fn stack_of(file: &VectorFile<'_>) -> Range<u64> {
    let (mut start, mut end) = (u64::MAX, 0);
    for vector in file.iter() {
        for segment in vector.unwrap().segments() {
            start = start.min(segment.address());
            end = end.max(segment.address() + segment.bytes().len() as u64);
        }
    }
    (start - DEPTH) / PAGE_SIZE * PAGE_SIZE..end.next_multiple_of(PAGE_SIZE)
}

/// Sets the registers and the memory of a vector.
fn load_vector(machine: &mut Machine, vector: &Vector<'_>) {
    for segment in vector.segments() {
        machine.write(segment.address(), segment.bytes()).unwrap();
    }
    machine.cpu_mut().set_registers(&vector.registers);
}

/// Runs until the frame has returned: to its return address, with rsp above its own.
fn run_frame(machine: &mut Machine, vector: &Vector<'_>) -> StopReason {
    let (back, rsp) = (vector.truth.rip, vector.registers.rsp());
    machine.add_breakpoint(back);
    let end = machine.executed() + FRAME_LIMIT;
    let stop = loop {
        let stop = machine.run(end - machine.executed());
        // In a recursive function, callees return to the same address.
        let returned = machine.cpu().rsp() > rsp;
        if !matches!(stop, StopReason::Breakpoint { .. }) || returned {
            break stop;
        }
    };
    machine.remove_breakpoint(back);
    stop
}

/// Returns true if the frame reads a byte of the stack that was neither recorded nor written
/// before.
fn reads_unrecorded(machine: &mut Machine, vector: &Vector<'_>, stack: &Range<u64>) -> bool {
    let mut known = vec![false; (stack.end - stack.start) as usize];
    let place = |address: u64, len: usize| {
        let at = (address - stack.start) as usize;
        at..at + len
    };
    for segment in vector.segments() {
        known[place(segment.address(), segment.bytes().len())].fill(true);
    }
    machine.set_access_log(true);
    let mut unrecorded = false;
    for _ in 0..FRAME_LIMIT {
        if unrecorded || machine.cpu().rip() == vector.truth.rip || machine.step().is_err() {
            break;
        }
        for access in machine.take_accesses() {
            if stack.contains(&access.address) {
                let bytes = &mut known[place(access.address, access.size.into())];
                match access.kind {
                    AccessKind::Write => bytes.fill(true),
                    AccessKind::Read => unrecorded |= !bytes.iter().all(|known| *known),
                }
            }
        }
    }
    machine.set_access_log(false);
    unrecorded
}

/// Runs every gold frame whose truth was recorded at its return.
fn run_vectors(name: &str, data: &[u8], vectors: &[u8]) -> Frames {
    let vectors = decompress(vectors, DECOMPRESSED_LIMIT).unwrap();
    let file = VectorFile::parse(&vectors).unwrap();
    let stack = stack_of(&file);
    let mut machine = Machine::new();
    load(&mut machine, data, &PeImage::parse(data).unwrap());
    let pages = (stack.end - stack.start) / PAGE_SIZE;
    machine.map(stack.start, pages, Protection::READ_WRITE).unwrap();
    let fresh = machine.save();
    let mut frames = Frames::default();
    for (n, vector) in file.iter().enumerate() {
        let vector = vector.unwrap();
        if !vector.flags.is_gold() || !vector.flags.truth_from_return() {
            continue;
        }
        machine.restore(&fresh).unwrap();
        load_vector(&mut machine, &vector);
        let stop = run_frame(&mut machine, &vector);
        let expected = vector.truth.apply(&vector.registers);
        let returned = stop == StopReason::Breakpoint { address: vector.truth.rip };
        if returned && preserved(machine.cpu(), &expected) {
            frames.agree += 1;
            continue;
        }
        let found = machine.cpu().registers();
        machine.restore(&fresh).unwrap();
        load_vector(&mut machine, &vector);
        if matches!(stop, StopReason::Fault { .. })
            || reads_unrecorded(&mut machine, &vector, &stack)
        {
            frames.not_enough_memory += 1;
        } else {
            let what = format!("{name}, vector {n} at {:#x}, {stop}", vector.rva);
            assert!(!returned, "{what}: {found:#x?}, expected {expected:#x?}");
            frames.astray += 1;
        }
    }
    frames
}

fn fixture(name: &str) -> (&'static [u8], &'static [u8]) {
    let get = |name: String| clr_fixtures::get(&name).unwrap();
    (get(format!("win64/img/{name}.dll")), get(format!("win64/vec/{name}.vec.gz")))
}

#[test]
fn tests_of_the_images_return_with_everything_preserved() {
    let expected = [
        ("asm_raw", 684, 818, 21_551),
        ("gcc_O2", 65, 79, 7_778),
        ("clang_O2", 65, 79, 7_279),
        ("clang_O2_lld", 65, 79, 7_279),
    ];
    for (name, tests, calls, instructions) in expected {
        let done = run_image(name, fixture(name).0);
        assert_eq!(
            (done.tests, done.results.len(), done.instructions),
            (tests, calls, instructions),
            "{name}"
        );
    }
}

/// The results of one source compiled by several compilers must be equal.
#[test]
fn compilers_agree_on_results() {
    let results = |name| {
        let mut results = run_image(name, fixture(name).0).results;
        results.sort_unstable();
        results
    };
    let gcc = results("gcc_O2");
    assert_eq!(gcc, results("clang_O2"));
    assert_eq!(gcc, results("clang_O2_lld"));
}

#[test]
fn recorded_frames_return_as_recorded() {
    let expected = [
        ("asm_raw", 10_093, 7),
        ("gcc_O2", 3_215, 7),
        ("clang_O2", 4_267, 8),
        ("clang_O2_lld", 4_267, 8),
    ];
    for (name, agree, not_enough_memory) in expected {
        let (image, vectors) = fixture(name);
        let frames = run_vectors(name, image, vectors);
        assert_eq!(frames, Frames { agree, not_enough_memory, astray: 0 }, "{name}");
    }
}

/// Returns the family of an image; images of a family come from the same source.
fn family(name: &str) -> &str {
    match name.split_once('_') {
        Some(("gcc" | "clang", _)) => "corpus",
        Some((family, _)) => family,
        None => name,
    }
}

/// Tests the whole collection.
#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names"]
fn all_oracles_agree() {
    let (directory, mut names) = oracle_images();
    // These need libraries.
    names.retain(|name| !name.starts_with("cpp_"));
    let mut results = BTreeMap::new();
    for name in &names {
        let image = std::fs::read(directory.join(format!("img/{name}.dll"))).unwrap();
        let vectors = std::fs::read(directory.join(format!("vec/{name}.vec.gz"))).unwrap();
        let calls = run_image(name, &image);
        let frames = run_vectors(name, &image, &vectors);
        println!(
            "{name}: {} tests, {} calls, {} instructions; {frames:?}",
            calls.tests,
            calls.results.len(),
            calls.instructions
        );
        for (test, k, result) in calls.results {
            let key = (family(name).to_owned(), test.to_owned(), k);
            let (first, expected) = results.entry(key).or_insert((name, result));
            assert_eq!(result, *expected, "{test}({k}) in {name} and {first}");
        }
    }
}
