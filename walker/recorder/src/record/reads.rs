//! The words of memory that the runtime reads in a walk.

use super::frames::{Chain, Frame};
use super::hidden::PassedFrame;
use super::layout::Layout;
use super::managed::ManagedCode;
use clr_unwind::{Memory, Registers, Unreadable, Unwinder};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Maximum number of steps of a walk.
const MOST_STEPS: usize = 20_000;

/// A word of memory that a walk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: u64,
    /// True for a field that only the runtime writes, and whose value the walk depends on.
    pub(super) is_field: bool,
}

/// Memory that notes which words of it are read.
pub(super) struct Noted<'m, M> {
    memory: &'m M,
    words: RefCell<BTreeMap<u64, Word>>,
}

impl<'m, M: Memory> Noted<'m, M> {
    pub(super) fn new(memory: &'m M) -> Self {
        Self { memory, words: RefCell::default() }
    }

    /// Returns the words that were read, by address (VA).
    pub(super) fn into_words(self) -> BTreeMap<u64, Word> {
        self.words.into_inner()
    }

    /// Reads a word of data: of a register that was saved, or a return address.
    pub(super) fn data(&self, address: u64) -> Result<u64, Unreadable> {
        self.note(address, false)
    }

    /// Reads a field that only the runtime writes.
    pub(super) fn field(&self, address: u64) -> Result<u64, Unreadable> {
        self.note(address, true)
    }

    fn note(&self, address: u64, is_field: bool) -> Result<u64, Unreadable> {
        let value = self.memory.read_u64(address)?;
        let mut words = self.words.borrow_mut();
        let word = words.entry(address).or_insert(Word { value, is_field });
        word.is_field |= is_field;
        Ok(value)
    }
}

impl<M: Memory> Memory for Noted<'_, M> {
    /// The unwinder reads whole words.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        for (at, part) in (address..).step_by(8).zip(buffer.chunks_mut(8)) {
            let word = self.data(at)?.to_le_bytes();
            for (byte, value) in part.iter_mut().zip(word) {
                *byte = value;
            }
        }
        Ok(())
    }
}

/// The managed frames that a walk passes.
pub(super) type Passed = Vec<PassedFrame>;

/// Repeats a walk's steps as the runtime makes them (contract §3.3), so that `memory` notes what it
/// reads. `seed`: where it starts, if that is managed code; `end`: the stack pointer of the frame
/// whose callback ends it, if one does; `chain`: the target's Frames.
pub(super) fn repeat<M: Memory>(
    code: ManagedCode<'_, '_>,
    layout: &Layout,
    (seed, end): (Option<&Registers>, Option<u64>),
    chain: &Chain,
    memory: &Noted<'_, M>,
) -> Passed {
    let (convention, rules) = (layout.saved.convention, layout.saved.rules);
    let unwinder = Unwinder::new(code.map).with_convention(convention).with_rules(rules);
    let mut passed = Passed::new();
    let mut registers = seed.copied().unwrap_or_default();
    let mut frames: &[Frame] = &chain.frames;
    for _ in 0..MOST_STEPS {
        if let Some((region, rva)) = code.find(registers.rip) {
            let (ip, sp) = (registers.rip, registers.rsp());
            let step = match region.functions().find(rva) {
                Some(function) => {
                    unwinder.step_in_function(region, function, &mut registers, memory).map(|_| ())
                }
                None => leaf(&mut registers, memory),
            };
            if step.is_err() {
                break;
            }
            let caller = (registers.rsp(), registers.rip);
            passed.push(PassedFrame { ip, sp, caller_sp: caller.0, caller_ip: caller.1 });
            if end.is_some_and(|end| sp >= end) {
                break;
            }
            // Frames of code below the caller are dropped.
            let below = frames.iter().take_while(|frame| frame.at < registers.rsp()).count();
            frames = frames.get(below..).unwrap_or_default();
            continue;
        }
        let Some((frame, rest)) = frames.split_first() else { break };
        let Ok(target) = frame.target(layout, memory, &registers) else { break };
        let leads_on = target.is_some_and(|target| code.find(target.rip).is_some());
        if let Some(target) = target.filter(|_| leads_on) {
            registers = target;
        }
        // The method that contains an active call drops its Frame.
        if !(leads_on && frame.is_inlined_call()) {
            frames = rest;
        }
    }
    passed
}

/// Unwinds code without unwind data.
fn leaf<M: Memory>(
    registers: &mut Registers,
    memory: &Noted<'_, M>,
) -> Result<(), clr_unwind::UnwindError> {
    use clr_unwind::Gpr;
    let sp = registers.rsp();
    registers.rip = memory.data(sp)?;
    registers.set(Gpr::Rsp, sp.wrapping_add(8));
    Ok(())
}
