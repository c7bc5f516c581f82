//! Tests of walks recorded in real CLRs.

mod answers;
mod collection;
mod questions;
mod recorded_stacks;
mod replays;
mod unaided_walks;

use crate::recordings::collection::{check, in_directory, recordings};
use clr_recording::{
    CallbackLine, Hex, RecordedCode, Recording, RecordingReplay, SyntheticNative, WalkLine,
};
use clr_runtime::frame::FrameShape;
use clr_runtime::generation::{EmptyWalk, Generation, Known, QUESTIONS, Question};
use clr_runtime::profiling::{HResult, Policy, PolicyWalker};
use clr_tests::recorded::{Counts, Recorded, Unwalked, claim, is_fit, policies, table, walk};
use clr_unwind::{Gpr, Registers};
use clr_walker::mixed::{
    Advice, Completeness, FrameKind, MixedStack, Reason, Seed, SeedRefused, SeenBy, Stopped,
    WalkBuffer, advice,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) use collection::embedded;
