//! The clauses that apply to each event.

use super::{DropReason, EntryCheck, Event, HiddenReason, SilentReason, WalkStart};
use crate::clause::Clause;
use crate::frame::FrameShape;
use crate::generation::Generation;
use crate::profiling::ProfilerCallback;
use crate::{FrameKind, Funclet};

macro_rules! clauses {
    ($($number:literal)*) => {{
        const CLAUSES: &[Clause] = &[$(Clause::new($number)),*];
        CLAUSES
    }};
}

/// The clauses that no event of a call has to name: they are about code and its unwind data, the program, other methods, or
/// time. An event names C-133 of a server GC's thread alone, and not of a callback of the GC.
const BEYOND_CALLS: [u16; 81] = [
    23, 30, 41, 46, 47, 49, 54, 62, 63, 64, 68, 88, 89, 101, 108, 114, 115, 116, 117, 118, 119,
    120, 121, 122, 123, 124, 125, 126, 127, 129, 131, 133, 135, 136, 137, 138, 139, 140, 141, 142,
    143, 144, 146, 147, 148, 149, 150, 151, 152, 153, 155, 156, 157, 159, 164, 165, 166, 167, 168,
    169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187,
    188, 189, 190,
];

impl Clause {
    /// Returns true if the clause applies to events of calls, so that a call shows whether it has decided anything.
    #[must_use]
    pub fn decides_calls(self) -> bool {
        !BEYOND_CALLS.contains(&self.number())
    }

    /// Returns true if the clause is a rule of this generation.
    #[must_use]
    pub fn holds_on(self, generation: Generation) -> bool {
        self.entry().is_some_and(|entry| entry.generations.contains(generation))
    }
}

impl Event {
    /// Returns the clauses that apply to the event in a runtime of `generation`, the decisive one
    /// first.
    pub fn clauses(&self, generation: Generation) -> impl Iterator<Item = Clause> {
        self.all_clauses().iter().copied().filter(move |clause| clause.holds_on(generation))
    }

    /// Returns the clauses including those that hold only in other generations.
    fn all_clauses(&self) -> &'static [Clause] {
        match *self {
            Self::Called { .. } => clauses![21 22],
            Self::Passed(passed) => match passed {
                EntryCheck::Started | EntryCheck::SnapshotEnabled => clauses![6],
                EntryCheck::InfoFlags => clauses![8],
                EntryCheck::HijackLock => clauses![14],
                EntryCheck::NotDetaching
                | EntryCheck::ContextSafe
                | EntryCheck::NoSuspensionInProgress
                | EntryCheck::ForbidSuspend => clauses![],
                EntryCheck::Exceptions => clauses![48],
            },
            Self::Target { other: false, .. } => clauses![9 13],
            Self::Detaching => clauses![1],
            Self::NotStarted => clauses![2 6],
            Self::SnapshotNotEnabled => clauses![3 4 5 6],
            Self::BadFlags(_) => clauses![7 8],
            Self::NoManagedThread => clauses![10 133],
            Self::GcSpecial => clauses![11],
            Self::NoGc => clauses![12],
            Self::HijackLocked => clauses![14 15 16],
            Self::SuspensionInProgress => clauses![17],
            Self::SuspensionForbidden(_) => clauses![18 132],
            Self::OtherThread => clauses![19],
            Self::OtherCooperativeThread => clauses![20],
            Self::NoSuspensionNeeded => clauses![31 128],
            Self::InvalidTarget => clauses![28],
            Self::SuspensionFailed => clauses![27],
            Self::Suspended(_) => clauses![26],
            Self::Resumed(_) => clauses![26 25],
            Self::CalledBack(
                ProfilerCallback::RuntimeThreadSuspended(_)
                | ProfilerCallback::RuntimeThreadResumed(_),
            ) => clauses![29],
            Self::SeedIgnored => clauses![37],
            Self::ContextUnsafe { .. } => clauses![32],
            Self::ContextUnreadable => clauses![35],
            Self::CodeManagerBusy { .. } => clauses![36],
            Self::ManagedButPreemptive { .. } => clauses![34],
            Self::FrameBelowSp { .. } => clauses![33],
            Self::OwnContext { .. } => clauses![43],
            Self::SeedUnmanaged { own: true, .. } => clauses![44 39],
            Self::SeedUnmanaged { ip: 0, .. } => clauses![42 38],
            Self::SeedUnmanaged { .. } => clauses![38 39],
            Self::SeedManaged { .. } => clauses![40],
            Self::UnwindingNatively => clauses![48 134],
            Self::InconsistentExceptions => clauses![50],
            Self::Started(start) => start_clauses(start),
            Self::Unhijacked { .. } => clauses![77],
            Self::InitialNative => clauses![60],
            Self::Managed { .. } => clauses![145 57],
            Self::FrameDropped { why, kind, .. } => dropped_clauses(why, kind),
            Self::NeverLeft { .. } => clauses![79],
            Self::FrameFollowed { kind, .. } => frame_clauses(kind),
            Self::FrameCompleted { .. } => clauses![72],
            Self::Hidden { why, .. } => hidden_clauses(why),
            Self::FuncletMet { parent: Some(_), .. } => clauses![81 83],
            Self::FuncletMet { parent: None, .. } => clauses![84],
            Self::NotReported { why, .. } => match why {
                SilentReason::Frame => clauses![65],
                SilentReason::Dynamic => clauses![66],
                SilentReason::ExceptionHandling => clauses![87 163],
            },
            Self::ReportedManaged { funclet: Some(Funclet::Filter), .. } => clauses![85 58 100],
            Self::ReportedManaged { funclet: Some(Funclet::Handler), .. } => clauses![154 58 100],
            Self::ReportedManaged { context: true, .. } => {
                clauses![58 90 93 94 100 102 103 158 161]
            }
            Self::ReportedManaged { .. } => clauses![58 90 92 100],
            Self::ReportedMarker { context: true, .. } => clauses![59 61 91 93 95 96 100],
            Self::ReportedMarker { .. } => clauses![59 61 91 92 100],
            Self::Aborted(_) => clauses![105 104],
            Self::OffStack { .. } => clauses![109 110 113 55],
            Self::ResumableFrame { .. } => clauses![75 113],
            Self::Fault { .. } => clauses![111 113],
            Self::BadCookie { .. } => clauses![112],
            Self::SeedTooShort { .. } => clauses![162 53],
            Self::NullCallback => clauses![24],
            Self::Empty => clauses![106 107],
            Self::Ended(_) => clauses![25],
            Self::Target { other: true, .. }
            | Self::Mode { .. }
            | Self::Injected(_)
            | Self::CalledBack(_)
            | Self::NoFrame { .. }
            | Self::CannotUnwind { .. }
            | Self::CannotUnwindHelper { .. } => clauses![],
        }
    }
}

/// Returns the clauses of each place where a walk can start.
fn start_clauses(start: WalkStart) -> &'static [Clause] {
    match start {
        WalkStart::FrameChain => clauses![45 97],
        WalkStart::Seed => clauses![51 52 53],
        WalkStart::OwnContext => clauses![43],
        WalkStart::DebuggerContext => clauses![],
    }
}

/// Returns the clause of each reason to drop a Frame.
fn dropped_clauses(why: DropReason, kind: Option<FrameKind>) -> &'static [Clause] {
    match why {
        DropReason::BelowCallerSp(_) => clauses![56],
        DropReason::LeadsNowhere if kind == Some(FrameKind::InlinedCall) => clauses![71],
        DropReason::LeadsNowhere => clauses![78],
        DropReason::LeadsToUnmanagedCode(_) => clauses![79],
    }
}

/// Returns the clause of each reason to hide an item.
fn hidden_clauses(why: HiddenReason) -> &'static [Clause] {
    match why {
        HiddenReason::IlStub => clauses![67],
        HiddenReason::Funclet => clauses![81],
        HiddenReason::BelowFunclet => clauses![81 82],
        HiddenReason::Unwound => clauses![86],
    }
}

/// Returns the clause of each kind of Frame.
fn frame_clauses(kind: FrameKind) -> &'static [Clause] {
    match kind.shape() {
        FrameShape::InlinedCall => clauses![70 98 99],
        FrameShape::HelperMethod => clauses![72],
        FrameShape::FramedMethod if kind == FrameKind::PrestubMethod => clauses![73 69 130],
        FrameShape::FramedMethod | FrameShape::Transition => clauses![73],
        FrameShape::Hijack => clauses![74],
        FrameShape::Resumable => clauses![76 97],
        FrameShape::Faulting => clauses![160 97],
        FrameShape::UnmanagedToManaged => clauses![80],
        FrameShape::Software | FrameShape::FuncEval | FrameShape::TailCall | FrameShape::Mark => {
            clauses![]
        }
    }
}

#[cfg(test)]
mod tests;
