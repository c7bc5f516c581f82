//! `ICorProfilerInfo` as the walker calls it.

use crate::{
    ClassId, FrameHandle, ICorProfilerInfo2, ICorProfilerInfo3, ICorProfilerInfo4,
    ICorProfilerInfo8, ICorProfilerInfo9, ICorProfilerInfo10, ICorProfilerThreadEnum, IUnknown,
    Interface, ModuleId,
};
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, HResult, ProfilerInfo,
    ReJitId, SnapshotCallback, SnapshotFlags, SnapshotFrame, ThreadId,
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
    #[must_use]
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
            let (none, text) = (null_mut(), null_mut());
            info.GetRuntimeInformation(
                none,
                null_mut(),
                major,
                minor,
                build,
                null_mut(),
                0,
                null_mut(),
                text,
            )
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
        let mut len = 0;
        let room = starts.len() as u32;
        let info = known(self.info9.as_ref())?;
        // SAFETY: the pointers are to a local and to `room` elements.
        let result = unsafe {
            let starts = starts.as_mut_ptr();
            info.GetNativeCodeStartAddresses(function, rejit, room, &raw mut len, starts)
        };
        called(result, len)
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

    /// The context should be aligned to 16 bytes, as a CONTEXT is.
    fn do_stack_snapshot(
        &self,
        thread: ThreadId,
        callback: Option<&mut SnapshotCallback<'_>>,
        flags: SnapshotFlags,
        client_data: u64,
        context: Option<&[u8]>,
        context_size: u32,
    ) -> Called<()> {
        let context = context.map_or(null(), <[u8]>::as_ptr);
        let result = if let Some(callback) = callback {
            let mut snapshot = Snapshot { callback, client_data };
            let data = (&raw mut snapshot).cast();
            // SAFETY: the callback expects these data; the context is a whole CONTEXT.
            unsafe {
                let callback = Some(on_frame as _);
                self.info.DoStackSnapshot(thread, callback, flags.0, data, context, context_size)
            }
        } else {
            // SAFETY: without a callback the runtime refuses before it looks at anything.
            unsafe {
                let data = client_data as *mut c_void;
                self.info.DoStackSnapshot(thread, None, flags.0, data, context, context_size)
            }
        };
        called(result, ())
    }

    fn get_function_from_ip(&self, ip: u64) -> Called<FunctionId> {
        let mut function = FunctionId(0);
        // SAFETY: the runtime only looks the address up; the other pointer is to a local.
        let result = unsafe { self.info.GetFunctionFromIP(ip as *const u8, &raw mut function) };
        called(result, function)
    }

    fn get_function_from_ip2(&self, ip: u64) -> Called<(FunctionId, ReJitId)> {
        let (mut function, mut rejit) = (FunctionId(0), ReJitId(0));
        let info = known(self.info4.as_ref())?;
        let ip = ip as *const u8;
        // SAFETY: as in `get_function_from_ip`.
        let result = unsafe { info.GetFunctionFromIP2(ip, &raw mut function, &raw mut rejit) };
        called(result, (function, rejit))
    }

    fn get_function_from_ip3(&self, ip: u64) -> Called<(FunctionId, ReJitId)> {
        let (mut function, mut rejit) = (FunctionId(0), ReJitId(0));
        let info = known(self.info8.as_ref())?;
        let ip = ip as *const u8;
        // SAFETY: as in `get_function_from_ip`.
        let result = unsafe { info.GetFunctionFromIP3(ip, &raw mut function, &raw mut rejit) };
        called(result, (function, rejit))
    }

    fn get_code_info(&self, function: FunctionId) -> Called<CodeRange> {
        let (mut start, mut size) = (null(), 0);
        // SAFETY: the pointers are to locals.
        let result = unsafe { self.info.GetCodeInfo(function, &raw mut start, &raw mut size) };
        called(result, CodeRange { start: start as u64, size: size.into() })
    }

    fn get_code_info2(&self, function: FunctionId, ranges: &mut [CodeRange]) -> Called<u32> {
        let (mut len, room) = (0, ranges.len() as u32);
        // SAFETY: the pointers are to a local and to `room` elements.
        let result =
            unsafe { self.info.GetCodeInfo2(function, room, &raw mut len, ranges.as_mut_ptr()) };
        called(result, len)
    }

    fn get_code_info3(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        ranges: &mut [CodeRange],
    ) -> Called<u32> {
        let (mut len, room) = (0, ranges.len() as u32);
        let info = known(self.info4.as_ref())?;
        // SAFETY: as in `get_code_info2`.
        let result =
            unsafe { info.GetCodeInfo3(function, rejit, room, &raw mut len, ranges.as_mut_ptr()) };
        called(result, len)
    }

    fn get_code_info4(&self, start: u64, ranges: &mut [CodeRange]) -> Called<u32> {
        let (mut len, room) = (0, ranges.len() as u32);
        let info = known(self.info9.as_ref())?;
        // SAFETY: as in `get_code_info2`.
        let result = unsafe { info.GetCodeInfo4(start, room, &raw mut len, ranges.as_mut_ptr()) };
        called(result, len)
    }

    fn get_function_info2(
        &self,
        function: FunctionId,
        frame_info: Option<FrameInfo<'_>>,
        type_arguments: u32,
    ) -> Called<FunctionInfo> {
        let (mut class, mut module, mut token) = (ClassId(0), ModuleId(0), 0);
        let mut arguments = vec![ClassId(0); type_arguments as usize];
        let mut len = 0;
        let handle = frame_info.map_or(0, FrameInfo::handle);
        // SAFETY: the pointers are to locals, and the room is that of `arguments`.
        let result = unsafe {
            let (class, module) = (&raw mut class, &raw mut module);
            let (token, len, room) = (&raw mut token, &raw mut len, type_arguments);
            let arguments = arguments.as_mut_ptr();
            self.info.GetFunctionInfo2(function, handle, class, module, token, room, len, arguments)
        };
        arguments.truncate(called(result, len)? as usize);
        Ok(FunctionInfo {
            class: class.0,
            module: module.0,
            token,
            type_argument_count: len,
            type_arguments: arguments.into_iter().map(|class| class.0).collect(),
        })
    }

    fn get_current_thread_id(&self) -> Called<ThreadId> {
        let mut thread = ThreadId(0);
        // SAFETY: the pointer is to a local.
        let result = unsafe { self.info.GetCurrentThreadID(&raw mut thread) };
        called(result, thread)
    }

    fn get_thread_info(&self, thread: ThreadId) -> Called<u32> {
        let mut os_thread = 0;
        // SAFETY: the pointer is to a local.
        let result = unsafe { self.info.GetThreadInfo(thread, &raw mut os_thread) };
        called(result, os_thread)
    }

    fn get_handle_from_thread(&self, thread: ThreadId) -> Called<u64> {
        let mut handle = null_mut();
        // SAFETY: the pointer is to a local.
        let result = unsafe { self.info.GetHandleFromThread(thread, &raw mut handle) };
        called(result, handle as u64)
    }

    fn enum_threads(&self) -> Called<Vec<ThreadId>> {
        let mut threads = null_mut();
        // SAFETY: the pointer is to a local.
        let result = unsafe { known(self.info4.as_ref())?.EnumThreads(&raw mut threads) };
        called(result, ())?;
        // SAFETY: a successful call gives an enumerator with a reference.
        let threads = unsafe { ICorProfilerThreadEnum::from_raw(threads) };
        let threads = threads.ok_or(HResult::UNEXPECTED)?;
        let mut found = Vec::new();
        loop {
            let (mut next, mut count) = (ThreadId(0), 0);
            // SAFETY: the pointers are to locals, and there is room for one.
            let result = unsafe { threads.Next(1, &raw mut next, &raw mut count) };
            if called(result, count)? == 0 {
                return Ok(found);
            }
            found.push(next);
        }
    }

    fn initialize_current_thread(&self) -> Called<()> {
        // SAFETY: the call has no arguments.
        called(unsafe { known(self.info4.as_ref())?.InitializeCurrentThread() }, ())
    }

    fn suspend_runtime(&self) -> Called<()> {
        // SAFETY: the call has no arguments.
        called(unsafe { known(self.info10.as_ref())?.SuspendRuntime() }, ())
    }

    fn resume_runtime(&self) -> Called<()> {
        // SAFETY: the call has no arguments.
        called(unsafe { known(self.info10.as_ref())?.ResumeRuntime() }, ())
    }

    fn get_event_mask(&self) -> Called<EventMask> {
        let mut mask = 0;
        // SAFETY: the pointer is to a local.
        let result = unsafe { self.info.GetEventMask(&raw mut mask) };
        called(result, EventMask(mask))
    }

    fn set_event_mask(&self, mask: EventMask) -> Called<()> {
        // SAFETY: the call has no pointers.
        called(unsafe { self.info.SetEventMask(mask.0) }, ())
    }
}
