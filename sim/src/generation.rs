//! Which CLR is simulated.
//!
//! Every difference between runtimes is a question with a name here; nowhere else does anything ask
//! which generation it is.

use clr_walker::unwind::Rules;
use core::fmt;

/// A runtime and the operating system that it runs on.
///
/// These are the ones of which walks were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// CoreCLR 3.1 on Windows.
    CoreClr31Windows,
    /// CoreCLR 3.1 on Unix.
    CoreClr31Unix,
    /// .NET 9 on Unix.
    Net9Unix,
    /// .NET 9 on Unix with the setting `LegacyExceptionHandling`: exceptions are dispatched by native
    /// code.
    Net9UnixLegacyExceptions,
    /// .NET 10 on Windows.
    Net10Windows,
}

/// Offsets within an InlinedCallFrame, in bytes (contract §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCallFrameLayout {
    /// `m_pCallSiteSP`.
    pub call_site_sp: u64,
    /// `m_pCallerReturnAddress`: 0 unless the call is active.
    pub return_address: u64,
    /// `m_pCalleeSavedFP`.
    pub frame_pointer: u64,
}

impl Generation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::CoreClr31Windows,
        Self::CoreClr31Unix,
        Self::Net9Unix,
        Self::Net9UnixLegacyExceptions,
        Self::Net10Windows,
    ];

    /// The name that recordings have it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CoreClr31Windows => "coreclr-3.1-windows",
            Self::CoreClr31Unix => "coreclr-3.1-unix",
            Self::Net9Unix => "net9-unix",
            Self::Net9UnixLegacyExceptions => "net9-unix-legacy-exceptions",
            Self::Net10Windows => "net10-windows",
        }
    }

    /// Whether it runs on Unix: there is no suspension of single threads, the System V convention
    /// decides what is callee-saved, and a fault in the walk kills the process.
    #[must_use]
    pub const fn is_unix(self) -> bool {
        match self {
            Self::CoreClr31Unix | Self::Net9Unix | Self::Net9UnixLegacyExceptions => true,
            Self::CoreClr31Windows | Self::Net10Windows => false,
        }
    }

    /// The rules by which it unwinds managed code (contract §8).
    #[must_use]
    pub const fn unwind_rules(self) -> Rules {
        if self.is_unix() { Rules::CoreClrUnix } else { Rules::Windows }
    }

    /// `sizeof(CONTEXT)` as delivered to callbacks, in bytes (C-161 for .NET 9).
    #[must_use]
    pub const fn context_size(self) -> u32 {
        match self {
            Self::Net9Unix | Self::Net9UnixLegacyExceptions => 3104,
            _ => 1232,
        }
    }

    /// Where the fields of an InlinedCallFrame are: newer ones lack `m_StubSecretArg`.
    #[must_use]
    pub const fn inlined_call_frame(self) -> InlinedCallFrameLayout {
        let call_site_sp = match self {
            Self::CoreClr31Windows | Self::CoreClr31Unix => 0x20,
            _ => 0x18,
        };
        InlinedCallFrameLayout {
            call_site_sp,
            return_address: call_site_sp + 8,
            frame_pointer: call_site_sp + 16,
        }
    }

    /// Whether exceptions are dispatched by managed code, whose frames no profiler sees (contract
    /// §3.4, C-163).
    #[must_use]
    pub const fn hides_exception_handling(self) -> bool {
        matches!(self, Self::Net9Unix | Self::Net10Windows)
    }

    /// ContextFlags that a FaultingExceptionFrame's CONTEXT has, but callbacks do not get: under
    /// legacy exception handling that of the extended state.
    #[must_use]
    pub const fn faulting_context_flags_lost(self) -> u32 {
        match self {
            Self::Net9UnixLegacyExceptions => 0x40,
            _ => 0,
        }
    }

    /// Whether software exceptions are described by a SoftwareExceptionFrame, of whose CONTEXT only
    /// rip, rsp and the callee-saved registers are taken (contract §3.5).
    #[must_use]
    pub const fn has_software_exception_frames(self) -> bool {
        matches!(self, Self::Net10Windows)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
