//! A walker by frame pointers alone.

use super::{Found, StackWalker, StoppedThread};
use clr_unwind::Memory as _;
use clr_walker::profiling::ProfilerInfo as _;

/// Maximum number of frames.
const LIMIT: usize = 1 << 12;

/// A walker that follows the chain of saved frame pointers (rbp) and asks the runtime which of the return addresses
/// are in methods. A function without a frame pointer hides its caller, without a trace: this walker is often wrong,
/// and cannot know when.
#[derive(Clone, Copy, Debug, Default)]
pub struct FramePointers;

impl StackWalker for FramePointers {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let (info, memory) = (target.info(), target.memory());
        let (mut ip, mut frame) = (target.registers.rip, target.registers.rbp());
        for _ in 0..LIMIT {
            if let Ok(function) = info.get_function_from_ip(ip) {
                found.push(Found { function, ip });
            }
            if target.is_root(ip) {
                return Ok(());
            }
            let Ok(caller) = memory.read_u64(frame) else {
                return Err(format!("{frame:#x} is no frame pointer"));
            };
            ip = memory
                .read_u64(frame.wrapping_add(8))
                .map_err(|_| format!("{frame:#x} is no frame pointer"))?;
            if caller == 0 || ip == 0 {
                return Ok(());
            }
            if caller <= frame {
                return Err(format!("the frame pointer {caller:#x} is not above {frame:#x}"));
            }
            frame = caller;
        }
        Err("too many frames".to_owned())
    }
}
