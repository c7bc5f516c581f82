//! What a runtime states about itself, and what it finds in the system.

use super::{Handle, OwnProcess, images};
use clr_walker::jitted::contracts::ContractDescriptor;
use std::ffi::{c_char, c_void};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetModuleHandleA(name: *const c_char) -> Handle;
    fn GetProcAddress(module: Handle, name: *const c_char) -> *const c_void;
}

/// Returns how the system lets a runtime stop a thread that is in a method, as notes in recordings say it: from
/// .NET 9 on by the call of this name where there is one, else by other registers (dotnet/runtime#99076).
pub fn stops_by() -> &'static str {
    // SAFETY: the names are strings, and the library is loaded in each process.
    let call = unsafe {
        GetProcAddress(GetModuleHandleA(c"kernel32.dll".as_ptr()), c"QueueUserAPC2".as_ptr())
    };
    if call.is_null() { "redirection" } else { "QueueUserAPC2" }
}

/// Returns what the runtime states about itself, if it does: a library, or the program in which it is.
pub fn contracts() -> Option<ContractDescriptor> {
    let name = c"DotNetRuntimeContractDescriptor";
    images().into_iter().find_map(|image| {
        let module = image.base as Handle;
        // SAFETY: the address of an image is its handle, and the name is a string. If it was unloaded
        // in between, nothing is found.
        let address = unsafe { GetProcAddress(module, name.as_ptr()) };
        (!address.is_null()).then(|| ContractDescriptor::read(&OwnProcess, address as u64).ok())?
    })
}
