//! Detection of the stops of a thread, instruction by instruction.

use crate::{Scenario, StopAt};
use clr_codegen::LinkedProgram;
use clr_codegen::execution::Execution;
use clr_codegen::shadow_stack::CallerState;
use clr_unwind::Position;

/// The stops that a thread has not yet reached.
#[derive(Clone, Debug)]
pub struct Stops {
    ahead: Vec<Ahead>,
    /// Innermost caller at the last instruction boundary, and the number of callers there.
    last: Option<(CallerState, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    stop: usize,
    at: StopAt,
    /// Address of the stop's instruction (VA), if it exists.
    address: Option<u64>,
    visits: u32,
}

impl Stops {
    /// Collects all stops of a thread.
    #[must_use]
    pub fn new(scenario: &Scenario, linked: &LinkedProgram, thread: u32) -> Self {
        let own = |(_, stop): &(usize, &crate::Stop)| stop.thread == thread;
        let ahead = scenario.stops.iter().enumerate().filter(own).map(|(index, stop)| {
            let address = match stop.at {
                StopAt::Instruction { function, index, .. } => {
                    linked.instruction_of(function, index)
                }
                // The others are reached only with a runtime.
                _ => None,
            };
            Ahead { stop: index, at: stop.at, address, visits: 0 }
        });
        Self { ahead: ahead.collect(), last: None }
    }

    /// Returns true if all stops are reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns the stops not yet reached, with the number of times that their instructions were
    /// about to be executed.
    pub fn ahead(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.ahead.iter().map(|ahead| (ahead.stop, ahead.visits))
    }

    /// Returns the stops that are reached at this instruction boundary. Must be called at each
    /// boundary, in order.
    pub fn reach(&mut self, run: &Execution<'_>) -> Vec<usize> {
        let rip = run.machine().cpu().rip();
        let executed = run.machine().executed();
        let callers = run.shadow_stack().callers();
        // An interrupt arrives between fetching and executing an instruction: returning is not a
        // new visit.
        let back = self.last.is_some_and(|(caller, depth)| {
            caller.position == Position::Interrupted
                && caller.from.is_none()
                && callers.len() + 1 == depth
                && caller.registers.rip == rip
        });
        self.last = callers.last().map(|caller| (*caller, callers.len()));
        self.take(|ahead| match ahead.at {
            StopAt::After(after) => executed >= after,
            StopAt::Instruction { visit, .. } => {
                let here = ahead.address == Some(rip) && !back;
                ahead.visits = ahead.visits.saturating_add(u32::from(here));
                here && ahead.visits == visit
            }
            StopAt::Runtime { .. }
            | StopAt::Wait { .. }
            | StopAt::Callback { .. }
            | StopAt::Hook(_)
            | StopAt::End => false,
        })
    }

    /// Returns the stops that are reached at the end of the program.
    pub fn reach_end(&mut self) -> Vec<usize> {
        self.take(|ahead| ahead.at == StopAt::End)
    }

    fn take(&mut self, mut is_reached: impl FnMut(&mut Ahead) -> bool) -> Vec<usize> {
        let mut reached = Vec::new();
        self.ahead.retain_mut(|ahead| {
            let now = is_reached(ahead);
            if now {
                reached.push(ahead.stop);
            }
            !now
        });
        reached
    }
}
