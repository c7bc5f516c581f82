//! `IMetaDataTables2` and `IMetaDataInfo`: the tables themselves, and their bytes.

use super::{Call, Info, TABLE, Tables};
use crate::out::{count, put};
use clr_com::{Guid, IMetaDataInfoMethods, IMetaDataTables2Methods, IMetaDataTablesMethods};
use clr_metadata as md;
use clr_metadata::{Heap, Kind, Table};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// Kinds of columns (metamodel.h): `iCodedToken`, which the kinds of coded tokens follow, and the numbers after it.
const CODED: u32 = 64;
const I16: u32 = 96;
const U16: u32 = 97;
const U32: u32 = 99;
const U8: u32 = 100;
const STRING: u32 = 101;
const GUID: u32 = 102;
const BLOB: u32 = 103;
/// No column is the key of a table.
const NO_KEY: u32 = u32::MAX;
/// `COR_E_NOTSUPPORTED`: the module has no file in memory.
const NOT_SUPPORTED: HResult = HResult(0x8013_1515);

/// Returns a table by its number.
fn table(number: u32) -> Result<Table, HResult> {
    Table::ALL.get(number as usize).copied().ok_or(HResult::INVALID_ARGUMENT)
}

const fn kind(kind: Kind) -> u32 {
    match kind {
        Kind::Row(table) => table as u32,
        Kind::Coded(coded) => CODED + coded.number(),
        Kind::U8 => U8,
        Kind::I16 => I16,
        Kind::U16 => U16,
        Kind::U32 => U32,
        Kind::String => STRING,
        Kind::Guid => GUID,
        Kind::Blob => BLOB,
    }
}

/// Answers the request for the entry behind one.
unsafe fn put_next(next: Option<u32>, to: *mut u32) -> HResult {
    // SAFETY: the profiler's pointer.
    unsafe { put(to, next.unwrap_or_default()) };
    if next.is_some() { HResult::OK } else { HResult::FALSE }
}

/// Writes a blob of a heap.
unsafe fn put_blob(
    heap: &Heap,
    offset: u32,
    (size, to): (*mut u32, *mut *const c_void),
) -> HResult {
    let blob = if offset == 0 { Some(&[][..]) } else { heap.blob_checked(offset) };
    // SAFETY: the profiler's pointers. Heaps keep their blobs as long as the session lives.
    unsafe {
        put(size, blob.map_or(0, |blob| count(blob.len())));
        put(to, blob.map_or(std::ptr::null(), |blob| blob.as_ptr().cast()));
    }
    if blob.is_some() { HResult::OK } else { crate::results::INDEX_NOT_FOUND }
}

/// Declares the methods that tell the size of a heap.
macro_rules! sizes {
    ($($method:ident |$data:ident| $size:expr;)*) => {$(
        IMetaDataTablesMethods!(fn $method(call, size) {
            if size.is_null() {
                return Ok(call.null("pcb"));
            }
            let $data = call.data.borrow();
            // SAFETY: the profiler's pointer, which is not NULL.
            unsafe { put(size, $size) };
            Ok(HResult::OK)
        });
    )*};
}

impl IMetaDataTablesMethods for Tables {
    sizes! {
        GetStringHeapSize |data| data.strings.size().max(1);
        GetBlobHeapSize |data| data.blobs.size().max(1);
        GetGuidHeapSize |data| data.guids.len() * 16;
        GetUserStringHeapSize |data| data.user_strings.size().max(1);
    }

    IMetaDataTablesMethods!(fn GetNumTables(call, tables_len) {
        if tables_len.is_null() {
            return Ok(call.null("pcTables"));
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(tables_len, Table::ALL.len() as u32) };
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetTableIndex(call, token, table) {
        if table.is_null() {
            return Ok(call.null("pixTbl"));
        }
        // One number more than there are tables is taken for one (run in 10.0.15).
        let number = (token & TABLE) >> 24;
        let found = if number <= Table::ALL.len() as u32 { number } else { u32::MAX };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(table, found) };
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetTableInfo(call, table, row_size, rows_len, columns_len, key, name) {
        let table = self::table(table)?;
        let data = call.data.borrow();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(row_size, data.columns(table).1);
            put(rows_len, data.len(table));
            put(columns_len, count(table.columns().len()));
            put(key, table.key().map_or(NO_KEY, count));
            put(name, table.name_with_end().as_ptr());
        }
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetColumnInfo(call, table, column, offset, size, kind, name) {
        let table = self::table(table)?;
        let index = column as usize;
        let column = table.columns().get(index).ok_or(HResult::INVALID_ARGUMENT)?;
        let places = call.data.borrow().columns(table).0;
        let (at, width) = places.get(index).copied().unwrap_or_default();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(offset, at);
            put(size, width);
            put(kind, self::kind(column.kind));
            put(name, column.name_with_end.as_ptr());
        }
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetCodedTokenInfo(_call, coded, tokens_len, tokens, name) {
        let coded = md::Coded::ALL.get(coded as usize).ok_or(HResult::INVALID_ARGUMENT)?;
        let all = coded.tokens();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(tokens_len, count(all.len()));
            put(tokens, all.as_ptr());
            put(name, coded.name_with_end().as_ptr());
        }
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetRow(call, table, row, bytes) {
        let table = self::table(table)?;
        let data = call.data.borrow();
        if !(1..=data.len(table)).contains(&row) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let kept = call.session.keep_row(&data.row_bytes(table, row));
        // SAFETY: the profiler's pointer. The session keeps the row.
        unsafe { put(bytes, kept.cast()) };
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetColumn(call, table, column, row, value) {
        let table = self::table(table)?;
        let index = column as usize;
        let column = table.columns().get(index).ok_or(HResult::INVALID_ARGUMENT)?;
        let data = call.data.borrow();
        if !(1..=data.len(table)).contains(&row) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if value.is_null() {
            return Ok(call.null("pVal"));
        }
        let cell = data.cell(table, row, index);
        let found = match column.kind {
            Kind::Row(of) => md::token(of, cell),
            _ => cell,
        };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(value, found) };
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetString(call, offset, string) {
        let data = call.data.borrow();
        let is_there = offset < data.strings.size().max(1);
        let text = if is_there { data.strings.text_with_end(offset).as_ptr() } else { std::ptr::null() };
        // SAFETY: the profiler's pointer. Heaps keep their texts as long as the session lives.
        unsafe { put(string, text) };
        Ok(if is_there { HResult::OK } else { crate::results::INDEX_NOT_FOUND })
    });

    IMetaDataTablesMethods!(fn GetBlob(call, offset, size, blob) {
        // SAFETY: the profiler's pointers.
        Ok(unsafe { put_blob(&call.data.borrow().blobs, offset, (size, blob)) })
    });

    IMetaDataTablesMethods!(fn GetUserString(call, offset, size, blob) {
        // SAFETY: the profiler's pointers.
        Ok(unsafe { put_blob(&call.data.borrow().user_strings, offset, (size, blob)) })
    });

    IMetaDataTablesMethods!(fn GetGuid(call, number, guid) {
        let data = call.data.borrow();
        if number > data.guids.len() {
            return Ok(crate::results::INDEX_NOT_FOUND);
        }
        let kept = call.session.keep_row(&data.guids.get(number));
        // SAFETY: the profiler's pointer. The session keeps the bytes.
        unsafe { put(guid, kept.cast()) };
        Ok(HResult::OK)
    });

    IMetaDataTablesMethods!(fn GetNextString(call, offset, next) {
        // SAFETY: the profiler's pointers, here and below.
        Ok(unsafe { put_next(call.data.borrow().strings.next_text(offset), next) })
    });

    IMetaDataTablesMethods!(fn GetNextBlob(call, offset, next) {
        // SAFETY: as above.
        Ok(unsafe { put_next(call.data.borrow().blobs.next_blob(offset), next) })
    });

    IMetaDataTablesMethods!(fn GetNextUserString(call, offset, next) {
        // SAFETY: as above.
        Ok(unsafe { put_next(call.data.borrow().user_strings.next_blob(offset), next) })
    });

    IMetaDataTablesMethods!(fn GetNextGuid(call, number, next) {
        let found = number.checked_add(1).filter(|next| *next <= call.data.borrow().guids.len());
        // SAFETY: as above.
        Ok(unsafe { put_next(found, next) })
    });
}

impl IMetaDataTables2Methods for Tables {
    IMetaDataTables2Methods!(fn GetMetaDataStorage(call, root, size) {
        let Some((address, len)) = call.metadata_root() else { return Ok(crate::results::ADDRESS_TAKEN) };
        // SAFETY: the profiler's pointers.
        unsafe {
            put(root, address as *const _);
            put(size, len);
        }
        Ok(HResult::OK)
    });

    IMetaDataTables2Methods!(fn GetMetaDataStreamInfo(call, number, name, stream, size) {
        let Some((address, len)) = call.metadata_root() else { return Ok(crate::results::ADDRESS_TAKEN) };
        // SAFETY: the session has mapped the bytes.
        let root = unsafe { std::slice::from_raw_parts(address as *const u8, len as usize) };
        let streams = md::streams(root).unwrap_or_default();
        let Some(found) = streams.get(number as usize) else { return Ok(HResult::FALSE) };
        // SAFETY: the profiler's pointers.
        unsafe {
            put(name, (address as usize + found.name) as *const u8);
            put(stream, (address as usize + found.offset) as *const _);
            put(size, count(found.size));
        }
        Ok(HResult::OK)
    });
}

impl Call<'_> {
    /// Maps the module's image. Returns address and size of its metadata root.
    fn metadata_root(&self) -> Option<(u64, u32)> {
        let image = self.image()?;
        self.session.map(image)?;
        let (rva, size) = image.metadata_root();
        Some((image.address(rva), size))
    }
}

impl IMetaDataInfoMethods for Info {
    IMetaDataInfoMethods!(fn GetFileMapping(call, data, size, mapping_type) {
        /// `fmFlat` and `fmExecutableImage`.
        const FLAT: u32 = 0;
        const LOADED: u32 = 1;
        let Some(image) = call.image() else { return Ok(NOT_SUPPORTED) };
        if call.session.map(image).is_none() {
            return Ok(crate::results::ADDRESS_TAKEN);
        }
        if data.is_null() || size.is_null() || mapping_type.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers, which are not NULL.
        unsafe {
            put(data, image.base as *const _);
            put(size, image.bytes().len() as u64);
            put(mapping_type, if image.is_flat { FLAT } else { LOADED });
        }
        Ok(HResult::OK)
    });
}
