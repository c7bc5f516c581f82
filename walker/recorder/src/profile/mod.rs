//! The profile: stacks and their counts, and the formats that tools read.

mod folded;
mod pprof;
mod speedscope;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::Path;

/// The format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines `root;caller;leaf count`, the input of flame graphs.
    Folded,
    /// The JSON of <https://www.speedscope.app>.
    Speedscope,
    /// The protocol buffer of pprof, not compressed.
    Pprof,
}

impl Format {
    /// Returns the format with this name in settings.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "folded" => Some(Self::Folded),
            "speedscope" => Some(Self::Speedscope),
            "pprof" => Some(Self::Pprof),
            _ => None,
        }
    }

    /// Returns the format that the extension of a file stands for: folded, if it is no other's.
    pub(crate) fn of_path(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("json") => Self::Speedscope,
            Some("pb" | "pprof") => Self::Pprof,
            _ => Self::Folded,
        }
    }
}

/// The name of a frame, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    /// The method or function.
    pub(crate) name: String,
    /// The file that it is from, or nothing if that is not known.
    pub(crate) file: String,
}

/// Stacks and their counts.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// The labels, by number.
    labels: Vec<Label>,
    numbers: HashMap<Label, u32>,
    /// Numbers of labels, the root's first, to the number of samples with this stack.
    stacks: BTreeMap<Vec<u32>, u64>,
}

impl Profile {
    /// Returns the number of a label.
    pub(crate) fn number(&mut self, label: &Label) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.labels.push(label.clone());
        self.numbers.insert(label.clone(), number);
        number
    }

    /// Counts a stack: the numbers of its labels, the root's first.
    pub(crate) fn add(&mut self, stack: Vec<u32>) {
        *self.stacks.entry(stack).or_default() += 1;
    }

    /// Returns the file's content. `title` is the name of the profile in formats that have one.
    pub(crate) fn write(&self, format: Format, title: &str) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stacks with a common caller, whose names need care in each format.
    pub(super) fn example() -> Profile {
        let mut profile = Profile::default();
        let label = |name: &str, file: &str| Label { name: name.into(), file: file.into() };
        let main = profile.number(&label("Program.Main", "app.dll"));
        let odd = profile.number(&label("<a;b>\"\\\n é", "app.dll"));
        let native = profile.number(&label("libc.so.6+0x10", "libc.so.6"));
        assert_eq!(profile.number(&label("Program.Main", "app.dll")), main);
        profile.add(vec![main, odd]);
        profile.add(vec![main, odd, native]);
        profile.add(vec![main, odd]);
        profile
    }

    #[test]
    fn an_extension_stands_for_a_format() {
        let of = |path: &str| Format::of_path(Path::new(path));
        assert_eq!(of("/tmp/app.folded"), Format::Folded);
        assert_eq!(of("/tmp/json"), Format::Folded);
        assert_eq!(of("app.speedscope.json"), Format::Speedscope);
        assert_eq!([of("app.pb"), of("app.pprof")], [Format::Pprof; 2]);
    }
}
