//! A shadow stack that is maintained from outside while instructions are executed one by one.

use super::*;

/// Registers that a callee must preserve in the System V convention, besides rsp.
pub(crate) const PRESERVED: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// Maximum distance in bytes between two places of one stack, with a red zone and other data
/// between; different stacks are further apart.
const ONE_STACK: u64 = 1 << 20;

/// An activation that has not returned yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activation {
    /// The registers that its caller will have. After a call the volatile ones may differ.
    pub caller: Registers,
    /// Event that began the activation.
    pub began: Began,
    /// Unique number of the activation.
    pub id: u64,
}

/// An event that begins an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    /// A call instruction.
    Call,
    /// A signal. Its activation is the code that the signal's handler returns to.
    Signal,
}

/// The effect of an instruction on activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Call,
    Return,
    /// The system call that ends a signal's handler.
    SignalReturn,
    Other,
}

/// An event that ends an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    /// A return; `preserved` is true if all registers were preserved.
    Returned { preserved: bool },
    /// A jump to a frame further up the stack.
    Cut,
}

/// The activations of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    activations: Vec<Activation>,
    begun: u64,
}

impl Shadow {
    /// Returns all activations, the oldest first.
    pub(crate) fn activations(&self) -> &[Activation] {
        &self.activations
    }

    pub(crate) fn innermost(&self) -> Option<&Activation> {
        self.activations.last()
    }

    fn push(&mut self, caller: &Registers, began: Began) {
        self.activations.push(Activation { caller: *caller, began, id: self.begun });
        self.begun += 1;
    }

    /// Records a delivered signal: the thread is at the handler's first instruction, and the
    /// handler returns to `restorer`.
    pub(crate) fn delivered(&mut self, before: &Registers, after: &Registers, restorer: u64) {
        self.push(before, Began::Signal);
        self.push(&returned(after, restorer, after.rsp() + 8), Began::Call);
    }

    /// Records an executed instruction of `length` bytes. Calls `ended` with the activations that
    /// have ended.
    pub(crate) fn executed(
        &mut self,
        before: &Registers,
        (does, length): (Does, u64),
        after: &Registers,
        mut ended: impl FnMut(&Activation, Ended),
    ) {
        match does {
            Does::Call => {
                self.push(&returned(before, before.rip + length, before.rsp()), Began::Call);
            }
            Does::SignalReturn => {
                while let Some(activation) = self.activations.pop() {
                    if activation.began == Began::Signal {
                        // A handler may change where its thread continues.
                        let same = activation.caller.gpr == after.gpr;
                        ended(&activation, Ended::Returned { preserved: same });
                        return;
                    }
                    ended(&activation, Ended::Cut);
                }
            }
            Does::Return | Does::Other => {
                let comes_back = |activation: &&Activation| {
                    let caller = &activation.caller;
                    let back = (caller.rip, caller.rsp()) == (after.rip, after.rsp());
                    does == Does::Return && activation.began == Began::Call && back
                };
                if let Some(activation) = self.innermost().filter(comes_back).copied() {
                    let same = |r: &Gpr| activation.caller.get(*r) == after.get(*r);
                    let preserved = PRESERVED.iter().all(same);
                    ended(&activation, Ended::Returned { preserved });
                    self.activations.pop();
                    return;
                }
                while let Some(activation) = self.innermost().copied()
                    && activation.began == Began::Call
                    && after.rsp().wrapping_sub(activation.caller.rsp()) < ONE_STACK
                {
                    ended(&activation, Ended::Cut);
                    self.activations.pop();
                }
            }
        }
    }
}

/// Returns the registers after a return to `rip` with `rsp`.
fn returned(now: &Registers, rip: u64, rsp: u64) -> Registers {
    let mut registers = Registers { rip, ..*now };
    registers.set(Gpr::Rsp, rsp);
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rip: u64, rsp: u64, rbx: u64) -> Registers {
        let mut registers = Registers { rip, ..Registers::default() };
        registers.set(Gpr::Rsp, rsp);
        registers.set(Gpr::Rbx, rbx);
        registers
    }

    #[test]
    fn preserved_registers_are_checked_at_returns() {
        for (rbx, expected) in [(1, true), (2, false)] {
            let mut shadow = Shadow::default();
            shadow.executed(&at(0x10, 0x108, 1), (Does::Call, 5), &at(0x20, 0x100, 1), |_, _| {
                panic!();
            });
            assert_eq!(shadow.innermost().map(|one| one.caller), Some(at(0x15, 0x108, 1)));
            let mut reported = None;
            let back = at(0x15, 0x108, rbx);
            shadow.executed(&at(0x21, 0x100, rbx), (Does::Return, 1), &back, |_, how| {
                reported = Some(how);
            });
            assert_eq!(reported, Some(Ended::Returned { preserved: expected }));
            assert!(shadow.activations().is_empty());
        }
    }

    #[test]
    fn a_jump_up_the_stack_cuts_it() {
        let mut shadow = Shadow::default();
        for n in 0..3 {
            let rsp = 0x1000 - 0x20 * n;
            let below = at(0x20, rsp - 8, 0);
            shadow.executed(&at(0x10, rsp, 0), (Does::Call, 5), &below, |_, _| panic!());
        }
        let mut cut = Vec::new();
        let landed = at(0x90, 0x1000 - 0x20, 0);
        shadow.executed(&at(0x80, 0xF00, 0), (Does::Other, 2), &landed, |one, how| {
            cut.push((one.id, how));
        });
        assert_eq!(cut, [(2, Ended::Cut), (1, Ended::Cut)]);
        assert_eq!(shadow.activations().len(), 1);
    }

    #[test]
    fn a_signal_returns_to_the_interrupted_code() {
        let mut shadow = Shadow::default();
        let interrupted = at(0x10, 0x1000, 7);
        shadow.delivered(&interrupted, &at(0x50, 0x800, 7), 0x60);
        assert_eq!(shadow.innermost().map(|one| one.caller), Some(at(0x60, 0x808, 7)));
        let mut reported = Vec::new();
        let restorer = at(0x60, 0x808, 7);
        shadow.executed(&at(0x51, 0x800, 7), (Does::Return, 1), &restorer, |_, how| {
            reported.push(how);
        });
        let back = at(0x12, 0x1000, 7);
        shadow.executed(&restorer, (Does::SignalReturn, 2), &back, |_, how| reported.push(how));
        assert_eq!(reported, [Ended::Returned { preserved: true }; 2]);
        assert!(shadow.activations().is_empty());
    }
}
