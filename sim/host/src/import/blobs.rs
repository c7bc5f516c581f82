//! Signatures, strings, attributes, generics, and the file.

use super::types::type_name;
use super::{Call, put_blob, put_name, read_blob};
use crate::out::{Answer, count, put, put_cut, read_wide, wide};
use crate::results;
use clr_com::{IMetaDataImport2Methods, IMetaDataImportMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table, row_of, table_of};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `pmCallConvWinapi`, of a signature without a modifier.
const WINAPI: u32 = 0x100;
/// The modifiers in System.Runtime.CompilerServices that name a convention, with `CorPinvokeMap`.
const CONVENTIONS: [(&str, u32); 4] = [
    ("CallConvCdecl", 0x200),
    ("CallConvStdcall", 0x300),
    ("CallConvThiscall", 0x400),
    ("CallConvFastcall", 0x500),
];
/// ELEMENT_TYPE_CMOD_REQD and ELEMENT_TYPE_CMOD_OPT.
const MODIFIERS: [u8; 2] = [0x1F, 0x20];
/// `peILonly`, and `pe32Plus`.
const IL_ONLY: u32 = 1;
const PE_32_PLUS: u32 = 4;

impl Call<'_> {
    /// Writes the blob of a row and its size.
    unsafe fn blob_of<C: Column>(
        &self,
        token: Token,
        column: C,
        (to, size): (*mut *const u8, *mut u32),
    ) -> Answer {
        self.check(C::TABLE, token)?;
        // SAFETY: the profiler's pointers.
        unsafe { put_blob(self.data.borrow().blob(token, column), to, size) };
        Ok(HResult::OK)
    }

    IMetaDataImportMethods!(signature = GetSigFromToken(self, token, signature, signature_size) {
        // SAFETY: the profiler's pointers, here and below.
        unsafe { self.blob_of(token, md::StandAloneSig::Signature, (signature, signature_size)) }
    });

    IMetaDataImportMethods!(type_spec = GetTypeSpecFromToken(self, token, signature, signature_size) {
        // SAFETY: as above.
        unsafe { self.blob_of(token, md::TypeSpec::Signature, (signature, signature_size)) }
    });

    IMetaDataImportMethods!(field_marshal = GetFieldMarshal(self, token, native_type,
        native_type_len) {
        let found = self.data.borrow().find(md::FieldMarshal::Parent, token);
        let Some(row) = found else { return Ok(results::RECORD_NOT_FOUND) };
        // SAFETY: as above.
        unsafe { self.blob_of(row, md::FieldMarshal::NativeType, (native_type, native_type_len)) }
    });

    IMetaDataImportMethods!(permission_set = GetPermissionSetProps(self, token, action, permission,
        permission_size) {
        self.check(Table::DeclSecurity, token)?;
        let kind = self.data.borrow().get(token, md::DeclSecurity::Action);
        let to = permission.cast::<*const u8>();
        // SAFETY: as above.
        unsafe {
            put(action, kind);
            if to.is_null() {
                return Ok(HResult::OK);
            }
            self.blob_of(token, md::DeclSecurity::PermissionSet, (to, permission_size))
        }
    });

    IMetaDataImportMethods!(module_ref = GetModuleRefProps(self, token, name, name_capacity, name_len) {
        self.check(Table::ModuleRef, token)?;
        let data = self.data.borrow();
        // SAFETY: as above.
        Ok(unsafe { put_name(data.string(token, md::ModuleRef::Name), name_capacity, name_len, name) })
    });

    IMetaDataImportMethods!(name = GetNameFromToken(self, token, utf8_name) {
        let data = self.data.borrow();
        let offset = |is_there: Result<(), HResult>, offset| is_there.map(|()| offset);
        let found = match table_of(token) {
            Some(table @ Table::Module) => offset(self.check(table, token), data.get(token, md::Module::Name)),
            Some(table @ Table::TypeRef) => offset(self.check(table, token), data.get(token, md::TypeRef::Name)),
            Some(table @ Table::TypeDef) => offset(self.check(table, token), data.get(token, md::TypeDef::Name)),
            Some(table @ Table::Field) => offset(self.check(table, token), data.get(token, md::Field::Name)),
            Some(table @ Table::Method) => offset(self.check(table, token), data.get(token, md::Method::Name)),
            Some(table @ Table::Param) => offset(self.check(table, token), data.get(token, md::Param::Name)),
            Some(table @ Table::MemberRef) => offset(self.check(table, token), data.get(token, md::MemberRef::Name)),
            Some(table @ Table::Event) => offset(self.check(table, token), data.get(token, md::Event::Name)),
            Some(table @ Table::Property) => offset(self.check(table, token), data.get(token, md::Property::Name)),
            Some(table @ Table::ModuleRef) => offset(self.check(table, token), data.get(token, md::ModuleRef::Name)),
            _ => Err(HResult::INVALID_ARGUMENT),
        };
        if utf8_name.is_null() {
            return Ok(self.null("pszUtf8NamePtr"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(utf8_name, data.strings.text_with_end(found?).as_ptr()) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(user_string = GetUserString(self, string_token, string, string_capacity,
        string_len) {
        let data = self.data.borrow();
        let Some(blob) = data.user_strings.blob_checked(row_of(string_token)) else {
            let is_inside = row_of(string_token) < data.user_strings.size();
            return Ok(if is_inside { results::BAD_FORMAT } else { results::INDEX_NOT_FOUND });
        };
        let Some((_, units)) = blob.split_last().filter(|_| blob.len() % 2 == 1) else {
            return Ok(results::FILE_CORRUPT);
        };
        let text: Vec<u16> = units
            .chunks_exact(2)
            .map(|unit| u16::from_le_bytes(unit.try_into().unwrap_or_default()))
            .collect();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(string_len, count(text.len()));
            let asks = string.is_null() || string_capacity == 0;
            let whole = asks || put_cut(string, string_capacity, &text);
            Ok(if whole { HResult::OK } else { results::TRUNCATION })
        }
    });

    IMetaDataImportMethods!(p_invoke_map = GetPinvokeMap(self, token, mapping_flags, import_name,
        import_name_capacity, import_name_len, import_dll) {
        let data = self.data.borrow();
        let Some(row) = data.find(md::ImplMap::MemberForwarded, token) else {
            return Ok(results::RECORD_NOT_FOUND);
        };
        // SAFETY: the profiler's pointers.
        unsafe {
            put(mapping_flags, data.get(row, md::ImplMap::MappingFlags));
            put(import_dll, md::token(Table::ModuleRef, data.get(row, md::ImplMap::ImportScope)));
            let name = data.string(row, md::ImplMap::ImportName);
            Ok(put_name(name, import_name_capacity, import_name_len, import_name))
        }
    });

    IMetaDataImportMethods!(custom_attribute = GetCustomAttributeProps(self, attribute, object, kind,
        blob, size) {
        self.check(Table::CustomAttribute, attribute)?;
        let data = self.data.borrow();
        let value = data.blob(attribute, md::CustomAttribute::Value);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(object, data.get(attribute, md::CustomAttribute::Parent));
            put(kind, data.get(attribute, md::CustomAttribute::Type));
            if !blob.is_null() {
                put(blob, value.as_ptr().cast());
                put(size, count(value.len()));
            }
        }
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(custom_attribute_by_name = GetCustomAttributeByName(self, object, name, value,
        value_len) {
        if name.is_null() {
            return Ok(self.null("szName"));
        }
        // SAFETY: the profiler's text, which is not NULL.
        let wanted = unsafe { read_wide(name) };
        let data = self.data.borrow();
        let mut own = data.find_all(md::CustomAttribute::Parent, object);
        let is_wanted = |row: &Token| attribute_type(&data, *row).is_some_and(|name| name == wanted);
        let Some(found) = own.find(is_wanted) else { return Ok(HResult::FALSE) };
        let blob = data.blob(found, md::CustomAttribute::Value);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(value, blob.as_ptr().cast());
            put(value_len, count(blob.len()));
        }
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(native_convention = GetNativeCallConvFromSig(self, signature,
        signature_size, call_conv) {
        if call_conv.is_null() {
            return Ok(self.null("pCallConv"));
        }
        // SAFETY: the profiler's pointers, which are not NULL where they are read.
        unsafe {
            let blob = read_blob(signature, signature_size).unwrap_or_default();
            put(call_conv, convention(&self.data.borrow(), &blob));
        }
        Ok(HResult::OK)
    });

    IMetaDataImport2Methods!(generic_param = GetGenericParamProps(self, token, sequence, param_flags,
        owner, _reserved, name, name_capacity, name_len) {
        // A CLR does not write to `reserved`.
        if table_of(token) != Some(Table::GenericParam) || row_of(token) == 0 {
            return Ok(results::BAD_INPUT_PARAMETER);
        }
        self.check(Table::GenericParam, token)?;
        let data = self.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(sequence, data.get(token, md::GenericParam::Number));
            put(param_flags, data.get(token, md::GenericParam::Flags));
            put(owner, data.get(token, md::GenericParam::Owner));
            Ok(put_name(data.string(token, md::GenericParam::Name), name_capacity, name_len, name))
        }
    });

    IMetaDataImport2Methods!(constraint = GetGenericParamConstraintProps(self, constraint, parameter,
        constraint_type) {
        if table_of(constraint) != Some(Table::GenericParamConstraint) || row_of(constraint) == 0 {
            return Ok(results::BAD_INPUT_PARAMETER);
        }
        self.check(Table::GenericParamConstraint, constraint)?;
        let data = self.data.borrow();
        let row = data.get(constraint, md::GenericParamConstraint::Owner);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(parameter, md::token(Table::GenericParam, row));
            put(constraint_type, data.get(constraint, md::GenericParamConstraint::Constraint));
        }
        Ok(HResult::OK)
    });

    IMetaDataImport2Methods!(method_spec = GetMethodSpecProps(self, method_spec, parent, signature,
        signature_size) {
        self.check(Table::MethodSpec, method_spec)?;
        let method = self.data.borrow().get(method_spec, md::MethodSpec::Method);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(parent, method);
            self.blob_of(method_spec, md::MethodSpec::Instantiation, (signature, signature_size))
        }
    });

    IMetaDataImport2Methods!(pe_kind = GetPEKind(self, pe_kind, machine) {
        let image = self.image();
        let is_wide = image.is_some_and(|image| image.machine != 0x14C);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(pe_kind, IL_ONLY | if is_wide { PE_32_PLUS } else { 0 });
            put(machine, image.map_or(0, |image| u32::from(image.machine)));
        }
        Ok(HResult::OK)
    });

    IMetaDataImport2Methods!(version = GetVersionString(self, version, version_capacity, version_len) {
        let text = wide(md::VERSION);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(version_len, count(text.len()));
            let asks = version_capacity == 0;
            let whole = asks || put_cut(version, version_capacity, &text);
            Ok(if whole { HResult::OK } else { results::TRUNCATION })
        }
    });
}

/// Returns the full name of the class of a custom attribute.
fn attribute_type(data: &Metadata, attribute: Token) -> Option<String> {
    let constructor = data.get(attribute, md::CustomAttribute::Type);
    let class = match table_of(constructor)? {
        Table::Method => data.parent(constructor)?,
        _ => data.get(constructor, md::MemberRef::Class),
    };
    matches!(table_of(class)?, Table::TypeDef | Table::TypeRef).then(|| type_name(data, class))
}

/// Returns the convention that a modifier of a signature names.
fn convention(data: &Metadata, blob: &[u8]) -> u32 {
    let modifiers = blob.iter().enumerate().filter(|(_, byte)| MODIFIERS.contains(byte));
    let mut names = modifiers.filter_map(|(at, _)| {
        let (coded, _) = md::decompress(blob.get(at + 1..)?)?;
        let class = md::Coded::TypeDefOrRef.decode(coded)?;
        data.has(class).then(|| type_name(data, class))
    });
    let known = |name: String| {
        let short = name.strip_prefix("System.Runtime.CompilerServices.")?;
        CONVENTIONS.iter().find(|(name, _)| *name == short).map(|(_, value)| *value)
    };
    names.find_map(known).unwrap_or(WINAPI)
}
