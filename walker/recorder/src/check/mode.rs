//! The recorder's mode: each sample is judged.

use super::Check;
#[cfg(target_os = "linux")]
use super::execute::Executions;
use crate::output;
use crate::settings::Settings;
use clr_sampler::{Missed, Mode, Process, Sample, lock};
#[cfg(target_os = "linux")]
use clr_sampler::{Sampler, threads::Thread};
#[cfg(target_os = "linux")]
use clr_unwind::Registers;
use clr_walker::mixed::MixedStack;
use std::path::PathBuf;
use std::sync::Mutex;

/// The mode.
#[derive(Debug)]
pub(crate) struct Checking {
    out: Option<PathBuf>,
    check: Mutex<Check>,
    #[cfg(target_os = "linux")]
    executions: Executions,
}

impl Checking {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            out: settings.out.clone(),
            #[cfg(target_os = "linux")]
            executions: Executions::new(&settings),
            check: Mutex::new(Check::new(settings)),
        }
    }

    fn write(&self, check: &Check, process: &Process, hangs: u32) {
        output::append(self.out.as_deref(), check.text(process.version, hangs).as_bytes());
    }
}

impl Mode for Checking {
    #[cfg(target_os = "linux")]
    fn in_signal(&self, sampler: &Sampler, number: u32, thread: &Thread, registers: &Registers) {
        self.executions.prepare(registers);
        sampler.take(number, thread, registers);
    }

    fn on_sample(&self, process: &Process, sample: &Sample, stack: &MixedStack) {
        // The second walk would ask the runtime about code that is gone.
        if stack.frames.iter().any(|frame| process.code.has_ended(frame.ip, sample.taken_at)) {
            return self.on_missed(Missed::CodeGone);
        }
        let mut check = lock(&self.check);
        #[cfg(target_os = "linux")]
        {
            check.leaves.add_unused(self.executions.take_unused());
            check.add(process, sample, stack, |leaves, claimed| {
                leaves.add(self.executions.caller(sample, claimed)?)
            });
        }
        #[cfg(windows)]
        check.add(process, sample, stack, |_, _| None);
    }

    fn on_missed(&self, why: Missed) {
        // No sample, no leaf.
        #[cfg(target_os = "linux")]
        self.executions.forget();
        lock(&self.check).missed(why);
    }

    fn on_end(&self, process: &Process) {
        self.write(&lock(&self.check), process, 0);
    }

    fn on_hang(&self, process: &Process, stacks: &str) {
        // A sampler that hangs while it judges keeps its result.
        if let Ok(check) = self.check.try_lock() {
            self.write(&check, process, 1);
        }
        output::end_hang(stacks);
    }
}
