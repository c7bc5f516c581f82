//! `IMetaDataDispenser` and `IMetaDataDispenserEx`: metadata of files, which the runtime's library exports `MetaDataGetDispenser` for.

use crate::interface::interfaces;
use crate::{Guid, IUnknown, IUnknownMethods};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `CLSID_CorMetaDataDispenser`, the class that `MetaDataGetDispenser` is asked for.
pub const METADATA_DISPENSER: Guid = Guid::new("e5cb7a31-7512-11d2-89ce-0080c792e5d8");

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `IMetaDataDispenser`: opens the metadata of a file, or makes new metadata.
    IMetaDataDispenser, IMetaDataDispenserMethods, "809c652e-7396-11d2-9771-00a0c9b4d50c":
        IUnknown, IUnknownMethods {
        3 DefineScope(
            class: *const Guid, create_flags: u32, riid: *const Guid, scope: *mut *mut c_void,
        );
        4 OpenScope(
            path: *const u16, open_flags: u32, riid: *const Guid, scope: *mut *mut c_void,
        );
        5 OpenScopeOnMemory(
            data: *const c_void, size: u32, open_flags: u32, riid: *const Guid,
            scope: *mut *mut c_void,
        );
    }

    /// `IMetaDataDispenserEx`: options, and files of assemblies.
    IMetaDataDispenserEx, IMetaDataDispenserExMethods, "31bcfce2-dafb-11d2-9f81-00c04f79a0a3":
        IMetaDataDispenser, IMetaDataDispenserMethods {
        6 SetOption(option: *const Guid, value: *const c_void);
        7 GetOption(option: *const Guid, value: *mut c_void);
        8 OpenScopeOnITypeInfo(
            type_info: *mut c_void, open_flags: u32, riid: *const Guid, scope: *mut *mut c_void,
        );
        9 GetCORSystemDirectory(buffer: *mut u16, capacity: u32, len: *mut u32);
        10 FindAssembly(
            app_base: *const u16, private_bin: *const u16, global_bin: *const u16,
            assembly: *const u16, name: *mut u16, name_capacity: u32, name_len: *mut u32,
        );
        11 FindAssemblyModule(
            app_base: *const u16, private_bin: *const u16, global_bin: *const u16,
            assembly: *const u16, module: *const u16, name: *mut u16, name_capacity: u32,
            name_len: *mut u32,
        );
    }
}
