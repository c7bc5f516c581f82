//! Status of each thread after each turn.

use clr_explore::{BlockReason, Edge, History, LockName, ThreadIndex, Turn, TurnEvent};
use std::borrow::Cow;

/// Status of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State<'h> {
    /// Stack, leaf first; empty if it is not known.
    pub(super) stack: &'h [String],
    pub(super) holds: Cow<'h, [LockName]>,
    /// Reason for waiting, in words: "waits for the process heap".
    pub(super) waits: Option<Cow<'h, str>>,
    /// Threads that this one waits for, and the reasons.
    pub(super) edges: Vec<Edge>,
    pub(super) suspended_by: Cow<'h, [ThreadIndex]>,
    pub(super) cooperative: Option<bool>,
    /// Callbacks, hooks and signal handlers that the thread is in, innermost last.
    pub(super) inside: Vec<&'static str>,
    pub(super) life: Life,
}

/// Life cycle of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Life {
    Waiting,
    #[default]
    Lives,
    Ended,
}

impl State<'_> {
    pub(super) fn is_waiting(&self) -> bool {
        self.life == Life::Lives && self.waits.is_some()
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.life == Life::Lives && !self.suspended_by.is_empty()
    }
}

/// Returns the status of each thread after each turn, with the waits at the end.
pub(super) fn states<'h>(history: &'h History, edges: &[Edge]) -> Vec<Vec<State<'h>>> {
    let mut now: Vec<State<'h>> = vec![State::default(); history.threads.len()];
    for turn in history.turns.iter().filter(|turn| begins(turn)) {
        if let Some(state) = now.get_mut(turn.thread.index()) {
            state.life = Life::Waiting;
        }
    }
    let mut all: Vec<Vec<State<'h>>> = Vec::with_capacity(history.turns.len());
    for turn in &history.turns {
        apply_turn(&mut now, turn);
        recorded(history, &mut now, turn);
        all.push(now.clone());
    }
    if let Some(last) = all.last_mut() {
        for edge in edges {
            if let Some(state) = last.get_mut(edge.waits.index())
                && !state.edges.contains(edge)
                && edge.why != BlockReason::Suspended
            {
                state.edges.push(*edge);
            }
        }
    }
    all
}

fn begins(turn: &Turn) -> bool {
    turn.events.contains(&TurnEvent::Begins)
}

/// Derives the status from the events.
fn apply_turn(now: &mut [State<'_>], turn: &Turn) {
    let me = turn.thread;
    let Some(state) = now.get_mut(me.index()) else { return };
    state.waits = None;
    state.edges.clear();
    if state.life == Life::Waiting {
        state.life = Life::Lives;
    }
    for event in &turn.events {
        match *event {
            TurnEvent::Suspended(target) => {
                if let Some(target) = now.get_mut(target.index()) {
                    target.suspended_by.to_mut().push(me);
                }
            }
            TurnEvent::Resumed(target) => {
                if let Some(target) = now.get_mut(target.index()) {
                    remove_last(&mut target.suspended_by, &me);
                }
            }
            other => {
                if let Some(state) = now.get_mut(me.index()) {
                    apply_event(state, other);
                }
            }
        }
    }
}

fn apply_event(state: &mut State<'_>, event: TurnEvent) {
    match event {
        TurnEvent::Acquired(lock) => state.holds.to_mut().push(lock),
        TurnEvent::Released(lock) => remove_last(&mut state.holds, &lock),
        TurnEvent::Waits => state.waits = Some(Cow::Borrowed("waits")),
        TurnEvent::Sleeps(_) => state.waits = Some(Cow::Borrowed("sleeps")),
        TurnEvent::Mode { cooperative } => state.cooperative = Some(cooperative),
        TurnEvent::Callback(kind) => state.inside.push(kind.name()),
        TurnEvent::CallbackOver(kind) => leave(&mut state.inside, kind.name()),
        TurnEvent::Hook => state.inside.push("hook"),
        TurnEvent::HookOver => leave(&mut state.inside, "hook"),
        TurnEvent::Export => state.inside.push("export"),
        TurnEvent::ExportOver => leave(&mut state.inside, "export"),
        TurnEvent::Signal => state.inside.push("signal handler"),
        TurnEvent::SignalOver => leave(&mut state.inside, "signal handler"),
        TurnEvent::Called(method, _) => state.inside.push(method),
        TurnEvent::Returned(method, _) => leave(&mut state.inside, method),
        TurnEvent::Ends => state.life = Life::Ended,
        _ => {}
    }
}

/// Leaves an item, together with all items inside of it.
fn leave(inside: &mut Vec<&'static str>, what: &str) {
    if let Some(place) = inside.iter().rposition(|name| *name == what) {
        inside.truncate(place);
    }
}

fn remove_last<T: Clone + PartialEq>(list: &mut Cow<'_, [T]>, what: &T) {
    if let Some(place) = list.iter().rposition(|item| item == what) {
        list.to_mut().remove(place);
    }
}

/// Replaces the derived status by the recorded one.
fn recorded<'h>(history: &History, now: &mut [State<'h>], turn: &'h Turn) {
    for (state, status) in now.iter_mut().zip(&turn.statuses) {
        let waits = status.edges.iter().filter(|edge| edge.why != BlockReason::Suspended);
        state.edges.clear();
        state.edges.extend(waits);
        let of_edge = state.edges.first().map(|edge| match edge.why {
            BlockReason::Lock(lock) => format!("waits for {}", history.lock_name(lock)),
            why => format!("{why} {}", history.name(edge.for_whom)),
        });
        state.waits = status.waits.as_deref().map(Cow::Borrowed).or(of_edge.map(Cow::Owned));
        state.stack = &status.stack;
        state.holds = Cow::Borrowed(&status.holds);
        state.suspended_by = Cow::Borrowed(&status.suspended_by);
        state.cooperative = status.cooperative;
        if status.ended {
            state.life = Life::Ended;
        }
    }
}
