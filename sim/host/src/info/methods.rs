//! The methods of `ICorProfilerInfo`, 2 and 3, which the other files answer.

use super::Info;
use crate::elt::SetBy;
use clr_com::{
    AppDomainId, ArgumentRange, AssemblyId, ClassId, EltInfo, FrameHandle, FunctionArguments,
    FunctionHook, FunctionIdMapper, Guid, Handle, ICorProfilerInfo2Methods,
    ICorProfilerInfo3Methods, ICorProfilerInfoMethods, ModuleId, ObjectId, ProcessId,
    StackSnapshotCallback, Token,
};
use clr_walker::profiling::{CodeRange, FunctionId, HResult, ProfilerInfo as _, ThreadId};
use std::ffi::c_void;

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

    unsafe fn GetClassFromObject(&self, object: ObjectId, class: *mut ClassId) -> HResult {
        // SAFETY: as above.
        self.on("GetClassFromObject", |call| unsafe { call.get_class_from_object(object, class) })
    }

    unsafe fn GetObjectSize(&self, object: ObjectId, size: *mut u32) -> HResult {
        // SAFETY: as above.
        self.on("GetObjectSize", |call| unsafe { call.get_object_size(object, size) })
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

    unsafe fn ForceGC(&self) -> HResult {
        self.on("ForceGC", |call| {
            call.caller().force_gc()?;
            Ok(HResult::OK)
        })
    }

    unsafe fn SetEnterLeaveFunctionHooks(
        &self,
        enter: FunctionHook,
        leave: FunctionHook,
        tailcall: FunctionHook,
    ) -> HResult {
        let hooks = [enter, leave, tailcall];
        self.on("SetEnterLeaveFunctionHooks", |call| call.set_hooks(SetBy::One, hooks))
    }

    unsafe fn SetFunctionIDMapper(&self, mapper: FunctionIdMapper) -> HResult {
        self.on("SetFunctionIDMapper", |call| call.set_mapper(mapper, None))
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

    unsafe fn SetEnterLeaveFunctionHooks2(
        &self,
        enter: FunctionHook,
        leave: FunctionHook,
        tailcall: FunctionHook,
    ) -> HResult {
        let hooks = [enter, leave, tailcall];
        self.on("SetEnterLeaveFunctionHooks2", |call| call.set_hooks(SetBy::Two, hooks))
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
                let count = call.caller().get_code_info2(function, ranges)?;
                call.check_compiled(function)?;
                Ok(count)
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
    unsafe fn RequestProfilerDetach(&self, milliseconds: u32) -> HResult {
        self.on("RequestProfilerDetach", |call| call.request_detach(milliseconds))
    }

    unsafe fn SetFunctionIDMapper2(
        &self,
        mapper: FunctionIdMapper,
        client_data: *mut c_void,
    ) -> HResult {
        self.on("SetFunctionIDMapper2", |call| call.set_mapper(mapper, Some(client_data)))
    }

    unsafe fn SetEnterLeaveFunctionHooks3(
        &self,
        enter: FunctionHook,
        leave: FunctionHook,
        tailcall: FunctionHook,
    ) -> HResult {
        let hooks = [enter, leave, tailcall];
        self.on("SetEnterLeaveFunctionHooks3", |call| call.set_hooks(SetBy::Three, hooks))
    }

    unsafe fn SetEnterLeaveFunctionHooks3WithInfo(
        &self,
        enter: FunctionHook,
        leave: FunctionHook,
        tailcall: FunctionHook,
    ) -> HResult {
        let hooks = [enter, leave, tailcall];
        self.on("SetEnterLeaveFunctionHooks3WithInfo", |call| {
            call.set_hooks(SetBy::ThreeWithInfo, hooks)
        })
    }

    unsafe fn GetFunctionEnter3Info(
        &self,
        function: FunctionId,
        elt_info: EltInfo,
        frame_info: *mut FrameHandle,
        argument_info_size: *mut u32,
        argument_info: *mut FunctionArguments,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetFunctionEnter3Info", |call| unsafe {
            let hook = (function, elt_info);
            call.enter_info(hook, frame_info, argument_info_size, argument_info)
        })
    }

    unsafe fn GetFunctionLeave3Info(
        &self,
        function: FunctionId,
        elt_info: EltInfo,
        frame_info: *mut FrameHandle,
        retval_range: *mut ArgumentRange,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetFunctionLeave3Info", |call| unsafe {
            call.leave_info((function, elt_info), frame_info, Some(retval_range))
        })
    }

    unsafe fn GetFunctionTailcall3Info(
        &self,
        function: FunctionId,
        elt_info: EltInfo,
        frame_info: *mut FrameHandle,
    ) -> HResult {
        // SAFETY: as above.
        self.on("GetFunctionTailcall3Info", |call| unsafe {
            call.leave_info((function, elt_info), frame_info, None)
        })
    }

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
