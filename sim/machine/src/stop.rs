//! The reasons why a machine stops.

use core::fmt;
use iced_x86::Code;
use thiserror::Error;

/// The kind of access that an instruction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The bytes are read.
    Read,
    /// The bytes are written.
    Write,
    /// The bytes are executed.
    Execute,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        })
    }
}

/// The reason why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing is mapped there.
    Unmapped,
    /// The page does not permit the access.
    Protected,
    /// The page is a guard page, until the host changes its protection.
    Guard,
    /// A page would have to be copied, but the limit of pages is reached.
    Exhausted,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmapped => "nothing is mapped there",
            Self::Protected => "the page does not permit it",
            Self::Guard => "it is a guard page",
            Self::Exhausted => "the machine has no page left",
        })
    }
}

/// A refused access to memory. The access has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("cannot {access} {address:#x}: {cause}")]
pub struct Fault {
    /// First refused address (VA). If the access crosses the end of a page, this may be the start
    /// of the next page.
    pub address: u64,
    /// Kind of the access.
    pub access: Access,
    /// Reason for the refusal.
    pub cause: Cause,
}

/// The reason why an execution has stopped.
///
/// For every reason, rip is the address of the instruction that has not been executed, and
/// registers and memory are as they were before that instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum StopReason {
    /// The requested number of instructions has been executed.
    #[error("the limit is reached")]
    Limit,
    /// The observer stops before this instruction.
    #[error("the observer stops at {address:#x}")]
    Observer {
        /// rip (VA).
        address: u64,
    },
    /// The instruction has a breakpoint.
    #[error("breakpoint at {address:#x}")]
    Breakpoint {
        /// rip (VA).
        address: u64,
    },
    /// rip is a service address: the host has to perform the service and set rip.
    #[error("service {id} at {address:#x}")]
    Trap {
        /// rip (VA).
        address: u64,
        /// The host's id of the service.
        id: u32,
    },
    /// An access to memory is refused.
    #[error("the instruction at {at:#x} faults: {fault}")]
    Fault {
        /// rip (VA).
        at: u64,
        /// The refused access.
        fault: Fault,
    },
    /// A division by zero, or the quotient is too large (#DE).
    #[error("division error at {address:#x}")]
    DivideError {
        /// rip (VA).
        address: u64,
    },
    /// A privileged instruction, a misaligned 16-byte operand, or a selector that does not exist
    /// (#GP).
    #[error("general protection fault at {address:#x}")]
    GeneralProtection {
        /// rip (VA).
        address: u64,
    },
    /// `ud2`, or bytes that are not an instruction (#UD).
    #[error("invalid instruction at {address:#x}")]
    InvalidInstruction {
        /// rip (VA).
        address: u64,
    },
    /// `int3`. The address is that of the instruction, as a Windows exception handler sees it, not
    /// of the next one.
    #[error("int3 at {address:#x}")]
    Int3 {
        /// rip (VA).
        address: u64,
    },
    /// `int n` or `syscall`.
    #[error("interrupt or system call at {address:#x}")]
    System {
        /// rip (VA).
        address: u64,
    },
    /// A valid instruction that the machine does not implement.
    #[error("{instruction} at {address:#x} is not implemented")]
    Unimplemented {
        /// rip (VA).
        address: u64,
        /// The form of the instruction.
        instruction: InstructionForm,
    },
}

/// The form of an instruction: mnemonic and kinds of operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionForm(u16);

impl InstructionForm {
    pub(super) const fn new(code: Code) -> Self {
        Self(code as u16)
    }

    /// Returns the number of the form in iced-x86.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for InstructionForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Code::try_from(usize::from(self.0)).unwrap_or_default(), f)
    }
}

impl fmt::Debug for InstructionForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_address_and_instruction() {
        let instruction = InstructionForm::new(Code::Rdtsc);
        let stop = StopReason::Unimplemented { address: 0x1400, instruction };
        assert_eq!(stop.to_string(), "Rdtsc at 0x1400 is not implemented");
        assert_eq!(format!("{instruction:?}"), "Rdtsc");
        assert_eq!(InstructionForm(u16::MAX).to_string(), "INVALID");
        let fault = Fault { address: 0x2000, access: Access::Write, cause: Cause::Guard };
        let message = "the instruction at 0x1 faults: cannot write 0x2000: it is a guard page";
        assert_eq!(StopReason::Fault { at: 1, fault }.to_string(), message);
    }
}
