//! `IMetaDataAssemblyImport`.

use super::types::full_name;
use super::{Assemblies, Call, put_blob, put_name};
use crate::out::{put, read_wide};
use crate::results;
use clr_com::{AssemblyMetadata, EnumHandle, IMetaDataAssemblyImportMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `afPublicKey`.
pub(super) const PUBLIC_KEY: u32 = 1;

/// The columns of version and locale, of the assembly and of references.
pub(super) const OF_ASSEMBLY: [md::Assembly; 5] = {
    use md::Assembly as A;
    [A::MajorVersion, A::MinorVersion, A::BuildNumber, A::RevisionNumber, A::Locale]
};
pub(super) const OF_REFERENCE: [md::AssemblyRef; 5] = {
    use md::AssemblyRef as A;
    [A::MajorVersion, A::MinorVersion, A::BuildNumber, A::RevisionNumber, A::Locale]
};

impl Call<'_> {
    /// Writes the blob of a row and its size, if the blob is wanted.
    unsafe fn put_wanted_blob<C: Column>(
        &self,
        data: &Metadata,
        (token, column): (Token, C),
        (to, size): (*mut *const c_void, *mut u32),
    ) -> Result<(), HResult> {
        if to.is_null() {
            return Ok(());
        }
        if size.is_null() {
            return Err(self.null("pcb"));
        }
        // SAFETY: the profiler's pointers, which are not NULL.
        unsafe { put_blob(data.blob(token, column), to.cast(), size) };
        Ok(())
    }
}

/// Writes the version and the locale, of a row with these columns.
unsafe fn put_version<C: Column>(
    data: &Metadata,
    row: Token,
    columns: [C; 5],
    to: *mut AssemblyMetadata,
) {
    if to.is_null() {
        return;
    }
    let [major, minor, build, revision, locale] = columns;
    let number = |column| data.get(row, column) as u16;
    // SAFETY: the profiler's structure; its buffer has the capacity that it says.
    unsafe {
        let mut metadata = to.read_unaligned();
        let (room, buffer) = (metadata.locale_len, metadata.locale);
        put_name(data.string(row, locale), room, &raw mut metadata.locale_len, buffer);
        (metadata.major, metadata.minor) = (number(major), number(minor));
        (metadata.build, metadata.revision) = (number(build), number(revision));
        (metadata.processors_len, metadata.systems_len) = (0, 0);
        to.write_unaligned(metadata);
    }
}

/// Declares enumerations of all rows of a table.
macro_rules! all_rows {
    ($($method:ident $table:ident;)*) => {$(
        IMetaDataAssemblyImportMethods!(fn $method(call, enumerator, to, capacity, len) {
            let tokens = || Ok(call.data.borrow().tokens(Table::$table).collect());
            // SAFETY: the profiler's pointers.
            Ok(unsafe { call.enumerate_tokens(enumerator, tokens, (to, capacity, len)) })
        });
    )*};
}

impl IMetaDataAssemblyImportMethods for Assemblies {
    all_rows! {
        EnumAssemblyRefs AssemblyRef;
        EnumFiles File;
        EnumExportedTypes ExportedType;
        EnumManifestResources ManifestResource;
    }

    IMetaDataAssemblyImportMethods!(fn GetAssemblyProps(call, token, public_key, public_key_size,
        hash_algorithm, name, name_capacity, name_len, metadata, assembly_flags) {
        use md::Assembly as A;
        call.check(Table::Assembly, token)?;
        let data = call.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            call.put_wanted_blob(&data, (token, A::PublicKey), (public_key, public_key_size))?;
            put(hash_algorithm, data.get(token, A::HashAlgId));
            put_version(&data, token, OF_ASSEMBLY, metadata);
            // Whatever the flags say, a key that is there has one.
            let has_key = data.get(token, A::PublicKey) != 0;
            let key_flag = if has_key { PUBLIC_KEY } else { 0 };
            put(assembly_flags, data.get(token, A::Flags) | key_flag);
            Ok(put_name(data.string(token, A::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetAssemblyRefProps(call, token, public_key, public_key_size,
        name, name_capacity, name_len, metadata, hash, hash_size, reference_flags) {
        use md::AssemblyRef as A;
        call.check(Table::AssemblyRef, token)?;
        let data = call.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            // The refusal of one writes nothing of the other.
            if !hash.is_null() && hash_size.is_null() {
                return Ok(call.null("pcb"));
            }
            call.put_wanted_blob(&data, (token, A::PublicKeyOrToken), (public_key, public_key_size))?;
            call.put_wanted_blob(&data, (token, A::HashValue), (hash, hash_size))?;
            put_version(&data, token, OF_REFERENCE, metadata);
            put(reference_flags, data.get(token, A::Flags));
            Ok(put_name(data.string(token, A::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetFileProps(call, token, name, name_capacity, name_len, hash,
        hash_size, file_flags) {
        call.check(Table::File, token)?;
        let data = call.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            call.put_wanted_blob(&data, (token, md::File::HashValue), (hash, hash_size))?;
            put(file_flags, data.get(token, md::File::Flags));
            Ok(put_name(data.string(token, md::File::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetExportedTypeProps(call, token, name, name_capacity, name_len,
        implementation, type_def, type_flags) {
        use md::ExportedType as E;
        call.check(Table::ExportedType, token)?;
        let data = call.data.borrow();
        let full = full_name(data.string(token, E::TypeNamespace), data.string(token, E::TypeName));
        // SAFETY: the profiler's pointers.
        unsafe {
            put(implementation, data.get(token, E::Implementation));
            put(type_def, data.get(token, E::TypeDefId));
            put(type_flags, data.get(token, E::Flags));
            Ok(put_name(&full, name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetManifestResourceProps(call, token, name, name_capacity,
        name_len, implementation, offset, resource_flags) {
        use md::ManifestResource as M;
        call.check(Table::ManifestResource, token)?;
        let data = call.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(implementation, data.get(token, M::Implementation));
            put(offset, data.get(token, M::Offset));
            put(resource_flags, data.get(token, M::Flags));
            Ok(put_name(data.string(token, M::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataAssemblyImportMethods!(fn GetAssemblyFromScope(call, assembly) {
        let found = call.data.borrow().tokens(Table::Assembly).next();
        let Some(found) = found else { return Ok(results::RECORD_NOT_FOUND) };
        if assembly.is_null() {
            return Ok(call.null("ptkAssembly"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(assembly, found) };
        Ok(HResult::OK)
    });

    IMetaDataAssemblyImportMethods!(fn FindExportedTypeByName(call, name, enclosing_type,
        exported_type) {
        use md::ExportedType as E;
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers; the text is not NULL.
        let wanted = unsafe {
            put(exported_type, 0);
            read_wide(name)
        };
        let data = call.data.borrow();
        let found = data.tokens(Table::ExportedType).find(|row| {
            let outer = data.get(*row, E::Implementation);
            let nested = md::table_of(outer) == Some(Table::ExportedType) && md::row_of(outer) != 0;
            let outer = if nested { outer } else { 0 };
            outer == if md::row_of(enclosing_type) == 0 { 0 } else { enclosing_type }
                && full_name(data.string(*row, E::TypeNamespace), data.string(*row, E::TypeName)) == wanted
        });
        // SAFETY: the profiler's pointer.
        unsafe { call.put_found(found, exported_type) }
    });

    IMetaDataAssemblyImportMethods!(fn FindManifestResourceByName(call, name, resource) {
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers; the text is not NULL.
        let wanted = unsafe {
            put(resource, md::token(Table::ManifestResource, 0));
            read_wide(name)
        };
        let data = call.data.borrow();
        let mut all = data.tokens(Table::ManifestResource);
        let found = all.find(|row| data.string(*row, md::ManifestResource::Name) == wanted);
        // SAFETY: the profiler's pointer.
        unsafe { call.put_found(found, resource) }
    });

    // A CLR without Fusion does not look for other assemblies.
    IMetaDataAssemblyImportMethods!(FindAssembliesByName = HResult::NOT_IMPLEMENTED);

    unsafe fn CloseEnum(&self, enumerator: EnumHandle) {
        self.on("CloseEnum", |call| Ok(call.close(enumerator as usize)));
    }
}
