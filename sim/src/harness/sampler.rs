//! A sampler that follows the documentation of the CLR.

use super::{Found, StackWalker, StoppedThread};
use clr_runtime::Context;
use clr_unwind::{Position, Unwinder};
use clr_walker::profiling::{HResult, ProfilerInfo, SnapshotFlags, SnapshotFrame, SnapshotRequest};

/// Maximum number of native frames to unwind.
const LIMIT: usize = 64;
/// `CONTEXT_FULL`.
const SEED_FLAGS: u32 = 0x10_000B;

/// A basic walker: unwinds native frames up to the first one that the runtime knows, and seeds a
/// snapshot there (C-037). The result is never wrong; the walk gives up where another thread must
/// not be walked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampler;

impl StackWalker for Sampler {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let info = target.info();
        let (mut registers, mut position) = (target.registers, Position::Interrupted);
        let mut seed = None;
        for _ in 0..LIMIT {
            if info.get_function_from_ip(registers.rip).is_ok() {
                seed = Some(Context { registers, flags: SEED_FLAGS }.to_bytes());
                break;
            }
            let unwinder = Unwinder::new(target.native());
            if unwinder.step(&mut registers, position, &target.memory()).is_err() {
                break;
            }
            position = Position::ReturnAddress;
        }
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            let ip = frame.ip;
            found.extend(frame.function.map(|function| Found { function, ip }));
            HResult::OK
        };
        let (flags, seed) = (SnapshotFlags::REGISTER_CONTEXT, seed.as_ref().map(|seed| &seed[..]));
        let request = SnapshotRequest::of(target.thread, flags).seeded(seed);
        info.do_stack_snapshot(&request, Some(&mut callback)).map_err(|error| error.to_string())?;
        // S_OK may mean that nothing was walked at all.
        if found.is_empty() { Err("no managed frames".to_owned()) } else { Ok(()) }
    }
}
