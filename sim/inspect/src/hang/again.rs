//! A second dump of a process: what did not move.

use super::{Circle, Diagnosis, Doubt, Edge, Evidence};
use crate::error::InspectError;
use clr_dump::{StoppedProcess, Thread};
use clr_unwind::Gpr;

/// Values of the auxiliary vector that differ from one process to the next (elf.h): AT_BASE, AT_ENTRY, AT_RANDOM, AT_SYSINFO_EHDR.
const ADDRESSES: [u64; 4] = [7, 9, 25, 33];
/// Bytes of code, and of stack, within which a thread goes round in one loop.
const LOOP: u64 = 0x1000;

impl Diagnosis {
    /// Compares the diagnosis of `process` with that of an `earlier` dump of the same process. A circle with a doubtful wait stays only if
    /// the earlier dump has it, too, and its threads have not moved; others are in [`moved`](Self::moved). A thread that runs in
    /// cooperative mode in the same loop is no more in doubt.
    ///
    /// # Errors
    /// [`InspectError::OtherProcess`] if the dumps are of different processes.
    pub fn compare<P, Q>(
        mut self,
        process: &P,
        earlier: &Self,
        earlier_process: &Q,
    ) -> Result<Self, InspectError>
    where
        P: StoppedProcess + ?Sized,
        Q: StoppedProcess + ?Sized,
    {
        if !is_same(process, earlier_process) {
            return Err(InspectError::OtherProcess);
        }
        let stays = |edge: &Edge| {
            let threads = process.thread(edge.from).zip(earlier_process.thread(edge.from));
            let was = earlier.edges.iter().find(|was| (was.from, was.to) == (edge.from, edge.to));
            threads.zip(was).is_some_and(|((now, before), was)| has_stayed(edge, was, now, before))
        };
        let (circles, moved) = self
            .circles
            .into_iter()
            .partition(|circle| circle.is_proved() || circle.edges.iter().all(stays));
        (self.circles, self.moved) = (circles, moved);
        for edge in self.circles.iter_mut().flat_map(|Circle { edges, .. }| edges) {
            if edge.doubt == Some(Doubt::Moment) {
                edge.doubt = None;
            }
        }
        self.unknown.retain(|unknown| !unknown.is_owner() || earlier.unknown.contains(unknown));
        Ok(self)
    }
}

/// Returns true if a wait is the same as before.
fn has_stayed(edge: &Edge, was: &Edge, now: &Thread, before: &Thread) -> bool {
    let near = |now: u64, before: u64| now.abs_diff(before) < LOOP;
    match (edge.evidence, was.evidence) {
        // What suspends may look again and again whether the other one has stopped.
        (Evidence::CooperativeMode { thread }, Evidence::CooperativeMode { thread: was }) => {
            thread == was
        }
        (Evidence::Runs { address }, Evidence::Runs { address: was }) => {
            near(address, was) && near(now.registers.rsp(), before.registers.rsp())
        }
        (evidence, was) => {
            let same = |register| now.registers.get(register) == before.registers.get(register);
            let is_still = now.registers.rip == before.registers.rip
                && now.system_call == before.system_call
                && Gpr::ALL.into_iter().all(same);
            evidence == was && is_still
        }
    }
}

/// Returns true if two dumps are of the same process: by the addresses that the kernel drew for it, and by a thread at least.
fn is_same<P, Q>(one: &P, other: &Q) -> bool
where
    P: StoppedProcess + ?Sized,
    Q: StoppedProcess + ?Sized,
{
    let addresses = ADDRESSES.map(|key| (one.auxiliary(key), other.auxiliary(key)));
    addresses.iter().all(|(one, other)| one == other)
        && one.threads().iter().any(|thread| other.thread(thread.id).is_some())
}
