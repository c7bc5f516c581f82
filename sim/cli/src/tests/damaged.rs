//! What `stability.md` promises of damaged input: an exit code, an error that names the file, bounds, and no panic.

use super::*;
use clr_explore::is_visible;
use std::time::{Duration, Instant};

/// The longest time of one command here: the promise is for a build for users, on a machine that does nothing else.
const TIME: Duration = Duration::from_mins(1);
/// The most that is printed, in bytes.
const OUTPUT: usize = 8 << 20;
/// Number of damaged inputs of each kind.
const COUNT: usize = 40;

/// A kind of input: a sample, the name that it has to have, and the commands that read it.
struct Sample {
    fixture: &'static str,
    name: &'static str,
    commands: &'static [&'static [&'static str]],
    is_compressed: bool,
}

const SAMPLES: [Sample; 7] = [
    Sample {
        fixture: "gallery/hazards/h-08-callback-takes-a-lock.kdl",
        name: "t.kdl",
        commands: &[
            &["fmt", "--check"],
            &["matrix"],
            &["list"],
            &["run", "--on", "net8-unix", "--timeout", "5"],
        ],
        is_compressed: false,
    },
    Sample {
        fixture: "gallery/seeds/c-039-stubs.kdl",
        name: "s.kdl",
        commands: &[
            &["run"],
            &["explain"],
            &["compare"],
            &["run", "--bless", "--dry-run"],
            &["show"],
        ],
        is_compressed: false,
    },
    Sample {
        fixture: "programs/tail_call.kdl",
        name: "p.kdl",
        commands: &[&["trace", "--limit", "50"], &["run", "--json"]],
        is_compressed: false,
    },
    Sample {
        fixture: "clr/linux31-callbacks-alloc-def.walks.jsonl.gz",
        name: "r.walks.jsonl.gz",
        commands: &[&["run"], &["import"], &["show", "--json"]],
        is_compressed: true,
    },
    Sample {
        fixture: "win64/vec/asm_raw.vec.gz",
        name: "asm_raw.vec.gz",
        commands: &[&["run"], &["show", "--case", "1"]],
        is_compressed: true,
    },
    Sample {
        fixture: "win64/img/gcc_O2.dll",
        name: "i.dll",
        commands: &[
            &["lint", "--jobs", "1"],
            &["show"],
            &["lint", "--summary", "--jobs", "1", "--json"],
        ],
        is_compressed: false,
    },
    Sample {
        fixture: "win64/img/gcc_O2.dll",
        name: "core",
        commands: &[&["inspect"], &["diagnose"]],
        is_compressed: false,
    },
];

/// Damages some bytes: changes, repeats or removes them, or cuts the rest off.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len().max(1));
        let end = (at + 1 + numbers.below(40)).min(bytes.len());
        match numbers.below(5) {
            0 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len().max(1));
                drop(bytes.splice(to..to, part.repeat(1 + numbers.below(20))));
            }
            _ => bytes.truncate(bytes.len() - numbers.below(bytes.len().max(1)) / 4),
        }
    }
}

#[test]
fn damaged_input_is_an_error_within_bounds() {
    let mut numbers = Numbers(0x5eed);
    for sample in &SAMPLES {
        let folder = Folder::new();
        folder.write("asm_raw.dll", fixture("win64/img/asm_raw.dll"));
        let whole = if sample.is_compressed {
            content(sample.fixture)
        } else {
            fixture(sample.fixture).to_vec()
        };
        let mut codes = BTreeMap::new();
        for number in 0..COUNT {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut numbers);
            if sample.is_compressed {
                // The readers are behind the checksums: most files are repaired.
                bytes = gzip(&bytes);
                if number % 4 == 0 {
                    damage(&mut bytes, &mut numbers);
                }
            }
            let path = folder.write(sample.name, &bytes);
            for command in sample.commands {
                let args = [&command[..1], &[&*path], &command[1..]].concat();
                let begin = Instant::now();
                let answer = clrsim(&args);
                let what = || format!("{args:?}, damaged input {number}: {}", answer.text());
                assert!(begin.elapsed() < TIME, "{}", what());
                assert!(answer.code <= 2, "{}", what());
                assert!(answer.out.len() + answer.err.len() < OUTPUT, "{args:?} {number}");
                let all = answer.out.chars().chain(answer.err.chars());
                let raw: Vec<_> =
                    all.filter(|c| !is_visible(*c) && !matches!(c, '\n' | '\t' | '\r')).collect();
                assert_eq!(raw, ['\0'; 0], "{}", what());
                if answer.code == 2 {
                    assert!(answer.err.contains(sample.name), "{}", what());
                }
                *codes.entry(answer.code).or_insert(0) += 1;
            }
        }
        assert!(codes.contains_key(&2), "{}: no input was damaged enough: {codes:?}", sample.name);
    }
}
