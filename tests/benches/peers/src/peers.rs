//! The program for shuttle and loom.

use crate::{Kind, Program};
use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs the program with the threads and locks of a crate that replaces std's.
macro_rules! program {
    ($library:ident, $program:expr) => {{
        use $library::sync::{Arc, Condvar, Mutex};
        let program: Program = $program;
        let locks = Arc::new((Mutex::new(()), Mutex::new(0)));
        // Each access to an Arc of loom makes more schedules.
        let flag = std::sync::Arc::new((Mutex::new((false, 0)), Condvar::new()));
        let threads: Vec<_> = (0..program.threads)
            .map(|number| {
                let (locks, flag) = (Arc::clone(&locks), std::sync::Arc::clone(&flag));
                let own = Mutex::new(());
                $library::thread::spawn(move || match program.kind {
                    Kind::Nested => {
                        for _ in 0..program.rounds {
                            let outer = locks.0.lock().unwrap();
                            let mut inner = locks.1.lock().unwrap();
                            *inner += 1;
                            drop(inner);
                            drop(outer);
                        }
                    }
                    Kind::Notified if number == 0 => {
                        flag.0.lock().unwrap().0 = true;
                        flag.1.notify_all();
                    }
                    Kind::Notified => {
                        let mut state = flag.0.lock().unwrap();
                        while !state.0 {
                            state = flag.1.wait(state).unwrap();
                        }
                        state.1 += program.rounds;
                    }
                    Kind::Apart => {
                        for _ in 0..program.rounds {
                            drop(own.lock().unwrap());
                            *locks.1.lock().unwrap() += 1;
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // A contender that does less would win.
        // A lock that the program does not need would make more schedules.
        let total = match program.kind {
            Kind::Notified => flag.0.lock().unwrap().1,
            Kind::Nested | Kind::Apart => *locks.1.lock().unwrap(),
        };
        assert_eq!(total, program.total());
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
