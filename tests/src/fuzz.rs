//! The functions that the fuzz targets run, and that this crate's tests replay over the seeds of
//! `fuzz/seeds`.
//!
//! Each function accepts any bytes. It panics only if the code under test panics or violates a
//! property that holds for all input.
//!
//! Where the bytes are choices of a generator, a text of the fixture format is an input, too: it has a
//! program, a thread or an interleaving that is like the generated ones, and it can be mutated as such.

mod changes;
mod compact;
mod dump;
#[cfg(target_pointer_width = "64")]
mod host;
mod mixed;
mod mutation;
mod native;
mod orders;
mod readers;
mod repair;
mod schedule;
mod script;
mod second;
mod steps;
mod text;
mod texts;

pub use changes::{elf_image, lint, pe_image, recording, trace, vector_file};
pub use compact::compact_unwind;
pub use dump::dump;
#[cfg(target_pointer_width = "64")]
pub use host::{host_calls, story_of_host_calls};
pub use mixed::mixed_walk;
pub use mutation::{crossed, mutant};
pub use native::eh_frame;
pub use repair::{is_readable, repaired};
pub use schedule::{ending_of_schedule, schedule};

use crate::every_instruction::{self, Failure};
use crate::fragments;
use crate::loaded::Loaded;
use crate::world::{self, Plan, examine_loaded};
use arbitrary::{Arbitrary as _, Unstructured};
use clr_generate::{SmallProgram, SyntheticCall, WorldCase};
use clr_recording::vectors::fuzz::{FuzzFile, IMAGE_BASE};
use clr_recording::vectors::replay::{VectorReplay, run_fuzz_record};
use clr_recording::vectors::win64::VectorFile;
use clr_recording::vectors::{DecompressError, decompress};
use clr_recording::{RecordedCode, Recording, RecordingReplay};
use clr_runtime::generation::Generation;
use clr_scenario::{Scenario, format_text};
use clr_unwind::compat::Rules;
use clr_unwind::win64::{UnwindInfo, UnwindInfoV3};
use clr_unwind::{
    Cache, CodeMap, CodeRegion, FunctionTable, PeImage, Registers, SIZE_OF_RUNTIME_FUNCTION,
};
use steps::{ALL_RULES, FUZZES, Memories, make_registers, some, some_rules, unwind};

/// Maximum number of places in functions from which an input of [`unwind_info`] unwinds.
const START_LIMIT: usize = if FUZZES { 8 } else { 12 };

/// Maximum number of an image's functions that are examined.
const FUNCTION_LIMIT: usize = 64;

/// Maximum size of a decompressed input in bytes.
const DECOMPRESSED_LIMIT: usize = 1 << 16;

/// Does nothing: the interfaces are for 64-bit targets.
#[cfg(not(target_pointer_width = "64"))]
pub fn host_calls(_: &[u8]) {}

/// Returns nothing: as [`host_calls`].
#[cfg(not(target_pointer_width = "64"))]
#[must_use]
pub fn story_of_host_calls(_: &[u8]) -> String {
    String::new()
}

/// Unwinds with a table, unwind data, code and registers that are all made from `data`:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0, 1 | RVA of the instruction |
/// | 2 | low half: number of RUNTIME_FUNCTIONs; high half: kind of values in the other registers |
/// | 3 | value of rsp |
/// | 4 to 7 | seed of the other registers |
/// | then | the RUNTIME_FUNCTIONs |
/// | then | the image from RVA 0; without RUNTIME_FUNCTIONs, the choices of [`fragments::image`] |
///
/// # Panics
/// If a step that failed changed a register, if the second unwinder disagrees, if the same step gives two answers, or if one of the
/// crate's iterators does not end.
pub fn unwind_info(data: &[u8]) {
    let Some((&[pc_low, pc_high, kind, stack, s0, s1, s2, s3], rest)) = data.split_first_chunk()
    else {
        return;
    };
    let table_len = usize::from(kind & 15) * SIZE_OF_RUNTIME_FUNCTION;
    let Some((table, image)) = rest.split_at_checked(table_len) else {
        return;
    };
    let mut rest = image.iter();
    let mut draw = |below: usize| usize::from(*rest.next().unwrap_or(&0)) % below;
    let made = table.is_empty().then(|| fragments::image(&mut draw));
    let (table, image) = made.as_ref().map_or((table, image), |it| (&it.table[..], &it.bytes[..]));
    let functions = FunctionTable::new(table);
    let Ok(region) = CodeRegion::heap(IMAGE_BASE, image, functions) else {
        return;
    };
    if image.len() > 1 << 16 {
        return;
    }
    decode_all(&region);
    let mut map = CodeMap::new();
    map.insert(region).expect("the map is empty");

    let seed = u32::from_le_bytes([s0, s1, s2, s3]);
    let pc = u32::from(u16::from_le_bytes([pc_low, pc_high]));
    let memories = Memories::new(image);
    let starts = starts(functions, seed);
    let mut cache = Cache::new();
    // With the second seed, the cache holds steps that it learned with the first one.
    for seed in [seed, !seed] {
        let registers = make_registers(kind >> 4, stack, seed);
        for (n, rva) in (0..).zip(core::iter::once(pc).chain(starts.iter().copied())) {
            let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
            let rules = if FUZZES { some_rules(seed.wrapping_add(n)) } else { &ALL_RULES };
            unwind(&map, &mut cache, &registers, &memories, rules);
            second::compare(&map, &registers, &memories.copied);
        }
    }
}

/// Returns the places in a table's functions from which an input unwinds, in their order and each once. If there are
/// many, `seed` says where the first one is: another seed, or another address of the instruction, has those that are
/// left out.
fn starts(functions: FunctionTable<'_>, seed: u32) -> Vec<u32> {
    let ends = functions
        .iter()
        .flat_map(|f| [f.begin, f.begin.wrapping_add(1), f.begin.midpoint(f.end), f.end]);
    let mut starts = Vec::new();
    for start in ends {
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    some(starts, START_LIMIT, seed)
}

/// Decodes all unwind data that the function table points to.
fn decode_all(region: &CodeRegion<'_>) {
    for function in region.functions().iter().take(FUNCTION_LIMIT) {
        let Ok(info) = UnwindInfo::read(region, function.unwind_info & !1) else {
            continue;
        };
        let codes = info.codes().count();
        assert!(codes <= info.slot_count(), "{codes} codes");
        let slots: usize =
            info.codes().map_while(Result::ok).map(|code| usize::from(code.slots)).sum();
        // Only the last code may take slots beyond the count.
        assert!(slots < info.slot_count() + 3, "{slots} slots");
        if let Some(epilogs) = info.epilogs() {
            let starts = epilogs.starts(function.end).count();
            assert!(starts <= info.slot_count(), "{starts} epilogues");
        }
        if let Ok(payload) = UnwindInfoV3::read(&info) {
            assert!(payload.prologue().codes().count() <= 31);
            let epilogues = payload.epilogues(function).count();
            assert!(epilogues <= 7, "{epilogues} epilogues");
            for epilogue in payload.epilogues(function).flatten() {
                assert!(function.contains(epilogue.start), "{epilogue:?} of {function:?}");
                assert!(epilogue.winding.codes().count() <= 31);
            }
        }
        let parent = info.parent();
        assert_eq!(parent.is_ok_and(|parent| parent.is_none()), !info.is_chained());
        let _ = info.handler();
    }
}

/// Parses `data` as a PE image, examines its content, and unwinds from the first and last byte of
/// its functions.
///
/// # Panics
/// As [`unwind_info`] does; also if a look-up in the image contradicts its sections or symbols.
fn examine_pe_image(data: &[u8]) {
    let Ok(image) = PeImage::parse(data) else {
        return;
    };
    for section in image.sections().as_slice() {
        let len = section.bytes.len() as u32;
        for at in [0, len / 2, len - 1] {
            let found = image.sections().bytes_from(section.rva + at);
            assert_eq!(found, section.bytes.get(at as usize..));
        }
        let behind = image.sections().find(section.rva.wrapping_add(len));
        assert!(behind.is_none_or(|behind| behind.rva != section.rva));
    }
    let symbols = image.symbols();
    for (rva, name) in symbols.as_slice() {
        assert_eq!(symbols.find(*rva), Some((*name, 0)));
    }
    for base in [image.preferred_base(), IMAGE_BASE, u64::MAX - 0xFFFF] {
        let mut map = CodeMap::new();
        if map.insert_image(base, &image).is_err() {
            continue;
        }
        assert!(map.insert_image(base, &image).is_err(), "the same base is accepted twice");
        if let Some(region) = map.regions().next() {
            decode_all(region);
        }
    }

    let mut map = CodeMap::new();
    if map.insert_image(IMAGE_BASE, &image).is_err() {
        return;
    }
    // A part of the file is enough as memory, and cannot reach the stack.
    let readable = data.get(..1 << 16).unwrap_or(data);
    let memories = Memories::new(readable);
    let registers = make_registers(0, 0xFF, 1);
    let mut cache = Cache::new();
    for function in image.functions().iter().take(FUNCTION_LIMIT / 4) {
        for rva in [function.begin, function.end.wrapping_sub(1)] {
            let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
            unwind(&map, &mut cache, &registers, &memories, &ALL_RULES);
        }
    }
}

/// Parses `data` as a file of vectors and as one of fuzz records, compressed or not, and replays
/// its content. One that cannot be read is [`repaired`], too.
///
/// # Panics
/// If two ways to read the same bytes disagree, or a replay does not repeat.
fn examine_vector_file(data: &[u8]) {
    if !is_readable(data) {
        let repaired = repaired(data, DECOMPRESSED_LIMIT);
        vectors(&repaired);
        fuzz_records(&repaired);
    }
    vectors(data);
    fuzz_records(data);
    match decompress(data, DECOMPRESSED_LIMIT) {
        Ok(content) => {
            assert!(content.len() <= DECOMPRESSED_LIMIT);
            vectors(&content);
            fuzz_records(&content);
        }
        Err(DecompressError::Corrupt { decompressed }) => {
            assert!(decompressed <= DECOMPRESSED_LIMIT);
        }
        Err(DecompressError::TooLong { limit }) => assert_eq!(limit, DECOMPRESSED_LIMIT),
    }
}

fn vectors(data: &[u8]) {
    let Ok(file) = VectorFile::parse(data) else {
        return;
    };
    let read = file.iter().count();
    let whole = file.iter().all(|vector| vector.is_ok());
    assert!(read <= file.len() && (!whole || read == file.len()));
    assert!(file.get(file.len()).is_none());
    let replays: Vec<_> = ["clang_O2_lld", "gcc_O2"]
        .into_iter()
        .filter_map(|name| clr_fixtures::get(&format!("win64/img/{name}.dll")))
        .filter_map(|image| PeImage::parse(image).ok())
        .flat_map(|image| {
            ALL_RULES.map(|rules| VectorReplay::new(&image, file.image_base(), rules))
        })
        .filter_map(Result::ok)
        .collect();
    for (n, vector) in file.iter().enumerate().take(FUNCTION_LIMIT) {
        let got = file.get(n).expect("the vector exists");
        assert_eq!(got.is_ok(), vector.is_ok());
        let Ok(vector) = vector else { break };
        for outcome in [vector.truth, vector.wine, vector.coreclr] {
            let _ = outcome.apply(&vector.registers);
        }
        for replay in &replays {
            assert_eq!(replay.run(&vector), replay.run(&vector));
        }
    }
}

fn fuzz_records(data: &[u8]) {
    let Ok(file) = FuzzFile::parse(data) else {
        return;
    };
    let read = file.iter().count();
    let whole = file.iter().all(|record| record.is_ok());
    assert!(read <= file.len() && (!whole || read == file.len()));
    assert!(file.get(file.len()).is_none());
    for (n, record) in file.iter().enumerate().take(FUNCTION_LIMIT) {
        let got = file.get(n).expect("the record exists");
        assert_eq!(got.is_ok(), record.is_ok());
        let Ok(record) = record else { break };
        assert!(record.content().starts_with(record.blob));
        for rules in ALL_RULES {
            let verdict = run_fuzz_record(&record, rules);
            assert_eq!(verdict, run_fuzz_record(&record, rules));
        }
    }
}

/// Maximum number of stops at which the calls of a text are made.
const STOP_LIMIT: usize = 2;

/// Parses a text as a scenario, formats it, and makes its calls on one generation. Bytes that are no text are
/// a scenario, which is printed first.
///
/// # Panics
/// If a problem is reported at a place outside the text, if the scenario's own text does not parse
/// to the scenario, if a run does not repeat, or if formatting changes the scenario or is not
/// idempotent.
pub fn fixture_text(data: &[u8]) {
    let made;
    let text = if let Ok(text) = core::str::from_utf8(data) {
        text
    } else {
        made = texts::made(data).unwrap_or_default();
        &made
    };
    let scenario = Scenario::parse(text);
    let layout = format_text(text);
    // Most mutants are canonical: a text that is equal to the one before need not be read again.
    let is_read = |other: &str| other == text;
    match &scenario {
        Ok(scenario) => {
            let canonical = scenario.to_string();
            if !is_read(&canonical) {
                assert_eq!(Scenario::parse(&canonical).as_ref(), Ok(scenario));
            }
            let canonical_layout =
                if is_read(&canonical) { &layout } else { &format_text(&canonical) };
            assert_eq!(canonical_layout.as_ref(), Ok(&canonical));
            let by_length = Generation::ALL[data.len() % Generation::ALL.len()];
            let generation = scenario.expected_generation().unwrap_or(by_length);
            if scenario.stops.len() <= STOP_LIMIT {
                let mixed = scenario.each_mixed_on(generation);
                let found = scenario.run_on(generation);
                // A fuzzer has other inputs like this one: repeating one in four is enough.
                if !FUZZES || data.iter().fold(0, |sum, byte| sum ^ byte) % 4 == 0 {
                    assert_eq!(mixed, scenario.each_mixed_on(generation));
                    assert_eq!(found, scenario.run_on(generation));
                }
            }
        }
        Err(error) => {
            assert!(!error.problems().is_empty() && !error.to_string().is_empty());
            for problem in error.problems() {
                assert!(text.get(problem.span.offset..problem.span.end()).is_some());
                // The help text is not checked; computing it must not panic.
                let _ = problem.kind.help();
            }
        }
    }
    if let Ok(layout) = layout
        && !is_read(&layout)
    {
        assert_eq!(format_text(&layout).as_ref(), Ok(&layout));
        assert_eq!(Scenario::parse(&layout).ok(), scenario.ok());
    }
}

/// Maximum number of instruction boundaries checked in a program's run.
const BOUNDARY_LIMIT: u64 = 3000;

/// Makes a program from `data`, which may be a text, and checks it at every instruction: precise rules find the truth,
/// Windows' rules are wrong exactly where they are known to be.
///
/// # Panics
/// If the check fails, with the program's text.
pub fn program(data: &[u8]) {
    let program = match text::scenario(data) {
        Some(scenario) => text::program(scenario),
        None => SmallProgram::arbitrary(&mut Unstructured::new(data)).ok().map(|drawn| drawn.0),
    };
    let Some(program) = program else { return };
    let results = [
        every_instruction::precise(&program, BOUNDARY_LIMIT),
        every_instruction::windows(&program, Rules::CoreClr, BOUNDARY_LIMIT, |_| ()),
        every_instruction::windows(&program, Rules::Ntdll, BOUNDARY_LIMIT, |_| ()),
    ];
    for result in results {
        match result {
            Ok(_) => {}
            Err(Failure::Link(error)) if error.is_size() => {}
            Err(failure) => panic!("{failure}\n{}", Scenario::new(program)),
        }
    }
}

/// Maximum number of a recording's walks that are replayed.
const WALK_LIMIT: usize = 4;

/// Parses a recording, and replays its first walks.
fn examine_recording(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(recording) = Recording::parse(text) else { return };
    let code = RecordedCode::new(&recording);
    let Ok(mut replay) = RecordingReplay::new(&recording, &code) else { return };
    for walk in recording.walks.iter().take(WALK_LIMIT) {
        let _ = replay.walk(walk, |_| {});
    }
}

/// Makes a thread and a call of `DoStackSnapshot` for it from `data`, and checks the properties of
/// all such calls.
///
/// # Panics
/// If a property does not hold, with the thread and the call.
pub fn snapshot(data: &[u8]) {
    let Ok(case) = SyntheticCall::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    if let Err(broken) = crate::snapshot::check(&case) {
        panic!("{broken}\n{case:#x?}");
    }
}

/// Maximum number of calls made for a program.
const CALL_LIMIT: u64 = 100;

/// Makes a program that calls the runtime from `data`, which may be a text, executes it, and compares the results of
/// `DoStackSnapshot` with the model's.
///
/// # Panics
/// If a program cannot be executed, or a call's result differs from the model's.
pub fn scenario(data: &[u8]) {
    if let Some(scenario) = text::scenario(data) {
        return text::examine(&scenario, CALL_LIMIT);
    }
    let Ok(case) = WorldCase::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    let seed = case.turns.iter().fold(0, |seed, turn| seed << 8 ^ u64::from(turn.steps));
    let plan = Plan { seed, cases: CALL_LIMIT, thorough: false };
    // A few programs are too large for the formats.
    let Ok(build) = case.program.build() else { return };
    let Ok(mut loaded) = Loaded::new(&case.program, &build) else { return };
    match examine_loaded(&case.program, &mut loaded, plan, |_| ()) {
        Ok(_) | Err(world::Failure::Build(_)) => {}
        Err(failure) => panic!("{failure}"),
    }
    if let Some(mismatch) = world::make_loaded(&case, &mut loaded) {
        panic!("{mismatch}");
    }
}
