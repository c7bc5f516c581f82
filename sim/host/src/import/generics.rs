//! `IMetaDataImport2`: type parameters.

use super::types::{GENERIC_PARAMETER, TABLE};
use super::{Import, put_name, row};
use crate::out::put;
use crate::results;
use clr_com::{EnumHandle, IMetaDataImport2Methods, Token};

impl IMetaDataImport2Methods for Import {
    IMetaDataImport2Methods!(fn EnumGenericParams(call, enumerator, token, generic_params, capacity,
        generic_params_len) {
        let tokens = || call.module.parameters_of(token).map(|one| one.token).collect();
        let to = (generic_params, capacity, generic_params_len);
        // SAFETY: the profiler's pointers.
        Ok(unsafe { call.enumerate_tokens(enumerator, tokens, to) })
    });

    IMetaDataImport2Methods!(fn GetGenericParamProps(call, token, sequence, param_flags, owner,
        _reserved, name, name_capacity, name_len) {
        // A CLR does not write to `reserved`.
        if token & TABLE != GENERIC_PARAMETER || token == GENERIC_PARAMETER {
            return Ok(results::BAD_INPUT_PARAMETER);
        }
        let found = row(call.module.generic_parameters(), token)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(sequence, found.number);
            put(param_flags, 0);
            put(owner, found.owner);
            Ok(put_name(&found.name, name_capacity, name_len, name))
        }
    });
}
