//! Random functions of UNWIND_INFO version 3: the walker and the second reader agree on them.

use super::*;
use clr_tests::fragments::{self, Image};
use clr_tests::mutants;

/// Returns numbers below N, the same in each run.
fn random() -> impl FnMut(usize) -> usize {
    let mut seed = clr_tests::seed() << 40;
    move |below| {
        seed += 8;
        (stack_word(seed) >> 32) as usize % below
    }
}

fn registers(random: &mut impl FnMut(usize) -> usize) -> Registers {
    let mut registers = Registers::default();
    for register in Gpr::ALL {
        registers.set(register, STACK.start + 8 * random(0x1_0000) as u64);
    }
    registers
}

#[test]
fn the_second_reader_agrees_with_the_walker() {
    let mut random = random();
    let mut found = BTreeMap::<_, u32>::new();
    for case in 0..cases(1500) {
        let image = fragments::image(&mut random);
        let Image { bytes, table } = &image;
        let mut map = CodeMap::new();
        let region = CodeRegion::heap(IMAGE_BASE, bytes, FunctionTable::new(table));
        map.insert(region.unwrap()).unwrap();
        let memory = FuzzMemory::new(bytes);
        let mut cache = Cache::new();
        let frame = registers(&mut random);
        for rva in 0x20..0xC0 {
            let frame = Registers { rip: IMAGE_BASE + rva, ..frame };
            for position in [Position::Interrupted, Position::ReturnAddress] {
                let (mut walked, mut second) = (frame, frame);
                let step = Unwinder::new(&map).step(&mut walked, position, &memory);
                let caller = mutants::Unwinder::new(&map).step(&mut second, position, &memory);
                let answers = (
                    step.map(|step| (walked, step.caller)).ok(),
                    caller.map(|caller| (second, caller)).ok(),
                );
                assert_eq!(
                    answers.0, answers.1,
                    "case {case}, {rva:#x}, {position:?}, {step:?}: {image:x?}"
                );
                for time in ["learned", "known"] {
                    let mut cached = frame;
                    let again =
                        Unwinder::new(&map).step_cached(&mut cache, &mut cached, position, &memory);
                    assert_eq!((again, cached), (step, walked), "case {case}, {rva:#x}, {time}");
                }
                *found.entry(step.ok().map(|step| step.trust)).or_default() += 1;
            }
        }
    }
    println!("{found:?}");
    for trust in [Trust::Body, Trust::Prologue, Trust::EpilogueCodes, Trust::EpilogueInstructions] {
        assert!(found.get(&Some(trust)).is_some_and(|n| *n > cases(1500)), "{trust:?}: {found:?}");
    }
}
