//! `IMetaDataEmit2`. All interfaces answer with the changes from then on. Saving is not simulated.

mod definitions;
mod members;

use super::types::full_name;
use super::{Call, Emit, STRING, read_blob};
use crate::out::{Answer, put, read_given};
use crate::results;
use clr_com::{FieldOffset, IMetaDataEmit2Methods, IMetaDataEmitMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table, row_of, token};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `mdPinvokeImpl`.
const IMPORTED: u32 = 0x2000;
/// An argument that changes nothing.
const UNCHANGED: u32 = u32::MAX;

/// Reads a name of the profiler. NULL is none.
unsafe fn read_name(from: *const u16) -> String {
    // SAFETY: the profiler's text.
    unsafe { read_given(from) }.unwrap_or_default()
}

/// Reads a blob of the profiler. NULL is none.
unsafe fn read_bytes<T>(from: *const T, size: u32) -> Vec<u8> {
    // SAFETY: the profiler's blob has this size.
    unsafe { read_blob(from, size) }.unwrap_or_default()
}

/// Reads tokens up to a nil one. NULL is none.
unsafe fn read_tokens(from: *const Token) -> Vec<Token> {
    /// No type has more interfaces.
    const LIMIT: usize = 0x1_0000;
    let mut all = Vec::new();
    while !from.is_null() && all.len() < LIMIT {
        // SAFETY: no token before this was nil.
        let one = unsafe { from.add(all.len()).read_unaligned() };
        if row_of(one) == 0 {
            break;
        }
        all.push(one);
    }
    all
}

/// Splits a full name of a type at its last dot: namespace and name.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

impl Call<'_> {
    /// Gives a new token to the profiler. `known` is one that there is already.
    pub(super) unsafe fn give(
        &self,
        known: Option<Token>,
        new: impl FnOnce() -> Token,
        to: *mut Token,
    ) -> Answer {
        if to.is_null() {
            return Ok(self.null("ptk"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(to, known.unwrap_or_else(new)) };
        Ok(if known.is_some() { results::DUPLICATE } else { HResult::OK })
    }

    /// Changes cells of a row.
    fn set<C: Column>(&self, row: Token, cells: &[(C, u32)]) {
        let mut data = self.data.borrow_mut();
        for (column, value) in cells {
            data.set(row, *column, *value);
        }
    }

    /// Changes the metadata.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Metadata) -> T) -> T {
        change(&mut self.data.borrow_mut())
    }

    IMetaDataEmitMethods!(define_type_ref = DefineTypeRefByName(self, resolution_scope, name, type_ref) {
        // SAFETY: the profiler's pointers, here and below.
        let full = unsafe { read_name(name) };
        let (namespace, name) = split(&full);
        let known = {
            let data = self.data.borrow();
            data.find_all(md::TypeRef::ResolutionScope, resolution_scope).find(|row| {
                let namespace = data.string(*row, md::TypeRef::Namespace);
                full_name(namespace, data.string(*row, md::TypeRef::Name)) == full
            })
        };
        let new = || self.change(|data| {
            let row = data.add(Table::TypeRef);
            data.set(row, md::TypeRef::ResolutionScope, resolution_scope);
            data.set_string(row, md::TypeRef::Name, name);
            data.set_string(row, md::TypeRef::Namespace, namespace);
            row
        });
        // SAFETY: as above.
        unsafe { self.give(known, new, type_ref) }
    });

    IMetaDataEmitMethods!(define_member_ref = DefineMemberRef(self, import, name, signature,
        signature_size, member_ref) {
        let import = if row_of(import) == 0 { token(Table::TypeDef, 1) } else { import };
        // SAFETY: as above.
        let (name, blob) = unsafe { (read_name(name), read_bytes(signature, signature_size)) };
        let known = super::members::find_member_ref(
            &self.data.borrow(),
            import,
            Some(&name),
            Some(&blob),
        );
        let new = || self.change(|data| {
            let row = data.add(Table::MemberRef);
            data.set(row, md::MemberRef::Class, import);
            data.set_string(row, md::MemberRef::Name, &name);
            data.set_blob(row, md::MemberRef::Signature, &blob);
            row
        });
        // SAFETY: as above.
        unsafe { self.give(known, new, member_ref) }
    });

    /// Gives the row with a blob to the profiler, a new one if there is none.
    unsafe fn row_of_blob<C: Column>(&self, column: C, blob: &[u8], to: *mut Token) -> Answer {
        let known = {
            let data = self.data.borrow();
            data.tokens(C::TABLE).find(|row| data.blob(*row, column) == blob)
        };
        let new = || {
            self.change(|data| {
                let row = data.add(C::TABLE);
                data.set_blob(row, column, blob);
                row
            })
        };
        // SAFETY: the profiler's pointer.
        unsafe { self.give(known, new, to) }
    }

    IMetaDataEmitMethods!(token_from_signature = GetTokenFromSig(self, signature, signature_size,
        token) {
        // SAFETY: as above.
        unsafe {
            let blob = read_bytes(signature, signature_size);
            self.row_of_blob(md::StandAloneSig::Signature, &blob, token)
        }
    });

    IMetaDataEmitMethods!(token_from_type_spec = GetTokenFromTypeSpec(self, signature, signature_size,
        type_spec) {
        // SAFETY: as above.
        unsafe {
            let blob = read_bytes(signature, signature_size);
            // That there is one already is not told (run in 10.0.15).
            self.row_of_blob(md::TypeSpec::Signature, &blob, type_spec)?;
            Ok(HResult::OK)
        }
    });

    IMetaDataEmitMethods!(define_user_string = DefineUserString(self, string, string_size, token) {
        if string.is_null() && string_size > 0 {
            return Ok(self.null("szString"));
        }
        // SAFETY: the profiler's text has this length, here and below.
        let unit = |index: u32| unsafe { string.add(index as usize).read_unaligned() };
        let text: Vec<u16> = (0..string_size).map(unit).collect();
        // The last byte is always 1 (read).
        let new = || self.change(|data| STRING | data.user_strings.add_user_string(&text, 1));
        // SAFETY: as above.
        unsafe { self.give(None, new, token) }
    });

    IMetaDataEmitMethods!(define_module_ref = DefineModuleRef(self, name, module_ref) {
        // SAFETY: as above.
        let name = unsafe { read_name(name) };
        let new = || self.change(|data| {
            let row = data.add(Table::ModuleRef);
            data.set_string(row, md::ModuleRef::Name, &name);
            row
        });
        // SAFETY: as above.
        unsafe { self.give(None, new, module_ref) }
    });

    IMetaDataEmitMethods!(set_parent = SetParent(self, member_ref, parent) {
        self.check(Table::MemberRef, member_ref)?;
        let parent = if row_of(parent) == 0 { token(Table::TypeDef, 1) } else { parent };
        self.set(member_ref, &[(md::MemberRef::Class, parent)]);
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_module = SetModuleProps(self, name) {
        // SAFETY: as above.
        let name = unsafe { read_name(name) };
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        self.change(|data| data.set_string(token(Table::Module, 1), md::Module::Name, name));
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(define_attribute = DefineCustomAttribute(self, owner, constructor, attribute,
        attribute_size, token) {
        // SAFETY: as above.
        let blob = unsafe { read_bytes(attribute, attribute_size) };
        let row = self.change(|data| {
            let row = data.add(Table::CustomAttribute);
            data.set(row, md::CustomAttribute::Parent, owner);
            data.set(row, md::CustomAttribute::Type, constructor);
            data.set_blob(row, md::CustomAttribute::Value, &blob);
            row
        });
        // SAFETY: as above. It may be NULL.
        unsafe { put(token, row) };
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_attribute = SetCustomAttributeValue(self, token, attribute,
        attribute_size) {
        self.check(Table::CustomAttribute, token)?;
        // SAFETY: as above.
        let blob = unsafe { read_bytes(attribute, attribute_size) };
        self.change(|data| data.set_blob(token, md::CustomAttribute::Value, &blob));
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(define_p_invoke = DefinePinvokeMap(self, token, mapping_flags, import_name,
        import_dll) {
        self.check(Table::Method, token)?;
        let flags = self.data.borrow().get(token, md::Method::Flags);
        self.set(token, &[(md::Method::Flags, flags | IMPORTED)]);
        // SAFETY: as above.
        let name = unsafe { read_name(import_name) };
        // A second one is added, too; the first one counts (run in 10.0.15).
        self.change(|data| {
            let row = data.add(Table::ImplMap);
            data.set(row, md::ImplMap::MemberForwarded, token);
            data.set(row, md::ImplMap::MappingFlags, mapping_flags);
            data.set_string(row, md::ImplMap::ImportName, &name);
            data.set(row, md::ImplMap::ImportScope, row_of(import_dll));
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_p_invoke = SetPinvokeMap(self, token, mapping_flags, import_name,
        import_dll) {
        let Some(row) = self.data.borrow().find(md::ImplMap::MemberForwarded, token) else {
            return Ok(results::RECORD_NOT_FOUND);
        };
        // SAFETY: as above.
        let name = unsafe { read_given(import_name) };
        self.change(|data| {
            if mapping_flags != UNCHANGED {
                data.set(row, md::ImplMap::MappingFlags, mapping_flags);
            }
            if let Some(name) = name {
                data.set_string(row, md::ImplMap::ImportName, &name);
            }
            data.set(row, md::ImplMap::ImportScope, row_of(import_dll));
        });
        Ok(HResult::OK)
    });

    IMetaDataEmit2Methods!(define_method_spec = DefineMethodSpec(self, parent, signature, signature_size,
        method_spec) {
        // SAFETY: as above.
        let blob = unsafe { read_bytes(signature, signature_size) };
        let known = {
            let data = self.data.borrow();
            let mut all = data.find_all(md::MethodSpec::Method, parent);
            all.find(|row| data.blob(*row, md::MethodSpec::Instantiation) == blob)
        };
        let new = || self.change(|data| {
            let row = data.add(Table::MethodSpec);
            data.set(row, md::MethodSpec::Method, parent);
            data.set_blob(row, md::MethodSpec::Instantiation, &blob);
            row
        });
        // SAFETY: as above.
        unsafe { self.give(known, new, method_spec) }
    });
}

impl Call<'_> {
    // The size as `write` makes the metadata: a CLR's is that of its own order of streams.
    IMetaDataEmitMethods!(save_size = GetSaveSize(self, _kind, save_size) {
        if save_size.is_null() {
            return Ok(self.null("pdwSaveSize"));
        }
        let size = crate::out::count(md::write(&self.data.borrow()).len());
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(save_size, size) };
        Ok(HResult::OK)
    });

    /// Takes the rows of a table whose key is `value` away: they stay, with a nil key.
    fn forget<C: Column>(&self, key: C, value: u32) -> Answer {
        let mut data = self.data.borrow_mut();
        let rows: Vec<_> = data.find_all(key, value).collect();
        for row in &rows {
            data.set(*row, key, 0);
        }
        Ok(if rows.is_empty() { results::RECORD_NOT_FOUND } else { HResult::OK })
    }

    IMetaDataEmitMethods!(delete_class_layout = DeleteClassLayout(self, type_def) {
        let fields = self.data.borrow().children(type_def, Table::Field);
        let forgotten = self.forget(md::ClassLayout::Parent, row_of(type_def))?;
        for field in fields {
            self.forget(md::FieldLayout::Field, row_of(field))?;
        }
        Ok(forgotten)
    });

    IMetaDataEmitMethods!(delete_field_marshal = DeleteFieldMarshal(self, token) {
        self.forget(md::FieldMarshal::Parent, token)
    });

    IMetaDataEmitMethods!(delete_p_invoke = DeletePinvokeMap(self, token) {
        self.forget(md::ImplMap::MemberForwarded, token)
    });
}

impl IMetaDataEmitMethods for Emit {
    IMetaDataEmitMethods!(SetHandler = HResult::OK);
    // The scope is not open for deletions (run in 10.0.15).
    IMetaDataEmitMethods!(DeleteToken = HResult::INVALID_ARGUMENT);

    answers! {
        IMetaDataEmitMethods {
            SetModuleProps => set_module;
            DefineTypeDef => define_type_def;
            DefineNestedType => define_nested_type;
            DefineMethod => define_method;
            DefineMethodImpl => define_method_impl;
            DefineTypeRefByName => define_type_ref;
            DefineMemberRef => define_member_ref;
            SetClassLayout => set_class_layout;
            SetFieldMarshal => set_field_marshal;
            SetRVA => set_rva;
            GetTokenFromSig => token_from_signature;
            DefineModuleRef => define_module_ref;
            SetParent => set_parent;
            GetTokenFromTypeSpec => token_from_type_spec;
            DefineUserString => define_user_string;
            SetMethodProps => set_method;
            SetTypeDefProps => set_type_def;
            DefinePinvokeMap => define_p_invoke;
            SetPinvokeMap => set_p_invoke;
            DefineCustomAttribute => define_attribute;
            SetCustomAttributeValue => set_attribute;
            DefineField => define_field;
            DefineParam => define_param;
            SetFieldProps => set_field;
            SetParamProps => set_param;
            SetMethodImplFlags => set_method_code;
            SetFieldRVA => set_rva;
            GetSaveSize => save_size;
            DeleteClassLayout => delete_class_layout;
            DeleteFieldMarshal => delete_field_marshal;
            DeletePinvokeMap => delete_p_invoke;
        }
    }
}

impl IMetaDataEmit2Methods for Emit {
    answers! {
        IMetaDataEmit2Methods {
            DefineMethodSpec => define_method_spec;
            DefineGenericParam => define_generic_param;
        }
    }
}
