use super::{StoryLine, StoryWriter, Topic};
use crate::clause::Clause;
use crate::explain::{
    ChainFrame, DropReason, EntryCheck, Event, FrameDestination, HiddenReason, NamedAddress, Names,
    SilentReason, WalkStart,
};
use crate::generation::Generation;
use crate::profiling::{HResult, ProfilerCallback, SuspensionReason};
use crate::{ContextSafety, FrameKind, Funclet, Outcome};
use clr_walker::profiling::{FunctionId, SnapshotFlags, ThreadId};

/// Names for addresses: managed code from 0x1000 on, in methods of 0x100 bytes each; native code
/// from 0x8000 on.
struct Addresses;

impl Names for Addresses {
    fn function(&self, id: FunctionId) -> Option<String> {
        (id.0 < 0x10).then(|| format!("App.F{}", id.0))
    }

    fn place(&self, address: u64) -> NamedAddress {
        match address {
            0x1000..0x2000 => NamedAddress::Managed {
                method: format!("App.F{}", address / 0x100 % 0x10),
                offset: address % 0x100,
            },
            0x8000..0x9000 => NamedAddress::Native(format!("coreclr.dll+{:#x}", address - 0x8000)),
            _ => NamedAddress::Unknown { address },
        }
    }
}

fn tell(generation: Generation, events: &[Event]) -> Vec<StoryLine> {
    let chain = [
        ChainFrame { at: 0x5000, kind: Some(FrameKind::Gc), leads_to: FrameDestination::Nowhere },
        ChainFrame {
            at: 0x5100,
            kind: Some(FrameKind::HelperMethod),
            leads_to: FrameDestination::Managed(0x1322),
        },
    ];
    StoryWriter { generation, names: &Addresses, chain: &chain }.write(events)
}

fn text(lines: &[StoryLine]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| format!("{}: {line}", line.kind.name())).collect();
    lines.join("\n")
}

const CALLED: Event =
    Event::Called { thread: ThreadId(0), flags: SnapshotFlags(1), seed: Some(0x1040) };

const fn managed(ip: u64) -> Event {
    Event::Managed {
        function: FunctionId(ip / 0x100 % 0x10),
        ip,
        rsp: ip + 0x4000,
        caller_sp: ip + 0x4100,
    }
}

const fn reported(ip: u64, funclet: Option<Funclet>) -> Event {
    let function = FunctionId(ip / 0x100 % 0x10);
    Event::ReportedManaged { function, ip, rsp: ip + 0x4000, funclet, context: true }
}

const fn dropped(at: u64, kind: Option<FrameKind>, why: DropReason) -> Event {
    Event::FrameDropped { at, kind, why }
}

/// Returns one of each event that gets a sentence of its own.
fn every_event() -> Vec<Event> {
    let mut events = vec![
        CALLED,
        Event::Called { thread: ThreadId(0x70), flags: SnapshotFlags(0), seed: None },
        Event::Target { object: ThreadId(0x70), other: true },
        Event::Target { object: ThreadId(0x70), other: false },
        Event::Detaching,
        Event::NotStarted,
        Event::SnapshotNotEnabled,
        Event::BadFlags(SnapshotFlags(2)),
        Event::NoManagedThread,
        Event::GcSpecial,
        Event::NoGc,
        Event::HijackLocked,
        Event::SuspensionInProgress,
        Event::SuspensionForbidden(1),
        Event::SuspensionForbidden(2),
        Event::OtherThread,
        Event::OtherCooperativeThread,
        Event::NoSuspensionNeeded,
        Event::InvalidTarget,
        Event::SuspensionFailed,
        Event::Suspended(ThreadId(0x70)),
        Event::Resumed(ThreadId(0x70)),
        Event::Mode { cooperative: true },
        Event::Mode { cooperative: false },
        Event::ContextUnreadable,
        Event::CodeManagerBusy { ip: 0x1040 },
        Event::ManagedButPreemptive { ip: 0x1040 },
        Event::FrameBelowSp { frame: 0x5000, rsp: 0x5008 },
        Event::OwnContext { ip: 0x1040 },
        Event::SeedUnmanaged { ip: 0x8123, own: true },
        Event::SeedUnmanaged { ip: 0x9123, own: true },
        Event::SeedUnmanaged { ip: 0x8123, own: false },
        Event::SeedUnmanaged { ip: 0, own: false },
        Event::SeedManaged { ip: 0x1040 },
        Event::UnwindingNatively,
        Event::InconsistentExceptions,
        Event::Unhijacked { slot: 0x5038, address: 0x1120 },
        Event::InitialNative,
        Event::FrameCompleted { at: 0x5100 },
        Event::Aborted(HResult::FALSE),
        Event::Injected(HResult::FAIL),
        Event::OffStack { rsp: 0x9000, stack: (0x5000, 0x6000) },
        Event::NoFrame { at: 0x5000, word: 0x77 },
        Event::NeverLeft { at: 0x5000, ip: 0x8123 },
        Event::CannotUnwind { ip: 0x1040 },
        Event::CannotUnwindHelper { ip: 0x8123 },
        Event::SeedTooShort { readable: 0x4C0, needed: 0x4D8 },
        Event::Fault { at: 0x77 },
        Event::BadCookie { at: 0x5FF8 },
        Event::NullCallback,
        Event::Empty,
        Event::FuncletMet { ip: 0x1090, parent: Some(0x5500) },
        Event::FuncletMet { ip: 0x1090, parent: None },
    ];
    events.extend(every_choice());
    events
}

/// Returns events with each of the values that have a text.
fn every_choice() -> Vec<Event> {
    let mut events = Vec::new();
    events.extend(
        [
            ContextSafety::Safe,
            ContextSafety::InSystemCall,
            ContextSafety::InExceptionDispatch,
            ContextSafety::NotReported,
            ContextSafety::Unreadable,
        ]
        .map(|safety| Event::ContextUnsafe { safety }),
    );
    events.extend(
        [WalkStart::FrameChain, WalkStart::Seed, WalkStart::OwnContext, WalkStart::DebuggerContext]
            .map(Event::Started),
    );
    events.extend(
        [
            ProfilerCallback::RuntimeThreadSuspended(ThreadId(0x70)),
            ProfilerCallback::RuntimeThreadResumed(ThreadId(0x70)),
            ProfilerCallback::RuntimeSuspendStarted(SuspensionReason::Profiler),
            ProfilerCallback::RuntimeSuspendFinished,
            ProfilerCallback::RuntimeResumeStarted,
            ProfilerCallback::RuntimeResumeFinished,
        ]
        .map(Event::CalledBack),
    );
    events.extend(
        [SilentReason::Frame, SilentReason::Dynamic, SilentReason::ExceptionHandling]
            .map(|why| Event::NotReported { at: 0x1040, why }),
    );
    events.extend(
        [
            HiddenReason::IlStub,
            HiddenReason::Funclet,
            HiddenReason::BelowFunclet,
            HiddenReason::Unwound,
        ]
        .map(|why| Event::Hidden { ip: 0x1040, why }),
    );
    events.extend(
        [
            FrameKind::InlinedCall,
            FrameKind::PrestubMethod,
            FrameKind::StubHelper,
            FrameKind::HelperMethod,
            FrameKind::Hijack,
            FrameKind::RedirectedThread,
            FrameKind::FaultingException,
            FrameKind::SoftwareException,
            FrameKind::FuncEval,
            FrameKind::TailCall,
            FrameKind::ComMethod,
            FrameKind::Gc,
        ]
        .map(|kind| Event::FrameFollowed { at: 0x5000, kind, ip: 0x1040, rsp: 0x5100 }),
    );
    events
}

#[test]
fn every_event_has_a_sentence() {
    for generation in Generation::ALL {
        for line in tell(generation, &every_event()) {
            assert!(!line.text.is_empty() && !line.text.contains("  "), "{line:?}");
            assert!(!line.text.ends_with('.') && line.text.len() < 200, "{}", line.text);
        }
    }
    insta::assert_snapshot!(
        "every_event",
        text(&tell(Generation::CoreClr31Windows, &every_event()))
    );
}

#[test]
fn related_events_are_one_sentence() {
    let below = DropReason::BelowCallerSp(0x5140);
    let native = DropReason::LeadsToUnmanagedCode;
    let events = [
        CALLED,
        Event::Passed(EntryCheck::NotDetaching),
        Event::Passed(EntryCheck::Started),
        Event::Passed(EntryCheck::SnapshotEnabled),
        Event::Passed(EntryCheck::InfoFlags),
        Event::Target { object: ThreadId(0x70), other: false },
        Event::Passed(EntryCheck::HijackLock),
        Event::Passed(EntryCheck::NoSuspensionInProgress),
        Event::Passed(EntryCheck::ForbidSuspend),
        Event::Mode { cooperative: false },
        Event::SeedIgnored,
        Event::Passed(EntryCheck::ContextSafe),
        Event::Passed(EntryCheck::Exceptions),
        Event::Started(WalkStart::FrameChain),
        managed(0x1040),
        dropped(0x5000, Some(FrameKind::InlinedCall), below),
        dropped(0x5010, None, below),
        reported(0x1040, None),
        managed(0x1150),
        dropped(0x5020, Some(FrameKind::Gc), DropReason::BelowCallerSp(0x5250)),
        Event::FuncletMet { ip: 0x1150, parent: Some(0x5900) },
        Event::Hidden { ip: 0x1150, why: HiddenReason::Funclet },
        Event::Hidden { ip: 0x8000, why: HiddenReason::BelowFunclet },
        managed(0x1260),
        Event::Hidden { ip: 0x1260, why: HiddenReason::BelowFunclet },
        managed(0x1370),
        Event::Hidden { ip: 0x1370, why: HiddenReason::Unwound },
        managed(0x1480),
        reported(0x1480, Some(Funclet::Filter)),
        Event::ReportedMarker { ip: 0x8222, rsp: 0x5580, context: true },
        Event::ReportedMarker { ip: 0x9222, rsp: 0x5588, context: false },
        dropped(0x5600, Some(FrameKind::Gc), DropReason::LeadsNowhere),
        dropped(0x5610, Some(FrameKind::DebuggerExit), DropReason::LeadsNowhere),
        dropped(0x5620, Some(FrameKind::PrestubMethod), native(0x8333)),
        dropped(0x5630, Some(FrameKind::ComMethod), native(0x9333)),
        managed(0x1590),
        reported(0x1590, Some(Funclet::Handler)),
        Event::Aborted(HResult::FALSE),
        Event::Ended(Outcome::Returned(HResult::ABORTED)),
    ];
    insta::assert_snapshot!("together", text(&tell(Generation::CoreClr31Windows, &events)));
}

#[test]
fn many_names_are_counted() {
    let why = DropReason::LeadsNowhere;
    let frames = |count| {
        let events: Vec<_> =
            (0..count).map(|n| dropped(0x5000 + 8 * n, Some(FrameKind::Gc), why)).collect();
        let lines = tell(Generation::Net9Unix, &events);
        assert_eq!(lines.len(), 1);
        lines[0].text.clone()
    };
    assert_eq!(
        frames(4),
        "GCFrame at 0x5000, GCFrame at 0x5008, GCFrame at 0x5010, GCFrame at 0x5018 lead nowhere"
    );
    assert_eq!(frames(5), "5 Frames from GCFrame at 0x5000 to GCFrame at 0x5020 lead nowhere");
}

#[test]
fn the_position_where_a_walk_breaks_off_is_named() {
    let events = [
        CALLED,
        managed(0x1040),
        Event::Fault { at: 0x77 },
        Event::Ended(Outcome::Returned(HResult::UNEXPECTED)),
    ];
    let texts: Vec<_> =
        tell(Generation::Net10Windows, &events).into_iter().map(|line| line.text).collect();
    assert_eq!(
        texts[1..],
        [
            "the walk is at App.F0+0x40, rsp 0x5040, caller SP 0x5140",
            "memory at 0x77 cannot be read",
            "ended: E_UNEXPECTED after 0 callbacks"
        ]
    );
    let reported = [CALLED, managed(0x1040), reported(0x1040, None), Event::Fault { at: 0x77 }];
    assert_eq!(tell(Generation::Net10Windows, &reported).len(), 3);
}

/// A hint about another call is given only where its result is certain.
#[test]
fn advice_is_no_guess() {
    let advice = |other, own| {
        let events = [
            CALLED,
            Event::Target { object: ThreadId(0x70), other },
            Event::SeedUnmanaged { ip: 0x8001, own },
        ];
        let lines = tell(Generation::CoreClr31Windows, &events);
        let (_, advice) = lines[2].text.split_once("coreclr.dll+0x1").unwrap();
        advice.to_owned()
    };
    assert_eq!(
        advice(false, false),
        "; without a seed, the Frame chain would have led to App.F3+0x22"
    );
    // Without this seed the target's own context would have been used, which is unknown.
    assert_eq!(advice(true, false), "");
    assert_eq!(
        advice(true, true),
        "; that its Frame chain would have led to App.F3+0x22 does not count"
    );
    let unknown = |leads_to| {
        let kind = Some(FrameKind::HelperMethod);
        let managed = ChainFrame { at: 8, kind, leads_to: FrameDestination::Managed(0x1000) };
        crate::explain::first_managed(&[ChainFrame { at: 0, kind, leads_to }, managed])
    };
    assert_eq!(unknown(FrameDestination::Unknown), None);
    assert_eq!(unknown(FrameDestination::Nowhere), Some(0x1000));
    assert_eq!(unknown(FrameDestination::Unmanaged(0x8000)), Some(0x1000));
}

#[test]
fn a_call_within_a_callback_counts_for_itself() {
    let end = Event::Ended(Outcome::Returned(HResult::OK));
    let report = [managed(0x1040), reported(0x1040, None)];
    let events = [&[CALLED][..], &report, &[CALLED], &report, &[end], &report, &[end]].concat();
    let lines = tell(Generation::Net9Unix, &events);
    let reported: Vec<_> = lines.iter().map(|line| (line.depth, line.callback)).collect();
    assert_eq!(
        reported,
        [(0, None), (0, Some(0)), (1, None), (1, Some(0)), (1, None), (0, Some(1)), (0, None)]
    );
    assert_eq!(lines[4].text, "ended: S_OK after 1 callback");
    assert_eq!(lines[6].text, "ended: S_OK after 2 callbacks");
    assert_eq!(lines[6].kind, Topic::End);
}

#[test]
fn clauses_are_listed_once() {
    let events = [CALLED, managed(0x1040), reported(0x1040, None), reported(0x1040, None)];
    let lines = tell(Generation::CoreClr31Windows, &events);
    let [_, first, second] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(first.clauses, second.clauses);
    assert_eq!(first.brackets(), "[C-058, C-090, C-093, C-094, C-100, C-102, C-158]");
    assert_eq!(second.brackets(), "[C-058]");
    let mut without = second.clone();
    without.clauses = Vec::new();
    assert_eq!(without.to_string(), without.text);
    assert_eq!(second.clauses[0], Clause::new(58));
}
