//! The recorder's mode: a recording instead of samples.

use super::recording::Record;
use super::{hooks, suspended};
use crate::events;
use crate::output;
use crate::settings::Settings;
use clr_com::ICorProfilerInfo5;
use clr_sampler::{Mode, Process, Sample, Sampler};
use clr_walker::mixed::MixedStack;
use std::sync::OnceLock;

/// The recording of this process. Callbacks, hooks and a signal handler add to it.
static RECORD: OnceLock<Record> = OnceLock::new();

/// Begins the recording, in `Initialize`. Returns the mode.
///
/// # Errors
/// A text for people, of a runtime whose calls cannot be replayed, or of a file that cannot be written.
pub(crate) fn start(settings: &Settings, version: [u16; 3]) -> Result<Box<dyn Mode>, String> {
    let record = Record::new(settings, version)?;
    let has_hooks = events::has_hooks(settings.events);
    Ok(Box::new(Recording { record: RECORD.get_or_init(|| record), has_hooks }))
}

/// Returns the sampler's process and the recording, as soon as there are both.
pub(super) fn get() -> Option<(&'static Process, &'static Record)> {
    Some((&Sampler::get()?.process, RECORD.get()?))
}

/// The mode.
#[derive(Debug)]
struct Recording {
    record: &'static Record,
    has_hooks: bool,
}

impl Mode for Recording {
    fn on_initialize(&self, info: &ICorProfilerInfo5) -> Result<(), String> {
        if self.has_hooks {
            hooks::set(info)
                .map_err(|result| format!("SetEnterLeaveFunctionHooks3WithInfo: {result}"))?;
        }
        Ok(())
    }

    fn run(&self, sampler: &'static Sampler) {
        suspended::run(sampler, self.record);
    }

    #[cfg(target_os = "linux")]
    fn in_signal(
        &self,
        sampler: &Sampler,
        number: u32,
        thread: &clr_sampler::threads::Thread,
        registers: &clr_unwind::Registers,
    ) {
        self.record.in_signal(&sampler.process, number, thread, registers);
    }

    fn on_sample(&self, _process: &Process, _sample: &Sample, _stack: &MixedStack) {}

    fn on_hang(&self, _process: &Process, stacks: &str) {
        output::end_hang(stacks);
    }
}
