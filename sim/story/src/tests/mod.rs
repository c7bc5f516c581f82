pub(super) mod handmade;
mod hazards;
mod searched;
mod stories;

use crate::tests::handmade::{ByHand as _, MAIN, SAMPLER, WORKER, edge, history, sampled};
use crate::{Hazard, NoHazard};
use clr_explore::{
    BlockReason, Budget, Coverage, CurrentThread, Edge, History, LockName, ProfilerRule, Report,
    ScheduleString, Setup, TestedProcess, ThreadIndex, ThreadKind, ThreadStatus, ThreadSummary,
    Turn, TurnEvent, Verdict, check,
};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_runtime::{Lock, OsThreadId, Outcome};
