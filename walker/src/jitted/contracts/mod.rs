//! Data contracts: the runtime's own statement of where its data lies.
//!
//! From .NET 9 on, the runtime exports `DotNetRuntimeContractDescriptor`: a structure that leads to a
//! text with the offsets of fields, global values and versions of algorithms ("contracts"). The
//! contract ExecutionManager is the runtime's map of code; .NET 10 is the first release that has it
//! (version 2; .NET 11 calls it c1), and .NET 9.0.1 and 9.0.7 have the descriptor without it.
//!
//! ```no_run
//! # fn find(memory: &impl clr_unwind::Memory, symbol: u64, address: u64)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use clr_walker::jitted::contracts::{CodeAt, ContractDescriptor, ExecutionManager};
//!
//! // `symbol` is the address of DotNetRuntimeContractDescriptor: dlsym, GetProcAddress, or the
//! // symbol table of the image in a dump.
//! let descriptor = ContractDescriptor::read(memory, symbol)?;
//! let manager = ExecutionManager::new(&descriptor)?;
//! if let Some(CodeAt::Method(method)) = manager.find(memory, address)? {
//!     println!("{:#x?}", method.code_range());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! All offsets come from the descriptor, and nothing is guessed: a contract in an unknown version, or
//! a field that is missing, is an error. So is a field that says that methods have a second, cold
//! part, which .NET 10 and 11 do not have.
//!
//! The text is JSON of a small subset, for which this module has a reader of its own: a profiler
//! need not compile a JSON crate for one text of 10 KB whose form is fixed.

mod descriptor;
mod error;
mod execution_manager;
mod json;
mod nibble_map;
mod range_sections;

pub use descriptor::{ContractDescriptor, ContractVersion};
pub use error::{CodeLookupError, ContractError};
pub use execution_manager::{CodeAt, ExecutionManager};
