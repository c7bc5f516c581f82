//! The managed frames that a replayed walk reaches, including those without a callback.

use super::state::registers;
use super::{RecordedMemory, SeedLine, WalkLine};
use clr_runtime::explain::Event;
use clr_runtime::frame::{FrameReader, FrameShape};
use clr_runtime::{Context, MethodKind, Runtime};
use clr_unwind::Registers;
use clr_walker::profiling::FunctionId;

/// A managed frame that a walk has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedFrame {
    /// Method of the frame.
    pub function: FunctionId,
    /// Kind of the method: only ordinary ones are ever reported.
    pub kind: MethodKind,
    /// Registers as the runtime has them.
    pub registers: Registers,
    /// The ip is an interrupted instruction, not a return address.
    pub interrupted: bool,
    /// The caller's rsp (VA).
    pub caller_sp: u64,
    /// The frame has a callback: an exception does not hide it.
    pub reported: bool,
    /// Registers of the native caller; `None` if the caller is managed or unknown.
    pub native_caller: Option<Registers>,
}

/// Returns the frames in the events of a walk, leaf first, with registers recomputed from the
/// recorded memory. The list ends where these disagree.
///
/// `start` holds the registers at which the walk starts, unless it starts at the Frame chain, with
/// true if the thread was interrupted there.
pub(super) fn stops(
    runtime: &Runtime<'_, RecordedMemory>,
    start: Option<&(Registers, bool)>,
    events: &[Event],
) -> Vec<ReachedFrame> {
    let memory = &*runtime.memory.borrow();
    let mut stops: Vec<ReachedFrame> = Vec::new();
    let mut next = start.copied();
    for event in events {
        match *event {
            Event::FrameFollowed { at, .. } => {
                let identities = &runtime.identities;
                let frame = FrameReader::new(at, runtime.generation, identities, memory);
                let Ok(Some(frame)) = frame else { break };
                let registers = next.map_or_else(Registers::default, |(registers, _)| registers);
                let mut context = Context { registers, flags: 0 };
                if frame.update(&mut context, identities).is_err() {
                    break;
                }
                // These Frames belong to a thread that was interrupted, not to one that called.
                let shape = frame.kind.shape();
                let interrupted = matches!(shape, FrameShape::Faulting | FrameShape::Resumable);
                next = Some((context.registers, interrupted));
            }
            Event::Managed { ip, rsp, caller_sp, .. } => {
                let here = |(at, _): &(Registers, bool)| at.rip == ip && at.rsp() == rsp;
                let Some((registers, interrupted)) = next.take().filter(here) else { break };
                let Some(managed) = runtime.code.find(ip) else { break };
                let (function, kind) = (managed.method.id, managed.method.kind);
                let mut caller = registers;
                let rules = runtime.generation.unwind_rules();
                let unwound = runtime.code.unwind(managed, rules, &mut caller, memory).is_ok();
                let native = unwound && runtime.code.find(caller.rip).is_none();
                let native_caller = native.then_some(caller);
                stops.push(ReachedFrame {
                    function,
                    kind,
                    registers,
                    interrupted,
                    caller_sp,
                    reported: false,
                    native_caller,
                });
                if !unwound {
                    break;
                }
                next = Some((caller, false));
            }
            Event::ReportedManaged { rsp, .. } => {
                if let Some(last) = stops.last_mut() {
                    last.reported |= last.registers.rsp() == rsp;
                }
            }
            _ => {}
        }
    }
    stops
}

/// The origin of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedOrigin {
    /// The target's own registers where it was interrupted or suspended.
    Context,
    /// The registers at the return of a runtime hook.
    Hook,
    /// The recorder's own registers, in native code.
    OwnCode,
    /// The result of the operating system's unwinder, starting from these registers in native code.
    Unwound,
    /// Another origin, mostly a seed that is invalid on purpose, or outdated.
    Other,
}

impl SeedLine {
    /// Returns the origin of the seed.
    pub fn origin(&self) -> SeedOrigin {
        match self.made.as_str() {
            "interrupted context" | "current context of the suspended target" => {
                SeedOrigin::Context
            }
            "exact registers at the hook" => SeedOrigin::Hook,
            "own native context" => SeedOrigin::OwnCode,
            "own context unwound to the first managed frame"
            | "own context unwound to code without an id"
            | "suspended target unwound to the first managed frame"
            | "interrupted context unwound to the first managed frame" => SeedOrigin::Unwound,
            _ => SeedOrigin::Other,
        }
    }

    /// Returns the registers of the seed.
    pub fn registers(&self) -> Registers {
        registers(&self.registers)
    }
}

impl WalkLine {
    /// Returns the target's registers at its position, if they are recorded.
    pub fn target_registers(&self) -> Option<Registers> {
        let seed = self.call.seed.as_ref();
        let stands = |seed: &&SeedLine| {
            let origin = seed.origin();
            matches!(origin, SeedOrigin::Context | SeedOrigin::Hook | SeedOrigin::OwnCode)
        };
        let own = seed.filter(stands).map(SeedLine::registers);
        // A few recorded contexts are empty.
        self.leaf.as_ref().map(registers).or(own).filter(|registers| registers.rip != 0)
    }

    /// Returns true if the calling thread walks itself where a Frame records the managed code that
    /// was left: in a callback of the runtime, except fast hooks, or in a P/Invoke.
    pub fn is_called_by_runtime(&self) -> bool {
        let elsewhere = ["signal", "elt-fast", "native-thread", "foreign-thread"];
        self.relation == "self" && !elsewhere.iter().any(|name| self.situation.starts_with(name))
    }

    /// Returns the registers with which the operating system's unwinder left the native code at the
    /// stack's leaf.
    pub fn unwound_to(&self) -> Option<Registers> {
        let seed = self.call.seed.as_ref()?;
        let found = seed.origin() == SeedOrigin::Unwound && seed.registers().rip != 0;
        found.then(|| seed.registers())
    }
}
