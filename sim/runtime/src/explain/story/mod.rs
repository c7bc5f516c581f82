//! Stories: the events of a call as sentences.

#[cfg(test)]
mod tests;
mod words;

use super::{ChainFrame, DropReason, Event, Names, SilentReason, target_chain};
use crate::clause::Clause;
use crate::generation::Generation;
use crate::{Runtime, TargetMemory};
use core::fmt;
use std::collections::BTreeSet;

/// Topic of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The call and its arguments.
    Call,
    /// A check that was passed, or an action before the walk.
    Check,
    /// The start of the walk.
    Start,
    /// A step of the walk.
    Walk,
    /// A call of the StackSnapshotCallback.
    Callback,
    /// A reason why the call did not return what was asked for.
    Refusal,
    /// The end of the call.
    End,
}

impl Topic {
    /// Returns the kind as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Check => "check",
            Self::Start => "start",
            Self::Walk => "walk",
            Self::Callback => "callback",
            Self::Refusal => "refusal",
            Self::End => "end",
        }
    }
}

/// A sentence of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoryLine {
    /// Topic of the sentence.
    pub kind: Topic,
    /// Nesting depth of the call: 1 for a call that a callback has made.
    pub depth: usize,
    /// Number of the callback, counted from 0, if the sentence is about one.
    pub callback: Option<u32>,
    /// Clauses that apply, the decisive one first.
    pub clauses: Vec<Clause>,
    /// True if an earlier line of the story has named the same clauses.
    pub repeats: bool,
    /// Text of the sentence.
    pub text: String,
}

impl StoryLine {
    /// Returns the clauses in brackets: all of them, or only the first if an earlier line has named
    /// them all.
    pub fn brackets(&self) -> String {
        let shown = if self.repeats { 1 } else { self.clauses.len() };
        let names: Vec<_> = self.clauses.iter().take(shown).map(ToString::to_string).collect();
        if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) }
    }
}

/// Formats the sentence and its clauses.
impl fmt::Display for StoryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.brackets();
        let gap = if brackets.is_empty() { "" } else { " " };
        write!(f, "{}{gap}{brackets}", self.text)
    }
}

/// Turns events into stories.
#[derive(Clone, Copy)]
pub struct StoryWriter<'n> {
    /// Runtime that the call was made in.
    pub generation: Generation,
    /// Names of functions and addresses.
    pub names: &'n dyn Names,
    /// The target's Frame chain, if it is known, for hints about the code it would have led to.
    pub chain: &'n [ChainFrame],
}

/// State in the middle of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Scene {
    /// The target is not the caller.
    other: bool,
    /// Last managed frame that the walk reached.
    managed: Option<Event>,
    /// The managed frame has not been mentioned yet.
    is_new: bool,
    /// Number of callbacks so far.
    callbacks: u32,
}

/// Returns the story of whole calls in a runtime, with the names that it knows.
pub fn story<M: TargetMemory>(runtime: &Runtime<'_, M>, events: &[Event]) -> Vec<StoryLine> {
    let chain = target_chain(runtime, events);
    let generation = runtime.generation;
    StoryWriter { generation, names: runtime, chain: &chain }.write(events)
}

impl StoryWriter<'_> {
    /// Returns the story of these events, which must be those of whole calls.
    pub fn write(&self, events: &[Event]) -> Vec<StoryLine> {
        let mut lines = Vec::new();
        let mut scenes: Vec<Scene> = Vec::new();
        let mut named = BTreeSet::new();
        let mut rest = events;
        while let [event, ..] = rest {
            let run = run(rest);
            if matches!(event, Event::Called { .. }) {
                scenes.push(Scene::default());
            }
            let depth = scenes.len().saturating_sub(1);
            let mut no_scene = Scene::default();
            let scene = scenes.last_mut().unwrap_or(&mut no_scene);
            let merged = &rest[..run];
            rest = &rest[run..];
            if let Event::Managed { .. } = event {
                scene.managed = Some(*event);
                scene.is_new = true;
                continue;
            }
            let mut say = |event: &Event, clauses: Vec<Clause>, text, callback| {
                let repeats = !clauses.is_empty() && !named.insert(clauses.clone());
                let kind = kind(event);
                lines.push(StoryLine { kind, depth, callback, clauses, repeats, text });
            };
            // The position is relevant where a walk breaks off.
            if scene.is_new
                && ends_walk(event)
                && let Some(managed) = scene.managed
            {
                scene.is_new = false;
                say(&managed, self.clauses(&[managed]), self.words(&managed, scene), None);
            }
            if speaks_of_frame(event) {
                scene.is_new = false;
            }
            let callback = match event {
                Event::ReportedManaged { .. } | Event::ReportedMarker { .. } => {
                    Some(scene.callbacks)
                }
                _ => None,
            };
            if let Event::Target { other, .. } = event {
                scene.other = *other;
            }
            // The result of a run determines its topic.
            let of = match merged {
                [Event::FrameFollowed { .. }, resumable] => resumable,
                _ => event,
            };
            say(of, self.clauses(merged), self.words_of_run(merged, scene), callback);
            scene.callbacks += u32::from(callback.is_some());
            // The last managed frame in a run of hidden frames is remembered.
            if let Some(managed) =
                merged.iter().rfind(|event| matches!(event, Event::Managed { .. }))
            {
                scene.managed = Some(*managed);
            }
            if matches!(event, Event::Ended(_)) {
                scenes.pop();
            }
        }
        lines
    }

    /// Returns the clauses of a run. Skipped frames do not count.
    fn clauses(&self, run: &[Event]) -> Vec<Clause> {
        let mut clauses = Vec::new();
        let run = match run {
            [Event::FrameFollowed { .. }, resumable @ ..] if !resumable.is_empty() => resumable,
            run => run,
        };
        let is_passed_over = |event: &&Event| matches!(event, Event::Managed { .. });
        for event in run.iter().filter(|event| run.len() == 1 || !is_passed_over(event)) {
            for clause in event.clauses(self.generation) {
                if !clauses.contains(&clause) {
                    clauses.push(clause);
                }
            }
        }
        clauses
    }
}

/// Returns the number of leading events that form one sentence.
fn run(events: &[Event]) -> usize {
    let [first, others @ ..] = events else { return 0 };
    match first {
        Event::Passed(_) => {
            1 + others.iter().take_while(|event| matches!(event, Event::Passed(_))).count()
        }
        Event::FrameDropped { why, .. } => {
            let same = |event: &&Event| match event {
                Event::FrameDropped { why: other, .. } => is_alike(*why, *other),
                _ => false,
            };
            1 + others.iter().take_while(same).count()
        }
        Event::Mode { cooperative: false } if others.first() == Some(&Event::SeedIgnored) => 2,
        Event::FrameFollowed { .. } if matches!(others, [Event::ResumableFrame { .. }, ..]) => 2,
        // The funclet itself is hidden too.
        Event::FuncletMet { .. } if matches!(others, [Event::Hidden { .. }, ..]) => 2,
        // The fault is the result of the first event.
        Event::NoFrame { .. } | Event::SeedTooShort { .. } | Event::NullCallback
            if matches!(others, [Event::Fault { .. }, ..]) =>
        {
            2
        }
        Event::Hidden { why, .. } => {
            let mut run = 1;
            for (event, n) in others.iter().zip(2..) {
                match event {
                    Event::Managed { .. } => {}
                    Event::Hidden { why: other, .. } if why == other => run = n,
                    _ => break,
                }
            }
            run
        }
        _ => 1,
    }
}

fn is_alike(one: DropReason, other: DropReason) -> bool {
    match (one, other) {
        (DropReason::LeadsToUnmanagedCode(_), DropReason::LeadsToUnmanagedCode(_)) => true,
        _ => one == other,
    }
}

/// Returns true if the event is about the last managed frame.
const fn speaks_of_frame(event: &Event) -> bool {
    matches!(
        event,
        Event::Hidden { .. }
            | Event::FuncletMet { .. }
            | Event::ReportedManaged { .. }
            | Event::NotReported {
                why: SilentReason::Dynamic | SilentReason::ExceptionHandling,
                ..
            }
    )
}

/// Returns true if the event ends the walk early without a request of the callback.
const fn ends_walk(event: &Event) -> bool {
    matches!(
        event,
        Event::Fault { .. }
            | Event::NoFrame { .. }
            | Event::NeverLeft { .. }
            | Event::BadCookie { .. }
            | Event::OffStack { .. }
            | Event::Ended(_)
    )
}

/// Returns the topic of the sentence about an event.
const fn kind(event: &Event) -> Topic {
    match event {
        Event::Called { .. } => Topic::Call,
        Event::Passed(_)
        | Event::Target { .. }
        | Event::Mode { .. }
        | Event::NoSuspensionNeeded
        | Event::Suspended(_)
        | Event::CalledBack(_)
        | Event::SeedIgnored
        | Event::OwnContext { .. }
        | Event::SeedManaged { .. } => Topic::Check,
        Event::Started(_) | Event::Unhijacked { .. } | Event::InitialNative => Topic::Start,
        Event::Managed { .. }
        | Event::FrameDropped { .. }
        | Event::FrameFollowed { .. }
        | Event::FrameCompleted { .. }
        | Event::Hidden { .. }
        | Event::FuncletMet { .. }
        | Event::NotReported { .. } => Topic::Walk,
        Event::ReportedManaged { .. } | Event::ReportedMarker { .. } => Topic::Callback,
        Event::Aborted(_) | Event::Resumed(_) | Event::Ended(_) => Topic::End,
        _ => Topic::Refusal,
    }
}
