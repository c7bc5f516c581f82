//! What a runtime states about itself.

use super::{Handle, OwnProcess, images};
use clr_walker::jitted::contracts::ContractDescriptor;
use std::ffi::{c_char, c_void};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetProcAddress(module: Handle, name: *const c_char) -> *const c_void;
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
