//! Calls on a stack placed by hand.

use crate::PlacedStack;
use crate::model::MixedFrameKind;
use crate::model::{SeedSource, SnapshotCall, SnapshotCaller, SnapshotSeed};
use crate::run::explained::SnapshotRecord;
use crate::run::shadow_frame::UnlabelledFrame;
use crate::run::stopped_thread::Site;
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime};
use clr_unwind::{Position, Registers};
use clr_walker::profiling::{FunctionId, ThreadId};
use clr_world::synthetic::{
    CodeLocation, MANAGED_WALKER, NATIVE_WALKER, SELF, SyntheticActivation, SyntheticError,
    SyntheticProcess,
};

impl PlacedStack {
    /// Makes the calls on one generation.
    pub(crate) fn snapshots_on<R: SnapshotRecord>(
        &self,
        generation: Generation,
    ) -> Result<Vec<R>, SyntheticError> {
        let process = self.synthetic_thread(generation).build()?;
        let snapshots = self.snapshots.iter().enumerate();
        let calls = snapshots.filter(|(_, call)| call.applies_to(generation));
        let record = |(snapshot, call): (usize, &SnapshotCall)| {
            let compare = |found| call.compare(None, snapshot, generation, found);
            R::make(call, &process, &call.process(&process), compare)
        };
        Ok(calls.map(record).collect())
    }
}

impl Site for SyntheticProcess {
    fn generation(&self) -> Generation {
        self.synthetic_thread().generation
    }

    fn stopped(&self) -> usize {
        0
    }

    fn numbered(&self, _: u32) -> usize {
        self.stopped()
    }

    fn with_id(&self, id: ThreadId) -> Option<usize> {
        (id == self.thread()).then_some(self.stopped())
    }

    fn id_of(&self, _: usize) -> ThreadId {
        self.thread()
    }

    fn is_cooperative(&self, _: usize) -> bool {
        self.synthetic_thread().cooperative
    }

    fn os(&self, caller: SnapshotCaller) -> OsThreadId {
        match caller {
            SnapshotCaller::Own | SnapshotCaller::Thread(_) => SELF,
            SnapshotCaller::NativeWalker => NATIVE_WALKER,
            SnapshotCaller::ManagedWalker => MANAGED_WALKER,
        }
    }

    fn registers_of(&self, _: usize, source: &SeedSource) -> Option<Registers> {
        match source {
            SeedSource::Function(function) => Some(self.seed(function)?.registers),
            SeedSource::Leaf => self.registers(0),
            SeedSource::TopManaged => {
                let mut activations = self.synthetic_thread().activations.iter();
                self.registers(
                    activations.position(|activation| activation.place != CodeLocation::Native)?,
                )
            }
            SeedSource::Stale | SeedSource::Bytes(_) => None,
        }
    }

    fn address_of(&self, label: &str) -> Option<u64> {
        self.address(label)
    }

    fn label_of(&self, ip: u64) -> String {
        self.label(ip)
    }

    fn name_of(&self, id: FunctionId) -> Option<String> {
        self.name(id).map(str::to_owned)
    }

    fn frames(&self) -> Vec<UnlabelledFrame> {
        let activations = self.synthetic_thread().activations.iter().enumerate();
        let frame = |(index, activation): (usize, &SyntheticActivation)| {
            let registers = self.registers(index)?;
            let kind = match activation.place {
                CodeLocation::Native => MixedFrameKind::Native,
                CodeLocation::Heap | CodeLocation::ReadyToRun => {
                    UnlabelledFrame::kind_of(activation.kind)
                }
            };
            let position = if index == 0 { Position::Interrupted } else { Position::ReturnAddress };
            Some(UnlabelledFrame { kind, ip: registers.rip, sp: registers.rsp(), position })
        };
        activations.filter_map(frame).collect()
    }

    fn true_registers(&self, _: usize, ip: u64, rsp: u64) -> Option<Registers> {
        let activations = (0..self.synthetic_thread().activations.len())
            .filter_map(|activation| self.registers(activation));
        activations.into_iter().find(|activation| activation.rip == ip && activation.rsp() == rsp)
    }
}

impl SnapshotSeed {
    /// Returns the bytes of the seed on a stack placed by hand, as many as are readable; `None` if
    /// the source of the seed is not on the stack.
    #[must_use]
    pub fn bytes(&self, set: &SyntheticProcess) -> Option<Vec<u8>> {
        self.bytes_at(set, set.stopped())
    }
}

impl SnapshotCall {
    /// Creates a process for the call.
    #[must_use]
    pub fn process<'s>(&self, set: &'s SyntheticProcess) -> Runtime<'s> {
        let runtime = set.runtime();
        self.suspend(set, &runtime);
        runtime
    }

    /// Makes the call on a new process.
    #[must_use]
    pub fn make(&self, set: &SyntheticProcess) -> super::SnapshotResult {
        self.make_at(set, &self.process(set))
    }

    /// Makes the call on a process.
    #[must_use]
    pub fn make_on(&self, set: &SyntheticProcess, runtime: &Runtime<'_>) -> super::SnapshotResult {
        self.make_at(set, runtime)
    }
}
