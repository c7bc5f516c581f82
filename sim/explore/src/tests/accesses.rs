//! Tests that calls of the runtime count as accesses to the threads that they examine or stop:
//! otherwise searches leave out orders that matter.

use super::*;
use crate::Explorer;

const MAIN: ThreadIndex = ThreadIndex(0);

/// A search that takes random choices, and records what each turn of the sampler accesses.
struct Watching {
    inner: Random,
    accesses: Vec<Footprint>,
}

impl Search for Watching {
    fn begin(&mut self, number: u64) -> bool {
        self.accesses.clear();
        self.inner.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.inner.choose(at)
    }

    fn end(&mut self, _: &Ending) {}

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Observer for Watching {
    fn stepped(&mut self, step: &Step<'_>) {
        if step.thread != MAIN {
            self.accesses.push(step.footprint);
        }
    }
}

/// Checks that each turn of a call by a thread of the profiler accesses the program's thread.
#[track_caller]
fn accesses_the_program(generation: Generation, call: fn(&CurrentThread<'_, '_>)) {
    let process = executing_on(generation, &[("Main", vec![Statement::Work(6)])]);
    let mut explorer = Explorer::new(&process).unwrap();
    let mut search = Watching { inner: Random::new(0), accesses: Vec::new() };
    let load = |setup: &mut Setup<'_>| setup.thread("sampler", call);
    let mut turns = 0;
    for number in 0..20 {
        search.begin(number);
        explorer.run(&load, &mut search, Limits::default(), HistoryDetail::Nothing);
        // The first turn ends where the call begins.
        let in_call = search.accesses.get(1..).unwrap_or_default();
        assert!(in_call.iter().all(|access| access.meets(Footprint::thread(MAIN))), "{number}");
        turns += in_call.len();
    }
    assert!(turns > 20, "{turns}");
}

/// A walk reads the stack of its target, at the place where that happens to be.
#[test]
fn a_walk_accesses_its_target() {
    accesses_the_program(Generation::CoreClr31Windows, |me| {
        let Some(main) = me.target(MAIN) else { return };
        let mut callback = |_: &mut SnapshotFrame<'_>| HResult::OK;
        let (callback, flags) = (Some(&mut callback as _), SnapshotFlags::DEFAULT);
        let _ = me.info().do_stack_snapshot(&SnapshotRequest::of(main.id(), flags), callback);
    });
}

/// The steps of threads before or after a suspension decide which of them are stopped, and where.
#[test]
fn a_suspension_of_the_runtime_accesses_all_threads() {
    accesses_the_program(Generation::Net9Unix, |me| {
        me.info().suspend_runtime().unwrap_or_default();
    });
}

/// A question has another answer behind a change, and each order of questions has the same answers.
#[test]
fn questions_read_all_tables_and_change_none() {
    let process = executing_on(Generation::Net9Unix, &[("Main", vec![Statement::Work(6)])]);
    let mut explorer = Explorer::new(&process).unwrap();
    let mut search = Watching { inner: Random::new(0), accesses: Vec::new() };
    let load = |setup: &mut Setup<'_>| {
        setup.thread("sampler", |me| {
            me.info().get_event_mask().unwrap();
            me.info().get_thread_info(me.target(MAIN).unwrap().id()).unwrap_or_default();
        });
    };
    search.begin(0);
    explorer.run(&load, &mut search, Limits::default(), HistoryDetail::Nothing);
    let in_calls = &search.accesses[1..];
    assert!(in_calls.len() >= 2, "{in_calls:?}");
    for access in in_calls {
        for table in [Footprint::CODE, Footprint::RUNTIME] {
            assert!(access.meets(table) && !access.meets(table.read()), "{access}");
        }
    }
}
