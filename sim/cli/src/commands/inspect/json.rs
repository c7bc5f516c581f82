//! A process as JSON.

use super::{code, end, why};
use crate::PASSED;
use crate::args::InspectArgs;
use crate::input::native::NativeNames;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::write_json;
use clr_dump::{CoreDump, StoppedProcess as _, System, Thread, Wait};
use clr_inspect::{
    CodeKind, ExplicitFrame, FrameKind, InspectError, ManagedThread, MethodNames, Mode, Runtime,
    Stack, StackFrame, StackWalker,
};
use serde::Serialize;

/// The process.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Report<'p> {
    file: &'p str,
    system: &'static str,
    modules: Vec<Module<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<RuntimeReport>,
    threads: Vec<ThreadReport>,
    unknown: Vec<String>,
}

/// An image that is loaded.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Module<'p> {
    path: &'p str,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_error: Option<String>,
}

/// What the runtime says of itself.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct RuntimeReport {
    path: String,
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspender: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<String>,
}

/// A thread.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct ThreadReport {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed: Option<Managed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<WaitReport>,
    frames: Vec<Frame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
}

/// What the runtime says of a thread.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Managed {
    number: u32,
    mode: &'static str,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<Exception>,
    runtime_frames: Vec<RuntimeFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
}

/// The exception that was thrown last.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Exception {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// A Frame of the runtime.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct RuntimeFrame {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

/// What a thread waits for.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct WaitReport {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
}

/// A frame of a stack.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Frame {
    sp: String,
    ip: String,
    kind: &'static str,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// Prints the process, and returns the exit code.
pub(super) fn write(
    name: &str,
    args: &InspectArgs,
    process: &CoreDump<'_>,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    write_json(&Reader::new(process).report(name, args.thread), console)?;
    Ok(PASSED)
}

/// Reads a process.
struct Reader<'p> {
    process: &'p CoreDump<'p>,
    runtime: Option<Runtime>,
    walker: StackWalker<'p, 'p, CoreDump<'p>>,
    names: Option<MethodNames<'p, CoreDump<'p>>>,
    natives: NativeNames<'p>,
    unknown: Vec<String>,
}

impl<'p> Reader<'p> {
    fn new(process: &'p CoreDump<'p>) -> Self {
        let mut unknown = Vec::new();
        let mut note = |what: &str, error: InspectError| {
            unknown.push(format!("{what}: {}", why(process, error)));
        };
        let runtime = Runtime::find(process).map_err(|error| note("the runtime", error)).ok();
        let names = runtime.as_ref().and_then(|runtime| {
            let names = MethodNames::new(process, runtime);
            names.map_err(|error| note("names of methods", error)).ok()
        });
        let walker = StackWalker::new(process, process.code_map(), runtime.as_ref());
        Self { process, runtime, walker, names, natives: NativeNames::new(process), unknown }
    }

    fn report(mut self, file: &'p str, only: Option<u32>) -> Report<'p> {
        let (runtime, managed) = self.runtime();
        let process = self.process;
        let wanted = process.threads().iter().filter(|it| only.is_none_or(|id| id == it.id));
        let threads = wanted
            .map(|thread| self.thread(thread, managed.iter().find(|it| it.os_id == thread.id)));
        let threads = threads.collect();
        let modules = process.modules().iter().map(|module| Module {
            path: &module.path,
            address: hex(module.range.start),
            file_error: module.file.as_ref().err().map(ToString::to_string),
        });
        Report {
            file,
            system: match process.system() {
                System::Linux => "linux",
                System::Windows => "windows",
            },
            modules: modules.collect(),
            runtime,
            threads,
            unknown: self.unknown,
        }
    }

    fn note(&mut self, what: &str, error: InspectError) {
        self.unknown.push(format!("{what}: {}", why(self.process, error)));
    }

    /// Reads what the runtime says of itself, and its threads.
    fn runtime(&mut self) -> (Option<RuntimeReport>, Vec<ManagedThread>) {
        let Some(runtime) = self.runtime.clone() else { return (None, Vec::new()) };
        let list = match runtime.threads(self.process) {
            Ok(list) => list,
            Err(error) => {
                self.note("threads of the runtime", error);
                return (None, Vec::new());
            }
        };
        if let Err(error) = list.end {
            self.note("threads of the runtime", error);
        }
        let mask = runtime.event_mask(self.process);
        let events = mask.map_err(|error| self.note("whether there is a profiler", error)).ok();
        let report = RuntimeReport {
            path: runtime.path().to_owned(),
            count: list.store.count,
            suspender: list.store.suspender.map(hex),
            events: events.map(hex),
        };
        (Some(report), list.threads)
    }

    fn thread(&mut self, thread: &Thread, known: Option<&ManagedThread>) -> ThreadReport {
        let stack: Stack = self.walker.walk(&thread.registers);
        ThreadReport {
            id: thread.id,
            managed: known.map(|known| self.managed(known)),
            wait: Wait::of(self.process, thread).map(WaitReport::new),
            frames: stack.frames.iter().map(|frame| self.frame(frame)).collect(),
            cut: end(&stack),
        }
    }

    fn managed(&mut self, known: &ManagedThread) -> Managed {
        let of_frame = |frame: &ExplicitFrame| RuntimeFrame {
            address: hex(frame.address),
            kind: match frame.kind {
                FrameKind::Named(name) => Some(name),
                FrameKind::Unnamed(_) => None,
            },
        };
        Managed {
            number: known.id,
            mode: match known.mode {
                Mode::Cooperative => "cooperative",
                Mode::Preemptive => "preemptive",
            },
            state: hex(known.state.0.into()),
            exception: self.exception(known),
            runtime_frames: known.frames.iter().map(of_frame).collect(),
            cut: known.frames_end.err().map(|error| error.to_string()),
        }
    }

    fn exception(&mut self, known: &ManagedThread) -> Option<Exception> {
        let object = known.last_thrown.ok()??;
        let (names, runtime) = (self.names.as_mut()?, self.runtime.as_ref()?);
        Some(match names.exception(runtime.descriptor(), object) {
            Ok(it) => Exception { class: Some(it.class), message: it.message, unknown: None },
            Err(error) => {
                let unknown = Some(why(self.process, error));
                Exception { class: None, message: None, unknown }
            }
        })
    }

    fn frame(&mut self, frame: &StackFrame) -> Frame {
        let native = || self.natives.at(frame.registers.rip, frame.position);
        let function = (frame.code == CodeKind::Native).then(native).flatten();
        Frame {
            sp: hex(frame.registers.rsp()),
            ip: hex(frame.registers.rip),
            kind: match frame.code {
                CodeKind::Native => "native",
                CodeKind::Jitted { .. } => "jitted",
                CodeKind::ReadyToRun { .. } => "ready-to-run",
                CodeKind::Stub => "stub",
                CodeKind::Unknown => "unknown",
            },
            code: code(self.process, frame, self.names.as_mut()),
            function,
        }
    }
}

impl WaitReport {
    fn new(wait: Wait) -> Self {
        let (kind, address) = match wait {
            Wait::Mutex { address, .. } => ("mutex", Some(address)),
            Wait::Thread { .. } => ("end", None),
            Wait::Word { address, .. } => ("word", Some(address)),
            Wait::Call { .. } => ("call", None),
        };
        let number = if let Wait::Call { number } = wait { Some(number) } else { None };
        Self { kind, address: address.map(hex), thread: wait.on(), number }
    }
}
