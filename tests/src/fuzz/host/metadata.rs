//! The HRESULTs of the metadata interfaces.

use clr_walker::profiling::HResult as H;
use clrsim::results as r;

/// Returns the HRESULTs of a method of `IMetaDataAssemblyImport`.
pub(super) fn assembly_import(method: &str) -> Option<&'static [H]> {
    Some(match method {
        "GetAssemblyProps" | "GetAssemblyRefProps" | "GetFileProps" => {
            &[H::OK, H::INVALID_ARGUMENT, r::TRUNCATION, r::INDEX_NOT_FOUND]
        }
        "GetExportedTypeProps" | "GetManifestResourceProps" => {
            &[H::OK, r::TRUNCATION, r::INDEX_NOT_FOUND]
        }
        "EnumAssemblyRefs" | "EnumFiles" | "EnumExportedTypes" | "EnumManifestResources" => {
            &[H::OK, H::FALSE, H::INVALID_ARGUMENT]
        }
        "GetAssemblyFromScope" => &[H::OK, H::INVALID_ARGUMENT],
        "FindExportedTypeByName" | "FindManifestResourceByName" => {
            &[H::OK, H::INVALID_ARGUMENT, r::RECORD_NOT_FOUND]
        }
        "FindAssembliesByName" => &[H::NOT_IMPLEMENTED],
        _ => return None,
    })
}

/// Returns the HRESULTs of a method of `IMetaDataImport2`.
pub(super) fn import(method: &str) -> Option<&'static [H]> {
    Some(match method {
        "CountEnum"
        | "ResetEnum"
        | "GetModuleFromScope"
        | "GetNativeCallConvFromSig"
        | "IsGlobal" => &[H::OK, H::INVALID_ARGUMENT],
        "EnumMembers"
        | "EnumMembersWithName"
        | "EnumMethods"
        | "EnumMethodsWithName"
        | "EnumFields"
        | "EnumFieldsWithName"
        | "EnumParams" => &[H::OK, H::FALSE, H::INVALID_ARGUMENT, r::INDEX_NOT_FOUND],
        "EnumGenericParamConstraints" => {
            &[H::OK, H::FALSE, H::INVALID_ARGUMENT, r::BAD_INPUT_PARAMETER]
        }
        name if name.starts_with("Enum") => &[H::OK, H::FALSE, H::INVALID_ARGUMENT],
        "FindTypeDefByName" | "FindTypeRef" | "FindMemberRef" => {
            &[H::OK, H::INVALID_ARGUMENT, r::RECORD_NOT_FOUND]
        }
        "FindMember" | "FindMethod" | "FindField" => {
            &[H::OK, H::INVALID_ARGUMENT, r::RECORD_NOT_FOUND, r::INDEX_NOT_FOUND]
        }
        "GetScopeProps" | "GetVersionString" => &[H::OK, r::TRUNCATION],
        "GetPEKind" => &[H::OK],
        "ResolveTypeRef" => &[r::CANNOT_RESOLVE],
        "GetTypeDefProps" | "GetTypeRefProps" => {
            &[H::OK, H::FALSE, r::TRUNCATION, r::INDEX_NOT_FOUND]
        }
        "GetMethodProps" | "GetMemberProps" | "GetFieldProps" | "GetMemberRefProps"
        | "GetParamProps" | "GetPropertyProps" | "GetEventProps" | "GetModuleRefProps" => {
            &[H::OK, r::TRUNCATION, r::INDEX_NOT_FOUND]
        }
        "GetInterfaceImplProps"
        | "GetTypeSpecFromToken"
        | "GetSigFromToken"
        | "GetPermissionSetProps"
        | "GetCustomAttributeProps"
        | "GetMethodSpecProps" => &[H::OK, r::INDEX_NOT_FOUND],
        "GetMethodSemantics" => &[H::OK, H::INVALID_ARGUMENT, r::RECORD_NOT_FOUND],
        "GetClassLayout" | "GetRVA" | "GetFieldMarshal" => {
            &[H::OK, r::INDEX_NOT_FOUND, r::RECORD_NOT_FOUND]
        }
        "GetPinvokeMap" => &[H::OK, r::TRUNCATION, r::RECORD_NOT_FOUND],
        "GetParamForMethodIndex" => {
            &[H::OK, H::INVALID_ARGUMENT, r::INDEX_NOT_FOUND, r::RECORD_NOT_FOUND]
        }
        "GetNameFromToken" => &[H::OK, H::INVALID_ARGUMENT, r::INDEX_NOT_FOUND],
        "GetUserString" => {
            &[H::OK, r::TRUNCATION, r::INDEX_NOT_FOUND, r::FILE_CORRUPT, r::BAD_FORMAT]
        }
        "GetCustomAttributeByName" => &[H::OK, H::FALSE, H::INVALID_ARGUMENT],
        "GetNestedClassProps" => {
            &[H::OK, H::INVALID_ARGUMENT, r::INVALID_TOKEN_TYPE, r::RECORD_NOT_FOUND]
        }
        "GetGenericParamProps" => {
            &[H::OK, r::TRUNCATION, r::BAD_INPUT_PARAMETER, r::INDEX_NOT_FOUND]
        }
        "GetGenericParamConstraintProps" => &[H::OK, r::BAD_INPUT_PARAMETER, r::INDEX_NOT_FOUND],
        _ => return None,
    })
}

/// Returns the HRESULTs of a method of `IMetaDataEmit2`.
pub(super) fn emit(method: &str) -> Option<&'static [H]> {
    Some(match method {
        "SetModuleProps"
        | "SetClassLayout"
        | "SetHandler"
        | "DefineMethodImpl"
        | "DefineCustomAttribute" => &[H::OK],
        "DefineTypeDef"
        | "DefineNestedType"
        | "DefineModuleRef"
        | "DefineUserString"
        | "GetSaveSize"
        | "GetTokenFromTypeSpec" => &[H::OK, H::INVALID_ARGUMENT],
        "DefineTypeRefByName" | "DefineMemberRef" | "DefineMethodSpec" | "GetTokenFromSig" => {
            &[H::OK, H::INVALID_ARGUMENT, r::DUPLICATE]
        }
        "DefineMethod" | "DefineField" | "DefineParam" => {
            &[H::OK, H::INVALID_ARGUMENT, r::INDEX_NOT_FOUND]
        }
        "SetFieldMarshal"
        | "SetRVA"
        | "SetFieldRVA"
        | "SetParent"
        | "SetMethodProps"
        | "SetTypeDefProps"
        | "SetCustomAttributeValue"
        | "SetFieldProps"
        | "SetParamProps"
        | "SetMethodImplFlags"
        | "DefinePinvokeMap" => &[H::OK, r::INDEX_NOT_FOUND],
        "SetPinvokeMap" | "DeleteClassLayout" | "DeleteFieldMarshal" | "DeletePinvokeMap" => {
            &[H::OK, r::RECORD_NOT_FOUND]
        }
        "DeleteToken" => &[H::INVALID_ARGUMENT],
        "DefineGenericParam" => &[H::OK, r::BAD_INPUT_PARAMETER],
        _ => return None,
    })
}

/// Returns the HRESULTs of a method of `IMetaDataAssemblyEmit`.
pub(super) fn assembly_emit(method: &str) -> Option<&'static [H]> {
    Some(match method {
        "DefineAssembly"
        | "DefineAssemblyRef"
        | "DefineFile"
        | "DefineExportedType"
        | "DefineManifestResource" => &[H::OK, H::INVALID_ARGUMENT],
        "SetAssemblyRefProps" => &[H::OK, r::INDEX_NOT_FOUND],
        _ => return None,
    })
}

/// Returns the arguments that a method writes although it refuses.
pub(super) fn written_though_refused(method: &str) -> &'static [&'static str] {
    match method {
        "FindTypeDefByName" => &["type_def"],
        "FindTypeRef" => &["type_ref"],
        "FindMember" | "FindMethod" | "FindField" => &["member"],
        "FindMemberRef" => &["member_ref"],
        "FindExportedTypeByName" => &["exported_type"],
        "FindManifestResourceByName" => &["resource"],
        "ResolveTypeRef" => &["scope", "type_def"],
        "GetMethodSemantics" => &["semantics_flags"],
        "GetClassLayout" => &["pack_size", "class_size", "field_offsets"],
        "GetRVA" => &["code_rva"],
        "DefineGenericParam" => &["generic_param"],
        _ => &[],
    }
}
