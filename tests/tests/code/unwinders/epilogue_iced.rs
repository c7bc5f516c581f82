//! Epilogues that are recognized by their code, compared with a second implementation on a full
//! instruction decoder.

use clr_recording::vectors::fuzz::stack_word;
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::image::FunctionTable;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Position, Rules, Trust, Unwinder};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
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

fn stack_u64(address: u64) -> u64 {
    let bytes = std::array::from_fn(|n| stack_byte(address.wrapping_add(n as u64)));
    u64::from_le_bytes(bytes)
}

/// The last instruction of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Return,
    TailCall,
}

/// A decoding of the code at `place` (RVA).
struct Reading<'a> {
    image: &'a [u8],
    place: u32,
    frame_register: u8,
    precise: bool,
}

impl Reading<'_> {
    /// Returns the caller's registers if the instructions at rip are an epilogue.
    fn epilogue(&self, before: &Registers) -> Option<(Registers, Ending)> {
        let mut decoder = self.decoder(before.rip)?;
        let mut state = *before;
        let mut first = true;
        let mut jumps = 0;
        // An instruction that is part of an epilogue only if the whole frame is undone.
        let mut doubtful = false;
        loop {
            let instruction = decoder.decode();
            let start = (instruction.ip() - BASE) as usize;
            let bytes = &self.image[start..start + instruction.len()];
            let undone = self.is_undone_before(instruction.ip());
            if first && let Some(rsp) = self.adjusted_rsp(&instruction, bytes, &state) {
                state.set(Gpr::Rsp, rsp);
            } else if let Some(register) = popped_register(&instruction, bytes) {
                let value = stack_u64(state.rsp());
                // Windows stores first and then adds, also to rsp; the processor does not.
                state.set(register, value);
                state.set(Gpr::Rsp, state.rsp().wrapping_add(8));
            } else if self.precise && self.behind_prologue() && is_inert(&instruction) {
                doubtful |= instruction.code() != Code::VEX_Vzeroupper;
            } else if self.precise && self.behind_prologue() && is_long_pop(&instruction, bytes) {
                let register = Gpr::from_number(instruction.op0_register().number() as u8);
                state.set(register, stack_u64(state.rsp()));
                state.set(Gpr::Rsp, state.rsp().wrapping_add(8));
                doubtful = true;
            } else if doubtful && !undone {
                return None;
            } else if let Some(ending) = self.ending(&instruction, bytes, undone) {
                state.rip = stack_u64(state.rsp());
                state.set(Gpr::Rsp, state.rsp().wrapping_add(8));
                return Some((state, ending));
            } else if let Some(target) = self.followed(&instruction, bytes)
                && jumps < 15
            {
                jumps += 1;
                decoder = self.decoder(target)?;
            } else {
                return None;
            }
            first = false;
        }
    }

    fn decoder(&self, ip: u64) -> Option<Decoder<'_>> {
        let code = self.image.get((ip - BASE) as usize..)?;
        Some(Decoder::with_ip(64, code, ip, DecoderOptions::NONE))
    }

    /// Returns rsp after `add rsp, imm` or `lea rsp, [frame register + disp]` in their usual
    /// encodings.
    fn adjusted_rsp(
        &self,
        instruction: &Instruction,
        bytes: &[u8],
        state: &Registers,
    ) -> Option<u64> {
        if instruction.op0_register() != Register::RSP {
            return None;
        }
        match (instruction.code(), bytes) {
            (Code::Add_rm64_imm8, [0x48, 0x83, _, _]) => {
                Some(state.rsp().wrapping_add_signed(instruction.immediate8to64()))
            }
            (Code::Add_rm64_imm32, [0x48, 0x81, _, _, _, _, _]) => {
                Some(state.rsp().wrapping_add_signed(instruction.immediate32to64()))
            }
            (Code::Lea_r64_m, [0x48 | 0x49, 0x8D, _, sib, ..]) => {
                let base = instruction.memory_base();
                // Only r12 needs a SIB byte.
                let len = if base == Register::R12 { bytes.len() - 1 } else { bytes.len() };
                let usual = base.is_gpr64()
                    && self.frame_register != 0
                    && base.number() == usize::from(self.frame_register)
                    && (len == 4 || len == 7)
                    && (base != Register::R12 || *sib == 0x24);
                let base = state.get(Gpr::from_number(self.frame_register));
                usual.then(|| base.wrapping_add(instruction.memory_displacement64()))
            }
            _ => None,
        }
    }

    /// Returns true if the code before `end` is `add rsp, 20h; pop rdi` in one of their encodings,
    /// with instructions behind each that change nothing.
    fn is_undone_before(&self, end: u64) -> bool {
        let begin = if self.place < CHUNK[0] { MAIN[0] } else { CHUNK[0] };
        // The register that the header names is never set.
        self.frame_register == 0
            && (BASE + u64::from(begin)..end).any(|start| {
                let Some(mut decoder) = self.decoder(start) else { return false };
                let mut left = vec!["pop", "add"];
                while decoder.ip() < end {
                    let one = decoder.decode();
                    let at = (one.ip() - BASE) as usize;
                    let expected = match &self.image[at..at + one.len()] {
                        [0x48, 0x83, 0xC4, 0x20] | [0x48, 0x81, 0xC4, 0x20, 0, 0, 0] => "add",
                        [0x5F] | [0x8F, 0xC7] => "pop",
                        _ if is_inert(&one) && left.len() < 2 => continue,
                        _ => return false,
                    };
                    if left.pop() != Some(expected) {
                        return false;
                    }
                }
                decoder.ip() == end && left.is_empty()
            })
    }

    /// Returns the kind of ending if the instruction is a return or a tail call.
    fn ending(&self, instruction: &Instruction, bytes: &[u8], undone: bool) -> Option<Ending> {
        let plain = bytes.strip_prefix(&[0xF2]).unwrap_or(bytes);
        match (instruction.code(), plain) {
            (Code::Retnq, [0xC3] | [0xF3, 0xC3]) | (Code::Retnq_imm16, [0xC2, ..]) => {
                Some(Ending::Return)
            }
            (Code::Retnq, [0x40..=0x4F, 0xC3]) if plain.len() == bytes.len() => {
                (self.precise && self.behind_prologue()).then_some(Ending::Return)
            }
            (Code::Jmp_rm64, [0xFF, 0x25, ..] | [0x48..=0x4F, 0xFF, ..]) => Some(Ending::TailCall),
            (Code::Jmp_rm64, [0xFF, ..] | [0x40..=0x47, 0xFF, ..]) => {
                (self.precise && self.behind_prologue() && undone).then_some(Ending::TailCall)
            }
            _ => {
                let target = jump_target(instruction, plain)?.wrapping_sub(BASE);
                let within = |[begin, end]: [u32; 2]| (begin.into()..end.into()).contains(&target);
                let own = within(MAIN) || within(CHUNK);
                let inside = within(if self.place < CHUNK[0] { MAIN } else { CHUNK });
                // At the first instruction of a function, no frame has to be unwound; for Windows,
                // the same holds anywhere in another function. Behind the release of the whole frame
                // it holds anywhere.
                let leaves = target == u64::from(MAIN[0])
                    || !own
                        && (!self.precise || !within(OTHER) || target < u64::from(OTHER[0]) + 4)
                    || !inside && self.precise && self.behind_prologue() && undone;
                leaves.then_some(Ending::TailCall)
            }
        }
    }

    /// Returns the target of a jump inside the function, which precise rules follow.
    fn followed(&self, instruction: &Instruction, bytes: &[u8]) -> Option<u64> {
        let target = jump_target(instruction, bytes.strip_prefix(&[0xF2]).unwrap_or(bytes))?;
        let [begin, end] = if self.place < CHUNK[0] { MAIN } else { CHUNK };
        let inside = (begin.into()..end.into()).contains(&target.wrapping_sub(BASE));
        (self.precise && self.behind_prologue() && inside).then_some(target)
    }

    fn behind_prologue(&self) -> bool {
        self.place >= MAIN[0] + u32::from(PROLOGUE)
    }
}

/// Returns the target of a `jmp` to a constant address.
fn jump_target(instruction: &Instruction, bytes: &[u8]) -> Option<u64> {
    let jump = matches!(
        (instruction.code(), bytes),
        (Code::Jmp_rel8_64, [0xEB, ..]) | (Code::Jmp_rel32_64, [0xE9, ..])
    );
    jump.then(|| instruction.near_branch_target())
}

/// Returns true if the instruction is a usual form of `nop`, or `vzeroupper`.
fn is_inert(instruction: &Instruction) -> bool {
    match (instruction.code(), instruction.len()) {
        (Code::Nopd, 1) | (Code::Nopw, 2) => true,
        (Code::VEX_Vzeroupper, len) => len == 3,
        (Code::Nop_rm32, len) => {
            let base = instruction.memory_base() == Register::RAX;
            let indexed = instruction.memory_index() == Register::RAX
                && instruction.memory_index_scale() == 1;
            let plain = !instruction.has_rep_prefix() && !instruction.has_repne_prefix();
            let disp = instruction.memory_displacement64() == 0
                && instruction.memory_segment() == Register::DS;
            let none = instruction.memory_index() == Register::None;
            let usual = match len {
                3 | 4 | 7 => none,
                5 | 8 => indexed,
                _ => false,
            };
            plain && base && disp && usual
        }
        _ => false,
    }
}

/// Returns true for a `pop` of the form that has any operand, with no prefix but REX.
fn is_long_pop(instruction: &Instruction, bytes: &[u8]) -> bool {
    instruction.code() == Code::Pop_rm64
        && instruction.op0_register() != Register::None
        && matches!(bytes, [0x8F, _] | [0x40..=0x4F, 0x8F, _])
}

/// Returns the register of a `pop` with no prefix but REX.
fn popped_register(instruction: &Instruction, bytes: &[u8]) -> Option<Gpr> {
    let usual = matches!(bytes, [_] | [0x40..=0x4F, _]) && instruction.code() == Code::Pop_r64;
    usual.then(|| Gpr::from_number(instruction.op0_register().number() as u8))
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
    returns: u32,
    tail_calls: u32,
    others: u32,
    /// Epilogues that only precise rules recognize, and those that only Windows' rules do.
    precise_only: u32,
    windows_only: u32,
}

#[test]
fn a_decoder_sees_the_same_epilogues() {
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
    let all = seen.returns + seen.tail_calls + seen.others;
    let enough = seen.returns > all / 8
        && seen.tail_calls > all / 20
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
    let read = |rules: Rules| {
        let precise = rules == Rules::Precise;
        Reading { image: &image, place, frame_register, precise }.epilogue(&before)
    };
    for rules in [Rules::Precise, Rules::CoreClr] {
        // Windows does not decode r12's SIB byte correctly.
        if rules == Rules::CoreClr && frame_register == Gpr::R12.number() {
            continue;
        }
        let mut after = before;
        let unwinder = Unwinder::new(&map).with_rules(rules);
        let step = unwinder.step(&mut after, Position::Interrupted, &Everywhere);
        let trust = step.map_err(|error| TestCaseError::fail(error.to_string()))?.trust;
        let expected = read(rules);
        let is_epilogue = trust == Trust::EpilogueInstructions;
        prop_assert_eq!(is_epilogue, expected.is_some(), "{:?}", rules);
        let expected = expected.map_or_else(|| undo_prologue(&before, place), |(after, _)| after);
        prop_assert_eq!(after, expected, "{:?}", rules);
    }
    let (precise, windows) = (read(Rules::Precise), read(Rules::CoreClr));
    match windows {
        Some((_, Ending::Return)) => tally.returns += 1,
        Some((_, Ending::TailCall)) => tally.tail_calls += 1,
        None => tally.others += 1,
    }
    tally.precise_only += u32::from(precise.is_some() && windows.is_none());
    tally.windows_only += u32::from(precise.is_none() && windows.is_some());
    Ok(())
}

/// Returns the result of the unwind codes: rdi is pushed after 1 byte, and 0x20 bytes are allocated
/// after 8.
fn undo_prologue(before: &Registers, place: u32) -> Registers {
    let mut after = *before;
    let allocated = place >= MAIN[0] + u32::from(PROLOGUE);
    let top = before.rsp().wrapping_add(if allocated { 0x20 } else { 0 });
    after.set(Gpr::Rdi, stack_u64(top));
    after.rip = stack_u64(top.wrapping_add(8));
    after.set(Gpr::Rsp, top.wrapping_add(16));
    after
}
