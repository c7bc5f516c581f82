//! `IMetaDataAssemblyEmit`. Changes of rows had the same results in CLRs 8.0.34, 9.0.23, 10.0.15 and 11.0.0; of the others they are
//! assumed.

use super::AssemblyEmit;
use super::assemblies::{OF_ASSEMBLY, OF_REFERENCE, PUBLIC_KEY};
use super::emit::split;
use super::read_blob;
use crate::out::read_given;
use clr_com::{AssemblyMetadata, IMetaDataAssemblyEmitMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table, row_of};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// Version and locale of an assembly: four numbers and a name. What is `u16::MAX` or `None` stays as it is.
type Identity = ([u16; 4], Option<String>);

/// Reads an identity of the profiler. NULL is none.
unsafe fn read_identity(from: *const AssemblyMetadata) -> Option<Identity> {
    if from.is_null() {
        return None;
    }
    // SAFETY: the profiler's structure; its locale ends with 0.
    unsafe {
        let given = from.read_unaligned();
        let locale = read_given(given.locale);
        Some(([given.major, given.minor, given.build, given.revision], locale))
    }
}

/// Changes version and locale of a row, if they are given.
fn set_identity<C: Column>(
    data: &mut Metadata,
    row: Token,
    columns: [C; 5],
    identity: Option<&Identity>,
) {
    let Some((version, locale)) = identity else { return };
    let [major, minor, build, revision, named] = columns;
    for (column, value) in [major, minor, build, revision].into_iter().zip(*version) {
        set_number(data, row, column, if value == u16::MAX { u32::MAX } else { value.into() });
    }
    if let Some(locale) = locale {
        data.set_string(row, named, locale);
    }
}

/// Changes a number or token of a row, unless it is `u32::MAX`.
fn set_number<C: Column>(data: &mut Metadata, row: Token, to: C, number: u32) {
    if number != u32::MAX {
        data.set(row, to, number);
    }
}

/// Changes a token of a row, unless it is nil: without a row, whatever its table is.
fn set_token<C: Column>(data: &mut Metadata, row: Token, to: C, token: Token) {
    if row_of(token) != 0 {
        data.set(row, to, token);
    }
}

/// Changes the text and the blob of a row that are given.
fn set_given<C: Column>(
    data: &mut Metadata,
    row: Token,
    (name, to): (&Option<String>, C),
    blobs: &[(&Option<Vec<u8>>, C)],
) {
    if let Some(name) = name {
        data.set_string(row, to, name);
    }
    for (blob, to) in blobs {
        if let Some(blob) = blob {
            data.set_blob(row, *to, blob);
        }
    }
}

impl IMetaDataAssemblyEmitMethods for AssemblyEmit {
    IMetaDataAssemblyEmitMethods!(fn DefineAssembly(call, public_key, public_key_size, hash_algorithm,
        name, metadata, assembly_flags, assembly) {
        use md::Assembly as A;
        // SAFETY: the profiler's pointers, here and below.
        let (name, key, identity) = unsafe {
            (read_given(name), read_blob(public_key, public_key_size), read_identity(metadata))
        };
        // There is one at most, whose row is used again.
        let new = || call.change(|data| {
            let row = data.tokens(Table::Assembly).next();
            let row = row.unwrap_or_else(|| data.add(Table::Assembly));
            data.set(row, A::HashAlgId, hash_algorithm);
            data.set(row, A::Flags, assembly_flags);
            set_given(data, row, (&name, A::Name), &[(&key, A::PublicKey)]);
            set_identity(data, row, OF_ASSEMBLY, identity.as_ref());
            row
        });
        // SAFETY: as above.
        unsafe { call.give(None, new, assembly) }
    });

    IMetaDataAssemblyEmitMethods!(fn DefineAssemblyRef(call, public_key, public_key_size, name, metadata,
        hash, hash_size, reference_flags, assembly_ref) {
        use md::AssemblyRef as A;
        // SAFETY: as above.
        let (name, key, hash, identity) = unsafe {
            let key = read_blob(public_key, public_key_size);
            (read_given(name), key, read_blob(hash, hash_size), read_identity(metadata))
        };
        let new = || call.change(|data| {
            let row = data.add(Table::AssemblyRef);
            data.set(row, A::Flags, reference_flags);
            let blobs = [(&key, A::PublicKeyOrToken), (&hash, A::HashValue)];
            set_given(data, row, (&name, A::Name), &blobs);
            set_identity(data, row, OF_REFERENCE, identity.as_ref());
            row
        });
        // SAFETY: as above.
        unsafe { call.give(None, new, assembly_ref) }
    });

    IMetaDataAssemblyEmitMethods!(fn DefineFile(call, name, hash, hash_size, file_flags, file) {
        // SAFETY: as above.
        let (name, hash) = unsafe { (read_given(name), read_blob(hash, hash_size)) };
        let new = || call.change(|data| {
            let row = data.add(Table::File);
            data.set(row, md::File::Flags, file_flags);
            set_given(data, row, (&name, md::File::Name), &[(&hash, md::File::HashValue)]);
            row
        });
        // SAFETY: as above.
        unsafe { call.give(None, new, file) }
    });

    IMetaDataAssemblyEmitMethods!(fn DefineExportedType(call, name, implementation, type_def, type_flags,
        exported_type) {
        use md::ExportedType as E;
        // SAFETY: as above.
        let full = unsafe { read_given(name) }.unwrap_or_default();
        let (namespace, name) = split(&full);
        let new = || call.change(|data| {
            let row = data.add(Table::ExportedType);
            data.set(row, E::Flags, type_flags);
            data.set(row, E::TypeDefId, type_def);
            data.set(row, E::Implementation, implementation);
            data.set_string(row, E::TypeNamespace, namespace);
            data.set_string(row, E::TypeName, name);
            row
        });
        // SAFETY: as above.
        unsafe { call.give(None, new, exported_type) }
    });

    IMetaDataAssemblyEmitMethods!(fn DefineManifestResource(call, name, implementation, offset,
        resource_flags, resource) {
        use md::ManifestResource as M;
        // SAFETY: as above.
        let name = unsafe { read_given(name) };
        let new = || call.change(|data| {
            let row = data.add(Table::ManifestResource);
            data.set(row, M::Offset, offset);
            data.set(row, M::Flags, resource_flags);
            data.set(row, M::Implementation, implementation);
            set_given(data, row, (&name, M::Name), &[]);
            row
        });
        // SAFETY: as above.
        unsafe { call.give(None, new, resource) }
    });

    IMetaDataAssemblyEmitMethods!(fn SetAssemblyRefProps(call, assembly_ref, public_key, public_key_size,
        name, metadata, hash, hash_size, reference_flags) {
        use md::AssemblyRef as A;
        call.check(Table::AssemblyRef, assembly_ref)?;
        // SAFETY: as above.
        let (name, key, hash, identity) = unsafe {
            let key = read_blob(public_key, public_key_size);
            (read_given(name), key, read_blob(hash, hash_size), read_identity(metadata))
        };
        call.change(|data| {
            let blobs = [(&key, A::PublicKeyOrToken), (&hash, A::HashValue)];
            set_given(data, assembly_ref, (&name, A::Name), &blobs);
            set_number(data, assembly_ref, A::Flags, reference_flags);
            set_identity(data, assembly_ref, OF_REFERENCE, identity.as_ref());
        });
        Ok(HResult::OK)
    });

    IMetaDataAssemblyEmitMethods!(fn SetAssemblyProps(call, assembly, public_key, public_key_size,
        hash_algorithm, name, metadata, assembly_flags) {
        use md::Assembly as A;
        call.check(Table::Assembly, assembly)?;
        if metadata.is_null() {
            return Ok(call.null("pMetaData"));
        }
        // SAFETY: as above.
        let (name, key, identity) = unsafe {
            (read_given(name), read_blob(public_key, public_key_size), read_identity(metadata))
        };
        let key_flag = if public_key_size == 0 { 0 } else { PUBLIC_KEY };
        call.change(|data| {
            set_number(data, assembly, A::HashAlgId, hash_algorithm);
            let name = Some(name.unwrap_or_default());
            set_given(data, assembly, (&name, A::Name), &[(&key, A::PublicKey)]);
            set_identity(data, assembly, OF_ASSEMBLY, identity.as_ref());
            data.set(assembly, A::Flags, assembly_flags & !PUBLIC_KEY | key_flag);
        });
        Ok(HResult::OK)
    });

    IMetaDataAssemblyEmitMethods!(fn SetFileProps(call, file, hash, hash_size, file_flags) {
        call.check(Table::File, file)?;
        // SAFETY: as above.
        let hash = unsafe { read_blob(hash, hash_size) };
        call.change(|data| {
            set_given(data, file, (&None, md::File::Name), &[(&hash, md::File::HashValue)]);
            set_number(data, file, md::File::Flags, file_flags);
        });
        Ok(HResult::OK)
    });

    IMetaDataAssemblyEmitMethods!(fn SetExportedTypeProps(call, exported_type, implementation, type_def,
        type_flags) {
        use md::ExportedType as E;
        call.check(Table::ExportedType, exported_type)?;
        call.change(|data| {
            set_token(data, exported_type, E::Implementation, implementation);
            set_token(data, exported_type, E::TypeDefId, type_def);
            set_number(data, exported_type, E::Flags, type_flags);
        });
        Ok(HResult::OK)
    });

    IMetaDataAssemblyEmitMethods!(fn SetManifestResourceProps(call, resource, implementation, offset,
        resource_flags) {
        use md::ManifestResource as M;
        call.check(Table::ManifestResource, resource)?;
        call.change(|data| {
            // mdTokenNil is 0: another nil token is a token.
            if implementation != 0 {
                data.set(resource, M::Implementation, implementation);
            }
            set_number(data, resource, M::Offset, offset);
            set_number(data, resource, M::Flags, resource_flags);
        });
        Ok(HResult::OK)
    });
}
