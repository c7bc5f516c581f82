//! The HRESULTs of methods.

use super::{metadata, recorded};
use clr_walker::profiling::HResult;
use clrsim::probe::Table;
use clrsim::results;

const SEQUENCE: HResult = HResult::UNSUPPORTED_CALL_SEQUENCE;

/// Returns the HRESULTs of a method, or `None` if it is not simulated. Sources: the functions of
/// these names in src/vm/proftoeeinterfaceimpl.cpp and src/md/compiler of CoreCLR 3.1, and the
/// documentation.
pub(super) fn results_of(table: Table, method: &str) -> Option<&'static [HResult]> {
    type H = HResult;
    if method == "QueryInterface" {
        return Some(&[H::OK, H::NO_INTERFACE, results::POINTER]);
    }
    match table {
        Table::Info => info_results(method),
        Table::Emit => metadata::emit(method),
        Table::AssemblyEmit => metadata::assembly_emit(method),
        Table::AssemblyImport => metadata::assembly_import(method),
        Table::Import => metadata::import(method),
        Table::Threads | Table::Modules | Table::Functions | Table::Objects | Table::Methods => {
            Some(match method {
                "Skip" => &[H::OK, H::FALSE],
                "Reset" => &[H::OK],
                "Clone" | "GetCount" => &[H::OK, H::INVALID_ARGUMENT],
                "Next" => &[H::OK, H::FALSE, H::INVALID_ARGUMENT],
                _ => return None,
            })
        }
    }
}

/// Returns the HRESULTs of the methods that stop threads, or `None` for another one.
fn stopping_results(method: &str) -> Option<&'static [HResult]> {
    type H = HResult;
    Some(match method {
        "ResumeRuntime" => &[H::OK, H::NOT_IMPLEMENTED, H::RUNTIME_UNINITIALIZED, SEQUENCE],
        "SuspendRuntime" => &[
            H::OK,
            H::NOT_IMPLEMENTED,
            H::RUNTIME_UNINITIALIZED,
            H::SUSPENSION_IN_PROGRESS,
            SEQUENCE,
        ],
        "ForceGC" => &[
            H::OK,
            H::NOT_YET_AVAILABLE,
            // .NET Framework 2.
            H::FAIL,
            // The thread waits for itself (C-175).
            results::ENDED,
            SEQUENCE,
        ],
        _ => return event_results(method),
    })
}

fn info_results(method: &str) -> Option<&'static [HResult]> {
    type H = HResult;
    Some(match method {
        "GetEventMask" | "GetEventMask2" | "GetClassIDInfo" | "GetClassIDInfo2"
        | "IsFunctionDynamic" => &[H::OK, H::INVALID_ARGUMENT],
        "SetEventMask" | "SetEventMask2" => {
            &[H::OK, H::FAIL, H::UNSUPPORTED_FOR_ATTACHING_PROFILER]
        }
        "GetFunctionFromIP" => &[H::OK, H::FAIL, H::ASYNCHRONOUS_UNSAFE, H::NOT_YET_AVAILABLE],
        "GetFunctionFromIP2" | "GetFunctionFromIP3" => {
            &[H::OK, H::FAIL, H::ASYNCHRONOUS_UNSAFE, H::NOT_YET_AVAILABLE, SEQUENCE]
        }
        "GetCodeInfo" | "GetCodeInfo2" => &[
            H::OK,
            H::INVALID_ARGUMENT,
            H::ASYNCHRONOUS_UNSAFE,
            H::FUNCTION_NOT_COMPILED,
            H::DATA_INCOMPLETE,
        ],
        "GetCodeInfo3" | "GetCodeInfo4" => &[
            H::OK,
            H::INVALID_ARGUMENT,
            H::ASYNCHRONOUS_UNSAFE,
            H::FUNCTION_NOT_COMPILED,
            H::DATA_INCOMPLETE,
            SEQUENCE,
        ],
        "GetHandleFromThread"
        | "GetThreadInfo"
        | "EnumThreads"
        | "EnumModules"
        | "GetAppDomainInfo"
        | "GetAssemblyInfo" => &[H::OK, H::INVALID_ARGUMENT, SEQUENCE],
        "GetThreadAppDomain" => &[H::OK, H::INVALID_ARGUMENT, H::NOT_MANAGED_THREAD],
        "GetClassFromObject" | "GetObjectSize" | "GetObjectSize2" => {
            &[H::OK, H::INVALID_ARGUMENT, H::NOT_MANAGED_THREAD, SEQUENCE]
        }
        "GetClassFromTokenAndTypeArgs" => &[
            H::OK,
            H::INVALID_ARGUMENT,
            H::DATA_INCOMPLETE,
            H::RUNTIME_UNINITIALIZED,
            // COR_E_TYPELOAD.
            HResult(0x8013_1522),
            // The type loader waits for a GC, or for a suspended thread.
            results::ENDED,
            SEQUENCE,
        ],
        "GetCurrentThreadID" => &[H::OK, H::NOT_MANAGED_THREAD],
        "GetFunctionInfo" | "GetFunctionInfo2" => &[H::OK, H::INVALID_ARGUMENT, H::DATA_INCOMPLETE],
        "GetModuleInfo" | "GetModuleInfo2" => {
            &[H::OK, H::INVALID_ARGUMENT, results::INSUFFICIENT_BUFFER]
        }
        "GetModuleMetaData" => &[H::OK, H::INVALID_ARGUMENT, H::NO_INTERFACE, SEQUENCE],
        "GetTokenAndMetaDataFromFunction" => {
            &[H::OK, H::INVALID_ARGUMENT, H::NO_INTERFACE, H::DATA_INCOMPLETE, SEQUENCE]
        }
        "DoStackSnapshot" => &[
            H::OK,
            H::FAIL,
            H::INVALID_ARGUMENT,
            H::INVALID_TARGET_THREAD,
            H::UNMANAGED_CONTEXT,
            H::UNSAFE,
            H::ABORTED,
            H::ASYNCHRONOUS_UNSAFE,
            H::INCONSISTENT_WITH_FLAGS,
            // On Unix (row 10 of contract §2.2).
            H::NOT_IMPLEMENTED,
            // .NET Framework 2: the walk faulted.
            H::UNEXPECTED,
            SEQUENCE,
        ],
        "GetRuntimeInformation" => {
            &[H::OK, H::INVALID_ARGUMENT, results::INSUFFICIENT_BUFFER, results::POINTER, SEQUENCE]
        }
        "InitializeCurrentThread" => &[H::OK, SEQUENCE],
        "SetEnterLeaveFunctionHooks" | "SetEnterLeaveFunctionHooks2" => {
            &[H::OK, H::INVALID_ARGUMENT, H::CALL_ONLY_FROM_INIT]
        }
        "SetEnterLeaveFunctionHooks3" | "SetEnterLeaveFunctionHooks3WithInfo" => {
            &[H::OK, H::INVALID_ARGUMENT, H::CALL_ONLY_FROM_INIT, H::INCONSISTENT_WITH_FLAGS]
        }
        "SetFunctionIDMapper" | "SetFunctionIDMapper2" => &[H::OK],
        "GetFunctionEnter3Info" => &[
            H::OK,
            H::INVALID_ARGUMENT,
            H::INCONSISTENT_WITH_FLAGS,
            results::INSUFFICIENT_BUFFER,
            SEQUENCE,
        ],
        "GetFunctionLeave3Info" | "GetFunctionTailcall3Info" => {
            &[H::OK, H::INVALID_ARGUMENT, H::INCONSISTENT_WITH_FLAGS, SEQUENCE]
        }
        // EnsureProfilerDetachable of src/vm/profdetach.cpp.
        "RequestProfilerDetach" => &[
            H::OK,
            H::RUNTIME_UNINITIALIZED,
            H::PROFILER_NOT_YET_INITIALIZED,
            H::CALLBACK3_REQUIRED,
            H::IMMUTABLE_FLAGS_SET,
            H::IRREVERSIBLE_INSTRUMENTATION_PRESENT,
            SEQUENCE,
        ],
        _ => return stopping_results(method),
    })
}

/// Returns the HRESULTs of a method of IL or EventPipe.
fn event_results(method: &str) -> Option<&'static [HResult]> {
    type H = HResult;
    Some(match method {
        "GetILFunctionBody" => {
            &[H::OK, H::INVALID_ARGUMENT, H::FUNCTION_NOT_IL, results::INDEX_NOT_FOUND]
        }
        "GetILFunctionBodyAllocator" | "SetILFunctionBody" => {
            &[H::OK, H::INVALID_ARGUMENT, SEQUENCE]
        }
        "EventPipeStartSession" => &[H::OK, H::FAIL, H::INVALID_ARGUMENT],
        "EventPipeAddProviderToSession"
        | "EventPipeCreateProvider"
        | "EventPipeDefineEvent"
        | "EventPipeWriteEvent" => &[H::OK, H::INVALID_ARGUMENT],
        "EventPipeStopSession" => &[H::OK],
        "EventPipeGetProviderInfo" => &[H::OK, H::INVALID_ARGUMENT, results::INSUFFICIENT_BUFFER],
        _ => return recorded::results_of(method),
    })
}
