//! `IMetaDataImport2`: type parameters.

use super::types::{GENERIC_PARAMETER, TABLE};
use super::{Import, put_name, row};
use crate::out::put;
use crate::results;
use clr_com::{EnumHandle, IMetaDataImport2Methods, Token};
use clr_walker::profiling::HResult;

impl IMetaDataImport2Methods for Import {
    unsafe fn EnumGenericParams(
        &self,
        enumerator: *mut EnumHandle,
        token: Token,
        generic_params: *mut Token,
        room: u32,
        generic_params_len: *mut u32,
    ) -> HResult {
        self.on("EnumGenericParams", |call| {
            let tokens = || call.module.parameters_of(token).map(|one| one.token).collect();
            let to = (generic_params, room, generic_params_len);
            // SAFETY: the profiler's pointers.
            Ok(unsafe { call.enumerate(enumerator, tokens, to) })
        })
    }

    unsafe fn GetGenericParamProps(
        &self,
        token: Token,
        sequence: *mut u32,
        param_flags: *mut u32,
        owner: *mut Token,
        reserved: *mut u32,
        name: *mut u16,
        name_room: u32,
        name_len: *mut u32,
    ) -> HResult {
        // A CLR does not write to it.
        let _ = reserved;
        self.on("GetGenericParamProps", |call| {
            if token & TABLE != GENERIC_PARAMETER || token == GENERIC_PARAMETER {
                return Ok(results::BAD_INPUT_PARAMETER);
            }
            let found = match row(call.module.generic_parameters(), token) {
                Ok(found) => found,
                Err(failure) => return Ok(failure),
            };
            // SAFETY: the profiler's pointers.
            unsafe {
                put(sequence, found.number);
                put(param_flags, 0);
                put(owner, found.owner);
                Ok(put_name(&found.name, name_room, name_len, name))
            }
        })
    }
}
