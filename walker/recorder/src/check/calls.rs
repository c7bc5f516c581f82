//! The calls between the frames of a walk: each return address has to come after a call that leads to the code of the
//! frame before. Code alone is read, no unwind data.

use super::frame::Pages;
use clr_unwind::Position;
use clr_walker::mixed::{FrameKind, MixedFrame, MixedStack, Source};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use std::collections::{BTreeSet, HashMap};

/// Maximum number of instructions that are read from a call's target on.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Maximum number of calls that are remembered.
const MOST: usize = 1 << 14;
/// Size in bytes of the longest direct call.
const DIRECT: u64 = 5;

/// A call, as its code shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// It leads to the frame's instruction.
    Proved,
    /// It may: the target, or a jump after it, is in a register or in memory.
    Open,
    /// It does not.
    Wrong,
}

/// What is known of calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) proved: u64,
    pub(super) open: u64,
    /// Number of calls of methods that do not lead there.
    pub(super) wrong: u64,
    known: HashMap<(u64, u64), Call>,
}

impl Calls {
    /// Judges the calls of a walk. Returns the number of wrong ones.
    pub(super) fn judge(&mut self, stack: &MixedStack, pages: &Pages) -> u64 {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let mut wrong = 0;
        for pair in stack.frames.windows(2) {
            let [frame, caller] = pair else { continue };
            if !is_step(caller) {
                continue;
            }
            let key = (caller.ip, frame.ip);
            let found = *self.known.entry(key).or_insert_with(|| call(caller.ip, frame.ip, pages));
            // The code of a C++ handler is reached by exceptions alone.
            let is_method =
                matches!(frame.kind, FrameKind::Managed(_) | FrameKind::Hidden(Some(_)));
            match found {
                Call::Proved => self.proved += 1,
                Call::Wrong if is_method => wrong += 1,
                Call::Open | Call::Wrong => self.open += 1,
            }
        }
        self.wrong += wrong;
        wrong
    }
}

/// Returns true for a frame that a step from the one before has led to.
fn is_step(caller: &MixedFrame) -> bool {
    caller.position == Position::ReturnAddress && matches!(caller.source, Source::Unwound(_))
}

/// Judges the call before `return_address` as one that leads to `ip` (VA).
pub(super) fn call(return_address: u64, ip: u64, pages: &Pages) -> Call {
    let start = return_address.wrapping_sub(DIRECT);
    let before = decode(start, pages).filter(|it| it.is_call_near() && it.len() == DIRECT as usize);
    match before {
        Some(direct) => reach(direct.near_branch_target(), ip, pages),
        None => Call::Open,
    }
}

/// Follows the code from `target` (VA) on, calls excepted, until it comes to `ip`.
fn reach(target: u64, ip: u64, pages: &Pages) -> Call {
    let (mut seen, mut starts, mut is_open) = (BTreeSet::new(), vec![target], false);
    while let Some(start) = starts.pop() {
        let mut at = start;
        while seen.insert(at) {
            if at == ip {
                return Call::Proved;
            }
            let Some(instruction) = decode(at, pages).filter(|_| seen.len() < MOST_INSTRUCTIONS)
            else {
                return Call::Open;
            };
            at = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch => {
                    // The FixupPrecode of a method, up to .NET 6: each new code of the method is written to it.
                    is_open |= instruction.ip() == target;
                    at = instruction.near_branch_target();
                }
                // The FixupPrecode of a method before it has code, and again when it gets other code.
                FlowControl::Call if instruction.ip() == target && is_prestub(at, pages) => {
                    is_open = true;
                    break;
                }
                FlowControl::ConditionalBranch => starts.push(instruction.near_branch_target()),
                FlowControl::IndirectBranch => {
                    // The cell may have had another address at the call.
                    is_open = true;
                    let cell = instruction.memory_displacement64();
                    let to = instruction.is_ip_rel_memory_operand().then(|| pages.read(cell));
                    starts.extend(to.flatten());
                    break;
                }
                FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => break,
                _ => {}
            }
        }
    }
    if is_open { Call::Open } else { Call::Wrong }
}

/// Returns true if the byte at `at` (VA), after a call, is that of a FixupPrecode that leads to the prestub
/// (`FixupPrecode::TypePrestub` of CoreCLR 3.1, src/vm/amd64/cgencpu.h).
fn is_prestub(at: u64, pages: &Pages) -> bool {
    let mut kind = [0];
    pages.fill(at, &mut kind).is_some() && kind == [0x5E]
}

fn decode(ip: u64, pages: &Pages) -> Option<Instruction> {
    let mut code = [0; 15];
    // The code may be at a mapping's end.
    let len = (1..=code.len()).rev().find(|len| pages.fill(ip, &mut code[..*len]).is_some())?;
    let instruction = Decoder::with_ip(64, &code[..len], ip, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code that `call` in the middle calls, and code elsewhere.
    fn judged(call_to: usize, code: &[u8], ip: usize) -> Call {
        let mut bytes = vec![0xE8, 0, 0, 0, 0];
        bytes.extend(code);
        bytes[1] = u8::try_from(call_to).unwrap();
        let start = bytes.as_ptr() as u64 + 5;
        call(start, start + ip as u64, &Pages::default())
    }

    #[test]
    fn a_call_leads_where_its_code_does() {
        // 0: ret; 1: je 4; ret; 4: call 0; ret; 10: jmp 4
        let code = [0xC3, 0x74, 1, 0xC3, 0xE8, 0xF7, 0xFF, 0xFF, 0xFF, 0xC3, 0xEB, 0xF8];
        for (target, ip, expected) in [
            (1, 4, Call::Proved),
            (1, 9, Call::Proved),
            (10, 9, Call::Proved),
            // Only by a call.
            (1, 0, Call::Wrong),
            (0, 1, Call::Wrong),
            // A jump at the target may have led elsewhere.
            (10, 3, Call::Open),
        ] {
            assert_eq!(judged(target, &code, ip), expected, "{target} {ip}");
        }
    }

    #[test]
    fn where_the_precode_of_a_method_without_code_leads_is_open() {
        // 0: call 6; the precode's kind; 6: ret; 7: ret
        assert_eq!(judged(0, &[0xE8, 1, 0, 0, 0, 0x5E, 0xC3, 0xC3], 7), Call::Open);
        assert_eq!(judged(0, &[0xE8, 1, 0, 0, 0, 0x90, 0xC3, 0xC3], 7), Call::Wrong);
    }

    #[test]
    fn where_a_register_or_a_cell_leads_is_open() {
        // jmp rax; ret
        assert_eq!(judged(0, &[0xFF, 0xE0, 0xC3], 2), Call::Open);
        // jmp [rip]; the cell; ret
        let stub = [0xFF, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xC3];
        assert_eq!(judged(0, &stub, 14), Call::Open);
        // call rax before the return address
        let code = [0x90, 0x90, 0x90, 0xFF, 0xD0, 0xC3];
        let start = code.as_ptr() as u64;
        assert_eq!(call(start + 5, start, &Pages::default()), Call::Open);
    }
}
