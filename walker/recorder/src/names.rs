//! Names of methods, by their metadata.

use crate::profile::Label;
use clr_com::{IMetaDataImport, Interface, ModuleId, RuntimeInfo, Token};
use clr_walker::profiling::{FunctionId, ProfilerInfo};
use std::collections::HashMap;
use std::ptr::null_mut;

/// Length of the longest name that is read, in UTF-16 units.
const ROOM: usize = 512;
/// Open flags of metadata: ofRead.
const READ: u32 = 0;

/// Names that were asked for, by function. Only the sampler asks.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<FunctionId, Label>);

impl Names {
    /// Returns `Type.Method`, or the name of a dynamic method, or the id where there is neither; and
    /// the module's file.
    pub(crate) fn of(&mut self, info: &RuntimeInfo, function: FunctionId) -> &Label {
        self.0.entry(function).or_insert_with(|| Label {
            name: name(info, function)
                .or_else(|| info.get_dynamic_function_name(function).ok())
                .unwrap_or_else(|| format!("function {:#x}", function.0)),
            file: file(info, function).unwrap_or_default(),
        })
    }
}

fn file(info: &RuntimeInfo, function: FunctionId) -> Option<String> {
    let found = info.get_function_info2(function, None, 0).ok()?;
    info.get_module_info(ModuleId(found.module)).ok().map(|(_, path)| path)
}

pub(crate) fn name(info: &RuntimeInfo, function: FunctionId) -> Option<String> {
    let found = info.get_function_info2(function, None, 0).ok()?;
    let mut import = null_mut();
    // SAFETY: the pointers are to a constant and a local.
    let result = unsafe {
        let module = ModuleId(found.module);
        info.info2().GetModuleMetaData(module, READ, &IMetaDataImport::IID, &raw mut import)
    };
    // SAFETY: NULL, or the reference that the successful call has given.
    let import = unsafe { IMetaDataImport::from_raw(import) }.filter(|_| !result.is_failure())?;
    let mut class: Token = 0;
    let method = text(|name, room, len| {
        // SAFETY: the pointers are to locals of this function and of `text`, or NULL.
        unsafe {
            let (token, class) = (found.token, &raw mut class);
            let (none, flags) = (null_mut(), null_mut());
            import.GetMethodProps(
                token,
                class,
                name,
                room,
                len,
                flags,
                null_mut(),
                none,
                null_mut(),
                null_mut(),
            )
        }
        .is_failure()
    })?;
    let class = text(|name, room, len| {
        // SAFETY: the same.
        unsafe { import.GetTypeDefProps(class, name, room, len, null_mut(), null_mut()) }
            .is_failure()
    })?;
    Some(format!("{class}.{method}"))
}

/// Returns the text that a call writes: it gets a buffer, its length, and the place for the text's.
fn text(mut call: impl FnMut(*mut u16, u32, *mut u32) -> bool) -> Option<String> {
    let mut name = [0; ROOM];
    let mut len = 0;
    if call(name.as_mut_ptr(), ROOM as u32, &raw mut len) {
        return None;
    }
    let name = name.get(..(len as usize).min(ROOM))?;
    Some(String::from_utf16_lossy(name.strip_suffix(&[0]).unwrap_or(name)))
}
