//! A trace of what a runtime answers, in text: `mode=calls`.
//!
//! In each callback about the program's own code the recorder makes the same calls, and writes their
//! results: HRESULTs, names, and the shapes of walks. No line has an address, an id, the number of a
//! thread or a time, and nothing is asked of the process but the profiling interface. So the trace of a
//! program in a CLR can be compared with that of the same program in a simulated runtime
//! (`sim/cli/tests/it/external/doors/mod.rs`).
//!
//! ```text
//! JITCompilationStarted Doors.B (41 calls)
//!   DoStackSnapshot(NULL, 0): S_OK Doors.A Doors.Main *
//!   GetCodeInfo: CORPROF_E_FUNCTION_NOT_COMPILED
//! ```
//!
//! A walk's methods of the program have their names; all others are `+`, markers are `*`, and equal
//! neighbours of these two are one. The first walk is written in each callback, and others if they come out
//! differently, from it and from the one before; another call when its answer is the first of its kind in callbacks of this name.
//!
//! | module | content |
//! |---|---|
//! | `callbacks` | the object that the runtime loads |
//! | `subject` | subjects of callbacks |
//! | `names` | names of functions, classes and modules, as the runtime says them |
//! | `walks` | walks, and their shapes |
//! | `process_calls` | calls about threads and the process |
//! | `sampler` | a thread that samples meanwhile |
//! | `collector` | a thread that forces GCs |
//! | `subject_calls` | calls about the subject of a callback |

mod callbacks;
mod collector;
mod names;
mod process_calls;
mod sampler;
mod subject;
mod subject_calls;
mod walks;

use crate::output::{self, Output};
use crate::settings::Settings;
pub(crate) use callbacks::CallingProfiler;
use clr_com::{ICorProfilerInfo10, IUnknown, RuntimeInfo};
use clr_sampler::lock;
use clr_walker::profiling::{HResult, ProfilerInfo as _, ThreadId};
use names::Names;
use sampler::Sampler;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use subject::Subject;
use walks::Shape;

thread_local! {
    /// The callbacks that were made during the call that this thread makes; `None` outside calls.
    static NESTED: RefCell<Option<Vec<&'static str>>> = const { RefCell::new(None) };
}

/// A trace, and what it needs of the runtime.
#[derive(Debug)]
pub(crate) struct Trace {
    info: RuntimeInfo,
    /// The same object, for methods whose results the other one does not give.
    raw: ICorProfilerInfo10,
    names: Names,
    state: Mutex<State>,
    /// The first two threads that were listed: in a CLR the first one and that of the finalizers, which go
    /// on to the end.
    lasting: Mutex<Vec<ThreadId>>,
    sampler: Sampler,
    /// A thread that forces GCs is still to be started.
    collector: AtomicBool,
}

#[derive(Debug)]
struct State {
    out: Option<Output>,
    /// True once something could not be written to it.
    is_cut: bool,
    /// The answers that were written, with the callback.
    written: BTreeSet<(&'static str, String)>,
    /// The threads that were in the program's code when they were last walked.
    in_program: BTreeSet<ThreadId>,
    /// True if a thread has been in the program's code.
    has_begun: bool,
    /// The thread that suspends the runtime, or has suspended it.
    suspending: Option<ThreadId>,
}

/// The lines of a callback.
#[derive(Debug, Default)]
struct Block {
    lines: Vec<Line>,
    /// The first walk and the last one, without the calls' names.
    first: Option<String>,
    last: Option<String>,
    /// Number of calls.
    calls: usize,
}

#[derive(Debug)]
struct Line {
    text: String,
    /// Written even if the same line was written before.
    is_walk: bool,
}

impl Block {
    /// Adds the result of a call, and what it gave.
    fn add(&mut self, call: &str, result: HResult, given: &str) {
        self.calls += 1;
        let text = format!("{call}: {}", answer(result, given));
        self.lines.push(Line { text, is_walk: false });
    }

    /// Adds a walk. One that comes out as the first one, or as the one before, gets no line.
    fn add_walk(&mut self, call: &str, shape: &Shape) {
        self.add_answer(call, answer(shape.result, &shape.text()));
    }

    fn add_answer(&mut self, call: &str, answer: String) {
        self.calls += 1;
        if self.first.as_ref() != Some(&answer) && self.last.as_ref() != Some(&answer) {
            self.lines.push(Line { text: format!("{call}: {answer}"), is_walk: true });
        }
        self.first.get_or_insert_with(|| answer.clone());
        self.last = Some(answer);
    }
}

fn answer(result: HResult, given: &str) -> String {
    if given.is_empty() { result.to_string() } else { format!("{result} {given}") }
}

impl Trace {
    /// Begins a trace, in `Initialize`: chooses the callbacks, and opens the file.
    ///
    /// # Errors
    /// A text for people: the runtime is too old, or refuses, or the file cannot be made.
    fn begin(info: &IUnknown, settings: &Settings) -> Result<Self, String> {
        let raw: ICorProfilerInfo10 =
            info.cast().map_err(|result| format!("ICorProfilerInfo10: {result}"))?;
        // SAFETY: the call has no pointers.
        let result = unsafe { raw.SetEventMask2(settings.events, 0) };
        if result.is_failure() {
            return Err(format!("SetEventMask2: {result}"));
        }
        let info =
            RuntimeInfo::new(info).map_err(|result| format!("ICorProfilerInfo2: {result}"))?;
        let create = |path: &PathBuf| {
            let output = Output::create(path, Duration::ZERO);
            output.map_err(|error| format!("{}: {error}", path.display()))
        };
        let state = State {
            out: settings.out.as_ref().map(create).transpose()?,
            is_cut: false,
            written: BTreeSet::new(),
            in_program: BTreeSet::new(),
            has_begun: false,
            suspending: None,
        };
        let sampler = Sampler::default();
        if settings.sampler {
            sampler.start(info.clone())?;
        }
        let names = Names::new(&settings.module);
        Ok(Self {
            info,
            raw,
            names,
            state: Mutex::new(state),
            lasting: Mutex::default(),
            sampler,
            collector: AtomicBool::new(settings.collector),
        })
    }

    /// Makes the calls of a callback, and writes their results if it is about the program's code.
    fn on(&self, callback: &'static str, subject: Subject) {
        let is_nested = NESTED.with_borrow_mut(|nested| {
            nested.as_mut().is_some_and(|nested| {
                nested.push(callback);
                true
            })
        });
        if is_nested {
            return;
        }
        NESTED.set(Some(Vec::new()));
        self.act(callback, subject);
        NESTED.set(None);
    }

    fn act(&self, callback: &'static str, subject: Subject) {
        let own = self.info.get_current_thread_id().unwrap_or_default();
        let walk = self.walk_own();
        if !self.is_wanted(callback, subject, own, &walk) {
            return;
        }
        // The thread is preemptive in this callback, so that it may wait for a GC.
        if callback == "JITCompilationFinished" && self.collector.swap(false, Ordering::Relaxed) {
            self.ask_collector();
        }
        let mut block = Block::default();
        if callback == "Shutdown"
            && let Some(walks) = self.sampler.stop()
        {
            let given = if walks > 0 { "with frames" } else { "without frames" };
            block.add("walks of the sampler", HResult::OK, given);
        }
        self.ask_walks(&mut block, own, &walk);
        self.ask_about(&mut block, subject);
        self.ask_process(&mut block);
        self.ask_threads(&mut block, callback, own);
        if callback != "Initialize" {
            self.ask_too_late(&mut block);
        }
        self.ask_suspension(&mut block);
        self.force(&mut block, "ForceGC");
        self.write(callback, &subject.name(&self.names, &self.raw, own), &block);
    }

    /// Returns true if a callback is about the program's code, or happens in it.
    fn is_wanted(&self, callback: &str, subject: Subject, own: ThreadId, walk: &Shape) -> bool {
        let mut state = lock(&self.state);
        let in_program = if walk.result.is_failure() {
            state.in_program.contains(&own)
        } else {
            walk.is_in_program()
        };
        if in_program {
            state.in_program.insert(own);
            state.has_begun = true;
        } else {
            state.in_program.remove(&own);
        }
        match callback {
            "RuntimeSuspendStarted" => state.suspending = Some(own),
            "RuntimeResumeFinished" | "RuntimeSuspendAborted" => state.suspending = None,
            // Another thread that comes to a suspension depends on the time.
            "RuntimeThreadSuspended" | "RuntimeThreadResumed" if state.suspending != Some(own) => {
                return false;
            }
            _ => {}
        }
        match subject {
            Subject::Nothing => in_program || matches!(callback, "Initialize" | "Shutdown"),
            Subject::Thread(_) => state.has_begun,
            Subject::Object(..) | Subject::Thrown(_) => walk.is_innermost_of_program(),
            _ => subject.is_of_program(&self.names, &self.raw),
        }
    }

    /// Takes the names of the callbacks that were made since the last call.
    fn nested() -> Vec<&'static str> {
        NESTED.with_borrow_mut(|nested| nested.as_mut().map(std::mem::take).unwrap_or_default())
    }

    fn write(&self, callback: &'static str, subject: &str, block: &Block) {
        let mut text = callback.to_owned();
        if !subject.is_empty() {
            let _ = write!(text, " {subject}");
        }
        let _ = writeln!(text, " ({} calls)", block.calls);
        let mut state = lock(&self.state);
        let state = &mut *state;
        for line in &block.lines {
            let is_new = state.written.insert((callback, line.text.clone()));
            if is_new || line.is_walk {
                let _ = writeln!(text, "  {}", line.text);
            }
        }
        match &mut state.out {
            Some(out) => {
                // What fits may be a line later: the part before it is missing then.
                if !state.is_cut
                    && let Err(error) = out.write(text.as_bytes())
                {
                    output::say(format_args!("{error}"));
                    state.is_cut = true;
                }
            }
            None => output::append(None, text.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_that_come_out_as_the_first_or_the_last_get_no_line() {
        let mut block = Block::default();
        for answer in ["A", "A", "B", "B", "A", "B"] {
            block.add_answer("walk", answer.to_owned());
        }
        let lines: Vec<_> = block.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(lines, ["walk: A", "walk: B", "walk: B"]);
        assert_eq!(block.calls, 6);
    }
}
