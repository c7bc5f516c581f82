//! Modules, assemblies, the AppDomain, classes, and the way to their metadata; and the methods of
//! `ICorProfilerInfo` and 2 and 3, which the other files answer.

use super::{Call, Info};
use crate::import::Import;
use crate::out::{Answer, count, put, put_all, wide};
use crate::results;
use clr_com::{
    AppDomainId, AssemblyId, ClassId, FrameHandle, Guid, Handle, ICorProfilerInfo2Methods,
    ICorProfilerInfo3Methods, ICorProfilerInfoMethods, ModuleId, ProcessId, StackSnapshotCallback,
    Token,
};
use clr_runtime::metadata::{APP_DOMAIN, TypeDef};
use clr_runtime::profiling::Accepts;
use clr_walker::profiling::{CodeRange, FunctionId, HResult, ProfilerInfo as _, ThreadId};
use std::ffi::c_void;

/// The process's id: always the same.
const PROCESS: u64 = 0x2A4;
/// `COR_PRF_MODULE_DISK`, and `COR_PRF_MODULE_FLAT_LAYOUT`, which modules have on Linux (observed).
const MODULE_DISK: u32 = 1;
const FLAT_LAYOUT: u32 = 0x20;
/// The bits of CorOpenFlags that GetModuleMetaData knows: `ofWrite` and `ofNoTransform`.
const OPEN_FLAGS: u32 = 0x1001;

impl Call<'_> {
    #[expect(clippy::too_many_arguments, reason = "as documented")]
    unsafe fn get_module_info(
        &self,
        module: ModuleId,
        base: *mut *const u8,
        room: u32,
        len: *mut u32,
        name: *mut u16,
        assembly: *mut AssemblyId,
        flags: *mut u32,
    ) -> Answer {
        self.caller().begin(Accepts::All)?;
        let module = self.module(module.0)?;
        let path = wide(&module.path);
        let is_flat = self.session.generation.is_unix();
        let mut result = HResult::OK;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(flags, MODULE_DISK | if is_flat { FLAT_LAYOUT } else { 0 });
            if !name.is_null() && room > 0 {
                if (room as usize) < path.len() {
                    put(name, 0);
                    result = results::INSUFFICIENT_BUFFER;
                } else {
                    put_all(name, room, &path);
                }
            }
            put(len, count(path.len()));
            put(base, module.base as *const u8);
            put(assembly, AssemblyId(module.assembly));
        }
        Ok(result)
    }

    unsafe fn get_assembly_info(
        &self,
        assembly: AssemblyId,
        (room, len, name): (u32, *mut u32, *mut u16),
        app_domain: *mut AppDomainId,
        module: *mut ModuleId,
    ) -> Answer {
        self.caller().begin(Accepts::Callbacks)?;
        let Some(found) = self.runtime().metadata.assembly(assembly.0) else {
            return self.unknown(assembly.0);
        };
        let text = wide(&found.assembly_name);
        // SAFETY: the profiler's pointers.
        unsafe {
            put_short(name, room, &text);
            put(len, count(text.len()));
            put(app_domain, AppDomainId(APP_DOMAIN));
            put(module, ModuleId(found.id));
        }
        Ok(HResult::OK)
    }

    unsafe fn get_app_domain_info(
        &self,
        app_domain: AppDomainId,
        (room, len, name): (u32, *mut u32, *mut u16),
        process: *mut ProcessId,
    ) -> Answer {
        self.caller().begin(Accepts::TriggeringCallbacks)?;
        if app_domain.0 != APP_DOMAIN {
            return self.unknown(app_domain.0);
        }
        let text = wide(self.session.generation.app_domain_name());
        // SAFETY: the profiler's pointers.
        unsafe {
            put_short(name, room, &text);
            put(len, count(text.len()));
            put(process, ProcessId(PROCESS));
        }
        Ok(HResult::OK)
    }

    unsafe fn get_class_info(
        &self,
        class: ClassId,
        module: *mut ModuleId,
        token: *mut Token,
    ) -> Answer {
        self.caller().begin(Accepts::All)?;
        let (of_class, found) = self.class(class.0)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(module, ModuleId(of_class.id));
            put(token, found.token);
        }
        Ok(HResult::OK)
    }

    unsafe fn get_class_info2(
        &self,
        class: ClassId,
        (module, token): (*mut ModuleId, *mut Token),
        parent: *mut ClassId,
        (room, len, type_args): (u32, *mut u32, *mut ClassId),
    ) -> Answer {
        self.caller().begin(Accepts::All)?;
        if class.0 == 0 || room != 0 && type_args.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let (of_class, found) = self.class(class.0)?;
        let metadata = &self.runtime().metadata;
        let arity = count(of_class.parameters_of(found.token).count());
        let filled = arity.min(room);
        let arguments = vec![ClassId(metadata.canonical_class()); filled as usize];
        // SAFETY: the profiler's pointers.
        unsafe {
            put(parent, ClassId(if has_parent(found) { metadata.object_class() } else { 0 }));
            put(module, ModuleId(of_class.id));
            put(token, found.token);
            put(len, if room == 0 { arity } else { filled });
            put_all(type_args, room, &arguments);
        }
        Ok(HResult::OK)
    }

    unsafe fn get_metadata(
        &self,
        module: ModuleId,
        flags: u32,
        riid: *const Guid,
        import: *mut *mut c_void,
    ) -> Answer {
        self.caller().begin(Accepts::Callbacks)?;
        if module.0 != 0 && flags & !OPEN_FLAGS != 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let id = self.module(module.0)?.id;
        // SAFETY: the profiler's pointers.
        unsafe { self.import(id, riid, import) }
    }

    /// Gives out the metadata of a module, if it is wanted.
    unsafe fn import(&self, module: u64, riid: *const Guid, import: *mut *mut c_void) -> Answer {
        if import.is_null() {
            return Ok(HResult::OK);
        }
        if riid.is_null() {
            return self.null("riid");
        }
        // SAFETY: it is not NULL, so it points to an id: the profiler's promise.
        let iid = unsafe { riid.read_unaligned() };
        let (result, object) = Import::give(self.session, module, iid);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(import, object) };
        Ok(result)
    }

    unsafe fn get_token_and_metadata(
        &self,
        function: FunctionId,
        riid: *const Guid,
        import: *mut *mut c_void,
        token: *mut Token,
    ) -> Answer {
        self.caller().begin(Accepts::Callbacks)?;
        self.check_function(function);
        let info = self.caller().get_function_info2(function, None, 0)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(token, info.token);
            self.import(info.module, riid, import)
        }
    }
}

/// Returns true if a class has a base class.
const fn has_parent(class: &TypeDef) -> bool {
    class.extends & 0x00FF_FFFF != 0
}

/// Writes a name as GetAssemblyInfo and GetAppDomainInfo do: cut off to one unit less than there is
/// room for.
unsafe fn put_short(to: *mut u16, room: u32, text: &[u16]) {
    if to.is_null() || room == 0 {
        return;
    }
    let units = text.split_last().map_or(&[][..], |(_, units)| units);
    let kept = units.get(..units.len().min(room as usize - 1)).unwrap_or(units);
    // SAFETY: `kept` and its final 0 are at most `room` units.
    unsafe {
        put_all(to, room, kept);
        to.add(kept.len()).write_unaligned(0);
    }
}

impl ICorProfilerInfoMethods for Info {
    unsafe fn GetCodeInfo(
        &self,
        function: FunctionId,
        start: *mut *const u8,
        size: *mut u32,
    ) -> HResult {
        // SAFETY: the profiler's pointers, here and below.
        self.on("GetCodeInfo", |call| unsafe { call.get_code_info(function, start, size) })
    }

    unsafe fn GetEventMask(&self, events: *mut u32) -> HResult {
        // SAFETY: as above.
        self.on("GetEventMask", |call| unsafe { call.get_events(events, None) })
    }

    unsafe fn GetFunctionFromIP(&self, ip: *const u8, function: *mut FunctionId) -> HResult {
        // SAFETY: as above.
        self.on("GetFunctionFromIP", |call| unsafe { call.get_function_from_ip(ip, function) })
    }

    unsafe fn GetHandleFromThread(&self, thread: ThreadId, handle: *mut Handle) -> HResult {
        // SAFETY: as above.
        self.on("GetHandleFromThread", |call| unsafe { call.get_handle(thread, handle) })
    }

    unsafe fn GetThreadInfo(&self, thread: ThreadId, os_thread: *mut u32) -> HResult {
        // SAFETY: as above.
        self.on("GetThreadInfo", |call| unsafe { call.get_thread_info(thread, os_thread) })
    }

    unsafe fn GetCurrentThreadID(&self, thread: *mut ThreadId) -> HResult {
        // SAFETY: as above.
        self.on("GetCurrentThreadID", |call| unsafe { call.get_current_thread(thread) })
    }

    unsafe fn GetClassIDInfo(
        &self,
        class: ClassId,
        module: *mut ModuleId,
        type_def_token: *mut Token,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetClassIDInfo", |call| unsafe {
            call.get_class_info(class, module, type_def_token)
        })
    }

    unsafe fn GetFunctionInfo(
        &self,
        function: FunctionId,
        class: *mut ClassId,
        module: *mut ModuleId,
        token: *mut Token,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetFunctionInfo", |call| unsafe {
            call.get_function_info(function, class, module, token)
        })
    }

    unsafe fn SetEventMask(&self, events: u32) -> HResult {
        self.on("SetEventMask", |call| call.set_events(events, 0))
    }

    unsafe fn GetTokenAndMetaDataFromFunction(
        &self,
        function: FunctionId,
        riid: *const Guid,
        import: *mut *mut c_void,
        token: *mut Token,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetTokenAndMetaDataFromFunction", |call| unsafe {
            call.get_token_and_metadata(function, riid, import, token)
        })
    }

    unsafe fn GetModuleInfo(
        &self,
        module: ModuleId,
        base_load_address: *mut *const u8,
        name_room: u32,
        name_len: *mut u32,
        name: *mut u16,
        assembly: *mut AssemblyId,
    ) -> HResult {
        let (base, flags) = (base_load_address, std::ptr::null_mut());
        // SAFETY: as above.
        self.on("GetModuleInfo", |call| unsafe {
            call.get_module_info(module, base, name_room, name_len, name, assembly, flags)
        })
    }

    unsafe fn GetModuleMetaData(
        &self,
        module: ModuleId,
        open_flags: u32,
        riid: *const Guid,
        out: *mut *mut c_void,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetModuleMetaData", |call| unsafe {
            call.get_metadata(module, open_flags, riid, out)
        })
    }

    unsafe fn GetAppDomainInfo(
        &self,
        app_domain: AppDomainId,
        name_room: u32,
        name_len: *mut u32,
        name: *mut u16,
        process: *mut ProcessId,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetAppDomainInfo", |call| unsafe {
            call.get_app_domain_info(app_domain, (name_room, name_len, name), process)
        })
    }

    unsafe fn GetAssemblyInfo(
        &self,
        assembly: AssemblyId,
        name_room: u32,
        name_len: *mut u32,
        name: *mut u16,
        app_domain: *mut AppDomainId,
        module: *mut ModuleId,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetAssemblyInfo", |call| unsafe {
            call.get_assembly_info(assembly, (name_room, name_len, name), app_domain, module)
        })
    }
}

impl ICorProfilerInfo2Methods for Info {
    unsafe fn DoStackSnapshot(
        &self,
        thread: ThreadId,
        callback: StackSnapshotCallback,
        info_flags: u32,
        client_data: *mut c_void,
        context: *const u8,
        context_size: u32,
    ) -> HResult {
        // SAFETY: as above.
        self.on("DoStackSnapshot", |call| unsafe {
            call.walk((thread, info_flags), callback, client_data, (context, context_size))
        })
    }

    unsafe fn GetFunctionInfo2(
        &self,
        function: FunctionId,
        frame_info: FrameHandle,
        class: *mut ClassId,
        module: *mut ModuleId,
        token: *mut Token,
        type_args_room: u32,
        type_args_len: *mut u32,
        type_args: *mut ClassId,
    ) -> HResult {
        let (room, len) = (type_args_room, type_args_len);
        // SAFETY: as above.
        self.on("GetFunctionInfo2", |call| unsafe {
            call.get_function_info2(
                function, frame_info, class, module, token, room, len, type_args,
            )
        })
    }

    unsafe fn GetClassIDInfo2(
        &self,
        class: ClassId,
        module: *mut ModuleId,
        type_def_token: *mut Token,
        parent_class: *mut ClassId,
        type_args_room: u32,
        type_args_len: *mut u32,
        type_args: *mut ClassId,
    ) -> HResult {
        let arguments = (type_args_room, type_args_len, type_args);
        // SAFETY: as above.
        self.on("GetClassIDInfo2", |call| unsafe {
            call.get_class_info2(class, (module, type_def_token), parent_class, arguments)
        })
    }

    unsafe fn GetCodeInfo2(
        &self,
        function: FunctionId,
        ranges_room: u32,
        ranges_len: *mut u32,
        ranges: *mut CodeRange,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetCodeInfo2", |call| unsafe {
            call.check_function(function);
            call.code_info((ranges_room, ranges_len, ranges), |ranges| {
                call.caller().get_code_info2(function, ranges)
            })
        })
    }

    unsafe fn GetThreadAppDomain(&self, thread: ThreadId, app_domain: *mut AppDomainId) -> HResult {
        // SAFETY: as above; an AppDomainId is its number.
        self.on("GetThreadAppDomain", |call| unsafe {
            call.get_thread_app_domain(thread, app_domain.cast())
        })
    }
}

impl ICorProfilerInfo3Methods for Info {
    unsafe fn EnumModules(&self, enumerator: *mut *mut c_void) -> HResult {
        // SAFETY: as above.
        self.on("EnumModules", |call| unsafe { call.enum_modules(enumerator) })
    }

    unsafe fn GetRuntimeInformation(
        &self,
        clr_instance_id: *mut u16,
        runtime_type: *mut u32,
        major_version: *mut u16,
        minor_version: *mut u16,
        build_number: *mut u16,
        qfe_version: *mut u16,
        version_string_room: u32,
        version_string_len: *mut u32,
        version_string: *mut u16,
    ) -> HResult {
        let parts = [major_version, minor_version, build_number, qfe_version];
        let (room, len, text) = (version_string_room, version_string_len, version_string);
        // SAFETY: as above.
        self.on("GetRuntimeInformation", |call| unsafe {
            call.get_runtime_information(clr_instance_id, runtime_type, parts, room, len, text)
        })
    }

    unsafe fn GetModuleInfo2(
        &self,
        module: ModuleId,
        base_load_address: *mut *const u8,
        name_room: u32,
        name_len: *mut u32,
        name: *mut u16,
        assembly: *mut AssemblyId,
        module_flags: *mut u32,
    ) -> HResult {
        let (base, flags) = (base_load_address, module_flags);
        // SAFETY: as above.
        self.on("GetModuleInfo2", |call| unsafe {
            call.get_module_info(module, base, name_room, name_len, name, assembly, flags)
        })
    }
}
