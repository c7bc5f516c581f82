//! Output as text and as JSON. Reports and commands use this module, which uses neither.

pub(crate) mod alignment;
pub(crate) mod cfi;
pub(crate) mod clean;
pub(crate) mod code;
pub(crate) mod console;
pub(crate) mod differences;
pub(crate) mod error;
pub(crate) mod fit;
pub(crate) mod json;
pub(crate) mod patch;
pub(crate) mod progress;
pub(crate) mod shell;
pub(crate) mod style;
pub(crate) mod unwind_data;
pub(crate) mod version3;
pub(crate) mod words;
pub(crate) mod wrap;
