//! `ICorProfilerInfo` to 15: what a profiler calls.

use crate::interface::interfaces;
use crate::{
    AppDomainId, ArgumentRange, AssemblyId, Bool, ClassId, ClauseInfo, ContextId, EltInfo,
    EventData, EventParameter, EventProviderConfig, FieldOffset, FrameHandle, FunctionArguments,
    FunctionHook, FunctionIdMapper, GenerationRange, Guid, Handle, IUnknown, IUnknownMethods,
    IlMap, IlToNative, ModuleId, NonGcRange, ObjectHandleId, ObjectId, ProcessId,
    StackSnapshotCallback, Token,
};
use clr_walker::profiling::{CodeRange, FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `ICorProfilerInfo`: since .NET Framework 1.
    ICorProfilerInfo, ICorProfilerInfoMethods, "28b5557d-3f3f-48b4-90b2-5f9eea2f6c48":
        IUnknown, IUnknownMethods {
        3 GetClassFromObject(object: ObjectId, class: *mut ClassId);
        4 GetClassFromToken(module: ModuleId, type_def: Token, class: *mut ClassId);
        5 GetCodeInfo(function: FunctionId, start: *mut *const u8, size: *mut u32);
        6 GetEventMask(events: *mut u32);
        7 GetFunctionFromIP(ip: *const u8, function: *mut FunctionId);
        8 GetFunctionFromToken(module: ModuleId, token: Token, function: *mut FunctionId);
        9 GetHandleFromThread(thread: ThreadId, handle: *mut Handle);
        10 GetObjectSize(object: ObjectId, size: *mut u32);
        11 IsArrayClass(
            class: ClassId, base_elem_type: *mut u32, base_class: *mut ClassId, rank: *mut u32,
        );
        12 GetThreadInfo(thread: ThreadId, os_thread: *mut u32);
        13 GetCurrentThreadID(thread: *mut ThreadId);
        14 GetClassIDInfo(class: ClassId, module: *mut ModuleId, type_def_token: *mut Token);
        15 GetFunctionInfo(
            function: FunctionId, class: *mut ClassId, module: *mut ModuleId, token: *mut Token,
        );
        16 SetEventMask(events: u32);
        17 SetEnterLeaveFunctionHooks(
            enter: FunctionHook, leave: FunctionHook, tailcall: FunctionHook,
        );
        18 SetFunctionIDMapper(mapper: FunctionIdMapper);
        19 GetTokenAndMetaDataFromFunction(
            function: FunctionId, riid: *const Guid, import: *mut *mut c_void, token: *mut Token,
        );
        20 GetModuleInfo(
            module: ModuleId, base_load_address: *mut *const u8, name_capacity: u32, name_len: *mut u32,
            name: *mut u16, assembly: *mut AssemblyId,
        );
        21 GetModuleMetaData(
            module: ModuleId, open_flags: u32, riid: *const Guid, out: *mut *mut c_void,
        );
        22 GetILFunctionBody(
            module: ModuleId, method: Token, method_header: *mut *const u8, method_size: *mut u32,
        );
        23 GetILFunctionBodyAllocator(module: ModuleId, malloc: *mut *mut c_void);
        24 SetILFunctionBody(module: ModuleId, method: Token, header: *const u8);
        25 GetAppDomainInfo(
            app_domain: AppDomainId, name_capacity: u32, name_len: *mut u32, name: *mut u16,
            process: *mut ProcessId,
        );
        26 GetAssemblyInfo(
            assembly: AssemblyId, name_capacity: u32, name_len: *mut u32, name: *mut u16,
            app_domain: *mut AppDomainId, module: *mut ModuleId,
        );
        27 SetFunctionReJIT(function: FunctionId);
        28 ForceGC();
        29 SetILInstrumentedCodeMap(
            function: FunctionId, start_jit: Bool, entries_len: u32, entries: *const IlMap,
        );
        30 GetInprocInspectionInterface(inspection: *mut *mut c_void);
        31 GetInprocInspectionIThisThread(inspection: *mut *mut c_void);
        32 GetThreadContext(thread: ThreadId, context: *mut ContextId);
        33 BeginInprocDebugging(this_thread_only: Bool, profiler_context: *mut u32);
        34 EndInprocDebugging(profiler_context: u32);
        35 GetILToNativeMapping(
            function: FunctionId, map_capacity: u32, map_len: *mut u32, map: *mut IlToNative,
        );
    }

    /// `ICorProfilerInfo2`: `DoStackSnapshot`, layouts, statics, generations.
    ICorProfilerInfo2, ICorProfilerInfo2Methods, "cc0935cd-a518-487d-b0bb-a93214e65478":
        ICorProfilerInfo, ICorProfilerInfoMethods {
        36 DoStackSnapshot(
            thread: ThreadId, callback: StackSnapshotCallback, info_flags: u32,
            client_data: *mut c_void, context: *const u8, context_size: u32,
        );
        37 SetEnterLeaveFunctionHooks2(
            enter: FunctionHook, leave: FunctionHook, tailcall: FunctionHook,
        );
        38 GetFunctionInfo2(
            function: FunctionId, frame_info: FrameHandle, class: *mut ClassId,
            module: *mut ModuleId, token: *mut Token, type_args_capacity: u32, type_args_len: *mut u32,
            type_args: *mut ClassId,
        );
        39 GetStringLayout(
            buffer_length_offset: *mut u32, string_length_offset: *mut u32, buffer_offset: *mut u32,
        );
        40 GetClassLayout(
            class: ClassId, field_offsets: *mut FieldOffset, field_offsets_capacity: u32,
            field_offsets_len: *mut u32, class_size: *mut u32,
        );
        41 GetClassIDInfo2(
            class: ClassId, module: *mut ModuleId, type_def_token: *mut Token,
            parent_class: *mut ClassId, type_args_capacity: u32, type_args_len: *mut u32,
            type_args: *mut ClassId,
        );
        42 GetCodeInfo2(
            function: FunctionId, ranges_capacity: u32, ranges_len: *mut u32, ranges: *mut CodeRange,
        );
        43 GetClassFromTokenAndTypeArgs(
            module: ModuleId, type_def: Token, type_args_len: u32, type_args: *const ClassId,
            class: *mut ClassId,
        );
        44 GetFunctionFromTokenAndTypeArgs(
            module: ModuleId, method: Token, class: ClassId, type_args_len: u32,
            type_args: *const ClassId, function: *mut FunctionId,
        );
        45 EnumModuleFrozenObjects(module: ModuleId, enumerator: *mut *mut c_void);
        46 GetArrayObjectInfo(
            object: ObjectId, dimensions_len: u32, dimension_sizes: *mut u32,
            dimension_lower_bounds: *mut i32, data: *mut *mut u8,
        );
        47 GetBoxClassLayout(class: ClassId, buffer_offset: *mut u32);
        48 GetThreadAppDomain(thread: ThreadId, app_domain: *mut AppDomainId);
        49 GetRVAStaticAddress(class: ClassId, field_token: Token, address: *mut *mut c_void);
        50 GetAppDomainStaticAddress(
            class: ClassId, field_token: Token, app_domain: AppDomainId, address: *mut *mut c_void,
        );
        51 GetThreadStaticAddress(
            class: ClassId, field_token: Token, thread: ThreadId, address: *mut *mut c_void,
        );
        52 GetContextStaticAddress(
            class: ClassId, field_token: Token, context: ContextId, address: *mut *mut c_void,
        );
        53 GetStaticFieldInfo(class: ClassId, field_token: Token, field_info: *mut u32);
        54 GetGenerationBounds(
            ranges_capacity: u32, ranges_len: *mut u32, ranges: *mut GenerationRange,
        );
        55 GetObjectGeneration(object: ObjectId, range: *mut GenerationRange);
        56 GetNotifiedExceptionClauseInfo(info: *mut ClauseInfo);
    }

    /// `ICorProfilerInfo3`: version of the runtime, enumerations, hooks with data.
    ICorProfilerInfo3, ICorProfilerInfo3Methods, "b555ed4f-452a-4e54-8b39-b5360bad32a0":
        ICorProfilerInfo2, ICorProfilerInfo2Methods {
        57 EnumJITedFunctions(enumerator: *mut *mut c_void);
        58 RequestProfilerDetach(milliseconds: u32);
        59 SetFunctionIDMapper2(mapper: FunctionIdMapper, client_data: *mut c_void);
        60 GetStringLayout2(string_length_offset: *mut u32, buffer_offset: *mut u32);
        61 SetEnterLeaveFunctionHooks3(
            enter: FunctionHook, leave: FunctionHook, tailcall: FunctionHook,
        );
        62 SetEnterLeaveFunctionHooks3WithInfo(
            enter: FunctionHook, leave: FunctionHook, tailcall: FunctionHook,
        );
        63 GetFunctionEnter3Info(
            function: FunctionId, elt_info: EltInfo, frame_info: *mut FrameHandle,
            argument_info_size: *mut u32, argument_info: *mut FunctionArguments,
        );
        64 GetFunctionLeave3Info(
            function: FunctionId, elt_info: EltInfo, frame_info: *mut FrameHandle,
            retval_range: *mut ArgumentRange,
        );
        65 GetFunctionTailcall3Info(
            function: FunctionId, elt_info: EltInfo, frame_info: *mut FrameHandle,
        );
        66 EnumModules(enumerator: *mut *mut c_void);
        67 GetRuntimeInformation(
            clr_instance_id: *mut u16, runtime_type: *mut u32, major_version: *mut u16,
            minor_version: *mut u16, build_number: *mut u16, qfe_version: *mut u16,
            version_string_capacity: u32, version_string_len: *mut u32, version_string: *mut u16,
        );
        68 GetThreadStaticAddress2(
            class: ClassId, field_token: Token, app_domain: AppDomainId, thread: ThreadId,
            address: *mut *mut c_void,
        );
        69 GetAppDomainsContainingModule(
            module: ModuleId, app_domains_capacity: u32, app_domains_len: *mut u32,
            app_domains: *mut AppDomainId,
        );
        70 GetModuleInfo2(
            module: ModuleId, base_load_address: *mut *const u8, name_capacity: u32, name_len: *mut u32,
            name: *mut u16, assembly: *mut AssemblyId, module_flags: *mut u32,
        );
    }

    /// `ICorProfilerInfo4`: threads, re-JIT.
    ICorProfilerInfo4, ICorProfilerInfo4Methods, "0d8fdcaa-6257-47bf-b1bf-94dac88466ee":
        ICorProfilerInfo3, ICorProfilerInfo3Methods {
        71 EnumThreads(enumerator: *mut *mut c_void);
        72 InitializeCurrentThread();
        73 RequestReJIT(functions_len: u32, modules: *const ModuleId, methods: *const Token);
        74 RequestRevert(
            functions_len: u32, modules: *const ModuleId, methods: *const Token,
            status: *mut HResult,
        );
        75 GetCodeInfo3(
            function: FunctionId, rejit: ReJitId, ranges_capacity: u32, ranges_len: *mut u32,
            ranges: *mut CodeRange,
        );
        76 GetFunctionFromIP2(ip: *const u8, function: *mut FunctionId, rejit: *mut ReJitId);
        77 GetReJITIDs(
            function: FunctionId, rejit_ids_capacity: u32, rejit_ids_len: *mut u32,
            rejit_ids: *mut ReJitId,
        );
        78 GetILToNativeMapping2(
            function: FunctionId, rejit: ReJitId, map_capacity: u32, map_len: *mut u32,
            map: *mut IlToNative,
        );
        79 EnumJITedFunctions2(enumerator: *mut *mut c_void);
        80 GetObjectSize2(object: ObjectId, size: *mut u64);
    }

    /// `ICorProfilerInfo5`: the high part of the event mask.
    ICorProfilerInfo5, ICorProfilerInfo5Methods, "07602928-ce38-4b83-81e7-74adaf781214":
        ICorProfilerInfo4, ICorProfilerInfo4Methods {
        81 GetEventMask2(events_low: *mut u32, events_high: *mut u32);
        82 SetEventMask2(events_low: u32, events_high: u32);
    }

    /// `ICorProfilerInfo6`: inlining in precompiled code.
    ICorProfilerInfo6, ICorProfilerInfo6Methods, "f30a070d-bffb-46a7-b1d8-8781ef7b698a":
        ICorProfilerInfo5, ICorProfilerInfo5Methods {
        83 EnumNgenModuleMethodsInliningThisMethod(
            inliners_module: ModuleId, inlinee_module: ModuleId, inlinee_method: Token,
            incomplete_data: *mut Bool, enumerator: *mut *mut c_void,
        );
    }

    /// `ICorProfilerInfo7`: symbols of modules in memory.
    ICorProfilerInfo7, ICorProfilerInfo7Methods, "9aeecc0d-63e0-4187-8c00-e312f503f663":
        ICorProfilerInfo6, ICorProfilerInfo6Methods {
        84 ApplyMetaData(module: ModuleId);
        85 GetInMemorySymbolsLength(module: ModuleId, count_symbol_bytes: *mut u32);
        86 ReadInMemorySymbols(
            module: ModuleId, symbols_read_offset: u32, symbol_bytes: *mut u8,
            count_symbol_bytes: u32, count_symbol_bytes_read: *mut u32,
        );
    }

    /// `ICorProfilerInfo8`: dynamic methods.
    ICorProfilerInfo8, ICorProfilerInfo8Methods, "c5ac80a6-782e-4716-8044-39598c60cfbf":
        ICorProfilerInfo7, ICorProfilerInfo7Methods {
        87 IsFunctionDynamic(function: FunctionId, is_dynamic: *mut Bool);
        88 GetFunctionFromIP3(ip: *const u8, function: *mut FunctionId, rejit: *mut ReJitId);
        89 GetDynamicFunctionInfo(
            function: FunctionId, module: *mut ModuleId, signature: *mut *const u8,
            signature_size: *mut u32, name_capacity: u32, name_len: *mut u32, name: *mut u16,
        );
    }

    /// `ICorProfilerInfo9`: the bodies that tiered compilation makes.
    ICorProfilerInfo9, ICorProfilerInfo9Methods, "008170db-f8cc-4796-9a51-dc8aa0b47012":
        ICorProfilerInfo8, ICorProfilerInfo8Methods {
        90 GetNativeCodeStartAddresses(
            function: FunctionId, rejit: ReJitId, addresses_capacity: u32, addresses_len: *mut u32,
            addresses: *mut u64,
        );
        91 GetILToNativeMapping3(
            start: u64, map_capacity: u32, map_len: *mut u32, map: *mut IlToNative,
        );
        92 GetCodeInfo4(start: u64, ranges_capacity: u32, ranges_len: *mut u32, ranges: *mut CodeRange);
    }

    /// `ICorProfilerInfo10`: suspension of the runtime.
    ICorProfilerInfo10, ICorProfilerInfo10Methods, "2f1b5152-c869-40c9-aa5f-3abe026bd720":
        ICorProfilerInfo9, ICorProfilerInfo9Methods {
        93 EnumerateObjectReferences(
            object: ObjectId, callback: *const c_void, client_data: *mut c_void,
        );
        94 IsFrozenObject(object: ObjectId, frozen: *mut Bool);
        95 GetLOHObjectSizeThreshold(threshold: *mut u32);
        96 RequestReJITWithInliners(
            rejit_flags: u32, functions_len: u32, modules: *const ModuleId, methods: *const Token,
        );
        97 SuspendRuntime();
        98 ResumeRuntime();
    }

    /// `ICorProfilerInfo11`: environment variables of managed code.
    ICorProfilerInfo11, ICorProfilerInfo11Methods, "06398876-8987-4154-b621-40a00d6e4d04":
        ICorProfilerInfo10, ICorProfilerInfo10Methods {
        99 GetEnvironmentVariable(
            name: *const u16, value_capacity: u32, value_len: *mut u32, value: *mut u16,
        );
        100 SetEnvironmentVariable(name: *const u16, value: *const u16);
    }

    /// `ICorProfilerInfo12`: EventPipe.
    ICorProfilerInfo12, ICorProfilerInfo12Methods, "27b24ccd-1cb1-47c5-96ee-98190dc30959":
        ICorProfilerInfo11, ICorProfilerInfo11Methods {
        101 EventPipeStartSession(
            provider_configs_len: u32, provider_configs: *const EventProviderConfig,
            request_rundown: Bool, session: *mut u64,
        );
        102 EventPipeAddProviderToSession(session: u64, provider_config: EventProviderConfig);
        103 EventPipeStopSession(session: u64);
        104 EventPipeCreateProvider(provider_name: *const u16, provider: *mut u64);
        105 EventPipeGetProviderInfo(
            provider: u64, name_capacity: u32, name_len: *mut u32, name: *mut u16,
        );
        106 EventPipeDefineEvent(
            provider: u64, event_name: *const u16, event_id: u32, keywords: u64, event_version: u32,
            level: u32, opcode: u8, need_stack: Bool, parameters_len: u32,
            parameters: *const EventParameter, event: *mut u64,
        );
        107 EventPipeWriteEvent(
            event: u64, data_len: u32, data: *const EventData, activity_id: *const Guid,
            related_activity_id: *const Guid,
        );
    }

    /// `ICorProfilerInfo13`: handles to objects.
    ICorProfilerInfo13, ICorProfilerInfo13Methods, "6e6c7ee2-0701-4ec2-9d29-2e8733b66934":
        ICorProfilerInfo12, ICorProfilerInfo12Methods {
        108 CreateHandle(object: ObjectId, handle_type: u32, handle: *mut ObjectHandleId);
        109 DestroyHandle(handle: ObjectHandleId);
        110 GetObjectIDFromHandle(handle: ObjectHandleId, object: *mut ObjectId);
    }

    /// `ICorProfilerInfo14`: objects outside the GC heap.
    ICorProfilerInfo14, ICorProfilerInfo14Methods, "f460e352-d76d-4fe9-835f-f6af9d6e862d":
        ICorProfilerInfo13, ICorProfilerInfo13Methods {
        111 EnumerateNonGCObjects(enumerator: *mut *mut c_void);
        112 GetNonGCHeapBounds(ranges_capacity: u32, ranges_len: *mut u32, ranges: *mut NonGcRange);
        113 EventPipeCreateProvider2(
            provider_name: *const u16, callback: *const c_void, provider: *mut u64,
        );
    }

    /// `ICorProfilerInfo15`: objects of the GC heap.
    ICorProfilerInfo15, ICorProfilerInfo15Methods, "b446462d-bd22-41dd-872d-dc714c49eb56":
        ICorProfilerInfo14, ICorProfilerInfo14Methods {
        114 EnumerateGCHeapObjects(callback: *const c_void, callback_state: *mut c_void);
    }
}
