//! A thread of a program that has reached a stop, as a place for calls.

use crate::model::MixedFrameKind;
use crate::model::{SeedSource, SnapshotCaller};
use crate::run::shadow_frame::UnlabelledFrame;
use crate::run::stopped_thread::Site;
use clr_codegen::{SERVICE_SIZE, SERVICES, Service};
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime};
use clr_unwind::Registers;
use clr_walker::profiling::{FunctionId as MethodId, ThreadId};
use clr_world::stubs::Identity;
use clr_world::{Activation, World};
use std::collections::BTreeMap;

/// A thread of a program that has reached a stop.
pub(crate) struct Stopped<'w, 'b> {
    pub world: &'w World<'b>,
    pub thread: usize,
    /// For each thread, whether it was in cooperative mode before the call.
    pub cooperative: &'w [bool],
    /// Registers of the first managed activation of threads at their previous stops.
    pub stale: &'w BTreeMap<usize, Registers>,
    /// One thread unknown to the runtime, and one known to it.
    pub walkers: [OsThreadId; 2],
}

impl<'b> Stopped<'_, 'b> {
    pub(crate) fn runtime(&self) -> &Runtime<'b> {
        self.world.as_synced()
    }
}

impl Site for Stopped<'_, '_> {
    fn generation(&self) -> Generation {
        self.runtime().generation
    }

    fn stopped(&self) -> usize {
        self.thread
    }

    fn numbered(&self, number: u32) -> usize {
        number as usize
    }

    fn with_id(&self, id: ThreadId) -> Option<usize> {
        let mut threads = 0..self.world.thread_count();
        threads.find(|thread| self.world.object(*thread) == Some(id))
    }

    fn id_of(&self, thread: usize) -> ThreadId {
        self.world.object(thread).unwrap_or_default()
    }

    fn is_cooperative(&self, thread: usize) -> bool {
        self.cooperative.get(thread).copied().unwrap_or_default()
    }

    fn os(&self, caller: SnapshotCaller) -> OsThreadId {
        match (self.caller(caller), caller) {
            (Some(thread), _) => self.world.os(thread).unwrap_or_default(),
            (None, SnapshotCaller::NativeWalker) => self.walkers[0],
            (None, _) => self.walkers[1],
        }
    }

    fn registers_of(&self, thread: usize, source: &SeedSource) -> Option<Registers> {
        match source {
            SeedSource::Function(name) => {
                let activations = self.world.activations(thread);
                let functions = &self.world.expanded().program.functions;
                let first = activations.iter().find(|activation| {
                    let function = activation.function.and_then(|id| functions.get(id.index()));
                    function.is_some_and(|function| function.name == *name)
                })?;
                Some(first.registers)
            }
            SeedSource::Leaf => Some(self.world.activations(thread).first()?.registers),
            SeedSource::TopManaged => self.world.top_managed(thread),
            SeedSource::Stale => self.stale.get(&thread).copied(),
            SeedSource::Bytes(_) => None,
        }
    }

    fn address_of(&self, label: &str) -> Option<u64> {
        let (name, offset) = label.rsplit_once("+0x").unwrap_or((label, "0"));
        let mut functions = self.world.expanded().program.functions.iter();
        let index = functions.position(|function| function.name == name)?;
        let entry = self.world.linked().entries.get(index)?;
        Some(entry + u64::from_str_radix(offset, 16).ok()?)
    }

    fn label_of(&self, ip: u64) -> String {
        label_of(self.runtime(), ip)
    }

    fn name_of(&self, id: MethodId) -> Option<String> {
        let (_, method) = self.runtime().code.method(id)?;
        Some(method.name.clone())
    }

    fn frames(&self) -> Vec<UnlabelledFrame> {
        let identities = &self.world.expanded().identities;
        let activations = self.world.activations(self.thread).into_iter();
        let frame = |activation: Activation| {
            let identity = activation.function.and_then(|id| identities.get(id.index()));
            let kind = match identity {
                Some(Identity::Method(kind)) => UnlabelledFrame::kind_of(*kind),
                Some(Identity::Stub(_)) => MixedFrameKind::Hidden,
                Some(Identity::Native) | None => MixedFrameKind::Native,
            };
            let Activation { registers, position, .. } = activation;
            UnlabelledFrame { kind, ip: registers.rip, sp: registers.rsp(), position }
        };
        activations.map(frame).collect()
    }

    fn true_registers(&self, thread: usize, ip: u64, rsp: u64) -> Option<Registers> {
        let activations = self.world.activations(thread);
        let mut registers = activations.iter().map(|activation| activation.registers);
        registers.find(|registers| registers.rip == ip && registers.rsp() == rsp)
    }
}

/// Returns the label of an address, or the address as a number.
fn label_of(runtime: &Runtime<'_>, ip: u64) -> String {
    if let Some(managed) = runtime.code.find(ip) {
        let offset = ip.wrapping_sub(managed.code.start);
        return format!("{}+{offset:#x}", managed.method.name);
    }
    if let Some(function) = runtime.native.function(ip) {
        return format!("{}+{:#x}", function.name, ip - function.start);
    }
    // An address that the world serves in place of code of the runtime or of the profiler.
    let served = ip.wrapping_sub(SERVICES);
    let service = u32::try_from(served / SERVICE_SIZE).ok().and_then(Service::from_number);
    match service {
        Some(service) => format!("{service:?}+{:#x}", served % SERVICE_SIZE),
        None => format!("{ip:#x}"),
    }
}
