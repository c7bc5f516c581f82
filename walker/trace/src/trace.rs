//! A trace that was read: calls by thread, with names.

use crate::ids::IdKind;
use crate::line::{Arguments, Line};
use core::fmt;
use std::collections::{BTreeMap, HashMap};
use thiserror::Error;

/// The reason why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Problem with the line.
    pub problem: TraceProblem,
}

/// The problem with a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// The first line is another one.
    #[error("a trace begins with {{\"trace\":{{\"version\":1,…}}}}")]
    NoTrace,
    /// The line is none of a trace.
    #[error("no line of a trace: {0}")]
    Line(String),
    /// A call ends that has not begun on its thread.
    #[error("{0} ends, and another call is in progress on its thread")]
    Nesting(String),
}

/// The side that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A callback of the profiler.
    Callback,
    /// A method of the runtime.
    Method,
}

/// A value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// An id, and its name; without one, the id's text.
    Id(IdKind, Option<String>, String),
    Other(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(_, Some(text), _) | Self::Id(_, None, text) | Self::Other(text) => {
                f.write_str(text)
            }
        }
    }
}

/// Values with the names of their arguments.
pub(crate) type Values = Vec<(String, Value)>;

/// A frame that a walk has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function; `null` for a marker.
    pub function: String,
    /// The answer of the profiler's callback.
    pub answer: String,
    /// The number of calls in the walk when that has answered: those that it has made are the last of them.
    pub(crate) calls: usize,
}

impl Frame {
    pub(crate) fn is_marker(&self) -> bool {
        self.function == "null"
    }
}

/// A call with what happened in it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Number of the line where it begins, from 1.
    pub line: usize,
    /// The side that is called.
    pub kind: CallKind,
    /// The callback or method.
    pub name: String,
    /// The HRESULT; `None` if the call has not ended.
    pub result: Option<String>,
    /// The frames that a walk has reported.
    pub frames: Vec<Frame>,
    /// The calls that were made in it, on its thread.
    pub calls: Vec<Call>,
    pub(crate) inputs: Values,
    pub(crate) outputs: Values,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let list = |values: &Values| -> Vec<_> {
            values.iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        write!(f, "({})", list(&self.inputs).join(", "))
    }
}

/// The calls of a thread.
#[derive(Clone, Debug)]
pub struct TraceThread {
    /// Name of the thread, or its id if it has none.
    pub name: String,
    /// The text of its ThreadID; `None` for a thread that the runtime does not know.
    pub id: Option<String>,
    /// The calls that are in no other.
    pub calls: Vec<Call>,
}

/// A trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The runtime.
    pub runtime: String,
    /// The threads, by their first calls.
    pub threads: Vec<TraceThread>,
    /// Number of calls that were not written.
    pub lost: u64,
    /// The module of each function and class, by name.
    pub(crate) modules: BTreeMap<String, String>,
}

impl Trace {
    /// Reads a trace: lines of JSON.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the line.
    pub fn read(text: &str) -> Result<Self, TraceError> {
        Self::of_lines(&parse(text)?)
    }

    /// Makes a trace of its lines.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the line.
    pub fn of_lines(lines: &[Line]) -> Result<Self, TraceError> {
        let Some(Line::Trace { version: 1, runtime }) = lines.first() else {
            return Err(TraceError { line: 1, problem: TraceProblem::NoTrace });
        };
        let mut reader = Reader { names: names(lines), ..Reader::default() };
        for (at, line) in lines.iter().enumerate() {
            reader.line(at + 1, line).map_err(|problem| TraceError { line: at + 1, problem })?;
        }
        let modules = lines.iter().filter_map(|line| match line {
            Line::Name { name, module: Some(module), .. } => Some((name.clone(), module.clone())),
            _ => None,
        });
        Ok(Self { modules: modules.collect(), ..reader.trace(runtime) })
    }

    /// Returns the finalizer's thread of a runtime whose start is traced: the one that it creates before its program begins, at
    /// this line.
    pub(crate) fn finalizer(&self, program: usize) -> Option<&TraceThread> {
        let calls = |thread: &TraceThread, name| thread.calls.iter().any(|call| call.name == name);
        if !self.threads.iter().any(|thread| calls(thread, "Initialize")) {
            return None;
        }
        self.threads.iter().find(|thread| {
            let mut created = thread.calls.iter().filter(|call| call.name == "ThreadCreated");
            let is_early = created.any(|call| call.line < program);
            is_early && !calls(thread, "Initialize")
        })
    }
}

/// Returns the lines of a text.
pub(crate) fn parse(text: &str) -> Result<Vec<Line>, TraceError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let parsed = lines.map(|(at, line)| {
        let problem = |error: serde_json::Error| TraceProblem::Line(error.to_string());
        serde_json::from_str(line)
            .map_err(|error| TraceError { line: at + 1, problem: problem(error) })
    });
    parsed.collect()
}

/// Returns the names of ids, by their texts.
pub(crate) fn names(lines: &[Line]) -> HashMap<String, String> {
    let named = lines.iter().filter_map(|line| match line {
        Line::Name { id, name, .. } => Some((id.clone(), name.clone())),
        _ => None,
    });
    named.collect()
}

#[derive(Default)]
struct Reader {
    names: HashMap<String, String>,
    threads: Vec<TraceThread>,
    /// Their texts.
    os_threads: Vec<String>,
    /// The calls in progress, by thread.
    open: Vec<Vec<Call>>,
    lost: u64,
}

impl Reader {
    fn value(&self, text: &str) -> Value {
        let kind = text.split_once('#').and_then(|(word, _)| IdKind::of_word(word));
        match kind {
            Some(kind) => Value::Id(kind, self.names.get(text).cloned(), text.to_owned()),
            None => Value::Other(text.to_owned()),
        }
    }

    fn values(&self, arguments: &Arguments) -> Values {
        arguments.0.iter().map(|(name, text)| (name.clone(), self.value(text))).collect()
    }

    fn thread(&mut self, os_thread: &str) -> usize {
        let at = self.os_threads.iter().position(|known| known == os_thread);
        at.unwrap_or_else(|| {
            let id = self.names.get(os_thread).cloned();
            let name = id.as_ref().map(|id| self.names.get(id).unwrap_or(id).clone());
            let name = name.unwrap_or_else(|| os_thread.to_owned());
            self.os_threads.push(os_thread.to_owned());
            self.threads.push(TraceThread { name, id, calls: Vec::new() });
            self.open.push(Vec::new());
            self.threads.len() - 1
        })
    }

    fn begin(&mut self, line: usize, thread: &str, kind: CallKind, name: &str, inputs: &Arguments) {
        let inputs = self.values(inputs);
        let thread = self.thread(thread);
        let (calls, outputs, frames) = (Vec::new(), Vec::new(), Vec::new());
        let call =
            Call { line, kind, name: name.into(), result: None, frames, calls, inputs, outputs };
        if let Some(open) = self.open.get_mut(thread) {
            open.push(call);
        }
    }

    fn end(
        &mut self,
        thread: &str,
        name: &str,
        result: &str,
        outputs: &Arguments,
    ) -> Result<(), TraceProblem> {
        let outputs = self.values(outputs);
        let thread = self.thread(thread);
        let ended = self.open.get_mut(thread).and_then(Vec::pop);
        let Some(call) = ended.filter(|call| call.name == name) else {
            return Err(TraceProblem::Nesting(name.to_owned()));
        };
        self.close(thread, Call { result: Some(result.to_owned()), outputs, ..call });
        Ok(())
    }

    /// Puts a call into the one that is in progress on its thread.
    fn close(&mut self, thread: usize, call: Call) {
        match self.open.get_mut(thread).and_then(|open| open.last_mut()) {
            Some(around) => around.calls.push(call),
            None => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.calls.push(call);
                }
            }
        }
    }

    fn line(&mut self, number: usize, line: &Line) -> Result<(), TraceProblem> {
        match line {
            Line::Trace { .. } | Line::Name { .. } => {}
            Line::Lost { calls } => self.lost += calls,
            Line::Enters { thread, callback, arguments } => {
                self.begin(number, thread, CallKind::Callback, callback, arguments);
            }
            Line::Calls { thread, method, arguments } => {
                self.begin(number, thread, CallKind::Method, method, arguments);
            }
            Line::Leaves { thread, callback: name, result, arguments }
            | Line::Returns { thread, method: name, result, arguments } => {
                self.end(thread, name, result, arguments)?;
            }
            Line::Frame { thread, function, answer } => {
                let (function, answer) = (self.value(function).to_string(), answer.clone());
                let thread = self.thread(thread);
                if let Some(walk) = self.open.get_mut(thread).and_then(|open| open.last_mut()) {
                    let calls = walk.calls.len();
                    walk.frames.push(Frame { function, answer, calls });
                }
            }
        }
        Ok(())
    }

    fn trace(mut self, runtime: &str) -> Trace {
        for thread in 0..self.threads.len() {
            while let Some(call) = self.open.get_mut(thread).and_then(Vec::pop) {
                self.close(thread, call);
            }
        }
        let modules = BTreeMap::new();
        Trace { runtime: runtime.to_owned(), threads: self.threads, lost: self.lost, modules }
    }
}
