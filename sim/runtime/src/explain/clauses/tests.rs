use super::*;
use crate::generation::{EmptyWalk, StackCheck};

/// Returns the numbers of the clauses that apply to an event.
fn numbers(event: &Event, generation: Generation) -> Vec<u16> {
    event.clauses(generation).map(Clause::number).collect()
}

/// The first runtime follows other rules than its successors (C-004, C-107, C-110), and those of Windows
/// suspend threads in the OS (C-031).
#[test]
fn an_event_names_the_rules_of_its_generation() {
    let off_stack = Event::OffStack { rsp: 0x9000, stack: (0x5000, 0x6000) };
    for generation in Generation::ALL {
        let expected: [&[u16]; 3] = [
            if generation.has_detach() { &[3, 5, 6] } else { &[4, 6] },
            match generation.stack_check() {
                StackCheck::Readable => &[110, 113],
                StackCheck::Bounds => &[109, 113, 55],
            },
            match generation.empty_walk() {
                EmptyWalk::FailsWithoutFrame => &[107],
                EmptyWalk::FailsWithoutStop => &[106],
            },
        ];
        let events = [&Event::SnapshotNotEnabled, &off_stack, &Event::Empty];
        for (event, expected) in events.into_iter().zip(expected) {
            assert_eq!(numbers(event, generation), expected, "{generation}, {event:?}");
        }
        let expected: &[u16] = match (generation.is_core(), generation.is_unix()) {
            (false, _) => &[],
            (true, true) => &[128],
            (true, false) => &[31, 128],
        };
        assert_eq!(numbers(&Event::NoSuspensionNeeded, generation), expected, "{generation}");
    }
}

#[test]
fn a_frame_is_followed_by_the_rules_of_its_kind() {
    for (kind, expected) in [
        (FrameKind::PrestubMethod, &[73, 69, 130][..]),
        (FrameKind::ExternalMethod, &[73]),
        (FrameKind::StubHelper, &[73]),
        (FrameKind::InlinedCall, &[70, 98, 99]),
        (FrameKind::Hijack, &[74]),
        (FrameKind::Gc, &[]),
    ] {
        let event = Event::FrameFollowed { at: 0x5000, kind, ip: 0x1040, rsp: 0x5100 };
        assert_eq!(numbers(&event, Generation::CoreClr31Windows), expected, "{kind:?}");
    }
}

/// A Frame that leads nowhere is one of a P/Invoke without an active call (C-071), or has no caller (C-078).
#[test]
fn a_frame_is_dropped_for_its_reason() {
    let inlined = Some(FrameKind::InlinedCall);
    for (kind, why, expected) in [
        (inlined, DropReason::LeadsNowhere, 71),
        (Some(FrameKind::Gc), DropReason::LeadsNowhere, 78),
        (None, DropReason::LeadsNowhere, 78),
        (inlined, DropReason::BelowCallerSp(0x5100), 56),
        (inlined, DropReason::LeadsToUnmanagedCode(0x8123), 79),
    ] {
        let event = Event::FrameDropped { at: 0x5000, kind, why };
        assert_eq!(numbers(&event, Generation::CoreClr31Windows), [expected], "{event:?}");
    }
}

/// Each clause is in the list of events above, or in the list of those that no event names.
#[test]
fn each_clause_is_named_by_an_event_or_by_none() {
    let lists = include_str!("../clauses.rs").split("clauses![").skip(1);
    let numbers = lists.filter_map(|list| list.split(']').next());
    let numbers = numbers.flat_map(str::split_whitespace).filter_map(|number| number.parse().ok());
    let named: std::collections::BTreeSet<u16> = numbers.collect();
    for entry in crate::clause::entries() {
        let clause = entry.clause;
        let is_named = named.contains(&clause.number()) && clause.number() != 133;
        assert_eq!(clause.decides_calls(), is_named, "{clause}");
    }
}
