//! Recording of the results file.

use super::*;
use crate::machine::host_cpu::external::forms::{execute, seed};
use crate::machine::host_cpu::external::host::Host;
use crate::machine::host_cpu::external::sequences::{STEPS, start};
use crate::machine::host_cpu::recorded::{MAGIC, NAME, OUTCOMES, digest};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::Path;

/// Number of recorded encodings of a form, of cases of each, and of sequences.
const ENCODINGS: usize = 5;
const CASES: u8 = 3;
const SEQUENCES: u64 = 100;

/// The content of the file.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn outcome(&mut self, outcome: Outcome) {
        let number = OUTCOMES.iter().position(|other| *other == outcome).unwrap();
        self.0.push(number as u8);
    }

    /// Writes the changes that turn `from` into `to`.
    fn changes(&mut self, from: (&State, &Window), to: (&State, &Window)) {
        let changed = |n: &usize| from.0.gpr[*n] != to.0.gpr[*n];
        let integers: Vec<usize> = (0..16).filter(changed).collect();
        let changed = |n: &usize| from.0.xmm[*n] != to.0.xmm[*n];
        let vectors: Vec<usize> = (0..16).filter(changed).collect();
        let mask = |numbers: &[usize]| numbers.iter().fold(0_u16, |mask, n| mask | 1 << n);
        self.0.extend(mask(&integers).to_le_bytes());
        self.0.extend(mask(&vectors).to_le_bytes());
        self.0.extend(integers.iter().flat_map(|n| to.0.gpr[*n].to_le_bytes()));
        self.0.extend(vectors.iter().flat_map(|n| to.0.xmm[*n].to_le_bytes()));
        self.0.extend(to.0.rip.to_le_bytes());
        self.0.extend((to.0.flags as u16).to_le_bytes());
        self.0.extend((to.0.mxcsr as u16).to_le_bytes());
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in (0..WINDOW_LEN).filter(|at| from.1[*at] != to.1[*at]) {
            match runs.last_mut() {
                // A few unchanged bytes between two runs take less space than another run.
                Some((start, end)) if at < *end + 3 && at - *start < 0xFF => *end = at + 1,
                _ => runs.push((at, at + 1)),
            }
        }
        self.0.push(runs.len() as u8);
        for (start, end) in runs {
            self.0.extend((start as u16).to_le_bytes());
            self.0.push((end - start) as u8);
            self.0.extend(&to.1[start..end]);
        }
    }
}

fn record_instruction(host: &mut Host, encoding: &Encoding, seeds: &[u32], writer: &mut Writer) {
    host.write(encoding.at, &encoding.bytes);
    writer.0.extend((encoding.at as u32).to_le_bytes());
    writer.0.push(encoding.bytes.len() as u8);
    writer.0.extend(&encoding.bytes);
    writer.0.push(seeds.len() as u8);
    for seed in seeds {
        let start = sample(encoding, (*seed).into());
        let ground = background((*seed).into(), encoding.at);
        let truth = execute(host, encoding, &start);
        writer.0.extend(seed.to_le_bytes());
        let from = (&start.state, &start.window);
        writer.changes((&ground.state, &ground.window), from);
        writer.outcome(truth.outcome);
        writer.changes(from, (&truth.state, &truth.window));
    }
}

fn record_sequence(host: &mut Host, program: &Program, seed: u32, writer: &mut Writer) {
    let start: Start = start(seed.into());
    host.write(CODE, &program.code);
    host.write(WINDOW, &start.window);
    host.set(&start.state);
    let mut steps: Vec<(u16, u32)> = Vec::new();
    let mut outcome = Outcome::Done;
    while host.state().rip != program.end && steps.len() < STEPS && outcome == Outcome::Done {
        outcome = host.step();
        if outcome == Outcome::Done {
            let state = host.state();
            steps.push((state.flags as u16, digest(&state)));
        }
    }
    let mut window = [0; WINDOW_LEN];
    host.read(WINDOW, &mut window);
    writer.0.extend((program.code.len() as u16).to_le_bytes());
    writer.0.extend(&program.code);
    writer.0.extend(seed.to_le_bytes());
    let ground = background(seed.into(), CODE);
    writer.changes((&ground.state, &ground.window), (&start.state, &start.window));
    writer.0.extend((steps.len() as u16).to_le_bytes());
    for (flags, hash) in steps {
        writer.0.extend(flags.to_le_bytes());
        writer.0.extend(hash.to_le_bytes());
    }
    writer.outcome(outcome);
    writer.changes((&start.state, &start.window), (&host.state(), &window));
}

/// Rewrites the results.
pub(crate) fn record() {
    let mut host = host();
    let mut machine = machine();
    let mut writer = Writer::default();
    let mut instructions = 0_u32;
    for code in Code::values().filter(|code| is_supported(*code)) {
        let mut built: Vec<(usize, Encoding)> = encodings(code).into_iter().enumerate().collect();
        built.retain(|(_, encoding)| is_known(&mut machine, encoding, &sample(encoding, 0)));
        // Encodings are chosen evenly among all of them.
        let taken = ENCODINGS.min(built.len());
        for (n, encoding) in (0..taken).map(|k| &built[k * built.len() / taken]) {
            let seeds: Vec<u32> = (0..u32::from(CASES))
                .map(|k| seed(code, *n, k))
                .filter(|seed| is_known(&mut machine, encoding, &sample(encoding, (*seed).into())))
                .collect();
            record_instruction(&mut host, encoding, &seeds, &mut writer);
            instructions += 1;
        }
    }
    let supply = Supply::new(&mut machine);
    for seed in 0..SEQUENCES {
        let program = supply.program(&mut Random::new(!seed));
        record_sequence(&mut host, &program, seed as u32, &mut writer);
    }
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    file.write_all(MAGIC).unwrap();
    file.write_all(&instructions.to_le_bytes()).unwrap();
    file.write_all(&(SEQUENCES as u32).to_le_bytes()).unwrap();
    file.write_all(&writer.0).unwrap();
    let file = file.finish().unwrap();
    println!("{instructions} instructions, {} bytes, {}", writer.0.len(), file.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(NAME);
    std::fs::write(path, file).unwrap();
}
