//! The classes of the objects that a thread has thrown and allocated last.

use super::{ExceptionClass, World};
use crate::stubs::method_of;
use clr_runtime::thread::offset;
use clr_unwind::Memory as _;

impl World<'_> {
    /// Returns the class of the object that a thread has allocated last.
    pub(super) fn class_allocated(&self, thread: usize) -> ExceptionClass {
        self.class_at(thread, offset::ALLOCATED)
    }

    /// Returns the class of the exception that code of a thread has thrown last.
    pub(super) fn last_thrown(&self, thread: usize) -> ExceptionClass {
        self.class_at(thread, offset::LAST_THROWN)
    }

    fn class_at(&self, thread: usize, offset: u64) -> ExceptionClass {
        let number = self.number_at(thread, offset);
        ExceptionClass::from_number(number, method_of(number).is_some())
    }

    /// Returns the number by which code says what a thread has allocated last.
    pub(super) fn number_allocated(&self, thread: usize) -> u64 {
        self.number_at(thread, offset::ALLOCATED)
    }

    fn number_at(&self, thread: usize, offset: u64) -> u64 {
        let Some(object) = self.object(thread) else { return 0 };
        let at = object.0.wrapping_add(offset);
        // A Thread object of the world is always mapped.
        self.runtime.memory.borrow().read_u64(at).unwrap_or_default()
    }
}
