//! HRESULTs that stack walks do not meet, and those of this library.

use clr_walker::profiling::HResult;

/// `E_POINTER`.
pub const POINTER: HResult = HResult(0x8000_4003);
/// `CLASS_E_CLASSNOTAVAILABLE`.
pub const CLASS_NOT_AVAILABLE: HResult = HResult(0x8004_0111);
/// `HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)`.
pub const FILE_NOT_FOUND: HResult = HResult(0x8007_0002);
/// `HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER)`.
pub const INSUFFICIENT_BUFFER: HResult = HResult(0x8007_007A);
/// `HRESULT_FROM_WIN32(ERROR_ENVVAR_NOT_FOUND)`.
pub const NO_ENVIRONMENT_VARIABLE: HResult = HResult(0x8007_00CB);
/// `CORPROF_E_NOT_GC_OBJECT`.
pub const NOT_GC_OBJECT: HResult = HResult(0x8013_1389);
/// `COR_E_BADIMAGEFORMAT`: an entry of a heap is longer than the heap.
pub const BAD_FORMAT: HResult = HResult(0x8007_000B);
/// `CLDB_S_TRUNCATION`: a name was cut off. A success.
pub const TRUNCATION: HResult = HResult(0x0013_1106);
/// `CLDB_E_FILE_CORRUPT`: an entry of a heap is none of its kind.
pub const FILE_CORRUPT: HResult = HResult(0x8013_110E);
/// `META_S_DUPLICATE`: what is to be defined is there already. A success.
pub const DUPLICATE: HResult = HResult(0x0013_1197);
/// `CLDB_E_INDEX_NOTFOUND`: a token has no row.
pub const INDEX_NOT_FOUND: HResult = HResult(0x8013_1124);
/// `CLDB_E_RECORD_NOTFOUND`: a type is not nested, or has another name.
pub const RECORD_NOT_FOUND: HResult = HResult(0x8013_1130);
/// `META_E_INVALID_TOKEN_TYPE`: a token is of another table.
pub const INVALID_TOKEN_TYPE: HResult = HResult(0x8013_115F);
/// `META_E_CANNOTRESOLVETYPEREF`: no other module is searched.
pub const CANNOT_RESOLVE: HResult = HResult(0x8013_1196);
/// `META_E_BAD_INPUT_PARAMETER`: a token is not one of a type parameter.
pub const BAD_INPUT_PARAMETER: HResult = HResult(0x8013_1193);

/// The simulated process has ended, or waits for ever: the report says of what. This and the next
/// codes set the customer bit, so no CLR returns them.
pub const ENDED: HResult = HResult(0xA0C1_0001);
/// The call was made on another thread than that of the session.
pub const WRONG_THREAD: HResult = HResult(0xA0C1_0002);
/// The object has been released, or its session closed.
pub const RELEASED: HResult = HResult(0xA0C1_0003);
/// Something else lies at the address of a module's image.
pub const ADDRESS_TAKEN: HResult = HResult(0xA0C1_0004);
