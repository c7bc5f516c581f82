//! The arguments of a call as data, without an allocation: for observers, which may be in a signal handler.

use crate::forward::{Callee, ForwardedCall};
use crate::{ArgumentKind, ArgumentSignature, Guid, MethodSignature};
use clr_walker::profiling::{FunctionId, HResult};

/// Most arguments of a method.
pub(crate) const MOST_ARGUMENTS: usize = 14;
/// Room for the texts of a call, in UTF-16 units.
const ROOM: usize = 260;

/// A value of an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Captured {
    /// Nothing that is known at that moment, or nothing that can be read.
    #[default]
    Nothing,
    /// A number or an id.
    Number(u64),
    /// NULL.
    Null,
    /// Another pointer.
    Pointer,
    /// A number or an id that the argument points to.
    Points(u64),
    /// A GUID that it points to.
    Guid(Guid),
    /// A text that it points to: first and last index of [`CapturedCall::text`].
    Text(u16, u16),
}

/// A moment of a call.
#[derive(Clone, Debug)]
pub enum Moment {
    /// The call begins.
    Begins(CapturedCall),
    /// The call has ended, with the word of its result.
    Ends(CapturedCall, u64),
    /// `DoStackSnapshot` has reported a frame, and the profiler's callback has answered.
    Frame(FunctionId, HResult),
}

/// A call with the arguments that were captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedCall {
    /// The side that is called.
    pub callee: Callee,
    /// The method.
    pub method: MethodSignature,
    values: [Captured; MOST_ARGUMENTS],
    texts: [u16; ROOM],
    used: u16,
}

impl CapturedCall {
    /// Returns the arguments that have a value.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static ArgumentSignature, Captured)> {
        let all = self.method.arguments.iter().zip(self.values);
        all.filter(|(_, value)| *value != Captured::Nothing)
    }

    /// Returns the text of an argument.
    pub fn text(&self, start: u16, end: u16) -> String {
        String::from_utf16_lossy(self.texts.get(start.into()..end.into()).unwrap_or_default())
    }

    fn new(call: &ForwardedCall<'_>) -> Self {
        let values = [Captured::Nothing; MOST_ARGUMENTS];
        Self { callee: call.callee, method: call.method, values, texts: [0; ROOM], used: 0 }
    }

    fn set(&mut self, at: usize, value: Captured) {
        if let Some(to) = self.values.get_mut(at) {
            *to = value;
        }
    }

    /// Copies a text up to its NUL, as far as there is room.
    ///
    /// # Safety
    /// The address is that of `most` readable units, or of fewer with a NUL.
    unsafe fn copy(&mut self, address: u64, most: u64) -> Captured {
        let start = self.used;
        for at in 0..most {
            // SAFETY: the caller's promise: no NUL was before.
            let unit =
                unsafe { (address as usize as *const u16).add(at as usize).read_unaligned() };
            let Some(to) = self.texts.get_mut(usize::from(self.used)).filter(|_| unit != 0) else {
                break;
            };
            *to = unit;
            self.used += 1;
        }
        Captured::Text(start, self.used)
    }
}

impl ForwardedCall<'_> {
    /// Captures the arguments before the call.
    ///
    /// # Safety
    /// The words are as the documentation of the method demands.
    pub(crate) unsafe fn inputs(&self) -> CapturedCall {
        let mut captured = CapturedCall::new(self);
        for (at, (argument, word)) in self.method.arguments.iter().zip(self.words).enumerate() {
            let value = match (argument.kind, argument.declared) {
                (ArgumentKind::Number { .. }, _) => Captured::Number(*word),
                _ if *word == 0 => Captured::Null,
                (_, "*const Guid") => {
                    // SAFETY: the caller's promise.
                    Captured::Guid(unsafe { (*word as usize as *const Guid).read_unaligned() })
                }
                (_, "*const u16") if self.number_of(argument, "_capacity").is_none() => {
                    let len =
                        ["_len", "_size"].iter().find_map(|end| self.number_of(argument, end));
                    // SAFETY: the caller's promise: a text of that length, or with a NUL.
                    unsafe { captured.copy(*word, len.unwrap_or(u64::MAX)) }
                }
                // The profiler changes what the runtime gives it.
                (ArgumentKind::Out { size: 4 }, _) if self.callee == Callee::Profiler => {
                    // SAFETY: the caller's promise.
                    Captured::Points(unsafe { read(*word, 4) })
                }
                _ => Captured::Pointer,
            };
            captured.set(at, value);
        }
        captured
    }

    /// Captures what a call has written that ends with this result: nothing if it has failed.
    ///
    /// # Safety
    /// The words are as the documentation of the method demands.
    pub(crate) unsafe fn outputs(&self, result: u64) -> CapturedCall {
        let mut captured = CapturedCall::new(self);
        if HResult(result as u32).is_failure() {
            return captured;
        }
        for (at, (argument, word)) in self.method.arguments.iter().zip(self.words).enumerate() {
            let ArgumentKind::Out { size } = argument.kind else { continue };
            if *word == 0 {
                continue;
            }
            let capacity = self.number_of(argument, "_capacity");
            let has_room = capacity.or_else(|| self.number_named("capacity")) != Some(0);
            let value = match (argument.declared, capacity) {
                ("*mut u16", Some(capacity)) => {
                    // SAFETY: the caller's promise: the buffer has this capacity.
                    unsafe { captured.copy(*word, capacity) }
                }
                (declared, _) if declared.starts_with("*mut *") => Captured::Pointer,
                _ if matches!(size, 2 | 4 | 8) && (has_room || argument.name.ends_with("_len")) => {
                    // SAFETY: the caller's promise: a number, or a buffer with room for one.
                    Captured::Points(unsafe { read(*word, size) })
                }
                _ => continue,
            };
            captured.set(at, value);
        }
        captured
    }

    /// Returns the number that belongs to an argument by its name.
    fn number_of(&self, argument: &ArgumentSignature, end: &str) -> Option<u64> {
        let is_its = |name: &str| name.strip_prefix(argument.name) == Some(end);
        self.find(|other| is_its(other.name))
    }

    fn number_named(&self, name: &str) -> Option<u64> {
        self.find(|other| other.name == name)
    }

    fn find(&self, is_it: impl Fn(&ArgumentSignature) -> bool) -> Option<u64> {
        let is_number = |kind| matches!(kind, ArgumentKind::Number { .. });
        let mut all = self.method.arguments.iter().zip(self.words);
        let found = all.find(|(other, _)| is_number(other.kind) && is_it(other));
        found.map(|(_, word)| *word)
    }
}

/// Reads a number of 2, 4 or 8 bytes.
///
/// # Safety
/// The address is that of such a number.
unsafe fn read(address: u64, size: usize) -> u64 {
    let address = address as usize;
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            2 => (address as *const u16).read_unaligned().into(),
            4 => (address as *const u32).read_unaligned().into(),
            _ => (address as *const u64).read_unaligned(),
        }
    }
}
