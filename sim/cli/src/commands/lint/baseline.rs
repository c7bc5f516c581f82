//! The findings of an earlier run, which do not fail again.

use crate::input::slashed;
use crate::render::error::CliError;
use crate::report::lint::Fingerprint;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The findings of an earlier run: how often each was found, by the name of the image without its folder.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    left: BTreeMap<(String, Fingerprint), usize>,
}

/// What counts of a line.
#[derive(Deserialize)]
struct Line {
    kind: String,
    file: String,
    fingerprint: Option<String>,
}

impl Baseline {
    /// Reads the output of `clrsim lint --json`.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let error = |what: String| CliError::new(&slashed(path), what);
        let text = std::fs::read_to_string(path)
            .map_err(|failed| error(format!("cannot be read: {}", failed.kind())))?;
        let mut left = BTreeMap::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line: Line = serde_json::from_str(line)
                .map_err(|_| error(format!("line {} is none of clrsim lint --json", at + 1)))?;
            let fingerprint = line.fingerprint.as_deref().and_then(Fingerprint::from_text);
            if let Some(fingerprint) = fingerprint.filter(|_| line.kind == "finding") {
                *left.entry((file_name(&line.file), fingerprint)).or_insert(0) += 1;
            }
        }
        Ok(Self { left })
    }

    /// Returns true if the earlier run has found this in the image called `file`, and takes it out: of two
    /// equal findings one may be new.
    pub(super) fn take(&mut self, file: &str, fingerprint: Fingerprint) -> bool {
        let Some(left) = self.left.get_mut(&(file_name(file), fingerprint)) else { return false };
        let is_known = *left > 0;
        *left = left.saturating_sub(1);
        is_known
    }
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}
