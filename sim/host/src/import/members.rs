//! Methods, fields, parameters, properties, events, and references to members.

use super::enumerations::type_or_global;
use super::{Call, put_blob, put_name, read_blob};
use crate::out::{Answer, count, put, read_given, read_wide};
use crate::results;
use clr_com::{IMetaDataImportMethods, Token};
use clr_metadata as md;
use clr_metadata::{Metadata, Table, row_of, table_of, token};
use clr_runtime::Outcome;
use clr_walker::profiling::{CallError, HResult};
use std::ffi::c_void;

/// ELEMENT_TYPE_VOID: there is no constant. ELEMENT_TYPE_STRING: its length is told.
const NO_CONSTANT: u32 = 1;
const STRING_CONSTANT: u32 = 0xE;

/// Roles of a method for a property or an event (CorMethodSemanticsAttr).
const SETTER: u32 = 1;
const GETTER: u32 = 2;
const OTHER: u32 = 4;
const ADD_ON: u32 = 8;
const REMOVE_ON: u32 = 0x10;
const FIRE: u32 = 0x20;

/// The pointers for a constant: its type, its value, its length.
type ConstantPointers = (*mut u32, *mut *const c_void, *mut u32);

/// Returns a token's type, or nil for that of global members.
fn class_of(data: &Metadata, member: Token) -> Token {
    let parent = data.parent(member).map_or(0, row_of);
    token(Table::TypeDef, if parent == 1 { 0 } else { parent })
}

/// Writes the constant of a field, a property or a parameter.
unsafe fn put_constant(data: &Metadata, of: Token, (kind, value, len): ConstantPointers) {
    let row = data.find(md::Constant::Parent, of);
    let found =
        row.map(|row| (data.get(row, md::Constant::Type), data.blob(row, md::Constant::Value)));
    // SAFETY: the profiler's pointers.
    unsafe {
        put(kind, found.map_or(NO_CONSTANT, |(kind, _)| kind));
        put(value, found.map_or(std::ptr::null(), |(_, blob)| blob.as_ptr().cast()));
        let is_text = matches!(found, Some((STRING_CONSTANT, _))) && !value.is_null();
        put(len, found.filter(|_| is_text).map_or(0, |(_, blob)| count(blob.len() / 2)));
    }
}

/// Writes the methods of a property or an event that do something, the last of each; and all others.
unsafe fn put_semantics(
    data: &Metadata,
    of: Token,
    wanted: &[(u32, *mut Token)],
    (others, capacity, others_len): (*mut Token, u32, *mut u32),
) {
    for (_, to) in wanted {
        // SAFETY: the profiler's pointers, here and below.
        unsafe { put(*to, token(Table::Method, 0)) };
    }
    let mut other = 0;
    for row in data.find_all(md::MethodSemantics::Association, of) {
        let kind = data.get(row, md::MethodSemantics::Semantic);
        let method = token(Table::Method, data.get(row, md::MethodSemantics::Method));
        for (_, to) in wanted.iter().filter(|(one, _)| *one == kind) {
            // SAFETY: as above.
            unsafe { put(*to, method) };
        }
        if kind == OTHER {
            if other < capacity && !others.is_null() {
                // SAFETY: there is room for `capacity` tokens.
                unsafe { others.add(other as usize).write_unaligned(method) };
            }
            other += 1;
        }
    }
    // SAFETY: as above.
    unsafe { put(others_len, other) };
}

impl Call<'_> {
    IMetaDataImportMethods!(method = GetMethodProps(self, token, class, to, capacity, len, attr,
        signature, signature_size, code_rva, impl_flags) {
        self.check(Table::Method, token)?;
        let data = self.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(class, class_of(&data, md::token(Table::Method, token)));
            put_blob(data.blob(token, md::Method::Signature), signature, signature_size);
            put(attr, data.get(token, md::Method::Flags));
            put(code_rva, data.get(token, md::Method::RVA));
            put(impl_flags, data.get(token, md::Method::ImplFlags));
            Ok(put_name(data.string(token, md::Method::Name), capacity, len, to))
        }
    });

    IMetaDataImportMethods!(field = GetFieldProps(self, token, class, field, field_capacity, field_len,
        attr, signature, signature_size, element_type, value, value_len) {
        self.check(Table::Field, token)?;
        let data = self.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(class, class_of(&data, md::token(Table::Field, token)));
            put_blob(data.blob(token, md::Field::Signature), signature, signature_size);
            put(attr, data.get(token, md::Field::Flags));
            put_constant(&data, token, (element_type, value, value_len));
            Ok(put_name(data.string(token, md::Field::Name), field_capacity, field_len, field))
        }
    });

    IMetaDataImportMethods!(member = GetMemberProps(self, token, class, member, member_capacity,
        member_len, attr, signature, signature_size, code_rva, impl_flags, element_type, value,
        value_len) {
        let (to, capacity, len, size) = (member, member_capacity, member_len, signature_size);
        // SAFETY: the profiler's pointers.
        unsafe {
            if table_of(token) == Some(Table::Method) {
                return self
                    .method(token, class, to, capacity, len, attr, signature, size, code_rva, impl_flags);
            }
            self.field(token, class, to, capacity, len, attr, signature, size, element_type, value, value_len)
        }
    });

    IMetaDataImportMethods!(member_ref = GetMemberRefProps(self, token, parent, member, member_capacity,
        member_len, signature, signature_size) {
        self.check(Table::MemberRef, token)?;
        let data = self.data.borrow();
        let class = data.get(token, md::MemberRef::Class);
        let is_global = class == type_or_global(0);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(parent, if is_global { md::token(Table::TypeDef, 0) } else { class });
            put_blob(data.blob(token, md::MemberRef::Signature), signature, signature_size);
            Ok(put_name(data.string(token, md::MemberRef::Name), member_capacity, member_len, member))
        }
    });

    IMetaDataImportMethods!(param = GetParamProps(self, token, method, sequence, name, name_capacity,
        name_len, attr, element_type, value, value_len) {
        self.check(Table::Param, token)?;
        let data = self.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            let parent = data.parent(md::token(Table::Param, token));
            put(method, parent.unwrap_or(md::token(Table::Method, 0)));
            put(sequence, data.get(token, md::Param::Sequence));
            put(attr, data.get(token, md::Param::Flags));
            put_constant(&data, token, (element_type, value, value_len));
            Ok(put_name(data.string(token, md::Param::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataImportMethods!(param_of_method = GetParamForMethodIndex(self, method, sequence, parameter) {
        self.check(Table::Method, method)?;
        let data = self.data.borrow();
        let params = data.children(method, Table::Param);
        let found = params.iter().find(|one| data.get(**one, md::Param::Sequence) == sequence);
        let Some(found) = found else { return Ok(results::RECORD_NOT_FOUND) };
        if parameter.is_null() {
            return Ok(self.null("ppd"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(parameter, *found) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(property = GetPropertyProps(self, property_token, class, property,
        property_capacity, property_len, flags, signature, signature_size, element_type, default_value,
        default_value_len, setter, getter, other_methods, capacity, other_methods_len) {
        self.check(Table::Property, property_token)?;
        let data = self.data.borrow();
        let map = data.parent(property_token).unwrap_or_default();
        let of = data.get(map, md::PropertyMap::Parent);
        let name = data.string(property_token, md::Property::Name);
        // SAFETY: the profiler's pointers. The interface calls the buffer constant.
        unsafe {
            put(class, token(Table::TypeDef, of));
            put(flags, data.get(property_token, md::Property::PropFlags));
            put_blob(data.blob(property_token, md::Property::Type), signature, signature_size);
            put_constant(&data, property_token, (element_type, default_value, default_value_len));
            let wanted = [(SETTER, setter), (GETTER, getter)];
            put_semantics(&data, property_token, &wanted, (other_methods, capacity, other_methods_len));
            Ok(put_name(name, property_capacity, property_len, property.cast_mut()))
        }
    });

    IMetaDataImportMethods!(event = GetEventProps(self, token, class, event, event_capacity, event_len,
        event_flags, event_type, add_on, remove_on, fire, other_methods, capacity, other_methods_len) {
        self.check(Table::Event, token)?;
        let data = self.data.borrow();
        let map = data.parent(token).unwrap_or_default();
        // SAFETY: the profiler's pointers. The interface calls the buffer constant.
        unsafe {
            put(class, md::token(Table::TypeDef, data.get(map, md::EventMap::Parent)));
            put(event_flags, data.get(token, md::Event::EventFlags));
            put(event_type, data.get(token, md::Event::EventType));
            let wanted = [(ADD_ON, add_on), (REMOVE_ON, remove_on), (FIRE, fire)];
            put_semantics(&data, token, &wanted, (other_methods, capacity, other_methods_len));
            let name = data.string(token, md::Event::Name);
            Ok(put_name(name, event_capacity, event_len, event.cast_mut()))
        }
    });

    IMetaDataImportMethods!(method_semantics = GetMethodSemantics(self, member, event_or_property,
        semantics_flags) {
        if semantics_flags.is_null() {
            return Ok(self.null("pdwSemanticsFlags"));
        }
        let data = self.data.borrow();
        // As in EnumMethodSemantics, a row is compared with the token (read).
        let mut rows = data.find_all(md::MethodSemantics::Association, event_or_property);
        let found = rows.find(|row| data.get(*row, md::MethodSemantics::Method) == member);
        let kind = found.map_or(0, |row| data.get(row, md::MethodSemantics::Semantic));
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(semantics_flags, kind) };
        Ok(if found.is_some() { HResult::OK } else { results::RECORD_NOT_FOUND })
    });

    IMetaDataImportMethods!(rva = GetRVA(self, token, code_rva, impl_flags) {
        let data = self.data.borrow();
        let (mut rva, mut code, mut result) = (0, Some(0), HResult::OK);
        if table_of(token) == Some(Table::Method) {
            if row_of(token) != 0 {
                self.check(Table::Method, token)?;
                rva = data.get(token, md::Method::RVA);
                code = Some(data.get(token, md::Method::ImplFlags));
            }
        } else if let Some(row) = data.find(md::FieldRVA::Field, row_of(token)) {
            rva = data.get(row, md::FieldRVA::RVA);
        } else {
            (code, result) = (None, results::RECORD_NOT_FOUND);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(code_rva, rva);
            if let Some(code) = code {
                put(impl_flags, code);
            }
        }
        Ok(result)
    });

    /// Finds a member of a type by its name, and by its signature if that is not NULL.
    unsafe fn find_in_type(
        &self,
        table: Table,
        type_def: Token,
        name: *const u16,
        (signature, signature_size): (*const u8, u32),
        to: *mut Token,
    ) -> Answer {
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(to, token(table, 0)) };
        let type_def = type_or_global(type_def);
        self.check(Table::TypeDef, type_def)?;
        // SAFETY: the profiler's pointers, which are not NULL, here and below.
        let wanted = unsafe { (read_wide(name), read_blob(signature, signature_size)) };
        let data = self.data.borrow();
        let mut members = data.children(type_def, table).into_iter();
        let is_wanted = |one: &Token| {
            let (name, blob) = if table == Table::Method {
                (data.string(*one, md::Method::Name), data.blob(*one, md::Method::Signature))
            } else {
                (data.string(*one, md::Field::Name), data.blob(*one, md::Field::Signature))
            };
            name == wanted.0 && wanted.1.as_ref().is_none_or(|signature| signature == blob)
        };
        // SAFETY: as above.
        unsafe { self.put_found(members.find(is_wanted), to) }
    }

    /// Writes a token that was found, or refuses.
    pub(super) unsafe fn put_found(&self, found: Option<Token>, to: *mut Token) -> Answer {
        let Some(found) = found else { return Ok(results::RECORD_NOT_FOUND) };
        if to.is_null() {
            return Ok(self.null("pmb"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(to, found) };
        Ok(HResult::OK)
    }

    IMetaDataImportMethods!(find_method = FindMethod(self, type_def, name, signature, signature_size,
        member) {
        // SAFETY: the profiler's pointers, here and below.
        unsafe { self.find_in_type(Table::Method, type_def, name, (signature, signature_size), member) }
    });

    IMetaDataImportMethods!(find_field = FindField(self, type_def, name, signature, signature_size,
        member) {
        // SAFETY: as above.
        unsafe { self.find_in_type(Table::Field, type_def, name, (signature, signature_size), member) }
    });

    IMetaDataImportMethods!(find_member = FindMember(self, type_def, name, signature, signature_size,
        member) {
        // SAFETY: as above.
        unsafe {
            let found = self.find_method(type_def, name, signature, signature_size, member);
            if failed_with(&found) != Some(results::RECORD_NOT_FOUND) {
                return found;
            }
            self.find_field(type_def, name, signature, signature_size, member)
        }
    });

    IMetaDataImportMethods!(find_member_ref = FindMemberRef(self, parent, name, signature,
        signature_size, member_ref) {
        let parent = if row_of(parent) == 0 { type_or_global(0) } else { parent };
        // SAFETY: the profiler's pointers, here and below.
        let (name, blob) = unsafe {
            put(member_ref, token(Table::MemberRef, 0));
            let name = read_given(name);
            (name, read_blob(signature, signature_size))
        };
        let data = self.data.borrow();
        let found = find_member_ref(&data, parent, name.as_deref(), blob.as_deref());
        // SAFETY: as above.
        unsafe { self.put_found(found, member_ref) }
    });
}

/// Finds a reference to a member by its parent, and by what else is given.
pub(super) fn find_member_ref(
    data: &Metadata,
    parent: Token,
    name: Option<&str>,
    signature: Option<&[u8]>,
) -> Option<Token> {
    data.find_all(md::MemberRef::Class, parent).find(|row| {
        let blob = data.blob(*row, md::MemberRef::Signature);
        name.is_none_or(|name| data.string(*row, md::MemberRef::Name) == name)
            && signature.is_none_or(|signature| signature == blob)
    })
}

/// Returns the result of an answer, if it is a refusal or a failure.
fn failed_with(answer: &Result<HResult, CallError<Outcome>>) -> Option<HResult> {
    match answer {
        Ok(result) | Err(CallError::Failed(result)) => Some(*result),
        Err(CallError::Fatal(_)) => None,
    }
}
