//! An interleaving as JSON that can be embedded in HTML.

use super::Timeline;
use super::state::{Life, State, states};
use super::words::{describe, events, why};
use clr_explore::{History, ThreadKind, Turn, TurnEvent, is_visible};
use std::collections::BTreeMap;

/// Tables of texts and thread statuses, which are stored once and referenced by index.
#[derive(Default)]
struct Tables<'h> {
    strings: BTreeMap<String, usize>,
    in_order: Vec<String>,
    statuses: BTreeMap<State<'h>, usize>,
    statuses_in_order: Vec<String>,
}

/// Returns all data that a page needs of an interleaving.
pub(super) fn json(timeline: &Timeline<'_>) -> String {
    let Timeline { history, title, ending, edges, replay, facts } = *timeline;
    let mut tables = Tables::default();
    let states = states(history, edges);
    let turns = history.turns.iter().zip(&states);
    let turns: Vec<_> = turns.map(|(turn, states)| tables.turn(history, turn, states)).collect();
    let threads = history.threads.iter().map(|thread| {
        let kind = match thread.kind {
            ThreadKind::App => "app",
            ThreadKind::Profiler => "profiler",
            ThreadKind::ManagedProfiler => "managed",
        };
        let name = string(&thread.name);
        format!(r#"{{"name":{name},"kind":"{kind}","os":{}}}"#, thread.os.0)
    });
    let edges = edges.iter().map(|edge| {
        let why = string(&why(history, edge.why));
        format!(r#"{{"waits":{},"why":{why},"for":{}}}"#, edge.waits.0, edge.for_whom.0)
    });
    let facts = facts.iter().map(|(name, text)| format!("[{},{}]", string(name), string(text)));
    let parts = [
        ("format", "1".to_owned()),
        ("title", string(title)),
        ("ending", string(ending)),
        ("replay", replay.map_or_else(|| "null".to_owned(), string)),
        ("facts", list(facts)),
        ("lanes", lines(threads)),
        ("edges", lines(edges)),
        ("strings", lines(tables.in_order.iter().map(|text| string(text)))),
        ("standings", lines(tables.statuses_in_order)),
        ("slices", lines(turns)),
    ];
    let parts = parts.into_iter().map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(",\n"))
}

impl<'h> Tables<'h> {
    fn string(&mut self, text: &str) -> usize {
        if let Some(place) = self.strings.get(text) {
            return *place;
        }
        let place = self.in_order.len();
        self.strings.insert(text.to_owned(), place);
        self.in_order.push(text.to_owned());
        place
    }

    fn strings(&mut self, texts: impl Iterator<Item = impl AsRef<str>>) -> String {
        list(texts.map(|text| self.string(text.as_ref()).to_string()))
    }

    fn turn(&mut self, history: &History, turn: &Turn, states: &[State<'h>]) -> String {
        let waits = states.get(turn.thread.index()).and_then(|state| state.waits.as_deref());
        let does = events(turn).map(|event| {
            let words = self.string(&describe(history, event, waits));
            match event {
                TurnEvent::Suspended(target)
                | TurnEvent::Resumed(target)
                | TurnEvent::Started(target)
                | TurnEvent::Context(target) => {
                    format!(r#"["{}",{words},{}]"#, word(event), target.0)
                }
                _ => format!(r#"["{}",{words}]"#, word(event)),
            }
        });
        let does = list(does);
        let stand = list(states.iter().map(|state| self.status(history, state).to_string()));
        let Turn { at, thread, .. } = turn;
        format!(r#"{{"at":{at},"thread":{},"does":{does},"stand":{stand}}}"#, thread.0)
    }

    fn status(&mut self, history: &History, state: &State<'h>) -> usize {
        if let Some(place) = self.statuses.get(state) {
            return *place;
        }
        let stack = self.strings(state.stack.iter());
        let holds = self.strings(state.holds.iter().map(|lock| history.lock_name(*lock)));
        let inside = self.strings(state.inside.iter());
        let waits = state.waits.as_deref().map(|waits| self.string(waits).to_string());
        let waits = waits.unwrap_or_else(|| "null".to_owned());
        let life = match state.life {
            Life::Waiting => "before",
            Life::Lives => "lives",
            Life::Ended => "ended",
        };
        let cooperative = state.cooperative.map_or_else(|| "null".to_owned(), |it| it.to_string());
        let by = list(state.suspended_by.iter().map(|by| by.0.to_string()));
        let edges = state.edges.iter().map(|edge| {
            let why = self.string(&why(history, edge.why));
            format!("[{},{why}]", edge.for_whom.0)
        });
        let edges = list(edges.collect::<Vec<_>>());
        self.statuses_in_order.push(format!(
            r#"{{"life":"{life}","stack":{stack},"holds":{holds},"waits":{waits},"edges":{edges},"by":{by},"cooperative":{cooperative},"inside":{inside}}}"#
        ));
        let place = self.statuses.len();
        self.statuses.insert(state.clone(), place);
        place
    }
}

/// Returns the keyword of an event's kind.
const fn word(event: TurnEvent) -> &'static str {
    match event {
        TurnEvent::Executed(_) => "executes",
        TurnEvent::Acquired(_) => "takes",
        TurnEvent::Released(_) => "gives",
        TurnEvent::Waits => "waits",
        TurnEvent::Suspended(_) => "suspends",
        TurnEvent::Resumed(_) => "resumes",
        TurnEvent::Started(_) => "starts",
        TurnEvent::Mode { .. } => "mode",
        TurnEvent::Callback(_) | TurnEvent::Hook | TurnEvent::Export | TurnEvent::Signal => {
            "enters"
        }
        TurnEvent::CallbackOver(_)
        | TurnEvent::HookOver
        | TurnEvent::ExportOver
        | TurnEvent::SignalOver => "leaves",
        TurnEvent::Called(..) => "calls",
        TurnEvent::Returned(..) => "returns",
        TurnEvent::Refused(_) => "refused",
        TurnEvent::Injected(_) => "injected",
        TurnEvent::SnapshotCallback => "frame",
        TurnEvent::Context(_) => "reads",
        TurnEvent::System(_) => "system",
        TurnEvent::Sleeps(_) => "sleeps",
        TurnEvent::TimedOut => "timeout",
        TurnEvent::Interrupted => "interruption",
        TurnEvent::Unheard(_) => "unheard",
        TurnEvent::Breaks(_) => "breaks",
        TurnEvent::Says(_) => "says",
        TurnEvent::Begins => "begins",
        TurnEvent::Ends => "ends",
    }
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Formats a list with a line for each item.
fn lines(items: impl IntoIterator<Item = String>) -> String {
    format!("[\n{}\n]", items.into_iter().collect::<Vec<_>>().join(",\n"))
}

/// Quotes a text so that no tag or comment of HTML can begin or end in it, and shows what is not visible.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '<' | '>' | '&' => quoted.extend(format!("\\u{:04x}", u32::from(char)).chars()),
            _ if is_visible(char) => quoted.push(char),
            _ => quoted.extend(format!("\\{}", char.escape_unicode()).chars()),
        }
    }
    quoted.push('"');
    quoted
}
