//! Tests of walks recorded in real CLRs.

mod answers;
mod collection;
mod questions;
mod recorded_stacks;
mod replays;
mod unaided_walks;

pub(crate) use collection::embedded;
