//! Synthesised native code in place of code that a recording omits.
//!
//! For native code, a recording has only the registers where it was entered and left: the registers
//! of the suspended thread, the result of the operating system's unwinder, and the registers of
//! markers and of the Frames after them. Neither its unwind data nor its stack memory were
//! recorded. Here every run of native code becomes two functions, the one known by its address and
//! a glue function, with unwind data and stack words that lead from one end of the run to the
//! other. Recorded words are never changed: if one of them is a return address, it takes
//! precedence.

use super::{ReachedFrame, RecordedMemory};
use clr_runtime::CodeManager;
use clr_unwind::{
    CodeMap, CodeMapError, CodeRegion, FunctionTable, Gpr, Memory, RegionKind, Registers, Section,
    Sections,
};
use std::collections::BTreeMap;

/// Address of the glue functions (VA).
const GLUE: u64 = 0x5A5C_0000_0000;
/// Distance between glue functions in bytes.
const GLUE_SIZE: u64 = 16;
/// Size in bytes of call rel32.
const CALL: usize = 5;
/// Address in the recorder's own code, which is unknown (VA).
const RECORDER: u64 = 0x5A5D_0000_0008;
/// Size in bytes of a machine frame without error code.
const MACHINE_FRAME: u64 = 40;
/// Size of the stack that the recorder uses, in bytes.
const RECORDERS_STACK: u64 = 0x400;
/// Distance in bytes over which a free word is searched upwards.
const FAR: u64 = 1 << 16;
/// The registers that are unwound.
const NONVOLATILE: [Gpr; 8] =
    [Gpr::Rbx, Gpr::Rbp, Gpr::Rsi, Gpr::Rdi, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// The ends of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackEnds {
    /// Return address of the thread's first function (VA).
    pub root: u64,
    /// End of the stack, exclusive (VA).
    pub base: u64,
    /// Bytes at a caller's stack pointer that belong to its callee.
    pub home: u64,
}

/// The position of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf<'r> {
    /// The thread is in managed code.
    Managed,
    /// The thread is in native code, with these registers.
    Native(&'r Registers),
    /// The thread is in the recorder, which the runtime or managed code has called, or which
    /// interrupted native code.
    Recorder,
    /// The position is unknown.
    Unknown,
}

/// A run of native code between two recorded ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: Registers,
    to: End,
}

impl Run {
    /// Returns ip and stack pointer (VA) of the first frame.
    const fn place(&self) -> (u64, u64) {
        (self.from.rip, self.from.rsp())
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// Managed code that called the native code.
    Caller(Registers),
    /// Managed code that was interrupted.
    Interrupted(Registers),
    /// The end of the thread's first function, which returns to this address (VA) somewhere below
    /// the stack's base.
    Root { returns_to: u64, base: u64 },
}

impl End {
    /// Returns the end of the run's own stack (VA).
    const fn limit(&self) -> u64 {
        match self {
            Self::Caller(registers) | Self::Interrupted(registers) => {
                registers.rsp().saturating_sub(8)
            }
            Self::Root { base, .. } => *base,
        }
    }
}

/// A piece of code with its tables.
#[derive(Clone, Debug)]
struct Piece {
    base: u64,
    code: Vec<u8>,
    functions: Vec<u8>,
    unwind_data: Vec<u8>,
}

/// RVA of a piece's unwind data.
const UNWIND_DATA: u32 = 0x1000;

impl Piece {
    /// Creates one function of `size` bytes without a prologue.
    fn new(base: u64, size: u32, codes: &[u8]) -> Self {
        let functions = [0, size, UNWIND_DATA].into_iter().flat_map(u32::to_le_bytes).collect();
        let mut unwind_data = vec![1, 0, (codes.len() / 2) as u8, 0];
        unwind_data.extend_from_slice(codes);
        unwind_data.resize(unwind_data.len().next_multiple_of(4), 0);
        // Only nop, so that no epilogue is recognised.
        Self { base, code: vec![0x90; size as usize], functions, unwind_data }
    }

    fn region(&self) -> Result<CodeRegion<'_>, CodeMapError> {
        let size = self.code.len() as u32;
        let error = CodeMapError::Range { base: self.base, size: size.into() };
        let sections = Sections::new(vec![
            Section { rva: 0, bytes: &self.code, executable: true },
            Section { rva: UNWIND_DATA, bytes: &self.unwind_data, executable: false },
        ]);
        let sections = sections.map_err(|_| error)?;
        let functions = FunctionTable::new(&self.functions);
        CodeRegion::from_sections(self.base, size, RegionKind::Image, sections, functions)
    }
}

/// Returns true if both addresses (VA) are in code of the same method.
fn is_same_method(code: &CodeManager<'_>, one: u64, other: u64) -> bool {
    let method = |address| code.find(address).map(|managed| managed.method.id);
    method(one).is_some() && method(one) == method(other)
}

/// Encodes UWOP_ALLOC_LARGE of `size` bytes, or nothing for 0.
fn allocation(size: u64) -> impl Iterator<Item = u8> {
    let operation = (size != 0).then_some([0, 0x11]).into_iter().flatten();
    let size = (size != 0).then_some((size as u32).to_le_bytes()).into_iter().flatten();
    operation.chain(size)
}

/// Encodes UWOP_SAVE_NONVOL_FAR.
fn saved(register: Gpr, offset: u64) -> impl Iterator<Item = u8> {
    [0, register.number() << 4 | 5].into_iter().chain((offset as u32).to_le_bytes())
}

/// The synthesised native code of one thread.
#[derive(Clone, Debug, Default)]
pub struct SyntheticNative {
    pieces: Vec<Piece>,
    /// The address after the return address of the thread's first function (VA).
    end: Option<u64>,
    /// Words of stack that were not recorded.
    words: BTreeMap<u64, u64>,
    /// Addresses with a flag that is true if the instruction before is a call.
    follows_call: BTreeMap<u64, bool>,
    /// Registers of the thread in the recorder's code.
    leaf: Option<Registers>,
    /// Number of synthesised runs.
    pub runs: usize,
    /// ip and stack pointer (VA) of the first frame of each run that is not synthesised, because its
    /// stack has no room or two runs at one address contradict each other.
    pub left_out: Vec<(u64, u64)>,
    /// Number of recorded return addresses at the ends of runs.
    pub recorded_ends: usize,
    /// Number of those for which the runtime reports another return address of the same method
    /// (C-156). The recorded address takes precedence.
    pub moved_ends: usize,
    /// Number of runs that are left out because another word was recorded in place of the return
    /// address at their end.
    pub lost_ends: usize,
}

impl SyntheticNative {
    /// Creates native code for a thread at `leaf` with these frames.
    ///
    /// The run at the leaf ends at `unwound_to`, or otherwise at the first frame. If `leaf` is the
    /// recorder, the run is the recorder's own code. The last run ends at the root: a return below
    /// the stack's base.
    pub(super) fn new(
        stops: &[ReachedFrame],
        leaf: Leaf<'_>,
        unwound_to: Option<&Registers>,
        stack: StackEnds,
        code: &CodeManager<'_>,
        memory: &RecordedMemory,
    ) -> Self {
        let mut native = Self::default();
        native.note_addresses(stops);
        native.follows_call.extend(unwound_to.map(|to| (to.rip, true)));
        let mut runs = Vec::new();
        let first = stops.first();
        let end = |stop: &ReachedFrame| {
            let end = if stop.interrupted { End::Interrupted } else { End::Caller };
            end(stop.registers)
        };
        // The unwinder searched for methods and passed the stubs before them.
        let unwound_to =
            unwound_to.filter(|to| first.is_none_or(|first| to.rsp() <= first.registers.rsp()));
        let to = unwound_to.copied().map(End::Caller).or_else(|| first.map(end));
        match (leaf, to) {
            (Leaf::Recorder, to) => {
                let mut from = Registers::default();
                if let Some(End::Caller(registers) | End::Interrupted(registers)) = to {
                    from = registers;
                }
                from.rip = RECORDER;
                // Without a frame, the recorder is only known to be somewhere on the stack.
                let end = to.map_or(stack.base, |to| to.limit());
                from.set(Gpr::Rsp, end.saturating_sub(RECORDERS_STACK) & !0xF);
                native.leaf = Some(from);
                runs.extend(to.map(|to| Run { from, to }));
            }
            (Leaf::Native(leaf), Some(to)) if leaf.rsp() < to.limit() => {
                runs.push(Run { from: *leaf, to });
            }
            _ => {}
        }
        for (at, stop) in stops.iter().enumerate() {
            let Some(from) = stop.native_caller else { continue };
            let to = stops
                .get(at + 1)
                .map_or(End::Root { returns_to: stack.root, base: stack.base }, end);
            runs.push(Run { from, to });
            native.follows_call.insert(from.rip, true);
        }
        native.lay_out(&runs, stack.home, code, memory);
        native.write_calls();
        native
    }

    /// Writes `call rel32` before the return addresses in the pieces, as [`read`](Self::read) shows
    /// it: a profiler takes code from images where it can.
    fn write_calls(&mut self) {
        for Piece { base, code, .. } in &mut self.pieces {
            let end = base.saturating_add(code.len() as u64);
            for (address, _) in self.follows_call.range(*base..=end).filter(|(_, call)| **call) {
                let at = (address - *base).checked_sub(CALL as u64);
                if let Some(byte) = at.and_then(|at| code.get_mut(usize::try_from(at).ok()?)) {
                    *byte = 0xE8;
                }
            }
        }
    }

    /// Records that the instruction before a return address is a call.
    fn note_addresses(&mut self, stops: &[ReachedFrame]) {
        for stop in stops {
            self.follows_call.entry(stop.registers.rip).or_insert(!stop.interrupted);
        }
    }

    fn lay_out(
        &mut self,
        runs: &[Run],
        home: u64,
        code: &CodeManager<'_>,
        memory: &RecordedMemory,
    ) {
        let mut by_address: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
        for run in runs {
            by_address.entry(run.from.rip).or_default().push(*run);
        }
        for (rip, runs) in by_address {
            // A return to address 0 leads nowhere.
            let size = self.common_size(&runs, home, memory).filter(|_| rip != 0);
            let Some(size) = size else {
                self.left_out.extend(runs.iter().map(Run::place));
                continue;
            };
            let before = self.runs;
            for run in &runs {
                let slot = run.from.rsp().saturating_add(size);
                let glue = GLUE + self.runs as u64 * GLUE_SIZE;
                let ip = glue + GLUE_SIZE / 2;
                self.words.insert(slot, ip);
                self.follows_call.insert(ip, true);
                if let Some(codes) = self.glue(run, slot.saturating_add(8), code, memory) {
                    self.pieces.push(Piece::new(glue, GLUE_SIZE as u32, &codes));
                    self.runs += 1;
                } else {
                    self.words.remove(&slot);
                    self.left_out.push(run.place());
                }
            }
            if self.runs > before {
                let codes: Vec<u8> = allocation(size).collect();
                self.pieces.push(Piece::new(rip.wrapping_sub(1), 2, &codes));
            }
        }
    }

    fn is_free(&self, slot: u64, memory: &RecordedMemory) -> bool {
        slot.is_multiple_of(8) && !memory.is_known(slot, 8) && !self.words.contains_key(&slot)
    }

    /// Returns a size in bytes of the known function's frame that fits all its runs.
    fn common_size(&self, runs: &[Run], home: u64, memory: &RecordedMemory) -> Option<u64> {
        (home..FAR).step_by(8).find(|size| {
            runs.iter().all(|run| {
                let slot = run.from.rsp().saturating_add(*size);
                slot < run.to.limit() && self.is_free(slot, memory)
            })
        })
    }

    /// Returns a free word of the glue function's stack.
    fn free_word(&self, from: u64, to: u64, memory: &RecordedMemory) -> Option<u64> {
        let to = to.min(from.saturating_add(FAR));
        (from..to).step_by(8).find(|slot| self.is_free(*slot, memory))
    }

    /// Returns the unwind codes of a run's glue function, whose stack pointer is `sp` (VA), and
    /// stores the words that it has saved.
    fn glue(
        &mut self,
        run: &Run,
        sp: u64,
        code: &CodeManager<'_>,
        memory: &RecordedMemory,
    ) -> Option<Vec<u8>> {
        let end = run.to.limit();
        match run.to {
            End::Caller(to) => {
                if !end.is_multiple_of(8) || sp > end {
                    return None;
                }
                if memory.is_known(end, 8) {
                    let recorded = memory.read_u64(end).ok()?;
                    if recorded != to.rip && !is_same_method(code, recorded, to.rip) {
                        self.lost_ends += 1;
                        return None;
                    }
                    self.recorded_ends += 1;
                    self.moved_ends += usize::from(recorded != to.rip);
                    self.follows_call.insert(recorded, true);
                } else {
                    self.words.insert(end, to.rip);
                }
                let mut codes = self.saves(&run.from, &to, (sp, end), memory)?;
                codes.extend(allocation(end - sp));
                Some(codes)
            }
            End::Interrupted(to) => {
                let slots = (sp..end.checked_sub(MACHINE_FRAME)?).step_by(8);
                let frame = slots.into_iter().find(|frame| {
                    (*frame..frame + MACHINE_FRAME).step_by(8).all(|at| self.is_free(at, memory))
                })?;
                self.words.insert(frame, to.rip);
                self.words.insert(frame + 24, to.rsp());
                let mut codes = self.saves(&run.from, &to, (sp, end), memory)?;
                codes.extend(allocation(frame - sp));
                codes.extend([0, 0x0A]);
                Some(codes)
            }
            End::Root { returns_to, base } => {
                let slot = self.free_word(sp, base, memory)?;
                self.words.insert(slot, returns_to);
                self.end = Some(slot + 8);
                Some(allocation(slot - sp).collect())
            }
        }
    }

    /// Returns unwind codes for the registers that differ between the beginning and the end of a
    /// run.
    fn saves(
        &mut self,
        from: &Registers,
        to: &Registers,
        (sp, end): (u64, u64),
        memory: &RecordedMemory,
    ) -> Option<Vec<u8>> {
        let mut codes = Vec::new();
        for register in NONVOLATILE {
            if from.get(register) != to.get(register) {
                let slot = self.free_word(sp, end, memory)?;
                self.words.insert(slot, to.get(register));
                codes.extend(saved(register, slot - sp));
            }
        }
        Some(codes)
    }

    /// Returns the end of the stack (VA), if the native code is there up to the root. Recordings do
    /// not have the stack's base.
    pub(crate) const fn end(&self) -> Option<u64> {
        self.end
    }

    /// Removes the unwind data, which the recording does not have either.
    #[must_use]
    pub fn without_unwind_data(self) -> Self {
        let Self { follows_call, leaf, .. } = self;
        Self { follows_call, leaf, ..Self::default() }
    }

    /// Returns true if `address` (VA) is in a function that was not recorded: glue, or code of the
    /// recorder.
    pub const fn is_synthetic(address: u64) -> bool {
        address >= GLUE && address <= RECORDER
    }

    /// Returns the registers of the thread if it is in code of the recorder.
    pub(super) const fn leaf(&self) -> Option<&Registers> {
        self.leaf.as_ref()
    }

    /// Adds the code to a map.
    ///
    /// # Errors
    /// Returns [`CodeMapError`] if the map already has code at an address.
    pub fn add_to<'p>(&'p self, map: &mut CodeMap<'p>) -> Result<(), CodeMapError> {
        self.pieces.iter().try_for_each(|piece| map.insert(piece.region()?))
    }

    /// Reads the synthesised bytes at `address` (VA), where nothing was recorded. Returns true if
    /// there are any.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        if let (Some(word), 8) = (self.words.get(&address), buffer.len()) {
            buffer.copy_from_slice(&word.to_le_bytes());
            return true;
        }
        // call rel32 before a return address, otherwise nop.
        let end = address.wrapping_add(buffer.len() as u64);
        let Some(&call) = self.follows_call.get(&end) else { return false };
        buffer.fill(0x90);
        let at = buffer.len().checked_sub(CALL).filter(|_| call);
        match at.and_then(|at| buffer.get_mut(at)) {
            Some(byte) => *byte = 0xE8,
            None => return !call,
        }
        true
    }
}
