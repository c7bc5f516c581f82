//! `IMetaDataTables`, `IMetaDataTables2` and `IMetaDataInfo`: the tables of a module themselves.

use crate::interface::interfaces;
use crate::{Guid, IUnknown, IUnknownMethods};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `IMetaDataTables`: tables, columns, rows and heaps.
    IMetaDataTables, IMetaDataTablesMethods, "d8f579ab-402d-4b8e-82d9-5d63b1065c68":
        IUnknown, IUnknownMethods {
        3 GetStringHeapSize(size: *mut u32);
        4 GetBlobHeapSize(size: *mut u32);
        5 GetGuidHeapSize(size: *mut u32);
        6 GetUserStringHeapSize(size: *mut u32);
        7 GetNumTables(tables_len: *mut u32);
        8 GetTableIndex(token: u32, table: *mut u32);
        9 GetTableInfo(
            table: u32, row_size: *mut u32, rows_len: *mut u32, columns_len: *mut u32,
            key: *mut u32, name: *mut *const u8,
        );
        10 GetColumnInfo(
            table: u32, column: u32, offset: *mut u32, size: *mut u32, kind: *mut u32,
            name: *mut *const u8,
        );
        11 GetCodedTokenInfo(
            coded: u32, tokens_len: *mut u32, tokens: *mut *const u32, name: *mut *const u8,
        );
        12 GetRow(table: u32, row: u32, bytes: *mut *const c_void);
        13 GetColumn(table: u32, column: u32, row: u32, value: *mut u32);
        14 GetString(offset: u32, string: *mut *const u8);
        15 GetBlob(offset: u32, size: *mut u32, blob: *mut *const c_void);
        16 GetGuid(number: u32, guid: *mut *const Guid);
        17 GetUserString(offset: u32, size: *mut u32, blob: *mut *const c_void);
        18 GetNextString(offset: u32, next: *mut u32);
        19 GetNextBlob(offset: u32, next: *mut u32);
        20 GetNextGuid(number: u32, next: *mut u32);
        21 GetNextUserString(offset: u32, next: *mut u32);
    }

    /// `IMetaDataTables2`: the bytes of the metadata.
    IMetaDataTables2, IMetaDataTables2Methods, "badb5f70-58da-43a9-a1c6-d74819f19b15":
        IMetaDataTables, IMetaDataTablesMethods {
        22 GetMetaDataStorage(root: *mut *const c_void, size: *mut u32);
        23 GetMetaDataStreamInfo(
            number: u32, name: *mut *const u8, stream: *mut *const c_void, size: *mut u32,
        );
    }

    /// `IMetaDataInfo`: the file of the metadata in memory.
    IMetaDataInfo, IMetaDataInfoMethods, "7998ea64-7f95-48b8-86fc-17caf48bf5cb":
        IUnknown, IUnknownMethods {
        3 GetFileMapping(data: *mut *const c_void, size: *mut u64, mapping_type: *mut u32);
    }
}
