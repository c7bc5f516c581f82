//! Code that looks like epilogues, unwound by the walker and by the second unwinder.

use clr_recording::vectors::fuzz::stack_word;
use clr_tests::mutants;
use clr_unwind::compat::Rules;
use clr_unwind::{
    CodeMap, CodeRegion, FunctionTable, Gpr, Memory, Position, Registers, Trust, Unreadable,
    Unwinder,
};
use proptest::array::uniform8;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::fmt;

const BASE: u64 = 0x1_4000_0000;

/// {begin, end}: the function under test, a part of it that is chained to it, and another function.
const MAIN: [u32; 2] = [0x100, 0x180];
const CHUNK: [u32; 2] = [0x180, 0x200];
const OTHER: [u32; 2] = [0x240, 0x280];

/// Addresses (RVA) of the code under test: in MAIN's prologue, in its body, in CHUNK.
const PLACES: [u32; 3] = [0x102, 0x120, 0x190];

const PROLOGUE: u8 = 8;
const IMAGE_SIZE: usize = 0x400;

/// Returns an image with `code` at `rva`, whose functions have `frame_register` (0 for none).
fn image(code: &[u8], rva: u32, frame_register: u8) -> Vec<u8> {
    let mut image = vec![0xCC; IMAGE_SIZE];
    let mut put = |at: u32, bytes: &[u8]| {
        image[at as usize..][..bytes.len()].copy_from_slice(bytes);
    };
    put(rva, code);
    // ALLOC_SMALL 0x20 and PUSH_NONVOL rdi, after which the codes never look like an epilogue.
    put(0x300, &[1, PROLOGUE, 2, frame_register, 8, 0x32, 1, 0x70]);
    put(0x310, &[1 | 4 << 3, 0, 0, frame_register]);
    put(0x314, &bytes_of(&[MAIN[0], MAIN[1], 0x300]));
    put(0x320, &[1, 4, 1, 0, 4, 0x32]);
    image
}

fn bytes_of(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

/// Memory that is readable at every address, with content computed from the address.
struct Everywhere;

impl Memory for Everywhere {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        for (byte, n) in buffer.iter_mut().zip(0..) {
            *byte = stack_byte(address.wrapping_add(n));
        }
        Ok(())
    }
}

fn stack_byte(address: u64) -> u8 {
    stack_word(address & !7).to_le_bytes()[(address & 7) as usize]
}

/// Generates bytes of code: a form of instruction, filled with random bits.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    // Small numbers come first, since shrinking leads to them.
    (0_u32..100, any::<u64>()).prop_map(|(form, random)| make_piece(form, random))
}

fn make_piece(form: u32, random: u64) -> Vec<u8> {
    let [b0, b1, b2, b3, b4, b5, b6, _] = random.to_le_bytes();
    let disp = i32::from(i8::from_le_bytes([b0])) * 8;
    let disp = disp.to_le_bytes();
    let modrm = |mode: u8, reg: u8| mode | reg << 3 | b1 & 7;
    match form {
        0..10 => vec![],
        10..28 => vec![0x58 | b0 & 7],
        28..38 => vec![0x40 | b1 & 15, 0x58 | b0 & 7],
        38..44 => vec![0xC3],
        44..46 => vec![0xC2, b0, b1],
        46..48 => vec![0xF2],
        48 => vec![0xF3],
        49..53 => vec![0x48, 0x83, 0xC4, disp[0]],
        53..56 => [&[0x48, 0x81, 0xC4][..], &disp].concat(),
        // add or sub with any register and any REX.
        56 => vec![0x48 | b2 & 7, 0x83, 0xC0 | b1 & 0x3F, b0],
        57 => [&[0x40 | b2 & 15, 0x81, 0xC0 | b1 & 0x3F][..], &disp].concat(),
        58..62 => vec![0x48 | b2 & 1, 0x8D, modrm(0x40, 4), b0],
        62..64 => [&[0x48 | b2 & 1, 0x8D, modrm(0x80, 4)][..], &disp].concat(),
        // lea of any form.
        64 => vec![0x48 | b2 & 7, 0x8D, b1, b0, b3, b4, b5, b6],
        65..70 => vec![0xEB, b0],
        70..76 => {
            [&[0xE9][..], &(i32::from(i16::from_le_bytes([b0, b1 & 1])) - 0x80).to_le_bytes()]
                .concat()
        }
        76 => [&[0xE9][..], &random.to_le_bytes()[..4]].concat(),
        77..79 => [&[0xFF, 0x25][..], &disp].concat(),
        79..83 => vec![0x48 | b2 & 7, 0xFF, b1 & 0xC7 | 0x20, b0, b3, b4, b5],
        83..85 => vec![0xFF, b1, b0, b3, b4, b5],
        85 => vec![0x40 | b0 & 15, 0xC3],
        86 => vec![0xF3, 0xC3],
        87 => vec![0xF2, 0xC3],
        88 => vec![0x40 | b0 & 15],
        89 => vec![[0x66, 0x67, 0x2E, 0x36, 0x64, 0xF0][usize::from(b0 % 6)]],
        90 => vec![0x8F, 0xC0 | b0 & 7],
        // The whole frame is undone.
        92 => vec![0x48, 0x83, 0xC4, 0x20, 0x5F],
        93 => vec![0x48, 0x81, 0xC4, 0x20, 0, 0, 0, 0x90, 0x8F, 0xC7],
        94 => [&[0x90][..], &[0xC5, 0xF8, 0x77], &[0x66, 0x90], &[0x0F, 0x1F, 0x44, 0, 0]]
            [usize::from(b0 & 3)]
        .to_vec(),
        91 => vec![[0x90, 0xC9, 0xCB, 0xCF, 0xCC, 0x50, 0x9D, 0x74, 0xE8][usize::from(b0 % 9)]],
        _ => vec![b0],
    }
}

const FRAME_REGISTERS: [u8; 8] = [0, 5, 3, 6, 13, 15, 1, 12];

/// Counts of the cases by result.
#[derive(Debug, Default)]
struct Seen {
    epilogues: u32,
    others: u32,
    /// Epilogues that only precise rules recognize, and those that only Windows' rules do.
    precise_only: u32,
    windows_only: u32,
}

#[test]
fn a_second_unwinder_sees_the_same_epilogues() {
    let config = ProptestConfig {
        cases: clr_tests::cases(100_000),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x5EED ^ clr_tests::seed()),
        ..ProptestConfig::default()
    };
    let strategy = (uniform8(piece()), 0_u32..3, 0_u32..8, any::<u64>()).prop_map(
        |(pieces, place, frame_register, seed)| {
            let code = Hex(pieces.concat());
            (code, PLACES[place as usize], FRAME_REGISTERS[frame_register as usize], seed)
        },
    );
    let seen = RefCell::new(Seen::default());
    let result = TestRunner::new(config).run(&strategy, |(code, place, frame_register, seed)| {
        check(&code.0, place, frame_register, seed, &mut seen.borrow_mut())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    // The cases must be diverse.
    let all = seen.epilogues + seen.others;
    let enough = seen.epilogues > all / 6
        && seen.others > all / 5
        && seen.precise_only > all / 200
        && seen.windows_only > all / 200;
    assert!(enough || all < 1_000, "{seen:?}");
}

/// Bytes that are printed in hexadecimal.
struct Hex(Vec<u8>);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.0)
    }
}

fn check(
    code: &[u8],
    place: u32,
    frame_register: u8,
    seed: u64,
    tally: &mut Seen,
) -> Result<(), TestCaseError> {
    let image = image(code, place, frame_register);
    let [main, chunk, other] = [(MAIN, 0x300), (CHUNK, 0x310), (OTHER, 0x320)]
        .map(|([begin, end], info)| [begin, end, info]);
    let table = bytes_of(&[main, chunk, other].concat());
    let mut map = CodeMap::new();
    map.insert(CodeRegion::heap(BASE, &image, FunctionTable::new(&table)).unwrap()).unwrap();

    let mut before = Registers { rip: BASE + u64::from(place), ..Registers::default() };
    for (register, n) in Gpr::ALL.into_iter().zip(0..) {
        before.set(register, stack_word(seed.wrapping_add(n)) & 0xFFFF_FFFF_FFF8);
    }
    let mut is_epilogue = [false; 2];
    for (rules, is_epilogue) in [Rules::Precise, Rules::CoreClr].into_iter().zip(&mut is_epilogue) {
        let mut after = before;
        let unwinder = Unwinder::new(&map).with_rules(rules);
        let step = unwinder.step(&mut after, Position::Interrupted, &Everywhere);
        let trust = step.map_err(|error| TestCaseError::fail(error.to_string()))?.trust;
        *is_epilogue = trust == Trust::EpilogueInstructions;
        prop_assert!(*is_epilogue || after == undo_prologue(&before, place), "{rules:?}");
        // Windows does not decode r12's SIB byte correctly.
        if rules == Rules::CoreClr && frame_register == Gpr::R12.number() {
            continue;
        }
        let second = mutants::Unwinder::new(&map);
        let second = if rules == Rules::CoreClr { second.like_windows() } else { second };
        let mut expected = before;
        let caller = second.step(&mut expected, Position::Interrupted, &Everywhere);
        prop_assert_eq!(caller, Ok(Position::ReturnAddress));
        prop_assert_eq!(after, expected, "{:?}", rules);
    }
    let [precise, windows] = is_epilogue;
    *(if windows { &mut tally.epilogues } else { &mut tally.others }) += 1;
    tally.precise_only += u32::from(precise && !windows);
    tally.windows_only += u32::from(windows && !precise);
    Ok(())
}

/// Returns the result of the unwind codes: rdi is pushed after 1 byte, and 0x20 bytes are allocated
/// after 8.
fn undo_prologue(before: &Registers, place: u32) -> Registers {
    let mut after = *before;
    let allocated = place >= MAIN[0] + u32::from(PROLOGUE);
    let top = before.rsp().wrapping_add(if allocated { 0x20 } else { 0 });
    after.set(Gpr::Rdi, Everywhere.read_u64(top).unwrap());
    after.rip = Everywhere.read_u64(top.wrapping_add(8)).unwrap();
    after.set(Gpr::Rsp, top.wrapping_add(16));
    after
}
