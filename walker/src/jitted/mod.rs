//! Jitted code: how it gets into the code map without asking the runtime.

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
