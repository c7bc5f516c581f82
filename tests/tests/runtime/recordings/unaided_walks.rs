//! Recorded threads walked by [`Policy::Signal`], which asks the runtime nothing, held against the frames
//! that the runtime itself reported.
//!
//! Recordings have the code of methods with its unwind data, and the stack, but no native code. So a
//! walk gets from one frame to the next native code. It begins with the registers that the runtime
//! reported for the first frame of each of its runs: of a stack with managed code called by native code that
//! was called by managed code, all managed frames are walked. Only a signal interrupts a thread in a method;
//! the other first frames are at return addresses, and are taken for interrupted ones here.

use super::*;
use clr_recording::{CALLER, SeedLine};
use clr_walker::mixed::{MixedFrame, Source};
use clr_walker::profiling::FunctionId;

/// A frame that the runtime reported, or that a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Managed {
    function: FunctionId,
    ip: u64,
    sp: u64,
}

/// Frames that the runtime reported one after the other, with no native code in between.
struct Run {
    start: Registers,
    frames: Vec<Managed>,
    /// Return address in the native code behind them (VA); `None` if the call was ended before.
    marker: Option<u64>,
}

fn registers(callback: &CallbackLine) -> Option<Registers> {
    let values = callback.registers.as_ref()?;
    let mut registers = Registers { rip: values[16].0, ..Registers::default() };
    for register in Gpr::ALL {
        registers.set(register, values[usize::from(register.number())].0);
    }
    Some(registers)
}

/// Returns the runs of a call; `None` if it reported no registers.
fn runs(recording: &Recording, line: &WalkLine) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_new = true;
    for callback in &line.result.callbacks {
        if let Some(function) = callback.function {
            let start = registers(callback)?;
            let function = FunctionId(recording.function(function)?.function_id.0);
            if is_new {
                runs.push(Run { start, frames: Vec::new(), marker: None });
            }
            let frame = Managed { function, ip: callback.ip.0, sp: start.rsp() };
            runs.last_mut()?.frames.push(frame);
            is_new = false;
        } else {
            if let Some(run) = runs.last_mut().filter(|_| !is_new) {
                run.marker = Some(callback.ip.0);
            }
            is_new = true;
        }
    }
    Some(runs)
}

/// Returns true if a funclet is at `ip` (VA).
fn is_funclet(recording: &Recording, ip: u64) -> bool {
    let entries = recording.codes.iter().flat_map(|code| {
        let at = |rva: u32| code.unwind_base.0.wrapping_add(rva.into());
        let funclets = code.entries.iter().filter(|entry| entry.funclet.is_some());
        funclets.map(move |entry| at(entry.begin)..=at(entry.end))
    });
    entries.into_iter().any(|range| range.contains(&ip))
}

fn managed(frame: &MixedFrame) -> Option<Managed> {
    match frame.kind {
        FrameKind::Managed(function) => Some(Managed { function, ip: frame.ip, sp: frame.sp }),
        _ => None,
    }
}

/// Counts the frames that Frames of the runtime have led to, and of these what the runtime has not reported: a funclet,
/// or a method that handles exceptions, or one rootward of the end of the call.
fn led_on(recording: &Recording, runs: &[Run], stack: &MixedStack) -> [u64; 2] {
    let reported = |sp| runs.iter().flat_map(|run| &run.frames).any(|frame| frame.sp == sp);
    let last = runs.iter().flat_map(|run| &run.frames).map(|frame| frame.sp).max().unwrap_or(0);
    let beyond = stack.frames.iter().skip_while(|frame| frame.source != Source::CallFrame);
    let beyond = beyond.filter_map(managed).filter(|frame| frame.sp <= last);
    let is_hidden = |frame: &Managed| {
        let mut functions = recording.functions.iter();
        functions.any(|it| it.exception_handling && it.function_id.0 == frame.function.0)
    };
    beyond.fold([0, 0], |[all, unreported], frame| {
        let is_there = reported(frame.sp) || is_funclet(recording, frame.ip) || is_hidden(&frame);
        [all + 1, unreported + u64::from(!is_there)]
    })
}

fn walk(replay: &mut RecordingReplay<'_>, line: &WalkLine, start: &Registers) -> MixedStack {
    replay.prepare(line).unwrap();
    let native = SyntheticNative::default();
    let map = replay.runtime().code_map_for(Policy::Signal).unwrap();
    let target = replay.target(line, Some(*start), 0, &native).unwrap();
    let info = replay.runtime().on(CALLER);
    let mut buffer = WalkBuffer::new(1024);
    PolicyWalker::new(&info, &map, Policy::Signal).walk(&target, &mut buffer).unwrap()
}

/// Holds a walk against the run that the runtime reported. Returns the number of frames that are in both,
/// and the way in which the walk ended.
fn judge(
    recording: &Recording,
    run: &Run,
    stack: &MixedStack,
) -> Result<(usize, &'static str), &'static str> {
    // Behind native code a Frame of the runtime may lead on.
    let run_of = stack.frames.iter().take_while(|frame| frame.source != Source::CallFrame);
    let all: Vec<Managed> = run_of.filter_map(managed).collect();
    // The runtime reports the method in place of most of its funclets, and no methods that handle
    // exceptions.
    let is_hidden = |frame: &Managed| {
        let mut functions = recording.functions.iter();
        functions.any(|it| it.exception_handling && it.function_id.0 == frame.function.0)
    };
    let skipped = |frame: &&Managed| {
        run.frames.iter().any(|it| it.sp == frame.sp)
            || !is_funclet(recording, frame.ip) && !is_hidden(frame)
    };
    let found: Vec<_> = all.iter().filter(skipped).copied().collect();
    let common = found.iter().zip(&run.frames).take_while(|(a, b)| a == b).count();
    if common < found.len().min(run.frames.len()) {
        return Err("another frame");
    }
    let ends_in_funclet = all.last().is_some_and(|frame| is_funclet(recording, frame.ip));
    let end = match stack.completeness() {
        // A recorded call may be ended by its callback, and then its stack was not read further.
        _ if run.marker.is_none() && common == run.frames.len() => "to the end of the call",
        // Native code calls a funclet, and the runtime does not report it.
        Completeness::Partial(Reason::NotACall { .. }) if ends_in_funclet => "to a funclet",
        // Nor does it report the native code that handles a fault.
        Completeness::Partial(Reason::NotACall { .. }) if all.last().is_some_and(is_hidden) => {
            "to a method that handles exceptions"
        }
        // Nor the native code that such a method has called.
        Completeness::Partial(Reason::NotACall { .. })
            if common < run.frames.len() && recording.generation.hides_exception_handling() =>
        {
            "to native code that exception handling has called"
        }
        _ if found.len() != run.frames.len() => return Err("another number of frames"),
        Completeness::Partial(Reason::NotACall { address }) if run.marker == Some(address) => {
            "to the marker"
        }
        // The first word of a thread's stack on Windows.
        Completeness::Whole if run.marker == Some(0) => "to the root",
        _ => return Err("another end"),
    };
    Ok((common, end))
}

#[test]
fn walks_that_ask_nothing_have_the_frames_that_the_runtime_reported() {
    let (mut counts, mut frames) = (Counts::default(), Counts::default());
    for (name, recording) in recordings() {
        let code = RecordedCode::new(recording);
        let mut replay = RecordingReplay::new(recording, &code).unwrap();
        let generation = recording.generation;
        for line in &recording.walks {
            let unfit = if !line.replayable || line.state.target.is_some() {
                Some("no live thread")
            } else if line.result.callbacks.is_empty() {
                Some("nothing was reported")
            } else if line.stack.is_none() {
                Some("the stack is not recorded")
            } else {
                None
            };
            let runs = runs(recording, line).ok_or("no registers were reported");
            let runs = match unfit.map_or(runs, Err) {
                Ok(runs) => runs,
                Err(reason) => {
                    counts.add(format!("{generation}, not walked: {reason}"));
                    continue;
                }
            };
            counts.add(format!("{generation}, walked"));
            let seed = line.call.seed.as_ref().map(SeedLine::registers);
            for run in &runs {
                let stack = walk(&mut replay, line, &run.start);
                let [beyond, unreported] = led_on(recording, &runs, &stack);
                assert_eq!(unreported, 0, "{name}, walk {}\n{stack:#x?}", line.n);
                if beyond > 0 {
                    frames.add_many(format!("{generation}: frames that a Frame led to"), beyond);
                }
                let (common, end) = judge(recording, run, &stack).unwrap_or_else(|wrong| {
                    panic!("{name}, walk {}: {wrong}\n{:x?}\n{stack:#x?}", line.n, run.frames)
                });
                let is_seed =
                    seed.is_some_and(|it| (it.rip, it.rsp()) == (run.start.rip, run.start.rsp()));
                let start = if is_seed { "from the seed" } else { "from a return address" };
                frames.add(format!("{generation}, {start} {end}: walks"));
                frames.add_many(format!("{generation}: frames as reported"), common as u64);
            }
        }
    }
    check!(format!("{counts}\n{frames}"));
}
