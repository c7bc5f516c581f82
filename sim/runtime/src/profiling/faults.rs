//! Failures that a search may inject: a runtime may refuse these calls for reasons that the simulated process does not
//! have, such as want of memory.

use super::{Caller, HResult};
use crate::generation::sets::all_with;
use crate::generation::{Generation, Generations, Known, WalkFault};
use crate::{Outcome, TargetMemory};
use core::fmt;

/// A failure of a call of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallFault {
    /// The method.
    pub method: &'static str,
    /// The result of the call.
    pub result: HResult,
    /// Number of frames that a walk reports before it fails.
    pub frames: u32,
}

/// A failure, the runtimes that may fail so, and how that is known.
type Row = (CallFault, Generations, Known);

const fn row(method: &'static str, result: HResult, known: Known) -> Row {
    (CallFault { method, result, frames: 0 }, Generations::ALL, known)
}

/// Returns a row of walks that fail after a frame.
const fn later((fault, on, known): Row) -> Row {
    (CallFault { frames: 1, ..fault }, on, known)
}

/// Returns a row of some runtimes.
const fn on(on: Generations, (fault, _, known): Row) -> Row {
    (fault, on, known)
}

/// Evidence in proftoeeinterfaceimpl.cpp of dotnet/runtime at 0049981b, in src/coreclr/vm, or where the contract says so of
/// CoreCLR 3.1.
const fn read(function: &'static str) -> Known {
    Known::Read(function)
}

const WALK: &str = "DoStackSnapshot";
const LOAD: &str = "GetClassFromTokenAndTypeArgs";
/// `COR_E_TYPELOAD`.
pub const TYPE_LOAD: HResult = HResult(0x8013_1522);
/// A fault of the hardware in a walk is a result on these (contract §2.3).
const GUARDED: Generations = all_with!(|it| matches!(it.walk_fault(), WalkFault::Unexpected));
const GIVES_UP: Generations = all_with!(|it| it.refuses_to_wait());
/// Modules of the simulation are never unloaded.
const UNLOADED: Known = read("IsBeingUnloaded, in methods of modules");

/// The failures, by method. Each has a place in its method at which it may happen: all checks of arguments and of the
/// caller come before.
const ROWS: [Row; 21] = [
    row(WALK, HResult::UNSAFE, read("DoStackSnapshot: the hijack lock, IsInForbidSuspendRegion")),
    row(
        WALK,
        HResult::UNMANAGED_CONTEXT,
        read("DoStackSnapshot: UnwindHasStarted, fSeedIsManaged"),
    ),
    on(GIVES_UP, row(WALK, HResult::ASYNCHRONOUS_UNSAFE, read("IsContextInManagedCode"))),
    row(WALK, HResult::FAIL, read("ProfilerStackWalkFramesWrapper: SWA_FAILED")),
    later(row(WALK, HResult::FAIL, read("ProfilerStackWalkFramesWrapper: SWA_FAILED"))),
    later(row(WALK, HResult::ABORTED, Known::Documented("the profiling team's blog (G51)"))),
    on(GUARDED, later(row(WALK, HResult::UNEXPECTED, read("DoStackSnapshotHelper: PAL_EXCEPT")))),
    row("EnumModules", HResult::OUT_OF_MEMORY, read("EnumModules")),
    row("EnumThreads", HResult::OUT_OF_MEMORY, read("EnumThreads")),
    row(
        "EventPipeAddProviderToSession",
        HResult::OUT_OF_MEMORY,
        Known::Assumed("the list of the session's providers grows"),
    ),
    row(
        "EventPipeCreateProvider",
        HResult::FAIL,
        Known::Assumed("as EventPipeStartSession: a provider that cannot be made"),
    ),
    row(
        "EventPipeStartSession",
        HResult::FAIL,
        Known::Assumed(
            "eventpipe/ep.c, enable, has EP_MAX_NUMBER_OF_SESSIONS of all tools; what the method then returns was not read",
        ),
    ),
    row(
        "ForceGC",
        HResult::OUT_OF_MEMORY,
        Known::Assumed("as SetupThreadForReJIT, which makes a Thread object"),
    ),
    row(LOAD, TYPE_LOAD, Known::Assumed("a file that is missing")),
    row(LOAD, HResult::OUT_OF_MEMORY, Known::Assumed("a type that is loaded allocates")),
    row("GetHandleFromThread", HResult::INVALID_ARGUMENT, read("GetHandleFromThread")),
    row("GetModuleInfo", HResult::DATA_INCOMPLETE, UNLOADED),
    row("GetModuleInfo2", HResult::DATA_INCOMPLETE, UNLOADED),
    row("GetModuleMetaData", HResult::DATA_INCOMPLETE, UNLOADED),
    row(
        "RequestProfilerDetach",
        HResult::OUT_OF_MEMORY,
        read("profdetach.cpp at 05e6426a, RequestProfilerDetach: s_profilerDetachInfos.Push"),
    ),
    row(
        "SuspendRuntime",
        HResult::SUSPENSION_IN_PROGRESS,
        read("SuspendRuntime: GetSuspensionThread"),
    ),
];

/// A set of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallFaults(u32);

impl CallFaults {
    /// All failures.
    pub const ALL: Self = Self((1 << ROWS.len()) - 1);

    /// Returns the failures for which a condition holds.
    fn with(holds: impl Fn(&Row) -> bool) -> Self {
        let bits = (0..).zip(&ROWS).map(|(place, row)| u32::from(holds(row)) << place);
        Self(bits.fold(0, |set, bit| set | bit))
    }

    /// Returns the failures that a call of a method may have on a runtime.
    pub fn of(method: &str, generation: Generation) -> Self {
        Self::with(|(fault, on, _)| fault.method == method && on.contains(generation))
    }

    /// Returns the failures that words name, separated by commas: `all`, a method, or a method and a result,
    /// `EnumThreads=E_OUTOFMEMORY`.
    ///
    /// # Errors
    /// Returns the words that say what may be named instead.
    pub fn from_words(words: &str) -> Result<Self, String> {
        words.split(',').try_fold(Self::default(), |all, word| Ok(all.or(Self::from_word(word)?)))
    }

    fn from_word(word: &str) -> Result<Self, String> {
        if word == "all" {
            return Ok(Self::ALL);
        }
        let (method, result) = match word.split_once('=') {
            Some((method, result)) => (method, Some(result)),
            None => (word, None),
        };
        let of_method = Self::with(|(fault, ..)| fault.method == method);
        if of_method.is_empty() {
            let mut methods: Vec<_> = ROWS.iter().map(|(fault, ..)| fault.method).collect();
            methods.dedup();
            return Err(format!(
                "no failure of {method} is known; it may be all, {}",
                methods.join(", ")
            ));
        }
        let Some(result) = result else { return Ok(of_method) };
        let named = Self::with(|(fault, ..)| fault.result.to_string() == result).both(of_method);
        if named.is_empty() {
            let mut results: Vec<_> =
                of_method.iter().map(|fault| fault.result.to_string()).collect();
            results.dedup();
            return Err(format!(
                "{method} is not known to fail with {result}, but with {}",
                results.join(", ")
            ));
        }
        Ok(named)
    }

    /// Returns the set as a number for a process of the same build.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of a number of [`bits`](Self::bits).
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the failures that are in both sets.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the failures that are in one of the sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the failures in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = CallFault> {
        let rows = (0..).zip(&ROWS).filter(move |(place, _)| self.0 >> place & 1 != 0);
        rows.map(|(_, (fault, ..))| *fault)
    }

    /// Returns the failure with this result after this number of frames, if the set has it.
    pub fn find(self, result: HResult, frames: u32) -> Option<CallFault> {
        self.iter().find(|fault| (fault.result, fault.frames) == (result, frames))
    }
}

/// The set of one failure.
impl From<CallFault> for CallFaults {
    fn from(fault: CallFault) -> Self {
        Self::with(|(other, ..)| *other == fault)
    }
}

/// Formats the shortest words that name the failures.
impl fmt::Display for CallFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        let whole = |method: &str| Self::with(|(fault, ..)| fault.method == method);
        let word = |fault: CallFault| match whole(fault.method) {
            whole if whole.both(*self) == whole => fault.method.to_owned(),
            _ => fault.to_string(),
        };
        let mut words: Vec<_> = self.iter().map(word).collect();
        words.dedup();
        f.write_str(&words.join(","))
    }
}

/// Formats `EnumThreads=E_OUTOFMEMORY`.
impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.method, self.result)
    }
}

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Returns the failure that the search has chosen for the call of a method, of those that are `possible`.
    pub(super) fn fault(
        &self,
        method: &str,
        possible: impl Fn(CallFault) -> bool,
    ) -> Option<CallFault> {
        let profiler = self.profiler?;
        let can = CallFaults::with(|(fault, on, _)| {
            fault.method == method && on.contains(self.runtime.generation) && possible(*fault)
        });
        if can.is_empty() { None } else { profiler.fails(self.runtime, self.os, can) }
    }

    /// Lets the call of a method fail, if the search has chosen that.
    ///
    /// # Errors
    /// Returns the chosen result.
    pub fn may_fail(&self, method: &str) -> Result<(), Outcome> {
        match self.fault(method, |_| true) {
            Some(fault) => Err(Outcome::Returned(fault.result)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_method_and_result() {
        for (fault, on, _) in ROWS {
            let named = CallFaults::from_words(&fault.to_string()).unwrap();
            assert!(named.find(fault.result, fault.frames).is_some(), "{fault}");
            assert!(!on.is_empty() && fault.result.is_failure(), "{fault}");
        }
        assert_eq!(CallFaults::from_words("all"), Ok(CallFaults::ALL));
        assert!(ROWS.is_sorted_by_key(|(fault, ..)| (fault.method != WALK, fault.method)));
        for words in ["all", "DoStackSnapshot=E_FAIL,EnumThreads", "DoStackSnapshot"] {
            assert_eq!(CallFaults::from_words(words).unwrap().to_string(), words);
        }
        let walks = CallFaults::of(WALK, Generation::Net8Unix);
        assert!(walks.find(HResult::UNEXPECTED, 1).is_none(), "a fault kills the process there");
        assert!(
            CallFaults::of(WALK, Generation::Net8Windows).find(HResult::UNEXPECTED, 1).is_some()
        );
        let error = CallFaults::from_words("EnumThreads=E_FAIL").unwrap_err();
        assert_eq!(error, "EnumThreads is not known to fail with E_FAIL, but with E_OUTOFMEMORY");
        assert!(
            CallFaults::from_words("ResumeRuntime")
                .unwrap_err()
                .contains("EnumModules, EnumThreads")
        );
    }
}
