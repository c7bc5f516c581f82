//! `IMetaDataImport2` and `IMetaDataAssemblyImport` over the names of a module. Results are those of `RegMeta` of CoreCLR 3.1
//! (src/md/compiler/import.cpp, regmeta_import.cpp, custattr_import.cpp, assemblymd.cpp).

mod assemblies;
mod generics;
mod scope;
mod types;

use crate::enumeration::TokenEnumeration;
use crate::inner::{Inner, SharedMetadata};
use crate::out::{count, put, put_all, put_cut, wide};
use crate::results;
use clr_com::{EnumHandle, Token};
use clr_runtime::metadata::Module;
use clr_walker::profiling::HResult;
use std::rc::Rc;

pub(crate) use scope::Scope;
use scope::{Assemblies, Import};

/// Distance between two handles of enumerations.
const HANDLE_PITCH: usize = 0x10;

/// A call of a method.
struct Call<'c> {
    method: &'static str,
    session: &'c Rc<Inner>,
    module: &'c Module,
    data: SharedMetadata,
}

/// Returns the row of a table that a token names, whatever table it is of: `RidFromToken`.
fn row<T>(table: &[T], token: Token) -> Result<&T, HResult> {
    let index = (token & 0x00FF_FFFF).checked_sub(1);
    index.and_then(|index| table.get(index as usize)).ok_or(results::INDEX_NOT_FOUND)
}

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

impl Call<'_> {
    /// Refuses NULL where a CLR does not check.
    fn null(&self, argument: &'static str) -> HResult {
        self.session.shared.find_null(self.method, argument);
        HResult::INVALID_ARGUMENT
    }

    /// Continues an enumeration, or begins one of these tokens (HENUMInternal::EnumWithCount).
    unsafe fn enumerate_tokens(
        &self,
        enumerator: *mut EnumHandle,
        tokens: impl FnOnce() -> Vec<Token>,
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
            handle = HANDLE_PITCH + enumerations.last_key_value().map_or(0, |(last, _)| *last);
            enumerations.insert(handle, TokenEnumeration { tokens: tokens(), at: 0 });
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
