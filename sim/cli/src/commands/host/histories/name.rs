//! Names of a guest's histories: the runtime, the choices, and digests of the text and of the library.

use crate::render::error::CliError;
use clr_explore::ScheduleString;
use clr_runtime::generation::Generation;
use clr_scenario::TextDigest;
use std::fmt;
use std::path::Path;

/// The name of an interleaving: `net8-unix:clr1:14b3a:6ac5a404:0d9f1c3e`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistoryName {
    pub(super) generation: Generation,
    pub(super) schedule: ScheduleString,
    /// Digests of the text and of the library with which the interleaving was found, if the name has them.
    pub(super) digests: Option<(TextDigest, LibraryDigest)>,
}

/// The digest of a library's file: another build has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LibraryDigest(u32);

impl LibraryDigest {
    /// Returns the digest of a file (FNV-1a).
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        Ok(Self(std::fs::read(path)?.iter().fold(0x811C_9DC5, step)))
    }
}

impl fmt::Display for LibraryDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Display for HistoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.schedule)?;
        match &self.digests {
            Some((text, library)) => write!(f, ":{text}:{library}"),
            None => Ok(()),
        }
    }
}

impl HistoryName {
    /// Parses a name.
    pub(super) fn parse(text: &str) -> Result<Self, CliError> {
        let refused = |what: &dyn fmt::Display| CliError::new(text, what);
        let form = || refused(&"is not the name of an interleaving: RUNTIME:clr1:…");
        let (runtime, rest) = text.split_once(':').ok_or_else(form)?;
        let generation = Generation::from_name(runtime).ok_or_else(|| {
            let names = Generation::ALL.map(Generation::name).join(", ");
            refused(&format!("there is no runtime {runtime}; they are: {names}"))
        })?;
        // The schedule itself has one colon.
        let mut parts = rest.splitn(4, ':');
        let schedule = [parts.next(), parts.next()].map(Option::unwrap_or_default).join(":");
        let schedule = schedule.parse().map_err(|error| refused(&error))?;
        let digests = match (parts.next(), parts.next()) {
            (None, _) => None,
            (Some(text), Some(library)) => {
                let text = text.parse().map_err(|error| refused(&error))?;
                let library = u32::from_str_radix(library, 16).map_err(|_| form())?;
                Some((text, LibraryDigest(library)))
            }
            (Some(_), None) => return Err(form()),
        };
        Ok(Self { generation, schedule, digests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in
            ["net8-unix:clr1:14b3a:6ac5a404:0d9f1c3e", "net10-unix:clr1:", "net8-unix:clr1:2b"]
        {
            assert_eq!(HistoryName::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_name_is_refused_with_the_reason() {
        let error = |text: &str| HistoryName::parse(text).unwrap_err().render(false);
        assert!(error("net8").contains("is not the name of an interleaving"));
        assert!(error("net7-unix:clr1:2b").contains("there is no runtime net7-unix"));
        assert!(error("net8-unix:clr2:2b").contains("begins with `clr1:`"));
        assert!(error("net8-unix:clr1:2b:6ac5a404").contains("is not the name of an interleaving"));
        assert!(
            error("net8-unix:clr1:2b:6ac5a404:x").contains("is not the name of an interleaving")
        );
    }
}
