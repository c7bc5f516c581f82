//! An interleaving for the terminal: rows of text with tones, which a tool turns into colors.

use super::arrows::Lanes;
use super::fold::{Entry, Item, items};
use super::state::{State, states};
use super::words::{kind, status, why};
use super::wrap::{GLUE, cut, fitted};
use super::{RowOptions, Timeline};
use clr_explore::{ThreadIndex, visible};
use core::fmt;

/// Importance or meaning of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Text that is less important than the rest.
    Dim,
    /// Text that the reader should notice first.
    Head,
    /// A running thread.
    Running,
    /// A waiting thread.
    Waiting,
    /// A suspended thread, or a suspension.
    Suspended,
    /// A thread in code of the profiler that the runtime has called, or in a profiling method.
    Callback,
    /// Locks that a thread owns.
    Lock,
    /// An error.
    Bad,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineSpan {
    /// The text, without line breaks and control characters.
    pub text: String,
    /// Meaning of the text.
    pub tone: Tone,
}

impl TimelineSpan {
    pub(super) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

/// A line of a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineRow {
    /// Pieces of the line, from left to right.
    pub spans: Vec<TimelineSpan>,
}

/// Formats the row without tones and without trailing blanks.
impl fmt::Display for TimelineRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        f.write_str(text.trim_end())
    }
}

impl TimelineRow {
    fn of(text: impl Into<String>, tone: Tone) -> Self {
        Self::default().and(text, tone)
    }

    fn and(mut self, text: impl Into<String>, tone: Tone) -> Self {
        self.spans.push(TimelineSpan::new(text, tone));
        self
    }
}

/// Maximum width of thread names at the left of their events.
const NAME: usize = 20;
/// Minimum width at which text is wrapped.
const WORDS: usize = 24;

/// State of a drawing in progress, with the layout of its rows.
struct Drawing<'t, 'h> {
    timeline: &'t Timeline<'h>,
    states: &'t [Vec<State<'h>>],
    pitch: usize,
    /// Widths in characters of times, names and words.
    time: usize,
    name: usize,
    words: usize,
    rows: Vec<TimelineRow>,
}

/// Draws an interleaving, its end, and a legend of the glyphs.
pub(super) fn rows(timeline: &Timeline<'_>, shape: RowOptions) -> Vec<TimelineRow> {
    let Timeline { history, edges, .. } = *timeline;
    let states = states(history, edges);
    let pitch = Lanes::pitch(history.threads.len(), shape.width);
    let time = history.turns.last().map_or(1, |turn| turn.at.to_string().len()).max(2);
    let names = history.threads.iter().map(|thread| visible(&thread.name).chars().count());
    let name = names.max().unwrap_or(0).min(NAME);
    let left = time + 2 + pitch * history.threads.len() + name + 2;
    let words = shape.width.saturating_sub(left).max(WORDS);
    let mut drawing =
        Drawing { timeline, states: &states, pitch, time, name, words, rows: Vec::new() };
    drawing.head(shape.width);
    let items = items(history, &states, shape.fold);
    for item in &items {
        match item {
            Item::Entry(entry) => drawing.entry(entry),
            Item::Again { entries, times, last } => drawing.again(*entries, *times, *last),
        }
    }
    drawing.end(shape);
    drawing.rows
}

impl Drawing<'_, '_> {
    /// Draws the title, the legend of the glyphs, and the names above their lanes.
    fn head(&mut self, width: usize) {
        let title = visible(self.timeline.title);
        self.rows.extend(
            fitted(&title, width).into_iter().map(|line| TimelineRow::of(line, Tone::Head)),
        );
        self.legend(width);
        self.rows.push(TimelineRow::default());
        for (thread, its) in self.timeline.history.threads.iter().enumerate() {
            let margin = " ".repeat(self.time + 2);
            let row = TimelineRow::of(margin, Tone::Plain)
                .and(self.bars(thread), Tone::Dim)
                .and("┌ ", Tone::Dim)
                .and(visible(&its.name), Tone::Head)
                .and(format!(" ({})", kind(its.kind)), Tone::Dim);
            self.rows.push(row);
        }
    }

    fn legend(&mut self, width: usize) {
        let items = [
            ("●", "runs", Tone::Running),
            ("│", "could run", Tone::Dim),
            ("◆ ║", "the same in a callback or a profiling method", Tone::Callback),
            ("┊", "waits", Tone::Waiting),
            ("▒", "is suspended", Tone::Suspended),
            ("' \" *", "owns one lock, two, more", Tone::Lock),
        ];
        let mut row = TimelineRow::default();
        let mut used = 0;
        for (glyph, words, tone) in items {
            let room = glyph.chars().count() + words.chars().count() + 4;
            if used > 0 && used + room > width {
                self.rows.push(core::mem::take(&mut row));
                used = 0;
            }
            used += room;
            row = row.and(glyph, tone).and(format!(" {words}   "), Tone::Dim);
        }
        self.rows.push(row);
    }

    /// Draws the lanes to the left of a lane, above its beginning.
    fn bars(&self, lanes: usize) -> String {
        format!("│{:1$}", "", self.pitch.saturating_sub(1)).repeat(lanes)
    }

    fn entry(&mut self, entry: &Entry) {
        if entry.pause > 0 {
            let before = entry.turns.start.saturating_sub(1);
            let words = format!("… {} µs are skipped", entry.pause);
            self.row(None, &self.lanes(before, &[]), vec![TimelineSpan::new(words, Tone::Dim)]);
        }
        let last = entry.turns.end.saturating_sub(1);
        let mut lanes = self.lanes(last, &entry.threads);
        for link in entry.links.iter().filter(|link| link.waits) {
            lanes.draw(*link);
        }
        for link in entry.links.iter().filter(|link| !link.waits) {
            lanes.draw(*link);
        }
        let history = self.timeline.history;
        let at = history.turns.get(entry.turns.start).map(|turn| turn.at);
        let mut texts = entry.texts.join(&format!("{GLUE}· "));
        let (mut name, mut width) = (TimelineSpan::new(String::new(), Tone::Head), self.words);
        if let [thread] = entry.threads.as_slice() {
            let thread = cut(&visible(history.name(*thread)), self.name);
            name.text = format!("{thread:width$}  ", width = self.name);
        } else {
            width += self.name + 2;
        }
        if texts.is_empty() {
            texts.push_str("goes on");
        }
        let blank = TimelineSpan::new(" ".repeat(name.text.chars().count()), Tone::Plain);
        for (line, words) in fitted(&texts, width).into_iter().enumerate() {
            let words = TimelineSpan::new(words, Tone::Plain);
            if line == 0 {
                self.row(at, &lanes, vec![name.clone(), words]);
            } else {
                self.row(None, &self.lanes(last, &[]), vec![blank.clone(), words]);
            }
        }
    }

    fn again(&mut self, entries: usize, times: usize, last: usize) {
        let until = self.timeline.history.turns.get(last).map_or(0, |turn| turn.at);
        let again = if times == 1 { "once more".to_owned() } else { format!("{times} more times") };
        let words = match entries {
            1 => format!("… the same {again}, until {until} µs"),
            _ => format!("… the last {entries} of these {again}, until {until} µs"),
        };
        let tone = Tone::Dim;
        for line in fitted(&words, self.name + 2 + self.words) {
            self.row(None, &self.lanes(last, &[]), vec![TimelineSpan::new(line, tone)]);
        }
    }

    fn lanes(&self, turn: usize, running: &[ThreadIndex]) -> Lanes {
        let states = self.states.get(turn).map_or(&[][..], Vec::as_slice);
        Lanes::new(self.pitch, states, running)
    }

    fn row(&mut self, at: Option<u64>, lanes: &Lanes, words: Vec<TimelineSpan>) {
        let at = at.map(|at| at.to_string()).unwrap_or_default();
        let mut spans =
            vec![TimelineSpan::new(format!("{at:>width$}  ", width = self.time), Tone::Dim)];
        spans.extend(lanes.spans());
        spans.extend(words);
        self.rows.push(TimelineRow { spans });
    }

    /// Draws the end: the description, the waits, and the status of each thread.
    fn end(&mut self, shape: RowOptions) {
        let Timeline { history, ending, edges, replay, facts, .. } = *self.timeline;
        if !ending.is_empty() {
            self.rows.push(TimelineRow::default());
            for line in ending.lines().flat_map(|line| fitted(&visible(line), shape.width)) {
                self.rows.push(TimelineRow::of(line, Tone::Bad));
            }
        }
        for edge in edges {
            let waits = format!("  {:1$} ", visible(history.name(edge.waits)), self.name);
            let why = format!("┄ {} ┄▷ ", visible(&why(history, edge.why)));
            let row = TimelineRow::of(waits, Tone::Head).and(why, Tone::Waiting);
            self.rows.push(row.and(visible(history.name(edge.for_whom)), Tone::Head));
        }
        let states = self.states;
        if let Some(states) = states.last() {
            for (thread, state) in history.threads.iter().zip(states) {
                self.rows.push(TimelineRow::default());
                self.status(&thread.name, state, shape.width);
                let frames = state.stack.iter().take(shape.frames);
                let texts = frames.map(|it| format!("    {}", cut(&visible(it), shape.width)));
                self.rows.extend(texts.map(|text| TimelineRow::of(text, Tone::Plain)));
                let hidden = state.stack.len().saturating_sub(shape.frames);
                if hidden > 0 {
                    self.rows.push(TimelineRow::of(format!("    … {hidden} more"), Tone::Dim));
                }
            }
        }
        if replay.is_some() || !facts.is_empty() {
            self.rows.push(TimelineRow::default());
        }
        for (name, text) in facts {
            let margin = name.chars().count() + 1;
            let lines = fitted(&visible(text), shape.width.saturating_sub(margin).max(20));
            for (index, line) in lines.into_iter().enumerate() {
                let name = if index == 0 { visible(name) } else { String::new() };
                let row = TimelineRow::of(format!("{name:margin$}"), Tone::Dim);
                self.rows.push(row.and(line, Tone::Plain));
            }
        }
        if let Some(replay) = replay {
            let row = TimelineRow::of("replay ", Tone::Dim);
            self.rows.push(row.and(visible(replay), Tone::Plain));
        }
    }

    /// Draws the status of a thread, in as many rows as needed.
    fn status(&mut self, name: &str, state: &State<'_>, width: usize) {
        let name = format!("  {:1$}  ", visible(name), self.name);
        let margin = name.chars().count();
        let mut used = margin;
        let mut row = TimelineRow::of(name, Tone::Head);
        for (words, tone) in status(self.timeline.history, state) {
            let room = words.chars().count() + 2;
            if used > margin && used + room > width {
                self.rows
                    .push(core::mem::replace(&mut row, TimelineRow::of(" ".repeat(margin), tone)));
                used = margin;
            } else if used > margin {
                row = row.and("  ", Tone::Plain);
            }
            row = row.and(words, tone);
            used += room;
        }
        self.rows.push(row);
    }
}
