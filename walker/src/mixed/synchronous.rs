//! [`Policy::Synchronous`](super::Policy::Synchronous): the calling thread walks itself in a callback, where its
//! Frames say where it has left managed code.

use super::WalkBuffer;
use super::cursor::{Cursor, Steps};
use super::fill::fill;
use super::leaf::Leaf;
use super::questions::{Ended, Questions};
use crate::profiling::{ModuleSource, ProfilerInfo, TargetThread};

#[inline(never)]
pub(super) fn take<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    let map = ask.modules.code_map();
    let steps = Steps::new(&map, target);
    let mut frame = Cursor::NOWHERE;
    steps.read_registers(&mut frame.registers).map_err(Ended::Short)?;
    let managed = match ask.leaf(&steps, buffer, &mut frame)? {
        Leaf::Managed => true,
        Leaf::Generated(reason) | Leaf::Unknown(reason) => {
            buffer.gap(reason);
            false
        }
        // The stack has nothing managed, or the buffer is full.
        Leaf::Root | Leaf::Full => return Ok(()),
    };
    ask.snapshot(&steps, None, buffer)?;
    Ok(fill(&steps, buffer, &mut frame, managed, |place| ask.name(&map, place))?)
}
