//! Reading of x64 code: the fields of an instruction, and what comes before a return address.

mod call_site;
mod fields;

#[doc(hidden)]
pub use call_site::{ends_in_call, epilogue_len, follows_call, operand_len};
#[doc(hidden)]
pub use fields::{Base, Fields, Map};
