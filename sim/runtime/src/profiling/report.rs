//! Reporting the stops of a walk to the profiler (contract §3.4 to §3.7).

use super::iterator::{Break, FrameIterator, State};
use super::{HResult, SnapshotRequest};
use crate::context::{Context, MAX_CONTEXT_SIZE};
use crate::explain::{Event, SilentReason};
use crate::{Funclet, MethodKind, Runtime, TargetMemory};
use clr_unwind::Unreadable;
use clr_walker::profiling::{FrameInfo, FunctionId, SnapshotCallback, SnapshotFrame};

/// Maker of the callbacks of one walk.
pub(super) struct Reporter<'w, 'f> {
    flags_want_context: bool,
    client_data: u64,
    callback: Option<&'w mut SnapshotCallback<'f>>,
    /// Number of callbacks so far.
    pub(super) reported: u32,
    context_size: usize,
    /// The CONTEXT that callbacks get: the fields that the walk does not know come from the seed,
    /// or are 0, unless a callback has written to them.
    bytes: [u8; MAX_CONTEXT_SIZE],
}

impl<'w, 'f> Reporter<'w, 'f> {
    pub(super) fn new<M>(
        runtime: &Runtime<'_, M>,
        call: &SnapshotRequest<'_>,
        seed: Option<&[u8]>,
        callback: Option<&'w mut SnapshotCallback<'f>>,
    ) -> Self {
        let mut bytes = [0; MAX_CONTEXT_SIZE];
        let flags_want_context = call.flags.wants_context();
        let size = runtime.generation.context_size() as usize;
        // The bytes are not read otherwise.
        if flags_want_context && let Some(seed) = seed {
            let len = seed.len().min(size);
            bytes[..len].copy_from_slice(&seed[..len]);
        }
        Self {
            flags_want_context,
            client_data: call.client_data,
            callback,
            reported: 0,
            context_size: if flags_want_context { size } else { 0 },
            bytes,
        }
    }

    /// Reports the stop to the profiler, if it is to be reported. Returns the result of the
    /// callback if it ends the walk.
    pub(super) fn report<M: TargetMemory>(
        &mut self,
        walk: &mut FrameIterator<'_, '_, M>,
    ) -> Result<Option<HResult>, Break> {
        let runtime = walk.runtime;
        let function = match reported(walk)? {
            Ok(function) => function,
            Err(why) => {
                let is_frame = why == SilentReason::Frame;
                let at = if is_frame { walk.frame } else { walk.context.registers.rip };
                runtime.record(|| Event::NotReported { at, why });
                return Ok(None);
            }
        };
        let (ip, rsp) = (walk.context.registers.rip, walk.context.registers.rsp());
        let context = self.flags_want_context;
        runtime.record(|| match function {
            Some(function) => {
                Event::ReportedManaged { function, ip, rsp, funclet: walk.funclet, context }
            }
            None => Event::ReportedMarker { ip, rsp, context },
        });
        let Some(callback) = &mut self.callback else {
            runtime.record(|| Event::NullCallback);
            return Err(Break::Fault(Unreadable { address: 0, len: 1 }));
        };
        if context {
            walk.context.write(&mut self.bytes);
        }
        let handle = runtime.next_frame_info.get();
        runtime.next_frame_info.set(handle.wrapping_add(1));
        let before = runtime.frame_info.replace(Some((handle, function.unwrap_or_default())));
        let mut frame = SnapshotFrame {
            function,
            ip,
            frame_info: FrameInfo::new(handle),
            context: &mut self.bytes[..self.context_size],
            client_data: self.client_data,
        };
        let result = callback(&mut frame);
        self.reported += 1;
        runtime.frame_info.set(before);
        // Changes to a managed frame's context are lost, because its caller's context has already
        // been computed. After a marker the walk continues from the changed context.
        if context
            && walk.state == State::Marker
            && let Some(written) = Context::from_bytes(&self.bytes)
        {
            walk.context = written;
        }
        Ok((result != HResult::OK).then_some(result))
    }
}

/// Returns the reported function, or `None` for the marker of an unmanaged run.
fn reported<M: TargetMemory>(
    walk: &FrameIterator<'_, '_, M>,
) -> Result<Result<Option<FunctionId>, SilentReason>, Break> {
    let hides = walk.runtime.generation.hides_exception_handling();
    let handling = hides && walk.method == Some(MethodKind::ExceptionHandling);
    // Such a method calls each filter by a helper, whose Frame recordings of filters may lack.
    let filters = hides && walk.funclet == Some(Funclet::Filter);
    Ok(match walk.state {
        // The run that called such a method is hidden with it, and so is the run that it called.
        State::Marker if handling || filters || walk.is_in_exception_helper()? => {
            Err(SilentReason::ExceptionHandling)
        }
        State::Marker => Ok(None),
        State::Frameless if handling => Err(SilentReason::ExceptionHandling),
        State::Frameless => match walk.managed() {
            Some(managed)
                if !matches!(managed.method.kind, MethodKind::IlStub | MethodKind::Dynamic) =>
            {
                Ok(Some(managed.method.id))
            }
            _ => Err(SilentReason::Dynamic),
        },
        State::Frame | State::InitialNative | State::Done => Err(SilentReason::Frame),
    })
}
