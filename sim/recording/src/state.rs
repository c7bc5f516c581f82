//! Conversion of a recorded walk to the state of a runtime and a call.

use super::{FrameLine, Hex, RecordedMemory, RecordingLoadError, SeedLine, WalkLine};
use clr_runtime::frame::{FrameFields, FrameShape, FrameWriter, layout};
use clr_runtime::generation::Generation;
use clr_runtime::thread::THREAD_OBJECT_SIZE;
use clr_runtime::{
    CodeManager, Context, ContextSafety, ExceptionState, ExceptionTracker, FRAME_TOP,
    FrameIdentities, FrameKind, OsThreadId, Pass, Process, RunningFunclet, Suspension, Thread,
    ThreadFields, ThreadLife,
};
use clr_unwind::{Gpr, Memory, Registers};
use clr_walker::profiling::{EventMask, SnapshotFlags, ThreadId};

/// The calling thread of a replayed walk.
pub const CALLER: OsThreadId = OsThreadId(1);
/// The target of a walk, if it is not the calling thread.
pub const TARGET: OsThreadId = OsThreadId(2);
/// A thread that is not involved in the walk.
const STRANGER: OsThreadId = OsThreadId(3);

/// Default address of Thread objects (VA).
const OBJECTS: u64 = 0x5A5A_0000_0000;
/// Address of CONTEXTs that a recording does not place (VA).
const CONTEXTS: u64 = 0x5A5B_0000_0000;
/// Size in bytes of a stack of which only the base is known.
const DEFAULT_STACK: u64 = 8 << 20;
/// ContextFlags observed in a redirected thread's CONTEXT.
const REDIRECTED_FLAGS: u32 = 0xC010_005B;
/// Space for a CONTEXT in bytes.
const CONTEXT_ROOM: usize = 0x4D0;

/// Converts rax to r15, then rip.
pub(super) fn registers(values: &[Hex; 17]) -> Registers {
    let mut registers = Registers { rip: values[16].0, ..Registers::default() };
    for register in Gpr::ALL {
        registers.set(register, values[usize::from(register.number())].0);
    }
    registers
}

impl SeedLine {
    /// Returns the bytes of the seed, as many as are readable.
    pub(super) fn bytes(&self, generation: Generation) -> Vec<u8> {
        /// XStateFeaturesMask.
        const XSTATE_FEATURES: usize = 0x4D0;
        let flags = self.context_flags.0 as u32;
        let context = Context { registers: registers(&self.registers), flags };
        let mut bytes = context.to_bytes().to_vec();
        bytes.resize(generation.context_size() as usize, 0);
        if let Some(features) = self.xstate_features
            && let Some(mask) = bytes.get_mut(XSTATE_FEATURES..XSTATE_FEATURES + 8)
        {
            mask.copy_from_slice(&features.0.to_le_bytes());
        }
        bytes.truncate(self.readable.map_or(bytes.len(), |readable| readable as usize));
        bytes
    }
}

/// The state in which a walk is made.
pub(super) struct WalkState {
    pub process: Process,
    pub threads: Vec<Thread>,
    pub memory: RecordedMemory,
    /// Thread argument of the call.
    pub thread: ThreadId,
}

impl WalkLine {
    /// Returns true if the recorder did not see all of the state: a part was deduced from the
    /// situation and the result, so that the replay is not an independent test of that part.
    pub fn rests_on_inferred_state(&self) -> bool {
        !self.state.inferred.is_empty() || self.frames.iter().any(|frame| frame.returns_inferred)
    }

    fn process(&self) -> Process {
        let state = &self.state;
        let suspension = if state.runtime_suspending {
            Suspension::Suspending(STRANGER)
        } else if state.runtime_suspended_by_profiler {
            Suspension::Suspended(STRANGER)
        } else {
            Suspension::None
        };
        Process {
            started: state.ee_started.unwrap_or(true),
            event_mask: if state.snapshot_enabled.unwrap_or(true) {
                EventMask::ENABLE_STACK_SNAPSHOT
            } else {
                EventMask::default()
            },
            suspension,
            suspended_by_profiler: state.runtime_suspended_by_profiler,
            ..Process::default()
        }
    }

    /// Returns infoFlags.
    pub(super) fn flags(&self) -> SnapshotFlags {
        SnapshotFlags(self.call.flags.0 as u32)
    }

    /// Loads the state in which the walk was made.
    pub(super) fn load(
        &self,
        generation: Generation,
        identities: &mut FrameIdentities,
        code: &CodeManager<'_>,
    ) -> Result<WalkState, RecordingLoadError> {
        let mut memory = RecordedMemory::new(self.stack.as_ref())?;
        let mut objects = OBJECTS;
        while memory.is_known(objects, 1) {
            objects = objects.wrapping_add(0x1_0000_0000);
        }
        let own = self.relation == "self";
        let target = ThreadId(objects);
        let caller = ThreadId(objects + THREAD_OBJECT_SIZE);
        let what = self.state.target.as_deref();
        let caller_object = match (own, self.walker.as_str()) {
            (true, _) if what == Some("none") => None,
            (true, _) => Some(target),
            (false, "managed") => Some(caller),
            (false, _) => None,
        };
        memory.insert(objects, &[0; 2 * THREAD_OBJECT_SIZE as usize])?;
        // The memory at an invalid id was not recorded: here it is zero.
        if what != Some("invalid") {
            self.fields(what == Some("dead")).write(&mut memory, target)?;
        }
        ThreadFields::default().write(&mut memory, caller)?;
        self.write_frames(generation, identities, code, &mut memory)?;
        let mut threads = vec![self.target(generation, target, what)];
        if own {
            threads[0].os = CALLER;
            threads[0].object = caller_object;
        } else {
            threads.push(Thread {
                os: CALLER,
                object: caller_object,
                handle: 1,
                ..Thread::default()
            });
        }
        let thread = match (own, self.call.thread.as_str()) {
            (_, "null") | (true, _) if what == Some("none") => ThreadId(0),
            (true, "null") => ThreadId(0),
            _ => target,
        };
        Ok(WalkState { process: self.process(), threads, memory, thread })
    }

    /// Returns the fields of the target's Thread object.
    fn fields(&self, dead: bool) -> ThreadFields {
        let stack = self.stack.as_ref().map_or((0, u64::MAX), |stack| {
            let limit = stack.limit.map_or(stack.base.0.wrapping_sub(DEFAULT_STACK), |at| at.0);
            (limit, stack.base.0)
        });
        ThreadFields {
            cooperative: self.state.mode.as_deref() == Some("coop"),
            top_frame: self.frames.first().map_or(FRAME_TOP, |frame| frame.at.0),
            hijack_locked: self.state.hijack_lock_held,
            forbid_suspend: (self.state.forbid_suspend && !self.has_lost_its_tracker()).into(),
            external_count: u32::from(!dead),
            stack,
            ..ThreadFields::default()
        }
    }

    fn target(&self, generation: Generation, object: ThreadId, what: Option<&str>) -> Thread {
        let flags = generation.own_context_flags();
        let current = self.leaf.as_ref().map(|leaf| Context { registers: registers(leaf), flags });
        Thread {
            os: TARGET,
            object: Some(object),
            life: if what == Some("dead") { ThreadLife::Dead } else { ThreadLife::Running },
            current: current.unwrap_or_default(),
            safety: if self.state.in_system_call {
                ContextSafety::InSystemCall
            } else {
                ContextSafety::Safe
            },
            handle: 1,
            exceptions: self.exceptions(),
            ..Thread::default()
        }
    }

    fn exceptions(&self) -> ExceptionState {
        let line = &self.state.exception;
        // Only the current exception hides unwound stack (C-086): the recorded regions are parts of
        // its one region, of which nothing but hidden frames was seen.
        let lower = line.unwound.iter().map(|(lower, _)| lower.0).min();
        let upper = line.unwound.iter().map(|(_, upper)| upper.0).max();
        let current = ExceptionTracker {
            pass: Pass::Second,
            entered_managed_code: !line.second_pass_native,
            unwound: lower.zip(upper),
            funclet: None,
        };
        let is_current = line.second_pass_native || current.unwound.is_some();
        let entered = ExceptionTracker { entered_managed_code: true, unwound: None, ..current };
        let funclets = line.funclets.iter().map(|funclet| ExceptionTracker {
            funclet: Some(RunningFunclet {
                caller_sp: funclet.caller_sp.0,
                parent_caller_sp: funclet.parent_caller_sp.map(|sp| sp.0),
            }),
            ..entered
        });
        let trackers = is_current.then_some(current).into_iter().chain(funclets).collect();
        ExceptionState { trackers, inconsistent: self.has_lost_its_tracker() }
    }

    /// Returns true if the walk was made in the moment in which the exception tracker is gone and the
    /// thread has not been resumed (C-050). Older recorders had no word for it and wrote `forbid_suspend`;
    /// but calls with seeds in native code got UNMANAGED_CTX there, and a forbid-suspend region would have
    /// been found before the seed is looked at.
    fn has_lost_its_tracker(&self) -> bool {
        let winds_up = ["callback:HandleDestroyed", "signal:coop-native"];
        let is_old = self.state.forbid_suspend && winds_up.contains(&self.situation.as_str());
        is_old || self.state.exception.tracker_gone
    }

    /// Writes the chain of Frames with its recorded order. The memory of many Frames was not
    /// recorded, and on Linux it was copied after the walk.
    fn write_frames(
        &self,
        generation: Generation,
        identities: &mut FrameIdentities,
        code: &CodeManager<'_>,
        memory: &mut RecordedMemory,
    ) -> Result<(), RecordingLoadError> {
        let nexts = self.frames.iter().skip(1).map(|frame| frame.at.0).chain([FRAME_TOP]);
        for (line, next) in self.frames.iter().zip(nexts) {
            let (at, kind) = (line.at.0, line.kind());
            if let Some(returns) = &line.returns {
                let fields = line.fields(returns, memory);
                let is_there = memory.is_known(fields.context_at, CONTEXT_ROOM as u64);
                if kind == FrameKind::RedirectedThread && !is_there {
                    memory.insert(fields.context_at, &[0; CONTEXT_ROOM])?;
                }
                FrameWriter { generation, identities, memory }.write(at, next, kind, &fields)?;
            }
            line.fill_context(memory)?;
            // A recorded vtable is the one of the recorded process.
            let recorded = memory.is_known(at, 8).then(|| memory.read_u64(at).ok()).flatten();
            let word = match recorded {
                Some(word) if identities.insert(word, kind) => word,
                _ => identities.word(kind).unwrap_or_else(|| {
                    let word = UNKNOWN_FRAMES + kind as u64;
                    identities.insert(word, kind);
                    word
                }),
            };
            for (offset, value) in [(0, word), (layout::NEXT, next)] {
                let address = at.wrapping_add(offset);
                if !memory.is_known(address, 8) || memory.read_u64(address) != Ok(value) {
                    memory.insert(address, &value.to_le_bytes())?;
                }
            }
            if kind == FrameKind::InlinedCall {
                leave_behind(at, generation, code, memory)?;
            }
        }
        Ok(())
    }
}

/// Makes an InlinedCallFrame inactive that is of a call from code that was not recorded, or was found where none is (.NET 10 on
/// Windows): the real walk went on, which it does not from unmanaged code (C-079). A Frame without recorded memory
/// was not followed.
fn leave_behind(
    at: u64,
    generation: Generation,
    code: &CodeManager<'_>,
    memory: &mut RecordedMemory,
) -> Result<(), RecordingLoadError> {
    let call = at.wrapping_add(generation.inlined_call_frame().return_address);
    let is_known = memory.is_known(call, 8);
    if !is_known || memory.read_u64(call).is_ok_and(|ip| code.find(ip).is_none()) {
        memory.insert(call, &0_u64.to_le_bytes())?;
    }
    Ok(())
}

/// First word of Frames whose kind the generation should not have.
const UNKNOWN_FRAMES: u64 = 0x7FF8_2FFF_0000;

impl FrameLine {
    /// Returns the kind of the Frame. A kind that the recorder could not determine has no target.
    fn kind(&self) -> FrameKind {
        match self.kind.as_str() {
            // This name means one of several kinds with one layout.
            "HelperMethodFrame_xOBJ" => FrameKind::HelperMethod1Obj,
            name => FrameKind::from_name(name).unwrap_or(FrameKind::DebuggerExit),
        }
    }

    /// Fills unknown vector registers in the CONTEXT of a Frame with 0. They were seldom recorded,
    /// and no walk depends on them.
    fn fill_context(&self, memory: &mut RecordedMemory) -> Result<(), RecordingLoadError> {
        let at = self.at.0;
        let context = match self.kind().shape() {
            FrameShape::Faulting => at.wrapping_add(layout::FAULTING_CONTEXT),
            FrameShape::Resumable if memory.is_known(at.wrapping_add(layout::REGS), 8) => {
                match memory.read_u64(at.wrapping_add(layout::REGS)) {
                    Ok(context) => context,
                    Err(_) => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        // Only if the rest of the CONTEXT is recorded.
        if !memory.is_known(context.wrapping_add(layout::CONTEXT_RIP), 8) {
            return Ok(());
        }
        for n in 0..20 {
            let at = context.wrapping_add(layout::CONTEXT_XMM6 + 8 * n);
            if !memory.is_known(at, 8) {
                memory.insert(at, &[0; 8])?;
            }
        }
        Ok(())
    }

    /// Returns the Frame's target where its own memory does not give it.
    fn fields(
        &self,
        returns: &std::collections::BTreeMap<String, Hex>,
        memory: &RecordedMemory,
    ) -> FrameFields {
        let value = |name: &str| returns.get(name).map_or(0, |value| value.0);
        let mut registers = Registers { rip: value("rip"), ..Registers::default() };
        for register in Gpr::ALL {
            registers.set(register, value(register.name()));
        }
        let field = |offset: u64| {
            let at = self.at.0.wrapping_add(offset);
            memory.is_known(at, 8).then(|| memory.read_u64(at).ok()).flatten()
        };
        FrameFields {
            method: field(layout::HELPER_METHOD).unwrap_or(0),
            registers,
            context_flags: returns
                .get("context_flags")
                .map_or(REDIRECTED_FLAGS, |flags| flags.0 as u32),
            context_at: field(layout::REGS).unwrap_or(CONTEXTS),
            lazy: None,
        }
    }
}
