//! Jitted code: how it gets into the code map without asking the runtime.
//!
//! The JIT compiler writes a RUNTIME_FUNCTION and UNWIND_INFO for every method, funclet, dynamic
//! method and IL stub, on every OS; but on Unix no interface returns them, and on Windows only the
//! process itself gets them. This module reads them where the runtime keeps them, through
//! [`Memory`](clr_unwind::Memory): of this process, of another one, or of a dump.
//!
//! ```text
//! a method's start, from a callback              an address, at any time
//!            │                                              │
//!            │                       contracts: the runtime's map of code (.NET 10, 11)
//!            │                                              │
//!            └──────────────►  the word before the code  ◄──┘
//!                                        │
//!                              RealCodeHeader: MethodDesc, RUNTIME_FUNCTION entries
//!                                        │
//!                              UNWIND_INFO, behind the code
//!                                        ▼
//!                   JittedMethod: owned copies ──► JittedMethods ──► code_map
//! ```
//!
//! The sources of the facts:
//!
//! | fact | source |
//! |---|---|
//! | the word before the code is a pointer to the code header, or the kind of a stub block | `_hpCodeHdr`, `StubCodeBlockKind` in codeman.h, dotnet/coreclr v3.1.23; `CodeHeader` in dotnet/runtime |
//! | offsets in the code header | [`CodeHeaderLayout::CORE_3_1_TO_10`] |
//! | RVAs count from the start of the range section; code, read-only data and the unwind data of all functions lie in this order in one block; version 1, both handler flags, a personality routine | `CEEJitInfo::allocMem` and `allocUnwindInfo` in jitinterface.cpp, v3.1.23 |
//! | functions are adjacent, unwind data is adjacent, codes descend | every method of the recorded processes |
//! | a `FunctionID` is the address of the `MethodDesc` | `MethodDescToFunctionID` in proftoeeinterfaceimpl.cpp, v3.1.23 and dotnet/runtime (at .NET 5 to 6); later versions: assumed |
//! | the map of code | [`contracts`] |
//!
//! Held against processes: on Linux every jitted method that the runtime itself lists
//! (`perf-PID.map`) in CoreCLR 3.1.23 (5,425), .NET 9.0.7 (5,472), .NET 10.0.9 (16,909) and .NET 11.0.0 (2,038, each found from
//! an address in each 16 bytes of it, by the map of code), with the size that it states, and none of the
//! 6,730 stubs in these lists was taken for a method; on Windows (wine 8.0) all 16,596 methods in the code
//! heaps of .NET 10.0.9, and 1,949 of .NET 11.0.0. 3.1, 9, 10 and 11 are thus known from processes, 5 to 8 from source
//! alone.
//!
//! One change escapes all checks: between a callback and the reading, a method is freed, and another
//! one with the same start and size uses its memory. Read within the callback, or compare
//! [`JittedMethod::method_desc`], as [`JittedMethods::compiled`] does.

pub mod contracts;
mod error;
mod header;
mod method;
mod methods;
mod stub;
mod unwind_data;

pub use error::JittedCodeError;
pub use header::CodeHeaderLayout;
pub use method::JittedMethod;
pub use methods::{JittedMethods, JittedMethodsError};
pub use stub::StubBlockKind;
