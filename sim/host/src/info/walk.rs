//! DoStackSnapshot.

use super::Call;
use crate::inner::Inner;
use crate::journal::Entry;
use crate::out::Answer;
use crate::process::Process;
use crate::report::Finding;
use crate::walks::{Walk, WalkedFrame};
use clr_com::{ICorProfilerInfo2Methods, StackSnapshotCallback};
use clr_runtime::Outcome;
use clr_runtime::explain::{StoryLine, story};
use clr_runtime::profiling::SnapshotRequest;
use clr_walker::profiling::{HResult, SnapshotCallback, SnapshotFlags, SnapshotFrame, ThreadId};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Size of a CONTEXT without extended state, in bytes.
const CONTEXT_SIZE: u32 = 0x4D0;
/// Size of the largest CONTEXT, in bytes.
const CONTEXT_ROOM: usize = 0xCA0;

/// Number of guarded bytes behind the largest CONTEXT.
const GUARD: usize = 0x40;
/// Content of the bytes behind a CONTEXT.
const BEHIND: u8 = 0xFD;

/// A CONTEXT as profilers expect it, with bytes behind it.
#[repr(C, align(64))]
struct Context([u8; CONTEXT_ROOM + GUARD]);

impl Call<'_> {
    // Walks a stack. Of the seed as many bytes are read as the profiler says it has; a CLR reads
    // its own number.
    ICorProfilerInfo2Methods!(walk = DoStackSnapshot(self, thread, callback, flags, client_data,
        context, context_size) {
        let seed = (!context.is_null()).then(|| {
            let len = (context_size as usize).min(CONTEXT_ROOM);
            // SAFETY: the context has the size that the profiler says. It is copied, because the
            // callback may change it.
            unsafe { std::slice::from_raw_parts(context, len) }.to_vec()
        });
        let seeded = seed.is_some();
        let mut room = Box::new(Context([BEHIND; CONTEXT_ROOM + GUARD]));
        let mut frames = Vec::new();
        let mut wrote_behind = None;
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
            frames.push(WalkedFrame::new(self.stage, function, frame.ip));
            let me = self.session.current();
            if let Some(me) = me {
                // Names of frames that the thread is not in are worse than none.
                if function.0 != 0 && !me.is_on_stack(thread, frame.ip) {
                    if seeded { me.report_wrong_seed() } else { me.report_false_frame() }
                }
                self.session.switching(|| me.begin_walk_callback());
            }
            let result = self.session.enter("StackSnapshotCallback", || {
                // SAFETY: the profiler's function, with the arguments of the documentation.
                unsafe { callback(function, frame.ip, handle, size as u32, at, client_data) }
            });
            if let Some(me) = me {
                me.end_walk_callback();
            }
            if let Some(behind) = room.0.get_mut(size..)
                && behind.iter().any(|byte| *byte != BEHIND)
            {
                behind.fill(BEHIND);
                wrote_behind = Some(size as u32);
            }
            if let (Some(written), Some(context)) =
                (room.0.get(..size), frame.context.get_mut(..size))
            {
                context.copy_from_slice(written);
            }
            result
        };
        let snapshot = SnapshotRequest {
            thread,
            flags: SnapshotFlags(flags),
            seed: seed.as_deref(),
            context_size,
            client_data: client_data as u64,
        };
        let within = self.session.within.get();
        let (outcome, story) = self.session.explained(self.stage, || {
            let callback: Option<&mut SnapshotCallback<'_>> =
                if callback.is_some() { Some(&mut on_frame) } else { None };
            let walk = || self.caller().do_stack_snapshot(&snapshot, callback);
            match self.session.current() {
                Some(me) => me.walk(thread, walk),
                None => walk(),
            }
        });
        if let Some(size) = wrote_behind {
            let (callback, buffer) = ("StackSnapshotCallback", "context");
            self.session.shared.find(Finding::WroteBehind { callback, buffer, size });
        }
        let walk = Walk { within, thread, flags, seeded, outcome, frames, story };
        self.session.shared.write(&Entry::Walked(&walk));
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
    });
}

impl Inner {
    /// Makes a walk, and returns its story. A walk within it is a part of it: it has none of its own.
    pub(crate) fn explained<T>(
        &self,
        stage: &Process,
        walk: impl FnOnce() -> T,
    ) -> (T, Vec<StoryLine>) {
        let depth = self.walks.replace(self.walks.get() + 1);
        let runtime = stage.runtime();
        let mark = (depth == 0).then(|| runtime.log.mark());
        let done = walk();
        self.walks.set(depth);
        let Some(mark) = mark else { return (done, Vec::new()) };
        let events = runtime.log.since(mark);
        let lines = story(runtime, &events);
        let line = |line: &StoryLine| format!("{}{line}\n", "  ".repeat(line.depth));
        self.explanations.borrow_mut().push(lines.iter().map(line).collect());
        (done, lines)
    }
}
