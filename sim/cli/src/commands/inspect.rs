//! `clrsim inspect`: the threads of a dump.

pub(crate) mod json;
mod snapshot;

use crate::PASSED;
use crate::args::InspectArgs;
use crate::input::dump::DumpFile;
use crate::input::native::NativeNames;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use clr_dump::{CoreDump, StoppedProcess as _, Thread, Wait};
use clr_import::ImportError;
use clr_inspect::{
    CodeKind, Exception, FrameKind, InspectError, ManagedThread, MethodNames, Mode, Runtime, Stack,
    StackEnd, StackFrame, StackWalker,
};
use clr_unwind::{Unreadable, UnwindError};

/// Prints the process and returns the exit code.
pub(crate) fn inspect(args: &InspectArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    if !args.snapshot && args.call.is_given() {
        let what = "--by, --seed and --suspended say how --snapshot is made, which is not there";
        return Err(CliError::Text(what.to_owned()));
    }
    let dump = DumpFile::read(&args.dump)?;
    let process = dump.open()?;
    if let Some(thread) = args.thread.filter(|thread| process.thread(*thread).is_none()) {
        return Err(dump.error(ImportError::NoThread(thread)));
    }
    if let Some(thread) = args.thread.filter(|_| args.snapshot) {
        return snapshot::snapshot(args, &process, thread, console);
    }
    if args.json.wanted {
        return json::write(dump.name(), args, &process, console);
    }
    write_files(&process, console)?;
    let runtime = Runtime::find(&process);
    let managed = write_runtime(&process, runtime.as_ref(), console)?;
    let runtime = runtime.ok();
    let mut walker = StackWalker::new(&process, process.code_map(), runtime.as_ref());
    let names = runtime.as_ref().map(|runtime| MethodNames::new(&process, runtime));
    if let Some(Err(error)) = &names {
        writeln!(console.out, "  methods have no names: {error}")?;
    }
    let mut names = names.and_then(Result::ok);
    let mut natives = NativeNames::new(&process);
    let wanted = |thread: &&Thread| args.thread.is_none_or(|id| id == thread.id);
    for thread in process.threads().iter().filter(wanted) {
        let known = managed.iter().find(|known| known.os_id == thread.id);
        write_thread(&process, thread, known, console)?;
        if let (Some(runtime), Some(known)) = (&runtime, known) {
            write_exception(runtime, known, names.as_mut(), &process, console)?;
        }
        let stack = walker.walk(&thread.registers);
        for frame in &stack.frames {
            let line = line(&process, frame, names.as_mut());
            let native = || natives.at(frame.registers.rip, frame.position);
            let native = (frame.code == CodeKind::Native).then(native).flatten();
            let native = native.map_or_else(String::new, |name| format!(" {name}"));
            writeln!(console.out, "  {line}{native}")?;
        }
        if let Some(end) = end(&stack) {
            writeln!(console.out, "  … {end}")?;
        }
        write_frames(known, console)?;
    }
    Ok(PASSED)
}

/// Prints how many threads and modules there are, and the modules without their files.
pub(super) fn write_files(
    process: &CoreDump<'_>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let (threads, modules) = (process.threads().len(), process.modules());
    writeln!(console.out, "{HEAD}process{HEAD:#} of {threads} threads, {} modules", modules.len())?;
    for module in modules {
        if let Err(error) = &module.file {
            writeln!(console.out, "  {}: {error}", module.path)?;
        }
    }
    Ok(())
}

/// Prints what the runtime says of itself. Returns its threads.
fn write_runtime(
    process: &CoreDump<'_>,
    runtime: Result<&Runtime, &InspectError>,
    console: &mut Console<'_>,
) -> Result<Vec<ManagedThread>, CliError> {
    let read = runtime
        .map_err(|error| *error)
        .and_then(|runtime| Ok((runtime, runtime.threads(process)?)));
    let (runtime, list) = match read {
        Ok(read) => read,
        Err(error) => {
            writeln!(console.out, "{HEAD}runtime{HEAD:#}: {error}")?;
            return Ok(Vec::new());
        }
    };
    writeln!(
        console.out,
        "{HEAD}runtime{HEAD:#} {}: {} threads",
        runtime.path(),
        list.store.count
    )?;
    if let Some(suspender) = list.store.suspender {
        let thread = list.threads.iter().find(|thread| thread.address == suspender);
        let id =
            thread.map_or_else(|| format!("{suspender:#x}"), |thread| thread.os_id.to_string());
        writeln!(console.out, "  thread {id} suspends the others")?;
    }
    match runtime.event_mask(process) {
        Ok(0) => writeln!(console.out, "  no profiler")?,
        Ok(mask) => writeln!(console.out, "  a profiler has asked for the events {mask:#x}")?,
        Err(error) => writeln!(console.out, "  whether there is a profiler is not known: {error}")?,
    }
    if let Err(error) = list.end {
        writeln!(console.out, "  {error}")?;
    }
    Ok(list.threads)
}

/// Prints the heading of a thread.
fn write_thread(
    process: &CoreDump<'_>,
    thread: &Thread,
    known: Option<&ManagedThread>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    write!(console.out, "\n{HEAD}thread {}{HEAD:#}", thread.id)?;
    if let Some(known) = known {
        let mode = match known.mode {
            Mode::Cooperative => "cooperative",
            Mode::Preemptive => "preemptive",
        };
        write!(console.out, ", managed {}, {mode}", known.id)?;
        match known.is_trapped {
            Some(true) => write!(console.out, ", kept from cooperative mode by a suspension")?,
            None if known.state.is_suspension_pending() => {
                write!(console.out, ", to be suspended")?;
            }
            Some(false) | None => {}
        }
    }
    match Wait::of(process, thread) {
        Some(Wait::Mutex { address, owner }) => {
            write!(console.out, ", waits for the mutex {address:#x} of thread {owner}")?;
        }
        Some(Wait::Thread { id }) => write!(console.out, ", waits for the end of thread {id}")?,
        Some(Wait::Word { address, .. }) => {
            write!(console.out, ", waits for a word at {address:#x}")?;
        }
        Some(Wait::Call { number }) => write!(console.out, ", in system call {number}")?,
        None => {}
    }
    Ok(writeln!(console.out)?)
}

/// Returns why something is unknown: for memory that could not be read, what the dump lacks.
fn why(process: &CoreDump<'_>, error: InspectError) -> String {
    let InspectError::Unreadable(Unreadable { address, len }) = error else {
        return error.to_string();
    };
    let missing = (0..len.into()).find_map(|at| process.missing(address.wrapping_add(at)));
    missing.map_or_else(|| error.to_string(), |missing| missing.to_string())
}

/// Prints the exception that a thread has thrown last.
fn write_exception(
    runtime: &Runtime,
    known: &ManagedThread,
    names: Option<&mut MethodNames<'_, CoreDump<'_>>>,
    process: &CoreDump<'_>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let (Ok(Some(object)), Some(names)) = (known.last_thrown, names) else { return Ok(()) };
    match names.exception(runtime.descriptor(), object) {
        Ok(Exception { class, message: Some(message) }) => {
            writeln!(console.out, "  exception {class}: {message}")?;
        }
        Ok(Exception { class, message: None }) => writeln!(console.out, "  exception {class}")?,
        Err(error) => writeln!(console.out, "  exception {object:#x} ({})", why(process, error))?,
    }
    Ok(())
}

/// Returns the line of a frame.
fn line(
    process: &CoreDump<'_>,
    frame: &StackFrame,
    names: Option<&mut MethodNames<'_, CoreDump<'_>>>,
) -> String {
    let (rip, rsp) = (frame.registers.rip, frame.registers.rsp());
    let code = code(process, frame, names);
    format!("{DIM}{rsp:#018x} {rip:#018x}{DIM:#} {code}")
}

/// Returns the code of a frame in words: the method or the module, and how far in it.
fn code(
    process: &CoreDump<'_>,
    frame: &StackFrame,
    names: Option<&mut MethodNames<'_, CoreDump<'_>>>,
) -> String {
    let rip = frame.registers.rip;
    let managed = |method: u64, start: u64| {
        let name = names.map(|names| names.name(method));
        let name = match name {
            Some(Ok(name)) => name.to_string(),
            Some(Err(error)) => format!("method {method:#x} ({})", why(process, error)),
            None => format!("method {method:#x}"),
        };
        format!("{name}+{:#x}", rip.wrapping_sub(start))
    };
    match (frame.code, process.module_at(rip)) {
        (CodeKind::Jitted { method, start } | CodeKind::ReadyToRun { method, start }, _) => {
            managed(method, start)
        }
        (CodeKind::Stub, _) => "a stub of the runtime".to_owned(),
        (_, Some(module)) => format!("{}+{:#x}", module.name(), rip - module.range.start),
        (_, None) => "unknown code".to_owned(),
    }
}

/// Returns why a stack has no more frames, unless it is its end.
fn end(stack: &Stack) -> Option<String> {
    match &stack.end {
        StackEnd::Unwind(UnwindError::EndOfStack { .. }) => None,
        StackEnd::Unwind(error) => Some(error.to_string()),
        StackEnd::Code(error) => Some(error.to_string()),
        StackEnd::TooManyFrames => Some("more frames than are read".to_owned()),
    }
}

/// Prints the runtime's Frames of a thread.
fn write_frames(known: Option<&ManagedThread>, console: &mut Console<'_>) -> Result<(), CliError> {
    let Some(known) = known else { return Ok(()) };
    for frame in &known.frames {
        match frame.kind {
            FrameKind::Named(name) => writeln!(console.out, "  Frame {:#x} {name}", frame.address)?,
            FrameKind::Unnamed(_) => writeln!(console.out, "  Frame {:#x}", frame.address)?,
        }
    }
    if let Err(error) = known.frames_end {
        writeln!(console.out, "  … {error}")?;
    }
    Ok(())
}
