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
    let function: unsafe extern "system" fn(_, _, _, _, _, _) -> _ = frame;
    function as usize as u64
}

/// A profiler that passes all callbacks on.
struct Profiler;

impl IUnknownMethods for Profiler {
    fn unimplemented(&self, method: &'static str) {
        pass(&mut Event::Callback(method, 0));
    }
}

impl Profiler {
    /// Passes a callback on.
    fn on(&self, name: &'static str, about: impl FnOnce(&Self) -> u64) -> HResult {
        pass(&mut Event::Callback(name, about(self)))
    }
}

impl ICorProfilerCallbackMethods for Profiler {
    ICorProfilerCallbackMethods!(fn Initialize(_call, _info) { 0 });
    ICorProfilerCallbackMethods!(fn ModuleLoadFinished(_call, module, _status) { module.0 });
    ICorProfilerCallbackMethods!(fn ObjectAllocated(_call, object, _class) { object.0 });
    ICorProfilerCallbackMethods!(fn ExceptionThrown(_call, exception) { exception.0 });
    ICorProfilerCallbackMethods!(fn JITCompilationStarted(_call, function, _safe) { function.0 });
    ICorProfilerCallbackMethods!(fn JITCompilationFinished(_call, function, _status, _safe) {
        function.0
    });
}

impl ICorProfilerCallback10Methods for Profiler {
    ICorProfilerCallback10Methods!(fn EventPipeEventDelivered(_call, provider, _id, _version,
        metadata_len, metadata, data_len, data, _activity, _related, _thread, _frames_len, _frames) {
        for (from, len) in [(metadata, metadata_len), (data, data_len)] {
            // SAFETY: the runtime passes this number of bytes, for the time of the call.
            let bytes = unsafe { std::slice::from_raw_parts(from, len as usize) };
            std::hint::black_box(bytes.to_vec());
        }
        provider
    });

    ICorProfilerCallback10Methods!(fn EventPipeProviderCreated(_call, provider) { provider });
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
