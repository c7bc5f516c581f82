//! Execution of the calls of a text, on a stack placed by hand or at the stops of a program.

use crate::model::{
    SEED_FLAGS, SEED_RAX, SEED_SIZE, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed, SnapshotThread,
};
use crate::run::shadow_frame::UnlabelledFrame;
use crate::run::snapshot_result::{
    ContextRules, DecidingClauses, FoundFrameReport, FoundNested, SnapshotDifference,
    SnapshotResult,
};
use clr_runtime::Context;
use clr_runtime::frame::layout::FrameConvention;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{HResult, SnapshotRequest};
use clr_runtime::{OsThreadId, Runtime, Suspension};
use clr_unwind::{Gpr, Registers};
use clr_walker::profiling::{FunctionId, SnapshotCallback, SnapshotFlags, ThreadId};
use clr_world::synthetic::FrameReport;

/// Offset of ContextFlags in a CONTEXT, in bytes.
const FLAGS: usize = 0x30;
/// Offset of XStateFeaturesMask after the CONTEXT of Windows, in bytes.
const FEATURES: usize = 0x4D0;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotReport {
    /// Index of the stop in [`Scenario::stops`](crate::Scenario::stops); `None` for a stack placed
    /// by hand.
    pub stop: Option<usize>,
    /// Index of the call among the snapshots.
    pub snapshot: usize,
    /// Index of the relevant expectation among those of the snapshot.
    pub expected: Option<usize>,
    /// Result of the call.
    pub found: SnapshotResult,
    /// Differences from the expectation.
    pub differences: Vec<SnapshotDifference>,
}

impl SnapshotReport {
    /// Returns true if the result is as expected.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty()
    }
}

/// A process with the thread that calls are made on, and knowledge of all stacks. Threads are meant
/// by index.
pub(crate) trait Site {
    /// Returns the generation of the runtime.
    fn generation(&self) -> Generation;

    /// Returns the thread that is stopped, or that has the stack placed by hand.
    fn stopped(&self) -> usize;

    /// Returns the thread with a number in the text.
    fn numbered(&self, number: u32) -> usize;

    /// Returns the thread with a `ThreadID`.
    fn with_id(&self, id: ThreadId) -> Option<usize>;

    /// Returns a thread's `ThreadID`, which is 0 for a thread that the runtime does not know.
    fn id_of(&self, thread: usize) -> ThreadId;

    /// Returns true if a thread is in cooperative mode.
    fn is_cooperative(&self, thread: usize) -> bool;

    /// Returns the calling thread's number.
    fn os(&self, caller: SnapshotCaller) -> OsThreadId;

    /// Returns the registers of a thread that a seed is made from, if it is made from registers.
    fn registers_of(&self, thread: usize, source: &SeedSource) -> Option<Registers>;

    /// Returns the address of a label (VA).
    fn address_of(&self, label: &str) -> Option<u64>;

    /// Returns the label of an address, or the address as a number.
    fn label_of(&self, ip: u64) -> String;

    /// Returns the name of a method.
    fn name_of(&self, id: FunctionId) -> Option<String>;

    /// Returns the activations of the stopped thread, leaf first.
    fn frames(&self) -> Vec<UnlabelledFrame>;

    /// Returns the registers of a thread's activation with the given ip and rsp.
    fn true_registers(&self, thread: usize, ip: u64, rsp: u64) -> Option<Registers>;

    /// Returns the calling thread, if it has a stack that is known.
    fn caller(&self, caller: SnapshotCaller) -> Option<usize> {
        match caller {
            SnapshotCaller::Own => Some(self.stopped()),
            SnapshotCaller::Thread(number) => Some(self.numbered(number)),
            SnapshotCaller::NativeWalker | SnapshotCaller::ManagedWalker => None,
        }
    }

    /// Returns the thread that a call walks; `None` if its argument names none.
    fn walked(&self, call: &SnapshotCall) -> Option<usize> {
        match call.thread {
            SnapshotThread::Own => Some(self.stopped()),
            SnapshotThread::Thread(number) => Some(self.numbered(number)),
            SnapshotThread::Null => self.caller(call.by),
            SnapshotThread::Value(value) => self.with_id(ThreadId(value)),
        }
    }

    /// Returns the `thread` argument of a call.
    fn id(&self, thread: SnapshotThread) -> ThreadId {
        match thread {
            SnapshotThread::Own => self.id_of(self.stopped()),
            SnapshotThread::Thread(number) => self.id_of(self.numbered(number)),
            SnapshotThread::Null => ThreadId(0),
            SnapshotThread::Value(value) => ThreadId(value),
        }
    }
}

impl SnapshotSeed {
    /// Returns the bytes of a seed from a thread, as many as are readable; `None` if the thread does
    /// not have the source of the seed.
    pub(crate) fn bytes_at(&self, site: &impl Site, thread: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; SEED_SIZE as usize];
        if let SeedSource::Bytes(byte) = self.from {
            bytes.fill(byte);
        } else {
            let mut registers = site.registers_of(thread, &self.from)?;
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

    /// Returns the ContextFlags of contexts in a walk that starts from the seed.
    fn context_flags(&self) -> u32 {
        match self.from {
            SeedSource::Bytes(_) => self.flags.unwrap_or_default(),
            _ => self.flags.unwrap_or(SEED_FLAGS),
        }
    }
}

impl SnapshotCall {
    /// Marks the runtime as suspended by the caller, if the call requires it.
    pub(crate) fn suspend(&self, site: &impl Site, runtime: &Runtime<'_>) {
        if self.suspended {
            runtime.change_process(|process| {
                process.suspension = Suspension::Suspended(site.os(self.by));
                process.suspended_by_profiler = true;
                process.profiler_suspensions = 1;
            });
        }
    }

    /// Returns true if the walked thread has what the call's seed is made from, or there is no seed.
    pub(crate) fn has_its_seed(&self, site: &impl Site) -> bool {
        let source = site.walked(self).unwrap_or(site.stopped());
        self.seed.as_ref().is_none_or(|seed| seed.bytes_at(site, source).is_some())
    }

    /// Makes the call on a process.
    pub(crate) fn make_at(&self, site: &impl Site, runtime: &Runtime<'_>) -> SnapshotResult {
        let walked = site.walked(self);
        let source = walked.unwrap_or(site.stopped());
        let seed = self.seed.as_ref().and_then(|seed| seed.bytes_at(site, source));
        let thread = site.id(self.thread);
        let call = SnapshotRequest {
            thread,
            flags: self.flags,
            seed: seed.as_deref(),
            ..SnapshotRequest::default()
        };
        let mut nested = vec![FoundNested::default(); self.nested.len()];
        let mut frame_reports = Vec::new();
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            frame_reports.push(found_frame_report(
                (site, walked),
                FrameReport {
                    function: frame.function,
                    ip: frame.ip,
                    context_size: frame.context.len() as u32,
                    context: Context::from_bytes(frame.context),
                    label: site.label_of(frame.ip),
                },
            ));
            self.call_within(site, runtime, &mut nested);
            match self.stop_at {
                Some(last) if frame_reports.len() as u64 >= u64::from(last.callback) => {
                    last.returns
                }
                _ => HResult::OK,
            }
        };
        let callback = (!self.null_callback).then_some(callback);
        let own = runtime.on(site.os(self.by));
        let expected = self.expected_on(site.generation());
        let named = expected.map_or(&[][..], |(_, expected)| &expected.clauses);
        let (outcome, decided_by) =
            DecidingClauses::of(runtime, named, || match self.in_callback {
                Some(kind) => own.in_callback(kind, |own| own.do_stack_snapshot(&call, callback)),
                None => own.do_stack_snapshot(&call, callback),
            });
        let rules = self.rules(site, walked, seed.as_deref());
        SnapshotResult { frame_reports, outcome, nested, rules, decided_by }
    }

    fn call_within(&self, site: &impl Site, runtime: &Runtime<'_>, nested: &mut [FoundNested]) {
        for (call, found) in self.nested.iter().zip(nested) {
            let (thread, flags) = (site.id(call.thread), SnapshotFlags::REGISTER_CONTEXT);
            let callbacks = &mut found.callbacks;
            let outcome = runtime.on(site.os(call.by)).do_stack_snapshot(
                &SnapshotRequest { thread, flags, ..SnapshotRequest::default() },
                Some(&mut |_| {
                    *callbacks += 1;
                    HResult::OK
                }),
            );
            found.outcomes.push(outcome);
        }
    }

    /// Returns the rules for the contexts. A walk starts from a seed only if the walked thread is in
    /// cooperative mode (C-037); otherwise it starts with zeros.
    fn rules(&self, site: &impl Site, walked: Option<usize>, seed: Option<&[u8]>) -> ContextRules {
        let generation = site.generation();
        let is_cooperative = walked.is_some_and(|walked| site.is_cooperative(walked));
        let made_from = self.seed.as_ref().filter(|_| is_cooperative);
        let registers = made_from
            .filter(|seed| !matches!(seed.from, SeedSource::Bytes(_)))
            .and(seed)
            .and_then(|seed| Registers::from_context(seed).ok());
        // A walk by another thread starts from the cooperative thread's own registers (C-043).
        let own = walked.filter(|_| self.seed.is_none() && is_cooperative);
        let own = own.filter(|walked| site.caller(self.by) != Some(*walked));
        let own = own.and_then(|walked| site.registers_of(walked, &SeedSource::Leaf));
        let own_flags = own.map_or(0, |_| generation.own_context_flags());
        ContextRules {
            wanted: self.flags.wants_context(),
            size: Some(generation.context_size()),
            flags: Some(made_from.map_or(own_flags, SnapshotSeed::context_flags)),
            own_flags: generation.own_context_flags(),
            start: Some(registers.or(own).unwrap_or_default()),
            nonvolatile: FrameConvention::of(generation).callee_saved,
        }
    }

    /// Compares the result of the call with the expectation.
    pub(crate) fn compare(
        &self,
        stop: Option<usize>,
        snapshot: usize,
        generation: Generation,
        found: SnapshotResult,
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

fn found_frame_report(
    (site, walked): (&impl Site, Option<usize>),
    frame_report: FrameReport,
) -> FoundFrameReport {
    let true_registers = frame_report.context.zip(walked).and_then(|(context, walked)| {
        site.true_registers(walked, frame_report.ip, context.registers.rsp())
    });
    let function = frame_report.function.and_then(|id| site.name_of(id));
    FoundFrameReport { frame_report, function, true_registers }
}
