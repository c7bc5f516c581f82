//! Data contracts: the runtime's own statement of where its data lies.

mod descriptor;
mod error;
mod execution_manager;
mod json;
mod nibble_map;
mod range_sections;

pub use descriptor::ContractDescriptor;
pub use error::{CodeLookupError, ContractError};
pub use execution_manager::{CodeAt, ExecutionManager};
