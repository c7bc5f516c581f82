//! `ICorProfilerCallback` to 11: what a runtime calls.
//!
//! The default of each callback is `S_OK` without a change of its out-parameters, which the runtime has
//! set to "as without a profiler".

use crate::interface::interfaces;
use crate::{
    AppDomainId, AssemblyId, Bool, ClassId, GcHandleId, Guid, IUnknown, IUnknownMethods, ModuleId,
    ObjectId, Token,
};
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;

interfaces! {
    ($) HResult::OK;

    /// `ICorProfilerCallback`: the events since .NET Framework 1.
    ICorProfilerCallback, ICorProfilerCallbackMethods, "176fbed1-a55c-4796-98ca-a9da0ef883e7":
        IUnknown, IUnknownMethods {
        3 Initialize(info: *mut c_void);
        4 Shutdown();
        5 AppDomainCreationStarted(app_domain: AppDomainId);
        6 AppDomainCreationFinished(app_domain: AppDomainId, status: HResult);
        7 AppDomainShutdownStarted(app_domain: AppDomainId);
        8 AppDomainShutdownFinished(app_domain: AppDomainId, status: HResult);
        9 AssemblyLoadStarted(assembly: AssemblyId);
        10 AssemblyLoadFinished(assembly: AssemblyId, status: HResult);
        11 AssemblyUnloadStarted(assembly: AssemblyId);
        12 AssemblyUnloadFinished(assembly: AssemblyId, status: HResult);
        13 ModuleLoadStarted(module: ModuleId);
        14 ModuleLoadFinished(module: ModuleId, status: HResult);
        15 ModuleUnloadStarted(module: ModuleId);
        16 ModuleUnloadFinished(module: ModuleId, status: HResult);
        17 ModuleAttachedToAssembly(module: ModuleId, assembly: AssemblyId);
        18 ClassLoadStarted(class: ClassId);
        19 ClassLoadFinished(class: ClassId, status: HResult);
        20 ClassUnloadStarted(class: ClassId);
        21 ClassUnloadFinished(class: ClassId, status: HResult);
        22 FunctionUnloadStarted(function: FunctionId);
        23 JITCompilationStarted(function: FunctionId, is_safe_to_block: Bool);
        24 JITCompilationFinished(function: FunctionId, status: HResult, is_safe_to_block: Bool);
        25 JITCachedFunctionSearchStarted(function: FunctionId, use_cached_function: *mut Bool);
        26 JITCachedFunctionSearchFinished(function: FunctionId, result: u32);
        27 JITFunctionPitched(function: FunctionId);
        28 JITInlining(caller: FunctionId, callee: FunctionId, should_inline: *mut Bool);
        29 ThreadCreated(thread: ThreadId);
        30 ThreadDestroyed(thread: ThreadId);
        31 ThreadAssignedToOSThread(managed_thread: ThreadId, os_thread: u32);
        32 RemotingClientInvocationStarted();
        33 RemotingClientSendingMessage(cookie: *mut Guid, is_async: Bool);
        34 RemotingClientReceivingReply(cookie: *mut Guid, is_async: Bool);
        35 RemotingClientInvocationFinished();
        36 RemotingServerReceivingMessage(cookie: *mut Guid, is_async: Bool);
        37 RemotingServerInvocationStarted();
        38 RemotingServerInvocationReturned();
        39 RemotingServerSendingReply(cookie: *mut Guid, is_async: Bool);
        40 UnmanagedToManagedTransition(function: FunctionId, reason: u32);
        41 ManagedToUnmanagedTransition(function: FunctionId, reason: u32);
        42 RuntimeSuspendStarted(suspend_reason: u32);
        43 RuntimeSuspendFinished();
        44 RuntimeSuspendAborted();
        45 RuntimeResumeStarted();
        46 RuntimeResumeFinished();
        47 RuntimeThreadSuspended(thread: ThreadId);
        48 RuntimeThreadResumed(thread: ThreadId);
        49 MovedReferences(
            ranges_len: u32, old_starts: *const ObjectId, new_starts: *const ObjectId,
            lengths: *const u32,
        );
        50 ObjectAllocated(object: ObjectId, class: ClassId);
        51 ObjectsAllocatedByClass(classes_len: u32, classes: *const ClassId, objects: *const u32);
        52 ObjectReferences(
            object: ObjectId, class: ClassId, object_refs_len: u32, object_refs: *const ObjectId,
        );
        53 RootReferences(root_refs_len: u32, root_refs: *const ObjectId);
        54 ExceptionThrown(thrown_object: ObjectId);
        55 ExceptionSearchFunctionEnter(function: FunctionId);
        56 ExceptionSearchFunctionLeave();
        57 ExceptionSearchFilterEnter(function: FunctionId);
        58 ExceptionSearchFilterLeave();
        59 ExceptionSearchCatcherFound(function: FunctionId);
        60 ExceptionOSHandlerEnter(unused: u64);
        61 ExceptionOSHandlerLeave(unused: u64);
        62 ExceptionUnwindFunctionEnter(function: FunctionId);
        63 ExceptionUnwindFunctionLeave();
        64 ExceptionUnwindFinallyEnter(function: FunctionId);
        65 ExceptionUnwindFinallyLeave();
        66 ExceptionCatcherEnter(function: FunctionId, object: ObjectId);
        67 ExceptionCatcherLeave();
        68 COMClassicVTableCreated(
            wrapped_class: ClassId, implemented: *const Guid, vtable: *mut c_void, slots_len: u32,
        );
        69 COMClassicVTableDestroyed(
            wrapped_class: ClassId, implemented: *const Guid, vtable: *mut c_void,
        );
        70 ExceptionCLRCatcherFound();
        71 ExceptionCLRCatcherExecute();
    }

    /// `ICorProfilerCallback2`: names of threads, the GC. The least that a profiler must have.
    ICorProfilerCallback2, ICorProfilerCallback2Methods, "8a8cc829-ccf2-49fe-bbae-0f022228071a":
        ICorProfilerCallback, ICorProfilerCallbackMethods {
        72 ThreadNameChanged(thread: ThreadId, name_len: u32, name: *const u16);
        73 GarbageCollectionStarted(
            generations_len: i32, generation_collected: *const Bool, reason: u32,
        );
        74 SurvivingReferences(ranges_len: u32, starts: *const ObjectId, lengths: *const u32);
        75 GarbageCollectionFinished();
        76 FinalizeableObjectQueued(finalizer_flags: u32, object: ObjectId);
        77 RootReferences2(
            root_refs_len: u32, root_refs: *const ObjectId, root_kinds: *const u32,
            root_flags: *const u32, root_ids: *const u64,
        );
        78 HandleCreated(handle: GcHandleId, object: ObjectId);
        79 HandleDestroyed(handle: GcHandleId);
    }

    /// `ICorProfilerCallback3`: attaching and detaching.
    ICorProfilerCallback3, ICorProfilerCallback3Methods, "4fd2ed52-7731-4b8d-9469-03d2cc3086c5":
        ICorProfilerCallback2, ICorProfilerCallback2Methods {
        80 InitializeForAttach(info: *mut c_void, client_data: *mut c_void, client_data_size: u32);
        81 ProfilerAttachComplete();
        82 ProfilerDetachSucceeded();
    }

    /// `ICorProfilerCallback4`: re-JIT, 64-bit sizes of moved objects.
    ICorProfilerCallback4, ICorProfilerCallback4Methods, "7b63b2e3-107d-4d48-b2f6-f61e229470d2":
        ICorProfilerCallback3, ICorProfilerCallback3Methods {
        83 ReJITCompilationStarted(function: FunctionId, rejit: ReJitId, is_safe_to_block: Bool);
        84 GetReJITParameters(module: ModuleId, method: Token, function_control: *mut c_void);
        85 ReJITCompilationFinished(
            function: FunctionId, rejit: ReJitId, status: HResult, is_safe_to_block: Bool,
        );
        86 ReJITError(module: ModuleId, method: Token, function: FunctionId, status: HResult);
        87 MovedReferences2(
            ranges_len: u32, old_starts: *const ObjectId, new_starts: *const ObjectId,
            lengths: *const u64,
        );
        88 SurvivingReferences2(ranges_len: u32, starts: *const ObjectId, lengths: *const u64);
    }

    /// `ICorProfilerCallback5`: elements of `ConditionalWeakTable`.
    ICorProfilerCallback5, ICorProfilerCallback5Methods, "8dfba405-8c9f-45f8-bffa-83b14cef78b5":
        ICorProfilerCallback4, ICorProfilerCallback4Methods {
        89 ConditionalWeakTableElementReferences(
            root_refs_len: u32, key_refs: *const ObjectId, value_refs: *const ObjectId,
            root_ids: *const GcHandleId,
        );
    }

    /// `ICorProfilerCallback6`: assembly references that the profiler will add.
    ICorProfilerCallback6, ICorProfilerCallback6Methods, "fc13df4b-4448-4f4f-950c-ba8d19d00c36":
        ICorProfilerCallback5, ICorProfilerCallback5Methods {
        90 GetAssemblyReferences(assembly_path: *const u16, provider: *mut c_void);
    }

    /// `ICorProfilerCallback7`: symbols of modules in memory.
    ICorProfilerCallback7, ICorProfilerCallback7Methods, "f76a2dba-1d52-4539-866c-2aa518f9efc3":
        ICorProfilerCallback6, ICorProfilerCallback6Methods {
        91 ModuleInMemorySymbolsUpdated(module: ModuleId);
    }

    /// `ICorProfilerCallback8`: compilation of dynamic methods and IL stubs.
    ICorProfilerCallback8, ICorProfilerCallback8Methods, "5bed9b15-c079-4d47-bfe2-215a140c07e0":
        ICorProfilerCallback7, ICorProfilerCallback7Methods {
        92 DynamicMethodJITCompilationStarted(
            function: FunctionId, is_safe_to_block: Bool, il_header: *const u8, il_header_len: u32,
        );
        93 DynamicMethodJITCompilationFinished(
            function: FunctionId, status: HResult, is_safe_to_block: Bool,
        );
    }

    /// `ICorProfilerCallback9`: unloading of dynamic methods.
    ICorProfilerCallback9, ICorProfilerCallback9Methods, "27583ec3-c8f5-482f-8052-194b8ce4705a":
        ICorProfilerCallback8, ICorProfilerCallback8Methods {
        94 DynamicMethodUnloaded(function: FunctionId);
    }

    /// `ICorProfilerCallback10`: EventPipe.
    ICorProfilerCallback10, ICorProfilerCallback10Methods, "cec5b60e-c69c-495f-87f6-84d28ee16ffb":
        ICorProfilerCallback9, ICorProfilerCallback9Methods {
        95 EventPipeEventDelivered(
            provider: u64, event_id: u32, event_version: u32, metadata_blob_len: u32,
            metadata_blob: *const u8, event_data_len: u32, event_data: *const u8,
            activity_id: *const Guid, related_activity_id: *const Guid, event_thread: ThreadId,
            stack_frames_len: u32, stack_frames: *const u64,
        );
        96 EventPipeProviderCreated(provider: u64);
    }

    /// `ICorProfilerCallback11`: profilers that only want notifications.
    ICorProfilerCallback11, ICorProfilerCallback11Methods, "42350846-aaed-47f7-b128-fd0c98881cde":
        ICorProfilerCallback10, ICorProfilerCallback10Methods {
        97 LoadAsNotificationOnly(notification_only: *mut Bool);
    }
}
