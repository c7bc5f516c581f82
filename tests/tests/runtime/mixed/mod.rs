//! Tests of walks of whole stacks and of calls of `DoStackSnapshot`, on generated programs.

mod lookups;
mod mutants;
mod scheduled_walks;
mod snapshot_properties;
mod staged_walks;
mod walks;

use clr_generate::{Seeded, world_program};
use clr_scenario::Scenario;
use clr_tests::mixed::{
    Bug, Examined, Failure, First, Plan, ReferenceWalker, Staged, Way, WrongWalk, examine, shrink,
    walk_staged,
};
use clr_tests::{cases, first_seed};
