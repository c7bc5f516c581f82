//! Enumerators, and the small interfaces that calls and callbacks pass.

use crate::interface::interfaces;
use crate::{Function, IUnknown, IUnknownMethods, IlMap, Method, ModuleId, ObjectId};
use clr_walker::profiling::{HResult, ThreadId};
use std::ffi::c_void;

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// An enumerator of objects.
    ICorProfilerObjectEnum, ICorProfilerObjectEnumMethods, "2c6269bd-2d13-4321-ae12-6686365fd6af":
        IUnknown, IUnknownMethods {
        3 Skip(count: u32);
        4 Reset();
        5 Clone(enumerator: *mut *mut c_void);
        6 GetCount(count: *mut u32);
        7 Next(capacity: u32, objects: *mut ObjectId, fetched: *mut u32);
    }

    /// An enumerator of jitted functions.
    ICorProfilerFunctionEnum, ICorProfilerFunctionEnumMethods, "ff71301a-b994-429d-a10b-b345a65280ef":
        IUnknown, IUnknownMethods {
        3 Skip(count: u32);
        4 Reset();
        5 Clone(enumerator: *mut *mut c_void);
        6 GetCount(count: *mut u32);
        7 Next(capacity: u32, functions: *mut Function, fetched: *mut u32);
    }

    /// An enumerator of modules.
    ICorProfilerModuleEnum, ICorProfilerModuleEnumMethods, "b0266d75-2081-4493-af7f-028ba34db891":
        IUnknown, IUnknownMethods {
        3 Skip(count: u32);
        4 Reset();
        5 Clone(enumerator: *mut *mut c_void);
        6 GetCount(count: *mut u32);
        7 Next(capacity: u32, modules: *mut ModuleId, fetched: *mut u32);
    }

    /// An enumerator of methods.
    ICorProfilerMethodEnum, ICorProfilerMethodEnumMethods, "fccee788-0088-454b-a811-c99f298d1942":
        IUnknown, IUnknownMethods {
        3 Skip(count: u32);
        4 Reset();
        5 Clone(enumerator: *mut *mut c_void);
        6 GetCount(count: *mut u32);
        7 Next(capacity: u32, methods: *mut Method, fetched: *mut u32);
    }

    /// An enumerator of threads.
    ICorProfilerThreadEnum, ICorProfilerThreadEnumMethods, "571194f7-25ed-419f-aa8b-7016b3159701":
        IUnknown, IUnknownMethods {
        3 Skip(count: u32);
        4 Reset();
        5 Clone(enumerator: *mut *mut c_void);
        6 GetCount(count: *mut u32);
        7 Next(capacity: u32, threads: *mut ThreadId, fetched: *mut u32);
    }

    /// An allocator for IL of methods.
    IMethodMalloc, IMethodMallocMethods, "a0efb28b-6ee2-4d7b-b983-a75ef7beedb8":
        IUnknown, IUnknownMethods {
        3 Alloc(size: u32) -> *mut c_void;
    }

    /// The way to change a method that is compiled again.
    ICorProfilerFunctionControl, ICorProfilerFunctionControlMethods, "f0963021-e1ea-4732-8581-e01b0bd3c0c6":
        IUnknown, IUnknownMethods {
        3 SetCodegenFlags(flags: u32);
        4 SetILFunctionBody(header_len: u32, header: *const u8);
        5 SetILInstrumentedCodeMap(entries_len: u32, entries: *const IlMap);
    }

    /// The receiver of assembly references.
    ICorProfilerAssemblyReferenceProvider, ICorProfilerAssemblyReferenceProviderMethods, "66a78c24-2eef-4f65-b45f-dd1d8038bf3c":
        IUnknown, IUnknownMethods {
        3 AddAssemblyReference(reference: *const c_void);
    }
}
