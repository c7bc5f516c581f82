//! A profile whose frames have the names of methods and images.

use crate::names::Names;
use crate::process::Process;
use crate::profile::{Format, Label, Profile};
use crate::request::Sample;
use clr_walker::mixed::{FrameKind, MixedFrame, MixedStack};

/// Stacks and their counts, by name.
#[derive(Debug, Default)]
pub struct NamedProfile {
    profile: Profile,
    names: Names,
}

impl NamedProfile {
    /// Counts the stack of a sample.
    pub fn add(&mut self, process: &Process, sample: &Sample, stack: &MixedStack) {
        let frames = stack.frames.iter().rev();
        let numbers = frames.map(|frame| self.number(process, frame, sample.taken_at)).collect();
        self.profile.add(numbers);
    }

    fn number(&mut self, process: &Process, frame: &MixedFrame, time: u64) -> u32 {
        let special = |name: &str| Label { name: name.to_owned(), file: String::new() };
        match frame.kind {
            FrameKind::Managed(function) | FrameKind::Hidden(Some(function)) => {
                self.profile.number(&self.names.of(process, function, time))
            }
            FrameKind::Hidden(None) => self.profile.number(&special("[stub]")),
            FrameKind::Native { image, rva } => {
                self.profile.number(&process.code.label(image + u64::from(rva)))
            }
            FrameKind::Unknown => self.profile.number(&special("[unknown]")),
        }
    }

    /// Returns the file's content. `title` is the name of the profile in formats that have one.
    pub fn write(&self, format: Format, title: &str) -> Vec<u8> {
        self.profile.write(format, title)
    }
}
