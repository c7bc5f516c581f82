//! The frames of a recorded stack, compared with the truth.

use crate::render::code::Code;
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::differences::{Differing, write_differences};
use crate::render::unwind_data::{self, Handler};
use clr_recording::vectors::UnwindAnswer;
use clr_recording::vectors::replay::ExpectedUnwind;
use clr_recording::vectors::win64::Vector;
use clr_unwind::{Gpr, Memory, Position, Registers, Step, UnwindError, Unwinder};
use std::io::{self, Write};

/// A frame of the walk.
pub(crate) struct UnwoundFrame {
    pub(crate) registers: Registers,
    /// The step to the caller; `None` for the last frame, which is not unwound.
    pub(crate) step: Option<Result<Step, UnwindError>>,
}

/// Unwinds the frame with these registers and up to `callers` frames further out. The frames end at
/// an error.
pub(crate) fn walk(
    unwinder: Unwinder<'_, '_>,
    registers: &Registers,
    memory: &dyn Memory,
    callers: usize,
) -> Vec<UnwoundFrame> {
    let mut frames = Vec::new();
    let (mut registers, mut position) = (*registers, Position::Interrupted);
    for _ in 0..callers {
        let before = registers;
        let step = unwinder.step(&mut registers, position, memory);
        frames.push(UnwoundFrame { registers: before, step: Some(step) });
        match step {
            Ok(step) => position = step.caller,
            Err(_) => return frames,
        }
    }
    frames.push(UnwoundFrame { registers, step: None });
    frames
}

/// Returns the mask of rsp and the nonvolatile integer registers, by encoding.
fn preserved() -> u16 {
    let bit = |register: Gpr| 1 << register.number();
    Gpr::NONVOLATILE.into_iter().map(bit).fold(bit(Gpr::Rsp), |all, bit| all | bit)
}

/// Returns the known registers of a vector's callers, innermost first.
pub(crate) fn truths(vector: &Vector<'_>) -> Vec<ExpectedUnwind> {
    let known = |registers, xmm_known| ExpectedUnwind {
        registers,
        gpr_known: preserved(),
        xmm_known,
        frame: None,
    };
    let mut truths = vec![known(vector.truth.apply(&vector.registers), true)];
    for caller in &vector.chain {
        let mut registers = Registers { rip: caller.rip, ..Registers::default() };
        registers.set(Gpr::Rsp, caller.rsp);
        for (register, value) in Gpr::NONVOLATILE.into_iter().zip(caller.nonvolatile) {
            registers.set(register, value);
        }
        truths.push(known(registers, false));
    }
    truths
}

/// Returns the answer of another unwinder, if there is one.
pub(crate) fn answer(answer: &UnwindAnswer, before: &Registers) -> Option<ExpectedUnwind> {
    answer.is_answer().then(|| ExpectedUnwind {
        registers: answer.apply(before),
        gpr_known: u16::MAX,
        xmm_known: true,
        frame: None,
    })
}

/// Writes the frames and their differences from the known callers.
pub(crate) fn write(
    frames: &[UnwoundFrame],
    truths: &[ExpectedUnwind],
    code: &Code<'_, '_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "  {DIM}{:>2}  {:18}  {:18}  {:8}  {:21}  {:18}  function{DIM:#}",
        "#", "rip", "rsp", "truth", "caller found by", "establisher frame"
    )?;
    for (n, frame) in frames.iter().enumerate() {
        let differences = differences(frames, n, truths);
        let (style, truth) = match &differences {
            None if n == 0 => (DIM, "recorded"),
            None => (DIM, "unknown"),
            Some(found) if found.is_empty() => (GOOD, "agrees"),
            Some(_) => (BAD, "differs"),
        };
        let registers = &frame.registers;
        let (found_by, establisher, handler) = match frame.step {
            Some(Ok(step)) => (
                unwind_data::trust(step.trust),
                format!("{:#018x}", step.establisher_frame),
                step.handler.and_then(|handler| {
                    // A return address may lie after the code that made the call.
                    let inside = registers.rip.wrapping_sub(u64::from(n > 0));
                    let (region, _) = code.map.find(inside)?;
                    Some(format!("  {}", Handler::new(code, region, handler)))
                }),
            ),
            Some(Err(_)) => ("error", String::new(), None),
            None => ("", String::new(), None),
        };
        writeln!(
            out,
            "  {n:>2}  {:#018x}  {:#018x}  {style}{truth:8}{style:#}  {found_by:21}  \
             {establisher:18}  {HEAD}{}{HEAD:#}{}",
            registers.rip,
            registers.rsp(),
            code.name(registers.rip),
            handler.unwrap_or_default()
        )?;
        write_differences(&differences.unwrap_or_default(), "      ", out)?;
        if let Some(Err(error)) = frame.step {
            writeln!(out, "      {BAD}error:{BAD:#} {error}")?;
        }
    }
    Ok(())
}

/// Returns the differences of frame `n` from the known one; `None` if nothing is known.
fn differences(
    frames: &[UnwoundFrame],
    n: usize,
    truths: &[ExpectedUnwind],
) -> Option<Vec<Differing>> {
    let callee = frames.get(n.checked_sub(1)?)?;
    let truth = truths.get(n - 1)?;
    let step = callee.step?.ok()?;
    let found = truth.differences(&frames.get(n)?.registers, &step);
    Some(found.into_iter().map(Differing::from).collect())
}
