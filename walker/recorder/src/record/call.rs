//! Calls of `DoStackSnapshot`, and seeds for them.

use super::reads::managed;
use super::text::SEED_FLAGS;
use super::walk::{Answer, Call, Report, Seed, Thread};
use crate::os::{self, OwnProcess};
use clr_com::RuntimeInfo;
use clr_walker::code_map::CodeMap;
use clr_walker::profiling::{
    CallError, HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, ThreadId,
};
use clr_walker::registers::Registers;
use clr_walker::unwind::Unwinder;

/// Maximum number of callbacks of a call that are kept.
const MOST_REPORTS: usize = 300;
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
    /// Makes the call. `target` is the thread whose id the call passes, unless it passes NULL.
    pub(super) fn make(&self, info: &RuntimeInfo, target: ThreadId) -> Answer {
        let mut context = Context([0; SIZE_OF_SEED]);
        let seed = self.seed.as_ref().map(|seed| {
            let written = seed.registers.write_context(&mut context.0);
            debug_assert!(written.is_ok(), "the room is larger than a CONTEXT");
            context.0[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&SEED_FLAGS.to_le_bytes());
            &context.0[..]
        });
        let mut answer = Answer { result: HResult::OK, reports: Vec::new(), count: 0 };
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
        let result = info.do_stack_snapshot(thread, Some(&mut callback), flags, 0, seed, size);
        answer.result = match result {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
        };
        answer
    }
}

/// Returns the registers and the ContextFlags of a CONTEXT.
fn registers_of(context: &[u8]) -> Option<(Registers, u32)> {
    let registers = Registers::from_context(context).ok()?;
    let flags = context.get(FLAGS_AT..)?.first_chunk()?;
    Some((registers, u32::from_le_bytes(*flags)))
}

/// Returns seeds for the calling thread: its own native context, and those of its first and its
/// second managed frame.
#[inline(never)]
pub(super) fn own_seeds(map: &CodeMap<'_>) -> Vec<(&'static str, Seed)> {
    const MANAGED: [(&str, &str); 2] = [
        ("seed-first-managed", "own context unwound to the first managed frame"),
        ("seed-deeper", "own context unwound to the second managed frame"),
    ];
    // The registers are those of this function, which is there until the walk is over.
    let own = os::own_registers();
    let native = Seed { made: "own native context", registers: own };
    let mut seeds = vec![("seed-unmanaged-ip", native)];
    let walk = Unwinder::new(map).walk(&own, &OwnProcess).with_limit(MOST_FRAMES);
    let methods =
        walk.map_while(Result::ok).filter(|frame| managed(map, frame.registers.rip).is_some());
    for (frame, (variant, made)) in methods.zip(MANAGED) {
        let mut registers = Registers { rip: frame.registers.rip, ..Registers::default() };
        for register in frame.known.gprs() {
            registers.set(register, frame.registers.get(register));
        }
        seeds.push((variant, Seed { made, registers }));
    }
    seeds
}
