//! A profiler that is attached to the running process. What it gets, and what it may do then, was recorded on 3.1.23, 8.0.34,
//! 9.0.23, 10.0.15 and 11.0.0, with the command `AttachProfiler` of the diagnostic server.

use crate::inner::Inner;
use crate::report::Finding;
use crate::session::Session;
use crate::target::{Pointers, Target};
use clr_codegen::FunctionIndex;
use clr_explore::CurrentThread;
use clr_runtime::ProfilerStatus;
use clr_walker::profiling::HResult;
use std::rc::Rc;

impl Session {
    /// Returns true if the text's program has the profiler attached: then none is loaded when the process starts.
    #[must_use]
    pub fn attaches(&self) -> bool {
        !self.inner().scenario.attaches.is_empty()
    }

    /// Returns true if a function stands for a request to attach the profiler, and none is loaded.
    #[must_use]
    pub fn is_asked_to_attach(&self, function: FunctionIndex) -> bool {
        let inner = self.inner();
        inner.scenario.attaches.contains_key(&function) && inner.profiler.borrow().is_none()
    }

    /// Starts the process without a profiler.
    pub fn start_alone(&self) {
        let Some(stage) = self.inner().stage() else { return };
        stage.runtime().change_process(|process| process.reset_profiler(ProfilerStatus::None));
    }

    /// Attaches a profiler, outside of interleavings, on a thread of the runtime that it does not know as managed. Returns
    /// false if the profiler refuses.
    ///
    /// # Safety
    /// As of [`load_profiler`](Self::load_profiler).
    pub unsafe fn attach_profiler(&self, function: FunctionIndex, pointers: Pointers) -> bool {
        let inner = self.inner();
        let Some(stage) = inner.stage() else { return false };
        // SAFETY: the caller's promise.
        let target = unsafe { Target::new(pointers) };
        inner.acting_as(stage.native(), || inner.attach(function, target, self.info()))
    }

    /// The same on a thread of an interleaving.
    ///
    /// # Safety
    /// The same; and the session's runtime is that of the interleaving.
    pub unsafe fn attach_profiler_on(
        &self,
        me: &CurrentThread<'_, '_>,
        function: FunctionIndex,
        pointers: Pointers,
    ) -> bool {
        let inner = self.inner();
        // SAFETY: the caller's promise.
        let target = unsafe { Target::new(pointers) };
        // SAFETY: the same.
        unsafe { inner.on_behalf_of(me, || inner.attach(function, target, self.info())) }
    }
}

impl Inner {
    fn attach(
        &self,
        function: FunctionIndex,
        target: Option<Target>,
        info: *mut std::ffi::c_void,
    ) -> bool {
        let (Some(stage), Some(target)) = (self.stage(), target) else { return false };
        let data = self.scenario.attaches.get(&function).map_or(&[][..], |data| data.as_bytes());
        let target = Rc::new(target);
        *self.profiler.borrow_mut() = Some(Rc::clone(&target));
        let runtime = stage.runtime();
        runtime.change_process(|process| {
            process.reset_profiler(ProfilerStatus::InitializingForAttach);
            process.attached = true;
        });
        self.high_events.set(0);
        self.hooks.clear();
        // SAFETY: the runtime's object outlives the profiler's.
        let result = self
            .enter("InitializeForAttach", || unsafe { target.initialize_for_attach(info, data) });
        if result.is_failure() {
            self.refuse_attach(result);
            return false;
        }
        runtime.change_process(|process| process.profiler = ProfilerStatus::Active);
        self.enter("ProfilerAttachComplete", || target.attach_complete());
        true
    }

    /// Forgets a profiler that refuses to be attached.
    fn refuse_attach(&self, result: HResult) {
        self.shared.find(Finding::Refused(result));
        let why = format!("InitializeForAttach returned {result}");
        self.shared.with(|report| report.not_loaded(Some(why)));
        *self.profiler.borrow_mut() = None;
        if let Some(stage) = self.stage() {
            stage.runtime().change_process(|process| process.reset_profiler(ProfilerStatus::None));
        }
    }
}
