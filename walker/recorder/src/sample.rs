//! `mode=sample`: a profile of all samples.

use crate::output;
use crate::settings::Settings;
use clr_sampler::{Mode, NamedProfile, Process, Sample, lock};
use clr_walker::mixed::MixedStack;
use std::sync::Mutex;

/// The mode.
#[derive(Debug)]
pub(crate) struct Sampling {
    settings: Settings,
    profile: Mutex<NamedProfile>,
}

impl Sampling {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, profile: Mutex::default() }
    }

    fn write(&self, profile: &NamedProfile) {
        let bytes = profile.write(self.settings.format(), &self.settings.label);
        output::replace(self.settings.out.as_deref(), &bytes);
    }
}

impl Mode for Sampling {
    fn on_sample(&self, process: &Process, sample: &Sample, stack: &MixedStack) {
        lock(&self.profile).add(process, sample, stack);
    }

    fn on_end(&self, _process: &Process) {
        self.write(&lock(&self.profile));
    }

    fn on_hang(&self, _process: &Process, stacks: &str) {
        if let Ok(profile) = self.profile.try_lock() {
            self.write(&profile);
        }
        output::end_hang(stacks);
    }
}
