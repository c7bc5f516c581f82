//! Calls of a profiler, and its mistakes.

use crate::coverage::{CallKind, Coverage, CoveredCall};
use clr_runtime::{Outcome, RuleViolation};
use clr_scenario::Demands;
use clr_walker::profiling::HResult;
use core::fmt;
use std::collections::BTreeMap;
use thiserror::Error;

/// The interface of a dispenser of metadata.
pub(crate) const DISPENSER: &str = "IMetaDataDispenserEx";
/// The name of the object of a module's metadata, and the number of its interfaces.
pub(crate) const METADATA: &str = "IMetaDataImport2";
pub(crate) const METADATA_INTERFACES: usize = 10;

/// Something that a profiler did wrong, or that ended the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Finding {
    /// A method of an object was called after its last reference had been released. In a CLR the
    /// object does not exist any more.
    #[error("{method} was called on object {object}, which had been released")]
    UseAfterRelease {
        /// The method.
        method: &'static str,
        /// Number of the object.
        object: u32,
    },
    /// More references of an object were released than counted.
    #[error("object {object} was released more often than it was referenced")]
    OverRelease {
        /// Number of the object.
        object: u32,
    },
    /// References to an object were left when the session was closed.
    #[error("{references} references to object {object}, of {interface}, are left")]
    Leak {
        /// Number of the object.
        object: u32,
        /// Interface of the object.
        interface: &'static str,
        /// Number of references.
        references: u32,
    },
    /// A method was called on a thread that is not the session's.
    #[error("{method} was called on another thread than that of the session")]
    WrongThread {
        /// The method.
        method: &'static str,
    },
    /// A method was called that the runtime's interfaces do not have: there QueryInterface refuses
    /// the interface, and behind the methods that exist is other memory.
    #[error("{method} is a method of ICorProfilerInfo{interface}, which the runtime does not have")]
    NoMethod {
        /// The method.
        method: &'static str,
        /// Number of the interface that has it.
        interface: u8,
    },
    /// An id was passed that the runtime has not given: a CLR reads memory there.
    #[error(
        "{method} was called with {id:#x}, which is no id of the process: a CLR reads memory there"
    )]
    UnknownId {
        /// The method.
        method: &'static str,
        /// The number.
        id: u64,
    },
    /// NULL was passed where a CLR writes or reads without a check.
    #[error("{method} was called with NULL as {argument}: a CLR accesses it")]
    NullPointer {
        /// The method.
        method: &'static str,
        /// The argument.
        argument: &'static str,
    },
    /// The seed is smaller than what the runtime reads of one.
    #[error("the seed has {given:#x} bytes, and the runtime reads its whole CONTEXT")]
    SmallSeed {
        /// `contextSize` of the call.
        given: u32,
    },
    /// The process has ended in a call, or the call never returns.
    #[error("{method}: {outcome}")]
    Ended {
        /// The method.
        method: &'static str,
        /// Outcome of the call.
        outcome: Outcome,
    },
    /// A documented rule for profilers was violated.
    #[error(transparent)]
    Rule(#[from] RuleViolation),
    /// The profiler refused to be loaded or attached.
    #[error("Initialize returned {0}")]
    Refused(HResult),
    /// Bytes behind a buffer of the runtime were changed.
    #[error("{callback} wrote behind the {size:#x} bytes of its {buffer}: a CLR has others there")]
    WroteBehind {
        /// The callback that got the buffer.
        callback: &'static str,
        /// The argument.
        buffer: &'static str,
        /// Size of the buffer in bytes.
        size: u32,
    },
    /// A buffer of the text does not hold what the text expects after a call of an export.
    #[error("after {export} {buffer} holds {found:#x}{}", expected(*.is, *.not))]
    Content {
        /// The export.
        export: &'static str,
        /// The buffer.
        buffer: &'static str,
        /// The number that the text expects.
        is: Option<u64>,
        /// The number that the text excludes.
        not: Option<u64>,
        /// The number that the buffer holds.
        found: u64,
    },
    /// A hook of a method that is left changed the return value's registers.
    #[error("{hook} changed rax or xmm0, which hold the method's return value")]
    ChangedReturnValue {
        /// The hook.
        hook: &'static str,
    },
    /// The profiler has started threads. They run as the system lets them, and what they ask the runtime
    /// is refused.
    #[error(
        "the profiler started a thread in {during}: clrsim host --schedules N executes interleavings of its threads"
    )]
    StartedThreads {
        /// The callback, or the step of loading.
        during: &'static str,
    },
}

/// Says what a text expects of a buffer.
fn expected(is: Option<u64>, not: Option<u64>) -> String {
    let is = is.map(|number| format!(": the text expects {number:#x}"));
    let not = not.map(|number| format!(": the text expects anything but {number:#x}"));
    is.or(not).unwrap_or_default()
}

impl Finding {
    /// Returns a short name of the kind of finding.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::UseAfterRelease { .. } => "use-after-release",
            Self::OverRelease { .. } => "over-release",
            Self::Leak { .. } => "leak",
            Self::WrongThread { .. } => "wrong-thread",
            Self::UnknownId { .. } => "unknown-id",
            Self::NoMethod { .. } => "no-method",
            Self::NullPointer { .. } => "null-pointer",
            Self::SmallSeed { .. } => "small-seed",
            Self::Ended { .. } => "process-ended",
            Self::Rule(_) => "rule",
            Self::Refused(_) => "refused",
            Self::WroteBehind { .. } => "wrote-behind",
            Self::Content { .. } => "content",
            Self::ChangedReturnValue { .. } => "changed-return-value",
            Self::StartedThreads { .. } => "started-threads",
        }
    }
}

/// The calls of a profiler in a session, and its mistakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    coverage: Coverage,
    may_walk: bool,
    not_loaded: Option<String>,
    not_simulated: BTreeMap<&'static str, u32>,
    not_raised: BTreeMap<&'static str, u32>,
    findings: Vec<Finding>,
}

impl Report {
    /// Counts a call that begins.
    pub(crate) fn begins(&mut self, call: CoveredCall) {
        self.coverage.begins(call);
    }

    /// Counts the result of a call that has begun.
    pub(crate) fn ends(&mut self, call: CoveredCall, result: HResult) {
        self.coverage.ends(call, result);
    }

    /// Notes why the profiler is not loaded; `None` if it is.
    #[doc(hidden)]
    pub fn not_loaded(&mut self, why: Option<String>) {
        self.not_loaded = why;
    }

    /// Notes that the profiler has asked for the right to walk stacks.
    pub(crate) const fn may_walk(&mut self) {
        self.may_walk = true;
    }

    #[doc(hidden)]
    pub fn not_simulated(&mut self, method: &'static str) {
        *self.not_simulated.entry(method).or_default() += 1;
    }

    pub(crate) fn not_raised(&mut self, callback: &'static str) {
        *self.not_raised.entry(callback).or_default() += 1;
    }

    /// Adds a finding, once. Returns true if it is new.
    pub(crate) fn find(&mut self, finding: Finding) -> bool {
        let is_new = !self.findings.contains(&finding);
        if is_new {
            self.findings.push(finding);
        }
        is_new
    }

    /// Returns the number of calls of a method.
    pub fn calls_of(&self, method: &str) -> u32 {
        self.calls().get(method).copied().unwrap_or_default()
    }

    /// Returns the calls between the profiler and the runtime.
    pub const fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Returns how often the session passes each point of a text's demands on coverage. `name` returns the name of a
    /// thread.
    pub fn points<'n>(&self, demands: &Demands<'_>, name: &dyn Fn(u32) -> &'n str) -> Vec<u32> {
        self.coverage.points(demands, name)
    }

    /// Returns the reason why the profiler is not loaded, if it is not.
    pub fn why_not_loaded(&self) -> Option<&str> {
        self.not_loaded.as_deref()
    }

    /// Returns true if the profiler has asked for the right to walk stacks (`COR_PRF_ENABLE_STACK_SNAPSHOT`).
    pub const fn asked_to_walk(&self) -> bool {
        self.may_walk
    }

    /// Returns the methods that were called and are not simulated, with the numbers of their calls.
    pub const fn calls_not_simulated(&self) -> &BTreeMap<&'static str, u32> {
        &self.not_simulated
    }

    /// Returns the numbers of calls of each method.
    fn calls(&self) -> BTreeMap<&'static str, u32> {
        let mut calls = BTreeMap::new();
        for (call, count) in self.coverage.iter().filter(|(call, _)| call.kind == CallKind::Method)
        {
            *calls.entry(call.name).or_default() += count;
        }
        calls
    }

    /// Returns true if the end of the process excuses a leak: no runtime but CoreCLR 3.1 and .NET Framework has the profiler
    /// release what it keeps. Metadata may have a reference for each of its interfaces, a dispenser may be kept; and each of the `busy` threads, which
    /// are in the profiler's code, may hold an enumerator. More are lost: the longer the process, the more.
    pub fn excuses(&self, leak: &Finding, busy: usize) -> bool {
        let Finding::Leak { interface, references, .. } = leak else { return false };
        if *interface == METADATA {
            return *references as usize <= METADATA_INTERFACES;
        }
        let is_same = |other: &&Finding| matches!(other, Finding::Leak { interface: of, .. } if of == interface);
        let kept = if *interface == DISPENSER { 1 } else { busy };
        self.findings.iter().filter(is_same).count() <= kept
    }

    /// Returns what was wrong, in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// Prints the findings, then the calls that are not simulated, then all calls with their numbers.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "found: {finding}")?;
        }
        let counts = [
            ("not simulated", &self.not_simulated),
            ("not raised", &self.not_raised),
            ("called", &self.calls()),
        ];
        for (what, counts) in counts {
            for (name, count) in counts {
                writeln!(f, "{what}: {name} ({count})")?;
            }
        }
        Ok(())
    }
}
