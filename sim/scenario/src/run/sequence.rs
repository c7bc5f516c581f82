//! The callbacks of a program on a runtime, in their order, as the profiler of recorded sequences writes them down.
//!
//! The recording goes on from the call of `App.Begin` to that of `App.End`, if the program has these. The threads go
//! on one after another, each until it waits, or for a turn. Native functions with the names of requests are code of the
//! profiler that the program calls: `RequestReJIT:App.M` requests a ReJIT of that method, `RequestRevert:App.M` ends it, and
//! `RequestProfilerDetach` detaches the profiler. `App.SeqMark:1` begins the recording, `App.SeqMark:0` ends it, and those
//! with other numbers are marks in it. Overloads end with `:` and a number, which recordings do not have.

use crate::Scenario;
use clr_codegen::FunctionIndex;
use clr_recording::{Sequence, SequenceCallback, SequenceLine, SequenceMode, SequenceWalks};
use clr_runtime::explain::Event;
use clr_runtime::generation::Generation;
use clr_runtime::metadata::Module;
use clr_runtime::profiling::{CallbackKind as Kind, HResult, SnapshotRequest, SuspensionReason};
use clr_runtime::{OsThreadId, Outcome, ProfilerStatus};
use clr_walker::profiling::{EventMask, FunctionId};
use clr_world::stubs::{Hooks, Stub};
use clr_world::{
    BuildError, CallbackArguments, Collection, ExceptionClass, HookKind, StepEvent, Waiting, World,
    WorldError,
};
use thiserror::Error;

/// Maximum number of steps of all threads together.
const STEPS: u64 = 4_000_000;
/// Number of steps after which the next thread goes on.
const TURN: u32 = 1_000;
/// Functions of the program between whose calls callbacks are written down.
const BEGIN: &str = "App.Begin";
const END: &str = "App.End";

/// The reason why a program has no sequence of callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SequenceRunError {
    /// The scenario is a stack placed by hand.
    #[error("the text has no program")]
    NoProgram,
    /// The program cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread cannot go on.
    #[error("thread {thread}: {error}")]
    World {
        /// Index of the thread, from 0.
        thread: usize,
        /// Reason.
        error: WorldError,
    },
    /// No thread can go on.
    #[error("no thread goes on after {steps} steps")]
    Stuck {
        /// Number of steps.
        steps: u64,
    },
}

/// The callbacks that the profiler of a recorded sequence gets from a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequenceRun {
    /// The callbacks in their order.
    pub lines: Vec<SequenceLine>,
    /// The events of the walks in callbacks, each with the index of its line.
    pub walks: Vec<(usize, Vec<Event>)>,
}

impl Scenario {
    /// Executes the program, and returns the callbacks that the profiler of a recorded sequence gets there.
    ///
    /// # Errors
    /// Returns [`SequenceRunError`].
    pub fn sequence_on(
        &self,
        generation: Generation,
        recorded: &Sequence,
    ) -> Result<SequenceRun, SequenceRunError> {
        if self.stack.is_some() {
            return Err(SequenceRunError::NoProgram);
        }
        let hooks = if recorded.asks_for("elt") { Hooks::Slow } else { Hooks::None };
        let build = self.build_with(generation, hooks)?;
        let mut world = build.world(&self.starts())?;
        world.end_by(self.process_end());
        world.shared().change_process(|process| {
            process.event_mask = EventMask(recorded.event_mask());
        });
        let has_start = recorded.begins_with_start();
        if has_start {
            world.begin_with_start_of_program();
        }
        let [begin, end] = [BEGIN, END].map(|name| self.function(name));
        let requests = self.requests();
        let mark = |number| {
            let is_it =
                |(_, request): &&(FunctionIndex, Request)| *request == Request::Mark(number);
            requests.iter().find(is_it).map(|(function, _)| *function)
        };
        let (begin, end) = (mark(1).or(begin), mark(0).or(end));
        let [begin, end] = [begin, end].map(|function| function.filter(|_| !has_start));
        let requested = requests.iter().map(|(function, _)| *function);
        world.report_entries(begin.into_iter().chain(end).chain(requested));
        let mut profiler = Recorder {
            recorded,
            is_on: begin.is_none(),
            threads: vec![OsThreadId(1)],
            names: self.threads.iter().map(|thread| thread.name.clone()).collect(),
            run: SequenceRun::default(),
            requests,
        };
        // The finalizer's thread is the second one that is created.
        if recorded.asks_for("threads") {
            let finalizer = self.threads.iter().position(|thread| thread.finalizer);
            profiler.threads.push(finalizer.and_then(|it| world.os(it)).unwrap_or_default());
        }
        // What the profiler was told first is no callback of a thread of the runtime.
        profiler
            .run
            .lines
            .extend(recorded.lines.iter().take_while(|line| line.is_initialize()).cloned());
        profiler.execute(&mut world, (begin, end))?;
        Ok(profiler.run)
    }
}

/// The profiler of a recorded sequence.
struct Recorder<'r> {
    recorded: &'r Sequence,
    is_on: bool,
    /// The threads by first appearance.
    threads: Vec<OsThreadId>,
    /// The names of the program's threads.
    names: Vec<String>,
    run: SequenceRun,
    /// The functions by which the program makes the profiler request something.
    requests: Vec<(FunctionIndex, Request)>,
}

/// A request of a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Mark(u32),
    ReJit(FunctionIndex),
    Revert,
    Detach,
}

impl Scenario {
    /// Returns the functions of unmanaged code that have the names of requests.
    fn requests(&self) -> Vec<(FunctionIndex, Request)> {
        let request = |name: &str| match name.split_once(':') {
            Some(("RequestReJIT", method)) => self.function(method).map(Request::ReJit),
            Some(("RequestRevert", _)) => Some(Request::Revert),
            Some(("App.SeqMark", number)) => number.parse().ok().map(Request::Mark),
            None if name == "RequestProfilerDetach" => Some(Request::Detach),
            _ => None,
        };
        let functions = self.program.functions.iter().zip((0..).map(FunctionIndex));
        functions.filter_map(|(function, id)| Some((id, request(&function.name)?))).collect()
    }
}

impl Recorder<'_> {
    /// Executes all threads to their ends, or to that of the process.
    fn execute(
        &mut self,
        world: &mut World<'_>,
        (begin, end): (Option<FunctionIndex>, Option<FunctionIndex>),
    ) -> Result<(), SequenceRunError> {
        let threads = world.thread_count();
        let mut waiting = vec![Waiting::default(); threads];
        let mut steps = 0;
        loop {
            let (mut went_on, mut ended) = (false, 0);
            for thread in 0..threads {
                for _ in 0..TURN {
                    steps += 1;
                    if steps > STEPS {
                        return Err(SequenceRunError::Stuck { steps });
                    }
                    let event = world.step(thread);
                    let event = event.map_err(|error| SequenceRunError::World { thread, error })?;
                    let waits = waiting.get_mut(thread).is_some_and(|one| one.is_for_others(event));
                    went_on |= !waits && event != StepEvent::Ended;
                    match event {
                        StepEvent::Callback(kind) => {
                            if self.is_on {
                                self.note(world, thread, kind);
                            }
                        }
                        StepEvent::Entered(function) => {
                            self.enter(world, function);
                            self.is_on =
                                Some(function) == begin || self.is_on && Some(function) != end;
                        }
                        StepEvent::Ended => ended += 1,
                        StepEvent::Stepped | StepEvent::Hook | StepEvent::Waits => {}
                    }
                    self.detach_if_asked(world);
                    if world.is_unhandled(thread) || world.has_exited() {
                        return Ok(());
                    }
                    if matches!(event, StepEvent::Waits | StepEvent::Ended) {
                        break;
                    }
                }
            }
            if ended == threads {
                return Ok(());
            }
            if !went_on {
                return Err(SequenceRunError::Stuck { steps });
            }
        }
    }

    /// Makes the request of the function that the program calls, if it stands for one.
    fn enter(&mut self, world: &mut World<'_>, function: FunctionIndex) {
        let found = self.requests.iter().find(|(of, _)| *of == function);
        let Some((_, request)) = found else { return };
        let name = match *request {
            Request::Mark(0 | 1) => return,
            Request::Mark(number) => {
                self.run.lines.push(SequenceLine::Request(number.to_string()));
                return;
            }
            Request::ReJit(method) => {
                world.request_rejit(method);
                "RequestReJIT"
            }
            // The next call executes the code from before: nothing is compiled.
            Request::Revert => "RequestRevert",
            Request::Detach => {
                let detaching = ProfilerStatus::Detaching;
                world.shared().change_process(|process| process.profiler = detaching);
                "RequestProfilerDetach"
            }
        };
        self.run.lines.push(SequenceLine::Request(format!("{name} S_OK")));
    }

    /// Detaches a profiler that has asked for it once no thread is in a callback: a thread of the runtime does so, of which the
    /// recording says nothing.
    fn detach_if_asked(&mut self, world: &World<'_>) {
        let process = world.shared().process.get();
        let is_in_callback = |thread| world.callback(thread).is_some();
        let is_busy = (0..world.thread_count()).any(is_in_callback);
        if process.profiler != ProfilerStatus::Detaching || is_busy {
            return;
        }
        world.shared().change_process(|process| process.profiler = ProfilerStatus::None);
        self.run.lines.push(SequenceLine::Callback(SequenceCallback {
            thread: None,
            mode: None,
            name: "ProfilerDetachSucceeded".to_owned(),
            repeats: false,
            arguments: String::new(),
            walk: None,
        }));
    }

    /// Returns the number of a thread.
    fn number(&mut self, os: OsThreadId) -> u32 {
        let known = self.threads.iter().position(|thread| *thread == os);
        let index = known.unwrap_or_else(|| {
            self.threads.push(os);
            self.threads.len() - 1
        });
        index as u32 + 1
    }

    /// Writes the callback down that a thread is in.
    fn note(&mut self, world: &mut World<'_>, thread: usize, kind: Kind) {
        world.sync();
        let os = world.os(thread).unwrap_or_default();
        let number = self.number(os);
        let mode = match world.object(thread) {
            None => SequenceMode::Unknown,
            Some(_) if world.is_cooperative(thread) => SequenceMode::Cooperative,
            Some(_) => SequenceMode::Preemptive,
        };
        let arguments = world.callback_arguments(thread);
        let about = world.shared().thread_of(arguments.thread, |thread| thread.os).unwrap_or(os);
        let (name, arguments) = match (kind, world.hook(thread)) {
            (Kind::EnterLeaveSlow, Some((hook, function))) => {
                (hook_name(hook), function_name(world, function))
            }
            _ if kind == Kind::ThreadNameChanged => {
                let at = (0..world.thread_count()).find(|it| world.os(*it) == Some(about));
                let number = self.number(about);
                let name = at.and_then(|at| self.names.get(at)).map_or("", String::as_str);
                (kind.name(), format!("T{number} {name}"))
            }
            _ => {
                let about = self.number(about);
                (kind.name(), words(world, kind, &arguments, about))
            }
        };
        let names: &[&str] = match kind {
            Kind::SurvivingReferences => &["SurvivingReferences2", "SurvivingReferences"],
            Kind::MovedReferences => &["MovedReferences2", "MovedReferences"],
            Kind::RootReferences => &["RootReferences2", "RootReferences"],
            _ => &[name],
        };
        let is_walked = match self.recorded.walks {
            SequenceWalks::None => false,
            SequenceWalks::Exceptions => name.starts_with("Exception"),
            SequenceWalks::All => true,
        };
        // Callbacks of the GC are made to the newer interface first.
        for (index, name) in names.iter().enumerate() {
            let walk = is_walked.then(|| {
                let (walk, events) = walk(world, os);
                self.run.walks.push((self.run.lines.len(), events));
                walk
            });
            self.run.lines.push(SequenceLine::Callback(SequenceCallback {
                thread: Some(number),
                mode: Some(mode),
                name: (*name).to_owned(),
                repeats: false,
                arguments: if index == 0 { arguments.clone() } else { String::new() },
                walk,
            }));
        }
    }
}

const fn hook_name(hook: HookKind) -> &'static str {
    match hook {
        HookKind::Enter => "Enter",
        HookKind::Leave => "Leave",
        HookKind::Tailcall => "Tailcall",
    }
}

fn function_name(world: &World<'_>, function: FunctionId) -> String {
    let method = world.as_synced().code.method(function);
    method.map_or_else(|| "0".to_owned(), |(_, method)| recorded_name(&method.name).to_owned())
}

/// Returns the name of a method's class.
fn class_name(world: &World<'_>, function: FunctionId) -> String {
    let name = function_name(world, function);
    // The name of a constructor begins with a dot.
    let class = name.strip_suffix("..ctor").or(name.strip_suffix("..cctor"));
    let class = class.or_else(|| name.rsplit_once('.').map(|(class, _)| class));
    class.unwrap_or(&name).to_owned()
}

/// Returns the file name of a module, by its `ModuleID`.
fn module_name<'w>(world: &'w World<'_>, module: u64) -> &'w str {
    world.as_synced().metadata.module(module).map_or("", Module::name)
}

/// Returns the simple name of the assembly that a module is the manifest module of.
fn assembly_name<'w>(world: &'w World<'_>, module: u64) -> &'w str {
    world.as_synced().metadata.module(module).map_or("", |module| &module.assembly_name)
}

fn exception_name(world: &World<'_>, class: ExceptionClass) -> String {
    match (class, class.name()) {
        (_, Some(name)) => name.to_owned(),
        (ExceptionClass::Of(constructor), _) => class_name(world, constructor),
        (_, None) => "?object".to_owned(),
    }
}

/// Returns the arguments of a callback that a thread with this number is in.
fn words(world: &World<'_>, kind: Kind, arguments: &CallbackArguments, number: u32) -> String {
    let function = || function_name(world, arguments.function);
    match kind {
        Kind::ThreadCreated
        | Kind::ThreadDestroyed
        | Kind::ThreadAssignedToOSThread
        | Kind::RuntimeThreadSuspended
        | Kind::RuntimeThreadResumed => format!("T{number}"),
        Kind::ExceptionSearchFunctionEnter
        | Kind::ExceptionSearchFilterEnter
        | Kind::ExceptionSearchCatcherFound
        | Kind::ExceptionUnwindFunctionEnter
        | Kind::ExceptionUnwindFinallyEnter
        | Kind::FunctionUnloadStarted => function(),
        Kind::HandleCreated if arguments.object == 0 => "NULL".to_owned(),
        Kind::ObjectAllocated | Kind::HandleCreated
            if arguments.class == ExceptionClass::Unknown =>
        {
            "?type".to_owned()
        }
        Kind::ExceptionThrown | Kind::ObjectAllocated | Kind::HandleCreated => {
            exception_name(world, arguments.class)
        }
        Kind::GetReJITParameters | Kind::ModuleUnloadStarted => {
            module_name(world, arguments.module).to_owned()
        }
        Kind::ModuleLoadFinished => format!("{} S_OK", module_name(world, arguments.module)),
        Kind::ModuleAttachedToAssembly => format!(
            "{} {}",
            module_name(world, arguments.module),
            assembly_name(world, arguments.module)
        ),
        Kind::AssemblyLoadFinished => format!("{} S_OK", assembly_name(world, arguments.module)),
        Kind::AssemblyUnloadStarted => assembly_name(world, arguments.module).to_owned(),
        Kind::ExceptionCatcherEnter => {
            format!("{} {}", function(), exception_name(world, arguments.class))
        }
        Kind::JITCompilationStarted | Kind::ReJITCompilationStarted => {
            format!("{} safe", function())
        }
        Kind::JITCompilationFinished | Kind::ReJITCompilationFinished => {
            format!("{} S_OK safe", function())
        }
        Kind::JITInlining => {
            format!("{} {}", function_name(world, arguments.caller), function())
        }
        Kind::DynamicMethodJITCompilationStarted => format!("dynamic:{} safe", function()),
        Kind::DynamicMethodJITCompilationFinished => format!("dynamic:{} S_OK safe", function()),
        Kind::DynamicMethodUnloaded => format!("dynamic:{}", function()),
        Kind::ManagedToUnmanagedTransition | Kind::UnmanagedToManagedTransition => {
            format!("{} {}", function(), if arguments.returns { "return" } else { "call" })
        }
        Kind::RuntimeSuspendStarted => match arguments.suspension {
            SuspensionReason::Profiler => "PROFILER".to_owned(),
            SuspensionReason::Gc => "GC".to_owned(),
            SuspensionReason::Unload => "APPDOMAIN_SHUTDOWN".to_owned(),
        },
        Kind::ClassLoadStarted | Kind::ClassUnloadStarted | Kind::FinalizeableObjectQueued => {
            class_name(world, arguments.function)
        }
        Kind::ClassLoadFinished => format!("{} S_OK", class_name(world, arguments.function)),
        Kind::ClassUnloadFinished
        | Kind::ModuleUnloadFinished
        | Kind::AssemblyUnloadFinished
        | Kind::AppDomainCreationFinished => "S_OK".to_owned(),
        Kind::GarbageCollectionStarted => {
            let family = world.generation().family();
            let generations =
                arguments.collection.generations(if family.is_core_since(5) { 5 } else { 4 });
            let bits: String =
                generations.iter().map(|collected| if *collected { '1' } else { '0' }).collect();
            let counts_as_induced = arguments.collection != Collection::Compacting
                || world.generation().compacts_as_induced();
            let induced = arguments.induced && counts_as_induced;
            format!("{bits} {}", if induced { "INDUCED" } else { "OTHER" })
        }
        Kind::MovedReferences => "moved".to_owned(),
        // The runtime has roots of its own on stacks and in handles.
        Kind::RootReferences if arguments.finalizing => "stack finalizer handle".to_owned(),
        Kind::RootReferences => "stack handle".to_owned(),
        _ => String::new(),
    }
}

/// Returns the name that a recording has for a method: without the number that tells overloads apart, and that of the P/Invoke
/// for the code of one.
fn recorded_name(name: &str) -> &str {
    let name = name.strip_prefix(Stub::PInvokeMethod.prefix()).unwrap_or(name);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once(':').filter(|(_, number)| is_number(number)).map_or(name, |(name, _)| name)
}

/// Walks the thread's own stack as the profiler does, and returns the result with the names of the frames, and the events.
fn walk(world: &World<'_>, os: OsThreadId) -> (String, Vec<Event>) {
    let runtime = world.as_synced();
    runtime.log.listen();
    let mut frames = String::new();
    let outcome = runtime.on(os).do_stack_snapshot(
        &SnapshotRequest::default(),
        Some(&mut |frame| {
            frames.push(' ');
            match frame.function.and_then(|function| runtime.code.method(function)) {
                Some((_, method)) => frames.push_str(recorded_name(&method.name)),
                None => frames.push('-'),
            }
            HResult::OK
        }),
    );
    let result = match outcome {
        Outcome::Returned(HResult::OK) => "S_OK".to_owned(),
        Outcome::Returned(HResult::UNMANAGED_CONTEXT) => "UNMANAGED_CTX".to_owned(),
        Outcome::Returned(HResult::UNSAFE) => "UNSAFE".to_owned(),
        Outcome::Returned(HResult::FAIL) => "E_FAIL".to_owned(),
        other => other.to_string(),
    };
    (result + &frames, runtime.log.take())
}
