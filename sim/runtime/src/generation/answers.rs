//! An answer with its evidence, and what a runtime is.

use core::fmt;

pub(super) use super::questions::Answers;
pub(super) use super::values::{
    CheckFailures, EmptyWalk, ExceptionHelper, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, ProfilerSuspension, SeedSize, StackCheck, StartPath,
    WalkFault,
};

/// The evidence for a runtime's answer, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    /// Recorded calls or sequences of callbacks of this runtime show the answer.
    Observed,
    /// The source of this runtime has the answer: file, from the repository's root, and function.
    Read(&'static str),
    /// A page of the documentation, or an interface definition, says so.
    Documented(&'static str),
    /// Nothing of this runtime shows the answer: the reason for the assumption, and the nearest
    /// version that was read.
    Assumed(&'static str),
}

impl Known {
    /// Returns the word: observed, read, documented, or assumed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Read(_) => "read",
            Self::Documented(_) => "documented",
            Self::Assumed(_) => "assumed",
        }
    }

    /// Returns the source, or the reason for an assumption; `None` for recordings.
    pub const fn source(self) -> Option<&'static str> {
        match self {
            Self::Observed => None,
            Self::Read(source) | Self::Documented(source) | Self::Assumed(source) => Some(source),
        }
    }
}

/// Formats the word, and the source in parentheses.
impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source() {
            Some(source) => f.pad(&format!("{} ({source})", self.word())),
            None => f.pad(self.word()),
        }
    }
}

/// An answer and its evidence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<T> {
    pub(super) value: T,
    pub(super) known: Known,
}

/// Returns an answer that recordings of the runtime show.
pub(super) const fn observed<T: Copy>(value: T) -> Answer<T> {
    Answer { value, known: Known::Observed }
}

/// Returns an answer that was read in the runtime's source.
pub(super) const fn read<T: Copy>(value: T, source: &'static str) -> Answer<T> {
    Answer { value, known: Known::Read(source) }
}

/// Returns an answer that documentation gives.
pub(super) const fn documented<T: Copy>(value: T, page: &'static str) -> Answer<T> {
    Answer { value, known: Known::Documented(page) }
}

/// Returns an answer that is assumed for a reason.
pub(super) const fn assumed<T: Copy>(value: T, reason: &'static str) -> Answer<T> {
    Answer { value, known: Known::Assumed(reason) }
}

/// Source of the answers to `copies_write_barrier`, common to the runtimes that are protected so.
pub(super) const WRITE_XOR_EXECUTE: &str =
    "dotnet/docs, runtime configuration: EnableWriteXorExecute is on by default since .NET 7";

/// Source of the answers to `reads_two_slots` of the runtimes that do: source of another version, read and compared with
/// the code of libcoreclr.so 10.0.15 and 11.0.0 and of coreclr.dll of these versions. A program with 3,000 methods
/// showed the same on Linux.
pub(super) const TWO_SLOTS: &str = "src/coreclr/vm/codeman.cpp: EECodeGenManager::FindMethodCode at \
     dotnet/runtime@0066e2e87a3f, and the runtime's own code";

/// Source of the answers to `reads_two_slots` of .NET 8 and 9, where their own code was compared with it.
pub(super) const NEAREST_START: &str = "src/coreclr/src/vm/codeman.cpp: EEJitManager::FindMethodCode of .NET 5, and the runtime's own code";

/// Source of answers about SuspendRuntime in .NET 8: a run of 8.0.4 and 8.0.34 on Linux showed the same. There a thread of
/// the profiler walked another one from RuntimeSuspendStarted on, where 9.0.7 to 11.0.0 gave E_NOTIMPL.
pub(super) const MARKS_FIRST: &str = "src/coreclr/src/vm/proftoeeinterfaceimpl.cpp: \
     ProfToEEInterfaceImpl::SuspendRuntime of .NET 5, and the code of libcoreclr.so 8.0.34";

/// Source of the answers that SuspendRuntime marks last, where no recording shows it: one of another version, compared with
/// the code of coreclr.dll 9.0.22, 10.0.15 and 11.0.0.
pub(super) const MARKS_LAST: &str = "src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
     ProfToEEInterfaceImpl::SuspendRuntime at tommcdon/runtime@04035ed1effe, and the runtime's own code";

/// Source of answers about callers and arguments that GetCodeInfo2, GetThreadInfo and GetHandleFromThread refuse.
pub(super) const FORBIDDEN_CALLS: &str = "src/coreclr/src/vm/proftoeeinterfaceimpl.cpp: GetCodeInfo2, \
     GetThreadInfo and GetHandleFromThread of .NET 5, and the runtime's own code";

/// Why answers about the checks of `DoStackSnapshot` are assumed for newer Windows: the source was read, but of no release.
pub(super) const SNAPSHOT_AT_MAIN: &str = "read at main after .NET 9: \
     src/coreclr/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot";

/// Why answers to `releases_profiler_at_end` are assumed: these runs were not recorded.
pub(super) const KEPT_AT_END: &str = "no Release after Shutdown in runs of 8.0.34, 9.0.23, 10.0.15 and \
     11.0.0 on Linux; EEShutDownHelper of .NET 5, src/coreclr/src/vm/ceemain.cpp, \"intentionally\" \
     keeps the object";

/// The operating system of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Os {
    /// Windows.
    Windows,
    /// Linux and its relatives, whose functions have the System V convention.
    Unix,
}

/// The product line of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Product {
    /// .NET Framework.
    Framework,
    /// .NET Core, and .NET since version 5.
    Core,
}

/// A version: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u8, pub u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.0, self.1))
    }
}

/// The place of a runtime among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Family {
    /// Operating system.
    pub os: Os,
    /// Product line.
    pub product: Product,
    /// Version of the product.
    pub version: Version,
    /// True if the setting `LegacyExceptionHandling` of .NET 9 is on.
    pub legacy_exceptions: bool,
}

impl Family {
    /// Returns true for .NET Core, and .NET since version 5, from this version on.
    pub const fn is_core_since(self, major: u8) -> bool {
        matches!(self.product, Product::Core) && self.version.0 >= major
    }
}
