//! Clauses that are shown by the order of a call's events, not by a single event.

use clr_runtime::FrameKind;
use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::explain::{Event, HiddenReason, SilentReason, WalkStart};
use clr_runtime::profiling::HResult;

/// Returns the clauses that the events of one call show together.
pub(super) fn shown(events: &[Event]) -> Vec<Clause> {
    let mut shown = Vec::new();
    let mut show = |holds: bool, number: u16| {
        if holds {
            shown.push(Clause::new(number));
        }
    };
    let is_marker = |event: &Event| matches!(event, Event::ReportedMarker { .. });
    let is_managed = |event: &Event| matches!(event, Event::ReportedManaged { .. });
    let has = |wanted: &dyn Fn(&Event) -> bool| events.iter().any(wanted);
    let reports: Vec<_> =
        events.iter().filter(|event| is_marker(event) || is_managed(event)).collect();
    let seeded = has(&|event| matches!(event, Event::Started(WalkStart::Seed)));
    let ended = |result: HResult| has(&|event| *event == Event::Ended(Outcome::Returned(result)));

    show(reports.first().is_some_and(|event| is_marker(event)), 64);
    show(reports.windows(2).any(|pair| is_marker(pair[0]) && is_marker(pair[1])), 63);
    show(reports.windows(2).any(|pair| is_managed(pair[0]) && is_managed(pair[1])), 57);
    // The last managed frame before the marker was not reported.
    let mut hidden = false;
    for event in events {
        match event {
            Event::Managed { .. } => hidden = false,
            Event::Hidden { why: HiddenReason::IlStub, .. }
            | Event::NotReported { why: SilentReason::Dynamic, .. } => hidden = true,
            Event::ReportedMarker { .. } => show(hidden, 62),
            _ => {}
        }
    }
    let unwound = has(&|event| matches!(event, Event::Hidden { why: HiddenReason::Unwound, .. }));
    show(unwound && reports.first().is_some_and(|event| is_marker(event)), 153);
    let fault = has(&|event| matches!(event, Event::Fault { .. }));
    show(fault && seeded && reports.is_empty() && ended(HResult::UNEXPECTED), 54);
    let prestub = has(&|event| {
        matches!(event, Event::FrameDropped { kind: Some(FrameKind::PrestubMethod), .. })
    });
    show(prestub && reports.is_empty() && ended(HResult::OK), 108);
    // Two different activations of one method follow each other.
    let functions: Vec<_> = reports
        .iter()
        .filter_map(|event| match event {
            Event::ReportedManaged { function, ip, .. } => Some((*function, *ip)),
            _ => None,
        })
        .collect();
    show(functions.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1), 88);
    shown
}
