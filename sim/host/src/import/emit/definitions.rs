//! New types, and what is changed about them.

use super::{Call, UNCHANGED, read_bytes, read_name, read_tokens, split};
use crate::out::{Answer, put};
use clr_com::{FieldOffset, IMetaDataEmit2Methods, IMetaDataEmitMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table, row_of, table_of};
use clr_walker::profiling::HResult;

/// Bits of `CorTypeAttr` that the runtime sets itself.
const RESERVED: u32 = 0x0004_0800;
/// `fdHasFieldMarshal` and `pdHasFieldMarshal`.
const FIELD_HAS_MARSHAL: u32 = 0x1000;
const PARAM_HAS_MARSHAL: u32 = 0x2000;
/// `fdHasFieldRVA`.
const FIELD_HAS_RVA: u32 = 0x100;

/// Returns the row with this key, or adds one.
fn row_for<C: Column>(data: &mut Metadata, key: C, value: u32) -> Token {
    data.find(key, value).unwrap_or_else(|| {
        let row = data.add(C::TABLE);
        data.set(row, key, value);
        row
    })
}

/// Replaces the interfaces of a type.
fn implement(data: &mut Metadata, type_def: Token, interfaces: &[Token]) {
    for interface in interfaces {
        let row = data.add(Table::InterfaceImpl);
        data.set(row, md::InterfaceImpl::Class, row_of(type_def));
        data.set(row, md::InterfaceImpl::Interface, *interface);
    }
}

impl Call<'_> {
    /// Defines a type, in another one or in none.
    unsafe fn define(
        &self,
        name: *const u16,
        (flags, extends): (u32, Token),
        implements: *const Token,
        enclosing: Option<Token>,
        to: *mut Token,
    ) -> Answer {
        // SAFETY: the profiler's pointers, here and below.
        let (full, interfaces) = unsafe { (read_name(name), read_tokens(implements)) };
        let (namespace, name) = split(&full);
        let new = || {
            self.change(|data| {
                let row = data.add(Table::TypeDef);
                data.set(row, md::TypeDef::Flags, flags & !RESERVED);
                data.set_string(row, md::TypeDef::Name, name);
                data.set_string(row, md::TypeDef::Namespace, namespace);
                if row_of(extends) != 0 {
                    data.set(row, md::TypeDef::Extends, extends);
                }
                data.begin_list(row, Table::Field);
                data.begin_list(row, Table::Method);
                implement(data, row, &interfaces);
                if let Some(outer) = enclosing {
                    let nested = data.add(Table::NestedClass);
                    data.set(nested, md::NestedClass::NestedClass, row_of(row));
                    data.set(nested, md::NestedClass::EnclosingClass, row_of(outer));
                }
                row
            })
        };
        // SAFETY: as above.
        unsafe { self.give(None, new, to) }
    }

    IMetaDataEmitMethods!(define_type_def = DefineTypeDef(self, name, type_flags, extends, implements,
        type_def) {
        // SAFETY: as above.
        unsafe { self.define(name, (type_flags, extends), implements, None, type_def) }
    });

    IMetaDataEmitMethods!(define_nested_type = DefineNestedType(self, name, type_flags, extends,
        implements, enclosing, type_def) {
        // SAFETY: as above.
        unsafe { self.define(name, (type_flags, extends), implements, Some(enclosing), type_def) }
    });

    IMetaDataEmitMethods!(set_type_def = SetTypeDefProps(self, type_def, type_flags, extends,
        implements) {
        self.check(Table::TypeDef, type_def)?;
        // SAFETY: as above.
        let interfaces = unsafe { read_tokens(implements) };
        self.change(|data| {
            if type_flags != UNCHANGED {
                let kept = data.get(type_def, md::TypeDef::Flags) & RESERVED;
                data.set(type_def, md::TypeDef::Flags, type_flags & !RESERVED | kept);
            }
            if extends != UNCHANGED {
                data.set(type_def, md::TypeDef::Extends, extends);
            }
            if !implements.is_null() {
                // Rows stay, of no type.
                let own: Vec<_> =
                    data.find_all(md::InterfaceImpl::Class, row_of(type_def)).collect();
                for row in own {
                    data.set(row, md::InterfaceImpl::Class, 0);
                }
                implement(data, type_def, &interfaces);
            }
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_class_layout = SetClassLayout(self, type_def, pack_size, field_offsets,
        class_size) {
        /// No type has more fields.
        const LIMIT: usize = 0x1_0000;
        for index in 0..LIMIT {
            if field_offsets.is_null() {
                break;
            }
            // SAFETY: no element before this was nil.
            let FieldOffset { field, offset } = unsafe { field_offsets.add(index).read_unaligned() };
            if row_of(field) == 0 {
                break;
            }
            if offset != UNCHANGED {
                self.change(|data| {
                    let row = row_for(data, md::FieldLayout::Field, row_of(field));
                    data.set(row, md::FieldLayout::OffSet, offset);
                });
            }
        }
        self.change(|data| {
            let row = row_for(data, md::ClassLayout::Parent, row_of(type_def));
            if pack_size != UNCHANGED {
                data.set(row, md::ClassLayout::PackingSize, pack_size);
            }
            if class_size != UNCHANGED {
                data.set(row, md::ClassLayout::ClassSize, class_size);
            }
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_field_marshal = SetFieldMarshal(self, token, native_type,
        native_type_size) {
        // SAFETY: as above.
        let blob = unsafe { read_bytes(native_type, native_type_size) };
        if table_of(token) == Some(Table::Field) {
            self.check(Table::Field, token)?;
            let flags = self.data.borrow().get(token, md::Field::Flags);
            self.set(token, &[(md::Field::Flags, flags | FIELD_HAS_MARSHAL)]);
        } else {
            self.check(Table::Param, token)?;
            let flags = self.data.borrow().get(token, md::Param::Flags);
            self.set(token, &[(md::Param::Flags, flags | PARAM_HAS_MARSHAL)]);
        }
        self.change(|data| {
            let row = row_for(data, md::FieldMarshal::Parent, token);
            data.set_blob(row, md::FieldMarshal::NativeType, &blob);
        });
        Ok(HResult::OK)
    });

    IMetaDataEmitMethods!(set_rva = SetRVA(self, member, rva) {
        if table_of(member) == Some(Table::Method) {
            self.check(Table::Method, member)?;
            self.set(member, &[(md::Method::RVA, rva)]);
            return Ok(HResult::OK);
        }
        self.check(Table::Field, member)?;
        let flags = self.data.borrow().get(member, md::Field::Flags);
        self.set(member, &[(md::Field::Flags, flags | FIELD_HAS_RVA)]);
        self.change(|data| {
            let row = row_for(data, md::FieldRVA::Field, row_of(member));
            data.set(row, md::FieldRVA::RVA, rva);
        });
        Ok(HResult::OK)
    });

    IMetaDataEmit2Methods!(define_generic_param = DefineGenericParam(self, owner, sequence, param_flags,
        name, _reserved, constraints, generic_param) {
        if !matches!(table_of(owner), Some(Table::TypeDef | Table::Method)) {
            // SAFETY: as above.
            unsafe { put(generic_param, md::token(Table::GenericParam, 0)) };
            return Ok(crate::results::BAD_INPUT_PARAMETER);
        }
        // SAFETY: as above.
        let (name, constraints) = unsafe { (read_name(name), read_tokens(constraints)) };
        let row = self.change(|data| {
            let row = data.add(Table::GenericParam);
            data.set(row, md::GenericParam::Number, sequence);
            data.set(row, md::GenericParam::Flags, param_flags);
            data.set(row, md::GenericParam::Owner, owner);
            data.set_string(row, md::GenericParam::Name, &name);
            for constraint in constraints {
                let one = data.add(Table::GenericParamConstraint);
                data.set(one, md::GenericParamConstraint::Owner, row_of(row));
                data.set(one, md::GenericParamConstraint::Constraint, constraint);
            }
            row
        });
        // SAFETY: as above. It may be NULL.
        unsafe { put(generic_param, row) };
        Ok(HResult::OK)
    });
}
