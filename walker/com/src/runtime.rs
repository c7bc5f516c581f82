//! `ICorProfilerInfo` as the walker calls it.

use crate::{
    ClassId, FrameHandle, ICorProfilerInfo2, ICorProfilerInfo3, ICorProfilerInfo4,
    ICorProfilerInfo8, ICorProfilerInfo9, ICorProfilerInfo10, ICorProfilerThreadEnum, IUnknown,
    Interface, ModuleId,
};
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, HResult, ProfilerInfo,
    ReJitId, SnapshotCallback, SnapshotFrame, SnapshotRequest, ThreadId,
};
use std::convert::Infallible;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A real runtime, for [`Walker`](clr_walker::mixed::Walker): each method is one call, and returns
/// `E_NOTIMPL` if the runtime is too old to have it.
#[derive(Clone, Debug)]
pub struct RuntimeInfo {
    info: ICorProfilerInfo2,
    info3: Option<ICorProfilerInfo3>,
    info4: Option<ICorProfilerInfo4>,
    info8: Option<ICorProfilerInfo8>,
    info9: Option<ICorProfilerInfo9>,
    info10: Option<ICorProfilerInfo10>,
}

/// The result of a call.
type Called<T> = Result<T, CallError<Infallible>>;

/// Returns `value` if the call succeeded.
const fn called<T: Copy>(result: HResult, value: T) -> Called<T> {
    if result.is_failure() { Err(CallError::Failed(result)) } else { Ok(value) }
}

/// Makes a call that writes one value.
fn one<T: Copy>(mut value: T, call: impl FnOnce(*mut T) -> HResult) -> Called<T> {
    called(call(&raw mut value), value)
}

/// Makes a call that writes two values.
fn two<T: Copy, U: Copy>(
    (mut one, mut two): (T, U),
    call: impl FnOnce(*mut T, *mut U) -> HResult,
) -> Called<(T, U)> {
    let result = call(&raw mut one, &raw mut two);
    called(result, (one, two))
}

/// Returns an interface, if the runtime has it.
fn known<I>(interface: Option<&I>) -> Result<&I, HResult> {
    interface.ok_or(HResult::NOT_IMPLEMENTED)
}

/// Returns the text of `len` UTF-16 units, of which the last may be the 0 behind it.
fn text(room: &[u16], len: usize) -> String {
    let name = room.get(..len.min(room.len())).unwrap_or_default();
    String::from_utf16_lossy(name.strip_suffix(&[0]).unwrap_or(name))
}

impl RuntimeInfo {
    /// Asks a runtime for its interfaces: the argument of `Initialize`.
    ///
    /// # Errors
    /// The answer of a runtime without `ICorProfilerInfo2`.
    pub fn new(info: &IUnknown) -> Result<Self, HResult> {
        Ok(Self {
            info: info.cast()?,
            info3: info.cast().ok(),
            info4: info.cast().ok(),
            info8: info.cast().ok(),
            info9: info.cast().ok(),
            info10: info.cast().ok(),
        })
    }

    /// Returns `ICorProfilerInfo2`, for other calls.
    pub const fn info2(&self) -> &ICorProfilerInfo2 {
        &self.info
    }

    /// `GetRuntimeInformation`: the runtime's major, minor and build number. .NET Core 3.1 says 4.0.
    ///
    /// # Errors
    /// `E_NOTIMPL` of a runtime without `ICorProfilerInfo3`.
    pub fn get_runtime_version(&self) -> Called<[u16; 3]> {
        let [mut major, mut minor, mut build] = [0; 3];
        let info = known(self.info3.as_ref())?;
        // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
        let result = unsafe {
            let (major, minor, build) = (&raw mut major, &raw mut minor, &raw mut build);
            let (id, kind, qfe) = (null_mut(), null_mut(), null_mut());
            let (len, text) = (null_mut(), null_mut());
            info.GetRuntimeInformation(id, kind, major, minor, build, qfe, 0, len, text)
        };
        called(result, [major, minor, build])
    }

    /// `GetModuleInfo`: the module's base (VA; 0 if it has no file) and its path.
    ///
    /// # Errors
    /// `CORPROF_E_DATAINCOMPLETE` before the module is loaded.
    pub fn get_module_info(&self, module: ModuleId) -> Called<(u64, String)> {
        const ROOM: usize = 1024;
        let mut name = [0; ROOM];
        let (mut base, mut len) = (null(), 0);
        // SAFETY: the pointers are to locals, and the room is that of `name`.
        let result = unsafe {
            let (base, len) = (&raw mut base, &raw mut len);
            self.info.GetModuleInfo(module, base, ROOM as u32, len, name.as_mut_ptr(), null_mut())
        };
        let len = called(result, len)? as usize;
        Ok((base as u64, text(&name, len)))
    }

    /// `GetDynamicFunctionInfo`: the name of a dynamic method or IL stub.
    ///
    /// # Errors
    /// `E_INVALIDARG` for other functions, `E_NOTIMPL` of a runtime without `ICorProfilerInfo8`.
    pub fn get_dynamic_function_name(&self, function: FunctionId) -> Called<String> {
        const ROOM: usize = 512;
        let mut name = [0; ROOM];
        let (mut module, mut signature) = (ModuleId(0), null());
        let (mut signature_size, mut len) = (0, 0);
        let info = known(self.info8.as_ref())?;
        // SAFETY: the pointers are to locals, and the room is that of `name`.
        let result = unsafe {
            let (module, signature) = (&raw mut module, &raw mut signature);
            let (size, len) = (&raw mut signature_size, &raw mut len);
            let (room, name) = (ROOM as u32, name.as_mut_ptr());
            info.GetDynamicFunctionInfo(function, module, signature, size, room, len, name)
        };
        let len = called(result, len)? as usize;
        Ok(text(&name, len))
    }

    /// `GetNativeCodeStartAddresses`: writes the starts (VA) of the bodies of a function that have
    /// this ReJITID, and returns their number even if there is room for fewer.
    ///
    /// # Errors
    /// `E_INVALIDARG`, and outside callbacks.
    pub fn get_native_code_starts(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        starts: &mut [u64],
    ) -> Called<u32> {
        let (room, info) = (starts.len() as u32, known(self.info9.as_ref())?);
        let starts = starts.as_mut_ptr();
        // SAFETY: the pointers are to a local and to `room` elements.
        one(0, |len| unsafe {
            info.GetNativeCodeStartAddresses(function, rejit, room, len, starts)
        })
    }
}

/// The callback of a snapshot, behind its client data.
struct Snapshot<'s, 'f> {
    callback: &'s mut SnapshotCallback<'f>,
    client_data: u64,
}

/// The `StackSnapshotCallback` of all snapshots.
unsafe extern "system" fn on_frame(
    function: FunctionId,
    ip: u64,
    frame_info: FrameHandle,
    context_size: u32,
    context: *mut u8,
    client_data: *mut c_void,
) -> HResult {
    // SAFETY: `do_stack_snapshot` passes this, and waits until the last callback has returned.
    let snapshot = unsafe { &mut *client_data.cast::<Snapshot<'_, '_>>() };
    let context = if context.is_null() {
        &mut []
    } else {
        // SAFETY: the runtime passes a CONTEXT of this size, which is the callback's meanwhile.
        unsafe { std::slice::from_raw_parts_mut(context, context_size as usize) }
    };
    (snapshot.callback)(&mut SnapshotFrame {
        function: Some(function).filter(|function| function.0 != 0),
        ip,
        frame_info: FrameInfo::new(frame_info),
        context,
        client_data: snapshot.client_data,
    })
}

impl ProfilerInfo for RuntimeInfo {
    type Fatal = Infallible;

    /// The seed should be aligned to 16 bytes, as a CONTEXT is.
    fn do_stack_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Called<()> {
        let SnapshotRequest { thread, flags, seed, context_size: size, client_data } = *request;
        let seed = seed.map_or(null(), <[u8]>::as_ptr);
        let result = if let Some(callback) = callback {
            let mut snapshot = Snapshot { callback, client_data };
            let data = (&raw mut snapshot).cast();
            // SAFETY: the callback expects these data; the seed is a whole CONTEXT.
            unsafe {
                let callback = Some(on_frame as _);
                self.info.DoStackSnapshot(thread, callback, flags.0, data, seed, size)
            }
        } else {
            // SAFETY: without a callback the runtime refuses before it looks at anything.
            unsafe {
                let data = client_data as *mut c_void;
                self.info.DoStackSnapshot(thread, None, flags.0, data, seed, size)
            }
        };
        called(result, ())
    }

    fn get_function_from_ip(&self, ip: u64) -> Called<FunctionId> {
        // SAFETY: the runtime only looks the address up; here and below, the other pointers are to locals.
        one(FunctionId(0), |function| unsafe {
            self.info.GetFunctionFromIP(ip as *const u8, function)
        })
    }

    fn get_function_from_ip2(&self, ip: u64) -> Called<(FunctionId, ReJitId)> {
        let info = known(self.info4.as_ref())?;
        // SAFETY: as above.
        two((FunctionId(0), ReJitId(0)), |function, rejit| unsafe {
            info.GetFunctionFromIP2(ip as *const u8, function, rejit)
        })
    }

    fn get_function_from_ip3(&self, ip: u64) -> Called<(FunctionId, ReJitId)> {
        let info = known(self.info8.as_ref())?;
        // SAFETY: as above.
        two((FunctionId(0), ReJitId(0)), |function, rejit| unsafe {
            info.GetFunctionFromIP3(ip as *const u8, function, rejit)
        })
    }

    fn get_code_info(&self, function: FunctionId) -> Called<CodeRange> {
        // SAFETY: as above.
        let (start, size) = two((null(), 0), |start, size| unsafe {
            self.info.GetCodeInfo(function, start, size)
        })?;
        Ok(CodeRange { start: start as u64, size: size.into() })
    }

    fn get_code_info2(&self, function: FunctionId, ranges: &mut [CodeRange]) -> Called<u32> {
        let (room, ranges) = (ranges.len() as u32, ranges.as_mut_ptr());
        // SAFETY: here and below, there are `room` ranges.
        one(0, |len| unsafe { self.info.GetCodeInfo2(function, room, len, ranges) })
    }

    fn get_code_info3(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        ranges: &mut [CodeRange],
    ) -> Called<u32> {
        let (room, info) = (ranges.len() as u32, known(self.info4.as_ref())?);
        let ranges = ranges.as_mut_ptr();
        // SAFETY: as above.
        one(0, |len| unsafe { info.GetCodeInfo3(function, rejit, room, len, ranges) })
    }

    fn get_code_info4(&self, start: u64, ranges: &mut [CodeRange]) -> Called<u32> {
        let (room, info) = (ranges.len() as u32, known(self.info9.as_ref())?);
        let ranges = ranges.as_mut_ptr();
        // SAFETY: as above.
        one(0, |len| unsafe { info.GetCodeInfo4(start, room, len, ranges) })
    }

    fn get_function_info2(
        &self,
        function: FunctionId,
        frame_info: Option<FrameInfo<'_>>,
        type_arguments: u32,
    ) -> Called<FunctionInfo> {
        let (mut class, mut module, mut token) = (ClassId(0), ModuleId(0), 0);
        let mut arguments = vec![ClassId(0); type_arguments as usize];
        let handle = frame_info.map_or(0, FrameInfo::handle);
        let (room, types) = (type_arguments, arguments.as_mut_ptr());
        let (of, within, named) = (&raw mut class, &raw mut module, &raw mut token);
        // SAFETY: the pointers are to locals, and the room is that of `arguments`.
        let len = one(0, |len| unsafe {
            self.info.GetFunctionInfo2(function, handle, of, within, named, room, len, types)
        })?;
        arguments.truncate(len as usize);
        Ok(FunctionInfo {
            class: class.0,
            module: module.0,
            token,
            type_argument_count: len,
            type_arguments: arguments.into_iter().map(|class| class.0).collect(),
        })
    }

    fn get_class_from_token_and_type_args(
        &self,
        module: u64,
        token: u32,
        type_arguments: &[u64],
    ) -> Called<u64> {
        let (len, module) = (type_arguments.len() as u32, ModuleId(module));
        let arguments: *const ClassId = type_arguments.as_ptr().cast();
        // SAFETY: there are `len` ClassIDs, which are words; the other pointer is to a local.
        let class = one(ClassId(0), |class| unsafe {
            self.info.GetClassFromTokenAndTypeArgs(module, token, len, arguments, class)
        })?;
        Ok(class.0)
    }

    fn get_current_thread_id(&self) -> Called<ThreadId> {
        // SAFETY: here and below, the pointer is to a local.
        one(ThreadId(0), |thread| unsafe { self.info.GetCurrentThreadID(thread) })
    }

    fn get_thread_info(&self, thread: ThreadId) -> Called<u32> {
        // SAFETY: as above.
        one(0, |os_thread| unsafe { self.info.GetThreadInfo(thread, os_thread) })
    }

    fn get_handle_from_thread(&self, thread: ThreadId) -> Called<u64> {
        // SAFETY: as above.
        let handle =
            one(null_mut(), |handle| unsafe { self.info.GetHandleFromThread(thread, handle) })?;
        Ok(handle as u64)
    }

    fn enum_threads(&self) -> Called<Vec<ThreadId>> {
        let info = known(self.info4.as_ref())?;
        // SAFETY: as above.
        let threads = one(null_mut(), |threads| unsafe { info.EnumThreads(threads) })?;
        // SAFETY: a successful call gives an enumerator with a reference.
        let threads = unsafe { ICorProfilerThreadEnum::from_raw(threads) };
        let threads = threads.ok_or(HResult::UNEXPECTED)?;
        let mut found = Vec::new();
        loop {
            // SAFETY: the pointers are to locals, and there is room for one.
            let next = two((ThreadId(0), 0), |next, count| unsafe { threads.Next(1, next, count) });
            match next? {
                (_, 0) => return Ok(found),
                (next, _) => found.push(next),
            }
        }
    }

    fn initialize_current_thread(&self) -> Called<()> {
        // SAFETY: here and below, the call has no pointers.
        called(unsafe { known(self.info4.as_ref())?.InitializeCurrentThread() }, ())
    }

    fn force_gc(&self) -> Called<()> {
        // SAFETY: as above.
        called(unsafe { self.info.ForceGC() }, ())
    }

    fn suspend_runtime(&self) -> Called<()> {
        // SAFETY: as above.
        called(unsafe { known(self.info10.as_ref())?.SuspendRuntime() }, ())
    }

    fn resume_runtime(&self) -> Called<()> {
        // SAFETY: as above.
        called(unsafe { known(self.info10.as_ref())?.ResumeRuntime() }, ())
    }

    fn get_event_mask(&self) -> Called<EventMask> {
        // SAFETY: the pointer is to a local.
        one(0, |mask| unsafe { self.info.GetEventMask(mask) }).map(EventMask)
    }

    fn set_event_mask(&self, mask: EventMask) -> Called<()> {
        // SAFETY: as for `suspend_runtime`.
        called(unsafe { self.info.SetEventMask(mask.0) }, ())
    }
}
