//! Texts as inputs of the fuzz targets that take them, and their mutants.

use super::*;
use clr_scenario::Scenario;
use clr_tests::fuzz;

/// A fuzz target, and its name.
type Target = (&'static str, fn(&[u8]));

/// The targets whose inputs can be texts.
const TARGETS: [Target; 5] = [
    ("fixture_text", fuzz::fixture_text),
    ("program", fuzz::program),
    ("scenario", fuzz::scenario),
    ("mixed_walk", fuzz::mixed_walk),
    ("schedule", fuzz::schedule),
];

/// Maximum length of a mutant in bytes.
const LIMIT: usize = 1 << 16;

/// Returns some texts of the gallery.
fn texts(step: usize) -> impl Iterator<Item = &'static [u8]> {
    clr_fixtures::gallery().iter().step_by(step).map(|text| text.bytes)
}

/// No text of the gallery, no mutant, and no crossing of two texts is a finding.
#[test]
fn targets_take_texts_and_their_mutants() {
    let all: Vec<_> = texts(11).collect();
    for (number, text) in all.iter().enumerate() {
        let other = all[(number * 5 + 2) % all.len()];
        let mutant = fuzz::mutant(text, LIMIT, number as u32).unwrap_or_default();
        let crossed = fuzz::crossed(text, other, LIMIT, number as u32);
        for input in [text.to_vec(), mutant, crossed] {
            // The output is shown only if a target fails.
            println!("--\n{}", String::from_utf8_lossy(&input));
            for (name, target) in TARGETS {
                println!("-- {name}");
                target(&input);
            }
        }
    }
}

/// Nearly all inputs that the mutators make are texts; of those that are mutated as bytes few are.
#[test]
fn mutants_are_texts() {
    let is_text =
        |bytes: &[u8]| str::from_utf8(bytes).is_ok_and(|text| Scenario::parse(text).is_ok());
    let all: Vec<_> = texts(13).collect();
    let mut choices = Seeded::new(3);
    let (mut mutants, mut crossed, mut bytes) = (0, 0, 0);
    for (number, text) in all.iter().enumerate() {
        let other = all[(number * 5 + 2) % all.len()];
        let seed = number as u32;
        mutants += usize::from(fuzz::mutant(text, LIMIT, seed).is_some_and(|it| is_text(&it)));
        crossed += usize::from(is_text(&fuzz::crossed(text, other, LIMIT, seed)));
        let mut changed = text.to_vec();
        let at = choices.below(changed.len() as u32) as usize;
        changed[at] ^= 1 << choices.below(7);
        bytes += usize::from(is_text(&changed));
    }
    let shares = [mutants, crossed, bytes].map(|count| count * 100 / all.len());
    println!("mutants, crossed, one bit of a byte changed: {shares:?} %");
    assert!(shares[0] >= 90 && shares[1] >= 90 && shares[2] < 60, "{shares:?}");
}

/// Bytes that are no text are left to libFuzzer, and a limit is kept.
#[test]
fn other_inputs_are_bytes() {
    let text = texts(1).next().unwrap();
    assert_eq!(fuzz::mutant(&[0xFF; 100], LIMIT, 1), None);
    assert_eq!(fuzz::mutant(text, 10, 1), None);
    for seed in 0..50 {
        assert!(fuzz::crossed(text, &[0xFF; 100], 40, seed).len() <= 40);
        assert!(fuzz::crossed(&[0xFF; 100], text, LIMIT, seed).len() <= 100 + text.len());
        assert!(fuzz::crossed(b"", b"", LIMIT, seed).is_empty());
    }
}
