//! Walks recorded from real CLRs, replayed in the simulated runtime.
//!
//! ```
//! use clr_recording::vectors::decompress;
//! use clr_recording::{RecordedCode, Recording, RecordingReplay, WalkVerdict};
//!
//! let file = clr_fixtures::get("clr/win31-error-dead.walks.jsonl.gz").expect("it is embedded");
//! let text = String::from_utf8(decompress(file, 1 << 20)?)?;
//! let recording = Recording::parse(&text)?;
//! let code = RecordedCode::new(&recording);
//! let mut replay = RecordingReplay::new(&recording, &code)?;
//! for walk in &recording.walks {
//!     assert_eq!(replay.walk(walk, |_callback| {}), WalkVerdict::Same);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The files are in the format "clr-walks 1", which the README of `clr-fixtures` describes.
//! [`Recording::parse`] trusts nothing: any deviation from the format is an error with its line.
//! [`vectors`] has unwinds recorded from real processes.

mod json;
mod load;
mod memory;
mod names;
mod replay;
mod sequence;
mod state;
mod stops;
mod synthetic_native;
mod thread;
pub mod vectors;

pub use json::{
    CallLine, CallbackLine, CodeLine, EntryLine, FrameLine, FunctionLine, Hex, ImageLine,
    NestedLine, ParentLine, PolicyLine, ResultLine, SeedLine, StackLine, StateLine, WalkLine,
};
pub use load::{RecordedCode, RecordingLoadError};
pub use memory::RecordedMemory;
pub use names::RecordedNames;
pub use replay::{RecordedCallback, RecordingReplay, WalkDifference, WalkVerdict};
pub use sequence::{
    Sequence, SequenceCallback, SequenceDifference, SequenceError, SequenceLine, SequenceMode,
    SequenceProblem, SequenceRuntime, SequenceWalks,
};
pub use state::{CALLER, TARGET};
pub use stops::{ReachedFrame, SeedOrigin};
pub use synthetic_native::SyntheticNative;
pub use thread::RecordedThread;

use clr_runtime::generation::Generation;
use clr_walker::profiling::FunctionId;
use json::Line;
use thiserror::Error;

/// A file of recorded walks of one process.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Runtime that made the walks.
    pub generation: Generation,
    /// Name of the recording.
    pub name: String,
    /// Modules.
    pub images: Vec<ImageLine>,
    /// Functions, identified by the numbers that other lines use.
    pub functions: Vec<FunctionLine>,
    /// Managed code.
    pub codes: Vec<CodeLine>,
    /// Pieces of machine code: address (VA) and bytes.
    pub bytes: Vec<(u64, Vec<u8>)>,
    /// Walks in the order of the calls.
    pub walks: Vec<WalkLine>,
    /// Number of the last line, counted from 1, if it is cut: the process was killed, or its disk was full.
    pub cut: Option<usize>,
}

/// The reason why a file is not a recording.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct RecordingError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Problem with the line.
    pub problem: RecordingProblem,
}

/// The problem with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingProblem {
    /// The line is not in the format.
    #[error("{0}")]
    Json(String),
    /// The first line does not name the runtime.
    #[error("the first line must be of type `recording`, format 1")]
    NoHeader,
    /// The runtime is not one of the simulated ones.
    #[error("the generation is unknown")]
    Generation,
    /// The runtime was told to use the exception handling of its predecessors, and is not simulated so.
    #[error("{0} is not simulated with its old exception handling")]
    LegacyExceptions(Generation),
    /// A later line names the runtime again.
    #[error("a second line of type `recording`")]
    SecondHeader,
}

impl Recording {
    /// Parses a file's text. A last line that is cut is left out.
    ///
    /// # Errors
    /// Returns [`RecordingError`] for the first invalid line.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut recording: Option<Self> = None;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let error = |problem| RecordingError { line: index + 1, problem };
            let has_end = line.ends_with('\n');
            let parsed = match (serde_json::from_str(line.trim_end()), &mut recording) {
                (Ok(parsed), _) => parsed,
                // Each line was written with its end.
                (Err(cause), Some(recording)) if cause.is_eof() && !has_end => {
                    recording.cut = Some(index + 1);
                    break;
                }
                (Err(cause), _) => return Err(error(RecordingProblem::Json(cause.to_string()))),
            };
            match (parsed, &mut recording) {
                (Line::Recording(header), None) => {
                    if header.format != 1 {
                        return Err(error(RecordingProblem::NoHeader));
                    }
                    let generation = header.generation().map_err(error)?;
                    recording = Some(Self {
                        generation,
                        name: header.name,
                        images: Vec::new(),
                        functions: Vec::new(),
                        codes: Vec::new(),
                        bytes: Vec::new(),
                        walks: Vec::new(),
                        cut: None,
                    });
                }
                (_, None) => return Err(error(RecordingProblem::NoHeader)),
                (Line::Recording(_), Some(_)) => return Err(error(RecordingProblem::SecondHeader)),
                (Line::Image(image), Some(recording)) => recording.images.push(image),
                (Line::Function(function), Some(recording)) => recording.functions.push(function),
                (Line::Code(code), Some(recording)) => recording.codes.push(code),
                (Line::Bytes(bytes), Some(recording)) => {
                    recording.bytes.push((bytes.at.0, bytes.hex.0));
                }
                (Line::Walk(walk), Some(recording)) => recording.walks.push(*walk),
            }
        }
        recording.ok_or(RecordingError { line: 1, problem: RecordingProblem::NoHeader })
    }

    /// Returns the number of replayable walks that rest on inferred state.
    pub fn inferred_walks(&self) -> usize {
        self.walks.iter().filter(|walk| walk.replayable && walk.rests_on_inferred_state()).count()
    }

    /// Returns the nested call that a callback of `walk` made: recorded with the walk, or as a walk
    /// of its own.
    pub fn nested(&self, walk: &WalkLine) -> Option<NestedLine> {
        walk.call.policy.filter(|policy| policy.nested || policy.nested_at.is_some())?;
        let own = || self.walks.iter().find(|inner| inner.nested_in == Some(walk.n));
        walk.result.nested.or_else(|| {
            let ResultLine { hr, callback_count, callbacks, .. } = &own()?.result;
            let count = callback_count.unwrap_or(callbacks.len() as u32);
            Some(NestedLine { hr: *hr, callback_count: Some(count) })
        })
    }

    /// Returns the function with this number.
    pub fn function(&self, id: u32) -> Option<&FunctionLine> {
        self.functions.iter().find(|function| function.id == id)
    }

    /// Returns the function with this FunctionID.
    pub fn function_by_id(&self, id: FunctionId) -> Option<&FunctionLine> {
        self.functions.iter().find(|function| function.function_id.0 == id.0)
    }
}
