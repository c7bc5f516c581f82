//! Enumerators: `ProfilerEnum` of src/vm/profilingenumerators.h.

use crate::inner::Inner;
use crate::object::{Head, Headed, Kind, make};
use crate::out::{count, put, put_all};
use clr_com::{
    Function, ICorProfilerFunctionEnum, ICorProfilerFunctionEnumMethods, ICorProfilerMethodEnum,
    ICorProfilerMethodEnumMethods, ICorProfilerModuleEnum, ICorProfilerModuleEnumMethods,
    ICorProfilerObjectEnum, ICorProfilerObjectEnumMethods, ICorProfilerThreadEnum,
    ICorProfilerThreadEnumMethods, IUnknownMethods, Interface, Method, ModuleId, ObjectId,
};
use clr_walker::profiling::{HResult, ThreadId};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list with a position.
struct List<T> {
    elements: Vec<T>,
    at: AtomicUsize,
}

impl<T: Copy> List<T> {
    fn rest(&self) -> &[T] {
        self.elements.get(self.at.load(Ordering::Relaxed)..).unwrap_or_default()
    }

    /// Skips elements. Returns the number of those that were left, at most `wanted`.
    fn advance(&self, wanted: u32) -> u32 {
        let passed = self.rest().len().min(wanted as usize);
        self.at.fetch_add(passed, Ordering::Relaxed);
        count(passed)
    }

    fn skip(&self, wanted: u32) -> HResult {
        if self.advance(wanted) < wanted { HResult::FALSE } else { HResult::OK }
    }

    fn reset(&self) -> HResult {
        self.at.store(0, Ordering::Relaxed);
        HResult::OK
    }

    unsafe fn count(&self, len: *mut u32) -> HResult {
        if len.is_null() {
            return HResult::INVALID_ARGUMENT;
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(len, count(self.rest().len())) };
        HResult::OK
    }

    unsafe fn next(&self, capacity: u32, to: *mut T, fetched: *mut u32) -> HResult {
        if fetched.is_null() && capacity > 1 || capacity > 0 && to.is_null() {
            return HResult::INVALID_ARGUMENT;
        }
        let rest = self.rest();
        let passed = self.advance(capacity);
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(to, passed, rest);
            put(fetched, passed);
        }
        if passed < capacity { HResult::FALSE } else { HResult::OK }
    }
}

macro_rules! enumerators {
    ($($(#[$doc:meta])* $name:ident $element:ty, $interface:ident $methods:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name {
            head: Head,
            list: List<$element>,
        }

        impl $name {
            const KIND: Kind = Kind::Counted(stringify!($interface), &[$interface::IID]);

            /// Makes an enumerator with one reference.
            pub(crate) fn make(session: &Inner, elements: Vec<$element>) -> *mut c_void {
                let list = List { elements, at: AtomicUsize::new(0) };
                session.keep(|number| {
                    let head = Head::new(session, number, Self::KIND);
                    make::<$interface, _>(Self { head, list })
                })
            }
        }

        impl Headed for $name {
            fn head(&self) -> &Head {
                &self.head
            }
        }

        impl IUnknownMethods for $name {}

        impl $methods for $name {
            unsafe fn Skip(&self, count: u32) -> HResult {
                self.head.call("Skip", |_| Ok(self.list.skip(count)))
            }

            unsafe fn Reset(&self) -> HResult {
                self.head.call("Reset", |_| Ok(self.list.reset()))
            }

            unsafe fn Clone(&self, enumerator: *mut *mut c_void) -> HResult {
                self.head.call("Clone", |session| {
                    if enumerator.is_null() {
                        return Ok(HResult::INVALID_ARGUMENT);
                    }
                    // It begins with the first element again.
                    let clone = Self::make(session, self.list.elements.clone());
                    // SAFETY: the profiler's pointer, which is not NULL.
                    unsafe { put(enumerator, clone) };
                    Ok(HResult::OK)
                })
            }

            unsafe fn GetCount(&self, count: *mut u32) -> HResult {
                // SAFETY: the profiler's pointer.
                self.head.call("GetCount", |_| Ok(unsafe { self.list.count(count) }))
            }

            unsafe fn Next(&self, capacity: u32, to: *mut $element, fetched: *mut u32) -> HResult {
                // SAFETY: the profiler's pointers.
                self.head.call("Next", |_| Ok(unsafe { self.list.next(capacity, to, fetched) }))
            }
        }
    )*};
}

enumerators! {
    /// An `ICorProfilerThreadEnum`.
    Threads ThreadId, ICorProfilerThreadEnum ICorProfilerThreadEnumMethods;
    /// An `ICorProfilerModuleEnum`.
    Modules ModuleId, ICorProfilerModuleEnum ICorProfilerModuleEnumMethods;
    /// An `ICorProfilerFunctionEnum`.
    Functions Function, ICorProfilerFunctionEnum ICorProfilerFunctionEnumMethods;
    /// An `ICorProfilerObjectEnum`.
    Objects ObjectId, ICorProfilerObjectEnum ICorProfilerObjectEnumMethods;
    /// An `ICorProfilerMethodEnum`.
    Methods Method, ICorProfilerMethodEnum ICorProfilerMethodEnumMethods;
}
