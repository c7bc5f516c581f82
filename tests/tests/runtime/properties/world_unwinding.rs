//! Native code of programs that run through the runtime of Unix, unwound at every instruction by
//! the call frame information of its ELF file, and compared with the true callers.

use super::*;
use clr_codegen::{CallingConvention, CodeKind, Format};
use clr_tests::first_seed;
use clr_unwind::{Gpr, Memory as _, Position, Registers, Trust, Unwinder};
use clr_world::{Activation, World};
use std::collections::BTreeSet;

/// Number of steps from native frames compared in a full run.
const CASES: u32 = 1_000_000;
/// Maximum number of instructions of one program.
const STEP_LIMIT: usize = 4_000;

/// The function that redirected threads execute. Unwind data cannot lead out of it, since the stack
/// below it is in the state in which the thread was interrupted: the runtime finds the registers in
/// the CONTEXT of its Frame.
const REDIRECTED: &str = "Thread::RedirectedHandledJITCase";

/// The functions that hijacked threads return to. Until their worker has written it, there is no
/// return address on the stack, but the return value in its place (H-32).
const HIJACKED: [&str; 2] = ["OnHijackTripThread", "OnHijackTripThread:Save"];

/// Returns the first difference between the caller that was found and the true one, in registers
/// that a callee preserves.
fn difference(found: &Registers, position: Position, truth: &Activation) -> Option<String> {
    if (found.rip, position) != (truth.registers.rip, truth.position) {
        return Some(format!("rip {:#x}, {position:?}", found.rip));
    }
    let kept = CallingConvention::SystemV.nonvolatile().iter().chain(&[Gpr::Rsp]);
    let mut wrong = kept.filter(|one| found.get(**one) != truth.registers.get(**one));
    wrong.next().map(|register| format!("{} {:#x}", register.name(), found.get(*register)))
}

/// Counts of compared steps of programs for Unix.
#[derive(Default)]
struct Compared {
    steps: u64,
    /// Functions of the runtime and of programs whose code was unwound.
    functions: BTreeSet<String>,
    /// Number of steps from an instruction, not from a call.
    interrupted: u64,
    /// Number of steps from functions whose shapes exist on Unix only.
    of_unix: u64,
    /// Number of steps from the procedure linkage table, and from the function that resolves its
    /// entries.
    linkage: u64,
}

/// Unwinds every native frame of a thread.
fn compare(world: &World<'_>, thread: usize, compared: &mut Compared) -> Result<(), String> {
    let frames = world.activations(thread);
    let runtime = world.as_synced();
    let unwinder = Unwinder::new(runtime.native.map());
    let memory = &*runtime.memory.borrow();
    for (frame, caller) in frames.iter().zip(frames.iter().skip(1)) {
        let function = frame.function.map(|id| &world.expanded().program.functions[id.index()]);
        let name = function.map_or("(linkage)", |function| function.name.as_str());
        let is_native = match function {
            Some(function) => function.kind == CodeKind::Native,
            // Other code outside functions is where threads begin.
            None => runtime.native.map().find(frame.registers.rip).is_some(),
        };
        let slot = memory.read_u64(caller.registers.rsp().wrapping_sub(8));
        let has_nothing =
            frame.registers.rsp() == caller.registers.rsp() || slot != Ok(caller.registers.rip);
        let is_undescribed = name == REDIRECTED || HIJACKED.contains(&name) && has_nothing;
        if !is_native || is_undescribed {
            continue;
        }
        let mut registers = frame.registers;
        let at = format!("{name} {:#x}, {:?}", registers.rip, frame.position);
        let step = unwinder.step(&mut registers, frame.position, memory);
        let step = step.map_err(|error| format!("{at}: {error}"))?;
        if !matches!(step.trust, Trust::Cfi | Trust::SignalFrame) {
            return Err(format!("{at}: found by {:?}", step.trust));
        }
        if let Some(wrong) = difference(&registers, step.caller, caller) {
            return Err(format!("{at}: the caller has {wrong}, expected {:x?}", caller.registers));
        }
        compared.steps += 1;
        compared.interrupted += u64::from(frame.position == Position::Interrupted);
        compared.linkage += u64::from(function.is_none());
        compared.of_unix += u64::from(function.is_some_and(|one| one.shape.is_of_unix()));
        if !compared.functions.contains(name) {
            compared.functions.insert(name.to_owned());
        }
    }
    Ok(())
}

/// Executes a program to its end, its threads in turn.
fn run(program: &WorldProgram, compared: &mut Compared) -> Result<(), String> {
    // A few programs are too large for the formats.
    let Ok(build) = program.build() else { return Ok(()) };
    let native = build.linked().units.iter().find(|unit| unit.kind == CodeKind::Native);
    if native.is_some_and(|unit| unit.format != Format::Elf) {
        return Err("native code is not in an ELF file".to_owned());
    }
    let mut world = program.world(&build).map_err(|error| error.to_string())?;
    for step in 0..STEP_LIMIT {
        let thread = step / 7 % program.threads.len();
        compare(&world, thread, compared)?;
        match world.step(thread) {
            Ok(StepEvent::Ended) if program.threads.len() == 1 => break,
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[test]
fn native_code_of_unix_unwinds_at_every_instruction() {
    let wanted = u64::from(cases(CASES));
    let mut compared = Compared::default();
    for seed in first_seed().. {
        if compared.steps >= wanted {
            break;
        }
        let program = world_program(&mut Seeded::new(seed));
        if program.generation.is_unix()
            && let Err(wrong) = run(&program, &mut compared)
        {
            panic!("seed {seed}, {}: {wrong}", program.generation);
        }
    }
    let Compared { steps, functions, interrupted, of_unix, linkage } = compared;
    let of_runtime = functions.iter().filter(|name| !name.starts_with("Lib.")).count();
    println!("{steps} steps, {interrupted} of them not from a call; {of_runtime} of {functions:?}");
    println!("{of_unix} from shapes of Unix, {linkage} from the procedure linkage table");
    assert!(interrupted * 20 > steps, "{interrupted} of {steps}");
    assert!(wanted < u64::from(CASES) || of_unix * 20 > steps, "{of_unix} of {steps}");
    assert!(wanted < u64::from(CASES) || linkage > 1000, "{linkage} of {steps}");
    // Functions of programs are not counted.
    assert!(wanted < u64::from(CASES) || of_runtime > 50, "{of_runtime}: {functions:?}");
}
