//! Why a machine stops.

use core::fmt;
use iced_x86::Code;
use thiserror::Error;

/// What an instruction wanted of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Its bytes.
    Read,
    /// To change them.
    Write,
    /// To execute them.
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

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing is mapped there.
    Unmapped,
    /// The page does not permit it.
    Protected,
    /// It is a guard page. It stays one until the host says otherwise.
    Guard,
    /// A page would have to be copied, and there may be no more of them.
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

/// An access to memory that is refused. Nothing has been changed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("cannot {access} {address:#x}: {cause}")]
pub struct Fault {
    /// The first address that is refused (VA): where the access goes over the end of a page, that
    /// may be the start of the next one.
    pub address: u64,
    /// What was wanted.
    pub access: Access,
    /// Why it is refused.
    pub cause: Cause,
}

/// Why a run has come to a stop.
///
/// rip is the address of the instruction that has not been executed, and the registers and memory
/// are as they were before it, whatever the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Stop {
    /// As many instructions as asked for have been executed.
    #[error("the limit is reached")]
    Limit,
    /// The observer wanted to stop before this instruction.
    #[error("the observer stops at {address:#x}")]
    Observer {
        /// rip (VA).
        address: u64,
    },
    /// There is a breakpoint.
    #[error("breakpoint at {address:#x}")]
    Breakpoint {
        /// rip (VA).
        address: u64,
    },
    /// rip is a service address: the host has to do the work, and to set rip.
    #[error("service {id} at {address:#x}")]
    Trap {
        /// rip (VA).
        address: u64,
        /// The host's name for the service.
        id: u32,
    },
    /// Memory cannot be accessed.
    #[error("the instruction at {at:#x} faults: {fault}")]
    Fault {
        /// rip (VA).
        at: u64,
        /// What it could not access.
        fault: Fault,
    },
    /// A division by zero, or the quotient is too large (#DE).
    #[error("division error at {address:#x}")]
    DivideError {
        /// rip (VA).
        address: u64,
    },
    /// A privileged instruction, a misaligned 16-byte operand, a selector that does not exist
    /// (#GP).
    #[error("general protection fault at {address:#x}")]
    GeneralProtection {
        /// rip (VA).
        address: u64,
    },
    /// `ud2`, or bytes that are no instruction (#UD).
    #[error("invalid instruction at {address:#x}")]
    InvalidInstruction {
        /// rip (VA).
        address: u64,
    },
    /// `int3`. Its address is rip, as a Windows exception handler sees it, not the one behind it.
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
    /// A valid instruction that the machine does not know.
    #[error("{instruction} at {address:#x} is not implemented")]
    Unimplemented {
        /// rip (VA).
        address: u64,
        /// Which it is.
        instruction: InstructionForm,
    },
}

/// A form of an instruction: mnemonic and kinds of operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionForm(u16);

impl InstructionForm {
    pub(super) const fn new(code: Code) -> Self {
        Self(code as u16)
    }

    /// Its number in the list of the decoder, iced-x86.
    #[must_use]
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
        let stop = Stop::Unimplemented { address: 0x1400, instruction };
        assert_eq!(stop.to_string(), "Rdtsc at 0x1400 is not implemented");
        assert_eq!(format!("{instruction:?}"), "Rdtsc");
        assert_eq!(InstructionForm(u16::MAX).to_string(), "INVALID");
        let fault = Fault { address: 0x2000, access: Access::Write, cause: Cause::Guard };
        let message = "the instruction at 0x1 faults: cannot write 0x2000: it is a guard page";
        assert_eq!(Stop::Fault { at: 1, fault }.to_string(), message);
    }
}
