//! The interfaces of a module's metadata, over its tables. Results are those of `RegMeta` of CoreCLR 3.1
//! (src/md/compiler/import.cpp, regmeta_import.cpp, custattr_import.cpp, assemblymd.cpp) and of dotnet/runtime
//! (src/coreclr/md/compiler, emit.cpp and regmeta_imetadatatables.cpp, too).

#![allow(clippy::unnecessary_wraps, reason = "each answer has this form")]

/// Lists methods, each with the method of [`Call`] that answers it.
macro_rules! answers {
    ($methods:ident { $($method:ident => $answer:ident;)* }) => {
        $($methods!($method => $answer);)*
    };
}

mod assemblies;
mod assembly_emit;
mod blobs;
mod dispenser;
mod emit;
mod enumerations;
mod members;
mod methods;
mod scope;
mod table_info;
mod types;

use crate::enumeration::TokenEnumeration;
use crate::inner::{Inner, SharedMetadata};
use crate::out::{count, put, put_all, put_cut, wide};
use crate::process::Process;
use crate::results;
use clr_com::{EnumHandle, Token};
use clr_metadata::Table;
use clr_runtime::metadata::{Module, ModuleImage};
use clr_walker::profiling::HResult;
use std::rc::Rc;

pub use dispenser::get_dispenser;
pub(crate) use dispenser::offer;
pub(crate) use scope::Scope;
use scope::{Assemblies, AssemblyEmit, Emit, Import, Info, Tables};

/// Distance between two handles of enumerations.
const HANDLE_PITCH: usize = 0x10;

/// A call of a method.
struct Call<'c> {
    method: &'static str,
    session: &'c Rc<Inner>,
    process: &'c Process,
    module: &'c Module,
    data: SharedMetadata,
}

/// The bits of a token that hold its table, and those of a user string (mdtString).
const TABLE: u32 = 0xFF00_0000;
const STRING: u32 = 0x7000_0000;

/// Writes a name and its length (CMiniMdRW::Impl_GetStringW).
unsafe fn put_name(name: &str, capacity: u32, len: *mut u32, to: *mut u16) -> HResult {
    if name.is_empty() {
        // SAFETY: the profiler's pointers, here and below.
        unsafe {
            if capacity > 0 {
                put(to, 0);
            }
            put(len, 0);
        }
        return HResult::OK;
    }
    let text = wide(name);
    // SAFETY: as above.
    unsafe {
        put(len, count(text.len()));
        let asks = to.is_null() || capacity == 0;
        if asks || put_cut(to, capacity, &text) { HResult::OK } else { results::TRUNCATION }
    }
}

/// Writes a blob and its size.
unsafe fn put_blob(blob: &[u8], to: *mut *const u8, size: *mut u32) {
    // SAFETY: the profiler's pointers. Heaps keep their blobs as long as the session lives.
    unsafe {
        put(to, blob.as_ptr());
        put(size, count(blob.len()));
    }
}

/// Reads a blob of the profiler; `None` for an empty one.
unsafe fn read_blob<T>(from: *const T, size: u32) -> Option<Vec<u8>> {
    // SAFETY: the profiler's blob has this size.
    (!from.is_null() && size > 0)
        .then(|| unsafe { std::slice::from_raw_parts(from.cast(), size as usize) }.to_vec())
}

impl Call<'_> {
    /// Refuses a token without a row, whatever table it is of: `RidFromToken`.
    fn check(&self, table: Table, token: Token) -> Result<(), HResult> {
        let has = self.data.borrow().has_row(table, token);
        has.then_some(()).ok_or(results::INDEX_NOT_FOUND)
    }

    /// Returns the module's image.
    fn image(&self) -> Option<&ModuleImage> {
        self.process.runtime().metadata.image(self.module.id)
    }

    /// Refuses NULL where a CLR does not check.
    fn null(&self, argument: &'static str) -> HResult {
        self.session.shared.find_null(self.method, argument);
        HResult::INVALID_ARGUMENT
    }

    /// Continues an enumeration, or begins one of these tokens (HENUMInternal::EnumWithCount).
    unsafe fn enumerate_tokens(
        &self,
        enumerator: *mut EnumHandle,
        tokens: impl FnOnce() -> Result<Vec<Token>, HResult>,
        (to, capacity, fetched): (*mut Token, u32, *mut u32),
    ) -> HResult {
        if enumerator.is_null() {
            return self.null("phEnum");
        }
        if to.is_null() && capacity > 0 {
            return self.null("rTokens");
        }
        let mut enumerations = self.session.enumerations.borrow_mut();
        // SAFETY: the profiler's pointer, which is not NULL.
        let mut handle = unsafe { enumerator.read_unaligned() } as usize;
        if handle == 0 {
            let tokens = match tokens() {
                Ok(tokens) => tokens,
                Err(refused) => return refused,
            };
            handle = HANDLE_PITCH + enumerations.last_key_value().map_or(0, |(last, _)| *last);
            enumerations.insert(handle, TokenEnumeration { tokens, at: 0 });
        }
        let Some(enumeration) = enumerations.get_mut(&handle) else { return self.unknown(handle) };
        let rest = enumeration.tokens.get(enumeration.at..).unwrap_or_default();
        let passed = rest.len().min(capacity as usize);
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(to, capacity, rest);
            put(fetched, count(passed));
        }
        enumeration.at += passed;
        if enumeration.tokens.is_empty() {
            // HENUMInternal::DestroyEnumIfEmpty.
            enumerations.remove(&handle);
            handle = 0;
        }
        // SAFETY: as above.
        unsafe { enumerator.write_unaligned(handle as EnumHandle) };
        if passed == 0 { HResult::FALSE } else { HResult::OK }
    }

    /// Ends an enumeration.
    fn close(&self, handle: usize) -> HResult {
        let closed = self.session.enumerations.borrow_mut().remove(&handle).is_some();
        if handle == 0 || closed { HResult::OK } else { self.unknown(handle) }
    }

    /// Refuses a handle that no enumeration has. A CLR takes it for an address.
    fn unknown(&self, handle: usize) -> HResult {
        self.session.shared.find_unknown(self.method, handle as u64);
        HResult::INVALID_ARGUMENT
    }
}
