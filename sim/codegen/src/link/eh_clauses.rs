//! EH clauses with addresses: the content of the CLR's exception tables.

use super::super::guarded::HandlerKind;
use super::super::lower::GuardClause;
use super::super::program::FunctionIndex;
use super::LinkedProgram;
use super::place::Encoded;
use core::cmp::Reverse;

/// A protected range of code and its handler.
///
/// A guarded statement has one `PlacedEhClause` for each of its EH clauses and for each run of code
/// that the statement protects: its body, cold parts of the body, and the handlers of guarded
/// statements inside (the CLR's tables duplicate an EH clause for the handlers that it encloses). A
/// filter is protected only by guarded statements inside the filter: an exception that leaves a
/// filter ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedEhClause {
    /// Function that contains the guarded statement.
    pub function: FunctionIndex,
    /// Kind of the handler.
    pub kind: HandlerKind,
    /// First byte of the protected range (VA).
    pub begin: u64,
    /// End of the protected range, exclusive (VA). A call may be the last instruction of the range,
    /// so a frame that has called is looked up at its return address − 1.
    pub end: u64,
    /// First byte of the handler's funclet (VA).
    pub handler: u64,
    /// First byte of the filter's funclet (VA).
    pub filter: Option<u64>,
    /// Address at which execution resumes after a catch (VA), which the handler's funclet returns.
    /// The address is in the function or funclet that contains the guarded body, and execution
    /// resumes with the frame of that function or funclet.
    pub resume: Option<u64>,
    /// Number of guarded statements around the guarded statement.
    pub depth: u32,
    /// The range is not the guarded body, but a separate part of it, or a funclet.
    pub apart: bool,
    /// Index of the guarded statement among those of its image or heap.
    pub statement: u32,
    /// Index of the EH clause in that statement.
    pub number: u32,
}

impl PlacedEhClause {
    /// Returns true if the clause handles exceptions thrown by the instruction that has a byte at
    /// `address` (VA).
    pub const fn protects(&self, address: u64) -> bool {
        self.begin <= address && address < self.end
    }

    /// Returns the sort key for the order of the search.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (self.function, Reverse(self.depth), self.begin, self.number)
    }
}

impl LinkedProgram {
    /// Returns the EH clauses that protect the instruction that has a byte at `address` (VA), in
    /// the order of the search. For a frame that has called, pass a byte of the call: the return
    /// address − 1.
    pub fn clauses_at(&self, address: u64) -> impl Iterator<Item = &PlacedEhClause> {
        self.clauses.iter().filter(move |clause| clause.protects(address))
    }
}

/// A run of instructions that a guarded statement protects.
struct Run {
    guard: u32,
    begin: u32,
    end: u32,
}

impl Encoded {
    /// Adds the EH clauses of the unit's guarded statements.
    pub(super) fn place_clauses(&self, clauses: &mut Vec<PlacedEhClause>) {
        let mut met = vec![false; self.lowered.guards.len()];
        for run in self.runs() {
            let Some(guard) = self.lowered.guards.get(run.guard as usize) else { continue };
            // The body comes before its separate parts, unless all of it is separate.
            let apart =
                met.get_mut(run.guard as usize).is_some_and(|met| core::mem::replace(met, true));
            for (number, clause) in (0..).zip(&guard.clauses) {
                let &GuardClause { kind, handler, filter, resume } = clause;
                let address = |label| Some(self.address(self.lowered.stream.index_of(label)?));
                clauses.push(PlacedEhClause {
                    function: guard.function,
                    kind,
                    begin: self.address(run.begin),
                    end: self.kind.base() + u64::from(self.end_rva(run.end)),
                    handler: address(handler).unwrap_or(0),
                    filter: filter.and_then(address),
                    resume: address(resume).filter(|_| kind.catches()),
                    depth: guard.depth,
                    apart,
                    statement: run.guard,
                    number,
                });
            }
        }
    }

    /// Returns the runs of instructions that each guarded statement protects. No run crosses the
    /// end of a part.
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let notes = &self.lowered.stream.notes;
        for part in &self.lowered.parts {
            // The open guards with the first instruction of each run, outermost first.
            let mut open: Vec<(u32, u32)> = Vec::new();
            let mut last = None;
            for index in part.begin..=part.end {
                let inside = index < part.end;
                let note = notes.get(index as usize).filter(|_| inside);
                let innermost = note.and_then(|note| note.guard);
                if innermost == last {
                    continue;
                }
                last = innermost;
                let chain = self.protecting(innermost);
                let same = open.iter().zip(&chain).take_while(|(one, other)| one.0 == **other);
                let kept = same.count();
                let closed = open.drain(kept..).rev();
                runs.extend(closed.map(|(guard, begin)| Run { guard, begin, end: index }));
                open.extend(chain.iter().skip(kept).map(|guard| (*guard, index)));
            }
        }
        runs
    }

    /// Returns a guarded statement and those around it, outermost first.
    fn protecting(&self, innermost: Option<u32>) -> Vec<u32> {
        let outer = |guard: &u32| self.lowered.guards.get(*guard as usize)?.outer;
        let mut chain: Vec<u32> = core::iter::successors(innermost, outer).collect();
        chain.reverse();
        chain
    }
}
