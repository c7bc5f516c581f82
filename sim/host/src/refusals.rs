//! Reasons of refusals, for methods that have no story of their own.

use crate::results;
use clr_walker::profiling::HResult;

/// Returns the usual reason of a result, with the clause that says so, if one does.
pub const fn reason(result: HResult) -> Option<(&'static str, Option<&'static str>)> {
    Some(match result {
        HResult::NO_INTERFACE => ("the object does not have this interface on this runtime", None),
        HResult::INVALID_ARGUMENT => ("an argument is NULL, no id, or out of range", None),
        HResult::PROFILER_DETACHING => ("the profiler is being detached", Some("C-001")),
        HResult::CALL_ONLY_FROM_INIT => ("only Initialize may call the method", None),
        HResult::INCONSISTENT_WITH_FLAGS => {
            ("the event mask does not allow the method", Some("C-003"))
        }
        HResult::UNSUPPORTED_CALL_SEQUENCE => {
            ("a thread of the runtime may call the method in some callbacks alone", Some("C-122"))
        }
        HResult::ASYNCHRONOUS_UNSAFE => {
            ("another thread writes to the tables of code, and the caller cannot wait", None)
        }
        HResult::RUNTIME_UNINITIALIZED => ("the runtime has not started", Some("C-002")),
        HResult::CALLBACK3_REQUIRED => ("the profiler lacks ICorProfilerCallback3", None),
        HResult::IMMUTABLE_FLAGS_SET => ("the event mask has flags that stay for ever", None),
        HResult::IRREVERSIBLE_INSTRUMENTATION_PRESENT => {
            ("methods have the profiler's hooks", None)
        }
        HResult::NOT_IMPLEMENTED => ("the runtime does not have the method", None),
        results::INSUFFICIENT_BUFFER => ("the buffer is too small", None),
        results::ENDED => ("the simulated process has ended", None),
        results::WRONG_THREAD => ("the call came from a thread that is not simulated", None),
        results::ADDRESS_TAKEN => {
            ("something else lies at the address of the module's image", None)
        }
        results::RELEASED => ("the object was released", None),
        _ => return None,
    })
}
