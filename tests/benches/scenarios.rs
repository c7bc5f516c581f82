//! Benchmark of texts and executed programs: the whole gallery, and cases of the property that
//! `DoStackSnapshot` returns what the model expects.

use clr_generate::{Seeded, world_call, world_program};
use clr_runtime::generation::Generation;
use clr_scenario::Scenario;
use clr_tests::world::{Plan, compare, examine};
use clr_world::StepEvent;
use clr_world::reference::{ProgramFacts, ThreadFacts, expected};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn main() {
    gallery();
    properties();
    deep();
}

/// Measures parsing and running all texts of the gallery on all runtimes.
fn gallery() {
    let begin = Instant::now();
    let texts = clr_fixtures::gallery().iter().map(|fixture| {
        let text = core::str::from_utf8(fixture.bytes).expect("texts are UTF-8");
        Scenario::parse(text).expect("the gallery is read by tests")
    });
    let texts: Vec<_> = texts.collect();
    let reading = begin.elapsed();
    let begin = Instant::now();
    let mut calls = 0;
    for scenario in &texts {
        for generation in Generation::ALL {
            calls += scenario.run_on(generation).expect("the gallery is run by tests").len();
        }
    }
    let running = begin.elapsed();
    println!(
        "gallery: {} texts read in {reading:.1?}; {calls} calls on 8 runtimes in {running:.1?}, {:.0} texts a second",
        texts.len(),
        rate(texts.len(), reading + running),
    );
}

/// Measures cases as the property draws them.
fn properties() {
    const WANTED: u64 = 200_000;
    let begin = Instant::now();
    let (mut cases, mut programs) = (0, 0);
    while cases < WANTED {
        let program = world_program(&mut Seeded::new(programs));
        let plan = Plan { seed: programs, cases: 400, thorough: false };
        if let Ok(examined) = examine(&program, plan, |_| ()) {
            cases += examined.cases;
        }
        programs += 1;
    }
    let rate = rate(cases as usize, begin.elapsed());
    println!("property: {cases} cases of {programs} programs, {rate:.0} cases a second");
}

/// Measures cases on stacks of at least 32 frames, and the share of each of their parts.
fn deep() {
    let mut costs: BTreeMap<&str, Duration> = BTreeMap::new();
    let (mut cases, mut callbacks) = (0, 0);
    for seed in 0..4_000 {
        let program = world_program(&mut Seeded::new(seed));
        if program.program.functions.len() < 32 {
            continue;
        }
        let mut time = |name: &'static str, begin: Instant| {
            *costs.entry(name).or_default() += begin.elapsed();
        };
        let begin = Instant::now();
        let Ok(build) = program.build() else { continue };
        time("code", begin);
        let begin = Instant::now();
        let Ok(mut world) = program.world(&build) else { continue };
        time("world", begin);
        let facts = ProgramFacts::new(build.expanded(), build.linked());
        for step in 1_u64..100_000 {
            let begin = Instant::now();
            match world.step(0) {
                Ok(StepEvent::Ended | StepEvent::Waits) | Err(_) => break,
                Ok(_) => {}
            }
            time("steps", begin);
            if step % 8 != 0 || world.shadow_stack(0).is_none_or(|truth| truth.callers().len() < 32)
            {
                continue;
            }
            let begin = Instant::now();
            let Some(seen) = ThreadFacts::new(&facts, &mut world, 0) else { continue };
            time("looking", begin);
            let mut choices = Seeded::new(step);
            for _ in 0..3 {
                let call = world_call(&mut choices, &program.threads[..1]);
                let begin = Instant::now();
                let Ok(case) = compare(&mut world, &seen, &call) else {
                    panic!("the property does not hold: seed {seed}, step {step}");
                };
                time("call, model and comparison", begin);
                let begin = Instant::now();
                assert_eq!(expected(&seen, &case.question), case.expected);
                time("the model once more", begin);
                cases += 1;
                callbacks += case.callbacks;
            }
        }
    }
    let sum: Duration = costs.values().sum();
    let rate = rate(cases, sum);
    println!("32 frames and more: {cases} cases, {callbacks} callbacks, {rate:.0} cases a second");
    for (part, cost) in costs {
        println!("  {part}: {:.0} %", 100.0 * cost.as_secs_f64() / sum.as_secs_f64());
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(count: usize, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64()
}
