//! Making the calls of a text, wherever they are made: on a stack placed by hand, or where a program
//! has stopped.

use super::found::{ContextRules, FoundNested, FoundShot, FoundSnapshot, SnapshotDifference};
use super::mixed::SiteRow;
use super::snapshot::{
    SEED_FLAGS, SEED_RAX, SEED_SIZE, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed, SnapshotThread,
};
use clr_runtime::Context;
use clr_runtime::frame::layout::Convention;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{Call, HResult};
use clr_runtime::{OsThreadId, Runtime, Suspension};
use clr_walker::profiling::{FunctionId, SnapshotCallback, SnapshotFlags, ThreadId};
use clr_walker::registers::{Gpr, Registers};
use clr_world::synthetic::Shot;

/// Offset of ContextFlags in a CONTEXT, in bytes.
const FLAGS: usize = 0x30;
/// Offset of XStateFeaturesMask behind the CONTEXT of Windows, in bytes.
const FEATURES: usize = 0x4D0;

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The place of the stop in [`Scenario::stops`](super::Scenario::stops); `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Its place among the snapshots.
    pub snapshot: usize,
    /// The place of the expectation that counts among the snapshot's.
    pub expected: Option<usize>,
    /// What was found.
    pub found: FoundSnapshot,
    /// What is not as expected.
    pub differences: Vec<SnapshotDifference>,
}

impl SnapshotReport {
    /// Whether all is as expected.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty()
    }
}

/// A thread that calls are made on, with what is known of its stack.
pub(super) trait Site {
    /// Which runtime it is.
    fn generation(&self) -> Generation;

    /// Whether the thread is in cooperative mode.
    fn is_cooperative(&self) -> bool;

    /// The thread that calls.
    fn os(&self, caller: SnapshotCaller) -> OsThreadId;

    /// The `thread` of a call.
    fn id(&self, thread: SnapshotThread) -> ThreadId;

    /// The registers that a seed is made from, if it is made from registers.
    fn registers_of(&self, source: &SeedSource) -> Option<Registers>;

    /// The address that a label stands for (VA).
    fn address_of(&self, label: &str) -> Option<u64>;

    /// The label of an address, or the number.
    fn label_of(&self, ip: u64) -> String;

    /// The name of a method.
    fn name_of(&self, id: FunctionId) -> Option<String>;

    /// The thread's activations, leaf first.
    fn rows(&self) -> Vec<SiteRow>;

    /// The registers of the activation with this ip and rsp.
    fn truth(&self, ip: u64, rsp: u64) -> Option<Registers>;
}

impl SnapshotSeed {
    /// Its bytes, as many as can be read; `None` if the thread has not what it is made from.
    pub(super) fn bytes_at(&self, site: &impl Site) -> Option<Vec<u8>> {
        let mut bytes = vec![0; SEED_SIZE as usize];
        if let SeedSource::Bytes(byte) = self.from {
            bytes.fill(byte);
        } else {
            let mut registers = site.registers_of(&self.from)?;
            registers.set(Gpr::Rax, SEED_RAX);
            let context = Context { registers, flags: SEED_FLAGS }.to_bytes();
            bytes.get_mut(..context.len())?.copy_from_slice(&context);
        }
        let mut registers = Registers::from_context(&bytes).ok()?;
        match &self.rip {
            None => {}
            Some(SeedAddress::Address(address)) => registers.rip = *address,
            Some(SeedAddress::Label(label)) => registers.rip = site.address_of(label)?,
        }
        for (register, value) in &self.registers {
            registers.set(*register, *value);
        }
        registers.write_context(&mut bytes).ok()?;
        if let Some(flags) = self.flags {
            bytes.get_mut(FLAGS..FLAGS + 4)?.copy_from_slice(&flags.to_le_bytes());
        }
        if self.features != 0 {
            bytes.get_mut(FEATURES..FEATURES + 8)?.copy_from_slice(&self.features.to_le_bytes());
        }
        bytes.truncate(self.cut.unwrap_or(SEED_SIZE) as usize);
        Some(bytes)
    }

    /// ContextFlags of the contexts of a walk that starts from it.
    fn context_flags(&self) -> u32 {
        match self.from {
            SeedSource::Bytes(_) => self.flags.unwrap_or_default(),
            _ => self.flags.unwrap_or(SEED_FLAGS),
        }
    }
}

/// sizeof(CONTEXT): .NET 9 and newer have room for AVX-512 on Unix (C-093).
const fn context_size(generation: Generation) -> u32 {
    match generation {
        Generation::Net9Unix | Generation::Net9UnixLegacyExceptions | Generation::Net10Unix => {
            0xC20
        }
        _ => 0x4D0,
    }
}

/// ContextFlags of the context that the runtime takes of a stopped thread: observed on CoreCLR 3.1
/// and .NET 10; Framework 2 asks for no more than `CONTEXT_FULL`.
const fn own_flags(generation: Generation) -> u32 {
    match generation {
        Generation::Framework2 => SEED_FLAGS,
        _ => 0xC010_000B,
    }
}

impl SnapshotCall {
    /// Lets the caller have called SuspendRuntime, if it has to.
    pub(super) fn suspend(&self, site: &impl Site, runtime: &Runtime<'_>) {
        if self.suspended {
            runtime.change_process(|process| {
                process.suspension = Suspension::Suspended(site.os(self.by));
                process.suspended_by_profiler = true;
                process.profiler_suspensions = 1;
            });
        }
    }

    /// Makes the call on a process.
    pub(super) fn make_at(&self, site: &impl Site, runtime: &Runtime<'_>) -> FoundSnapshot {
        let seed = self.seed.as_ref().and_then(|seed| seed.bytes_at(site));
        let thread = site.id(self.thread);
        let call = Call { thread, flags: self.flags, seed: seed.as_deref(), ..Call::default() };
        let mut nested = vec![FoundNested::default(); self.nested.len()];
        let mut shots = Vec::new();
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            shots.push(found_shot(
                site,
                Shot {
                    function: frame.function,
                    ip: frame.ip,
                    context_size: frame.context.len() as u32,
                    context: Context::from_bytes(frame.context),
                    label: site.label_of(frame.ip),
                },
            ));
            self.call_within(site, runtime, &mut nested);
            match self.stop_at {
                Some(last) if shots.len() as u64 >= u64::from(last.callback) => last.returns,
                _ => HResult::OK,
            }
        };
        let callback = (!self.null_callback).then_some(callback);
        let own = runtime.on(site.os(self.by));
        let outcome = match self.in_callback {
            Some(kind) => own.in_callback(kind, |own| own.do_stack_snapshot(&call, callback)),
            None => own.do_stack_snapshot(&call, callback),
        };
        let rules = self.rules(site, seed.as_deref());
        FoundSnapshot { shots, outcome, nested, rules }
    }

    fn call_within(&self, site: &impl Site, runtime: &Runtime<'_>, nested: &mut [FoundNested]) {
        for (call, found) in self.nested.iter().zip(nested) {
            let (thread, flags) = (site.id(call.thread), SnapshotFlags::REGISTER_CONTEXT);
            let callbacks = &mut found.callbacks;
            let outcome = runtime.on(site.os(call.by)).do_stack_snapshot(
                &Call { thread, flags, ..Call::default() },
                Some(&mut |_| {
                    *callbacks += 1;
                    HResult::OK
                }),
            );
            found.outcomes.push(outcome);
        }
    }

    /// What contexts are like. A walk starts from a seed only in cooperative mode (C-037); one that
    /// does not starts with zeros.
    fn rules(&self, site: &impl Site, seed: Option<&[u8]>) -> ContextRules {
        let generation = site.generation();
        let made_from = self.seed.as_ref().filter(|_| site.is_cooperative());
        let registers = made_from
            .filter(|seed| !matches!(seed.from, SeedSource::Bytes(_)))
            .and(seed)
            .and_then(|seed| Registers::from_context(seed).ok());
        // Another cooperative thread's walk starts from its own registers (C-043).
        let by_other = site.os(self.by) != site.os(SnapshotCaller::Own);
        let starts_from_own = self.seed.is_none() && by_other && site.is_cooperative();
        let own = starts_from_own.then(|| site.registers_of(&SeedSource::Leaf)).flatten();
        ContextRules {
            wanted: self.flags.wants_context(),
            size: Some(context_size(generation)),
            flags: Some(made_from.map_or(0, SnapshotSeed::context_flags)),
            own_flags: own_flags(generation),
            start: Some(registers.or(own).unwrap_or_default()),
            nonvolatile: Convention::of(generation).callee_saved,
        }
    }

    /// Holds what the call gave against what is expected.
    pub(super) fn compare(
        &self,
        stop: Option<usize>,
        snapshot: usize,
        generation: Generation,
        found: FoundSnapshot,
    ) -> SnapshotReport {
        let expected = self.expected_on(generation);
        let differences = expected.map(|(_, expected)| expected.differences(&found));
        SnapshotReport {
            stop,
            snapshot,
            expected: expected.map(|(index, _)| index),
            found,
            differences: differences.unwrap_or_default(),
        }
    }
}

fn found_shot(site: &impl Site, shot: Shot) -> FoundShot {
    let truth = shot.context.and_then(|context| site.truth(shot.ip, context.registers.rsp()));
    let function = shot.function.and_then(|id| site.name_of(id));
    FoundShot { shot, function, truth }
}
