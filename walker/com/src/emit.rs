//! `IMetaDataEmit`, `IMetaDataEmit2` and `IMetaDataAssemblyEmit`: changes of metadata.

use crate::interface::interfaces;
use crate::{AssemblyMetadata, FieldOffset, IUnknown, IUnknownMethods, Token};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `IMetaDataEmit`: new types and members.
    IMetaDataEmit, IMetaDataEmitMethods, "ba3fee4c-ecb9-4e41-83b7-183fa41cd859":
        IUnknown, IUnknownMethods {
        3 SetModuleProps(name: *const u16);
        4 Save(file: *const u16, save_flags: u32);
        5 SaveToStream(stream: *mut c_void, save_flags: u32);
        6 GetSaveSize(kind: u32, save_size: *mut u32);
        7 DefineTypeDef(
            name: *const u16, type_flags: u32, extends: Token, implements: *const
            Token, type_def: *mut Token,
        );
        8 DefineNestedType(
            name: *const u16, type_flags: u32, extends: Token, implements: *const
            Token, enclosing: Token, type_def: *mut Token,
        );
        9 SetHandler(handler: *mut c_void);
        10 DefineMethod(
            type_def: Token, name: *const u16, method_flags: u32, signature: *const
            u8, signature_size: u32, code_rva: u32, impl_flags: u32, method: *mut
            Token,
        );
        11 DefineMethodImpl(type_def: Token, body: Token, declaration: Token);
        12 DefineTypeRefByName(resolution_scope: Token, name: *const u16, type_ref: *mut Token);
        13 DefineImportType(
            assembly_import: *mut c_void, hash: *const c_void, hash_size: u32,
            import: *mut c_void, type_def: Token, assembly_emit: *mut c_void,
            type_ref: *mut Token,
        );
        14 DefineMemberRef(
            import: Token, name: *const u16, signature: *const u8, signature_size:
            u32, member_ref: *mut Token,
        );
        15 DefineImportMember(
            assembly_import: *mut c_void, hash: *const c_void, hash_size: u32,
            import: *mut c_void, member: Token, assembly_emit: *mut c_void, parent:
            Token, member_ref: *mut Token,
        );
        16 DefineEvent(
            type_def: Token, name: *const u16, event_flags: u32, event_type: Token,
            add_on: Token, remove_on: Token, fire: Token, other_methods: *const
            Token, event: *mut Token,
        );
        17 SetClassLayout(
            type_def: Token, pack_size: u32, field_offsets: *const FieldOffset,
            class_size: u32,
        );
        18 DeleteClassLayout(type_def: Token);
        19 SetFieldMarshal(token: Token, native_type: *const u8, native_type_size: u32);
        20 DeleteFieldMarshal(token: Token);
        21 DefinePermissionSet(
            token: Token, action: u32, permission: *const c_void, permission_size:
            u32, permission_set: *mut Token,
        );
        22 SetRVA(method: Token, rva: u32);
        23 GetTokenFromSig(signature: *const u8, signature_size: u32, token: *mut Token);
        24 DefineModuleRef(name: *const u16, module_ref: *mut Token);
        25 SetParent(member_ref: Token, parent: Token);
        26 GetTokenFromTypeSpec(signature: *const u8, signature_size: u32, type_spec: *mut Token);
        27 SaveToMemory(memory: *mut c_void, memory_size: u32);
        28 DefineUserString(string: *const u16, string_size: u32, token: *mut Token);
        29 DeleteToken(token: Token);
        30 SetMethodProps(method: Token, method_flags: u32, code_rva: u32, impl_flags: u32);
        31 SetTypeDefProps(
            type_def: Token, type_flags: u32, extends: Token, implements: *const
            Token,
        );
        32 SetEventProps(
            event: Token, event_flags: u32, event_type: Token, add_on: Token,
            remove_on: Token, fire: Token, other_methods: *const Token,
        );
        33 SetPermissionSetProps(
            token: Token, action: u32, permission: *const c_void, permission_size:
            u32, permission_set: *mut Token,
        );
        34 DefinePinvokeMap(
            token: Token, mapping_flags: u32, import_name: *const u16, import_dll:
            Token,
        );
        35 SetPinvokeMap(
            token: Token, mapping_flags: u32, import_name: *const u16, import_dll:
            Token,
        );
        36 DeletePinvokeMap(token: Token);
        37 DefineCustomAttribute(
            owner: Token, constructor: Token, attribute: *const c_void,
            attribute_size: u32, token: *mut Token,
        );
        38 SetCustomAttributeValue(token: Token, attribute: *const c_void, attribute_size: u32);
        39 DefineField(
            type_def: Token, name: *const u16, field_flags: u32, signature: *const
            u8, signature_size: u32, element_type: u32, value: *const c_void,
            value_size: u32, field: *mut Token,
        );
        40 DefineProperty(
            type_def: Token, name: *const u16, property_flags: u32, signature:
            *const u8, signature_size: u32, element_type: u32, value: *const c_void,
            value_size: u32, setter: Token, getter: Token, other_methods: *const
            Token, property: *mut Token,
        );
        41 DefineParam(
            method: Token, sequence: u32, name: *const u16, param_flags: u32,
            element_type: u32, value: *const c_void, value_size: u32, param: *mut
            Token,
        );
        42 SetFieldProps(
            field: Token, field_flags: u32, element_type: u32, value: *const c_void,
            value_size: u32,
        );
        43 SetPropertyProps(
            property: Token, property_flags: u32, element_type: u32, value: *const
            c_void, value_size: u32, setter: Token, getter: Token, other_methods:
            *const Token,
        );
        44 SetParamProps(
            param: Token, name: *const u16, param_flags: u32, element_type: u32,
            value: *const c_void, value_size: u32,
        );
        45 DefineSecurityAttributeSet(
            token: Token, attributes: *const c_void, attributes_size: u32,
            wrong_attribute: *mut u32,
        );
        46 ApplyEditAndContinue(import: *mut c_void);
        47 TranslateSigWithScope(
            assembly_import: *mut c_void, hash: *const c_void, hash_size: u32,
            import: *mut c_void, signature: *const u8, signature_size: u32,
            assembly_emit: *mut c_void, emit: *mut c_void, translated: *mut u8,
            translated_capacity: u32, translated_len: *mut u32,
        );
        48 SetMethodImplFlags(method: Token, impl_flags: u32);
        49 SetFieldRVA(field: Token, rva: u32);
        50 Merge(import: *mut c_void, host_map: *mut c_void, handler: *mut c_void);
        51 MergeEnd();
    }

    /// `IMetaDataEmit2`: generics, and changes while the program runs.
    IMetaDataEmit2, IMetaDataEmit2Methods, "f5dd9950-f693-42e6-830e-7b833e8146a9":
        IMetaDataEmit, IMetaDataEmitMethods {
        52 DefineMethodSpec(
            parent: Token, signature: *const u8, signature_size: u32, method_spec:
            *mut Token,
        );
        53 GetDeltaSaveSize(kind: u32, save_size: *mut u32);
        54 SaveDelta(file: *const u16, save_flags: u32);
        55 SaveDeltaToStream(stream: *mut c_void, save_flags: u32);
        56 SaveDeltaToMemory(memory: *mut c_void, memory_size: u32);
        57 DefineGenericParam(
            token: Token, sequence: u32, param_flags: u32, name: *const u16,
            reserved: u32, constraints: *const Token, generic_param: *mut Token,
        );
        58 SetGenericParamProps(
            generic_param: Token, param_flags: u32, name: *const u16, reserved: u32,
            constraints: *const Token,
        );
        59 ResetENCLog();
    }

    /// `IMetaDataAssemblyEmit`: new assembly references.
    IMetaDataAssemblyEmit, IMetaDataAssemblyEmitMethods, "211ef15b-5317-4438-b196-dec87b887693":
        IUnknown, IUnknownMethods {
        3 DefineAssembly(
            public_key: *const c_void, public_key_size: u32, hash_algorithm: u32,
            name: *const u16, metadata: *const AssemblyMetadata, assembly_flags:
            u32, assembly: *mut Token,
        );
        4 DefineAssemblyRef(
            public_key: *const c_void, public_key_size: u32, name: *const u16,
            metadata: *const AssemblyMetadata, hash: *const c_void, hash_size: u32,
            reference_flags: u32, assembly_ref: *mut Token,
        );
        5 DefineFile(
            name: *const u16, hash: *const c_void, hash_size: u32, file_flags: u32,
            file: *mut Token,
        );
        6 DefineExportedType(
            name: *const u16, implementation: Token, type_def: Token, type_flags:
            u32, exported_type: *mut Token,
        );
        7 DefineManifestResource(
            name: *const u16, implementation: Token, offset: u32, resource_flags:
            u32, resource: *mut Token,
        );
        8 SetAssemblyProps(
            assembly: Token, public_key: *const c_void, public_key_size: u32,
            hash_algorithm: u32, name: *const u16, metadata: *const
            AssemblyMetadata, assembly_flags: u32,
        );
        9 SetAssemblyRefProps(
            assembly_ref: Token, public_key: *const c_void, public_key_size: u32,
            name: *const u16, metadata: *const AssemblyMetadata, hash: *const
            c_void, hash_size: u32, reference_flags: u32,
        );
        10 SetFileProps(file: Token, hash: *const c_void, hash_size: u32, file_flags: u32);
        11 SetExportedTypeProps(
            exported_type: Token, implementation: Token, type_def: Token,
            type_flags: u32,
        );
        12 SetManifestResourceProps(
            resource: Token, implementation: Token, offset: u32, resource_flags:
            u32,
        );
    }
}
