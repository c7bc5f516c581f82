//! The profiler's side of a probe: callbacks.

use super::{Probe, Receiver};
use crate::session::Session;
use clr_com::{
    Bool, ClassId, FrameHandle, Guid, ICorProfilerCallback2Methods, ICorProfilerCallback3Methods,
    ICorProfilerCallback4Methods, ICorProfilerCallback5Methods, ICorProfilerCallback6Methods,
    ICorProfilerCallback7Methods, ICorProfilerCallback8Methods, ICorProfilerCallback9Methods,
    ICorProfilerCallback10Methods, ICorProfilerCallback11, ICorProfilerCallback11Methods,
    ICorProfilerCallbackMethods, IUnknownMethods, ModuleId, ObjectId, create,
};
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use std::cell::RefCell;
use std::ffi::c_void;

/// A frame of a walk.
#[derive(Debug)]
pub struct Frame<'c> {
    /// The function, or 0.
    pub function: u64,
    /// The instruction (VA).
    pub ip: u64,
    /// The `COR_PRF_FRAME_INFO`.
    pub frame_info: u64,
    /// The CONTEXT, empty without one. What is written to it stays there.
    pub context: &'c mut [u8],
    /// The clientData that the caller of the walk has passed.
    pub client_data: u64,
}

/// A call of a hook for entering, leaving or a tail call.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// The documentation's name for a hook of its method.
    pub name: &'static str,
    /// The client's id of the method.
    pub client: u64,
    /// The `COR_PRF_ELT_INFO`, or the size of the arguments.
    pub info: u64,
}

/// A call of the profiler.
#[derive(Debug)]
pub enum Event<'c> {
    /// A call of the StackSnapshotCallback.
    Frame(Frame<'c>),
    /// A callback with a function or a module, or 0.
    Callback(&'static str, u64),
    /// A call of a hook.
    Hook(Hook),
}

/// The probe and the receiver of a call in progress.
type Current = (*const Probe, *const dyn Receiver);

thread_local! {
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Calls `act`, during which events go to a receiver.
pub(super) fn receiving<T>(probe: &Probe, receiver: &dyn Receiver, act: impl FnOnce() -> T) -> T {
    /// The entry of this call, which ends with it.
    struct Entry;

    impl Drop for Entry {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(Vec::pop);
        }
    }

    // SAFETY: only the lifetime changes, and the entry is removed before it ends.
    let receiver = unsafe { std::mem::transmute::<&dyn Receiver, &'static dyn Receiver>(receiver) };
    CURRENT.with_borrow_mut(|current| current.push((probe, receiver)));
    let _entry = Entry;
    act()
}

/// Passes an event on.
pub(super) fn pass(event: &mut Event<'_>) -> HResult {
    let Some((probe, receiver)) = CURRENT.with_borrow(|current| current.last().copied()) else {
        return HResult::OK;
    };
    // SAFETY: the entry of a call in progress, whose frames have them borrowed.
    unsafe { (*receiver).receive(&*probe, event) }
}

unsafe extern "system" fn frame(
    function: FunctionId,
    ip: u64,
    frame_info: FrameHandle,
    context_size: u32,
    context: *mut u8,
    client_data: *mut c_void,
) -> HResult {
    let context: &mut [u8] = if context.is_null() {
        &mut []
    } else {
        // SAFETY: the runtime passes a context of this size, for the time of the call.
        unsafe { std::slice::from_raw_parts_mut(context, context_size as usize) }
    };
    let (function, client_data) = (function.0, client_data as u64);
    pass(&mut Event::Frame(Frame { function, ip, frame_info, context, client_data }))
}

/// Returns the address of a StackSnapshotCallback.
pub(super) fn on_frame() -> u64 {
    let function: unsafe extern "system" fn(
        FunctionId,
        u64,
        FrameHandle,
        u32,
        *mut u8,
        *mut c_void,
    ) -> HResult = frame;
    function as usize as u64
}

/// A profiler that passes all callbacks on.
struct Profiler;

impl IUnknownMethods for Profiler {
    fn unimplemented(&self, method: &'static str) {
        pass(&mut Event::Callback(method, 0));
    }
}

impl ICorProfilerCallbackMethods for Profiler {
    unsafe fn Initialize(&self, _info: *mut c_void) -> HResult {
        pass(&mut Event::Callback("Initialize", 0))
    }

    unsafe fn ModuleLoadFinished(&self, module: ModuleId, _status: HResult) -> HResult {
        pass(&mut Event::Callback("ModuleLoadFinished", module.0))
    }

    unsafe fn ObjectAllocated(&self, object: ObjectId, _class: ClassId) -> HResult {
        pass(&mut Event::Callback("ObjectAllocated", object.0))
    }

    unsafe fn ExceptionThrown(&self, exception: ObjectId) -> HResult {
        pass(&mut Event::Callback("ExceptionThrown", exception.0))
    }

    unsafe fn JITCompilationStarted(&self, function: FunctionId, _is_safe: Bool) -> HResult {
        pass(&mut Event::Callback("JITCompilationStarted", function.0))
    }

    unsafe fn JITCompilationFinished(
        &self,
        function: FunctionId,
        _status: HResult,
        _is_safe: Bool,
    ) -> HResult {
        pass(&mut Event::Callback("JITCompilationFinished", function.0))
    }
}

impl ICorProfilerCallback10Methods for Profiler {
    unsafe fn EventPipeEventDelivered(
        &self,
        provider: u64,
        _event_id: u32,
        _event_version: u32,
        metadata_blob_len: u32,
        metadata_blob: *const u8,
        event_data_len: u32,
        event_data: *const u8,
        _activity_id: *const Guid,
        _related_activity_id: *const Guid,
        _event_thread: ThreadId,
        _stack_frames_len: u32,
        _stack_frames: *const u64,
    ) -> HResult {
        for (from, len) in [(metadata_blob, metadata_blob_len), (event_data, event_data_len)] {
            // SAFETY: the runtime passes this number of bytes, for the time of the call.
            std::hint::black_box(
                unsafe { std::slice::from_raw_parts(from, len as usize) }.to_vec(),
            );
        }
        pass(&mut Event::Callback("EventPipeEventDelivered", provider))
    }

    unsafe fn EventPipeProviderCreated(&self, provider: u64) -> HResult {
        pass(&mut Event::Callback("EventPipeProviderCreated", provider))
    }
}

macro_rules! nothing_else {
    ($($methods:ident)*) => { $(impl $methods for Profiler {})* };
}

nothing_else! {
    ICorProfilerCallback2Methods ICorProfilerCallback3Methods ICorProfilerCallback4Methods
    ICorProfilerCallback5Methods ICorProfilerCallback6Methods ICorProfilerCallback7Methods
    ICorProfilerCallback8Methods ICorProfilerCallback9Methods ICorProfilerCallback11Methods
}

/// Loads a profiler. The session takes references of its own.
pub(super) fn load(probe: &Probe, receiver: &dyn Receiver, session: &Session) -> HResult {
    let profiler: ICorProfilerCallback11 = create(Profiler);
    // SAFETY: the object is one of a profiler.
    receiving(probe, receiver, || unsafe { session.initialize(profiler.as_raw()) })
}
