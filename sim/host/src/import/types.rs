//! The module, its types, and what belongs to a type.

use super::{Call, put_name};
use crate::out::{Answer, count, put, read_wide};
use crate::results;
use clr_com::{FieldOffset, Guid, IMetaDataImportMethods, Token};
use clr_metadata as md;
use clr_metadata::{Metadata, Table, row_of, table_of, token};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// Returns a namespace and a name as one: `Acme.Web.Handler`.
pub(super) fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

/// Returns the full name of a TypeDef or a TypeRef.
pub(super) fn type_name(data: &Metadata, one: Token) -> String {
    match table_of(one) {
        Some(Table::TypeRef) => {
            full_name(data.string(one, md::TypeRef::Namespace), data.string(one, md::TypeRef::Name))
        }
        _ => {
            full_name(data.string(one, md::TypeDef::Namespace), data.string(one, md::TypeDef::Name))
        }
    }
}

/// Writes the name of a type (ns::MakePath): unlike that of a method, it counts as cut off if
/// the buffer is empty.
unsafe fn put_path(name: &str, capacity: u32, len: *mut u32, to: *mut u16) -> HResult {
    // SAFETY: the profiler's pointers.
    let result = unsafe { put_name(name, capacity, len, to) };
    if capacity == 0 && !to.is_null() { results::TRUNCATION } else { result }
}

/// Finds a type by its full name in another one, or in none.
fn find_type(data: &Metadata, name: &str, enclosing: Token) -> Option<Token> {
    data.tokens(Table::TypeDef).find(|one| {
        let outer = data.find(md::NestedClass::NestedClass, row_of(*one));
        let outer = outer.map_or(0, |row| data.get(row, md::NestedClass::EnclosingClass));
        outer == row_of(enclosing) && type_name(data, *one) == name
    })
}

impl Call<'_> {
    IMetaDataImportMethods!(find_type_def = FindTypeDefByName(self, name, enclosing_class, type_def) {
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if type_def.is_null() {
            return Ok(self.null("ptd"));
        }
        let data = self.data.borrow();
        // SAFETY: the profiler's text, which is not NULL.
        let wanted = unsafe { read_wide(name) };
        // A reference stands for the type of this module with its name.
        let enclosing = match table_of(enclosing_class) {
            Some(Table::TypeRef) if row_of(enclosing_class) != 0 => {
                find_type(&data, &type_name(&data, enclosing_class), 0)
            }
            _ => Some(enclosing_class),
        };
        let found = enclosing.and_then(|enclosing| find_type(&data, &wanted, enclosing));
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(type_def, found.unwrap_or(token(Table::TypeDef, 0))) };
        Ok(if found.is_some() { HResult::OK } else { results::RECORD_NOT_FOUND })
    });

    IMetaDataImportMethods!(find_type_ref = FindTypeRef(self, resolution_scope, name, type_ref) {
        if name.is_null() || type_ref.is_null() {
            return Ok(if name.is_null() { HResult::INVALID_ARGUMENT } else { self.null("ptr") });
        }
        // SAFETY: the profiler's pointers, which are not NULL.
        let wanted = unsafe {
            put(type_ref, token(Table::TypeRef, 0));
            read_wide(name)
        };
        let data = self.data.borrow();
        let scope = |one: &Token| data.get(*one, md::TypeRef::ResolutionScope);
        let is_same = |one: &Token| {
            scope(one) == resolution_scope || row_of(resolution_scope) == 0 && row_of(scope(one)) == 0
        };
        let mut all = data.tokens(Table::TypeRef);
        let found = all.find(|one| is_same(one) && type_name(&data, *one) == wanted);
        let Some(found) = found else { return Ok(results::RECORD_NOT_FOUND) };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(type_ref, found) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(scope = GetScopeProps(self, name, name_capacity, name_len, mvid) {
        let data = self.data.borrow();
        let module = self.module.token();
        let bytes = data.guids.get(data.get(module, md::Module::Mvid));
        // SAFETY: the profiler's pointers. A Guid has these 16 bytes on the hosts that profilers run on.
        unsafe {
            put(mvid.cast::<[u8; 16]>(), bytes);
            Ok(put_name(data.string(module, md::Module::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataImportMethods!(module = GetModuleFromScope(self, module) {
        if module.is_null() {
            return Ok(self.null("pmd"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(module, self.module.token()) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(type_def = GetTypeDefProps(self, token, type_def, type_def_capacity,
        type_def_len, type_def_flags, extends) {
        const NIL: Token = md::token(Table::TypeRef, 0);
        if table_of(token) != Some(Table::TypeDef) {
            return Ok(HResult::FALSE);
        }
        if row_of(token) == 0 {
            // SAFETY: the profiler's pointers, here and below.
            unsafe {
                put(type_def_flags, 0);
                put(extends, NIL);
                put(type_def_len, 1);
                if type_def_capacity > 0 {
                    put(type_def, 0);
                }
            }
            return Ok(HResult::OK);
        }
        self.check(Table::TypeDef, token)?;
        let data = self.data.borrow();
        let base = data.get(token, md::TypeDef::Extends);
        // SAFETY: as above.
        unsafe {
            put(type_def_flags, data.get(token, md::TypeDef::Flags));
            put(extends, if row_of(base) == 0 { NIL } else { base });
            Ok(put_path(&type_name(&data, token), type_def_capacity, type_def_len, type_def))
        }
    });

    IMetaDataImportMethods!(type_ref = GetTypeRefProps(self, type_ref, resolution_scope, name,
        name_capacity, name_len) {
        if table_of(type_ref) != Some(Table::TypeRef) {
            return Ok(HResult::FALSE);
        }
        if row_of(type_ref) == 0 {
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
        self.check(Table::TypeRef, type_ref)?;
        let data = self.data.borrow();
        // SAFETY: as above.
        unsafe {
            put(resolution_scope, data.get(type_ref, md::TypeRef::ResolutionScope));
            Ok(put_path(&type_name(&data, type_ref), name_capacity, name_len, name))
        }
    });

    // A CLR without a resolver of references finds none.
    IMetaDataImportMethods!(resolve_type_ref = ResolveTypeRef(self, _type_ref, _riid, scope, type_def) {
        // SAFETY: the profiler's pointers.
        unsafe {
            put(scope, std::ptr::null_mut());
            put(type_def, 0);
        }
        Ok(results::CANNOT_RESOLVE)
    });

    IMetaDataImportMethods!(interface_impl = GetInterfaceImplProps(self, interface_impl, class,
        interface) {
        self.check(Table::InterfaceImpl, interface_impl)?;
        let data = self.data.borrow();
        let row = data.get(interface_impl, md::InterfaceImpl::Class);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(class, token(Table::TypeDef, row));
            put(interface, data.get(interface_impl, md::InterfaceImpl::Interface));
        }
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(nested_class = GetNestedClassProps(self, nested, enclosing) {
        if table_of(nested) != Some(Table::TypeDef) {
            return Ok(results::INVALID_TOKEN_TYPE);
        }
        let data = self.data.borrow();
        let found = data.find(md::NestedClass::NestedClass, row_of(nested));
        let Some(row) = found else { return Ok(results::RECORD_NOT_FOUND) };
        if enclosing.is_null() {
            return Ok(self.null("ptdEnclosingClass"));
        }
        let outer = data.get(row, md::NestedClass::EnclosingClass);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enclosing, token(Table::TypeDef, outer)) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(class_layout = GetClassLayout(self, type_def, pack_size, field_offsets,
        capacity, field_offsets_len, class_size) {
        let data = self.data.borrow();
        let layout = data.find(md::ClassLayout::Parent, row_of(type_def));
        let of = |column| layout.map_or(0, |row| data.get(row, column));
        let mut has_layout = layout.is_some();
        // SAFETY: the profiler's pointers, here and below.
        unsafe {
            put(pack_size, of(md::ClassLayout::PackingSize));
            put(class_size, of(md::ClassLayout::ClassSize));
        }
        if !field_offsets.is_null() || !field_offsets_len.is_null() {
            self.check(Table::TypeDef, type_def)?;
            let fields = data.children(type_def, Table::Field);
            for (index, field) in fields.iter().enumerate() {
                let row = data.find(md::FieldLayout::Field, row_of(*field));
                let offset = row.map(|row| data.get(row, md::FieldLayout::OffSet));
                has_layout |= offset.is_some();
                if index < capacity as usize && !field_offsets.is_null() {
                    let one = FieldOffset { field: *field, offset: offset.unwrap_or(u32::MAX) };
                    // SAFETY: there is room for `capacity` elements.
                    unsafe { field_offsets.add(index).write_unaligned(one) };
                }
            }
            if has_layout {
                // SAFETY: as above.
                unsafe { put(field_offsets_len, count(fields.len())) };
            }
        }
        Ok(if has_layout { HResult::OK } else { results::RECORD_NOT_FOUND })
    });

    IMetaDataImportMethods!(is_global = IsGlobal(self, token, global) {
        if !self.is_valid(token) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if global.is_null() {
            return Ok(self.null("pbGlobal"));
        }
        let data = self.data.borrow();
        let of_type = |child| data.parent(child).map(row_of) == Some(1);
        let is_global = match table_of(token) {
            Some(Table::TypeDef) => row_of(token) == 1,
            Some(Table::Field | Table::Method) => of_type(token),
            Some(Table::Event | Table::Property) => {
                let map = data.parent(token).unwrap_or_default();
                let column = |table, row| data.cell(table, row, 0);
                table_of(map).is_some_and(|table| column(table, row_of(map)) == 1)
            }
            Some(Table::Param) => data.parent(token).is_some_and(of_type),
            _ => false,
        };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(global, is_global.into()) };
        Ok(HResult::OK)
    });

    /// Returns true if a token has a row, or a user string.
    pub(super) fn is_valid(&self, token: Token) -> bool {
        let data = self.data.borrow();
        if token & super::TABLE == super::STRING {
            return data.user_strings.blob_checked(row_of(token)).is_some();
        }
        // Rows of the other tables have no tokens.
        let has_tokens = !matches!(
            table_of(token),
            Some(
                Table::FieldPtr
                    | Table::MethodPtr
                    | Table::ParamPtr
                    | Table::Constant
                    | Table::FieldMarshal
                    | Table::ClassLayout
                    | Table::FieldLayout
                    | Table::EventMap
                    | Table::EventPtr
                    | Table::PropertyMap
                    | Table::PropertyPtr
                    | Table::MethodSemantics
                    | Table::MethodImpl
                    | Table::ImplMap
                    | Table::FieldRVA
                    | Table::ENCLog
                    | Table::ENCMap
                    | Table::NestedClass
            )
        );
        has_tokens && data.has(token)
    }
}
