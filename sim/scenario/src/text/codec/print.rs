//! The printer: writes the canonical text of a value, with its nodes in the order of the codecs, and
//! without what is as without text.

use crate::Scenario;
use crate::model::{
    ExpectedFlags, ExpectedOutcome, ExportArgument, SeedAddress, SeedSource, SnapshotCaller,
    SnapshotThread, Stale,
};
use crate::text::codec::typed::{NO_SEED, OWN};
use crate::text::codec::value::{CALLERS, CONTENT, Code, OUTCOMES, SEEDS, TARGETS, Value, word_of};
use crate::text::codec::{Blank, Codec, Field, List, Run, Task};
use crate::text::grammar::{Args, Kind, Level, Style};
use crate::text::keywords::Keyword as _;
use clr_explore::LockName;
use core::fmt::{self, Write as _};

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(self, 0);
        crate::text::nodes::text(&mut self.clone(), &mut printer);
        f.write_str(&printer.out)
    }
}

/// Prints a node of a scenario as it appears at a depth of nested blocks, without the indentation of
/// its first line and the line break after its last one.
pub(crate) fn text_of<T: Clone>(
    scenario: &Scenario,
    depth: usize,
    name: &'static str,
    value: &T,
    codec: impl Fn(&mut T, &mut Codec<'_>),
) -> String {
    let mut printer = Printer::new(scenario, depth);
    let mut value = value.clone();
    printer.visit(name, false, &mut |c| codec(&mut value, c));
    printer.out.trim().to_owned()
}

struct Printer<'s> {
    scenario: &'s Scenario,
    out: String,
    depth: usize,
    blank: Blank,
}

impl<'s> Printer<'s> {
    const fn new(scenario: &'s Scenario, depth: usize) -> Self {
        Self { scenario, out: String::new(), depth, blank: Blank::None }
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
    }

    /// Writes a value. Names of what does not exist are empty.
    fn value(&mut self, kind: Kind, value: &Value) {
        let scenario = self.scenario;
        let thread = |thread: u32| {
            quoted(scenario.threads.get(thread as usize).map_or("", |thread| &thread.name))
        };
        let buffer = |number: u32| {
            scenario.buffers.get(number as usize).map_or("", |buffer| buffer.name.as_str())
        };
        let text = match value {
            Value::Name(name) => quoted(name),
            Value::Word(word) => quoted(word),
            Value::Code(Code::Function(function)) => {
                quoted(scenario.function_name(*function).unwrap_or_default())
            }
            Value::Code(Code::Runtime(function)) => {
                quoted(&scenario.runtime_function_name(*function))
            }
            Value::Code(Code::Wait(place)) => quoted(place.name()),
            Value::Number(number) => match kind {
                Kind::Thread => thread(*number as u32),
                Kind::Lock => quoted(scenario.name_of_lock(LockName::Profiler(*number as u32))),
                Kind::Buffer => quoted(buffer(*number as u32)),
                Kind::Event => {
                    let events = scenario.profiler.as_ref().map(|profiler| &profiler.events);
                    let name = events.and_then(|events| events.get(*number as usize));
                    quoted(name.map_or("", String::as_str))
                }
                Kind::Number(_, _, Style::Decimal) => number.to_string(),
                Kind::Number(_, _, Style::Size) if *number < 0x40 => number.to_string(),
                _ => hex(*number),
            },
            Value::Flag(flag) => flag_text(*flag),
            Value::Label(label) => quoted(&format!("{}+{:#x}", label.function, label.offset)),
            Value::Address(SeedAddress::Label(label)) => quoted(label),
            Value::Address(SeedAddress::Address(address)) => hex(*address),
            Value::Generations(generations) => quoted(&generations.to_string()),
            Value::Faults(faults) => quoted(&faults.to_string()),
            Value::Argument(ExportArgument::Number(number)) => number.to_string(),
            Value::Argument(ExportArgument::Address(number)) => quoted(buffer(*number)),
            Value::Argument(ExportArgument::Content(number)) => {
                quoted(&format!("{CONTENT}{}", buffer(*number)))
            }
            Value::Caller(SnapshotCaller::Thread(number))
            | Value::Target(SnapshotThread::Thread(number)) => thread(*number),
            Value::Caller(caller) => word(word_of(CALLERS, caller)),
            Value::Target(SnapshotThread::Value(value)) => hex(*value),
            Value::Target(target) => word(word_of(TARGETS, target)),
            Value::Seed(None) => quoted(NO_SEED),
            Value::Seed(Some(SeedSource::Function(function))) => quoted(function),
            Value::Seed(Some(source)) => word(word_of(SEEDS, source)),
            Value::HResult(result) | Value::Outcome(ExpectedOutcome::Returned(result)) => {
                result.name().map_or_else(|| hex(result.0.into()), quoted)
            }
            Value::Outcome(outcome) => word(word_of(OUTCOMES, outcome)),
            Value::Flags(ExpectedFlags::Own) => quoted(OWN),
            Value::Flags(ExpectedFlags::Value(flags)) => hex((*flags).into()),
            Value::Stale(Stale::Only(registers)) => {
                let names: Vec<_> = registers.iter().map(|register| register.word()).collect();
                quoted(&names.join(" "))
            }
            Value::Stale(stale) => flag_text(*stale == Stale::All),
            Value::Clause(clause) => quoted(&clause.to_string()),
            Value::Party(who) => quoted(scenario.name_of(*who)),
            Value::Lock(lock) => quoted(scenario.name_of_lock(*lock)),
            Value::Hazard(hazard) => quoted(&hazard.to_string()),
            Value::Schedule(schedule) => quoted(&schedule.to_string()),
        };
        self.out.push_str(&text);
    }
}

impl Run for Printer<'_> {
    fn task(&self) -> Task {
        Task::Print
    }

    fn visit(&mut self, name: &'static str, _: bool, parts: &mut dyn FnMut(&mut Codec<'_>)) {
        if self.depth == 0 && self.blank != Blank::None {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            if self.blank == Blank::Once {
                self.blank = Blank::None;
            }
        }
        self.indent();
        self.out.push_str(name);
        parts(self);
        self.out.push('\n');
    }

    fn visit_args(&mut self, args: Args, list: &mut dyn List) {
        let kind = match args {
            Args::None => return,
            Args::One(kind) | Args::Optional(kind) | Args::Many(kind, _) | Args::Named(kind, _) => {
                kind
            }
        };
        list.each(&mut |value| {
            self.out.push(' ');
            self.value(kind, &value);
        });
    }

    fn visit_property(&mut self, name: &'static str, kind: Kind, _: bool, field: &mut dyn Field) {
        if let Some(value) = field.get() {
            // Writing to a string cannot fail.
            let _ = write!(self.out, " {name}=");
            self.value(kind, &value);
        }
    }

    fn visit_block(&mut self, _: Level, whole: bool, nodes: &mut dyn FnMut(&mut Codec<'_>)) {
        let before = self.out.len();
        self.out.push_str(" {\n");
        let start = self.out.len();
        self.depth += 1;
        nodes(self);
        self.depth -= 1;
        if self.out.len() == start && !whole {
            self.out.truncate(before);
        } else {
            self.indent();
            self.out.push('}');
        }
    }

    fn visit_items(&mut self, _: usize, _: &mut dyn FnMut(&mut Codec<'_>, usize)) {}

    fn blank(&mut self, blank: Blank) {
        self.blank = blank;
    }
}

fn flag_text(flag: bool) -> String {
    if flag { "#true" } else { "#false" }.to_owned()
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn word(word: Option<&str>) -> String {
    quoted(word.unwrap_or_default())
}

/// Returns a text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str(r"\\"),
            '\n' => quoted.push_str(r"\n"),
            '\r' => quoted.push_str(r"\r"),
            '\t' => quoted.push_str(r"\t"),
            ' ' => quoted.push(' '),
            c if c.is_alphanumeric() || c.is_ascii_punctuation() => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}
