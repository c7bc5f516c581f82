//! The followed part of a thread's state: registers, and the slots of the stack that lead to the
//! caller.

use crate::value::{ENTRY_RSP, FARTHEST, Value, caller_xmm};
use clr_unwind::{Convention, Gpr, Memory, RegisterSet, Registers, Unreadable};

/// Maximum number of slots that are followed. Of a frame with more the oldest are forgotten as unknown.
const SLOTS: usize = 96;

/// Bytes below rsp that an interrupt leaves alone under System V.
const RED_ZONE: i64 = 128;

/// A followed value on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Bytes from rsp at entry.
    at: i64,
    value: Value,
}

impl Slot {
    const fn size(self) -> i64 {
        if matches!(self.value, Value::CallerXmm(_)) { 16 } else { 8 }
    }
}

/// The state of a thread between two instructions of a function.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) gpr: [Value; 16],
    pub(crate) xmm: [Value; 16],
    /// The operands of the last comparison, if both were addresses on the stack.
    pub(crate) compared: Option<(i64, i64)>,
    /// A register that is at most a number, after a branch that decided it.
    pub(crate) bound: Option<Bound>,
    /// The table that the last load by an index read.
    pub(crate) table: Option<Table>,
    slots: Vec<Slot>,
    /// True if followed slots were forgotten.
    forgot: bool,
}

impl State {
    /// Creates the state at a function's entry, directly after the call.
    pub(crate) fn at_entry(convention: Convention) -> Self {
        let preserved = convention.nonvolatile();
        let mut state = Self {
            gpr: [Value::Other; 16],
            xmm: [Value::Other; 16],
            compared: None,
            bound: None,
            table: None,
            slots: Vec::with_capacity(16),
            forgot: false,
        };
        for (value, register) in state.gpr.iter_mut().zip(Gpr::ALL) {
            if register == Gpr::Rsp {
                *value = Value::Stack(0);
            } else if preserved.contains(register) {
                *value = Value::Caller(register);
            }
        }
        for (value, n) in state.xmm.iter_mut().zip(0..) {
            if preserved.contains_xmm(n) {
                *value = Value::CallerXmm(n);
            }
        }
        state.slots.push(Slot { at: 0, value: Value::Return });
        state
    }

    pub(crate) const fn get(&self, register: Gpr) -> Value {
        // Register numbers are below 16.
        self.gpr[register as usize & 15]
    }

    pub(crate) fn set(&mut self, register: Gpr, value: Value) {
        self.bound = self.bound.filter(|bound| bound.register != register);
        self.gpr[register as usize & 15] = value;
    }

    /// Returns rsp in bytes from its value at entry, if it is known.
    pub(crate) const fn rsp(&self) -> Option<i64> {
        match self.get(Gpr::Rsp) {
            Value::Stack(at) => Some(at),
            _ => None,
        }
    }

    /// Returns true if the frame is as at entry: the word at rsp is the return address.
    pub(crate) fn is_at_return_address(&self) -> bool {
        self.rsp() == Some(0) && self.load(Value::Stack(0)) == Value::Return
    }

    /// Returns the 8 bytes at an address.
    pub(crate) fn load(&self, address: Value) -> Value {
        let at = match address {
            Value::Stack(at) => at,
            Value::Unknown => return Value::Unknown,
            _ => return Value::Other,
        };
        let overlapping = |slot: &&Slot| slot.at < at + 8 && at < slot.at + slot.size();
        match self.slots.iter().find(overlapping) {
            Some(slot) if slot.at == at && slot.size() == 8 => slot.value,
            Some(_) => Value::Unknown,
            None if self.forgot => Value::Unknown,
            None => Value::Other,
        }
    }

    /// Returns the 16 bytes at an address.
    pub(crate) fn load_xmm(&self, address: Value) -> Value {
        let Value::Stack(at) = address else { return self.load(address) };
        let overlapping = |slot: &&Slot| slot.at < at + 16 && at < slot.at + slot.size();
        match self.slots.iter().find(overlapping) {
            Some(slot) if slot.at == at && slot.size() == 16 => slot.value,
            Some(_) => Value::Unknown,
            None if self.forgot => Value::Unknown,
            None => Value::Other,
        }
    }

    /// Stores a value of `size` bytes. Stores to addresses that are not known are taken to miss the
    /// followed slots.
    ///
    /// No function overwrites its return address, or the only copy of a value that it has to restore:
    /// the path there is not a possible one, and the slot is unknown.
    pub(crate) fn store(&mut self, address: Value, size: usize, value: Value) {
        let Value::Stack(at) = address else { return };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let end = at.saturating_add(size);
        let gpr = self.gpr;
        let xmm = self.xmm;
        for slot in &mut self.slots {
            let is_hit = slot.at < end && at < slot.at + slot.size();
            let is_only = match slot.value {
                Value::Return => true,
                Value::Caller(of) => {
                    gpr.iter().zip(Gpr::ALL).all(|(it, r)| r != of || *it != slot.value)
                }
                Value::CallerXmm(_) => !xmm.contains(&slot.value),
                _ => false,
            };
            if is_hit && is_only {
                slot.value = Value::Unknown;
                return;
            }
        }
        self.slots.retain(|slot| slot.at >= end || at >= slot.at + slot.size());
        let is_whole = match value {
            Value::CallerXmm(_) => size == 16,
            Value::Unknown => size >= 8,
            value => value.is_followed() && size == 8,
        };
        if !is_whole {
            return;
        }
        if self.slots.len() >= SLOTS {
            self.slots.remove(0);
            self.forgot = true;
        }
        self.slots.push(Slot { at, value });
        if value == Value::Unknown && size == 16 {
            self.slots.push(Slot { at: at + 8, value });
        }
    }

    /// Returns true if there is a value of the caller in a range, the return address, or, if `addresses`
    /// count, an address on the stack that may lead to them.
    pub(crate) fn holds_frame(&self, address: Value, size: usize, addresses: bool) -> bool {
        let Value::Stack(at) = address else { return false };
        let end = at.saturating_add(i64::try_from(size).unwrap_or(i64::MAX));
        self.slots.iter().any(|slot| {
            let of_frame = match slot.value {
                Value::Return | Value::Caller(_) | Value::CallerXmm(_) => true,
                Value::Stack(_) => addresses,
                _ => false,
            };
            of_frame && slot.at < end && at < slot.at + slot.size()
        })
    }

    /// Marks the followed values in a range as unknown, after an operation on memory.
    pub(crate) fn blur(&mut self, address: Value, size: usize) {
        let Value::Stack(at) = address else { return };
        let end = at.saturating_add(i64::try_from(size).unwrap_or(i64::MAX));
        for slot in &mut self.slots {
            if slot.at < end && at < slot.at + slot.size() {
                slot.value = Value::Unknown;
            }
        }
    }

    /// Forgets what a callee may change.
    pub(crate) fn after_call(&mut self, convention: Convention) {
        let preserved = convention.nonvolatile();
        for (value, register) in self.gpr.iter_mut().zip(Gpr::ALL) {
            if !preserved.contains(register) {
                *value = Value::Other;
            }
        }
        for (value, n) in self.xmm.iter_mut().zip(0..) {
            if !preserved.contains_xmm(n) {
                *value = Value::Other;
            }
        }
        (self.compared, self.bound, self.table) = (None, None, None);
    }

    /// Returns a number that differs where the registers that decide over a frame differ. It is the same
    /// on every host.
    pub(crate) fn key(&self, convention: Convention) -> u64 {
        let mut key = 0;
        for register in convention.nonvolatile().gprs() {
            key = mixed(key, self.get(register).decisive());
        }
        key
    }

    /// Returns a number that differs where any register or slot differs that may lead to the frame.
    pub(crate) fn whole_key(&self) -> u64 {
        let registers = self.gpr.iter().fold(0, |key, value| mixed(key, value.decisive()));
        self.slots.iter().fold(registers, |key, slot| {
            mixed(mixed(key, slot.at.cast_unsigned()), slot.value.decisive())
        })
    }

    /// Returns the registers for the unwinder, with rip, and those that have any known value.
    pub(crate) fn registers(&self, rip: u64) -> (Registers, RegisterSet) {
        let mut registers = Registers { rip, ..Registers::default() };
        let mut known = RegisterSet::ALL;
        for (value, register) in self.gpr.iter().zip(Gpr::ALL) {
            registers.set(register, value.in_register(register));
            if *value == Value::Unknown {
                known = known.without(register);
            }
        }
        let xmm = self.xmm.iter().zip(0_u8..).skip(6);
        for (to, (value, n)) in registers.xmm.iter_mut().zip(xmm) {
            *to = match value {
                Value::CallerXmm(of) => caller_xmm(*of),
                Value::Unknown => UNKNOWN_XMM,
                _ => u128::from(n),
            };
        }
        (registers, known)
    }

    /// Returns the place where the caller's value of `register` is: a register, or bytes from rsp at
    /// entry.
    pub(crate) fn place_of(&self, wanted: Value) -> Option<Place> {
        let holds = |register: &Gpr| self.get(*register) == wanted;
        let in_register = Gpr::ALL.into_iter().find(holds);
        in_register.map(Place::Register).or_else(|| self.slot_of(wanted).map(Place::Stack))
    }

    /// Returns the slot with a value, in bytes from rsp at entry.
    pub(crate) fn slot_of(&self, wanted: Value) -> Option<i64> {
        self.slots.iter().find(|slot| slot.value == wanted).map(|slot| slot.at)
    }
}

/// The number that stands for an unknown value of a vector register.
pub(crate) const UNKNOWN_XMM: u128 = u128::MAX;

/// A register that was compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) register: Gpr,
    /// The number that it was compared with.
    pub(crate) number: u64,
    /// Number of values that it may have, if the branch on the comparison was taken or passed.
    pub(crate) count: Option<u64>,
}

/// A table of the targets of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Address of the first entry (VA).
    pub(crate) at: u64,
    /// The address that entries of 4 bytes count from (VA); `None` for entries of 8 bytes, which are
    /// addresses.
    pub(crate) base: Option<u64>,
    /// Number of entries.
    pub(crate) count: u64,
}

/// The place of a followed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Register(Gpr),
    /// Bytes from rsp at entry.
    Stack(i64),
}

/// Returns a number in which each bit of `key` and of `word` counts.
const fn mixed(key: u64, word: u64) -> u64 {
    let mixed = (key ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// The stack of a state as memory, without the bytes that an interrupt may overwrite.
pub(crate) struct Stack<'s> {
    state: &'s State,
    /// The lowest byte that keeps its value, in bytes from rsp at entry.
    lowest: i64,
}

impl<'s> Stack<'s> {
    pub(crate) fn new(state: &'s State, convention: Convention) -> Self {
        let red_zone = if convention == Convention::SystemV { RED_ZONE } else { 0 };
        let lowest = state.rsp().map_or(i64::MIN, |rsp| rsp - red_zone);
        Self { state, lowest }
    }

    fn offset(address: u64) -> Option<i64> {
        let at = address.wrapping_sub(ENTRY_RSP).cast_signed();
        (-FARTHEST..FARTHEST).contains(&at).then_some(at)
    }
}

impl Memory for Stack<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let len = buffer.len();
        let unreadable = Unreadable { address, len: len as u32 };
        let at = Self::offset(address).ok_or(unreadable)?;
        let kept = |value| if at < self.lowest { Value::Other } else { value };
        match len {
            8 => {
                let value = kept(self.state.load(Value::Stack(at)));
                buffer.copy_from_slice(&value.in_slot(at).to_le_bytes());
            }
            16 => {
                let number = match kept(self.state.load_xmm(Value::Stack(at))) {
                    Value::CallerXmm(n) => caller_xmm(n),
                    Value::Unknown => UNKNOWN_XMM,
                    _ => 0,
                };
                buffer.copy_from_slice(&number.to_le_bytes());
            }
            _ => return Err(unreadable),
        }
        Ok(())
    }
}
