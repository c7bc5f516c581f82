//! Sequences of instructions, stepped on both the machine and the host.

use super::*;
use crate::machine::host_cpu::defined::{undefined_between, undefined_flags};
use crate::machine::host_cpu::external::host::Host;
use clr_machine::AccessKind;
use iced_x86::{Decoder, DecoderOptions};
use std::fmt::Write as _;

/// Maximum number of steps of a sequence, including its loops.
pub(super) const STEPS: usize = 1000;

/// Returns the initial state of a program: the registers that it relies on point into the window.
pub(super) fn start(seed: u64) -> Start {
    let mut start = background(seed, CODE);
    let mut random = Random::new(seed ^ 0x5EED);
    for value in &mut start.state.gpr {
        *value = random.integer(64);
    }
    start.state.gpr[3] = WINDOW + 0x80;
    start.state.gpr[4] = WINDOW + WINDOW_LEN as u64 - 0x40;
    start
}

/// Makes one step on both. Returns true if execution continues.
pub(super) fn step(
    machine: &mut Machine,
    host: &mut Host,
    code: &dyn Fn(u64) -> Vec<u8>,
) -> Result<bool, String> {
    let before = State::of(machine);
    let bytes = code(before.rip);
    let i = Decoder::with_ip(64, &bytes, before.rip, DecoderOptions::NONE).decode();
    machine.take_accesses();
    let found = Outcome::of(machine.step());
    let expected = host.step();
    if expected == Outcome::Done && i.mnemonic() == Mnemonic::Pushfq {
        host.hide_trap_flag();
    }
    let mut after = State::of(machine);
    let mut truth = host.state();
    let undefined = if expected == Outcome::Done {
        undefined_flags(&i, &before) | undefined_between(&i, &before, &truth)
    } else {
        0
    };
    if undefined != 0 {
        let others = machine.cpu().rflags() & !FLAGS;
        machine.cpu_mut().set_rflags(others | truth.flags);
    }
    after.flags &= FLAGS & !undefined;
    truth.flags &= FLAGS & !undefined;
    let mut wrong = String::new();
    for access in machine.take_accesses() {
        if access.kind == AccessKind::Write {
            let mut bytes = [0; 16];
            host.read(access.address, &mut bytes[..access.size.into()]);
            let has = u128::from_le_bytes(bytes);
            if has != access.value {
                let at = access.address;
                writeln!(wrong, "  at {at:#x}: {:#x} and {has:#x}", access.value).unwrap();
            }
        }
    }
    if found != Some(expected) || after != truth || !wrong.is_empty() {
        let differences = after.differences(&truth);
        return Err(format!(
            "{i}: {found:?}, expected {expected:?}\n{differences}{wrong}{before:?}"
        ));
    }
    Ok(expected == Outcome::Done)
}

fn lockstep(
    machine: &mut Machine,
    host: &mut Host,
    program: &Program,
    start: &Start,
) -> Result<u64, String> {
    machine.write(CODE, &program.code).unwrap();
    host.write(CODE, &program.code);
    machine.write(WINDOW, &start.window).unwrap();
    host.write(WINDOW, &start.window);
    start.state.load_into(machine);
    host.set(&start.state);
    let code = |rip: u64| program.code[(rip - CODE) as usize..].to_vec();
    let mut steps = 0;
    while machine.cpu().rip() != program.end && steps < STEPS as u64 {
        steps += 1;
        if !step(machine, host, &code)? {
            break;
        }
    }
    let mut memory = [0; WINDOW_LEN];
    host.read(WINDOW, &mut memory);
    if memory == window(machine) { Ok(steps) } else { Err("memory differs at the end".to_owned()) }
}

#[test]
#[ignore = "external: steps a process by ptrace"]
fn programs_step_as_on_the_host() {
    let mut host = host();
    let mut machine = machine();
    let supply = Supply::new(&mut machine);
    machine.set_access_log(true);
    let mut complaints = Complaints::default();
    let mut instructions = 0;
    let count = clr_tests::cases(1500);
    for seed in 0..u64::from(count) {
        let program = supply.program(&mut Random::new(seed));
        let result = lockstep(&mut machine, &mut host, &program, &start(seed));
        instructions += result.as_ref().copied().unwrap_or(0);
        complaints.add(result.map(|_| ()).map_err(|e| format!("sequence {seed}: {e}")));
    }
    println!("{count} sequences, {instructions} instructions");
    complaints.settle();
    assert!(instructions > 20 * u64::from(count), "{instructions}");
}
