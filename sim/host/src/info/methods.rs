//! The methods of `ICorProfilerInfo` to 15 that are simulated, each with its answer.

use super::{Call, Info};
use crate::out::{Answer, put};
use clr_com::{
    AppDomainId, ArgumentRange, AssemblyId, Bool, ClassId, ClauseInfo, ContextId, EltInfo,
    EventData, EventParameter, EventProviderConfig, FieldOffset, FrameHandle, FunctionArguments,
    FunctionHook, FunctionIdMapper, GenerationRange, Guid, Handle, ICorProfilerInfo2Methods,
    ICorProfilerInfo4Methods, ICorProfilerInfo8Methods, IlMap, IlToNative, ModuleId, NonGcRange,
    ObjectHandleId, ObjectId, ProcessId, StackSnapshotCallback, Token,
};
use clr_walker::profiling::{CodeRange, FunctionId, HResult, ProfilerInfo as _, ReJitId, ThreadId};
use std::ffi::c_void;

/// Largest number of type parameters: their numbers have 16 bits (ECMA-335, II.22.20).
const MOST_PARAMETERS: u32 = 0x1_0000;

/// Lists the methods of each interface: `=>` a method of [`Call`], or `:` one of `ProfilerInfo` without
/// results.
macro_rules! answers {
    ($($methods:ident { $($method:ident $how:tt $answer:ident;)* })*) => {$(
        #[allow(clippy::too_many_arguments, reason = "as documented")]
        impl clr_com::$methods for Info {
            $(clr_com::$methods!($method $how $answer);)*
        }
    )*};
}

answers! {
    ICorProfilerInfoMethods {
        GetClassFromObject => get_class_from_object;
        GetEventMask => get_events;
        GetFunctionFromIP => get_function_from_ip;
        GetHandleFromThread => get_handle;
        GetObjectSize => get_object_size;
        GetThreadInfo => get_thread_info;
        GetCurrentThreadID => get_current_thread;
        GetClassIDInfo => get_class_info;
        GetFunctionInfo => get_function_info;
        GetCodeInfo => get_code_info;
        SetEventMask => set_low_events;
        SetEnterLeaveFunctionHooks => set_hooks_1;
        SetFunctionIDMapper => set_mapper;
        GetTokenAndMetaDataFromFunction => get_token_and_metadata;
        GetModuleInfo => get_module_info;
        GetModuleMetaData => get_metadata;
        ForceGC: force_gc;
        GetAppDomainInfo => get_app_domain_info;
        GetAssemblyInfo => get_assembly_info;
        GetClassFromToken => class_of_token;
        GetFunctionFromToken => function_of_token;
        IsArrayClass => is_array_class;
        SetILInstrumentedCodeMap => set_il_map;
        GetThreadContext => thread_context;
        GetILToNativeMapping => map;
        GetILFunctionBody => get_il_body;
        GetILFunctionBodyAllocator => get_il_allocator;
        SetILFunctionBody => set_il_body;
    }
    ICorProfilerInfo2Methods {
        DoStackSnapshot => walk;
        SetEnterLeaveFunctionHooks2 => set_hooks_2;
        GetFunctionInfo2 => get_function_info2;
        GetClassIDInfo2 => get_class_info2;
        GetCodeInfo2 => get_code_info2;
        GetClassFromTokenAndTypeArgs => get_class;
        GetThreadAppDomain => get_thread_app_domain;
        GetStringLayout => string_layout;
        GetClassLayout => class_layout;
        GetFunctionFromTokenAndTypeArgs => function_of_token_and_arguments;
        EnumModuleFrozenObjects => frozen_objects;
        GetArrayObjectInfo => array_info;
        GetBoxClassLayout => box_layout;
        GetRVAStaticAddress => rva_static;
        GetAppDomainStaticAddress => domain_static;
        GetThreadStaticAddress => thread_static;
        GetStaticFieldInfo => static_info;
        GetGenerationBounds => generation_bounds;
        GetObjectGeneration => object_generation;
        GetNotifiedExceptionClauseInfo => clause_info;
    }
    ICorProfilerInfo3Methods {
        EnumModules => enum_modules;
        GetRuntimeInformation => get_runtime_information;
        RequestProfilerDetach => request_detach;
        SetFunctionIDMapper2 => set_mapper2;
        SetEnterLeaveFunctionHooks3 => set_hooks_3;
        SetEnterLeaveFunctionHooks3WithInfo => set_hooks_3_with_info;
        GetFunctionEnter3Info => enter_info;
        GetFunctionLeave3Info => leave_info;
        GetFunctionTailcall3Info => tail_call_info;
        GetModuleInfo2 => get_module_info2;
        EnumJITedFunctions => enum_jitted;
        GetStringLayout2 => string_layout_2;
        GetThreadStaticAddress2 => thread_static_2;
        GetAppDomainsContainingModule => app_domains_of;
    }
    ICorProfilerInfo4Methods {
        EnumThreads => enum_threads;
        InitializeCurrentThread: initialize_current_thread;
        GetCodeInfo3 => get_code_info3;
        GetObjectSize2 => get_object_size;
        GetFunctionFromIP2 => get_function_from_ip2;
        RequestReJIT => request_rejit;
        RequestRevert => request_revert;
        GetReJITIDs => rejit_ids;
        GetILToNativeMapping2 => map_of_version;
        EnumJITedFunctions2 => enum_jitted;
    }
    ICorProfilerInfo5Methods {
        GetEventMask2 => get_all_events;
        SetEventMask2 => set_events;
    }
    ICorProfilerInfo6Methods {
        EnumNgenModuleMethodsInliningThisMethod => inliners;
    }
    ICorProfilerInfo7Methods {
        ApplyMetaData => apply_metadata;
        GetInMemorySymbolsLength => symbols_length;
        ReadInMemorySymbols => read_symbols;
    }
    ICorProfilerInfo8Methods {
        IsFunctionDynamic => is_dynamic;
        GetFunctionFromIP3 => get_function_from_ip3;
        GetDynamicFunctionInfo => dynamic_info;
    }
    ICorProfilerInfo9Methods {
        GetCodeInfo4 => get_code_info4;
        GetNativeCodeStartAddresses => code_starts;
        GetILToNativeMapping3 => map_of_code;
    }
    ICorProfilerInfo10Methods {
        SuspendRuntime: suspend_runtime;
        ResumeRuntime: resume_runtime;
        RequestReJITWithInliners => request_rejit_with_inliners;
        EnumerateObjectReferences => references;
        IsFrozenObject => is_frozen;
        GetLOHObjectSizeThreshold => large_object_threshold;
    }
    ICorProfilerInfo11Methods {
        GetEnvironmentVariable => get_environment_variable;
        SetEnvironmentVariable => set_environment_variable;
    }
    ICorProfilerInfo12Methods {
        EventPipeStartSession => start_session;
        EventPipeAddProviderToSession => add_to_session;
        EventPipeStopSession => stop_session;
        EventPipeCreateProvider => create_provider;
        EventPipeGetProviderInfo => provider_info;
        EventPipeDefineEvent => define_event;
        EventPipeWriteEvent => write_event;
    }
    ICorProfilerInfo13Methods {
        CreateHandle => create_handle;
        DestroyHandle => destroy_handle;
        GetObjectIDFromHandle => object_of_handle;
    }
    ICorProfilerInfo14Methods {
        EventPipeCreateProvider2 => create_provider_2;
        EnumerateNonGCObjects => non_gc_objects;
        GetNonGCHeapBounds => non_gc_bounds;
    }
    ICorProfilerInfo15Methods {
        EnumerateGCHeapObjects => heap_objects;
    }
}

/// Answers that only take arguments to the runtime, and its results back.
impl Call<'_> {
    unsafe fn get_handle(&self, thread: ThreadId, handle: *mut Handle) -> Answer {
        self.check_thread(thread);
        let found = self.caller().get_handle_from_thread(thread)?;
        // SAFETY: the profiler's pointer. The handle is a number that no system call knows.
        unsafe { put(handle, found as Handle) };
        Ok(HResult::OK)
    }

    unsafe fn get_thread_info(&self, thread: ThreadId, os: *mut u32) -> Answer {
        self.check_thread(thread);
        let found = self.caller().get_thread_info(thread)?;
        // SAFETY: the profiler's pointer.
        unsafe { put(os, found) };
        Ok(HResult::OK)
    }

    ICorProfilerInfo2Methods!(get_class = GetClassFromTokenAndTypeArgs(self, module, token, len,
        type_args, class) {
        // A CLR looks at its caller before the arguments.
        self.begin()?;
        if len > 0 && type_args.is_null() {
            return self.null("typeArgs");
        }
        if class.is_null() {
            return self.null("pClassID");
        }
        // SAFETY: the profiler's array has this number of elements.
        let argument = |index| unsafe { type_args.add(index).read_unaligned().0 };
        let arguments: Vec<_> = (0..len.min(MOST_PARAMETERS) as usize).map(argument).collect();
        for class in &arguments {
            self.class_of(*class)?;
        }
        if module.0 != 0 {
            self.module_of(module.0)?;
        }
        let info = self.caller();
        let found = info.get_class_from_token_and_type_args(module.0, token, &arguments)?;
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(class, ClassId(found)) };
        Ok(HResult::OK)
    });

    unsafe fn get_current_thread(&self, thread: *mut ThreadId) -> Answer {
        let found = self.caller().get_current_thread_id()?;
        // SAFETY: the profiler's pointer.
        unsafe { put(thread, found) };
        Ok(HResult::OK)
    }

    unsafe fn get_function_from_ip(&self, ip: *const u8, function: *mut FunctionId) -> Answer {
        let found = self.caller().get_function_from_ip(ip as u64)?;
        // SAFETY: the profiler's pointer.
        unsafe { put(function, found) };
        Ok(HResult::OK)
    }

    ICorProfilerInfo4Methods!(get_function_from_ip2 = GetFunctionFromIP2(self, ip, function,
        rejit) {
        let found = self.caller().get_function_from_ip2(ip as u64)?;
        // SAFETY: the profiler's pointers.
        unsafe { put_both(found, function, rejit) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo8Methods!(get_function_from_ip3 = GetFunctionFromIP3(self, ip, function,
        rejit) {
        let found = self.caller().get_function_from_ip3(ip as u64)?;
        // SAFETY: the profiler's pointers.
        unsafe { put_both(found, function, rejit) };
        Ok(HResult::OK)
    });
}

unsafe fn put_both(found: (FunctionId, ReJitId), function: *mut FunctionId, rejit: *mut ReJitId) {
    // SAFETY: the profiler's pointers.
    unsafe {
        put(function, found.0);
        put(rejit, found.1);
    }
}
