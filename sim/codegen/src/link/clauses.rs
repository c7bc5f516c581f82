//! Where exceptions are handled: what the CLR's exception tables say.

use super::super::guarded::HandlerKind;
use super::super::lower::GuardClause;
use super::super::program::FunctionId;
use super::LinkedProgram;
use super::place::Encoded;
use core::cmp::Reverse;

/// A range of code, and a handler of what is thrown in there.
///
/// A guarded statement has one for each of its clauses and for each run of code that it protects:
/// its body, cold parts of it, and the handlers of guarded statements inside, as the CLR's tables
/// repeat a clause for the handlers that it encloses. Nothing protects a filter but what stands in
/// it: what it throws ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedClause {
    /// The function.
    pub function: FunctionId,
    /// When the handler runs.
    pub kind: HandlerKind,
    /// The first byte of the protected range (VA).
    pub begin: u64,
    /// The byte behind its last (VA). A call may be the last instruction of the range, so a frame
    /// that has called is looked up at its return address − 1.
    pub end: u64,
    /// The first byte of the handler's funclet (VA).
    pub handler: u64,
    /// The first byte of the filter's funclet (VA).
    pub filter: Option<u64>,
    /// Where execution goes on behind a catch (VA): what the handler's funclet returns. It is in the
    /// function or the funclet that the guarded body is in, and goes on with that one's frame.
    pub resume: Option<u64>,
    /// How many guarded statements protect its guarded statement.
    pub depth: u32,
    /// The range is not the guarded body itself, but a part of it that lies apart, or a funclet.
    pub apart: bool,
    /// Its guarded statement, by its place among those of its image or heap.
    pub statement: u32,
    /// Its place among the clauses of that statement.
    pub number: u32,
}

impl PlacedClause {
    /// Whether it handles what is thrown by the instruction that has a byte at `address` (VA).
    #[must_use]
    pub const fn protects(&self, address: u64) -> bool {
        self.begin <= address && address < self.end
    }

    /// Its place in the order of the search.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (self.function, Reverse(self.depth), self.begin, self.number)
    }
}

impl LinkedProgram {
    /// The clauses that protect the instruction that has a byte at `address` (VA), in the order of
    /// the search. Of a frame that has called, this is a byte of the call: its return address − 1.
    pub fn clauses_at(&self, address: u64) -> impl Iterator<Item = &PlacedClause> {
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
    /// Adds the clauses of its guarded statements.
    pub(super) fn place_clauses(&self, clauses: &mut Vec<PlacedClause>) {
        let mut met = vec![false; self.lowered.guards.len()];
        for run in self.runs() {
            let Some(guard) = self.lowered.guards.get(run.guard as usize) else { continue };
            // The body stands before what lies apart, unless all of it does.
            let apart =
                met.get_mut(run.guard as usize).is_some_and(|met| core::mem::replace(met, true));
            for (number, clause) in (0..).zip(&guard.clauses) {
                let &GuardClause { kind, handler, filter, resume } = clause;
                let address = |label| Some(self.address(self.lowered.stream.index_of(label)?));
                clauses.push(PlacedClause {
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

    /// The runs of instructions that each guarded statement protects; none leaves a part.
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let notes = &self.lowered.stream.notes;
        for part in &self.lowered.parts {
            // Where those that protect the instruction began, the outermost first.
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

    /// A guarded statement and those that protect it, the outermost first.
    fn protecting(&self, innermost: Option<u32>) -> Vec<u32> {
        let outer = |guard: &u32| self.lowered.guards.get(*guard as usize)?.outer;
        let mut chain: Vec<u32> = core::iter::successors(innermost, outer).collect();
        chain.reverse();
        chain
    }
}
