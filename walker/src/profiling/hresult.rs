//! HRESULTs by name.

use core::fmt;

/// An HRESULT (contract §1.4).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HResult(
    /// The number.
    pub u32,
);

/// Constants with the names that Windows and `corerror.h` give them.
macro_rules! hresults {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl HResult {
            $(
                #[doc = concat!("`", $name, "`.")]
                pub const $constant: Self = Self($number);
            )*

            /// Returns the name in `winerror.h` or `corerror.h`, if the HRESULT is one that stack
            /// walking profilers meet.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($name),)*
                    _ => None,
                }
            }

            /// All HRESULTs with a name, ascending by number.
            pub const NAMED: &[Self] = &[$(Self::$constant,)*];
        }
    };
}

hresults! {
    OK = 0 "S_OK",
    FALSE = 1 "S_FALSE",
    NOT_IMPLEMENTED = 0x8000_4001 "E_NOTIMPL",
    NO_INTERFACE = 0x8000_4002 "E_NOINTERFACE",
    FAIL = 0x8000_4005 "E_FAIL",
    UNEXPECTED = 0x8000_FFFF "E_UNEXPECTED",
    NO_AGGREGATION = 0x8004_0110 "CLASS_E_NOAGGREGATION",
    CLASS_NOT_AVAILABLE = 0x8004_0111 "CLASS_E_CLASSNOTAVAILABLE",
    OUT_OF_MEMORY = 0x8007_000E "E_OUTOFMEMORY",
    INVALID_ARGUMENT = 0x8007_0057 "E_INVALIDARG",
    FUNCTION_NOT_COMPILED = 0x8013_1350 "CORPROF_E_FUNCTION_NOT_COMPILED",
    DATA_INCOMPLETE = 0x8013_1351 "CORPROF_E_DATAINCOMPLETE",
    FUNCTION_NOT_IL = 0x8013_1354 "CORPROF_E_FUNCTION_NOT_IL",
    NOT_MANAGED_THREAD = 0x8013_1355 "CORPROF_E_NOT_MANAGED_THREAD",
    CALL_ONLY_FROM_INIT = 0x8013_1356 "CORPROF_E_CALL_ONLY_FROM_INIT",
    NOT_YET_AVAILABLE = 0x8013_135B "CORPROF_E_NOT_YET_AVAILABLE",
    TYPE_IS_PARAMETERIZED = 0x8013_135C "CORPROF_E_TYPE_IS_PARAMETERIZED",
    FUNCTION_IS_PARAMETERIZED = 0x8013_135D "CORPROF_E_FUNCTION_IS_PARAMETERIZED",
    INVALID_TARGET_THREAD = 0x8013_135E "CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD",
    UNMANAGED_CONTEXT = 0x8013_135F "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX",
    UNSAFE = 0x8013_1360 "CORPROF_E_STACKSNAPSHOT_UNSAFE",
    ABORTED = 0x8013_1361 "CORPROF_E_STACKSNAPSHOT_ABORTED",
    LITERALS_HAVE_NO_ADDRESS = 0x8013_1362 "CORPROF_E_LITERALS_HAVE_NO_ADDRESS",
    UNSUPPORTED_CALL_SEQUENCE = 0x8013_1363 "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE",
    ASYNCHRONOUS_UNSAFE = 0x8013_1364 "CORPROF_E_ASYNCHRONOUS_UNSAFE",
    CLASSID_IS_ARRAY = 0x8013_1365 "CORPROF_E_CLASSID_IS_ARRAY",
    CLASSID_IS_COMPOSITE = 0x8013_1366 "CORPROF_E_CLASSID_IS_COMPOSITE",
    PROFILER_DETACHING = 0x8013_1367 "CORPROF_E_PROFILER_DETACHING",
    PROFILER_NOT_ATTACHABLE = 0x8013_1368 "CORPROF_E_PROFILER_NOT_ATTACHABLE",
    UNRECOGNIZED_PIPE_MSG_FORMAT = 0x8013_1369 "CORPROF_E_UNRECOGNIZED_PIPE_MSG_FORMAT",
    PROFILER_ALREADY_ACTIVE = 0x8013_136A "CORPROF_E_PROFILER_ALREADY_ACTIVE",
    PROFILEE_INCOMPATIBLE_WITH_TRIGGER = 0x8013_136B "CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER",
    IPC_FAILED = 0x8013_136C "CORPROF_E_IPC_FAILED",
    PROFILEE_PROCESS_NOT_FOUND = 0x8013_136D "CORPROF_E_PROFILEE_PROCESS_NOT_FOUND",
    CALLBACK3_REQUIRED = 0x8013_136E "CORPROF_E_CALLBACK3_REQUIRED",
    UNSUPPORTED_FOR_ATTACHING_PROFILER = 0x8013_136F "CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER",
    IRREVERSIBLE_INSTRUMENTATION_PRESENT = 0x8013_1370 "CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT",
    RUNTIME_UNINITIALIZED = 0x8013_1371 "CORPROF_E_RUNTIME_UNINITIALIZED",
    IMMUTABLE_FLAGS_SET = 0x8013_1372 "CORPROF_E_IMMUTABLE_FLAGS_SET",
    PROFILER_NOT_YET_INITIALIZED = 0x8013_1373 "CORPROF_E_PROFILER_NOT_YET_INITIALIZED",
    INCONSISTENT_WITH_FLAGS = 0x8013_1374 "CORPROF_E_INCONSISTENT_WITH_FLAGS",
    PROFILER_CANCEL_ACTIVATION = 0x8013_1375 "CORPROF_E_PROFILER_CANCEL_ACTIVATION",
    CONCURRENT_GC_NOT_PROFILABLE = 0x8013_1376 "CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE",
    DEBUGGING_DISABLED = 0x8013_1378 "CORPROF_E_DEBUGGING_DISABLED",
    TIMEOUT_WAITING_FOR_CONCURRENT_GC = 0x8013_1379 "CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC",
    MODULE_IS_DYNAMIC = 0x8013_137A "CORPROF_E_MODULE_IS_DYNAMIC",
    CALLBACK4_REQUIRED = 0x8013_137B "CORPROF_E_CALLBACK4_REQUIRED",
    REJIT_NOT_ENABLED = 0x8013_137C "CORPROF_E_REJIT_NOT_ENABLED",
    FUNCTION_IS_COLLECTIBLE = 0x8013_137E "CORPROF_E_FUNCTION_IS_COLLECTIBLE",
    CALLBACK6_REQUIRED = 0x8013_1380 "CORPROF_E_CALLBACK6_REQUIRED",
    CALLBACK7_REQUIRED = 0x8013_1382 "CORPROF_E_CALLBACK7_REQUIRED",
    REJIT_INLINING_DISABLED = 0x8013_1383 "CORPROF_E_REJIT_INLINING_DISABLED",
    SUSPENSION_IN_PROGRESS = 0x8013_1388 "CORPROF_E_SUSPENSION_IN_PROGRESS",
}

impl HResult {
    /// Returns true if the HRESULT is a failure: `FAILED` in Windows' terms.
    pub const fn is_failure(self) -> bool {
        self.0 >> 31 != 0
    }
}

impl fmt::Debug for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_belong_to_numbers() {
        assert!(HResult::NAMED.is_sorted_by(|one, other| one < other), "ascending, none twice");
        for hresult in HResult::NAMED {
            assert_eq!(hresult.is_failure(), hresult.0 > 1, "{hresult}");
            assert_eq!(hresult.to_string(), hresult.name().unwrap());
        }
        assert_eq!(HResult(0x8013_1377).to_string(), "0x80131377");
        assert_eq!(HResult(0x8013_1360), HResult::UNSAFE);
    }
}
