//! The exits of a leaf. With a trap at each of them its loops run at full speed.
//!
//! Calls are not followed here, so an exception that ends the frame is not seen: a return that is found so is
//! only as good as what agrees with it.

use super::{Copy, Returned, Unjudged, in_order};
use iced_x86::FlowControl;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instructions that a leaf's paths have.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Maximum number of traps that are met.
const MOST_TRAPS: u32 = 1_000;
/// The instruction `int3`.
const TRAP: u8 = 0xCC;

/// An instruction where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Return,
    /// A jump through a register or through memory: into a `switch`, or into another function.
    Jump,
}

/// The paths of a leaf.
#[derive(Debug, Default)]
struct Paths {
    /// The instructions on them (VA).
    seen: BTreeSet<u64>,
    /// The traps, with what was in their place.
    exits: BTreeMap<u64, (Exit, u8)>,
}

impl Copy {
    /// Goes on from `now`, an instruction of the leaf, to the return of its frame, which is not below `start`.
    pub(super) fn run_to_exit(
        &mut self,
        now: &libc::user_regs_struct,
        start: u64,
    ) -> Result<Returned, Unjudged> {
        let mut paths = Paths::default();
        self.set_traps(&mut paths, now.rip)?;
        let (mut traps, mut delivered) = (0, 0);
        while traps < MOST_TRAPS {
            let signal = self.go_on(delivered)?;
            delivered = 0;
            let mut now = self.registers()?;
            if signal == libc::SIGTRAP && now.orig_rax.cast_signed() >= 0 {
                let number = now.orig_rax;
                self.system_call(&mut now, number)?;
                continue;
            }
            traps += 1;
            let trap = now.rip.wrapping_sub(1);
            let Some(&(exit, byte)) = paths.exits.get(&trap).filter(|_| signal == libc::SIGTRAP)
            else {
                delivered = self.fault(signal).map_err(|why| match why {
                    // Whether it is the leaf that loops, or what it calls, is not known.
                    Unjudged::CalledForEver => Unjudged::Long,
                    why => why,
                })?;
                continue;
            };
            now.rip = trap;
            self.set_registers(&now)?;
            self.write_byte(now.rip, byte)?;
            let after = self.step()?;
            self.write_byte(now.rip, TRAP)?;
            match exit {
                Exit::Return if now.rsp >= start => {
                    let registers = in_order(&after);
                    return Ok(Returned { ip: after.rip, registers, is_certain: false });
                }
                // Of a call of the same function.
                Exit::Return => {}
                Exit::Jump => self.set_traps(&mut paths, after.rip)?,
            }
        }
        Err(Unjudged::Long)
    }

    /// Follows the paths that begin at `from`, and sets a trap at the end of each.
    fn set_traps(&self, paths: &mut Paths, from: u64) -> Result<(), Unjudged> {
        let mut starts = vec![from];
        while let Some(start) = starts.pop() {
            let mut ip = start;
            while paths.seen.insert(ip) {
                if paths.seen.len() > MOST_INSTRUCTIONS {
                    return Err(Unjudged::Long);
                }
                let instruction = self.decode(ip);
                let exit = match instruction.flow_control() {
                    FlowControl::Return => Exit::Return,
                    FlowControl::IndirectBranch => Exit::Jump,
                    FlowControl::UnconditionalBranch => {
                        ip = instruction.near_branch_target();
                        continue;
                    }
                    FlowControl::Interrupt | FlowControl::Exception => break,
                    flow => {
                        if flow == FlowControl::ConditionalBranch {
                            starts.push(instruction.near_branch_target());
                        }
                        ip = instruction.next_ip();
                        continue;
                    }
                };
                let mut byte = [0];
                self.read(ip, &mut byte);
                self.write_byte(ip, TRAP)?;
                paths.exits.insert(ip, (exit, byte[0]));
                break;
            }
        }
        Ok(())
    }

    /// Writes a byte of code.
    fn write_byte(&self, address: u64, byte: u8) -> Result<(), Unjudged> {
        let mut word = [0; 8];
        self.read(address & !7, &mut word);
        word[(address & 7) as usize] = byte;
        self.ask(libc::PTRACE_POKETEXT, (address & !7) as usize, usize::from_le_bytes(word))
    }
}
