//! Tests of walks recorded in real CLRs.

mod recorded_stacks;
mod replays;
