//! The program for shuttle and loom.

use crate::Program;
use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs the program with the threads and locks of a crate that replaces std's.
macro_rules! program {
    ($library:ident, $program:expr) => {{
        use $library::sync::{Arc, Mutex};
        let program: Program = $program;
        let locks = Arc::new((Mutex::new(()), Mutex::new(0)));
        let threads: Vec<_> = (0..program.threads)
            .map(|_| {
                let locks = Arc::clone(&locks);
                $library::thread::spawn(move || {
                    for _ in 0..program.rounds {
                        let outer = locks.0.lock().unwrap();
                        let mut inner = locks.1.lock().unwrap();
                        *inner += 1;
                        drop(inner);
                        drop(outer);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // A contender that does less would win.
        assert_eq!(*locks.1.lock().unwrap(), program.total());
    }};
}

/// Executes N random schedules, which depend on the seed, and returns their number.
pub(crate) fn shuttle(program: Program, count: usize, seed: u64) -> usize {
    let scheduler = RandomScheduler::new_from_seed(seed, count);
    shuttle::Runner::new(scheduler, shuttle::Config::new()).run(move || program!(shuttle, program))
}

/// Executes all schedules up to a number of preemptions, and at most `most` of them. Returns their
/// number.
pub(crate) fn loom(program: Program, preemptions: Option<u32>, most: Option<usize>) -> usize {
    let schedules = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.map(|it| it as usize);
    builder.max_permutations = most;
    if let Some(most) = most {
        // loom checks the limit only at checkpoints.
        builder.checkpoint_interval = most;
    }
    let one_more = Arc::clone(&schedules);
    builder.check(move || {
        one_more.fetch_add(1, Ordering::Relaxed);
        program!(loom, program);
    });
    schedules.load(Ordering::Relaxed)
}

/// Returns the average number of times that shuttle chooses the next thread in a schedule.
pub(crate) fn choices_of_shuttle(program: Program, count: usize) -> f64 {
    let choices = Arc::new(AtomicU64::new(0));
    let scheduler =
        Counting { inner: RandomScheduler::new_from_seed(0, count), choices: Arc::clone(&choices) };
    let run = shuttle::Runner::new(scheduler, shuttle::Config::new())
        .run(move || program!(shuttle, program));
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    let average = choices.load(Ordering::Relaxed) as f64 / run as f64;
    average
}

/// A scheduler that counts the choices of another one.
#[derive(Debug)]
struct Counting {
    inner: RandomScheduler,
    choices: Arc<AtomicU64>,
}

impl Scheduler for Counting {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.inner.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        self.choices.fetch_add(1, Ordering::Relaxed);
        self.inner.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}
