//! The commands of the tool, one for each file.

pub(crate) mod begin;
pub(crate) mod bless;
pub(crate) mod compare;
pub(crate) mod derived;
pub(crate) mod diagnose;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod explore;
pub(crate) mod fmt;
pub(crate) mod generate;
mod history;
#[cfg(all(feature = "host", target_pointer_width = "64"))]
pub(crate) mod host;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod lint;
pub(crate) mod list;
#[cfg(feature = "lsp")]
pub(crate) mod lsp;
pub(crate) mod matrix;
pub(crate) mod merge;
pub(crate) mod minimize;
pub(crate) mod new;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod runtimes;
pub(crate) mod show;
mod smaller;
mod strategy;
pub(crate) mod trace;
