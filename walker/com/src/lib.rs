//! The CLR's profiling interfaces: COM vtables to call a runtime, and to be called by one.
//!
//! An interface is a pointer that counts references: [`ICorProfilerInfo4`] has the methods of that
//! interface and, by `Deref`, those of all interfaces before it. Methods have the names and the
//! arguments of the public documentation; [`RuntimeInfo`] wraps those that a stack profiler needs.
//!
//! | module | content |
//! |---|---|
//! | `guid` | interface ids |
//! | `interface` | what interfaces have in common: the macro that declares them, `IUnknown` |
//! | `object` | Rust values as COM objects, and `IClassFactory` for them |
//! | `callback` | `ICorProfilerCallback` to 11 |
//! | `info` | `ICorProfilerInfo` to 15 |
//! | `enumerator` | the enumerators, and other small interfaces |
//! | `metadata` | `IMetaDataImport`, `IMetaDataImport2`, `IMetaDataAssemblyImport` |
//! | `emit` | `IMetaDataEmit`, `IMetaDataEmit2`, `IMetaDataAssemblyEmit` |
//! | `tables` | `IMetaDataTables`, `IMetaDataTables2`, `IMetaDataInfo` |
//! | `dispenser` | `IMetaDataDispenser`, `IMetaDataDispenserEx` |
//! | `data` | ids and structures in arguments |
//! | `dynamic` | calls by slot, with words as arguments |
//! | `forward` | objects between a runtime and a profiler, which pass each call on |
//! | `captured` | arguments of a call as data |
//! | `library` | a profiler's library, loaded as the CLR does |
//! | `runtime` | [`RuntimeInfo`]: `ICorProfilerInfo` as [`clr_walker`] calls it |
//!
//! A profiler implements the callbacks that it wants. The others have a default, `S_OK`:
//!
//! ```
//! use clr_com::*;
//! use clr_walker::profiling::HResult;
//! use std::ffi::c_void;
//!
//! struct Profiler;
//!
//! impl IUnknownMethods for Profiler {}
//! impl ICorProfilerCallbackMethods for Profiler {
//!     unsafe fn Initialize(&self, _info: *mut c_void) -> HResult {
//!         HResult::OK
//!     }
//! }
//! impl ICorProfilerCallback2Methods for Profiler {}
//!
//! let profiler: ICorProfilerCallback2 = create(Profiler);
//! assert!(profiler.cast::<ICorProfilerCallback>().is_ok());
//! assert!(profiler.cast::<ICorProfilerCallback3>().is_err());
//! // SAFETY: the object was made above.
//! assert_eq!(unsafe { profiler.Shutdown() }, HResult::OK);
//! ```
//!
//! # Unsafe code
//!
//! This crate, `clr-sampler` and `clr-recorder` contain `unsafe`; `clr-walker` has none. Calls through a vtable are
//! `unsafe`, because their pointers are the caller's promise. The layouts are held by tests: the
//! slot of each method, the ids, the sizes of structures.
//!
//! The crate is for 64-bit targets, as the walker is for x64: elsewhere it is empty.
#![cfg(target_pointer_width = "64")]
// Interfaces and methods have the names of the documentation.
#![allow(non_snake_case)]

mod callback;
mod captured;
mod data;
mod dispenser;
mod dynamic;
mod emit;
mod enumerator;
mod forward;
mod guid;
mod info;
mod interface;
mod library;
mod metadata;
mod object;
mod runtime;
mod tables;

pub use callback::*;
pub use captured::{Captured, CapturedCall, Moment};
pub use data::*;
pub use dispenser::*;
pub use dynamic::{ArgumentKind, ArgumentSignature, Callable, MethodSignature};
pub use emit::*;
pub use enumerator::*;
pub use forward::{CallObserver, Callee, Forwarder, Forwarding};
pub use guid::Guid;
pub use info::*;
pub use interface::{IUnknown, IUnknownMethods, Implements, Interface};
pub use library::{GetClassObject, MainReason, ProfilerLibrary};
pub use metadata::*;
pub use object::{
    ClassFactory, IClassFactory, IClassFactoryMethods, OwnUnknown, OwnedObject, Queried, create,
    own,
};
pub use runtime::RuntimeInfo;
pub use tables::*;
