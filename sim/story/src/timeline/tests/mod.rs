//! Tests of drawings, and of their parts.

mod folds;
mod lanes;
mod pages;
mod rows;
mod states;
mod texts;

use crate::tests::handmade::{ByHand as _, MAIN, SAMPLER, WORKER, edge, history, sampled};
use crate::timeline::fold::{Item, Link, items};
use crate::timeline::state::{Life, State};
use crate::timeline::{RowOptions, Timeline, TimelineRow, Tone};
use clr_explore::{
    BlockReason, Edge, History, LockName, ThreadIndex, ThreadKind, ThreadStatus, Turn, TurnEvent,
};
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{Lock, Outcome};
use clr_walker::profiling::HResult;
