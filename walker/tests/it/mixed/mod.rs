//! Whole stacks of a hand-made thread, through a runtime that answers as the test sets it up.

mod advice;
mod bare_epilogue;
mod call_frame;
mod cold_end;
mod hijack_stub;
mod hijacked;
mod image;
mod leaf;
mod mock;
mod popped;
mod redirected;
mod refusals;
mod signals;
mod stack_need;
mod unaided;
mod unreadable;
mod walks;

use crate::mixed::image::{AT_ONCE, Functions, LAZILY, Read, USUAL, eh_frame, walk, walk_read};
use crate::mixed::mock::{
    Done, FRAME, MANAGED, Mock, NATIVE, NATIVE_LEAF, Report, UNKNOWN, function_at, is_managed,
    returns_to, sp,
};
use clr_unwind::cfi::CfiTable;
use clr_unwind::{
    CONTEXT_SIZE, CfiSections, CodeMap, CodeRegion, FunctionTable, Gpr, Position, RegionKind,
    Registers, Section, Sections, Trust, UnwindError,
};
use clr_walker::mixed::{
    Advice, Completeness, FrameKind, Gap, MixedFrame, MixedStack, Policy, Preparation, Reason,
    RuntimeSuspension, SeedRefused, SeenBy, Source, Stopped, WalkBuffer, Walker,
};
use clr_walker::profiling::{
    CallError, FrameInfo, FunctionId, HResult, ProfilerInfo, SnapshotCallback, SnapshotFlags,
    SnapshotFrame, SnapshotRequest, StackBounds, StackRoot, TargetThread, ThreadContext, ThreadId,
};
