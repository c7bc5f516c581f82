//! Tests of mutants.

use super::*;

/// Returns every sixth text of the gallery.
fn texts() -> Vec<Parent> {
    let texts = clr_fixtures::gallery().iter().step_by(6);
    texts.map(|text| Parent::of_text(str::from_utf8(text.bytes).unwrap()).unwrap()).collect()
}

/// Changes bytes as libFuzzer does: values, removed and repeated parts.
fn changed_bytes(text: &str, choices: &mut Seeded) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..choices.between(1, 3) {
        let at = choices.below(bytes.len() as u32) as usize;
        let end = bytes.len().min(at + choices.between(1, 8) as usize);
        match choices.below(4) {
            0 => bytes[at] = choices.below(256) as u8,
            1 => bytes[at] ^= 1 << choices.below(8),
            2 => drop(bytes.drain(at..end)),
            _ => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// Most mutants are scenarios at the first try; of texts whose bytes were changed few are. With
/// several tries nearly all of them are.
#[test]
fn mutants_are_scenarios() {
    let texts = texts();
    let mut choices = Seeded::new(1);
    let (mut all, mut of_bytes, mut once, mut crossed, mut tried) = (0, 0, 0, 0, 0);
    for (index, text) in texts.iter().enumerate() {
        let other = &texts[(index * 7 + 3) % texts.len()];
        let original = text.scenario().to_string();
        for _ in 0..4 {
            all += 1;
            let bytes = changed_bytes(&original, &mut choices);
            let changed =
                String::from_utf8(bytes).ok().and_then(|text| Scenario::parse(&text).ok());
            of_bytes += u32::from(changed.is_some_and(|changed| changed != *text.scenario()));
            once += u32::from(text.changed(None, &mut choices).is_some());
            crossed += u32::from(text.changed(Some(other), &mut choices).is_some());
            if let Some(mutant) = text.mutant(None, &mut choices) {
                tried += 1;
                let printed = mutant.scenario().to_string();
                assert!(Scenario::parse(&printed).as_ref() == Ok(mutant.scenario()), "{printed}");
                assert!(mutant.scenario() != text.scenario());
                assert_eq!(mutant.scenario().about, text.scenario().about);
            }
        }
    }
    let shares = [of_bytes, once, crossed, tried].map(|count| count * 100 / all);
    println!("valid of {all}: {shares:?} %");
    assert!(all > 300 && shares[0] < 40, "{shares:?}");
    assert!(shares[1] >= 55 && shares[2] >= 40 && shares[3] >= 97, "{shares:?}");
}

/// The same choices make the same mutant, and other ones another.
#[test]
fn mutants_depend_on_the_choices_alone() {
    let texts = texts();
    let text = texts.iter().find(|text| text.scenario().profiler.is_some()).unwrap();
    let mutant = |seed| {
        let mutant = text.mutant(Some(&texts[0]), &mut Seeded::new(seed));
        mutant.map(|mutant| mutant.scenario().to_string())
    };
    let mutants: BTreeSet<_> = (0..24).filter_map(mutant).collect();
    assert!(mutants.len() >= 18, "{}", mutants.len());
    assert_eq!(mutant(7), mutant(7));
}

/// Mutants of an interleaving change each of its parts: the profiler, the program, the search and the
/// schedule.
#[test]
fn each_part_of_a_history_is_changed() {
    let text = Parent::of_text(
        "function \"App.Main\" { body { work 3 } }
        profiler { lock a b; thread t { lock a { lock b } }; thread u { lock b { lock a } } }
        explore seed=3 { expect on=net10-unix { deadlock; replay \"clr1:3b1c\" } }",
    )
    .unwrap();
    let replay = |text: &Scenario| {
        let expect = text.explore.first().and_then(|explore| explore.expect.first());
        expect.and_then(|expect| expect.replay.clone())
    };
    let mut changed = [0; 4];
    let mut choices = Seeded::new(2);
    for _ in 0..300 {
        // A second expectation for the same runtimes makes a text that cannot be read.
        let Some(mutant) = text.mutant(None, &mut choices) else { continue };
        let (mutant, text) = (mutant.scenario(), text.scenario());
        changed[0] += u32::from(mutant.profiler != text.profiler);
        changed[1] += u32::from(mutant.program != text.program);
        changed[2] += u32::from(mutant.explore != text.explore);
        changed[3] += u32::from(replay(mutant).is_some() && replay(mutant) != replay(text));
    }
    assert!(changed.iter().all(|count| *count > 5), "{changed:?}");
}

/// No mutant has deeper blocks than a text may have, though some changes put a block into its like.
#[test]
fn mutants_of_deep_texts_can_be_read() {
    let deep = |depth| {
        let actions = format!("{}{}", "repeat 1 { ".repeat(depth), "}; ".repeat(depth));
        Parent::of_text(&format!("function Main; profiler {{ thread t {{ {actions} }} }}"))
    };
    let deepest = (1..20).map(deep).take_while(Option::is_some).last().unwrap().unwrap();
    let mut choices = Seeded::new(3);
    for _ in 0..500 {
        let Some(mutant) = deepest.mutant(Some(&deepest), &mut choices) else { continue };
        let printed = mutant.scenario().to_string();
        assert!(Scenario::parse(&printed).as_ref() == Ok(mutant.scenario()), "{printed}");
    }
}
