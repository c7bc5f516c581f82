//! New members, and what is changed about them.

use super::{Call, UNCHANGED, read_bytes, read_name};
use crate::import::enumerations::type_or_global;
use crate::out::Answer;
use clr_com::{IMetaDataEmitMethods, Token};
use clr_metadata as md;
use clr_metadata::{Metadata, Table, row_of};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// Bits of `CorMethodAttr`, `CorFieldAttr` and `CorParamAttr` that the runtime sets itself.
const METHOD_RESERVED: u32 = 0xD000;
const FIELD_RESERVED: u32 = 0x9500;
const PARAM_RESERVED: u32 = 0xF000;
/// `mdSpecialName | mdRTSpecialName`, `fdSpecialName | fdRTSpecialName`.
const SPECIAL_METHOD: u32 = 0x1800;
const SPECIAL_FIELD: u32 = 0x600;
/// `fdHasDefault` and `pdHasDefault`.
const FIELD_HAS_DEFAULT: u32 = 0x8000;
const PARAM_HAS_DEFAULT: u32 = 0x1000;
/// ELEMENT_TYPE_VOID and ELEMENT_TYPE_END: there is no constant.
const NO_CONSTANT: [u32; 2] = [0, 1];

/// A constant of the profiler: its type and its value.
type Constant = (u32, Vec<u8>);

/// Reads a constant of the profiler.
unsafe fn read_constant(kind: u32, value: *const c_void, len: u32) -> Option<Constant> {
    if NO_CONSTANT.contains(&kind) || kind == UNCHANGED {
        return None;
    }
    let size = match kind {
        // Booleans and bytes; characters and short numbers; numbers of eight bytes, and the others.
        2 | 4 | 5 => 1,
        3 | 6 | 7 => 2,
        0xA | 0xB | 0xD => 8,
        0xE if len == UNCHANGED => {
            // SAFETY: the profiler's text, which ends with 0.
            let text = unsafe { read_name(value.cast()) };
            return Some((kind, text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
        }
        0xE => len.saturating_mul(2),
        _ => 4,
    };
    // SAFETY: the profiler's value has this size.
    Some((kind, unsafe { read_bytes(value, size) }))
}

fn set_constant(data: &mut Metadata, of: Token, (kind, value): &Constant) {
    let known = data.find(md::Constant::Parent, of);
    let row = known.unwrap_or_else(|| data.add(Table::Constant));
    data.set(row, md::Constant::Parent, of);
    data.set(row, md::Constant::Type, *kind);
    data.set_blob(row, md::Constant::Value, value);
}

impl Call<'_> {
    IMetaDataEmitMethods!(define_method = DefineMethod(self, type_def, name, method_flags, signature,
        signature_size, code_rva, impl_flags, method) {
        let type_def = type_or_global(type_def);
        self.check(Table::TypeDef, type_def)?;
        // SAFETY: the profiler's pointers, here and below.
        let (name, blob) = unsafe { (read_name(name), read_bytes(signature, signature_size)) };
        let is_special = [".ctor", ".cctor"].contains(&&name[..]) || name.starts_with("_VtblGap");
        let special = if is_special { SPECIAL_METHOD } else { 0 };
        let new = || self.change(|data| {
            let Some(row) = data.add_child(type_def, Table::Method) else { return 0 };
            data.set_string(row, md::Method::Name, &name);
            data.set_blob(row, md::Method::Signature, &blob);
            data.set(row, md::Method::Flags, method_flags & !METHOD_RESERVED | special);
            data.set(row, md::Method::RVA, if code_rva == UNCHANGED { 0 } else { code_rva });
            data.set(row, md::Method::ImplFlags, if impl_flags == UNCHANGED { 0 } else { impl_flags });
            data.begin_list(row, Table::Param);
            row
        });
        // SAFETY: as above.
        unsafe { self.give(None, new, method) }
    });

    IMetaDataEmitMethods!(define_method_impl = DefineMethodImpl(self, type_def, body, declaration) {
        self.change(|data| {
            let row = data.add(Table::MethodImpl);
            data.set(row, md::MethodImpl::Class, row_of(type_def));
            data.set(row, md::MethodImpl::MethodBody, body);
            data.set(row, md::MethodImpl::MethodDeclaration, declaration);
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_method = SetMethodProps(self, method, method_flags, code_rva, impl_flags) {
        self.check(Table::Method, method)?;
        self.change(|data| {
            if method_flags != UNCHANGED {
                let kept = data.get(method, md::Method::Flags) & METHOD_RESERVED;
                data.set(method, md::Method::Flags, method_flags & !METHOD_RESERVED | kept);
            }
            if code_rva != UNCHANGED {
                data.set(method, md::Method::RVA, code_rva);
            }
            if impl_flags != UNCHANGED {
                data.set(method, md::Method::ImplFlags, impl_flags);
            }
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_method_code = SetMethodImplFlags(self, method, impl_flags) {
        self.check(Table::Method, method)?;
        self.set(method, &[(md::Method::ImplFlags, impl_flags)]);
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(define_field = DefineField(self, type_def, name, field_flags, signature,
        signature_size, element_type, value, value_size, field) {
        let type_def = type_or_global(type_def);
        self.check(Table::TypeDef, type_def)?;
        // SAFETY: as above.
        let (name, blob, constant) = unsafe {
            let constant = read_constant(element_type, value, value_size);
            (read_name(name), read_bytes(signature, signature_size), constant)
        };
        let special = if name == "value__" { SPECIAL_FIELD } else { 0 };
        let default = if constant.is_some() { FIELD_HAS_DEFAULT } else { 0 };
        let new = || self.change(|data| {
            let Some(row) = data.add_child(type_def, Table::Field) else { return 0 };
            data.set_string(row, md::Field::Name, &name);
            data.set_blob(row, md::Field::Signature, &blob);
            data.set(row, md::Field::Flags, field_flags & !FIELD_RESERVED | special | default);
            if let Some(constant) = &constant {
                set_constant(data, row, constant);
            }
            row
        });
        // SAFETY: as above.
        unsafe { self.give(None, new, field) }
    });

    IMetaDataEmitMethods!(set_field = SetFieldProps(self, field, field_flags, element_type, value,
        value_size) {
        self.check(Table::Field, field)?;
        // SAFETY: as above.
        let constant = unsafe { read_constant(element_type, value, value_size) };
        self.change(|data| {
            let mut flags = data.get(field, md::Field::Flags);
            if field_flags != UNCHANGED {
                flags = field_flags & !FIELD_RESERVED | flags & FIELD_RESERVED;
            }
            if let Some(constant) = &constant {
                flags |= FIELD_HAS_DEFAULT;
                set_constant(data, field, constant);
            }
            data.set(field, md::Field::Flags, flags);
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(define_param = DefineParam(self, method, sequence, name, param_flags,
        element_type, value, value_size, param) {
        self.check(Table::Method, method)?;
        // SAFETY: as above.
        let (name, constant) =
            unsafe { (read_name(name), read_constant(element_type, value, value_size)) };
        let flags = if param_flags == UNCHANGED { 0 } else { param_flags & !PARAM_RESERVED };
        let default = if constant.is_some() { PARAM_HAS_DEFAULT } else { 0 };
        let new = || self.change(|data| {
            let Some(row) = data.add_child(method, Table::Param) else { return 0 };
            data.set(row, md::Param::Sequence, sequence);
            data.set_string(row, md::Param::Name, &name);
            data.set(row, md::Param::Flags, flags | default);
            if let Some(constant) = &constant {
                set_constant(data, row, constant);
            }
            row
        });
        // SAFETY: as above.
        unsafe { self.give(None, new, param) }
    });

    IMetaDataEmitMethods!(set_param = SetParamProps(self, param, name, param_flags, element_type, value,
        value_size) {
        self.check(Table::Param, param)?;
        // SAFETY: as above.
        let (given, constant) = unsafe {
            let given = crate::out::read_given(name);
            (given, read_constant(element_type, value, value_size))
        };
        self.change(|data| {
            if let Some(name) = &given {
                data.set_string(param, md::Param::Name, name);
            }
            let mut flags = data.get(param, md::Param::Flags);
            if param_flags != UNCHANGED {
                flags = param_flags & !PARAM_RESERVED | flags & PARAM_RESERVED;
            }
            if let Some(constant) = &constant {
                flags |= PARAM_HAS_DEFAULT;
                set_constant(data, param, constant);
            }
            data.set(param, md::Param::Flags, flags);
        });
        Ok(HResult::OK)
    });
}
