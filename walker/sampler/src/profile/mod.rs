//! The profile: stacks and their counts, and the formats that tools read.

mod folded;
mod pprof;
mod speedscope;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::Path;

/// The format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines `root;caller;leaf count`, the input of flame graphs.
    Folded,
    /// The JSON of <https://www.speedscope.app>.
    Speedscope,
    /// The protocol buffer of pprof, not compressed.
    Pprof,
}

impl Format {
    /// Returns the format with this name in settings.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "folded" => Some(Self::Folded),
            "speedscope" => Some(Self::Speedscope),
            "pprof" => Some(Self::Pprof),
            _ => None,
        }
    }

    /// Returns the format that the extension of a file stands for: folded, if it is no other's.
    pub fn of_path(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("json") => Self::Speedscope,
            Some("pb" | "pprof") => Self::Pprof,
            _ => Self::Folded,
        }
    }
}

/// The name of a frame, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// The method or function.
    pub name: String,
    /// The file that it is from, or nothing if that is not known.
    pub file: String,
}

/// Stacks and their counts.
#[derive(Debug, Default)]
pub struct Profile {
    /// The labels, by number.
    labels: Vec<Label>,
    numbers: HashMap<Label, u32>,
    /// Numbers of labels, the root's first, to the number of samples with this stack.
    stacks: BTreeMap<Vec<u32>, u64>,
}

impl Profile {
    /// Returns the number of a label.
    pub fn number(&mut self, label: &Label) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.labels.push(label.clone());
        self.numbers.insert(label.clone(), number);
        number
    }

    /// Counts a stack: the numbers of its labels, the root's first.
    pub fn add(&mut self, stack: Vec<u32>) {
        *self.stacks.entry(stack).or_default() += 1;
    }

    /// Returns the file's content. `title` is the name of the profile in formats that have one.
    pub fn write(&self, format: Format, title: &str) -> Vec<u8> {
        match format {
            Format::Folded => folded::write(self).into_bytes(),
            Format::Speedscope => speedscope::write(self, title).into_bytes(),
            Format::Pprof => pprof::write(self),
        }
    }

    /// Returns the label with this number.
    fn label(&self, number: u32) -> &Label {
        &self.labels[number as usize]
    }
}
