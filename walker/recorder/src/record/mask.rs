//! Values that a recording does not show: those in registers and on stacks that are no addresses.
//!
//! A walk only carries such values from place to place. So each is replaced by a number of its own,
//! everywhere in the file: the replay carries the number, and nobody learns the value.

use clr_walker::profiling::StackBounds;
use std::collections::HashMap;

/// The first number. It is no address on x86-64: its highest bits differ from bit 47.
const FIRST: u64 = 0x5EC0_0000_0000_0000;
/// Distance of the numbers: bits at the end of a word have a meaning in some fields.
const DISTANCE: u64 = 0x10;

/// The numbers of a file's values.
#[derive(Clone, Debug, Default)]
pub(super) struct Mask(HashMap<u64, u64>);

/// A value that may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Shown as it is: a field of the runtime's own, or an address of code.
    Plain(u64),
    /// Replaced, unless it is 0 or an address on the stack.
    Data(u64),
}

impl Mask {
    /// Returns the value as the file shows it. `stack` is that of the walk.
    pub(super) fn show(&mut self, value: Value, stack: StackBounds) -> u64 {
        match value {
            Value::Plain(value) => value,
            // The base itself is the stack pointer of a thread's last caller.
            Value::Data(value) if value == 0 || stack.contain(value) || value == stack.base => {
                value
            }
            Value::Data(value) => {
                let next = FIRST + DISTANCE * self.0.len() as u64;
                *self.0.entry(value).or_insert(next)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_walker::profiling::StackRoot;

    #[test]
    fn a_value_has_one_number_that_does_not_show_it() {
        let stack = StackBounds { limit: 0x1000, base: 0x2000, root: StackRoot::Undefined };
        let mut mask = Mask::default();
        let secret = u64::from_le_bytes(*b"hunter2!");
        let shown = mask.show(Value::Data(secret), stack);
        assert_eq!(shown, FIRST);
        assert_eq!(mask.show(Value::Data(secret), stack), shown, "the same each time");
        assert_eq!(mask.show(Value::Data(secret + 1), stack), FIRST + DISTANCE);
        for kept in [0, 0x1000, 0x1FF8, 0x2000] {
            assert_eq!(mask.show(Value::Data(kept), stack), kept, "{kept:#x}");
        }
        assert_eq!(mask.show(Value::Data(0x2001), stack), FIRST + 2 * DISTANCE);
        assert_eq!(mask.show(Value::Plain(5), stack), 5);
    }
}
