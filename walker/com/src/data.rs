//! Ids and structures in the arguments of methods.
//!
//! `FunctionID`, `ThreadID`, `ReJITID`, `HRESULT` and `COR_PRF_CODE_INFO` are those of
//! [`clr_walker::profiling`].

use clr_walker::profiling::{FunctionId, HResult, ReJitId};
use std::ffi::c_void;

/// A BOOL: 0 is false.
pub type Bool = i32;
/// A metadata token: a table in the highest byte, a row in the others.
pub type Token = u32;
/// A HANDLE of the operating system.
pub type Handle = *mut c_void;
/// An `HCORENUM`: an enumeration of [`IMetaDataImport`](crate::IMetaDataImport), at first NULL.
pub type EnumHandle = *mut c_void;
/// A `COR_PRF_FRAME_INFO`: a frame during a callback, or 0.
pub type FrameHandle = u64;
/// A `COR_PRF_ELT_INFO`: a frame during an enter, leave or tailcall hook.
pub type EltInfo = u64;
/// A hook for enter, leave or tailcall, in assembly: it has no calling convention of a language.
pub type FunctionHook = *const c_void;
/// A `FunctionIDMapper` or `FunctionIDMapper2`.
pub type FunctionIdMapper = *const c_void;

/// A `StackSnapshotCallback`: FunctionID, ip (VA), frameInfo, contextSize, context, clientData.
pub type StackSnapshotCallback = Option<
    unsafe extern "system" fn(FunctionId, u64, FrameHandle, u32, *mut u8, *mut c_void) -> HResult,
>;

/// Declares ids of the profiling interface.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// The number.
            pub u64,
        );
    )*};
}

ids! {
    /// An `AppDomainID`.
    AppDomainId;
    /// An `AssemblyID`.
    AssemblyId;
    /// A `ClassID`.
    ClassId;
    /// A `ContextID`.
    ContextId;
    /// A `GCHandleID`.
    GcHandleId;
    /// A `ModuleID`.
    ModuleId;
    /// An `ObjectHandleID`.
    ObjectHandleId;
    /// An `ObjectID`, which changes when the GC moves the object.
    ObjectId;
    /// A `ProcessID`.
    ProcessId;
}

/// Declares structures with the fields of the documentation.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }
    )*};
}

structures! {
    /// `COR_PRF_METHOD`.
    Method {
        /// The module.
        module: ModuleId,
        /// The method's token in it.
        token: Token,
    }

    /// `COR_PRF_FUNCTION`.
    Function {
        /// The function.
        function: FunctionId,
        /// The version of its code.
        rejit: ReJitId,
    }

    /// `COR_IL_MAP`.
    IlMap {
        /// Offset in the IL before the change (bytes).
        old_offset: u32,
        /// Offset in the IL after it (bytes).
        new_offset: u32,
        /// Not used by profilers.
        is_accurate: Bool,
    }

    /// `COR_DEBUG_IL_TO_NATIVE_MAP`.
    IlToNative {
        /// Offset in the IL (bytes), or a negative number for code without IL.
        il_offset: u32,
        /// Offset of the first byte of native code.
        native_start: u32,
        /// Offset after the last one.
        native_end: u32,
    }

    /// `ASSEMBLYMETADATA`.
    AssemblyMetadata {
        /// Version, first number.
        major: u16,
        /// Version, second number.
        minor: u16,
        /// Version, third number.
        build: u16,
        /// Version, fourth number.
        revision: u16,
        /// Buffer for the locale (UTF-16 with a final 0), or NULL.
        locale: *mut u16,
        /// Room for the locale in UTF-16 units; then its length.
        locale_len: u32,
        /// Not used.
        processors: *mut u32,
        /// 0.
        processors_len: u32,
        /// Not used.
        systems: *mut c_void,
        /// 0.
        systems_len: u32,
    }

    /// `COR_FIELD_OFFSET`.
    FieldOffset {
        /// The field's token.
        field: Token,
        /// Offset of the field in the object (bytes).
        offset: u32,
    }

    /// `COR_PRF_FUNCTION_ARGUMENT_RANGE`.
    ArgumentRange {
        /// The first byte (VA).
        start: u64,
        /// Size in bytes.
        size: u32,
    }

    /// The head of a `COR_PRF_FUNCTION_ARGUMENT_INFO`; the other ranges follow the first.
    FunctionArguments {
        /// Number of ranges.
        ranges_len: u32,
        /// Size of all arguments in bytes.
        size: u32,
        /// The first range.
        first: ArgumentRange,
    }

    /// `COR_PRF_GC_GENERATION_RANGE`.
    GenerationRange {
        /// 0 to 2; 3 is the heap of large objects, 4 the pinned one.
        generation: u32,
        /// The first byte (VA).
        start: u64,
        /// Used bytes.
        size: u64,
        /// Reserved bytes.
        reserved: u64,
    }

    /// `COR_PRF_NONGC_HEAP_RANGE`.
    NonGcRange {
        /// The first byte (VA).
        start: u64,
        /// Used bytes.
        size: u64,
        /// Reserved bytes.
        reserved: u64,
    }

    /// `COR_PRF_EX_CLAUSE_INFO`.
    ClauseInfo {
        /// 1 filter, 2 catch, 3 finally.
        kind: u32,
        /// Start of the handler's code (VA).
        ip: u64,
        /// Frame pointer of the handler (VA).
        frame_pointer: u64,
        /// 0 on x64.
        shadow_stack: u64,
    }

    /// `COR_PRF_EVENTPIPE_PROVIDER_CONFIG`.
    EventProviderConfig {
        /// Name, UTF-16 with a final 0.
        name: *const u16,
        /// Keywords.
        keywords: u64,
        /// Level.
        level: u32,
        /// Filter, UTF-16 with a final 0, or NULL.
        filter: *const u16,
    }

    /// `COR_PRF_EVENTPIPE_PARAM_DESC`.
    EventParameter {
        /// `COR_PRF_EVENTPIPE_PARAM_TYPE`.
        kind: u32,
        /// `COR_PRF_EVENTPIPE_PARAM_TYPE` of the elements of an array.
        element: u32,
        /// Name, UTF-16 with a final 0.
        name: *const u16,
    }

    /// `COR_PRF_EVENT_DATA`.
    EventData {
        /// The data (VA).
        data: u64,
        /// Size of the data in bytes.
        size: u32,
        /// 0.
        reserved: u32,
    }
}
