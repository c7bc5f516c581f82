//! Results of a real processor in a file, for hosts that cannot step one.
//!
//! The file is compressed with gzip. All numbers are little-endian, and nothing is aligned. It
//! begins with the 8 bytes `CLRHCPU1`, u32 number of instructions, u32 number of sequences. Then
//! the instructions:
//!
//! | Type | Field |
//! | --- | --- |
//! | u32 | the address of the instruction, always below 4 GiB |
//! | u8, bytes | its length and its bytes |
//! | u8 | number of cases, which follow |
//!
//! A case:
//!
//! | Type | Field |
//! | --- | --- |
//! | u32 | seed of the background |
//! | changes | the start, from the background |
//! | u8 | outcome: 0 done, 1 #PF, 2 #GP or #SS, 3 #DE, 4 #UD |
//! | changes | the end, from the start |
//!
//! The background is computed from the seed by [`background`](crate::machine::host_cpu::samples::background): random
//! registers, flags and 512 bytes of memory. Changes are the differences from an earlier state:
//!
//! | Type | Field |
//! | --- | --- |
//! | u16 | mask of the integer registers: bit n is the register with encoding n |
//! | u16 | mask of the vector registers |
//! | u64 … | the integer registers in the mask, lowest bit first |
//! | u128 … | the vector registers in the mask |
//! | u64 | rip |
//! | u16 | CF, PF, AF, ZF, SF, DF and OF in their places in rflags; other bits are 0 |
//! | u16 | mxcsr |
//! | u8 | number of runs of bytes in memory, each u16 offset, u8 length, bytes |
//!
//! A sequence:
//!
//! | Type | Field |
//! | --- | --- |
//! | u16, bytes | length of the code and the code, which begins at `CODE` |
//! | u32, changes | as of a case |
//! | u16 | number of steps |
//! | steps | each u16 flags and u32 [`digest`] of the other registers, after the step |
//! | u8, changes | the outcome of the instruction after the last step (0 if there is none); the end |
//!
//! The ignored test `record` rewrites the file, from the processor that runs the test.

use super::*;
use crate::machine::host_cpu::check::check;
use crate::machine::host_cpu::samples::background;
use clr_recording::vectors::{DECOMPRESSED_LIMIT, decompress};

pub(crate) const NAME: &str = "host_cpu/results.gz";
pub(crate) const MAGIC: &[u8; 8] = b"CLRHCPU1";
pub(crate) const OUTCOMES: [Outcome; 5] =
    [Outcome::Done, Outcome::Fault, Outcome::Protection, Outcome::Divide, Outcome::Invalid];

/// Returns a hash of rip, the integer registers and the vector registers: FNV-1a of them in this
/// order, each with its lowest byte first.
pub(crate) fn digest(state: &State) -> u32 {
    let integers = core::iter::once(state.rip).chain(state.gpr).flat_map(u64::to_le_bytes);
    let vectors = state.xmm.into_iter().flat_map(u128::to_le_bytes);
    integers
        .chain(vectors)
        .fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().unwrap()
    }

    fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn outcome(&mut self) -> Outcome {
        OUTCOMES[usize::from(self.u8())]
    }

    fn changes(&mut self, from: &Start) -> Start {
        let mut to = from.clone();
        let (integers, vectors) = (self.u16(), self.u16());
        for (n, value) in to.state.gpr.iter_mut().enumerate() {
            if integers >> n & 1 != 0 {
                *value = u64::from_le_bytes(self.array());
            }
        }
        for (n, value) in to.state.xmm.iter_mut().enumerate() {
            if vectors >> n & 1 != 0 {
                *value = u128::from_le_bytes(self.array());
            }
        }
        to.state.rip = u64::from_le_bytes(self.array());
        to.state.flags = self.u16().into();
        to.state.mxcsr = self.u16().into();
        for _ in 0..self.u8() {
            let at = usize::from(self.u16());
            let len = usize::from(self.u8());
            to.window[at..at + len].copy_from_slice(self.bytes(len));
        }
        to
    }
}

/// Executes a recorded sequence, and compares each step.
fn check_sequence(machine: &mut Machine, reader: &mut Reader<'_>) -> Result<usize, String> {
    let len = reader.u16();
    let code = reader.bytes(len.into());
    let seed = reader.u32();
    let start = reader.changes(&background(seed.into(), CODE));
    let steps: Vec<(u16, u32)> = (0..reader.u16()).map(|_| (reader.u16(), reader.u32())).collect();
    let outcome = reader.outcome();
    let end = reader.changes(&start);
    machine.write(CODE, code).unwrap();
    machine.write(WINDOW, &start.window).unwrap();
    start.state.load_into(machine);
    for (n, (flags, hash)) in steps.iter().enumerate() {
        let before = State::of(machine);
        let at = (before.rip - CODE) as usize;
        let instruction = Encoding::decode(before.rip, &code[at..]).unwrap().instruction;
        let step = machine.step();
        let after = State::of(machine);
        let undefined = undefined_flags(&instruction, &before);
        let wrong = (after.flags ^ u64::from(*flags)) & !undefined;
        if step.is_err() || wrong != 0 || digest(&after) != *hash {
            return Err(format!(
                "step {n}, {instruction}: {step:?}, flags {wrong:#x}\n{before:?}{after:?}"
            ));
        }
        machine.cpu_mut().set_rflags((*flags).into());
    }
    let found = if outcome == Outcome::Done { None } else { Some(machine.step()) };
    let found = found.map_or(Some(Outcome::Done), Outcome::of);
    let after = State { flags: end.state.flags & FLAGS, ..State::of(machine) };
    if found != Some(outcome) || after != end.state || window(machine) != end.window {
        let differences = after.differences(&end.state);
        return Err(format!(
            "{found:?}, expected {outcome:?}; or different memory; or\n{differences}"
        ));
    }
    Ok(steps.len())
}

#[test]
fn recorded_results_are_found_again() {
    let content = clr_fixtures::get(NAME).unwrap();
    let content = decompress(content, DECOMPRESSED_LIMIT).unwrap();
    let mut reader = Reader(&content);
    assert_eq!(reader.bytes(8), MAGIC);
    let (instructions, sequences) = (reader.u32(), reader.u32());
    let mut machine = machine();
    let mut complaints = Complaints::default();
    let mut cases = 0;
    for _ in 0..instructions {
        let at = reader.u32();
        let len = reader.u8();
        let encoding = Encoding::decode(at.into(), reader.bytes(len.into())).unwrap();
        machine.write(encoding.at, &encoding.bytes).unwrap();
        for _ in 0..reader.u8() {
            let seed = reader.u32();
            let start = reader.changes(&background(seed.into(), encoding.at));
            let outcome = reader.outcome();
            let end = reader.changes(&start);
            let truth = Truth { outcome, state: end.state, window: end.window };
            complaints.add(check(&mut machine, &encoding, &start, &truth));
            cases += 1;
        }
    }
    let mut steps = 0;
    for _ in 0..sequences {
        let result = check_sequence(&mut machine, &mut reader);
        steps += result.as_ref().copied().unwrap_or(0);
        complaints.add(result.map(|_| ()));
    }
    assert!(reader.0.is_empty());
    println!("{instructions} instructions, {cases} cases, {sequences} sequences, {steps} steps");
    complaints.settle();
    assert!(cases > 5_000 && steps > 1_000, "{cases} cases, {steps} steps");
}
