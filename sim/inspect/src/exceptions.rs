//! Exceptions as objects.

use crate::error::InspectError;
use crate::methods::MethodNames;
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractError};

/// Length of a message at most, in UTF-16 units; a longer one is cut off.
const MESSAGE_LIMIT: u32 = 4096;
/// Bits of `MTFlags2` below the row of the class in its module's metadata (`TypeDefRid` in the contract RuntimeTypeSystem; with it
/// the exceptions of 9.0.23, 10.0.15 and 11.0.0 have the class that ClrMD says).
const ROW_SHIFT: u32 = 8;

/// An exception that was thrown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Name of the exception's class, with its namespace.
    pub class: String,
    /// Its message, if it was made with one.
    pub message: Option<String>,
}

/// Where exceptions have their parts.
#[derive(Clone, Copy, Debug)]
struct ExceptionLayout {
    table: u32,
    unmask: u64,
    flags: u32,
    message: u32,
    length: u32,
    text: u32,
}

impl ExceptionLayout {
    fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        let field = |type_name, field| descriptor.field(type_name, field);
        Ok(Self {
            table: field("Object", "m_pMethTab")?,
            unmask: descriptor.global("ObjectToMethodTableUnmask")?,
            flags: field("MethodTable", "MTFlags2")?,
            message: field("Exception", "_message")?,
            length: field("String", "m_StringLength")?,
            text: field("String", "m_FirstChar")?,
        })
    }

    fn text<M: Memory + ?Sized>(&self, memory: &M, string: u64) -> Result<String, Unreadable> {
        let length = memory.read_u32(string.wrapping_add(self.length.into()))?;
        let start = string.wrapping_add(self.text.into());
        let units = (0..length.min(MESSAGE_LIMIT))
            .map(|index| memory.read_u16(start.wrapping_add(2 * u64::from(index))));
        Ok(String::from_utf16_lossy(&units.collect::<Result<Vec<_>, _>>()?))
    }
}

impl<M: Memory + ?Sized> MethodNames<'_, M> {
    /// Reads the exception at `object` (VA), such as a thread's [last one](crate::ManagedThread::last_thrown).
    ///
    /// # Errors
    /// [`InspectError`] if the object or its class is unknown. .NET 8 does not say where exceptions have their parts.
    pub fn exception(
        &mut self,
        descriptor: &ContractDescriptor,
        object: u64,
    ) -> Result<Exception, InspectError> {
        let layout = ExceptionLayout::new(descriptor)?;
        let memory = self.memory();
        let table = memory.read_u64(object.wrapping_add(layout.table.into()))? & !layout.unmask;
        let row = memory.read_u32(table.wrapping_add(layout.flags.into()))? >> ROW_SHIFT;
        let message = memory.read_u64(object.wrapping_add(layout.message.into()))?;
        let message = (message != 0).then(|| layout.text(memory, message)).transpose()?;
        Ok(Exception { class: self.class(table, row)?, message })
    }
}
