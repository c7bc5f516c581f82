//! Tests of the second unwinder: it is right without a bug, and wrong with each one.

use super::*;
use clr_recording::vectors::replay::{fuzz_functions, fuzz_image};
use clr_tests::mutants::{Bug, Unwinder};
use clr_tests::oracle_images;

const NAMES: [&str; 5] = ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"];

/// Returns the map of an image, and its vectors decompressed.
fn load<'a>(image: &'a [u8], vectors: &[u8]) -> (CodeMap<'a>, Vec<u8>) {
    let vectors = decompress(vectors, DECOMPRESSED_LIMIT).unwrap();
    let base = VectorFile::parse(&vectors).unwrap().image_base();
    let mut map = CodeMap::new();
    map.insert_image(base, &PeImage::parse(image).unwrap()).unwrap();
    (map, vectors)
}

fn fixture(name: &str) -> (CodeMap<'static>, Vec<u8>) {
    let get = |name: String| clr_fixtures::get(&name).unwrap();
    load(get(format!("win64/img/{name}.dll")), get(format!("win64/vec/{name}.vec.gz")))
}

/// Returns true if the frames of a stack, from the caller on, are those of execution.
fn is_true(vector: &Vector<'_>, mut frames: impl Iterator<Item = Registers>) -> bool {
    let truth = vector.truth.apply(&vector.registers);
    let same = |expected: &Registers, found: &Registers| {
        expected.rip == found.rip
            && expected.rsp() == found.rsp()
            && Gpr::NONVOLATILE.iter().all(|gpr| expected.get(*gpr) == found.get(*gpr))
    };
    let caller_is_true =
        frames.next().is_some_and(|caller| same(&truth, &caller) && truth.xmm == caller.xmm);
    caller_is_true
        && vector.chain.iter().all(|expected| {
            let mut registers = Registers { rip: expected.rip, ..Registers::default() };
            registers.set(Gpr::Rsp, expected.rsp);
            for (register, value) in Gpr::NONVOLATILE.into_iter().zip(expected.nonvolatile) {
                registers.set(register, value);
            }
            frames.next().is_some_and(|found| same(&registers, &found))
        })
}

fn walker_is_right(map: &CodeMap<'_>, vector: &Vector<'_>) -> bool {
    let memory = Segments::new(vector.segments()).unwrap();
    let frames = clr_unwind::Unwinder::new(map).walk(&vector.registers, &memory);
    is_true(vector, frames.skip(1).map_while(Result::ok).map(|frame| frame.registers))
}

fn is_right(unwinder: Unwinder<'_, '_>, vector: &Vector<'_>) -> bool {
    let memory = Segments::new(vector.segments()).unwrap();
    let frames = unwinder.walk(&vector.registers, &memory, 2 + vector.chain.len());
    is_true(vector, frames.into_iter().skip(1).map(|(registers, _)| registers))
}

/// Counts of vectors that are unwound as in execution.
#[derive(Debug, Default, PartialEq, Eq)]
struct Right {
    gold: usize,
    /// Vectors in code that unwinders cannot follow by Windows' rules.
    others: usize,
}

/// Counts the vectors that are unwound correctly. They must include all vectors that the walker
/// unwinds correctly.
fn right(name: &str, map: &CodeMap<'_>, vectors: &[u8]) -> Right {
    let mut right = Right::default();
    for (n, vector) in VectorFile::parse(vectors).unwrap().iter().enumerate() {
        let vector = vector.unwrap();
        let is_right = is_right(Unwinder::new(map), &vector);
        assert!(
            is_right || !walker_is_right(map, &vector),
            "{name}, vector {n}, {:?} at {:#x}",
            vector.kind,
            vector.rva
        );
        let gold = vector.flags.is_gold();
        assert!(is_right || !gold, "{name}, vector {n}");
        right.gold += usize::from(is_right && gold);
        right.others += usize::from(is_right && !gold);
    }
    right
}

#[test]
fn without_a_bug_every_vector_is_unwound_that_the_walker_unwinds() {
    let found = NAMES.map(|name| {
        let (map, vectors) = fixture(name);
        let Right { gold, others } = right(name, &map, &vectors);
        (name, gold, others)
    });
    let expected = [
        // 104 of the others are in ___chkstk_ms, 30 in epilogues with iretq, 15 each in such as end
        // with the tail calls `jmp rax` and `jmp [rax]` and with `nop; ret`, 1 before a long pop.
        ("asm_raw", 10_100, 180),
        ("clang_O2", 4_275, 99),
        ("clang_O2_lld", 4_275, 99),
        ("cpp_gcc_O2", 1_051, 29),
        ("gcc_O2", 3_222, 104),
    ];
    assert_eq!(found, expected);
}

/// Tests the whole collection.
#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names"]
fn all_oracles_agree() {
    let (directory, names) = oracle_images();
    let mut sum = Right::default();
    for name in &names {
        let image = std::fs::read(directory.join(format!("img/{name}.dll"))).unwrap();
        let vectors = std::fs::read(directory.join(format!("vec/{name}.vec.gz"))).unwrap();
        let (map, vectors) = load(&image, &vectors);
        let found = right(name, &map, &vectors);
        let count = VectorFile::parse(&vectors).unwrap().len();
        println!("{name}: {count} vectors, right: {found:?}");
        sum.gold += found.gold;
        sum.others += found.others;
    }
    println!("all: {sum:?}");
}

#[test]
fn bugs_show_in_recorded_code() {
    // The number of gold vectors of each image that are unwound wrongly.
    let expected = [
        (Bug::CodeOffsetOffByOne, [2_052, 435, 435, 136, 204]),
        (Bug::IntegerSavesScaledBy16, [1_064, 0, 0, 0, 24]),
        (Bug::ChainIgnored, [709, 0, 0, 0, 0]),
        (Bug::ChainWithChildOffset, [278, 0, 0, 0, 0]),
        (Bug::ZeroExtendedDisplacement, [2, 0, 0, 0, 0]),
        (Bug::JumpInsideTakenForEpilogue, [76, 22, 22, 11, 10]),
        (Bug::RexJumpNotSeen, [90, 6, 6, 0, 2]),
        (Bug::PopOrderSwapped, [896, 268, 268, 58, 66]),
        (Bug::AllocLargeScaledTwice, [39, 40, 40, 0, 77]),
        (Bug::EpilogSlotsAsOffsets, [221, 0, 0, 0, 0]),
        // These compilers neither restore a frame register before other saved registers, nor end a
        // function with a call.
        (Bug::FrameBaseRecomputed, [0; 5]),
        (Bug::ReturnAddressNotDecremented, [0; 5]),
    ];
    let fixtures = NAMES.map(fixture);
    let found = Bug::ALL.map(|bug| {
        let wrong = fixtures.each_ref().map(|(map, vectors)| {
            let vectors = VectorFile::parse(vectors).unwrap().iter().map(Result::unwrap);
            let unwinder = Unwinder::new(map).with_bug(bug);
            vectors.filter(|v| v.flags.is_gold() && !is_right(unwinder, v)).count()
        });
        (bug, wrong)
    });
    assert_eq!(found, expected);
}

#[test]
fn bugs_have_names() {
    let names: BTreeSet<_> = Bug::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), Bug::ALL.len());
    assert!(names.iter().all(|name| name.ends_with('.') && !name.contains('\n')));
}

/// Instructions of epilogues, and similar ones.
const PIECES: [&[u8]; 23] = [
    &[0x48, 0x83, 0xC4, 0x08],
    &[0x48, 0x83, 0xC4, 0x90],
    &[0x48, 0x81, 0xC4, 0x00, 0x01, 0x00, 0x00],
    &[0x48, 0x8D, 0x65, 0xF0],
    &[0x49, 0x8D, 0x64, 0x24, 0x10],
    &[0x48, 0x8D, 0xA5, 0x10, 0x00, 0x00, 0x00],
    &[0x58],
    &[0x5B],
    &[0x41, 0x5C],
    &[0x48, 0x5E],
    &[0xF2],
    &[0xC3],
    &[0xC2, 0x08, 0x00],
    &[0xF3, 0xC3],
    &[0x48, 0xC3],
    &[0xEB, 0x02],
    &[0xEB, 0xF8],
    &[0xE9, 0x20, 0x00, 0x00, 0x00],
    &[0xE9, 0xE0, 0xFF, 0xFF, 0xFF],
    &[0xFF, 0x25],
    &[0x48, 0xFF, 0xE0],
    &[0x49, 0xFF, 0x24, 0x24],
    &[0x48, 0xCF],
];

/// The caller that an unwinder finds, if any.
type Answer = Option<(Registers, Position)>;

/// Returns the answers of the unwinder without a bug, and of the walker. The unwinders with bugs
/// must not panic.
fn answers(record: &FuzzRecord<'_>, position: Position, convention: Convention) -> [Answer; 2] {
    let image = fuzz_image(record);
    let functions = fuzz_functions(record);
    let table = FunctionTable::new(&functions);
    let mut map = CodeMap::new();
    map.insert(CodeRegion::heap(fuzz::IMAGE_BASE, &image, table).unwrap()).unwrap();
    let memory = FuzzMemory::new(&image);
    let answer = |unwinder: Unwinder<'_, '_>| {
        let mut registers = record.registers;
        let caller = unwinder.step(&mut registers, position, &memory);
        assert!(caller.is_ok() || registers == record.registers);
        Some((registers, caller.ok()?))
    };
    let second = match convention {
        Convention::WindowsX64 => Unwinder::new(&map),
        Convention::SystemV => Unwinder::new(&map).on_unix(),
    };
    for bug in Bug::ALL {
        let unwinder = second.with_bug(bug);
        let _: Answer = answer(unwinder);
        assert!(unwinder.walk(&record.registers, &memory, 20).len() <= 20);
    }
    let mut registers = record.registers;
    let walker = clr_unwind::Unwinder::new(&map).with_convention(convention);
    let step = walker.step(&mut registers, position, &memory);
    [answer(second), step.ok().map(|step| (registers, step.caller))]
}

/// Returns true if both unwinders give the same answer on each system.
fn agree(record: &FuzzRecord<'_>, position: Position) -> bool {
    [Convention::WindowsX64, Convention::SystemV].into_iter().all(|convention| {
        let [answer, walker] = answers(record, position, convention);
        answer == walker
    })
}

#[test]
fn artificial_code_is_unwound_as_the_walker_does() {
    let bytes = clr_fixtures::get("win64/diff/fuzz.bin.gz").unwrap();
    let bytes = decompress(bytes, DECOMPRESSED_LIMIT).unwrap();
    let mut seed = 0;
    let mut random = move |below: usize| {
        seed += 8;
        (stack_word(seed) >> 32) as usize % below
    };
    for (n, record) in FuzzFile::parse(&bytes).unwrap().iter().enumerate() {
        let record = record.unwrap();
        assert!(agree(&record, Position::Interrupted), "record {n}");
        // Records are changed: other places, other instructions there, and a few changed bytes.
        for change in 0..cases(20) {
            let mut blob = record.content().to_vec();
            let [begin, end, _] = *record.functions.last().unwrap();
            let mut changed = record.clone();
            if random(2) == 0 {
                changed.pc_rva = begin + random((end - begin).max(1) as usize) as u32;
                changed.registers.rip = fuzz::IMAGE_BASE + u64::from(changed.pc_rva);
            }
            if random(2) == 0 {
                let pieces: Vec<_> = (0..random(6)).map(|_| PIECES[random(PIECES.len())]).collect();
                let code = pieces.concat();
                let at = (changed.pc_rva - fuzz::BLOB_RVA) as usize;
                blob[at..][..code.len()].copy_from_slice(&code);
            }
            for _ in 0..random(4) {
                let at = random(record.blob.len());
                blob[at] = random(256) as u8;
            }
            changed.blob = &blob;
            for position in [Position::Interrupted, Position::ReturnAddress] {
                let what = format_args!("record {n}, change {change}, {position:?}");
                assert!(agree(&changed, position), "{what}: {changed:x?}");
            }
        }
    }
}
