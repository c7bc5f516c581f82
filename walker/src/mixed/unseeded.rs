//! [`Policy::Unseeded`](super::Policy::Unseeded): `DoStackSnapshot`, and nothing else.

use super::WalkBuffer;
use super::cursor::Steps;
use super::questions::Questions;
use super::reason::Reason;
use crate::profiling::{ModuleSource, ProfilerInfo, TargetThread};

pub(super) fn take<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), I::Fatal> {
    buffer.gap(Reason::NotUnwound);
    let map = ask.modules.code_map();
    ask.snapshot(&Steps::new(&map, target), None, buffer)
}
