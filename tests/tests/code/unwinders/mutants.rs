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
    let frames = unwind::Unwinder::new(map).walk(&vector.registers, &memory);
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

const BASE: u64 = 0x1_4000_0000;
const STACK: u64 = 0x10_0000;
const IMAGE_SIZE: usize = 0x400;

/// RVAs of a function, of another part that is chained to it, and of a function after them.
const MAIN: u32 = 0x100;
const CHUNK: u32 = 0x180;
const OTHER: u32 = 0x1C0;
const MAIN_INFO: u32 = 0x300;

/// push rbx; sub rsp, 28h. The instructions end at 1 and 5.
const ALLOC_AND_PUSH: [u8; 8] = [1, 5, 2, 0, 5, 0x42, 1, 0x30];

/// Memory that is readable at every address, where each word has the value of its address.
struct Telling;

impl Memory for Telling {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        buffer.fill(0);
        for (byte, value) in buffer.iter_mut().zip(address.to_le_bytes()) {
            *byte = value;
        }
        Ok(())
    }
}

/// A step through an artificial function.
struct Case<'a> {
    /// UNWIND_INFO of MAIN.
    info: &'a [u8],
    /// Bytes at rip; the other bytes are int3.
    code: &'a [u8],
    rip: u32,
    position: Position,
    /// Distances in bytes from rsp: of the slots from which registers were loaded, of the return
    /// address, and of the caller's rsp.
    loaded: &'a [(Gpr, u64)],
    return_address: u64,
    moved: u64,
    caller: Position,
}

impl Case<'_> {
    /// A case with rip in the body of a function that has executed [`ALLOC_AND_PUSH`].
    const PLAIN: Self = Self {
        info: &ALLOC_AND_PUSH,
        code: &[],
        rip: 0x120,
        position: Position::Interrupted,
        loaded: &[(Gpr::Rbx, 0x28)],
        return_address: 0x30,
        moved: 0x38,
        caller: Position::ReturnAddress,
    };

    /// Returns a case with rip before these instructions of an epilogue.
    const fn epilogue<'a>(code: &'a [u8], loaded: &'a [(Gpr, u64)], moved: u64) -> Case<'a> {
        Case { code, loaded, return_address: moved - 8, moved, ..Case::PLAIN }
    }

    fn image(&self) -> Vec<u8> {
        let mut image = vec![0xCC; IMAGE_SIZE];
        let mut put = |rva: u32, bytes: &[u8]| {
            image[rva as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        put(self.rip, self.code);
        put(MAIN_INFO, self.info);
        // CHUNK is chained to MAIN; OTHER has no unwind codes.
        put(0x340, &[1 | 4 << 3, 0, 0, 0]);
        put(0x344, &bytes_of(&[MAIN, CHUNK, MAIN_INFO]));
        put(0x360, &[1, 0, 0, 0]);
        image
    }

    fn before(&self) -> Registers {
        let mut registers = Registers { rip: BASE + u64::from(self.rip), ..Registers::default() };
        registers.set(Gpr::Rsp, STACK);
        registers.set(Gpr::Rbp, STACK + 0x40);
        registers
    }

    fn after(&self) -> Registers {
        let mut registers =
            Registers { rip: STACK.wrapping_add(self.return_address), ..self.before() };
        for (register, at) in self.loaded {
            registers.set(*register, STACK + at);
        }
        registers.set(Gpr::Rsp, STACK.wrapping_add(self.moved));
        registers
    }

    fn is_right(&self, bug: Option<Bug>) -> bool {
        let image = self.image();
        let functions =
            bytes_of(&[MAIN, CHUNK, MAIN_INFO, CHUNK, OTHER, 0x340, OTHER, 0x200, 0x360]);
        let mut map = CodeMap::new();
        let table = FunctionTable::new(&functions);
        map.insert(CodeRegion::heap(BASE, &image, table).unwrap()).unwrap();
        let unwinder = Unwinder::new(&map);
        let unwinder = bug.map_or(unwinder, |bug| unwinder.with_bug(bug));
        let mut registers = self.before();
        let caller = unwinder.step(&mut registers, self.position, &Telling);
        caller == Ok(self.caller) && registers == self.after()
    }
}

fn bytes_of(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

#[test]
fn each_bug_shows_in_a_synthetic_function() {
    use Gpr::{Rbp, Rbx, Rsi};
    let plain = || Case::PLAIN;
    let bugs = [
        (Bug::CodeOffsetOffByOne, Case { rip: MAIN + 5, ..plain() }),
        // ALLOC_SMALL 28h; SAVE_NONVOL rsi, 20h.
        (
            Bug::IntegerSavesScaledBy16,
            Case {
                info: &[1, 9, 3, 0, 9, 0x64, 4, 0, 4, 0x42],
                loaded: &[(Rsi, 0x20)],
                return_address: 0x28,
                moved: 0x30,
                ..plain()
            },
        ),
        (Bug::ChainIgnored, Case { rip: CHUNK + 0x10, ..plain() }),
        (Bug::ChainWithChildOffset, Case { rip: CHUNK + 1, ..plain() }),
        // lea rsp, [rbp-10h]; pop rbx; pop rbp; ret, and with 32 bits; add rsp, -20h; ret.
        (
            Bug::ZeroExtendedDisplacement,
            Case {
                info: &[1, 4, 1, 5, 4, 0x03],
                ..Case::epilogue(
                    &[0x48, 0x8D, 0x65, 0xF0, 0x5B, 0x5D, 0xC3],
                    &[(Rbx, 0x30), (Rbp, 0x38)],
                    0x48,
                )
            },
        ),
        (
            Bug::ZeroExtendedDisplacement,
            Case {
                info: &[1, 4, 1, 5, 4, 0x03],
                ..Case::epilogue(&[0x48, 0x8D, 0xA5, 0xF0, 0xFF, 0xFF, 0xFF, 0xC3], &[], 0x38)
            },
        ),
        (
            Bug::ZeroExtendedDisplacement,
            Case {
                return_address: 0_u64.wrapping_sub(0x20),
                moved: 0_u64.wrapping_sub(0x18),
                ..Case::epilogue(&[0x48, 0x83, 0xC4, 0xE0, 0xC3], &[], 8)
            },
        ),
        // jmp inside, in both sizes.
        (Bug::JumpInsideTakenForEpilogue, Case { code: &[0xEB, 0x10], ..plain() }),
        (Bug::JumpInsideTakenForEpilogue, Case { code: &[0xE9, 0x10, 0, 0, 0], ..plain() }),
        // pop rbx; rex.w jmp rax.
        (Bug::RexJumpNotSeen, Case::epilogue(&[0x5B, 0x48, 0xFF, 0xE0], &[(Rbx, 0)], 0x10)),
        // pop rbx; pop rsi; ret.
        (Bug::PopOrderSwapped, Case::epilogue(&[0x5B, 0x5E, 0xC3], &[(Rbx, 0), (Rsi, 8)], 0x18)),
        // ALLOC_LARGE 1000h.
        (
            Bug::AllocLargeScaledTwice,
            Case {
                info: &[1, 7, 3, 0, 7, 0x11, 0, 0x10, 0, 0],
                loaded: &[],
                return_address: 0x1000,
                moved: 0x1008,
                ..plain()
            },
        ),
        // The epilogue is 3 bytes long and starts 30h before the end; rsi is popped already.
        (
            Bug::EpilogSlotsAsOffsets,
            Case {
                info: &[2, 2, 4, 0, 3, 0x06, 0x30, 0x06, 2, 0x60, 1, 0x30],
                rip: CHUNK - 0x2F,
                ..Case::epilogue(&[0x5B, 0xC3], &[(Rbx, 0)], 0x10)
            },
        ),
        // ALLOC_SMALL 20h; SAVE_NONVOL rbx, 28h: into the home space.
        (
            Bug::FrameBaseRecomputed,
            Case {
                info: &[1, 9, 3, 0, 9, 0x32, 4, 0x34, 5, 0],
                return_address: 0x20,
                moved: 0x28,
                ..plain()
            },
        ),
        (
            Bug::ReturnAddressNotDecremented,
            Case { rip: OTHER, position: Position::ReturnAddress, ..plain() },
        ),
    ];
    for (n, (bug, case)) in bugs.iter().enumerate() {
        assert!(case.is_right(None), "case {n}");
        let wrong_with: Vec<_> =
            Bug::ALL.into_iter().filter(|bug| !case.is_right(Some(*bug))).collect();
        assert!(
            wrong_with.contains(bug),
            "case {n}: wrong with {wrong_with:?}, but not with {bug:?}"
        );
    }
    let shown: BTreeSet<_> = bugs.iter().map(|(bug, _)| *bug).collect();
    assert_eq!(shown.len(), Bug::ALL.len());
}

/// Version 1: push rax, on a machine frame without error code.
const OVER_MACHINE_FRAME: [u8; 8] = [1, 1, 2, 0, 1, 0x02, 0, 0x0A];

#[test]
fn interrupt_returns_are_executed() {
    // pop rax; iretq, and with an error code dropped before iretq.
    for (code, frame) in
        [(&[0x58, 0x48, 0xCF][..], 8), (&[0x58, 0x48, 0x83, 0xC4, 0x08, 0x48, 0xCF], 16)]
    {
        let case = Case {
            info: &OVER_MACHINE_FRAME,
            code,
            loaded: &[(Gpr::Rax, 0)],
            return_address: frame,
            // As each word has the value of its address, so has the rsp in the machine frame.
            moved: frame + 24,
            caller: Position::Interrupted,
            ..Case::PLAIN
        };
        assert!(case.is_right(None), "{code:x?}");
    }
    // In a function that was called, these are not epilogues.
    for code in [&[0x58, 0x48, 0xCF][..], &[0x48, 0x83, 0xC4, 0x08, 0x48, 0xCF], &[0x48, 0xCF]] {
        assert!(Case { code, ..Case::PLAIN }.is_right(None), "{code:x?}");
    }
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
    let walker = unwind::Unwinder::new(&map).with_convention(convention);
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
