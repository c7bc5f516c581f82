//! Export of stacks to the formats of other tools.

use crate::render::error::CliError;
use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line a stack, root first, and how often it was seen: what flamegraph.pl reads
    Folded,
    /// The file format of speedscope.app: a profile a stack
    Speedscope,
}

/// A stack to export.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    /// Name of the stack.
    pub(crate) name: String,
    /// Frames and gaps, leaf first.
    pub(crate) frames: Vec<Frame>,
}

/// A frame, by its name in the export.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// Name of the function.
    name: String,
    /// Name of the image.
    file: Option<String>,
}

impl Frame {
    /// Parses a label: `coreclr.dll!JIT_New+0x80` is `JIT_New` of `coreclr.dll`.
    pub(crate) fn new(label: &str) -> Self {
        let function = label.rsplit_once("+0x").map_or(label, |(function, _)| function);
        match function.split_once('!') {
            Some((file, name)) if !file.is_empty() && !name.is_empty() => {
                Self { name: name.to_owned(), file: Some(file.to_owned()) }
            }
            _ => Self { name: function.to_owned(), file: None },
        }
    }

    /// Creates the entry for missing frames.
    pub(crate) fn gap(reason: &str) -> Self {
        Self { name: format!("[{reason}]"), file: None }
    }

    /// Returns the name without the characters that separate frames and counts.
    fn folded(&self) -> String {
        let file = self.file.as_ref().map(|file| format!("{file}!")).unwrap_or_default();
        format!("{file}{}", self.name).replace([';', '\n', '\r'], ":")
    }
}

impl Format {
    /// Writes stacks in this format.
    pub(crate) fn write(
        self,
        file: &str,
        stacks: &[Exported],
        out: &mut dyn Write,
    ) -> Result<(), CliError> {
        match self {
            Self::Folded => write_folded(stacks, out)?,
            Self::Speedscope => {
                let text = serde_json::to_string_pretty(&File::new(file, stacks));
                writeln!(out, "{}", text.map_err(io::Error::from)?)?;
            }
        }
        Ok(())
    }
}

/// Writes one line for equal stacks, at the place of the first.
fn write_folded(stacks: &[Exported], out: &mut dyn Write) -> io::Result<()> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for stack in stacks.iter().filter(|stack| !stack.frames.is_empty()) {
        let frames: Vec<_> = stack.frames.iter().rev().map(Frame::folded).collect();
        let line = frames.join(";");
        match lines.iter_mut().find(|(other, _)| *other == line) {
            Some((_, count)) => *count += 1,
            None => lines.push((line, 1)),
        }
    }
    for (line, count) in lines {
        writeln!(out, "{line} {count}")?;
    }
    Ok(())
}

/// A file of speedscope: <https://www.speedscope.app/file-format-schema.json>.
#[derive(Serialize)]
struct File<'f> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'f>,
    profiles: Vec<Profile<'f>>,
    name: &'f str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    exporter: &'static str,
}

#[derive(Serialize)]
struct Shared<'f> {
    frames: Vec<SharedFrame<'f>>,
}

#[derive(Serialize)]
struct SharedFrame<'f> {
    name: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'f str>,
}

#[derive(Serialize)]
struct Profile<'f> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'f str,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u32,
    #[serde(rename = "endValue")]
    end: u32,
    /// Indices into the shared frames, root first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u32>,
}

impl<'f> File<'f> {
    fn new(name: &'f str, stacks: &'f [Exported]) -> Self {
        let mut places = BTreeMap::new();
        let mut frames = Vec::new();
        let mut profiles = Vec::new();
        for stack in stacks {
            let mut sample = Vec::with_capacity(stack.frames.len());
            for frame in stack.frames.iter().rev() {
                let place = *places.entry(frame).or_insert_with(|| {
                    frames.push(SharedFrame { name: &frame.name, file: frame.file.as_deref() });
                    frames.len() - 1
                });
                sample.push(place);
            }
            profiles.push(Profile {
                kind: "sampled",
                name: &stack.name,
                unit: "none",
                start: 0,
                end: 1,
                samples: vec![sample],
                weights: vec![1],
            });
        }
        Self {
            schema: "https://www.speedscope.app/file-format-schema.json",
            shared: Shared { frames },
            profiles,
            name,
            active: 0,
            exporter: concat!("clrsim@", env!("CARGO_PKG_VERSION")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exported, Format, Frame};

    fn stack(name: &str, labels: &[&str]) -> Exported {
        let frames = labels.iter().map(|label| Frame::new(label)).collect();
        Exported { name: name.to_owned(), frames }
    }

    fn written(format: Format, stacks: &[Exported]) -> String {
        let mut out = Vec::new();
        format.write("a file", stacks, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_same_stacks_are_counted() {
        let mut other = stack("other", &["App.Foo+0x1"]);
        other.frames.push(Frame::gap("running"));
        let one = stack("one", &["ntdll.dll!Wait+0x4", "App.A;B+0x40", "Root"]);
        let again = stack("again", &["ntdll.dll!Wait+0x8", "App.A;B+0x20", "Root"]);
        let nothing = stack("nothing", &[]);
        assert_eq!(
            written(Format::Folded, &[one, other, nothing, again]),
            "Root;App.A:B;ntdll.dll!Wait 2\n[running];App.Foo 1\n"
        );
    }

    #[test]
    fn labels_are_parted() {
        let parts = |label: &str| {
            let Frame { name, file } = Frame::new(label);
            (name, file)
        };
        let named = |name: &str| (name.to_owned(), None);
        assert_eq!(parts("a.dll!F+0x1"), ("F".to_owned(), Some("a.dll".to_owned())));
        assert_eq!(parts("App.Foo@tier1+0x1"), named("App.Foo@tier1"));
        assert_eq!(parts("0x1234"), named("0x1234"));
        assert_eq!(parts("!F+0x1"), named("!F"));
        assert_eq!(parts("a+0xz+0x1"), named("a+0xz"));
    }
}
