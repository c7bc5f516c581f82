//! The recorder's mode: each sample is judged.

use super::Check;
use crate::output;
use crate::settings::Settings;
use clr_sampler::{Missed, Mode, Process, Sample, lock};
use clr_walker::mixed::MixedStack;
use std::path::PathBuf;
use std::sync::Mutex;

/// The mode.
#[derive(Debug)]
pub(crate) struct Checking {
    out: Option<PathBuf>,
    check: Mutex<Check>,
}

impl Checking {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { out: settings.out.clone(), check: Mutex::new(Check::new(settings)) }
    }

    fn write(&self, check: &Check, process: &Process, hangs: u32) {
        output::append(self.out.as_deref(), check.text(process.version, hangs).as_bytes());
    }
}

impl Mode for Checking {
    fn on_sample(&self, process: &Process, sample: &Sample, stack: &MixedStack) {
        // The second walk would ask the runtime about code that is gone.
        if stack.frames.iter().any(|frame| process.code.has_ended(frame.ip, sample.taken_at)) {
            return self.on_missed(Missed::CodeGone);
        }
        lock(&self.check).add(process, sample, stack);
    }

    fn on_missed(&self, why: Missed) {
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
