//! `IMetaDataImport`: types, methods, attributes.

use super::{Call, Import, put_name, row};
use crate::out::{Answer, count, put, read_wide};
use crate::results;
use clr_com::{Bool, EnumHandle, Guid, IMetaDataImportMethods, Token};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// The bits of a token that hold its table.
pub(super) const TABLE: u32 = 0xFF00_0000;
const TYPE_REF: u32 = 0x0100_0000;
const TYPE_DEF: u32 = 0x0200_0000;
const FIELD_DEF: u32 = 0x0400_0000;
const METHOD_DEF: u32 = 0x0600_0000;
pub(super) const GENERIC_PARAMETER: u32 = 0x2A00_0000;
/// The blob of a custom attribute without arguments.
static NO_ARGUMENTS: [u8; 4] = [1, 0, 0, 0];

/// Returns a namespace and a name as one: `Acme.Web.Handler`.
fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

impl Call<'_> {
    /// Returns the tokens of a type's methods.
    fn methods_of(&self, type_def: Token) -> Vec<Token> {
        let own = self.module.methods().iter().filter(|method| method.owner == type_def);
        own.map(|method| method.token).collect()
    }

    /// Returns true if a token has a row.
    fn is_valid(&self, token: Token) -> bool {
        let module = self.module;
        match token & TABLE {
            0 => token == module.token(),
            TYPE_REF => row(module.type_refs(), token).is_ok(),
            TYPE_DEF => row(module.types(), token).is_ok(),
            METHOD_DEF => row(module.methods(), token).is_ok(),
            GENERIC_PARAMETER => row(module.generic_parameters(), token).is_ok(),
            _ => false,
        }
    }

    IMetaDataImportMethods!(method = GetMethodProps(self, token, class, to, capacity, len, attr,
        signature, signature_size, code_rva, impl_flags) {
        let found = row(self.module.methods(), token)?;
        let global = self.module.types().first().map_or(0, |first| first.token);
        // SAFETY: the profiler's pointers. The signature lives as long as the session.
        unsafe {
            put(class, if found.owner == global { TYPE_DEF } else { found.owner });
            put(signature, found.signature.as_ptr());
            put(signature_size, count(found.signature.len()));
            put(attr, found.flags);
            put(code_rva, self.data.borrow().get(token, clr_metadata::Method::RVA));
            put(impl_flags, 0);
            Ok(put_name(&found.name, capacity, len, to))
        }
    });
}

/// Writes the name of a type (ns::MakePath): unlike that of a method, it counts as cut off if
/// the buffer is empty.
unsafe fn put_path(name: &str, capacity: u32, len: *mut u32, to: *mut u16) -> HResult {
    // SAFETY: the profiler's pointers.
    let result = unsafe { put_name(name, capacity, len, to) };
    if capacity == 0 && !to.is_null() { results::TRUNCATION } else { result }
}

impl IMetaDataImportMethods for Import {
    unsafe fn CloseEnum(&self, enumerator: EnumHandle) {
        let handle = enumerator as usize;
        self.on("CloseEnum", |call| Ok(call.close(handle)));
    }

    IMetaDataImportMethods!(fn CountEnum(call, enumerator, count) {
        let handle = enumerator as usize;
        if count.is_null() {
            return Ok(call.null("pulCount"));
        }
        let enumerations = call.session.enumerations.borrow();
        let len = match enumerations.get(&handle) {
            Some(enumeration) => crate::out::count(enumeration.tokens.len()),
            None if handle == 0 => 0,
            None => return Ok(call.unknown(handle)),
        };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(count, len) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(fn ResetEnum(call, enumerator, pos) {
        let handle = enumerator as usize;
        let mut enumerations = call.session.enumerations.borrow_mut();
        match enumerations.get_mut(&handle) {
            Some(enumeration) => enumeration.at = pos as usize,
            None if handle == 0 => {}
            None => return Ok(call.unknown(handle)),
        }
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(fn EnumTypeDefs(call, enumerator, type_defs, capacity, type_defs_len) {
        // The type of global functions is left out.
        let tokens = || call.module.types().iter().skip(1).map(|one| one.token).collect();
        // SAFETY: the profiler's pointers.
        Ok(unsafe { call.enumerate_tokens(enumerator, tokens, (type_defs, capacity, type_defs_len)) })
    });

    IMetaDataImportMethods!(fn EnumTypeRefs(call, enumerator, type_refs, capacity, type_refs_len) {
        let tokens = || call.module.type_refs().iter().map(|one| one.token).collect();
        // SAFETY: the profiler's pointers.
        Ok(unsafe { call.enumerate_tokens(enumerator, tokens, (type_refs, capacity, type_refs_len)) })
    });

    IMetaDataImportMethods!(fn EnumMethods(call, enumerator, type_def, methods, capacity, tokens_len) {
        let tokens = || call.methods_of(type_def);
        // SAFETY: the profiler's pointers.
        Ok(unsafe { call.enumerate_tokens(enumerator, tokens, (methods, capacity, tokens_len)) })
    });

    IMetaDataImportMethods!(fn FindTypeDefByName(call, name, enclosing_class, type_def) {
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if type_def.is_null() {
            return Ok(call.null("ptd"));
        }
        // SAFETY: the profiler's text, which is not NULL.
        let wanted = unsafe { read_wide(name) };
        let enclosing = Some(enclosing_class).filter(|token| token & !TABLE != 0);
        let mut types = call.module.types().iter();
        let found = types.find(|one| {
            one.enclosing == enclosing && full_name(&one.namespace, &one.name) == wanted
        });
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(type_def, found.map_or(TYPE_DEF, |one| one.token)) };
        Ok(if found.is_some() { HResult::OK } else { results::RECORD_NOT_FOUND })
    });

    IMetaDataImportMethods!(fn GetScopeProps(call, name, name_capacity, name_len, mvid) {
        let id = call.module.id;
        // SAFETY: the profiler's pointers.
        unsafe {
            let data4 = id.to_be_bytes();
            put(mvid, Guid { data1: id as u32, data2: 0, data3: 0x4000, data4 });
            Ok(put_name(call.module.name(), name_capacity, name_len, name))
        }
    });

    IMetaDataImportMethods!(fn GetModuleFromScope(call, module) {
        if module.is_null() {
            return Ok(call.null("pmd"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(module, call.module.token()) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(fn GetTypeDefProps(call, token, type_def, type_def_capacity, type_def_len,
        type_def_flags, extends) {
        if token & TABLE != TYPE_DEF {
            return Ok(HResult::FALSE);
        }
        if token == TYPE_DEF {
            // SAFETY: the profiler's pointers, here and below.
            unsafe {
                put(type_def_flags, 0);
                put(extends, TYPE_REF);
                put(type_def_len, 1);
                if type_def_capacity > 0 {
                    put(type_def, 0);
                }
            }
            return Ok(HResult::OK);
        }
        let found = row(call.module.types(), token)?;
        let name = full_name(&found.namespace, &found.name);
        // SAFETY: as above.
        unsafe {
            put(type_def_flags, found.flags);
            put(extends, found.extends);
            Ok(put_path(&name, type_def_capacity, type_def_len, type_def))
        }
    });

    IMetaDataImportMethods!(fn GetTypeRefProps(call, type_ref, resolution_scope, name, name_capacity,
        name_len) {
        if type_ref & TABLE != TYPE_REF {
            return Ok(HResult::FALSE);
        }
        if type_ref == TYPE_REF {
            // SAFETY: the profiler's pointers, here and below.
            unsafe {
                put(resolution_scope, 0);
                put(name_len, 1);
                if name_capacity > 0 {
                    put(name, 0);
                }
            }
            return Ok(HResult::OK);
        }
        let found = row(call.module.type_refs(), type_ref)?;
        let text = full_name(&found.namespace, &found.name);
        // SAFETY: as above.
        unsafe {
            put(resolution_scope, found.scope);
            Ok(put_path(&text, name_capacity, name_len, name))
        }
    });

    IMetaDataImportMethods!(GetMethodProps => method);

    IMetaDataImportMethods!(fn GetMemberProps(call, token, class, member, member_capacity, member_len,
        attr, signature, signature_size, code_rva, impl_flags, _element_type, _value, _value_len) {
        // There are no fields.
        if token & TABLE != METHOD_DEF {
            return Ok(results::INDEX_NOT_FOUND);
        }
        let (to, capacity, len, size) = (member, member_capacity, member_len, signature_size);
        // SAFETY: the profiler's pointers.
        unsafe { call.method(token, class, to, capacity, len, attr, signature, size, code_rva, impl_flags) }
    });

    // There are none.
    IMetaDataImportMethods!(GetTypeSpecFromToken = results::INDEX_NOT_FOUND);

    IMetaDataImportMethods!(fn GetRVA(call, token, code_rva, impl_flags) {
        if token & TABLE == FIELD_DEF {
            return Ok(results::INDEX_NOT_FOUND);
        }
        row(call.module.methods(), token)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(code_rva, call.data.borrow().get(token, clr_metadata::Method::RVA));
            put(impl_flags, 0);
        }
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(fn GetCustomAttributeByName(call, object, name, data, data_len) {
        if name.is_null() {
            return Ok(call.null("szName"));
        }
        // SAFETY: the profiler's text, which is not NULL.
        let wanted = unsafe { read_wide(name) };
        if !call.module.attributes_of(object).any(|name| name == wanted) {
            return Ok(HResult::FALSE);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(data, NO_ARGUMENTS.as_ptr().cast());
            put(data_len, count(NO_ARGUMENTS.len()));
        }
        Ok(HResult::OK)
    });

    unsafe fn IsValidToken(&self, token: Token) -> Bool {
        let mut valid = false;
        self.on("IsValidToken", |call| {
            valid = call.is_valid(token);
            Ok(HResult::OK)
        });
        valid.into()
    }

    IMetaDataImportMethods!(fn GetNestedClassProps(call, nested, enclosing) {
        if nested & TABLE != TYPE_DEF {
            return Ok(results::INVALID_TOKEN_TYPE);
        }
        let found = row(call.module.types(), nested).ok().and_then(|one| one.enclosing);
        let Some(outer) = found else { return Ok(results::RECORD_NOT_FOUND) };
        if enclosing.is_null() {
            return Ok(call.null("ptdEnclosingClass"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enclosing, outer) };
        Ok(HResult::OK)
    });
}
