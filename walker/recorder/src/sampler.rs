//! The thread that samples.

use crate::check::Check;
use crate::names::Names;
use crate::os;
use crate::recorder::Recorder;
use crate::request::{Answer, Sample};
use crate::settings::{Mode, Settings};
use clr_walker::mixed::{FrameKind, MixedStack, Reason, Walker};
use std::collections::BTreeMap;
use std::fmt::Write as _;
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
    let (mut last, mut next) = (0, Instant::now());
    while !recorder.is_over() {
        recorder.beat();
        recorder.code.look_for_images();
        next += pause;
        let Some(index) = recorder.threads.after(last) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        last = index;
        let answer = {
            let _walking = recorder.walking.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(thread) = recorder.threads.get(index) else { continue };
            // SAFETY: this is the only sampler, and the last sample is not used any more.
            unsafe { recorder.request.ask(thread, index) }
        };
        match answer {
            Answer::Taken(sample) => {
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
            Answer::Missed => {
                recorder.outcome.lock().unwrap_or_else(PoisonError::into_inner).missed();
            }
        }
        let now = Instant::now();
        if let Some(early) = next.checked_duration_since(now) {
            std::thread::sleep(early);
        } else {
            next = now;
        }
    }
    recorder.write_result(0);
}

/// Appends a text to the file of the settings.
pub(crate) fn write(settings: &Settings, text: &str) {
    let written = match &settings.out {
        Some(path) => OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes())),
        None => std::io::stderr().write_all(text.as_bytes()),
    };
    if let Err(error) = written {
        eprintln!("clr-recorder: {error}");
        os::end(1);
    }
}

/// The results of samples.
#[derive(Debug)]
pub(crate) enum Outcome {
    Folded(Folded),
    Check(Box<Check>),
}

impl Outcome {
    /// Makes an empty one.
    pub(crate) fn new(mode: Mode) -> Self {
        match mode {
            Mode::Sample => Self::Folded(Folded::default()),
            Mode::Check => Self::Check(Box::new(Check::new())),
        }
    }

    fn add(&mut self, recorder: &Recorder, sample: &Sample, stack: &MixedStack) {
        match self {
            Self::Folded(folded) => folded.add(recorder, stack),
            Self::Check(check) => check.add(recorder, sample, stack),
        }
    }

    fn missed(&mut self) {
        if let Self::Check(check) = self {
            check.missed();
        }
    }

    /// Returns the result as it is written.
    pub(crate) fn text(&self, recorder: &Recorder, hangs: u32) -> String {
        match self {
            Self::Folded(folded) => folded.text(),
            Self::Check(check) => check.text(recorder, hangs),
        }
    }
}

/// Stacks and their counts, in the format of flame graphs: `root;caller;leaf count`.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    stacks: BTreeMap<String, u64>,
    names: Names,
}

impl Folded {
    fn add(&mut self, recorder: &Recorder, stack: &MixedStack) {
        let mut line = String::new();
        for frame in stack.frames.iter().rev() {
            if !line.is_empty() {
                line.push(';');
            }
            match frame.kind {
                FrameKind::Managed(function) | FrameKind::Hidden(Some(function)) => {
                    line.push_str(self.names.of(&recorder.info, function));
                }
                FrameKind::Hidden(None) => line.push_str("[stub]"),
                FrameKind::Native { image, rva } => {
                    line.push_str(&recorder.code.describe(image + u64::from(rva)));
                }
                FrameKind::Unknown => line.push_str("[unknown]"),
            }
        }
        *self.stacks.entry(line).or_default() += 1;
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (stack, count) in &self.stacks {
            let _ = writeln!(text, "{stack} {count}");
        }
        text
    }
}
