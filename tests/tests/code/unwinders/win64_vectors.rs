//! Replays of every recorded unwind of the fixtures.

use super::*;
use clr_recording::vectors::replay::{Quantity, VectorReplay, VectorVerdict, run_fuzz_record};

/// An image, with its vectors decompressed.
struct Recording {
    name: &'static str,
    image: PeImage<'static>,
    vectors: Vec<u8>,
}

impl Recording {
    fn new(name: &'static str) -> Self {
        let image = clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap();
        Self {
            name,
            image: PeImage::parse(image).unwrap(),
            vectors: unpacked(&format!("win64/vec/{name}.vec.gz")),
        }
    }

    fn file(&self) -> VectorFile<'_> {
        VectorFile::parse(&self.vectors).unwrap()
    }

    fn replay(&self, rules: Rules) -> VectorReplay<'static> {
        VectorReplay::new(&self.image, self.file().image_base(), rules).unwrap()
    }
}

fn unpacked(name: &str) -> Vec<u8> {
    decompress(clr_fixtures::get(name).unwrap(), DECOMPRESSED_LIMIT).unwrap()
}

const NAMES: [&str; 5] = ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"];

/// Number of replays that passed or were skipped. A failure panics.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, verdict: &VectorVerdict, what: impl std::fmt::Display) {
        match verdict {
            VectorVerdict::Passed => self.passed += 1,
            VectorVerdict::Skipped => self.skipped += 1,
            VectorVerdict::Failed(failure) => {
                let differences = failure
                    .got
                    .as_ref()
                    .map(|(registers, step)| failure.expected.differences(registers, step));
                panic!("{what}, depth {}: {differences:x?}", failure.depth);
            }
        }
    }
}

fn replay(recording: &Recording, rules: Rules) -> Counts {
    let replay = recording.replay(rules);
    let mut counts = Counts::default();
    for (n, vector) in recording.file().iter().enumerate() {
        let vector = vector.unwrap();
        let verdict = replay.run(&vector).unwrap();
        let (name, rva, kind) = (recording.name, vector.rva, vector.kind);
        counts.add(&verdict, format_args!("{name} {n}, {kind:?} at {rva:#x}"));
    }
    counts
}

#[test]
fn precise_rules_find_every_caller_that_can_be_found() {
    // Every gold vector, with all of its callers.
    for (name, passed, skipped) in [
        ("asm_raw", 10_100, 200),
        ("clang_O2", 4_275, 99),
        ("clang_O2_lld", 4_275, 99),
        ("cpp_gcc_O2", 1_051, 29),
        ("gcc_O2", 3_222, 104),
    ] {
        let counts = replay(&Recording::new(name), Rules::Precise);
        assert_eq!(counts, Counts { passed, skipped }, "{name}");
    }
}

#[test]
fn the_rules_of_windows_answer_as_coreclr_does() {
    for name in NAMES {
        let recording = Recording::new(name);
        let fine = |vector: &Vector<'_>| vector.coreclr.status == UnwindStatus::Fine;
        let passed =
            recording.file().iter().filter(|vector| fine(vector.as_ref().unwrap())).count();
        let skipped = recording.file().len() - passed;
        for rules in [Rules::CoreClr, Rules::CoreClrUnix] {
            let counts = replay(&recording, rules);
            assert_eq!(counts, Counts { passed, skipped }, "{name}");
        }
        assert!(passed > 1_000 && skipped < 50, "{name}: {passed}, {skipped}");
    }
}

#[test]
fn whole_stacks_are_walked() {
    // Vectors with a chain, and callers in all of them together.
    let expected = [(36, 75), (211, 624), (211, 624), (44, 115), (149, 498)];
    let counts = NAMES.map(|name| {
        let recording = Recording::new(name);
        let replay = recording.replay(Rules::Precise);
        let vectors = recording.file().iter().map(Result::unwrap);
        let chained: Vec<_> =
            vectors.filter(|vector| vector.flags.is_gold() && !vector.chain.is_empty()).collect();
        let callers: usize = chained.iter().map(|vector| vector.chain.len()).sum();
        // A changed value of the last caller must be refused, which shows that the caller is
        // compared.
        for mut vector in chained.iter().cloned() {
            assert_eq!(replay.run(&vector), Ok(VectorVerdict::Passed));
            let depth = vector.chain.len() as u32;
            vector.chain.last_mut().unwrap().nonvolatile[7] ^= 1;
            match replay.run(&vector) {
                Ok(VectorVerdict::Failed(failure)) => assert_eq!(failure.depth, depth),
                other => panic!("{name} at {:#x}: {other:?}", vector.rva),
            }
        }
        (chained.len(), callers)
    });
    assert_eq!(counts, expected);
}

#[test]
fn a_wrong_expected_caller_is_noticed() {
    let recording = Recording::new("gcc_O2");
    let replay = recording.replay(Rules::Precise);
    let vector = recording.file().iter().map(Result::unwrap).find(|v| v.flags.is_gold()).unwrap();
    let refused = |patch: &dyn Fn(&mut Vector<'_>), rules: Rules| {
        let mut vector = vector.clone();
        patch(&mut vector);
        let failed = match rules {
            Rules::Precise => replay.run(&vector),
            rules => recording.replay(rules).run(&vector),
        };
        let Ok(VectorVerdict::Failed(failure)) = failed else { panic!("{failed:?}") };
        let (registers, step) = failure.got.unwrap();
        let differences = failure.expected.differences(&registers, &step);
        assert_eq!(differences.len(), 1, "{differences:?}");
        differences[0].of
    };
    assert_eq!(refused(&|v| v.truth.rip ^= 1, Rules::Precise), Quantity::Rip);
    assert_eq!(refused(&|v| v.coreclr.rip ^= 1, Rules::CoreClr), Quantity::Rip);
    let frame = refused(&|v| v.coreclr.frame ^= 1, Rules::CoreClr);
    assert_eq!(frame, Quantity::EstablisherFrame);
    assert_eq!(refused(&|v| v.coreclr.handler = 1, Rules::CoreClr), Quantity::Handler);
    for register in Gpr::NONVOLATILE.into_iter().chain([Gpr::Rsp]) {
        let wrong = |vector: &mut Vector<'_>| {
            let right = vector.truth.apply(&vector.registers).get(register);
            vector.truth.gpr_mask |= 1 << register.number();
            vector.truth.gpr[usize::from(register.number())] = !right;
        };
        assert_eq!(refused(&wrong, Rules::Precise), Quantity::Gpr(register));
    }
    for n in 6..=15 {
        let wrong = |vector: &mut Vector<'_>| {
            let right = vector.truth.apply(&vector.registers).xmm[n - 6];
            vector.truth.xmm_mask |= 1 << (n - 6);
            vector.truth.xmm[n - 6] = !right;
        };
        assert_eq!(refused(&wrong, Rules::Precise), Quantity::Xmm(n as u8));
    }
}

#[test]
fn chkstk_is_unwound_although_no_windows_unwinder_can() {
    // Vectors in `___chkstk_ms`, and those among them that are not gold.
    let expected = [(120, 104), (115, 99), (115, 99), (35, 29), (120, 104)];
    let counts = NAMES.map(|name| {
        let recording = Recording::new(name);
        let replay = recording.replay(Rules::Precise);
        let (mut known, mut not_gold) = (0, 0);
        let vectors = recording.file().iter().map(Result::unwrap);
        for vector in vectors.filter(|vector| vector.kind == VectorKind::Leaf) {
            let memory = Segments::new(vector.segments()).unwrap();
            let mut registers = vector.registers;
            let step = Unwinder::new(replay.code_map())
                .step(&mut registers, Position::Interrupted, &memory)
                .unwrap();
            if step.trust != Trust::KnownCode {
                // The fixtures have no other leaf that pushes.
                assert!(vector.flags.is_gold(), "{name} at {:#x}", vector.rva);
                continue;
            }
            let truth = vector.truth.apply(&vector.registers);
            assert_eq!((registers.rip, registers.rsp()), (truth.rip, truth.rsp()));
            for register in Gpr::NONVOLATILE {
                assert_eq!(registers.get(register), truth.get(register));
            }
            assert_eq!(registers.xmm, truth.xmm);
            known += 1;
            not_gold += usize::from(!vector.flags.is_gold());
        }
        (known, not_gold)
    });
    assert_eq!(counts, expected);
}

#[test]
fn fuzz_records_are_answered_as_others_did() {
    let bytes = unpacked("win64/diff/fuzz.bin.gz");
    let file = FuzzFile::parse(&bytes).unwrap();
    let known = |record: &FuzzRecord<'_>, rules| {
        let answered = record.coreclr.status == UnwindStatus::Fine;
        answered && (rules != Rules::Precise || record.agree)
    };
    for rules in [Rules::Precise, Rules::CoreClr] {
        let mut counts = Counts::default();
        for (n, record) in file.iter().enumerate() {
            let record = record.unwrap();
            let verdict = run_fuzz_record(&record, rules).unwrap();
            assert_eq!(verdict != VectorVerdict::Skipped, known(&record, rules), "record {n}");
            counts.add(&verdict, format_args!("{rules:?}, record {n}, {:?}", record.kind));
        }
        let expected = match rules {
            Rules::Precise => Counts { passed: 286, skipped: 123 },
            _ => Counts { passed: 357, skipped: 52 },
        };
        assert_eq!(counts, expected, "{rules:?}");
    }
}
