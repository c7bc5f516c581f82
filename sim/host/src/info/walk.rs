//! DoStackSnapshot.

use super::Call;
use crate::out::Answer;
use crate::raise::Receiver;
use crate::report::Finding;
use clr_com::StackSnapshotCallback;
use clr_runtime::Outcome;
use clr_runtime::profiling::Call as Snapshot;
use clr_walker::profiling::{HResult, SnapshotCallback, SnapshotFlags, SnapshotFrame, ThreadId};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Size of a CONTEXT without extended state, in bytes.
const CONTEXT_SIZE: u32 = 0x4D0;
/// Size of the largest CONTEXT, in bytes.
const CONTEXT_ROOM: usize = 0xCA0;

/// A CONTEXT as profilers expect it.
#[repr(C, align(64))]
struct Context([u8; CONTEXT_ROOM]);

impl Call<'_> {
    /// Walks a stack. Of the seed as many bytes are read as the profiler says it has; a CLR reads
    /// its own number.
    pub(super) unsafe fn walk(
        &self,
        (thread, flags): (ThreadId, u32),
        callback: StackSnapshotCallback,
        client_data: *mut c_void,
        (context, context_size): (*const u8, u32),
    ) -> Answer {
        let seed = (!context.is_null()).then(|| {
            let len = (context_size as usize).min(CONTEXT_ROOM);
            // SAFETY: the context has the size that the profiler says. It is copied, because the
            // callback may change it.
            unsafe { std::slice::from_raw_parts(context, len) }.to_vec()
        });
        let mut room = Box::new(Context([0; CONTEXT_ROOM]));
        let mut on_frame = |frame: &mut SnapshotFrame<'_>| {
            let Some(callback) = callback else { return HResult::FAIL };
            let size = frame.context.len().min(CONTEXT_ROOM);
            let at = match room.0.get_mut(..size) {
                Some(copy) if size > 0 => {
                    copy.copy_from_slice(frame.context.get(..size).unwrap_or_default());
                    copy.as_mut_ptr()
                }
                _ => null_mut(),
            };
            let function = frame.function.unwrap_or_default();
            let handle = frame.frame_info.handle();
            // SAFETY: the profiler's function, with the arguments of the documentation.
            let result =
                unsafe { callback(function, frame.ip, handle, size as u32, at, client_data) };
            if let (Some(written), Some(context)) =
                (room.0.get(..size), frame.context.get_mut(..size))
            {
                context.copy_from_slice(written);
            }
            result
        };
        let snapshot = Snapshot {
            thread,
            flags: SnapshotFlags(flags),
            seed: seed.as_deref(),
            context_size,
            client_data: client_data as u64,
        };
        let receiver = Receiver(self.session);
        let outcome = self.session.explained(self.stage, || {
            let callback: Option<&mut SnapshotCallback<'_>> =
                if callback.is_some() { Some(&mut on_frame) } else { None };
            self.caller().with_profiler(&receiver).do_stack_snapshot(&snapshot, callback)
        });
        match outcome {
            Outcome::Returned(result) => Ok(result),
            fatal => {
                let is_small = seed.is_some() && context_size < CONTEXT_SIZE;
                if is_small && matches!(fatal, Outcome::AccessViolation { .. }) {
                    self.session.shared.find(Finding::SmallSeed { given: context_size });
                }
                Err(fatal.into())
            }
        }
    }
}
