//! Comparison of iced-x86's information about instructions (registers, flags and memory that they
//! read and write) with the machine.

use super::*;
use crate::machine::host_cpu::encodings::encodings;
use crate::machine::host_cpu::samples::{number, sample};
use clr_machine::{AccessKind, MemoryAccess};
use iced_x86::OpAccess;

/// The bits of registers that an instruction reads, may write, and always writes.
#[derive(Debug, Default)]
struct Used {
    read: [u64; 16],
    written: [u64; 16],
    surely: [u64; 16],
    vectors_read: u16,
    vectors_written: u16,
    vectors_surely: u16,
}

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn may_write(access: OpAccess) -> bool {
    surely_writes(access) || matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

fn surely_writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite)
}

/// Returns the register's bits in the full register.
fn bits(register: Register) -> u64 {
    match register {
        Register::AH | Register::CH | Register::DH | Register::BH => 0xFF00,
        _ => u64::MAX >> (64 - 8 * register.size()),
    }
}

impl Used {
    fn of(encoding: &Encoding) -> Self {
        let mut used = Self::default();
        let mut factory = InstructionInfoFactory::new();
        for register in factory.info(&encoding.instruction).used_registers() {
            let (register, access) = (register.register(), register.access());
            if register.is_gpr() {
                let n = number(register);
                used.read[n] |= if reads(access) { bits(register) } else { 0 };
                used.written[n] |= if may_write(access) { bits(register) } else { 0 };
                used.surely[n] |= if surely_writes(access) { bits(register) } else { 0 };
            } else if register.is_vector_register() {
                let bit = 1 << register.number();
                used.vectors_read |= if reads(access) { bit } else { 0 };
                used.vectors_written |= if may_write(access) { bit } else { 0 };
                used.vectors_surely |= if surely_writes(access) { bit } else { 0 };
            }
        }
        used
    }
}

/// The results of an instruction on the machine.
#[derive(Debug)]
struct Ran {
    outcome: Option<Outcome>,
    state: State,
    window: Window,
    accesses: Vec<MemoryAccess>,
}

fn run(machine: &mut Machine, start: &Start) -> Ran {
    machine.take_accesses();
    let outcome = execute(machine, start);
    let accesses = machine.take_accesses();
    Ran { outcome, state: State::of(machine), window: window(machine), accesses }
}

/// Checks that only registers and flags have changed that iced reports as written.
fn check_written(used: &Used, flags: u64, start: &State, after: &State) -> Result<(), String> {
    for n in 0..16 {
        let changed = start.gpr[n] ^ after.gpr[n];
        if changed & !used.written[n] != 0 {
            return Err(format!("bits {changed:#x} of integer register {n} are written"));
        }
        if start.xmm[n] != after.xmm[n] && used.vectors_written >> n & 1 == 0 {
            return Err(format!("xmm{n} is written"));
        }
    }
    let changed = start.flags ^ after.flags;
    if changed & !flags == 0 { Ok(()) } else { Err(format!("flags {changed:#x} are written")) }
}

/// Changes all state that iced reports as not read, and checks that the outcome is the same.
fn check_unread(
    machine: &mut Machine,
    encoding: &Encoding,
    used: &Used,
    start: &Start,
    first: &Ran,
    random: &mut Random,
) -> Result<(), String> {
    let i = &encoding.instruction;
    let done = first.outcome == Some(Outcome::Done);
    let modified = if done { flags_of(i.rflags_modified()) } else { 0 };
    let mut other = start.clone();
    for (value, read) in other.state.gpr.iter_mut().zip(used.read) {
        *value ^= random.next() & !read;
    }
    for (n, value) in other.state.xmm.iter_mut().enumerate() {
        *value ^= if used.vectors_read >> n & 1 == 0 { random.wide() } else { 0 };
    }
    // Shifts by 0 and string instructions without elements leave the flags unchanged.
    let may_keep = i.op_register(i.op_count().saturating_sub(1)) == Register::CL
        || i.has_rep_prefix()
        || i.has_repne_prefix();
    let flips = random.next() & FLAGS & !flags_of(i.rflags_read());
    other.state.flags ^= if may_keep { flips & !modified } else { flips };
    let second = run(machine, &other);
    if second.outcome != first.outcome {
        return Err(format!("{:?} or {:?}", first.outcome, second.outcome));
    }
    for n in 0..16 {
        let flipped = start.state.gpr[n] ^ other.state.gpr[n];
        let (written, surely) = if done { (used.written[n], used.surely[n]) } else { (0, 0) };
        let differ = first.state.gpr[n] ^ second.state.gpr[n];
        if differ & !(flipped & !surely) != 0 || flipped & !written & !differ != 0 {
            return Err(format!("integer register {n}: {differ:#x} for {flipped:#x}"));
        }
        let flipped = start.state.xmm[n] ^ other.state.xmm[n];
        let differ = first.state.xmm[n] ^ second.state.xmm[n];
        let written = done && used.vectors_surely >> n & 1 != 0;
        if differ != if written { 0 } else { flipped } {
            return Err(format!("xmm{n}: {differ:#x} for {flipped:#x}"));
        }
    }
    let flipped = start.state.flags ^ other.state.flags;
    let differ = first.state.flags ^ second.state.flags;
    let undefined = if done { undefined_flags(i, &start.state) } else { 0 };
    if (differ ^ flipped & !modified) & !undefined != 0 {
        return Err(format!("flags: {differ:#x} for {flipped:#x}"));
    }
    if first.window != second.window || first.accesses != second.accesses {
        return Err("memory depends on other state".to_owned());
    }
    Ok(())
}

/// An access to memory: address, size in bytes, and true if it is a write.
type Access = (u64, usize, bool);

/// Returns the accesses to memory that iced reports: those that must occur, and those that may.
fn expected_accesses(encoding: &Encoding, state: &State) -> (Vec<Access>, Vec<Access>) {
    let (mut must, mut may) = (Vec::new(), Vec::new());
    let mut factory = InstructionInfoFactory::new();
    for memory in factory.info(&encoding.instruction).used_memory() {
        let address = memory.virtual_address(0, |register, _, _| {
            Some(match register {
                Register::FS => FS_BASE,
                Register::GS => GS_BASE,
                _ if register.is_gpr() => state.gpr[number(register)] & bits(register),
                _ => 0,
            })
        });
        let at = |write| (address.unwrap_or(0), memory.memory_size().size(), write);
        match memory.access() {
            OpAccess::Read => must.push(at(false)),
            OpAccess::Write => must.push(at(true)),
            OpAccess::ReadWrite => must.extend([at(false), at(true)]),
            OpAccess::CondRead => may.push(at(false)),
            OpAccess::CondWrite => may.push(at(true)),
            OpAccess::ReadCondWrite => {
                must.push(at(false));
                may.push(at(true));
            }
            OpAccess::None | OpAccess::NoMemAccess => {}
        }
    }
    (must, may)
}

fn check_memory(encoding: &Encoding, start: &State, ran: &Ran) -> Result<(), String> {
    let i = &encoding.instruction;
    if matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        && i.op1_kind() == OpKind::Register
    {
        // iced does not add the offset of the bit.
        return Ok(());
    }
    let (mut must, mut may) = expected_accesses(encoding, start);
    for (_, size, _) in &mut may {
        // iced reports no size for repeated string instructions; here it is one element.
        *size = if *size == 0 { i.memory_size().size() } else { *size };
    }
    let mut found: Vec<Access> = Vec::new();
    for access in &ran.accesses {
        found.push((access.address, access.size.into(), access.kind == AccessKind::Write));
    }
    let all = format!("{found:x?}, expected {must:x?} and possibly {may:x?}");
    found.retain(|access| match must.iter().position(|other| other == access) {
        Some(at) => {
            must.remove(at);
            false
        }
        None => !may.contains(access),
    });
    if must.is_empty() && found.is_empty() { Ok(()) } else { Err(all) }
}

#[test]
fn accesses_are_those_that_iced_reports() {
    let mut machine = machine();
    machine.set_access_log(true);
    let mut complaints = Complaints::default();
    let mut checked = 0;
    for code in Code::values() {
        for (n, encoding) in encodings(code).iter().enumerate() {
            let seed = code as u64 * 64 + n as u64;
            let mut random = Random::new(seed);
            if !is_known(&mut machine, encoding, &sample(encoding, 0)) {
                continue;
            }
            let used = Used::of(encoding);
            let flags = flags_of(encoding.instruction.rflags_modified());
            for k in 0..2 {
                let start = sample(encoding, seed << 8 | k);
                let ran = run(&mut machine, &start);
                checked += 1;
                let done = ran.outcome == Some(Outcome::Done);
                let mut result = check_written(&used, flags, &start.state, &ran.state);
                if result.is_ok() && done {
                    result = check_memory(encoding, &start.state, &ran);
                }
                if result.is_ok() {
                    result = check_unread(&mut machine, encoding, &used, &start, &ran, &mut random);
                }
                let what = |e| format!("{} ({code:?}): {e}", encoding.instruction);
                complaints.add(result.map_err(what));
            }
        }
    }
    println!("{checked} instructions checked");
    complaints.settle();
    assert!(checked > 30_000, "{checked}");
}
