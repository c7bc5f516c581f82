//! The program for clr-sim: threads of a profiler in an otherwise empty process.

use crate::{Kind, Program};
use clr_explore::{Budget, Report, Setup, Strategy, TestedProcess, ThreadIndex, check};
use clr_runtime::generation::Generation;
use clr_world::BuildError;
use clr_world::stubs::Hooks;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Creates an empty process.
fn process() -> Result<TestedProcess, BuildError> {
    let none = clr_codegen::Program::default();
    TestedProcess::new(&none, &BTreeMap::new(), Hooks::default(), Generation::CoreClr31Windows, &[])
}

/// Sets up the program's threads, and one that joins them all. With `declares` the profiler says which data it keeps.
fn load(program: Program, declares: bool) -> impl Fn(&mut Setup<'static>) {
    move |profiler| {
        let (outer, inner) = (profiler.lock("outer"), profiler.lock("inner"));
        let (total, is_set) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let condition = profiler.condition();
        if declares {
            let (total, is_set) = (Rc::clone(&total), Rc::clone(&is_set));
            profiler.keeps(move || u64::from(total.get()) << 1 | u64::from(is_set.get()));
        }
        for number in 0..program.threads {
            let (total, is_set) = (Rc::clone(&total), Rc::clone(&is_set));
            let own = profiler.lock("own");
            profiler.thread("counts", move |me| match program.kind {
                Kind::Nested => {
                    for round in 0..program.rounds {
                        me.is_at(round.into());
                        let outer = me.lock(outer);
                        let inner = me.lock(inner);
                        me.shares();
                        total.set(total.get() + 1);
                        drop(inner);
                        drop(outer);
                    }
                }
                Kind::Notified if number == 0 => {
                    let inner = me.lock(inner);
                    me.shares();
                    is_set.set(true);
                    drop(inner);
                    me.notify_all(condition);
                }
                Kind::Notified => {
                    let guard = me.lock(inner);
                    me.shares();
                    while !is_set.get() {
                        me.wait_on(condition, inner, None);
                        me.shares();
                    }
                    total.set(total.get() + program.rounds);
                    drop(guard);
                }
                Kind::Apart => {
                    for round in 0..program.rounds {
                        me.is_at(round.into());
                        drop(me.lock(own));
                        let inner = me.lock(inner);
                        me.shares();
                        total.set(total.get() + 1);
                        drop(inner);
                    }
                }
            });
        }
        profiler.thread("waits", move |me| {
            (0..program.threads).for_each(|thread| me.join(ThreadIndex(thread)));
            if total.get() != program.total() {
                me.fail("a thread did not count");
            }
        });
    }
}

fn search(program: Program, declares: bool, budget: &Budget) -> Report {
    let process = process().expect("nothing has to be built");
    let report =
        check(&process, &load(program, declares), budget).expect("nothing has to be built");
    assert!(report.survives(), "{:?}", report.failure);
    report
}

/// Executes N random schedules, which depend on the seed, and returns their number.
pub(crate) fn random(program: Program, count: usize, seed: u64) -> usize {
    search(program, false, &Budget::random(seed, count as u64)).schedules as usize
}

/// Executes all schedules up to a number of preemptions, of a profiler that declares its data or not. Returns their number,
/// with those that were given up.
pub(crate) fn exhaustive(program: Program, preemptions: u32, declares: bool) -> usize {
    let strategy = Strategy::Exhaustive { preemptions: Some(preemptions) };
    let report = search(program, declares, &Budget::exhaustive(u64::MAX).by(strategy));
    let covered = report.covered.expect("an exhaustive search reports its coverage");
    assert!(covered.everything, "{covered:?}");
    report.schedules as usize
}

/// Returns the average number of turns in a schedule.
pub(crate) fn turns(program: Program, count: usize) -> f64 {
    let report = search(program, false, &Budget::random(0, count as u64));
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    let average = report.turns as f64 / report.schedules as f64;
    average
}
