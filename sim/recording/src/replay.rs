//! Replay of recorded walks, and comparison with the recorded results.

use super::names::NativeModules;
use super::state::{CALLER, registers};
use super::stops::stops;
use super::synthetic_native::{Leaf, StackEnds};
use super::{
    CallbackLine, PolicyLine, ReachedFrame, RecordedCode, RecordedMemory, RecordedThread,
    Recording, RecordingLoadError, SeedOrigin, SyntheticNative, TARGET, WalkLine,
};
use clr_runtime::explain::Event;
use clr_runtime::profiling::{HResult, SimulatedThread, SnapshotRequest};
use clr_runtime::{Context, FrameIdentities, Outcome, Runtime, Suspension};
use clr_unwind::Registers;
use clr_walker::profiling::{
    FunctionId, SnapshotCallback, SnapshotFlags, SnapshotFrame, TargetThread, ThreadId,
};

/// The result of a replayed walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkVerdict {
    /// The walk is as recorded.
    Same,
    /// The walk differs from the recording.
    Different(WalkDifference),
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkDifference {
    /// The result of the call.
    Outcome(Outcome),
    /// A callback.
    Callback {
        /// Index of the callback.
        index: u32,
        /// Arguments of the replayed callback; `None` if there were fewer callbacks than recorded.
        found: Option<Box<RecordedCallback>>,
    },
    /// The number of callbacks, which exceeds the recorded number.
    Count(u32),
    /// The nested call that a callback made.
    Nested {
        /// Result of the nested call.
        outcome: Outcome,
        /// Number of callbacks of the nested call.
        callbacks: u32,
    },
    /// The walk read memory that was not recorded.
    Memory {
        /// Address (VA).
        address: u64,
    },
    /// The walk cannot be loaded.
    Load(RecordingLoadError),
}

/// The arguments of a StackSnapshotCallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCallback {
    /// `funcId`; `None` for a marker.
    pub function: Option<FunctionId>,
    /// `ip` (VA).
    pub ip: u64,
    /// True if `frameInfo` is not null.
    pub frame_info: bool,
    /// `contextSize`.
    pub context_size: u32,
    /// `context`.
    pub context: Option<Context>,
}

impl RecordedCallback {
    fn new(frame: &SnapshotFrame<'_>) -> Self {
        Self {
            function: frame.function,
            ip: frame.ip,
            frame_info: frame.frame_info.handle() != 0,
            context_size: frame.context.len() as u32,
            context: Context::from_bytes(frame.context),
        }
    }
}

/// A recording loaded into a runtime, in which its walks can be replayed.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordingReplay<'r> {
    recording: &'r Recording,
    runtime: Runtime<'r, RecordedMemory>,
    identities: FrameIdentities,
    modules: NativeModules<'r>,
    notes_reads: bool,
}

impl<'r> RecordingReplay<'r> {
    /// Loads the code of a recording.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError`] if the pieces of code contradict each other.
    pub fn new(
        recording: &'r Recording,
        code: &'r RecordedCode,
    ) -> Result<Self, RecordingLoadError> {
        let generation = recording.generation;
        let mut runtime = Runtime::new(generation, RecordedMemory::default());
        runtime.code = code.manager()?.on(generation);
        Ok(Self {
            recording,
            runtime,
            identities: FrameIdentities::of(generation),
            modules: NativeModules::new(recording),
            notes_reads: false,
        })
    }

    /// Returns the runtime in the state after the last walk.
    pub const fn runtime(&self) -> &Runtime<'r, RecordedMemory> {
        &self.runtime
    }

    /// Makes the memory of each later walk record the reads of the call.
    pub const fn note_reads(&mut self) {
        self.notes_reads = true;
    }

    /// Loads the state in which a walk was made, and returns the thread argument.
    fn load(&mut self, walk: &WalkLine) -> Result<ThreadId, RecordingLoadError> {
        self.runtime.identities.clone_from(&self.identities);
        let Runtime { code, identities, .. } = &mut self.runtime;
        let state = walk.load(self.recording.generation, identities, code)?;
        if self.notes_reads {
            state.memory.note_reads();
        }
        self.runtime.memory.replace(state.memory);
        self.runtime.threads.replace(state.threads);
        self.runtime.process.set(state.process);
        Ok(state.thread)
    }

    /// Loads the state of a walk for another walker of the thread. The runtime is as it was before
    /// the profiler suspended it, if it did.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError`] if the state contradicts itself.
    pub fn prepare(&mut self, walk: &WalkLine) -> Result<(), RecordingLoadError> {
        self.load(walk)?;
        if self.runtime.process.get().suspended_by_profiler {
            self.runtime.change_process(|process| {
                process.suspension = Suspension::None;
                process.suspended_by_profiler = false;
            });
        }
        Ok(())
    }

    /// Returns the managed frames that the runtime reaches in a walk, leaf first, even if the
    /// recorded callback ended the walk earlier. Frames without a callback are included.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError`] if the walk's state contradicts itself.
    pub fn stops(&mut self, walk: &WalkLine) -> Result<Vec<ReachedFrame>, RecordingLoadError> {
        let generation = self.recording.generation;
        let thread = self.load(walk)?;
        let seed = walk.call.seed.as_ref().map(|seed| seed.bytes(generation));
        let flags = SnapshotFlags::REGISTER_CONTEXT;
        let call = SnapshotRequest {
            thread,
            flags,
            seed: seed.as_deref(),
            context_size: 0,
            client_data: 0,
        };
        self.runtime.log.listen();
        self.runtime.on(CALLER).do_stack_snapshot(&call, Some(&mut |_| HResult::OK));
        let events = self.runtime.log.take();
        let seeded = events.iter().any(|event| matches!(event, Event::SeedManaged { .. }));
        let start = match &walk.call.seed {
            _ if !seeded => None,
            Some(seed) => Some((seed.registers(), seed.origin() == SeedOrigin::Context)),
            None => walk.target_registers().map(|registers| (registers, true)),
        };
        Ok(stops(&self.runtime, start.as_ref(), &events))
    }

    /// Returns the target of the walk that was loaded last, at `registers` if they are known, on a
    /// stack whose first function returns to `root` (VA).
    pub fn target<'s, 'p>(
        &'s self,
        walk: &WalkLine,
        registers: Option<Registers>,
        root: u64,
        native: &'p SyntheticNative,
    ) -> Option<RecordedThread<'s, 'r, 'p>> {
        let os = if walk.relation == "self" { CALLER } else { TARGET };
        let inner = SimulatedThread::new(&self.runtime, os, root)?;
        Some(RecordedThread { runtime: &self.runtime, inner, registers, native })
    }

    /// Returns the first address that the runtime has read since the state was set up and that was
    /// not recorded. The result is meaningless then.
    pub fn missing(&self) -> Option<u64> {
        self.runtime.memory.borrow().missing()
    }

    /// Synthesises native code for the target of the walk that was loaded last, which has reached
    /// `stops`.
    pub fn synthetic_native(
        &self,
        walk: &WalkLine,
        stops: &[ReachedFrame],
        root: u64,
    ) -> SyntheticNative {
        let nothing = SyntheticNative::default();
        let Some(target) = self.target(walk, None, root, &nothing) else { return nothing };
        let stack = StackEnds {
            root,
            base: target.stack().base,
            home: if self.recording.generation.is_unix() { 0 } else { 32 },
        };
        let memory = &*self.runtime.memory.borrow();
        let registers = walk.target_registers();
        let leaf = match &registers {
            Some(leaf) if self.runtime.code.find(leaf.rip).is_some() => Leaf::Managed,
            Some(leaf) => Leaf::Native(leaf),
            None if walk.is_called_by_runtime() || walk.unwound_to().is_some() => Leaf::Recorder,
            None => Leaf::Unknown,
        };
        let code = &self.runtime.code;
        SyntheticNative::new(stops, leaf, walk.unwound_to().as_ref(), stack, code, memory)
    }

    /// Replays a walk, and reports every callback to `observe`.
    pub fn walk(
        &mut self,
        walk: &WalkLine,
        mut observe: impl FnMut(&RecordedCallback),
    ) -> WalkVerdict {
        let generation = self.recording.generation;
        let thread = match self.load(walk) {
            Ok(thread) => thread,
            Err(error) => return WalkVerdict::Different(WalkDifference::Load(error)),
        };
        let seed = walk.call.seed.as_ref().map(|seed| seed.bytes(generation));
        let call = SnapshotRequest {
            thread,
            flags: walk.flags(),
            seed: seed.as_deref(),
            context_size: walk.call.context_size,
            client_data: 0,
        };
        let caller = self.runtime.on(CALLER);
        let policy = walk.call.policy.unwrap_or_default();
        let mut count = 0;
        let mut difference = None;
        let mut nested = None;
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            let index = count;
            count += 1;
            let found = RecordedCallback::new(frame);
            observe(&found);
            let recorded = walk.result.callbacks.get(index as usize);
            // Callbacks after the recorded ones are only counted.
            let missing = walk.result.callback_count.is_some();
            let same = recorded.map_or(missing, |recorded| self.is_same(&found, recorded));
            if !same && difference.is_none() {
                difference = Some(WalkDifference::Callback { index, found: Some(Box::new(found)) });
            }
            if policy.calls_at(index) {
                let mut callbacks = 0;
                let count: &mut SnapshotCallback<'_> = &mut |_| {
                    callbacks += 1;
                    HResult::OK
                };
                let outcome = caller.do_stack_snapshot(&call, Some(count));
                nested = Some((outcome, callbacks));
            }
            policy.returns_at(index)
        };
        let null = walk.call.callback.as_deref() == Some("null");
        let outcome = caller.do_stack_snapshot(&call, (!null).then_some(callback));
        if let Some(address) = self.runtime.memory.borrow().missing() {
            return WalkVerdict::Different(WalkDifference::Memory { address });
        }
        if let Some(difference) = difference {
            return WalkVerdict::Different(difference);
        }
        if !is_outcome(outcome, walk) {
            return WalkVerdict::Different(WalkDifference::Outcome(outcome));
        }
        if let (Some((outcome, callbacks)), Some(recorded)) = (nested, self.recording.nested(walk))
            && (recorded.hr.is_some_and(|hr| outcome != HResult(hr.0 as u32).into())
                || recorded.callback_count.is_some_and(|count| callbacks != count))
        {
            return WalkVerdict::Different(WalkDifference::Nested { outcome, callbacks });
        }
        let expected = walk.result.callback_count.unwrap_or(walk.result.callbacks.len() as u32);
        if count < expected {
            return WalkVerdict::Different(WalkDifference::Callback { index: count, found: None });
        }
        if count > expected {
            WalkVerdict::Different(WalkDifference::Count(count))
        } else {
            WalkVerdict::Same
        }
    }

    fn is_same(&self, found: &RecordedCallback, recorded: &CallbackLine) -> bool {
        let context = match (&found.context, &recorded.registers) {
            (Some(found), Some(values)) => {
                let expected = registers(values);
                found.registers.gpr == expected.gpr
                    && found.registers.rip == expected.rip
                    && recorded.context_flags.is_none_or(|flags| u64::from(found.flags) == flags.0)
            }
            (_, None) => true,
            (None, Some(_)) => false,
        };
        let function = recorded.function.map(|id| {
            let function = self.recording.function(id);
            FunctionId(function.map_or(0, |function| function.function_id.0))
        });
        found.function == function
            && found.ip == recorded.ip.0
            && found.frame_info == recorded.frame_info
            && (found.function.is_some() || self.modules.is_named(found.ip, recorded))
            && found.context_size == recorded.context_size
            && context
    }
}

impl PolicyLine {
    /// Returns true if the callback with this index makes a nested call with the same arguments.
    fn calls_at(self, index: u32) -> bool {
        self.nested_at == Some(index) || self.nested && index == 0
    }

    /// Returns the result of the callback with this index.
    fn returns_at(self, index: u32) -> HResult {
        let stops = self.stop_at == Some(index);
        self.returns.filter(|_| stops).map_or(HResult::OK, |returns| HResult(returns.0 as u32))
    }
}

fn is_outcome(outcome: Outcome, walk: &WalkLine) -> bool {
    match (outcome, walk.result.hr, walk.result.killed.as_deref()) {
        (Outcome::Returned(HResult(found)), Some(recorded), _) => u64::from(found) == recorded.0,
        (Outcome::AccessViolation { .. }, None, Some("SIGSEGV")) => true,
        // The effect of an invalid id depends on memory that was not recorded.
        (Outcome::ProcessKilled { code }, None, Some(how)) => {
            how.ends_with(&format!("0x{code:08X}"))
                || walk.state.target.as_deref() == Some("invalid")
        }
        _ => false,
    }
}
