//! Threads that the runtime has sent elsewhere, to stop them for the GC.
//!
//! On Windows CoreCLR stops a thread in a method by setting its rip to a stub, which asks for the saved
//! CONTEXT and stores that one's rip into the place of its own return address. Before it has done so,
//! the stack does not say where the thread was: the word on top is the return address of the interrupted
//! method. Afterwards the stub looks as if the interrupted instruction had called it.

use clr_unwind::CodeMap;

/// The stub's first instructions: push rax; push rbp; sub rsp, 28h; mov rbp, rsp; and rsp, -16; call.
/// Read in coreclr.dll of CoreCLR 3.1.23 (RVA 0x1465E0) and of .NET 8.0.4 (0x15CA80).
const BEGIN: [u8; 14] =
    [0x50, 0x55, 0x48, 0x83, 0xEC, 0x28, 0x48, 0x8B, 0xEC, 0x48, 0x83, 0xE4, 0xF0, 0xE8];
/// The instructions after the call: mov [rbp+20h], rax; mov rax, [rax+0F8h]; mov [rbp+30h], rax.
const STORE: [u8; 15] =
    [0x48, 0x89, 0x45, 0x20, 0x48, 0x8B, 0x80, 0xF8, 0, 0, 0, 0x48, 0x89, 0x45, 0x30];
/// Offset of [`STORE`] in the stub in bytes.
const STORE_AT: usize = 18;

/// The progress of a thread in the stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirected {
    /// The return address is not stored yet.
    Entered,
    /// The return address is that of the interrupted instruction.
    Stored,
}

impl Redirected {
    /// Returns the progress of a thread at `inside` (VA), if that is in the stub.
    #[cold]
    #[inline(never)]
    pub(super) fn at(map: &CodeMap<'_>, inside: u64) -> Option<Self> {
        let (region, function) = map.find_function(inside)?;
        let code = region.bytes_from(function.begin)?;
        let store = code.get(STORE_AT..)?;
        if !code.starts_with(&BEGIN) || !store.starts_with(&STORE) {
            return None;
        }
        let offset = region.rva(inside)?.checked_sub(function.begin)?;
        let is_stored = offset as usize >= STORE_AT + STORE.len();
        Some(if is_stored { Self::Stored } else { Self::Entered })
    }
}
