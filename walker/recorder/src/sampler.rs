//! The thread that samples.

use crate::check::Check;
use crate::code::Code;
#[cfg(target_os = "linux")]
use crate::late::Late;
use crate::names::Names;
use crate::os;
use crate::profile::{Label, Profile};
use crate::recorder::Recorder;
use crate::request::{Answer, RuntimeSuspended, Sample};
use crate::settings::{Mode, Settings};
use clr_com::RuntimeInfo;
use clr_walker::mixed::{FrameKind, MixedStack, Policy, Reason, Walker};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Number of times that a name is asked for again.
const MOST_RETRIES: usize = 100;

/// Samples until the recorder is over, then writes the result.
pub(crate) fn run(recorder: &'static Recorder) {
    let walker = Walker::new(&recorder.info, &recorder.code, recorder.settings.policy);
    let pause = match recorder.settings.rate {
        0 => Duration::ZERO,
        rate => Duration::from_secs(1) / rate,
    };
    let mut suspended = RuntimeSuspended::new(recorder.settings.mode);
    #[cfg(target_os = "linux")]
    let mut late = Late::new();
    let (mut last, mut next) = (0, Instant::now());
    while !recorder.is_over() {
        recorder.beat();
        recorder.code.look_for_images();
        next += pause;
        let Some(index) = recorder.threads.after(last) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        if recorder.settings.policy == Policy::RuntimeSuspended {
            // SAFETY: this is the only sampler, and the last samples are not used any more.
            let samples = unsafe { suspended.take(recorder, &walker, &mut last) };
            if let Some(samples) = samples {
                for sample in samples {
                    add(recorder, &walker, sample);
                }
            } else {
                // Another suspension is under way.
                missed(recorder);
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            last = index;
            #[cfg(target_os = "linux")]
            let changes = recorder.code.changes();
            let answer = {
                let _walking = recorder.walking.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(thread) = recorder.threads.get(index) else { continue };
                // SAFETY: this is the only sampler, and the last sample is not used any more.
                unsafe { recorder.request.ask(thread, index) }
            };
            match answer {
                // Other policies ask the runtime, which knows all of its code.
                #[cfg(target_os = "linux")]
                Answer::Taken(sample)
                    if recorder.settings.policy == Policy::Signal && late.keep(sample, changes) => {
                }
                Answer::Taken(sample) => add(recorder, &walker, sample),
                Answer::Missed => missed(recorder),
            }
        }
        #[cfg(target_os = "linux")]
        add_late(recorder, &walker, &mut late, false);
        let now = Instant::now();
        if let Some(early) = next.checked_duration_since(now) {
            std::thread::sleep(early);
        } else {
            next = now;
        }
    }
    #[cfg(target_os = "linux")]
    add_late(recorder, &walker, &mut late, true);
    recorder.write_result(0);
}

/// Adds the samples whose walks have been finished later.
#[cfg(target_os = "linux")]
fn add_late(
    recorder: &Recorder,
    walker: &Walker<'_, RuntimeInfo, Code>,
    late: &mut Late,
    is_over: bool,
) {
    let changes = recorder.code.changes();
    while let Some(sample) = late.finish(&recorder.info, &recorder.code, changes, is_over) {
        add(recorder, walker, sample);
    }
}

/// Names the frames of a sample, and adds it to the results.
fn add(recorder: &Recorder, walker: &Walker<'_, RuntimeInfo, Code>, sample: &Sample) {
    let Ok(mut stack) = walker.stitch(&sample.buffer);
    // The runtime cannot name code while its tables are being written.
    for _ in 0..MOST_RETRIES {
        if !stack.gaps.iter().any(|gap| matches!(gap.reason, Reason::Lookup(_))) {
            break;
        }
        std::thread::yield_now();
        let Ok(again) = walker.stitch(&sample.buffer);
        stack = again;
    }
    let mut outcome = recorder.outcome.lock().unwrap_or_else(PoisonError::into_inner);
    outcome.add(recorder, sample, &stack);
}

/// Counts a request without an answer.
fn missed(recorder: &Recorder) {
    recorder.outcome.lock().unwrap_or_else(PoisonError::into_inner).missed();
}

/// Writes a result to the file of the settings: a profile anew, other results after what is there.
pub(crate) fn write(settings: &Settings, result: &[u8]) {
    let is_profile = settings.mode == Mode::Sample;
    let written = match &settings.out {
        Some(path) => OpenOptions::new()
            .create(true)
            .append(!is_profile)
            .write(is_profile)
            .truncate(is_profile)
            .open(path)
            .and_then(|mut file| file.write_all(result)),
        None => std::io::stderr().write_all(result),
    };
    if let Err(error) = written {
        eprintln!("clr-recorder: {error}");
        os::end(1);
    }
}

/// The results of samples.
#[derive(Debug)]
pub(crate) enum Outcome {
    Profile(Named),
    Check(Box<Check>),
}

impl Outcome {
    /// Makes an empty one.
    pub(crate) fn new(mode: Mode) -> Self {
        match mode {
            Mode::Sample | Mode::Record | Mode::Calls => Self::Profile(Named::default()),
            Mode::Check => Self::Check(Box::new(Check::new())),
        }
    }

    fn add(&mut self, recorder: &Recorder, sample: &Sample, stack: &MixedStack) {
        match self {
            Self::Profile(named) => named.add(recorder, stack),
            Self::Check(check) => check.add(recorder, sample, stack),
        }
    }

    fn missed(&mut self) {
        if let Self::Check(check) = self {
            check.missed();
        }
    }

    /// Returns the result as it is written.
    pub(crate) fn bytes(&self, recorder: &Recorder, hangs: u32) -> Vec<u8> {
        let settings = &recorder.settings;
        match self {
            Self::Profile(named) => named.profile.write(settings.format(), &settings.label),
            Self::Check(check) => check.text(settings, recorder.version, hangs).into_bytes(),
        }
    }
}

/// A profile whose frames get the names of methods and images.
#[derive(Debug, Default)]
pub(crate) struct Named {
    profile: Profile,
    names: Names,
}

impl Named {
    fn add(&mut self, recorder: &Recorder, stack: &MixedStack) {
        let special = |name: &str| Label { name: name.to_owned(), file: String::new() };
        let mut numbers = Vec::with_capacity(stack.frames.len());
        for frame in stack.frames.iter().rev() {
            numbers.push(match frame.kind {
                FrameKind::Managed(function) | FrameKind::Hidden(Some(function)) => {
                    self.profile.number(self.names.of(&recorder.info, function))
                }
                FrameKind::Hidden(None) => self.profile.number(&special("[stub]")),
                FrameKind::Native { image, rva } => {
                    self.profile.number(&recorder.code.label(image + u64::from(rva)))
                }
                FrameKind::Unknown => self.profile.number(&special("[unknown]")),
            });
        }
        self.profile.add(numbers);
    }
}
