//! x64 machine: memory of pages with permissions, registers, and an interpreter.
//!
//! ```
//! use clr_machine::{Machine, Protection, StopReason};
//! use clr_unwind::Gpr;
//!
//! let mut machine = Machine::new();
//! machine.map(0x1000, 1, Protection::READ_EXECUTE)?;
//! machine.map(0x8000, 1, Protection::READ_WRITE)?;
//! // lea rax, [rcx+rcx*2]; ret
//! machine.write(0x1000, &[0x48, 0x8D, 0x04, 0x49, 0xC3])?;
//! machine.write(0x8FF0, &0xE000_u64.to_le_bytes())?;
//! machine.add_trap(0xE000, 7);
//! machine.cpu_mut().set(Gpr::Rcx, 14);
//! machine.cpu_mut().set(Gpr::Rsp, 0x8FF0);
//! machine.cpu_mut().set_rip(0x1000);
//! assert_eq!(machine.run(100), StopReason::Trap { address: 0xE000, id: 7 });
//! assert_eq!(machine.cpu().get(Gpr::Rax), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The machine is deterministic: its behaviour depends only on the host's input. Faults and other
//! reasons to stop are values ([`StopReason`]) and leave the machine as it was before the instruction
//! concerned. An instruction is decoded once and then found by its address, until one of its bytes
//! is written.
//!
//! Supported are the integer instructions of 64-bit user code, BMI1 and BMI2; SSE and SSE2 except
//! MMX registers, `maskmovdqu` and the approximations of `rcpps` and `rsqrtps`; and VEX encodings
//! of those for xmm registers, with scalar fused multiply-add but without comparisons, `vmovnt…`,
//! `vlddqu` and those of mxcsr. Addresses have 64 bits. There is no x87, and there are no ymm
//! registers.
//!
//! Other instructions stop the execution with the name of the instruction
//! ([`StopReason::Unimplemented`]). Flags that the manuals leave undefined are computed as for the
//! nearest defined case, or do not change. Floating point rounds to nearest and masks all
//! exceptions; `ldmxcsr` with other modes is not implemented.

#![expect(clippy::inline_always, reason = "the speed of the loop depends on inlining")]

mod code;
mod cpu;
mod decode;
mod exec;
mod flags;
mod memory;
mod observer;
mod op;
mod random;
mod stop;
mod vector;

pub use cpu::Cpu;
pub use memory::{
    AccessKind, MAX_PAGES, MapError, MemoryAccess, PAGE_SIZE, Protection, Region, StaleSavePoint,
};
pub use observer::{Observer, Until};
pub use random::{Fnv1a, SplitMix64};
pub use stop::{Access, Cause, Fault, InstructionForm, StopReason};

use clr_unwind::{Memory, Unreadable};
use code::{CodeCache, LONGEST};
use exec::Reason;
use iced_x86::{Decoder, DecoderError, DecoderOptions, Instruction};
use memory::{AddressSpace, UndoMark};
use op::{Kind, Op};
use std::collections::{BTreeMap, BTreeSet};

/// An x64 machine with one thread.
#[derive(Debug)]
pub struct Machine {
    cpu: Cpu,
    memory: AddressSpace,
    code: CodeCache,
    breakpoints: BTreeSet<u64>,
    /// Ids of service addresses.
    traps: BTreeMap<u64, u32>,
    executed: u64,
    /// Reason why the last instruction could not be executed.
    reason: Reason,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

/// A save point of a machine: memory, registers, and the number of executed instructions.
/// Breakpoints and traps are not part of it.
#[derive(Clone, Copy, Debug)]
pub struct SavePoint {
    cpu: Cpu,
    executed: u64,
    memory: UndoMark,
}

impl SavePoint {
    /// Returns the saved registers.
    pub const fn cpu(&self) -> &Cpu {
        &self.cpu
    }
}

impl Machine {
    /// Creates a machine without memory, with all integer and vector registers 0.
    pub fn new() -> Self {
        Self {
            cpu: Cpu::default(),
            memory: AddressSpace::new(),
            code: CodeCache::new(),
            breakpoints: BTreeSet::new(),
            traps: BTreeMap::new(),
            executed: 0,
            reason: Reason::Invalid,
        }
    }

    /// Maps `pages` pages of zeroes from `start` (VA) on.
    ///
    /// # Errors
    /// Returns [`MapError`] if `start` is not the start of a page, a page is already mapped, the
    /// number of pages exceeds the limit, or the range exceeds the address space.
    pub fn map(&mut self, start: u64, pages: u64, protection: Protection) -> Result<(), MapError> {
        self.memory.map(start, pages, protection)
    }

    /// Unmaps `pages` pages from `start` (VA) on.
    ///
    /// # Errors
    /// Returns [`MapError`] if `start` is not the start of a page or a page is not mapped.
    pub fn unmap(&mut self, start: u64, pages: u64) -> Result<(), MapError> {
        self.memory.unmap(start, pages)?;
        self.code.invalidate(start, pages.saturating_mul(PAGE_SIZE));
        Ok(())
    }

    /// Changes the permissions of `pages` pages from `start` (VA) on.
    ///
    /// # Errors
    /// Returns [`MapError`] if `start` is not the start of a page or a page is not mapped.
    pub fn protect(
        &mut self,
        start: u64,
        pages: u64,
        protection: Protection,
    ) -> Result<(), MapError> {
        self.memory.protect(start, pages, protection)?;
        self.code.invalidate(start, pages.saturating_mul(PAGE_SIZE));
        Ok(())
    }

    /// Returns the mapped regions, ascending by address.
    pub fn regions(&self) -> Vec<Region> {
        self.memory.regions()
    }

    /// Writes to memory as the host, regardless of permissions. The pages must be mapped.
    ///
    /// # Errors
    /// Returns [`Fault`] if a page is not mapped or the limit of pages is reached. Nothing is
    /// written then.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if self.memory.poke_quickly(address, bytes) {
            return Ok(());
        }
        self.memory.poke(address, bytes)?;
        self.code.invalidate(address, bytes.len() as u64);
        Ok(())
    }

    /// Makes reads of the page of `address` (VA) by the host quick, until it changes otherwise than by writes.
    pub fn expect_reads(&mut self, address: u64) {
        self.memory.expect_reads(address);
    }

    /// Returns the registers.
    #[inline]
    pub const fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Returns a mutable reference to the registers.
    #[inline]
    pub const fn cpu_mut(&mut self) -> &mut Cpu {
        &mut self.cpu
    }

    /// Returns the number of executed instructions. Each element of a repeating string instruction
    /// counts as one. Restoring a save point restores this number too.
    pub const fn executed(&self) -> u64 {
        self.executed
    }

    /// Adds a breakpoint: executions stop before the instruction at `address` (VA). Returns true if
    /// there was no breakpoint.
    pub fn add_breakpoint(&mut self, address: u64) -> bool {
        self.code.invalidate(address, 1);
        self.breakpoints.insert(address)
    }

    /// Removes a breakpoint. Returns true if there was one.
    pub fn remove_breakpoint(&mut self, address: u64) -> bool {
        self.code.invalidate(address, 1);
        self.breakpoints.remove(&address)
    }

    /// Makes `address` (VA) a service: reaching it stops with [`StopReason::Trap`] and `id`. Nothing need
    /// be mapped at the address, and no instruction there is executed. Returns the previous id.
    pub fn add_trap(&mut self, address: u64, id: u32) -> Option<u32> {
        self.code.invalidate(address, 1);
        self.traps.insert(address, id)
    }

    /// Removes a service and returns its id.
    pub fn remove_trap(&mut self, address: u64) -> Option<u32> {
        self.code.invalidate(address, 1);
        self.traps.remove(&address)
    }

    /// Begins or ends recording the reads and writes of instructions, at the cost of speed.
    /// Recorded accesses that have not been taken are lost.
    pub fn set_access_log(&mut self, on: bool) {
        self.memory.set_log(on);
    }

    /// Takes the recorded accesses, in order. Instruction fetches and accesses by the host are not
    /// recorded.
    pub fn take_accesses(&mut self) -> Vec<MemoryAccess> {
        self.memory.take_log()
    }

    /// Executes one instruction, even one with a breakpoint.
    ///
    /// # Errors
    /// Returns [`StopReason`] if the instruction cannot be executed. The machine is unchanged then.
    pub fn step(&mut self) -> Result<(), StopReason> {
        self.step_with(&mut ())
    }

    /// Executes one instruction, even one with a breakpoint, and notifies `observer`.
    ///
    /// # Errors
    /// Returns [`StopReason`] if the instruction cannot be executed or the observer stops before it. The
    /// machine is unchanged then.
    pub fn step_with(&mut self, observer: &mut impl Observer) -> Result<(), StopReason> {
        let address = self.cpu.rip();
        let passed = !self.breakpoints.is_empty() && self.remove_breakpoint(address);
        let stop = self.execute(observer, 1);
        if passed {
            self.add_breakpoint(address);
        }
        if stop == StopReason::Limit { Ok(()) } else { Err(stop) }
    }

    /// Executes at most `limit` instructions, until a reason to stop. A breakpoint on the first
    /// instruction is ignored.
    pub fn run(&mut self, limit: u64) -> StopReason {
        self.run_with(&mut (), limit)
    }

    /// Executes like [`run`](Self::run), and notifies `observer`.
    pub fn run_with(&mut self, observer: &mut impl Observer, limit: u64) -> StopReason {
        let mut limit = limit;
        if limit > 0 && self.breakpoints.contains(&self.cpu.rip()) {
            if let Err(stop) = self.step_with(observer) {
                return stop;
            }
            limit -= 1;
        }
        self.execute(observer, limit)
    }

    /// Executes at most `limit` instructions, until the condition holds before an instruction
    /// ([`StopReason::Observer`]) or there is another reason to stop.
    pub fn run_until(&mut self, condition: impl FnMut(&Cpu) -> bool, limit: u64) -> StopReason {
        self.run_with(&mut Until(condition), limit)
    }

    /// Saves the present state. The time does not depend on the amount of memory; pages are copied
    /// when they are written later.
    pub fn save(&mut self) -> SavePoint {
        SavePoint { cpu: self.cpu, executed: self.executed, memory: self.memory.save() }
    }

    /// Restores a state saved on this machine. The state can be restored again; states saved after
    /// it cannot. The time is proportional to the number of pages changed since.
    ///
    /// # Errors
    /// Returns [`StaleSavePoint`] if an earlier state has been restored since the save, or all save
    /// points have been dropped.
    pub fn restore(&mut self, snapshot: &SavePoint) -> Result<(), StaleSavePoint> {
        let code = &mut self.code;
        self.memory.restore(snapshot.memory, |number| code.invalidate_page(number))?;
        self.cpu = snapshot.cpu;
        self.executed = snapshot.executed;
        Ok(())
    }

    /// Makes all save points stale and frees the memory kept for them.
    pub fn forget_snapshots(&mut self) {
        self.memory.forget_saves();
    }

    /// Returns the index of the operation at `address`, after decoding it if necessary.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self, address: u64) -> Result<u32, StopReason> {
        let index = self.code.enter(address);
        if self.code.op(index).kind != Kind::Undecoded {
            return Ok(index);
        }
        let op = if let Some(id) = self.traps.get(&address) {
            Op { imm: id.cast_signed(), ..Op::new(Kind::Trap) }
        } else if self.breakpoints.contains(&address) {
            Op::new(Kind::Breakpoint)
        } else {
            self.decode(address).map_err(|reason| reason.at(address))?
        };
        let memory = &mut self.memory;
        self.code.insert(address, op, |number| memory.watch(number));
        Ok(self.code.enter(address))
    }

    fn decode(&mut self, address: u64) -> Result<Op, Reason> {
        let mut bytes = [0; LONGEST as usize];
        let on_page = (PAGE_SIZE - address % PAGE_SIZE).min(LONGEST) as usize;
        let (here, beyond) = bytes.split_at_mut(on_page);
        self.memory.load_slowly(address, here, Access::Execute).map_err(Reason::Fault)?;
        let (mut instruction, error) = decode_bytes(here, address);
        if error == DecoderError::NoMoreBytes && !beyond.is_empty() {
            // The next page matters only for an instruction that extends into it.
            let next = address.wrapping_add(on_page as u64);
            self.memory.load_slowly(next, beyond, Access::Execute).map_err(Reason::Fault)?;
            (instruction, _) = decode_bytes(&bytes, address);
        }
        if instruction.is_invalid() {
            return Err(Reason::Invalid);
        }
        decode::decode(&instruction).ok_or(Reason::Unimplemented(instruction.code()))
    }
}

fn decode_bytes(bytes: &[u8], address: u64) -> (Instruction, DecoderError) {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (instruction, decoder.last_error())
}

/// Reads with the permissions of instructions: for example, guard pages are not readable.
impl Memory for Machine {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.memory.read(address, buffer)
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.memory.read_u64(address)
    }

    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        self.memory.read_u128(address)
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.memory.window(address, len)
    }
}

#[cfg(test)]
mod tests;
