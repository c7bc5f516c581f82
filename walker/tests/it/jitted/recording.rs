//! Memory of real processes, from `fixtures/jitted`.

use clr_unwind::{Memory, Segment, Unreadable};

/// An entry of the runtime's own list of generated code.
#[allow(dead_code, reason = "two of the three crates with this module do not use all of it")]
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) start: u64,
    pub(crate) size: u32,
    pub(crate) name: String,
}

/// A recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) methods: Vec<Code>,
    /// Stub blocks, with their kinds.
    pub(crate) stubs: Vec<(u8, Code)>,
    /// Address of the contract descriptor; 0 if there is none.
    pub(crate) descriptor: u64,
    /// Runs of bytes by address, ascending, none adjacent to the one before.
    pub(crate) runs: Vec<(u64, Vec<u8>)>,
}

impl Recording {
    /// Parses the fixture with this name.
    pub(crate) fn new(name: &str) -> Self {
        let bytes = clr_fixtures::get(&format!("jitted/{name}.txt")).unwrap();
        let mut recording = Self::default();
        for line in str::from_utf8(bytes).unwrap().lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let hex = |at: usize| u64::from_str_radix(words[at], 16).unwrap();
            let code = |name: usize| {
                let size = u32::try_from(hex(2)).unwrap();
                Code { start: hex(1), size, name: words[name..].join(" ") }
            };
            match words[0] {
                "method" => recording.methods.push(code(3)),
                "stub" => recording.stubs.push((hex(3) as u8, code(4))),
                "descriptor" => recording.descriptor = hex(1),
                "zeros" => recording.add(hex(1), vec![0; hex(2) as usize]),
                "bytes" => recording.add(hex(1), bytes_of(words[2])),
                word => panic!("{word}"),
            }
        }
        recording
    }

    fn add(&mut self, address: u64, bytes: Vec<u8>) {
        match self.runs.last_mut() {
            Some((start, run)) if *start + run.len() as u64 == address => run.extend(bytes),
            _ => self.runs.push((address, bytes)),
        }
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

impl Memory for Recording {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let after = self.runs.partition_point(|(start, _)| *start <= address);
        let run = after.checked_sub(1).map(|at| &self.runs[at]);
        let (start, bytes) = run.map_or((0, &[][..]), |(start, bytes)| (*start, bytes));
        Segment::new(start, bytes).read(address, buffer)
    }
}
