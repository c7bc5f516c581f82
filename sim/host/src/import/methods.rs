//! The methods of `IMetaDataImport2`, each with its answer.

use super::Import;
use clr_com::{
    Bool, EnumHandle, FieldOffset, Guid, IMetaDataImport2Methods, IMetaDataImportMethods, Token,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

#[allow(clippy::too_many_arguments, reason = "as documented")]
impl IMetaDataImportMethods for Import {
    unsafe fn CloseEnum(&self, enumerator: EnumHandle) {
        self.on("CloseEnum", |call| Ok(call.close(enumerator as usize)));
    }

    unsafe fn IsValidToken(&self, token: Token) -> Bool {
        let mut valid = false;
        self.on("IsValidToken", |call| {
            valid = call.is_valid(token);
            Ok(HResult::OK)
        });
        valid.into()
    }

    answers! {
        IMetaDataImportMethods {
            CountEnum => count_enum;
            ResetEnum => reset_enum;
            EnumTypeDefs => enum_type_defs;
            EnumInterfaceImpls => enum_interface_impls;
            EnumTypeRefs => enum_type_refs;
            FindTypeDefByName => find_type_def;
            GetScopeProps => scope;
            GetModuleFromScope => module;
            GetTypeDefProps => type_def;
            GetInterfaceImplProps => interface_impl;
            GetTypeRefProps => type_ref;
            ResolveTypeRef => resolve_type_ref;
            EnumMembers => enum_members;
            EnumMembersWithName => enum_members_with_name;
            EnumMethods => enum_methods;
            EnumMethodsWithName => enum_methods_with_name;
            EnumFields => enum_fields;
            EnumFieldsWithName => enum_fields_with_name;
            EnumParams => enum_params;
            EnumMemberRefs => enum_member_refs;
            EnumMethodImpls => enum_method_impls;
            EnumPermissionSets => enum_permission_sets;
            FindMember => find_member;
            FindMethod => find_method;
            FindField => find_field;
            FindMemberRef => find_member_ref;
            GetMethodProps => method;
            GetMemberRefProps => member_ref;
            EnumProperties => enum_properties;
            EnumEvents => enum_events;
            GetEventProps => event;
            EnumMethodSemantics => enum_method_semantics;
            GetMethodSemantics => method_semantics;
            GetClassLayout => class_layout;
            GetFieldMarshal => field_marshal;
            GetRVA => rva;
            GetPermissionSetProps => permission_set;
            GetSigFromToken => signature;
            GetModuleRefProps => module_ref;
            EnumModuleRefs => enum_module_refs;
            GetTypeSpecFromToken => type_spec;
            GetNameFromToken => name;
            EnumUnresolvedMethods => enum_unresolved_methods;
            GetUserString => user_string;
            GetPinvokeMap => p_invoke_map;
            EnumSignatures => enum_signatures;
            EnumTypeSpecs => enum_type_specs;
            EnumUserStrings => enum_user_strings;
            GetParamForMethodIndex => param_of_method;
            EnumCustomAttributes => enum_custom_attributes;
            GetCustomAttributeProps => custom_attribute;
            FindTypeRef => find_type_ref;
            GetMemberProps => member;
            GetFieldProps => field;
            GetPropertyProps => property;
            GetParamProps => param;
            GetCustomAttributeByName => custom_attribute_by_name;
            GetNestedClassProps => nested_class;
            GetNativeCallConvFromSig => native_convention;
            IsGlobal => is_global;
        }
    }
}

impl IMetaDataImport2Methods for Import {
    answers! {
        IMetaDataImport2Methods {
            EnumGenericParams => enum_generic_params;
            GetGenericParamProps => generic_param;
            GetMethodSpecProps => method_spec;
            EnumGenericParamConstraints => enum_constraints;
            GetGenericParamConstraintProps => constraint;
            GetPEKind => pe_kind;
            GetVersionString => version;
            EnumMethodSpecs => enum_method_specs;
        }
    }
}
