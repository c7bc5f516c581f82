//! The receiver of the callbacks that methods of the runtime make.

use crate::callbacks::Raised;
use crate::inner::Inner;
use clr_machine::Machine;
use clr_runtime::profiling::{CallFault, CallFaults, GcRequest, ProfilerCallback};
use clr_runtime::{OsThreadId, Profiler, Runtime, Wait};
use clr_world::World;

/// The receiver of the callbacks that methods of the runtime make.
pub(crate) struct Receiver<'s>(pub(crate) &'s Inner);

impl Receiver<'_> {
    /// Does something with the program in execution, if there is one.
    fn world<T>(&self, act: impl FnOnce(&mut World<'static>) -> T) -> Option<T> {
        Some(act(&mut self.0.stage()?.world()?.borrow_mut()))
    }
}

impl Profiler<'static, Machine> for Receiver<'_> {
    fn call_back(
        &self,
        runtime: &Runtime<'static, Machine>,
        thread: OsThreadId,
        callback: ProfilerCallback,
    ) {
        if let Some(me) = self.0.current() {
            return self.0.switching(|| me.call_back(runtime, thread, callback));
        }
        let Some(target) = self.0.profiler.borrow().clone() else { return };
        let arguments = self.world(|world| world.arguments_in_call(callback)).unwrap_or_default();
        let about = callback.thread().unwrap_or_default();
        let raised =
            Raised { kind: callback.into(), thread: about, os: thread, arguments: &arguments };
        self.0.acting_as(thread, || target.raise(self.0, &raised));
    }

    fn attach(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        match self.0.current() {
            Some(me) => self.0.switching(|| Profiler::attach(me, runtime, thread)),
            None => drop(self.world(|world| world.attach_thread(thread))),
        }
    }

    fn request_gc(&self, runtime: &Runtime<'static, Machine>) -> GcRequest {
        if let Some(me) = self.0.current() {
            return self.0.switching(|| Profiler::request_gc(me, runtime));
        }
        self.world(World::request_gc).unwrap_or(GcRequest::Caller { moves: true })
    }

    fn wait(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId, wait: Wait) -> bool {
        let Some(me) = self.0.current() else { return false };
        self.0.switching(|| Profiler::wait(me, runtime, thread, wait))
    }

    fn between(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.between(runtime, thread));
        }
    }

    fn suspends(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.suspends(runtime, thread));
        }
    }

    fn fails(
        &self,
        runtime: &Runtime<'static, Machine>,
        thread: OsThreadId,
        possible: CallFaults,
    ) -> Option<CallFault> {
        self.0.current()?.fails(runtime, thread, possible)
    }

    fn reads_unlocked(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.reads_unlocked(runtime, thread));
        }
    }
}
