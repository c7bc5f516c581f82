//! Enumerations: which tokens each method lists.

use super::Call;
use crate::out::{Answer, put, read_wide};
use crate::results;
use clr_com::{EnumHandle, IMetaDataImport2Methods, IMetaDataImportMethods, Token};
use clr_metadata as md;
use clr_metadata::{Column, Metadata, Table, row_of, table_of, token};
use clr_walker::profiling::HResult;

/// The tokens that an enumeration lists.
type Tokens = Result<Vec<Token>, HResult>;

/// Declares answers of enumerations: the arguments between handle and buffer, and the tokens.
macro_rules! enumerations {
    ($methods:ident $($(#[$doc:meta])* $answer:ident = $method:ident($($given:ident),*) |$data:ident| $tokens:expr;)*) => {$(
        $methods!($answer = $method(self, enumerator $(, $given)*, to, capacity, len) {
            let tokens = || {
                let $data = &*self.data.borrow();
                $tokens
            };
            // SAFETY: the profiler's pointers.
            Ok(unsafe { self.enumerate_tokens(enumerator, tokens, (to, capacity, len)) })
        });
    )*};
}

/// Returns the type that a token names, where 0 and mdTypeDefNil mean that of global members.
pub(super) const fn type_or_global(type_def: Token) -> Token {
    const NIL: Token = token(Table::TypeDef, 0);
    if matches!(type_def, 0 | NIL) { token(Table::TypeDef, 1) } else { type_def }
}

/// Returns a type's members of some tables, those with a name if it is not NULL.
unsafe fn members(
    data: &Metadata,
    type_def: Token,
    name: Option<*const u16>,
    tables: &[Table],
) -> Tokens {
    let type_def = type_or_global(type_def);
    if !data.has_row(Table::TypeDef, type_def) {
        return Err(results::INDEX_NOT_FOUND);
    }
    let name = name.filter(|name| !name.is_null());
    // SAFETY: the profiler's text, which is not NULL.
    let name = name.map(|name| unsafe { read_wide(name) });
    let named = |member: &Token| match table_of(*member) {
        Some(Table::Method) => data.string(*member, md::Method::Name),
        _ => data.string(*member, md::Field::Name),
    };
    let all = tables.iter().flat_map(|table| data.children(type_def, *table));
    Ok(all.filter(|one| name.as_ref().is_none_or(|name| named(one) == name)).collect())
}

/// Returns the rows in which a column has a value.
fn with<C: Column>(data: &Metadata, column: C, value: u32) -> Tokens {
    Ok(data.find_all(column, value).collect())
}

/// Returns the properties or events of a type.
fn of_map<C: Column>(data: &Metadata, type_def: Token, parent: C, of: Table) -> Tokens {
    let map = data.find(parent, row_of(type_def));
    Ok(map.map_or_else(Vec::new, |map| data.children(map, of)))
}

/// Returns the tokens of all user strings that are not empty.
fn user_strings(data: &Metadata) -> Tokens {
    let heap = &data.user_strings;
    let offsets = std::iter::successors((heap.size() > 0).then_some(0), |at| heap.next_blob(*at));
    let kept = offsets.filter(|at| !heap.blob(*at).is_empty());
    Ok(kept.map(|at| super::STRING | at).collect())
}

/// Returns the methods that other modules are to define, and references to global members without definition.
fn unresolved(data: &Metadata) -> Tokens {
    /// `miForwardRef`, `miRuntime` and `miInternalCall`; `mdPinvokeImpl` and `mdAbstract`.
    const FORWARD: u32 = 0x10;
    const ELSEWHERE: u32 = 0x1003;
    const WITHOUT_BODY: u32 = 0x2400;
    let methods = data.tokens(Table::Method).filter(|method| {
        let (code, flags) =
            (data.get(*method, md::Method::ImplFlags), data.get(*method, md::Method::Flags));
        code & FORWARD != 0 && code & ELSEWHERE == 0 && flags & WITHOUT_BODY == 0
    });
    let references = data.find_all(md::MemberRef::Class, token(Table::TypeDef, 1));
    Ok(methods.chain(references).collect())
}

impl Call<'_> {
    enumerations! { IMetaDataImportMethods
        // The type of global functions is left out.
        enum_type_defs = EnumTypeDefs() |data| Ok(data.tokens(Table::TypeDef).skip(1).collect());
        enum_type_refs = EnumTypeRefs() |data| Ok(data.tokens(Table::TypeRef).collect());
        enum_module_refs = EnumModuleRefs() |data| Ok(data.tokens(Table::ModuleRef).collect());
        enum_signatures = EnumSignatures() |data| Ok(data.tokens(Table::StandAloneSig).collect());
        enum_type_specs = EnumTypeSpecs() |data| Ok(data.tokens(Table::TypeSpec).collect());
        enum_user_strings = EnumUserStrings() |data| user_strings(data);
        enum_unresolved_methods = EnumUnresolvedMethods() |data| unresolved(data);
        enum_interface_impls = EnumInterfaceImpls(type_def) |data| {
            with(data, md::InterfaceImpl::Class, row_of(type_def))
        };
        enum_members = EnumMembers(type_def) |data| {
            // SAFETY: there is no name.
            unsafe { members(data, type_def, None, &[Table::Method, Table::Field]) }
        };
        enum_members_with_name = EnumMembersWithName(type_def, name) |data| {
            // SAFETY: the profiler's text, here and below.
            unsafe { members(data, type_def, Some(name), &[Table::Method, Table::Field]) }
        };
        enum_methods = EnumMethods(type_def) |data| {
            // SAFETY: as above.
            unsafe { members(data, type_def, None, &[Table::Method]) }
        };
        enum_methods_with_name = EnumMethodsWithName(type_def, name) |data| {
            // SAFETY: as above.
            unsafe { members(data, type_def, Some(name), &[Table::Method]) }
        };
        enum_fields = EnumFields(type_def) |data| {
            // SAFETY: as above.
            unsafe { members(data, type_def, None, &[Table::Field]) }
        };
        enum_fields_with_name = EnumFieldsWithName(type_def, name) |data| {
            // SAFETY: as above.
            unsafe { members(data, type_def, Some(name), &[Table::Field]) }
        };
        enum_params = EnumParams(method) |data| {
            if data.has_row(Table::Method, method) {
                Ok(data.children(method, Table::Param))
            } else {
                Err(results::INDEX_NOT_FOUND)
            }
        };
        enum_member_refs = EnumMemberRefs(parent) |data| {
            with(data, md::MemberRef::Class, type_or_global(parent))
        };
        enum_permission_sets = EnumPermissionSets(parent, actions) |data| {
            let all = data.tokens(Table::DeclSecurity);
            let wanted = |one: &Token| {
                let of = data.get(*one, md::DeclSecurity::Parent);
                let action = data.get(*one, md::DeclSecurity::Action);
                (row_of(parent) == 0 || of == parent) && (actions == 0 || action == actions)
            };
            Ok(all.filter(wanted).collect())
        };
        enum_events = EnumEvents(type_def) |data| {
            of_map(data, type_def, md::EventMap::Parent, Table::Event)
        };
        enum_method_semantics = EnumMethodSemantics(method) |data| {
            // The column holds a row, and is compared with the token (read): nothing is found.
            let rows = data.find_all(md::MethodSemantics::Method, method);
            Ok(rows.map(|row| data.get(row, md::MethodSemantics::Association)).collect())
        };
        enum_custom_attributes = EnumCustomAttributes(parent, kind) |data| {
            let all = data.tokens(Table::CustomAttribute);
            let wanted = |one: &Token| {
                let of = data.get(*one, md::CustomAttribute::Parent);
                let by = data.get(*one, md::CustomAttribute::Type);
                (row_of(parent) == 0 || of == parent) && (row_of(kind) == 0 || by == kind)
            };
            Ok(all.filter(wanted).collect())
        };
    }

    enumerations! { IMetaDataImport2Methods
        enum_generic_params = EnumGenericParams(owner) |data| {
            with(data, md::GenericParam::Owner, owner)
        };
        enum_constraints = EnumGenericParamConstraints(parameter) |data| {
            if table_of(parameter) == Some(Table::GenericParam) {
                with(data, md::GenericParamConstraint::Owner, row_of(parameter))
            } else {
                Err(results::BAD_INPUT_PARAMETER)
            }
        };
        enum_method_specs = EnumMethodSpecs(method) |data| {
            if row_of(method) == 0 {
                Ok(data.tokens(Table::MethodSpec).collect())
            } else {
                with(data, md::MethodSpec::Method, method)
            }
        };
    }

    IMetaDataImportMethods!(enum_properties = EnumProperties(self, enumerator, type_def, to, capacity,
        len) {
        // SAFETY: the profiler's pointers, here and below.
        unsafe {
            if row_of(type_def) == 0 {
                put(len, 0);
                return Ok(HResult::FALSE);
            }
            let tokens = || {
                let data = &*self.data.borrow();
                of_map(data, type_def, md::PropertyMap::Parent, Table::Property)
            };
            Ok(self.enumerate_tokens(enumerator, tokens, (to, capacity, len)))
        }
    });

    // Lists pairs, each in two buffers.
    IMetaDataImportMethods!(enum_method_impls = EnumMethodImpls(self, enumerator, type_def, bodies,
        declarations, capacity, len) {
        let tokens = || {
            let data = &*self.data.borrow();
            let rows = data.find_all(md::MethodImpl::Class, row_of(type_def));
            let pair = |row| {
                let body = data.get(row, md::MethodImpl::MethodBody);
                [body, data.get(row, md::MethodImpl::MethodDeclaration)]
            };
            Ok(rows.flat_map(pair).collect())
        };
        let mut pairs = vec![0; (capacity as usize).saturating_mul(2).min(0x1_0000)];
        let mut fetched = 0;
        let room = crate::out::count(pairs.len());
        // SAFETY: the handle is the profiler's pointer, the others are ours.
        let result = unsafe {
            let to = (pairs.as_mut_ptr(), room, &raw mut fetched);
            self.enumerate_tokens(enumerator, tokens, to)
        };
        for (index, pair) in pairs.chunks_exact(2).take(fetched as usize / 2).enumerate() {
            // SAFETY: the profiler's buffers have room for `capacity` tokens.
            unsafe {
                put(if bodies.is_null() { bodies } else { bodies.add(index) }, pair.first().copied().unwrap_or_default());
                put(
                    if declarations.is_null() { declarations } else { declarations.add(index) },
                    pair.last().copied().unwrap_or_default(),
                );
            }
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(len, fetched / 2) };
        Ok(result)
    });

    IMetaDataImportMethods!(count_enum = CountEnum(self, enumerator, count) {
        let handle = enumerator as usize;
        if count.is_null() {
            return Ok(self.null("pulCount"));
        }
        let enumerations = self.session.enumerations.borrow();
        let len = match enumerations.get(&handle) {
            Some(enumeration) => crate::out::count(enumeration.tokens.len()),
            None if handle == 0 => 0,
            None => return Ok(self.unknown(handle)),
        };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(count, len) };
        Ok(HResult::OK)
    });

    IMetaDataImportMethods!(reset_enum = ResetEnum(self, enumerator, pos) {
        let handle = enumerator as usize;
        let mut enumerations = self.session.enumerations.borrow_mut();
        match enumerations.get_mut(&handle) {
            Some(enumeration) => enumeration.at = pos as usize,
            None if handle == 0 => {}
            None => return Ok(self.unknown(handle)),
        }
        Ok(HResult::OK)
    });
}
