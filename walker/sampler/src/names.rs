//! Names of methods, by their metadata.

use crate::lifetimes::Lifetime;
use crate::process::Process;
use crate::profile::Label;
use clr_com::{
    ClassId, ICorProfilerInfo2, IMetaDataImport, Interface, ModuleId, RuntimeInfo, Token,
};
use clr_walker::profiling::{FunctionId, HResult, ProfilerInfo};
use std::collections::HashMap;
use std::ptr::null_mut;

/// Length of the longest name that is read, in UTF-16 units.
const ROOM: usize = 1024;
/// Number of type arguments that are looked at.
const MOST_ARGUMENTS: usize = 8;
/// Open flags of metadata: ofRead.
const READ: u32 = 0;

/// Names that were asked for, by function. Only the sampler asks.
///
/// Ids are used again, those of dynamic methods at once. So a name is that of one of the methods with an id: of the
/// one that lived at a time.
#[derive(Debug, Default)]
pub struct Names {
    /// The last method with an id that was asked for: its number, and its name.
    known: HashMap<FunctionId, (u64, Label)>,
}

impl Names {
    /// Returns the name of the method that had an id at a time ([`Sample::taken_at`](crate::Sample::taken_at)):
    /// `Type.Method`, or the name of a dynamic method, or the id where there is neither; and the module's file. A method
    /// that has ended before anybody asked is `[unloaded]`, if it was not a dynamic one.
    ///
    /// The caller has [`Process::asking`]; a mode has it in [`on_sample`](crate::Mode::on_sample).
    pub fn of(&mut self, process: &Process, function: FunctionId, time: u64) -> Label {
        let lifetime = process.code.lifetimes().of(function, time);
        let known = self.known.get(&function).filter(|(number, _)| *number == lifetime.number);
        if let Some((_, label)) = known {
            return label.clone();
        }
        let Lifetime { number, has_ended, label } = lifetime;
        let label = match label {
            Some(label) => label,
            None if has_ended => Label { name: "[unloaded]".to_owned(), file: String::new() },
            None => label_of(&process.info, function),
        };
        if self.known.get(&function).is_none_or(|(last, _)| *last < number) {
            self.known.insert(function, (number, label.clone()));
        }
        label
    }
}

/// Returns what the runtime says of a function that lives.
pub(crate) fn label_of(info: &RuntimeInfo, function: FunctionId) -> Label {
    Label {
        name: name(info, function)
            .or_else(|| info.get_dynamic_function_name(function).ok())
            .unwrap_or_else(|| format!("function {:#x}", function.0)),
        file: file(info, function).unwrap_or_default(),
    }
}

fn file(info: &RuntimeInfo, function: FunctionId) -> Option<String> {
    let found = info.get_function_info2(function, None, 0).ok()?;
    info.get_module_info(ModuleId(found.module)).ok().map(|(_, path)| path)
}

/// Returns the modules without which a method cannot be: its own, and those of its type arguments. Arguments of arguments
/// are not looked at.
pub(crate) fn modules(info: &RuntimeInfo, function: FunctionId) -> Vec<ModuleId> {
    let room = MOST_ARGUMENTS as u32;
    let Ok(found) = info.get_function_info2(function, None, room) else { return Vec::new() };
    let mut modules = vec![ModuleId(found.module)];
    let mut arguments: Vec<ClassId> = found.type_arguments.into_iter().map(ClassId).collect();
    if found.class != 0 {
        arguments.extend(class_arguments(info.info2(), ClassId(found.class)));
    }
    modules.extend(
        arguments
            .into_iter()
            .filter_map(|class| class_info(info.info2(), class).ok().map(|(module, _)| module)),
    );
    modules.sort_unstable();
    modules.dedup();
    modules
}

/// Returns the type arguments of a class; none if they are not known.
fn class_arguments(info: &ICorProfilerInfo2, class: ClassId) -> Vec<ClassId> {
    let mut arguments = [ClassId(0); MOST_ARGUMENTS];
    let (mut module, mut token, mut len) = (ModuleId(0), 0, 0);
    // SAFETY: the pointers are to locals, or NULL where the result is not wanted, and the room is that of `arguments`.
    let result = unsafe {
        let (module, token, len) = (&raw mut module, &raw mut token, &raw mut len);
        let (room, arguments) = (MOST_ARGUMENTS as u32, arguments.as_mut_ptr());
        info.GetClassIDInfo2(class, module, token, null_mut(), room, len, arguments)
    };
    let len = if result.is_failure() { 0 } else { len as usize };
    arguments.iter().take(len).copied().filter(|class| class.0 != 0).collect()
}

/// Returns `Type.Method` of a function with metadata.
pub fn name(info: &RuntimeInfo, function: FunctionId) -> Option<String> {
    let found = info.get_function_info2(function, None, 0).ok()?;
    let import = metadata(info.info2(), ModuleId(found.module)).ok()?;
    method(&import, found.token).ok()
}

/// Returns a failure as an error.
///
/// # Errors
/// The result.
pub fn succeeded(result: HResult) -> Result<(), HResult> {
    if result.is_failure() { Err(result) } else { Ok(()) }
}

/// Returns the metadata of a module.
///
/// # Errors
/// The runtime's answer.
pub fn metadata(info: &ICorProfilerInfo2, module: ModuleId) -> Result<IMetaDataImport, HResult> {
    let mut import = null_mut();
    // SAFETY: the pointers are to an id and to a local.
    let result =
        unsafe { info.GetModuleMetaData(module, READ, &IMetaDataImport::IID, &raw mut import) };
    succeeded(result)?;
    // SAFETY: NULL, or the reference that the successful call has given.
    unsafe { IMetaDataImport::from_raw(import) }.ok_or(HResult::UNEXPECTED)
}

/// Returns `Type.Method` of a method.
///
/// # Errors
/// The answer of the metadata.
pub fn method(import: &IMetaDataImport, token: Token) -> Result<String, HResult> {
    let mut class = 0;
    let name = text(|name, room, len| {
        let (class, flags, blob) = (&raw mut class, null_mut(), null_mut());
        let (size, rva, kind) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the pointers are to locals of this function and of `text`, or NULL.
        unsafe {
            import.GetMethodProps(token, class, name, room, len, flags, blob, size, rva, kind)
        }
    })?;
    Ok(format!("{}.{name}", class_name(import, class)?))
}

/// Returns the name of a class.
///
/// # Errors
/// The answer of the metadata.
pub fn class_name(import: &IMetaDataImport, token: Token) -> Result<String, HResult> {
    text(|name, room, len| {
        // SAFETY: the pointers are to locals of `text`, or NULL.
        unsafe { import.GetTypeDefProps(token, name, room, len, null_mut(), null_mut()) }
    })
}

/// Returns the module of a class, and its token there.
///
/// # Errors
/// The runtime's answer.
pub fn class_info(info: &ICorProfilerInfo2, class: ClassId) -> Result<(ModuleId, Token), HResult> {
    let (mut module, mut token) = (ModuleId(0), 0);
    // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
    succeeded(unsafe {
        let (module, token) = (&raw mut module, &raw mut token);
        info.GetClassIDInfo2(class, module, token, null_mut(), 0, null_mut(), null_mut())
    })?;
    Ok((module, token))
}

/// Returns the file name of a module, without its folder.
///
/// # Errors
/// The runtime's answer.
pub fn module_file(info: &ICorProfilerInfo2, module: ModuleId) -> Result<String, HResult> {
    let path = text(|name, room, len| {
        // SAFETY: the pointers are to locals of `text`, or NULL.
        unsafe { info.GetModuleInfo(module, null_mut(), room, len, name, null_mut()) }
    })?;
    Ok(path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned())
}

/// Returns the text that a call writes: it gets a buffer, its length, and the place for the text's.
///
/// # Errors
/// The result of the call.
pub fn text(mut call: impl FnMut(*mut u16, u32, *mut u32) -> HResult) -> Result<String, HResult> {
    let mut name = [0; ROOM];
    let mut len = 0;
    succeeded(call(name.as_mut_ptr(), ROOM as u32, &raw mut len))?;
    let name = name.get(..(len as usize).min(ROOM)).unwrap_or_default();
    Ok(String::from_utf16_lossy(name.strip_suffix(&[0]).unwrap_or(name)))
}
