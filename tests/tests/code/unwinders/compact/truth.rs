//! The truth about a function's frame, found by following its code forwards from its entry.
//!
//! This shares neither code nor direction with the walker, which follows code from an interrupted
//! instruction to where the frame ends. iced-x86 decodes.

use super::*;
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// The registers that calls preserve, rsp apart.
pub(crate) const PRESERVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// Address of the return address on the stack of the examined function (VA).
pub(crate) const RETURN_SLOT: u64 = 0x7FFF_0000_8008;

/// The frame before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// rsp (VA).
    pub(crate) rsp: u64,
    /// rbp, where it is an address in the frame (VA).
    pub(crate) rbp: Option<u64>,
    /// True for each preserved register that has the caller's value.
    pub(crate) intact: [bool; 6],
    /// The copies of preserved registers on the stack: address (VA), index of the register.
    pub(crate) copies: BTreeMap<u64, usize>,
}

/// A reason why nothing is known about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// Two ways to an instruction have different frames.
    Join,
    /// A preserved register or rsp is not the caller's at a return.
    Return,
    /// The code cannot be decoded, or leaves its bytes.
    Code,
    /// The stack pointer is set in an unknown way.
    Stack,
}

fn preserved(register: Register) -> Option<usize> {
    PRESERVED.iter().position(|it| *it == register.full_register())
}

struct Follower<'c> {
    code: &'c [u8],
    start: u64,
    frames: BTreeMap<u64, Frame>,
    /// Places after calls, which are followed last: the call may not return.
    late: Vec<(u64, Frame)>,
    soon: Vec<(u64, Frame)>,
    info: InstructionInfoFactory,
}

/// Returns the frame before each instruction of the function `code` at `start` (VA) that can be
/// reached without passing a jump through a register.
pub(crate) fn frames(code: &[u8], start: u64) -> Result<BTreeMap<u64, Frame>, Doubt> {
    let entry = Frame { rsp: RETURN_SLOT, rbp: None, intact: [true; 6], copies: BTreeMap::new() };
    let mut follower = Follower {
        code,
        start,
        frames: BTreeMap::new(),
        late: Vec::new(),
        soon: vec![(start, entry)],
        info: InstructionInfoFactory::new(),
    };
    loop {
        if let Some((at, frame)) = follower.soon.pop() {
            follower.go(at, frame)?;
        } else if let Some((at, frame)) = follower.late.pop() {
            if !follower.frames.contains_key(&at) {
                follower.go(at, frame)?;
            }
        } else {
            return Ok(follower.frames);
        }
    }
}

impl Follower<'_> {
    fn go(&mut self, mut at: u64, mut frame: Frame) -> Result<(), Doubt> {
        loop {
            if let Some(known) = self.frames.get_mut(&at) {
                // Copies that not all ways have made are no copies.
                let same = known.rsp == frame.rsp && known.rbp == frame.rbp;
                if !same {
                    return Err(Doubt::Join);
                }
                let copies: BTreeMap<_, _> = known
                    .copies
                    .iter()
                    .filter(|(at, index)| frame.copies.get(at) == Some(index))
                    .map(|(at, index)| (*at, *index))
                    .collect();
                let mut intact = known.intact;
                for (mine, other) in intact.iter_mut().zip(frame.intact) {
                    *mine &= other;
                }
                if copies == known.copies && intact == known.intact {
                    return Ok(());
                }
                known.copies = copies;
                known.intact = intact;
                frame = known.clone();
            } else {
                self.frames.insert(at, frame.clone());
            }
            let from = usize::try_from(at.wrapping_sub(self.start)).ok();
            let bytes = from.and_then(|from| self.code.get(from..)).ok_or(Doubt::Code)?;
            let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
            if instruction.is_invalid() {
                return Err(Doubt::Code);
            }
            let own = self.start..self.start + self.code.len() as u64;
            let inside = |target: u64| own.contains(&target);
            match instruction.flow_control() {
                FlowControl::Next => {
                    self.execute(&instruction, &mut frame)?;
                    at = instruction.next_ip();
                    if !inside(at) {
                        return Ok(());
                    }
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    // Red zone and arguments are the callee's.
                    let next = instruction.next_ip();
                    if inside(next) && !self.is_padding(next) {
                        self.late.push((next, frame));
                    }
                    return Ok(());
                }
                FlowControl::ConditionalBranch => {
                    let target = instruction.near_branch_target();
                    if inside(target) {
                        self.soon.push((target, frame.clone()));
                    }
                    at = instruction.next_ip();
                    if !inside(at) {
                        return Ok(());
                    }
                }
                FlowControl::UnconditionalBranch => {
                    let target = instruction.near_branch_target();
                    if inside(target) && target != self.start {
                        at = target;
                    } else if inside(target) || Self::is_left(&frame) {
                        return Ok(());
                    } else {
                        return Err(Doubt::Return);
                    }
                }
                FlowControl::Return => {
                    return if Self::is_left(&frame) { Ok(()) } else { Err(Doubt::Return) };
                }
                // A table's jump, a trap, or a system call.
                _ => return Ok(()),
            }
        }
    }

    /// Returns true if there is nothing but padding from `at` on: the call before it does not return.
    fn is_padding(&self, at: u64) -> bool {
        let bytes = usize::try_from(at - self.start).ok().and_then(|from| self.code.get(from..));
        let Some(bytes) = bytes else { return true };
        if bytes.iter().all(|byte| *byte == 0) {
            return true;
        }
        let mut rest = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let fills =
            |mnemonic| matches!(mnemonic, Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::INVALID);
        rest.iter().all(|instruction| fills(instruction.mnemonic()))
    }

    fn is_left(frame: &Frame) -> bool {
        frame.rsp == RETURN_SLOT && frame.intact == [true; 6]
    }

    #[expect(clippy::too_many_lines, reason = "a table of instructions")]
    fn execute(&mut self, instruction: &Instruction, frame: &mut Frame) -> Result<(), Doubt> {
        let push = |frame: &mut Frame, register: Option<usize>| {
            frame.rsp -= 8;
            frame.copies.remove(&frame.rsp);
            if let Some(index) = register.filter(|index| frame.intact[*index]) {
                frame.copies.insert(frame.rsp, index);
            }
        };
        let first = instruction.op0_register();
        let second = instruction.op1_register();
        let in_frame = |frame: &Frame| {
            let base = match instruction.memory_base() {
                Register::RSP => Some(frame.rsp),
                Register::RBP => frame.rbp,
                _ => None,
            };
            let plain = instruction.memory_index() == Register::None;
            base.filter(|_| plain)
                .map(|base| base.wrapping_add(instruction.memory_displacement64()))
        };
        let is_memory = |n| instruction.op_kind(n) == OpKind::Memory;
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let register = (instruction.op0_kind() == OpKind::Register)
                    .then(|| preserved(first))
                    .flatten();
                push(frame, register);
                return Ok(());
            }
            Mnemonic::Pushfq => {
                push(frame, None);
                return Ok(());
            }
            Mnemonic::Pop => {
                let copy = frame.copies.get(&frame.rsp).copied();
                frame.rsp += 8;
                if let Some(index) = preserved(first) {
                    frame.intact[index] = copy == Some(index);
                    if first == Register::RBP {
                        frame.rbp = None;
                    }
                }
                return Ok(());
            }
            Mnemonic::Popfq => {
                frame.rsp += 8;
                return Ok(());
            }
            Mnemonic::Leave => {
                let rbp = frame.rbp.ok_or(Doubt::Stack)?;
                frame.intact[1] = frame.copies.get(&rbp) == Some(&1);
                frame.rsp = rbp + 8;
                frame.rbp = None;
                return Ok(());
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And if first == Register::RSP => {
                let is_number = instruction.op1_kind() != OpKind::Register;
                let by =
                    if is_number && !is_memory(1) { Some(instruction.immediate(1)) } else { None };
                frame.rsp = match (instruction.mnemonic(), by) {
                    (Mnemonic::Add, Some(by)) => frame.rsp.wrapping_add(by),
                    (Mnemonic::Sub, Some(by)) => frame.rsp.wrapping_sub(by),
                    (Mnemonic::And, Some(by)) => frame.rsp & by,
                    // An allocation of any size.
                    (Mnemonic::Sub, None) => frame.rsp - 0x400,
                    _ => return Err(Doubt::Stack),
                };
                return Ok(());
            }
            Mnemonic::Lea if first == Register::RSP || first == Register::RBP => {
                let value = in_frame(frame);
                if first == Register::RSP {
                    frame.rsp = value.ok_or(Doubt::Stack)?;
                } else {
                    frame.rbp = value;
                    frame.intact[1] = false;
                }
                return Ok(());
            }
            Mnemonic::Mov if first == Register::RSP => {
                frame.rsp = match second {
                    Register::RBP => frame.rbp.ok_or(Doubt::Stack)?,
                    _ => return Err(Doubt::Stack),
                };
                return Ok(());
            }
            Mnemonic::Mov if first == Register::RBP && second == Register::RSP => {
                frame.rbp = Some(frame.rsp);
                frame.intact[1] = false;
                return Ok(());
            }
            Mnemonic::Mov if is_memory(0) && instruction.code() == Code::Mov_rm64_r64 => {
                if let Some(address) = in_frame(frame) {
                    frame.copies.remove(&address);
                    if let Some(index) = preserved(second).filter(|index| frame.intact[*index]) {
                        frame.copies.insert(address, index);
                    }
                }
                return Ok(());
            }
            Mnemonic::Mov if is_memory(1) && preserved(first).is_some() => {
                let copy = in_frame(frame).and_then(|address| frame.copies.get(&address).copied());
                let index = preserved(first).expect("preserved");
                frame.intact[index] = copy == Some(index);
                if first.full_register() == Register::RBP {
                    frame.rbp = None;
                }
                return Ok(());
            }
            _ => {}
        }
        for used in self.info.info(instruction).used_registers() {
            let writes = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::ReadWrite
                    | OpAccess::CondWrite
                    | OpAccess::ReadCondWrite
            );
            if !writes {
                continue;
            }
            if used.register().full_register() == Register::RSP {
                return Err(Doubt::Stack);
            }
            if let Some(index) = preserved(used.register()) {
                frame.intact[index] = false;
                if index == 1 {
                    frame.rbp = None;
                }
            }
        }
        // Other stores into the frame.
        if is_memory(0)
            && let Some(address) = in_frame(frame)
        {
            let stores = self
                .info
                .info(instruction)
                .used_memory()
                .iter()
                .any(|memory| matches!(memory.access(), OpAccess::Write | OpAccess::ReadWrite));
            if stores {
                frame.copies.remove(&address);
            }
        }
        Ok(())
    }
}
