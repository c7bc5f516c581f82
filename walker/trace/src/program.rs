//! The program of a trace, as a text that makes the same callbacks: a start for a user's own case.
//!
//! A trace says when methods were compiled, which stacks exceptions passed, what walks found, when threads and GCs came;
//! it says no calls. A method is called by the one that a walk or an exception has found above it; without one, by the
//! first method of its thread. What a text cannot say is listed in its head.

mod text;

use crate::ids::IdKind;
use crate::trace::{Call, CallKind, Trace, TraceThread, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Beginnings of the names of modules that are the framework's.
const FRAMEWORK: [&str; 5] = ["System.", "Microsoft.", "mscorlib", "netstandard", "WindowsBase"];

/// A statement of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Statement {
    Call(String),
    /// A call, or a throw of the method's own, with the handlers around it.
    Guarded(Option<String>, Handlers),
    Throw,
    Collect,
    Start(String),
    Join(String),
}

/// The handlers of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Handlers {
    catches: bool,
    filters: bool,
    finallies: bool,
}

/// A method.
#[derive(Clone, Debug, Default)]
struct Method {
    body: Vec<Statement>,
    /// Compiled at its first call.
    is_compiled: bool,
    module: String,
}

/// A thread of the program.
#[derive(Clone, Debug)]
struct Thread {
    name: String,
    /// First method of the thread.
    start: String,
}

/// What happens on a thread.
#[derive(Clone, Debug)]
enum Event {
    Compiles(String),
    /// An exception: the methods that it passes, leaf first, and what they have.
    Throws(Vec<(String, Handlers)>),
    Collects,
    Starts(String),
    Joins(String),
}

/// A thread of the trace.
struct Traced<'t> {
    thread: &'t TraceThread,
    /// First method of the thread.
    start: String,
    /// Events of the thread, with their lines.
    events: Vec<(usize, Event)>,
    /// The method above each, as walks and exceptions of the thread have found it.
    callers: BTreeMap<String, String>,
}

/// The program of a trace.
#[derive(Clone, Debug, Default)]
pub struct Program {
    methods: BTreeMap<String, Method>,
    /// The order in which methods were first seen.
    order: Vec<String>,
    threads: Vec<Thread>,
    /// The finalizer's thread is in the trace.
    has_finalizer: bool,
    /// The method above each, on the thread that is looked at.
    callers: BTreeMap<String, String>,
    /// Facts of the trace that a text cannot say.
    lacks: BTreeSet<String>,
}

impl Program {
    /// Returns the program of a trace; `None` if no method of the program was compiled, walked or passed by an exception.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        let mut program = Self::default();
        let mut all: Vec<Traced<'_>> = Vec::new();
        for thread in trace.threads.iter().filter(|thread| thread.id.is_some()) {
            program.callers.clear();
            thread.calls.iter().for_each(|call| program.learn(call, trace));
            let events = program.events(thread, trace);
            if let Some(start) = program.first_method(&events) {
                let callers = program.callers.clone();
                all.push(Traced { thread, start, events, callers });
            }
        }
        let is_main =
            |call: &Call| call.name.starts_with("Initialize") && call.kind == CallKind::Callback;
        all.sort_by_key(|one| !one.thread.calls.iter().any(is_main));
        let begin = all.iter().filter_map(|one| one.events.first()).map(|(line, _)| *line).min();
        program.has_finalizer = begin.is_some_and(|begin| trace.finalizer(begin).is_some());
        Self::join_threads(&mut all);
        for (at, Traced { thread, start, events, callers }) in all.into_iter().enumerate() {
            let name = if at == 0 { "main".to_owned() } else { format!("thread {at}") };
            program.threads.push(Thread { name, start: start.clone() });
            program.callers = callers;
            program.place(&start, &events, thread);
        }
        (!program.threads.is_empty()).then_some(program)
    }

    /// Returns the text. `from` is the name of the trace's file.
    #[must_use]
    pub fn text(&self, from: &str) -> String {
        text::write(self, from)
    }

    fn method(&mut self, name: &str, trace: &Trace) -> &mut Method {
        if !self.methods.contains_key(name) {
            self.order.push(name.to_owned());
        }
        let module = || trace.modules.get(name).cloned().unwrap_or_default();
        self.methods
            .entry(name.to_owned())
            .or_insert_with(|| Method { module: module(), ..Method::default() })
    }

    /// Learns who calls whom, from a walk or an exception.
    fn learn(&mut self, call: &Call, trace: &Trace) {
        self.learn_walk(None, call, trace);
        // The method that is compiled is called by the one on top of the stack.
        let compiled = function_of(call).filter(|_| call.name == "JITCompilationStarted");
        for inner in &call.calls {
            self.learn_walk(compiled, inner, trace);
            self.learn(inner, trace);
        }
    }

    /// Learns from the frames of a walk, below a method that is called.
    fn learn_walk(&mut self, called: Option<&String>, walk: &Call, trace: &Trace) {
        let frames = walk.frames.iter().map(|frame| &frame.function);
        let stack: Vec<_> = called.into_iter().chain(frames).cloned().collect();
        if !walk.frames.is_empty() {
            self.learn_stack(&stack, trace);
        }
    }

    /// Learns from the methods of a stack, leaf first.
    fn learn_stack(&mut self, stack: &[String], trace: &Trace) {
        let own: Vec<_> = stack.iter().filter(|name| is_own(trace, name)).collect();
        for (callee, caller) in own.iter().zip(own.iter().skip(1)) {
            if callee != caller && !self.chain(caller).contains(callee) {
                self.callers.entry((*callee).clone()).or_insert_with(|| (*caller).clone());
            }
        }
        for name in own {
            self.method(name, trace);
        }
    }

    /// Returns a method and those above it, as far as they are known.
    fn chain<'c>(&'c self, method: &'c String) -> Vec<&'c String> {
        std::iter::successors(Some(method), |one| self.callers.get(*one)).collect()
    }

    /// Returns the events of a thread, each with its line.
    fn events(&mut self, thread: &TraceThread, trace: &Trace) -> Vec<(usize, Event)> {
        let mut events = Vec::new();
        let mut exception: Option<Exception> = None;
        for call in thread.calls.iter().filter(|call| call.kind == CallKind::Callback) {
            let function = function_of(call).filter(|name| is_own(trace, name));
            match (call.name.as_str(), function) {
                ("JITCompilationStarted", Some(name)) => {
                    self.method(name, trace).is_compiled = true;
                    events.push((call.line, Event::Compiles(name.clone())));
                }
                ("ExceptionThrown", _) => {
                    exception = Some(Exception { line: call.line, ..Exception::default() });
                }
                ("ExceptionCatcherEnter", _) => {
                    let Some(passed) = exception.take() else { continue };
                    self.learn_stack(&passed.names(), trace);
                    if passed.is_caught() {
                        events.push((passed.line, Event::Throws(passed.stack)));
                    } else {
                        self.lacks.insert("an exception that no own method catches".to_owned());
                    }
                }
                ("GarbageCollectionStarted", _) if is_induced(call) => {
                    events.push((call.line, Event::Collects));
                }
                ("GarbageCollectionStarted", _) => {
                    self.lacks.insert("a GC that the program has not asked for".to_owned());
                }
                (name, Some(function)) => {
                    if let Some(exception) = &mut exception {
                        exception.passes(name, function);
                    }
                }
                _ => {}
            }
        }
        if exception.is_some() {
            self.lacks.insert("an exception that nothing catches".to_owned());
        }
        events
    }

    /// Returns the outermost method of the first event about a method.
    fn first_method(&self, events: &[(usize, Event)]) -> Option<String> {
        let method = events.iter().find_map(|(_, event)| match event {
            Event::Compiles(method) => Some(method),
            Event::Throws(stack) => stack.last().map(|(method, _)| method),
            _ => None,
        })?;
        self.chain(method).last().map(|method| (*method).clone())
    }

    /// Adds to the first thread that it starts the others, and waits for those that end.
    fn join_threads(all: &mut [Traced<'_>]) {
        let Some((_, others)) = all.split_first() else { return };
        let mut added = Vec::new();
        for Traced { thread, start, .. } in others {
            let begin = thread.calls.first().map_or(0, |call| call.line);
            let is_end = |call: &&Call| call.name == "ThreadDestroyed";
            let end = thread.calls.iter().find(is_end).map_or(usize::MAX, |call| call.line);
            added.push((begin, Event::Starts(start.clone())));
            added.push((end, Event::Joins(start.clone())));
        }
        if let Some(first) = all.first_mut() {
            first.events.extend(added);
            first.events.sort_by_key(|(line, _)| *line);
        }
    }

    /// Puts the events of a thread into the bodies of its methods.
    fn place(&mut self, start: &str, events: &[(usize, Event)], thread: &TraceThread) {
        let mut thrown = BTreeSet::new();
        for (_, event) in events {
            match event {
                Event::Compiles(method) => {
                    let path = self.path(start, method);
                    self.call_along(&path);
                }
                Event::Throws(stack) => {
                    let names: Vec<_> = stack.iter().map(|(name, _)| name.clone()).collect();
                    if !thrown.insert(names) {
                        let again = format!("an exception that comes again on {}", thread.name);
                        self.lacks.insert(again);
                        continue;
                    }
                    self.throw(start, stack);
                }
                Event::Collects => self.add(start, Statement::Collect),
                Event::Starts(method) => self.add(start, Statement::Start(method.clone())),
                Event::Joins(method) => self.add(start, Statement::Join(method.clone())),
            }
        }
    }

    fn add(&mut self, method: &str, statement: Statement) {
        if let Some(method) = self.methods.get_mut(method) {
            method.body.push(statement);
        }
    }

    /// Returns the path from the first method of a thread to one of its methods.
    fn path(&self, start: &str, method: &String) -> Vec<String> {
        let mut path: Vec<_> = self.chain(method).into_iter().cloned().collect();
        if let Some(at) = path.iter().position(|one| one == start) {
            path.truncate(at + 1);
        } else {
            path.push(start.to_owned());
        }
        path.reverse();
        path
    }

    /// Lets each method of a path call the next one, if it does not yet.
    fn call_along(&mut self, path: &[String]) {
        for (caller, callee) in path.iter().zip(path.iter().skip(1)) {
            let calls = |statement: &Statement| match statement {
                Statement::Call(called) | Statement::Guarded(Some(called), _) => called == callee,
                _ => false,
            };
            let is_called =
                self.methods.get(caller).is_none_or(|caller| caller.body.iter().any(calls));
            if !is_called {
                self.add(caller, Statement::Call(callee.clone()));
            }
        }
    }

    /// Lets the innermost method of a stack throw, and those above it handle that.
    fn throw(&mut self, start: &str, stack: &[(String, Handlers)]) {
        let Some((outermost, _)) = stack.last() else { return };
        let mut path = self.path(start, outermost);
        path.extend(stack.iter().rev().skip(1).map(|(name, _)| name.clone()));
        self.call_along(&path);
        for (at, (name, handlers)) in stack.iter().enumerate() {
            let called =
                at.checked_sub(1).and_then(|at| stack.get(at)).map(|(name, _)| name.clone());
            let Some(method) = self.methods.get_mut(name) else { continue };
            let plain = called.clone().map_or(Statement::Throw, Statement::Call);
            let guarded = Statement::Guarded(called, *handlers);
            let wanted = if *handlers == Handlers::default() { plain.clone() } else { guarded };
            if method.body.contains(&wanted) {
                continue;
            }
            match method.body.iter_mut().find(|statement| **statement == plain) {
                Some(statement) => *statement = wanted,
                None => method.body.push(wanted),
            }
        }
    }
}

/// An exception in flight.
#[derive(Clone, Debug, Default)]
struct Exception {
    line: usize,
    stack: Vec<(String, Handlers)>,
}

impl Exception {
    fn names(&self) -> Vec<String> {
        self.stack.iter().map(|(name, _)| name.clone()).collect()
    }

    fn is_caught(&self) -> bool {
        self.stack.iter().any(|(_, handlers)| handlers.catches)
    }

    /// Notes what a callback says of a method.
    fn passes(&mut self, callback: &str, method: &str) {
        let is_new = self.stack.iter().all(|(name, _)| name != method);
        if callback == "ExceptionSearchFunctionEnter" && is_new {
            self.stack.push((method.to_owned(), Handlers::default()));
        }
        let Some((_, handlers)) = self.stack.iter_mut().find(|(name, _)| name == method) else {
            return;
        };
        match callback {
            "ExceptionSearchCatcherFound" => handlers.catches = true,
            "ExceptionSearchFilterEnter" => handlers.filters = true,
            "ExceptionUnwindFinallyEnter" => handlers.finallies = true,
            _ => {}
        }
    }
}

/// Returns true for a method of the program: its module is known, and none of the framework.
fn is_own(trace: &Trace, name: &str) -> bool {
    let module = trace.modules.get(name);
    module.is_some_and(|module| !FRAMEWORK.iter().any(|prefix| module.starts_with(prefix)))
}

/// Returns the name of the function that a callback is about.
fn function_of(call: &Call) -> Option<&String> {
    call.inputs.iter().find_map(|(_, value)| match value {
        Value::Id(IdKind::Function, Some(name), _) => Some(name),
        _ => None,
    })
}

/// Returns true for a GC that was asked for: COR_PRF_GC_INDUCED.
fn is_induced(call: &Call) -> bool {
    call.inputs.iter().any(|(name, value)| name == "reason" && value.to_string() == "1")
}
