//! Tests of walks of whole stacks and of calls of `DoStackSnapshot`, on generated programs.

mod lookups;
mod mutants;
mod scheduled_walks;
mod snapshot_properties;
mod staged_walks;
mod walks;
