//! Calls of `DoStackSnapshot`, and seeds for them.

use super::managed::ManagedCode;
use super::own_stack::OwnStack;
use super::text::SEED_FLAGS;
use super::walk::{Answer, Call, Report, Seed, Thread};
use clr_com::RuntimeInfo;
use clr_sampler::os;
use clr_unwind::{Memory, Registers, Unwinder};
use clr_walker::profiling::{
    CallError, HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest, ThreadId,
};

/// infoFlags of a call that wants registers.
pub(super) const REGISTER_CONTEXT: u32 = 1;
/// infoFlags that x64 refuses: COR_PRF_SNAPSHOT_X86_OPTIMIZED.
const X86_OPTIMIZED: u32 = 2;

/// Maximum number of callbacks of a call that are kept.
pub(super) const MOST_REPORTS: usize = 300;
/// Maximum number of frames on the way to a seed.
const MOST_FRAMES: u32 = 500;
/// Size of the largest CONTEXT that a runtime reads, in bytes.
const SIZE_OF_SEED: usize = 0xCA0;
/// Offset of ContextFlags in a CONTEXT, in bytes.
const FLAGS_AT: usize = 0x30;

/// Room for a CONTEXT.
#[repr(align(16))]
struct Context([u8; SIZE_OF_SEED]);

impl Call {
    /// Returns a call without a seed, which asks for contexts.
    pub(super) const fn unseeded(thread: Thread) -> Self {
        Self { variant: "unseeded", thread, flags: REGISTER_CONTEXT, seed: None, stop_at: None }
    }

    /// Returns the calls without a seed that are made for any thread.
    pub(super) const fn all_unseeded(thread: Thread) -> [Self; 4] {
        let unseeded = Self::unseeded(thread);
        [
            unseeded,
            Self { variant: "unseeded-flags0", flags: 0, ..unseeded },
            Self { variant: "stop", stop_at: Some(1), ..unseeded },
            Self { variant: "bad-flags", flags: X86_OPTIMIZED, ..unseeded },
        ]
    }

    /// Returns a call with a seed, which asks for contexts.
    pub(super) const fn seeded(thread: Thread, (variant, seed): (&'static str, Seed)) -> Self {
        Self { variant, seed: Some(seed), ..Self::unseeded(thread) }
    }

    /// Makes the call. `target` is the thread whose id the call passes, unless it passes NULL.
    pub(super) fn make(&self, info: &RuntimeInfo, target: ThreadId) -> Answer {
        let mut answer = Answer { result: HResult::OK, reports: Vec::new(), count: 0 };
        self.make_into(info, target, &mut answer);
        answer
    }

    /// Makes the call. Allocates nothing if `answer` has room for the callbacks.
    pub(super) fn make_into(&self, info: &RuntimeInfo, target: ThreadId, answer: &mut Answer) {
        let mut context = Context([0; SIZE_OF_SEED]);
        let seed = self.seed.as_ref().map(|seed| {
            let written = seed.registers.write_context(&mut context.0);
            debug_assert!(written.is_ok(), "the room is larger than a CONTEXT");
            context.0[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&seed.flags.to_le_bytes());
            &context.0[..]
        });
        answer.reports.clear();
        answer.count = 0;
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            let index = answer.count;
            answer.count += 1;
            if index < MOST_REPORTS {
                answer.reports.push(Report {
                    function: frame.function,
                    ip: frame.ip,
                    has_frame_info: frame.frame_info.handle() != 0,
                    context_size: frame.context.len() as u32,
                    context: registers_of(frame.context),
                });
            }
            if self.stop_at == Some(index) { HResult::FALSE } else { HResult::OK }
        };
        let thread = if self.thread == Thread::Null { ThreadId(0) } else { target };
        let size = if seed.is_some() { super::text::CONTEXT_SIZE } else { 0 };
        let flags = SnapshotFlags(self.flags);
        let request = SnapshotRequest::of(thread, flags).seeded(seed);
        let request = SnapshotRequest { context_size: size, ..request };
        let result = info.do_stack_snapshot(&request, Some(&mut callback));
        answer.result = match result {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
        };
    }
}

/// Returns the registers and the ContextFlags of a CONTEXT.
fn registers_of(context: &[u8]) -> Option<(Registers, u32)> {
    let registers = Registers::from_context(context).ok()?;
    let flags = context.get(FLAGS_AT..)?.first_chunk()?;
    Some((registers, u32::from_le_bytes(*flags)))
}

/// A seed and the name of its variant.
pub(super) type NamedSeed = (&'static str, Seed);

/// Names of seeds: the variants, and how they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The registers from which frames are unwound.
    start: (&'static str, &'static str),
    /// The first and the second managed frame.
    managed: [(&'static str, &'static str); 2],
}

/// The calling thread, in the recorder's own code.
pub(super) const OWN: Origin = Origin {
    start: ("seed-unmanaged-ip", "own native context"),
    managed: [
        ("seed-first-managed", "own context unwound to the first managed frame"),
        ("seed-deeper", "own context unwound to the second managed frame"),
    ],
};

/// The calling thread, interrupted by a signal.
#[cfg(target_os = "linux")]
pub(super) const INTERRUPTED: Origin = Origin {
    start: ("seed-interrupted-context", "interrupted context"),
    managed: [
        ("seed-first-managed", "interrupted context unwound to the first managed frame"),
        ("seed-deeper", "interrupted context unwound to the second managed frame"),
    ],
};

/// Another thread, which the recorder has suspended.
#[cfg(windows)]
pub(super) const SUSPENDED: Origin = Origin {
    start: ("seed-leaf", "context of the suspended target"),
    managed: [
        ("seed-first-managed", "suspended target unwound to the first managed frame"),
        ("seed-deeper", "suspended target unwound to the second managed frame"),
    ],
};

/// Returns seeds for the calling thread: its own native context, and those of its first and its
/// second managed frame.
#[inline(never)]
pub(super) fn own_seeds(code: ManagedCode<'_, '_>, memory: &OwnStack) -> [Option<NamedSeed>; 3] {
    // The registers are those of this function, which is there until the walk is over.
    seeds(code, &os::own_registers(), memory, &OWN)
}

/// Returns seeds for a thread with these registers: themselves, and those of its first and its second
/// managed frame. Allocates nothing.
pub(super) fn seeds(
    code: ManagedCode<'_, '_>,
    start: &Registers,
    memory: &impl Memory,
    origin: &Origin,
) -> [Option<NamedSeed>; 3] {
    let (variant, made) = origin.start;
    let mut seeds =
        [Some((variant, Seed { made, registers: *start, flags: SEED_FLAGS })), None, None];
    let walk = Unwinder::new(code.map).walk(start, memory).with_limit(MOST_FRAMES);
    let methods =
        walk.map_while(Result::ok).filter(|frame| code.find(frame.registers.rip).is_some());
    let places = seeds.iter_mut().skip(1).zip(origin.managed);
    for ((place, (variant, made)), frame) in places.zip(methods) {
        let mut registers = Registers { rip: frame.registers.rip, ..Registers::default() };
        for register in frame.known.gprs() {
            registers.set(register, frame.registers.get(register));
        }
        *place = Some((variant, Seed { made, registers, flags: SEED_FLAGS }));
    }
    seeds
}
