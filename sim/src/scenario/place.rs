//! Making the calls of a stack placed by hand.

use super::Scenario;
use super::found::{ContextRules, FoundNested, FoundShot, FoundSnapshot, SnapshotDifference};
use super::snapshot::{
    SEED_FLAGS, SEED_RAX, SEED_SIZE, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed, SnapshotThread,
};
use crate::generation::Generation;
use crate::profiling::{Call, Context, HResult};
use crate::runtime::frame::layout::Convention;
use crate::runtime::{OsThreadId, Runtime, Suspension};
use crate::stage::{MANAGED_WALKER, NATIVE_WALKER, Place, SELF, Set, Shot, Stage, StageError};
use clr_walker::profiling::{SnapshotCallback, SnapshotFlags, ThreadId};
use clr_walker::registers::{Gpr, Registers};

/// Offset of ContextFlags in a CONTEXT, in bytes.
const FLAGS: usize = 0x30;
/// Offset of XStateFeaturesMask behind the CONTEXT of Windows, in bytes.
const FEATURES: usize = 0x4D0;

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
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

impl Scenario {
    /// Makes the calls of a stack placed by hand, on one generation. A call that is not for it has no
    /// report.
    ///
    /// # Errors
    /// [`StageError`]: the stack does not fit together. That of a text that was read does on all
    /// generations that something is expected on.
    pub fn run_on(&self, generation: Generation) -> Result<Vec<SnapshotReport>, StageError> {
        let Some(stack) = &self.stack else { return Ok(Vec::new()) };
        let set = stack.stage(generation).set_up()?;
        let snapshots = stack.snapshots.iter().enumerate();
        let made = snapshots.filter(|(_, call)| call.is_made_on(generation));
        Ok(made.map(|(snapshot, call)| call.report(snapshot, &set)).collect())
    }
}

impl SnapshotCaller {
    /// The thread of a stack placed by hand.
    pub(super) const fn os(self) -> OsThreadId {
        match self {
            Self::Own | Self::Thread(_) => SELF,
            Self::NativeWalker => NATIVE_WALKER,
            Self::ManagedWalker => MANAGED_WALKER,
        }
    }
}

impl SnapshotThread {
    fn id(self, set: &Set) -> ThreadId {
        match self {
            Self::Own | Self::Thread(_) => set.thread(),
            Self::Null => ThreadId(0),
            Self::Value(value) => ThreadId(value),
        }
    }
}

impl SnapshotSeed {
    /// Its bytes on a stack, as many as can be read; `None` if the stack has not what it is made
    /// from.
    #[must_use]
    pub fn bytes(&self, set: &Set) -> Option<Vec<u8>> {
        let mut bytes = vec![0; SEED_SIZE as usize];
        let of_registers = |mut registers: Registers| {
            registers.set(Gpr::Rax, SEED_RAX);
            Context { registers, flags: SEED_FLAGS }.to_bytes()
        };
        let context = match &self.from {
            SeedSource::Function(function) => Some(of_registers(set.seed(function)?.registers)),
            SeedSource::Leaf => Some(of_registers(set.registers(0)?)),
            SeedSource::TopManaged => Some(of_registers(set.registers(top_managed(set.stage())?)?)),
            SeedSource::Bytes(byte) => {
                bytes.fill(*byte);
                None
            }
            SeedSource::Stale => return None,
        };
        if let Some(context) = context {
            bytes.get_mut(..context.len())?.copy_from_slice(&context);
        }
        let mut registers = Registers::from_context(&bytes).ok()?;
        match &self.rip {
            None => {}
            Some(SeedAddress::Address(address)) => registers.rip = *address,
            Some(SeedAddress::Label(label)) => registers.rip = set.address(label)?,
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

/// The first row in managed code.
fn top_managed(stage: &Stage) -> Option<usize> {
    stage.rows.iter().position(|row| row.place != Place::Native)
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
    /// A process for the call.
    #[must_use]
    pub fn process<'s>(&self, set: &'s Set) -> Runtime<'s> {
        let runtime = set.runtime();
        if self.suspended {
            runtime.change_process(|process| {
                process.suspension = Suspension::Suspended(self.by.os());
                process.suspended_by_profiler = true;
                process.profiler_suspensions = 1;
            });
        }
        runtime
    }

    /// Makes the call on a new process.
    #[must_use]
    pub fn make(&self, set: &Set) -> FoundSnapshot {
        self.make_on(set, &self.process(set))
    }

    /// Makes the call on a process.
    #[must_use]
    pub fn make_on(&self, set: &Set, runtime: &Runtime<'_>) -> FoundSnapshot {
        let seed = self.seed.as_ref().and_then(|seed| seed.bytes(set));
        let thread = self.thread.id(set);
        let call = Call { thread, flags: self.flags, seed: seed.as_deref(), ..set.call() };
        let mut nested = vec![FoundNested::default(); self.nested.len()];
        let mut shots = Vec::new();
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            shots.push(found_shot(
                set,
                Shot {
                    function: frame.function,
                    ip: frame.ip,
                    context_size: frame.context.len() as u32,
                    context: Context::from_bytes(frame.context),
                    label: set.label(frame.ip),
                },
            ));
            self.call_within(set, runtime, &mut nested);
            match self.stop_at {
                Some(last) if shots.len() as u64 >= u64::from(last.callback) => last.returns,
                _ => HResult::OK,
            }
        };
        let callback = (!self.null_callback).then_some(callback);
        let own = runtime.on(self.by.os());
        let outcome = match self.in_callback {
            Some(kind) => own.in_callback(kind, |own| own.do_stack_snapshot(&call, callback)),
            None => own.do_stack_snapshot(&call, callback),
        };
        let rules = self.rules(set, seed.as_deref());
        FoundSnapshot { shots, outcome, nested, rules }
    }

    fn call_within(&self, set: &Set, runtime: &Runtime<'_>, nested: &mut [FoundNested]) {
        for (call, found) in self.nested.iter().zip(nested) {
            let (thread, flags) = (call.thread.id(set), SnapshotFlags::REGISTER_CONTEXT);
            let callbacks = &mut found.callbacks;
            let outcome = runtime.on(call.by.os()).do_stack_snapshot(
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
    fn rules(&self, set: &Set, seed: Option<&[u8]>) -> ContextRules {
        let stage = set.stage();
        let made_from = self.seed.as_ref().filter(|_| stage.cooperative);
        let registers = made_from
            .filter(|seed| !matches!(seed.from, SeedSource::Bytes(_)))
            .and(seed)
            .and_then(|seed| Registers::from_context(seed).ok());
        ContextRules {
            wanted: self.flags.wants_context(),
            size: Some(context_size(stage.generation)),
            flags: Some(made_from.map_or(0, SnapshotSeed::context_flags)),
            own_flags: own_flags(stage.generation),
            start: Some(registers.unwrap_or_default()),
            nonvolatile: Convention::of(stage.generation).callee_saved,
        }
    }

    fn report(&self, snapshot: usize, set: &Set) -> SnapshotReport {
        let found = self.make(set);
        let expected = self.expected_on(set.stage().generation);
        let differences = expected.map(|(_, expected)| expected.differences(&found));
        SnapshotReport {
            snapshot,
            expected: expected.map(|(index, _)| index),
            found,
            differences: differences.unwrap_or_default(),
        }
    }
}

fn found_shot(set: &Set, shot: Shot) -> FoundShot {
    let rsp = shot.context.map(|context| context.registers.rsp());
    let rows = (0..set.stage().rows.len()).filter_map(|row| set.registers(row));
    let mut rows = rows.filter(|row| row.rip == shot.ip && Some(row.rsp()) == rsp);
    let function = shot.function.and_then(|id| set.name(id)).map(str::to_owned);
    FoundShot { truth: rows.next(), function, shot }
}
