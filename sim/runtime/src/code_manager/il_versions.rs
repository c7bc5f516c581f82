//! Versions of the IL of methods, which profilers request with RequestReJIT.
//!
//! Recorded on 3.1.23, 8.0.34, 10.0.15 and 11.0.0: a request while the one before waits for its compilation is the same
//! version, ids are given out for the whole process, and a version is listed when it was compiled.

use clr_walker::profiling::{FunctionId, ReJitId};

/// ReJITID of the first request in a process (recorded).
const FIRST: u64 = 2;

/// The versions that were requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IlVersions {
    all: Vec<IlVersion>,
    changes: u64,
    /// The methods that the JIT has inlined others into, with these.
    inlinings: Vec<(FunctionId, FunctionId)>,
}

/// A version of a method's IL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct IlVersion {
    function: FunctionId,
    id: ReJitId,
    state: State,
}

/// A stage in the life of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The next call compiles it.
    Requested,
    /// Calls execute it.
    Compiled,
    /// Calls execute the method as it was.
    Reverted,
}

impl IlVersions {
    /// Returns the number of changes so far.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    fn last(&mut self, function: FunctionId) -> Option<&mut IlVersion> {
        self.all.iter_mut().rev().find(|version| version.function == function)
    }

    /// Notes that the JIT has inlined a method into another one.
    pub fn note_inlining(&mut self, caller: FunctionId, inlined: FunctionId) {
        if !self.inlinings.contains(&(caller, inlined)) {
            self.inlinings.push((caller, inlined));
        }
    }

    /// Notes that the profiler has refused to inline a method into another one.
    pub fn refuse_inlining(&mut self, caller: FunctionId, inlined: FunctionId) {
        self.inlinings.retain(|pair| *pair != (caller, inlined));
        self.changes += 1;
    }

    /// Returns true if a method is inlined into another one.
    pub fn is_inlined(&self, caller: FunctionId, inlined: FunctionId) -> bool {
        self.inlinings.contains(&(caller, inlined))
    }

    /// Returns the methods that a method was inlined into.
    pub fn inliners(&self, inlined: FunctionId) -> impl Iterator<Item = FunctionId> + '_ {
        self.inlinings.iter().filter(move |(_, one)| *one == inlined).map(|(caller, _)| *caller)
    }

    /// Requests a version, unless one waits for its compilation.
    pub fn request(&mut self, function: FunctionId) {
        if self.is_requested(function) {
            return;
        }
        let id = ReJitId(FIRST + self.all.len() as u64);
        self.all.push(IlVersion { function, id, state: State::Requested });
        self.changes += 1;
    }

    /// Returns to the IL that the method had before all requests.
    pub fn revert(&mut self, function: FunctionId) {
        if let Some(version) = self.last(function) {
            version.state = State::Reverted;
            self.changes += 1;
        }
    }

    /// Returns true if the next call of a method compiles a requested version.
    pub fn is_requested(&self, function: FunctionId) -> bool {
        let last = self.all.iter().rev().find(|version| version.function == function);
        last.is_some_and(|version| version.state == State::Requested)
    }

    /// Compiles the requested version of a method. Returns false if there is none.
    pub fn compile(&mut self, function: FunctionId) -> bool {
        let requested = self.last(function).filter(|version| version.state == State::Requested);
        let is_requested = requested.is_some();
        if let Some(version) = requested {
            version.state = State::Compiled;
            self.changes += 1;
        }
        is_requested
    }

    /// Returns the ids of the versions of a method that were compiled, the oldest first.
    pub fn compiled(&self, function: FunctionId) -> impl Iterator<Item = ReJitId> {
        let all = self.all.iter().filter(move |version| version.function == function);
        // That a version which was reverted before its compilation is not listed is assumed.
        all.filter(|version| version.state == State::Compiled).map(|version| version.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_requested_compiled_and_reverted() {
        let [one, other] = [1, 2].map(FunctionId);
        let mut versions = IlVersions::default();
        assert!(!versions.compile(one), "nothing was requested");
        versions.request(one);
        versions.request(one);
        versions.request(other);
        assert!(versions.is_requested(one) && versions.compiled(one).next().is_none());
        assert!(versions.compile(one) && !versions.compile(one), "once");
        assert_eq!(
            versions.compiled(one).collect::<Vec<_>>(),
            [ReJitId(2)],
            "two requests, one id"
        );
        assert!(versions.is_requested(other) && versions.compile(other));
        assert_eq!(versions.compiled(other).collect::<Vec<_>>(), [ReJitId(3)]);
        versions.request(one);
        versions.revert(one);
        assert!(!versions.is_requested(one) && !versions.compile(one));
        versions.request(one);
        assert!(versions.compile(one));
        assert_eq!(versions.compiled(one).collect::<Vec<_>>(), [ReJitId(2), ReJitId(5)]);
    }

    #[test]
    fn an_inliner_is_noted_once() {
        let [one, other, inlined] = [1, 2, 3].map(FunctionId);
        let mut versions = IlVersions::default();
        versions.note_inlining(one, inlined);
        versions.note_inlining(other, inlined);
        versions.note_inlining(one, inlined);
        versions.note_inlining(inlined, one);
        assert_eq!(versions.inliners(inlined).collect::<Vec<_>>(), [one, other]);
        assert_eq!(versions.changes(), 0);
    }
}
