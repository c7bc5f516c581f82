//! `IMetaDataImport`, `IMetaDataImport2` and `IMetaDataAssemblyImport`: metadata of a module.

use crate::interface::interfaces;
use crate::{
    AssemblyMetadata, Bool, EnumHandle, FieldOffset, Guid, IUnknown, IUnknownMethods, Token,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `IMetaDataImport`: names and signatures of types and members.
    IMetaDataImport, IMetaDataImportMethods, "7dac8207-d3ae-4c75-9b67-92801a497d44":
        IUnknown, IUnknownMethods {
        3 CloseEnum(enumerator: EnumHandle) -> ();
        4 CountEnum(enumerator: EnumHandle, count: *mut u32);
        5 ResetEnum(enumerator: EnumHandle, pos: u32);
        6 EnumTypeDefs(
            enumerator: *mut EnumHandle, type_defs: *mut Token, capacity: u32, type_defs_len: *mut u32,
        );
        7 EnumInterfaceImpls(
            enumerator: *mut EnumHandle, type_def: Token, impls: *mut Token, capacity: u32,
            impls_len: *mut u32,
        );
        8 EnumTypeRefs(
            enumerator: *mut EnumHandle, type_refs: *mut Token, capacity: u32, type_refs_len: *mut u32,
        );
        9 FindTypeDefByName(name: *const u16, enclosing_class: Token, type_def: *mut Token);
        10 GetScopeProps(name: *mut u16, name_capacity: u32, name_len: *mut u32, mvid: *mut Guid);
        11 GetModuleFromScope(module: *mut Token);
        12 GetTypeDefProps(
            token: Token, type_def: *mut u16, type_def_capacity: u32, type_def_len: *mut u32,
            type_def_flags: *mut u32, extends: *mut Token,
        );
        13 GetInterfaceImplProps(interface_impl: Token, class: *mut Token, interface: *mut Token);
        14 GetTypeRefProps(
            type_ref: Token, resolution_scope: *mut Token, name: *mut u16, name_capacity: u32,
            name_len: *mut u32,
        );
        15 ResolveTypeRef(
            type_ref: Token, riid: *const Guid, scope: *mut *mut c_void, type_def: *mut Token,
        );
        16 EnumMembers(
            enumerator: *mut EnumHandle, type_def: Token, members: *mut Token, capacity: u32,
            tokens_len: *mut u32,
        );
        17 EnumMembersWithName(
            enumerator: *mut EnumHandle, type_def: Token, name: *const u16, members: *mut Token,
            capacity: u32, tokens_len: *mut u32,
        );
        18 EnumMethods(
            enumerator: *mut EnumHandle, type_def: Token, methods: *mut Token, capacity: u32,
            tokens_len: *mut u32,
        );
        19 EnumMethodsWithName(
            enumerator: *mut EnumHandle, type_def: Token, name: *const u16, methods: *mut Token,
            capacity: u32, tokens_len: *mut u32,
        );
        20 EnumFields(
            enumerator: *mut EnumHandle, type_def: Token, fields: *mut Token, capacity: u32,
            tokens_len: *mut u32,
        );
        21 EnumFieldsWithName(
            enumerator: *mut EnumHandle, type_def: Token, name: *const u16, fields: *mut Token,
            capacity: u32, tokens_len: *mut u32,
        );
        22 EnumParams(
            enumerator: *mut EnumHandle, method: Token, params: *mut Token, capacity: u32,
            tokens_len: *mut u32,
        );
        23 EnumMemberRefs(
            enumerator: *mut EnumHandle, parent: Token, member_refs: *mut Token, capacity: u32,
            tokens_len: *mut u32,
        );
        24 EnumMethodImpls(
            enumerator: *mut EnumHandle, type_def: Token, method_body: *mut Token,
            method_decl: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        25 EnumPermissionSets(
            enumerator: *mut EnumHandle, token: Token, actions: u32, permission: *mut Token,
            capacity: u32, tokens_len: *mut u32,
        );
        26 FindMember(
            type_def: Token, name: *const u16, signature: *const u8, signature_size: u32,
            member: *mut Token,
        );
        27 FindMethod(
            type_def: Token, name: *const u16, signature: *const u8, signature_size: u32,
            member: *mut Token,
        );
        28 FindField(
            type_def: Token, name: *const u16, signature: *const u8, signature_size: u32,
            member: *mut Token,
        );
        29 FindMemberRef(
            type_def: Token, name: *const u16, signature: *const u8, signature_size: u32,
            member_ref: *mut Token,
        );
        30 GetMethodProps(
            token: Token, class: *mut Token, name: *mut u16, name_capacity: u32, name_len: *mut u32,
            attr: *mut u32, signature: *mut *const u8, signature_size: *mut u32, code_rva: *mut u32,
            impl_flags: *mut u32,
        );
        31 GetMemberRefProps(
            token: Token, parent: *mut Token, member: *mut u16, member_capacity: u32,
            member_len: *mut u32, signature: *mut *const u8, signature_size: *mut u32,
        );
        32 EnumProperties(
            enumerator: *mut EnumHandle, type_def: Token, properties: *mut Token, capacity: u32,
            properties_len: *mut u32,
        );
        33 EnumEvents(
            enumerator: *mut EnumHandle, type_def: Token, events: *mut Token, capacity: u32,
            events_len: *mut u32,
        );
        34 GetEventProps(
            token: Token, class: *mut Token, event: *const u16, event_capacity: u32,
            event_len: *mut u32, event_flags: *mut u32, event_type: *mut Token, add_on: *mut Token,
            remove_on: *mut Token, fire: *mut Token, other_methods: *mut Token, capacity: u32,
            other_methods_len: *mut u32,
        );
        35 EnumMethodSemantics(
            enumerator: *mut EnumHandle, method: Token, event_or_property: *mut Token, capacity: u32,
            event_or_property_len: *mut u32,
        );
        36 GetMethodSemantics(member: Token, event_or_property: Token, semantics_flags: *mut u32);
        37 GetClassLayout(
            type_def: Token, pack_size: *mut u32, field_offsets: *mut FieldOffset, capacity: u32,
            field_offsets_len: *mut u32, class_size: *mut u32,
        );
        38 GetFieldMarshal(token: Token, native_type: *mut *const u8, native_type_len: *mut u32);
        39 GetRVA(token: Token, code_rva: *mut u32, impl_flags: *mut u32);
        40 GetPermissionSetProps(
            permission_set: Token, action: *mut u32, permission: *mut *const c_void,
            permission_size: *mut u32,
        );
        41 GetSigFromToken(
            signature_token: Token, signature: *mut *const u8, signature_size: *mut u32,
        );
        42 GetModuleRefProps(module_ref: Token, name: *mut u16, name_capacity: u32, name_len: *mut u32);
        43 EnumModuleRefs(
            enumerator: *mut EnumHandle, module_refs: *mut Token, capacity: u32,
            module_refs_len: *mut u32,
        );
        44 GetTypeSpecFromToken(
            type_spec: Token, signature: *mut *const u8, signature_size: *mut u32,
        );
        45 GetNameFromToken(token: Token, utf8_name: *mut *const u8);
        46 EnumUnresolvedMethods(
            enumerator: *mut EnumHandle, methods: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        47 GetUserString(
            string_token: Token, string: *mut u16, string_capacity: u32, string_len: *mut u32,
        );
        48 GetPinvokeMap(
            token: Token, mapping_flags: *mut u32, import_name: *mut u16, import_name_capacity: u32,
            import_name_len: *mut u32, import_dll: *mut Token,
        );
        49 EnumSignatures(
            enumerator: *mut EnumHandle, signatures: *mut Token, capacity: u32,
            signatures_len: *mut u32,
        );
        50 EnumTypeSpecs(
            enumerator: *mut EnumHandle, type_specs: *mut Token, capacity: u32,
            type_specs_len: *mut u32,
        );
        51 EnumUserStrings(
            enumerator: *mut EnumHandle, strings: *mut Token, capacity: u32, strings_len: *mut u32,
        );
        52 GetParamForMethodIndex(method: Token, sequence: u32, parameter: *mut Token);
        53 EnumCustomAttributes(
            enumerator: *mut EnumHandle, token: Token, kind: Token, custom_attributes: *mut Token,
            capacity: u32, custom_attributes_len: *mut u32,
        );
        54 GetCustomAttributeProps(
            attribute: Token, object: *mut Token, kind: *mut Token, blob: *mut *const c_void,
            size: *mut u32,
        );
        55 FindTypeRef(resolution_scope: Token, name: *const u16, type_ref: *mut Token);
        56 GetMemberProps(
            token: Token, class: *mut Token, member: *mut u16, member_capacity: u32,
            member_len: *mut u32, attr: *mut u32, signature: *mut *const u8,
            signature_size: *mut u32, code_rva: *mut u32, impl_flags: *mut u32,
            element_type: *mut u32, value: *mut *const c_void, value_len: *mut u32,
        );
        57 GetFieldProps(
            token: Token, class: *mut Token, field: *mut u16, field_capacity: u32, field_len: *mut u32,
            attr: *mut u32, signature: *mut *const u8, signature_size: *mut u32,
            element_type: *mut u32, value: *mut *const c_void, value_len: *mut u32,
        );
        58 GetPropertyProps(
            property_token: Token, class: *mut Token, property: *const u16, property_capacity: u32,
            property_len: *mut u32, flags: *mut u32, signature: *mut *const u8,
            signature_size: *mut u32, element_type: *mut u32, default_value: *mut *const c_void,
            default_value_len: *mut u32, setter: *mut Token, getter: *mut Token,
            other_methods: *mut Token, capacity: u32, other_methods_len: *mut u32,
        );
        59 GetParamProps(
            token: Token, method: *mut Token, sequence: *mut u32, name: *mut u16, name_capacity: u32,
            name_len: *mut u32, attr: *mut u32, element_type: *mut u32, value: *mut *const c_void,
            value_len: *mut u32,
        );
        60 GetCustomAttributeByName(
            object: Token, name: *const u16, data: *mut *const c_void, data_len: *mut u32,
        );
        61 IsValidToken(token: Token) -> Bool;
        62 GetNestedClassProps(nested: Token, enclosing: *mut Token);
        63 GetNativeCallConvFromSig(
            signature: *const c_void, signature_size: u32, call_conv: *mut u32,
        );
        64 IsGlobal(token: Token, global: *mut i32);
    }

    /// `IMetaDataImport2`: generics.
    IMetaDataImport2, IMetaDataImport2Methods, "fce5efa0-8bba-4f8e-a036-8f2022b08466":
        IMetaDataImport, IMetaDataImportMethods {
        65 EnumGenericParams(
            enumerator: *mut EnumHandle, token: Token, generic_params: *mut Token, capacity: u32,
            generic_params_len: *mut u32,
        );
        66 GetGenericParamProps(
            token: Token, sequence: *mut u32, param_flags: *mut u32, owner: *mut Token,
            reserved: *mut u32, name: *mut u16, name_capacity: u32, name_len: *mut u32,
        );
        67 GetMethodSpecProps(
            method_spec: Token, parent: *mut Token, signature: *mut *const u8,
            signature_size: *mut u32,
        );
        68 EnumGenericParamConstraints(
            enumerator: *mut EnumHandle, token: Token, generic_param_constraints: *mut Token,
            capacity: u32, generic_param_constraints_len: *mut u32,
        );
        69 GetGenericParamConstraintProps(
            constraint: Token, parameter: *mut Token, constraint_type: *mut Token,
        );
        70 GetPEKind(pe_kind: *mut u32, machine: *mut u32);
        71 GetVersionString(version: *mut u16, version_capacity: u32, version_len: *mut u32);
        72 EnumMethodSpecs(
            enumerator: *mut EnumHandle, token: Token, method_specs: *mut Token, capacity: u32,
            method_specs_len: *mut u32,
        );
    }

    /// `IMetaDataAssemblyImport`: the assembly, and those that it refers to.
    IMetaDataAssemblyImport, IMetaDataAssemblyImportMethods, "ee62470b-e94b-424e-9b7c-2f00c9249f93":
        IUnknown, IUnknownMethods {
        3 GetAssemblyProps(
            token: Token, public_key: *mut *const c_void, public_key_size: *mut u32,
            hash_algorithm: *mut u32, name: *mut u16, name_capacity: u32, name_len: *mut u32,
            metadata: *mut AssemblyMetadata, assembly_flags: *mut u32,
        );
        4 GetAssemblyRefProps(
            token: Token, public_key: *mut *const c_void, public_key_size: *mut u32,
            name: *mut u16, name_capacity: u32, name_len: *mut u32, metadata: *mut AssemblyMetadata,
            hash: *mut *const c_void, hash_size: *mut u32, reference_flags: *mut u32,
        );
        5 GetFileProps(
            token: Token, name: *mut u16, name_capacity: u32, name_len: *mut u32,
            hash: *mut *const c_void, hash_size: *mut u32, file_flags: *mut u32,
        );
        6 GetExportedTypeProps(
            token: Token, name: *mut u16, name_capacity: u32, name_len: *mut u32,
            implementation: *mut Token, type_def: *mut Token, type_flags: *mut u32,
        );
        7 GetManifestResourceProps(
            token: Token, name: *mut u16, name_capacity: u32, name_len: *mut u32,
            implementation: *mut Token, offset: *mut u32, resource_flags: *mut u32,
        );
        8 EnumAssemblyRefs(
            enumerator: *mut EnumHandle, assembly_refs: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        9 EnumFiles(
            enumerator: *mut EnumHandle, files: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        10 EnumExportedTypes(
            enumerator: *mut EnumHandle, types: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        11 EnumManifestResources(
            enumerator: *mut EnumHandle, resources: *mut Token, capacity: u32, tokens_len: *mut u32,
        );
        12 GetAssemblyFromScope(assembly: *mut Token);
        13 FindExportedTypeByName(
            name: *const u16, enclosing_type: Token, exported_type: *mut Token,
        );
        14 FindManifestResourceByName(name: *const u16, resource: *mut Token);
        15 CloseEnum(enumerator: EnumHandle) -> ();
        16 FindAssembliesByName(
            base_folder: *const u16, private_folder: *const u16, name: *const u16,
            imports: *mut *mut c_void, capacity: u32, imports_len: *mut u32,
        );
    }
}
