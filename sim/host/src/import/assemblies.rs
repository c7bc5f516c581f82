//! `IMetaDataAssemblyImport`. Of an assembly nothing but its name is known: its version is 0.0.0.0.

use super::{Assemblies, Call, put_name};
use crate::out::{Answer, count, put};
use crate::results;
use clr_com::{AssemblyMetadata, EnumHandle, IMetaDataAssemblyImportMethods, Token};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `CALG_SHA1`, of each assembly that compilers make (observed).
const SHA1: u32 = 0x8004;
/// The public key token of the core library of .NET.
static CORE_TOKEN: [u8; 8] = [0x7C, 0xEC, 0x85, 0xD7, 0xBE, 0xA7, 0x79, 0x8E];

/// Returns the row that a token names, whatever table it is of: `RidFromToken`.
const fn rid(token: Token) -> u32 {
    token & 0x00FF_FFFF
}

impl Call<'_> {
    /// Writes a blob and its size, if the blob is wanted.
    unsafe fn put_blob(
        &self,
        blob: &'static [u8],
        (to, size): (*mut *const c_void, *mut u32),
    ) -> Result<(), HResult> {
        if to.is_null() {
            return Ok(());
        }
        if size.is_null() {
            return Err(self.null("pcb"));
        }
        // SAFETY: the profiler's pointers, which are not NULL.
        unsafe {
            put(to, blob.as_ptr().cast());
            put(size, count(blob.len()));
        }
        Ok(())
    }
}

#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "each answer has this form")]
impl Call<'_> {
    // Begins or continues an enumeration of nothing.
    IMetaDataAssemblyImportMethods!(nothing = EnumFiles(self, enumerator, to, capacity, fetched) {
        // SAFETY: the profiler's pointers, here and below.
        Ok(unsafe { self.enumerate_tokens(enumerator, Vec::new, (to, capacity, fetched)) })
    });

    IMetaDataAssemblyImportMethods!(assembly_refs = EnumAssemblyRefs(self, enumerator, to, capacity,
        fetched) {
        let tokens = || self.module.assembly_refs().map(|(token, _)| token).collect();
        // SAFETY: as above.
        Ok(unsafe { self.enumerate_tokens(enumerator, tokens, (to, capacity, fetched)) })
    });

    unsafe fn assembly(&self, assembly: *mut Token) -> Answer {
        if assembly.is_null() {
            return Ok(self.null("ptkAssembly"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(assembly, self.module.assembly_token()) };
        Ok(HResult::OK)
    }

    fn no_type(&self, name: *const u16, _: Token, _: *mut Token) -> Answer {
        Ok(not_found(name))
    }

    fn no_resource(&self, name: *const u16, _: *mut Token) -> Answer {
        Ok(not_found(name))
    }
}

/// Writes the version, and a locale without characters.
unsafe fn put_version(to: *mut AssemblyMetadata) {
    if to.is_null() {
        return;
    }
    // SAFETY: the profiler's structure; its buffer has the capacity that it says.
    unsafe {
        let mut metadata = to.read_unaligned();
        put_name("", metadata.locale_len, &raw mut metadata.locale_len, metadata.locale);
        (metadata.major, metadata.minor, metadata.build, metadata.revision) = (0, 0, 0, 0);
        (metadata.processors_len, metadata.systems_len) = (0, 0);
        to.write_unaligned(metadata);
    }
}

impl IMetaDataAssemblyImportMethods for Assemblies {
    IMetaDataAssemblyImportMethods!(fn GetAssemblyProps(call, token, public_key, public_key_size,
        hash_algorithm, name, name_capacity, name_len, metadata, assembly_flags) {
        if rid(token) != rid(call.module.assembly_token()) {
            return Ok(results::INDEX_NOT_FOUND);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            call.put_blob(&[], (public_key, public_key_size))?;
            put(hash_algorithm, SHA1);
            put_version(metadata);
            put(assembly_flags, 0);
            Ok(put_name(&call.module.assembly_name, name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetAssemblyRefProps(call, token, public_key, public_key_size,
        name, name_capacity, name_len, metadata, hash, hash_size, reference_flags) {
        let mut all = call.module.assembly_refs();
        let Some((_, found)) = all.find(|(one, _)| rid(*one) == rid(token)) else {
            return Ok(results::INDEX_NOT_FOUND);
        };
        // SAFETY: the profiler's pointers.
        unsafe {
            // The refusal of one writes nothing of the other.
            if !hash.is_null() && hash_size.is_null() {
                return Ok(call.null("pcb"));
            }
            call.put_blob(&CORE_TOKEN, (public_key, public_key_size))?;
            call.put_blob(&[], (hash, hash_size))?;
            put_version(metadata);
            put(reference_flags, 0);
            Ok(put_name(found, name_capacity, name_len, name))
        }
    });

    // There are none.
    IMetaDataAssemblyImportMethods!(GetFileProps = results::INDEX_NOT_FOUND);
    IMetaDataAssemblyImportMethods!(GetExportedTypeProps = results::INDEX_NOT_FOUND);
    IMetaDataAssemblyImportMethods!(GetManifestResourceProps = results::INDEX_NOT_FOUND);
    IMetaDataAssemblyImportMethods!(EnumFiles => nothing);
    IMetaDataAssemblyImportMethods!(EnumExportedTypes => nothing);
    IMetaDataAssemblyImportMethods!(EnumManifestResources => nothing);
    IMetaDataAssemblyImportMethods!(EnumAssemblyRefs => assembly_refs);
    IMetaDataAssemblyImportMethods!(GetAssemblyFromScope => assembly);
    IMetaDataAssemblyImportMethods!(FindExportedTypeByName => no_type);
    IMetaDataAssemblyImportMethods!(FindManifestResourceByName => no_resource);

    unsafe fn CloseEnum(&self, enumerator: EnumHandle) {
        self.on("CloseEnum", |call| Ok(call.close(enumerator as usize)));
    }
}

/// Returns the result of a search that finds nothing.
const fn not_found(name: *const u16) -> HResult {
    if name.is_null() { HResult::INVALID_ARGUMENT } else { results::RECORD_NOT_FOUND }
}
