//! Names of functions and addresses in explanations.

use crate::{Runtime, TargetMemory};
use clr_walker::profiling::FunctionId;
use core::fmt;

/// A named address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedAddress {
    /// Managed code.
    Managed {
        /// The method's name.
        method: String,
        /// Bytes from the start of its code.
        offset: u64,
    },
    /// Native code: `JIT_WriteBarrier+0x5` or `coreclr.dll+0x1234`.
    Native(String),
    /// An address without a name, which is not managed code.
    Unknown {
        /// The address (VA).
        address: u64,
    },
}

impl fmt::Display for NamedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Managed { method, offset } => write!(f, "{method}+{offset:#x}"),
            Self::Native(name) => f.write_str(name),
            Self::Unknown { address } => write!(f, "{address:#x}"),
        }
    }
}

/// Provider of names for the items of a walk.
pub trait Names {
    /// Returns the name of a function, or `None` if it has none.
    fn function(&self, id: FunctionId) -> Option<String>;

    /// Returns the named place at `address` (VA).
    fn place(&self, address: u64) -> NamedAddress;
}

/// Name that runtimes use for a method without a name.
const NAMELESS: &str = "(dynamic method)";

impl<M: TargetMemory> Names for Runtime<'_, M> {
    fn function(&self, id: FunctionId) -> Option<String> {
        let (_, method) = self.code.method(id)?;
        Some(if method.name.is_empty() { NAMELESS } else { &method.name }.to_owned())
    }

    fn place(&self, address: u64) -> NamedAddress {
        if let Some(managed) = self.code.find(address) {
            let name = &managed.method.name;
            let method = if name.is_empty() { NAMELESS } else { name }.to_owned();
            return NamedAddress::Managed {
                method,
                offset: address.wrapping_sub(managed.code.start),
            };
        }
        match self.native.function(address) {
            Some(function) => {
                let offset = address.wrapping_sub(function.start);
                let of = if function.module.is_empty() { "" } else { " of " };
                let (name, module) = (&function.name, &function.module);
                NamedAddress::Native(format!("{name}+{offset:#x}{of}{module}"))
            }
            None => NamedAddress::Unknown { address },
        }
    }
}
