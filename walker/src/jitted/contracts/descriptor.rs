//! The contract descriptor: names, offsets and values that the runtime states about itself.

use super::error::ContractError;
use super::json::{self, Value};
use crate::jitted::header::copy;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use clr_unwind::Memory;
use core::fmt::{Display, Formatter};

/// The bytes `DNCCDAC\0` in this order, in .NET 9 to 11. (The document has them reversed.)
const MAGIC: u64 = u64::from_le_bytes(*b"DNCCDAC\0");
/// The text of .NET 9 has 3,183 bytes, that of .NET 10 has 10,564, that of .NET 11 for Windows 18,424.
const TEXT_LIMIT: u32 = 1 << 20;
/// .NET 10 has 24.
const POINTER_LIMIT: u32 = 1 << 12;

/// The version of a contract, as a runtime states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractVersion {
    /// A number, until .NET 10.
    Number(u64),
    /// A text as `c1`, from .NET 11 on, where they count anew.
    C(u64),
}

impl Display for ContractVersion {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::C(number) => write!(formatter, "c{number}"),
        }
    }
}

/// The contents of a runtime's `DotNetRuntimeContractDescriptor`, a symbol exported by coreclr.dll,
/// libcoreclr.so, libcoreclr.dylib, and by single-file applications: offsets of fields, global
/// values, and versions of contracts.
///
/// Source: docs/design/datacontracts/contract-descriptor.md and data_descriptor.md in
/// dotnet/runtime; .NET 9 and later have it.
#[derive(Clone, Debug)]
pub struct ContractDescriptor {
    types: BTreeMap<String, Value>,
    globals: BTreeMap<String, Value>,
    contracts: BTreeMap<String, Value>,
    /// The values that globals refer to by index.
    pointers: Box<[u8]>,
}

impl ContractDescriptor {
    /// Reads the descriptor at `address` (VA), the value of the exported symbol.
    ///
    /// # Errors
    /// [`ContractError`] if it cannot be read, or is not a descriptor of version 0 (.NET 9 and 10) or 2
    /// (.NET 11) for 64 bits.
    pub fn read<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<Self, ContractError> {
        let magic = memory.read_u64(address)?;
        if magic != MAGIC {
            return Err(ContractError::Magic { address, magic });
        }
        let at = |offset: u64| address.wrapping_add(offset);
        let flags = memory.read_u32(at(8))?;
        // Bit 0 is always set, bit 1 means 32-bit pointers, the others may be ignored.
        if flags & 3 != 1 {
            return Err(ContractError::Flags { flags });
        }
        let (text, pointers) = (memory.read_u32(at(12))?, memory.read_u32(at(24))?);
        if text > TEXT_LIMIT || pointers > POINTER_LIMIT {
            return Err(ContractError::Size { text, pointers });
        }
        let text = copy(memory, memory.read_u64(at(16))?, text)?;
        let pointers = copy(memory, memory.read_u64(at(32))?, pointers * 8)?;
        Self::parse(&text, pointers)
    }

    fn parse(text: &[u8], pointers: Box<[u8]>) -> Result<Self, ContractError> {
        // The size may count the terminating NUL.
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        let value =
            json::parse(text).map_err(|offset| ContractError::Json { offset: offset as u32 })?;
        let part = |part| ContractError::Form { part };
        let Value::Object(mut members) = value else { return Err(part("text")) };
        // What version 2 adds is `subDescriptors`, with addresses of other libraries' descriptors, which
        // nothing here asks for.
        if !matches!(members.get("version"), Some(Value::Integer(0 | 2))) {
            return Err(part("version"));
        }
        // Baselines are other files; released runtimes have the empty one.
        if members.get("baseline").is_some_and(|baseline| baseline.as_str() != Some("empty")) {
            return Err(part("baseline"));
        }
        let mut take = |name| match members.remove(name) {
            Some(Value::Object(members)) => Ok(members),
            _ => Err(part(name)),
        };
        Ok(Self {
            types: take("types")?,
            globals: take("globals")?,
            contracts: take("contracts")?,
            pointers,
        })
    }

    /// Returns a descriptor that states nothing, for a runtime without one whose layout is known otherwise.
    pub fn empty() -> Self {
        let empty = BTreeMap::new;
        Self { types: empty(), globals: empty(), contracts: empty(), pointers: Box::default() }
    }

    /// Adds the offset of a field in bytes (of field `!`, the size of the type), unless the runtime states it.
    pub fn add_field(&mut self, type_name: &str, field: &str, offset: u32) {
        let fields = self.types.entry(type_name.into()).or_insert(Value::Object(BTreeMap::new()));
        if let Value::Object(fields) = fields {
            fields.entry(field.into()).or_insert(Value::Integer(offset.into()));
        }
    }

    /// Adds a global value, which for a variable is its address (VA), unless the runtime states it.
    pub fn add_global(&mut self, name: &str, value: u64) {
        let value = Value::Integer(value.cast_signed());
        self.globals.entry(name.into()).or_insert(value);
    }

    /// Adds a contract in a numbered version, unless the runtime states it.
    pub fn add_contract(&mut self, name: &str, version: u64) {
        let version = Value::Integer(version.cast_signed());
        self.contracts.entry(name.into()).or_insert(version);
    }

    /// Returns the version of a contract.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not have the contract, or its version is of another form.
    pub fn contract(&self, name: &'static str) -> Result<ContractVersion, ContractError> {
        let version = self.contracts.get(name).ok_or(ContractError::MissingContract { name })?;
        let number = || version.as_u64().map(ContractVersion::Number);
        let text = || version.as_str()?.strip_prefix('c')?.parse().ok().map(ContractVersion::C);
        number().or_else(text).ok_or(ContractError::Form { part: "contracts" })
    }

    /// Returns the offset of a field in bytes; that of field `!` is the size of the type.
    ///
    /// # Errors
    /// [`ContractError::MissingField`] if the descriptor does not name it.
    pub fn field(
        &self,
        type_name: &'static str,
        field: &'static str,
    ) -> Result<u32, ContractError> {
        let fields = self.types.get(type_name).and_then(Value::as_object);
        let offset = match fields.and_then(|fields| fields.get(field)) {
            Some(Value::Array(pair)) => pair.first().and_then(Value::as_u64),
            Some(value) => value.as_u64(),
            None => None,
        };
        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
        offset.ok_or(ContractError::MissingField { type_name, field })
    }

    /// Returns a global value: a number, or the address of a variable of the runtime (VA).
    ///
    /// # Errors
    /// [`ContractError::MissingGlobal`] if the descriptor does not have it as a number.
    pub fn global(&self, name: &'static str) -> Result<u64, ContractError> {
        let value = match self.globals.get(name) {
            Some(Value::Array(items)) => match items.as_slice() {
                // With its type.
                [Value::Array(index), _] => self.pointer(index),
                [value, _] => value.as_u64(),
                index => self.pointer(index),
            },
            Some(value) => value.as_u64(),
            None => None,
        };
        value.ok_or(ContractError::MissingGlobal { name })
    }

    /// Returns the pointer whose index is the only item of `index`.
    fn pointer(&self, index: &[Value]) -> Option<u64> {
        let [index] = index else { return None };
        let index = usize::try_from(index.as_u64()?).ok()?;
        let (pointers, _) = self.pointers.as_chunks();
        pointers.get(index).copied().map(u64::from_le_bytes)
    }
}
