//! The HRESULTs of methods whose answers were recorded: those of the recording, and what it could not have.

use clr_walker::profiling::HResult;
use clrsim::results;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Calls of methods as CLRs answer them: see its first lines.
const ANSWERS: &str = include_str!("../../../../sim/host/tests/it/answers.tsv");

/// Returns the results of a method beyond those in the recording. Sources: the functions of these names in
/// src/coreclr/src/vm/proftoeeinterfaceimpl.cpp of dotnet/runtime@v5.0.2, and runs on a thread of the profiler.
fn further(method: &str) -> &'static [HResult] {
    type H = HResult;
    match method {
        "GetClassFromToken" => &[H::TYPE_IS_PARAMETERIZED, H::RUNTIME_UNINITIALIZED],
        "GetFunctionFromToken" => &[H::FUNCTION_IS_PARAMETERIZED, H::RUNTIME_UNINITIALIZED],
        "GetFunctionFromTokenAndTypeArgs" | "EnumerateGCHeapObjects" => {
            &[H::RUNTIME_UNINITIALIZED, H::SUSPENSION_IN_PROGRESS]
        }
        "GetNotifiedExceptionClauseInfo"
        | "GetRVAStaticAddress"
        | "GetThreadStaticAddress2"
        | "GetArrayObjectInfo" => &[H::NOT_MANAGED_THREAD],
        "GetObjectGeneration" => &[H::FAIL, results::NOT_GC_OBJECT],
        "GetNativeCodeStartAddresses" | "GetDynamicFunctionInfo" => {
            &[H::OK, results::INSUFFICIENT_BUFFER]
        }
        "GetGenerationBounds" | "GetILToNativeMapping3" => &[H::FAIL],
        "EnumModuleFrozenObjects" => &[H::DATA_INCOMPLETE],
        "EnumerateObjectReferences" | "IsFrozenObject" | "SetILInstrumentedCodeMap" => {
            &[H::OK, H::FALSE]
        }
        "GetReJITIDs" => &[H::FALSE, H::OK],
        // A thread that becomes one of the runtime waits for the list of threads.
        "RequestReJIT" | "RequestReJITWithInliners" | "RequestRevert" => {
            &[H::OK, H::CALLBACK4_REQUIRED, results::ENDED]
        }
        "SetEnvironmentVariable" => &[results::NO_ENVIRONMENT_VARIABLE],
        "CreateHandle"
        | "DestroyHandle"
        | "GetObjectIDFromHandle"
        | "EnumerateNonGCObjects"
        | "EnumJITedFunctions"
        | "EnumJITedFunctions2" => &[H::OK, H::INVALID_ARGUMENT],
        _ => &[],
    }
}

/// Returns the results of a method, or `None` if there is no recording of it.
pub(super) fn results_of(method: &str) -> Option<&'static [HResult]> {
    static RESULTS: LazyLock<BTreeMap<&str, Vec<HResult>>> = LazyLock::new(|| {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for row in ANSWERS.lines().filter(|row| !row.starts_with('#')) {
            let mut cells = row.split('\t').skip(1);
            let method = cells.next().and_then(|call| call.split(' ').next()).unwrap_or_default();
            let results = cells.filter_map(|cell| u32::from_str_radix(cell, 16).ok()).map(HResult);
            all.entry(method).or_default().extend(results);
        }
        for (method, results) in &mut all {
            results.extend(further(method));
            // Each method that is not for all threads refuses some.
            results.push(HResult::UNSUPPORTED_CALL_SEQUENCE);
            // NULL where a CLR does not check, and ids that it takes for addresses.
            results.push(HResult::INVALID_ARGUMENT);
        }
        all
    });
    RESULTS.get(method).map(Vec::as_slice)
}
