//! Modules, assemblies, the AppDomain, classes, and the way to their metadata.

use super::Call;
use crate::import::Scope;
use crate::out::{Answer, count, put, put_all, wide};
use crate::results;
use clr_com::{
    AppDomainId, AssemblyId, ClassId, Guid, ICorProfilerInfo2Methods, ICorProfilerInfo3Methods,
    ICorProfilerInfoMethods, ModuleId, ProcessId, Token,
};
use clr_runtime::metadata::{APP_DOMAIN, SYSTEM_DOMAIN, TypeDef};
use clr_runtime::profiling::Accepts;
use clr_walker::profiling::{FunctionId, HResult, ProfilerInfo as _};
use std::ffi::c_void;

/// The process's id: always the same.
const PROCESS: u64 = 0x2A4;
/// `COR_PRF_MODULE_DISK`, `COR_PRF_MODULE_NGEN` of precompiled modules, and `COR_PRF_MODULE_FLAT_LAYOUT`.
const MODULE_DISK: u32 = 1;
const PRECOMPILED: u32 = 2;
const FLAT_LAYOUT: u32 = 0x20;
/// The bits of CorOpenFlags that GetModuleMetaData knows: `ofWrite` and `ofNoTransform`.
const OPEN_FLAGS: u32 = 0x1001;
/// `PROFILER_PARENT_UNKNOWN`: the assembly of a module whose load has not finished. Recorded for Linux; on Windows it is assumed.
const PARENT_UNKNOWN: u64 = 0xFFFF_FFFD;

impl Call<'_> {
    ICorProfilerInfoMethods!(get_module_info = GetModuleInfo(self, module, base, capacity, len, name,
        assembly) {
        let flags = std::ptr::null_mut();
        // SAFETY: the profiler's pointers.
        unsafe { self.get_module_info2(module, base, capacity, len, name, assembly, flags) }
    });

    ICorProfilerInfo3Methods!(get_module_info2 = GetModuleInfo2(self, module, base, capacity, len, name,
        assembly, flags) {
        self.begin()?;
        let module = self.module_of(module.0)?;
        let is_loaded = self.caller().is_loaded(module.id);
        self.caller().may_fail(self.method)?;
        let path = wide(&module.path);
        let metadata = &self.runtime().metadata;
        let Some(image) = metadata.image(module.id) else { return self.unknown(module.id) };
        let Some(address) = self.session.map(image) else { return Ok(results::ADDRESS_TAKEN) };
        let (address, parent) =
            if is_loaded { (address, module.assembly) } else { (0, PARENT_UNKNOWN) };
        let mut kind = MODULE_DISK;
        if is_loaded && metadata.is_precompiled(module.id) {
            kind |= PRECOMPILED;
        }
        if image.is_flat {
            kind |= FLAT_LAYOUT;
        }
        let mut result = HResult::OK;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(flags, kind);
            if !name.is_null() && capacity > 0 {
                if (capacity as usize) < path.len() {
                    put(name, 0);
                    result = results::INSUFFICIENT_BUFFER;
                } else {
                    put_all(name, capacity, &path);
                }
            }
            put(len, count(path.len()));
            put(base, address as *const u8);
            put(assembly, AssemblyId(parent));
        }
        let is_incomplete = !(is_loaded || base.is_null() && assembly.is_null());
        Ok(if is_incomplete { HResult::DATA_INCOMPLETE } else { result })
    });

    ICorProfilerInfoMethods!(get_assembly_info = GetAssemblyInfo(self, assembly, capacity, len, name,
        app_domain, module) {
        self.begin()?;
        let Some(found) = self.runtime().metadata.assembly(assembly.0) else {
            return self.unknown(assembly.0);
        };
        let is_loaded = self.caller().is_loaded(found.id);
        let text = wide(&found.assembly_name);
        // SAFETY: the profiler's pointers.
        unsafe {
            put_short(name, capacity, &text);
            put(len, count(text.len()));
            put(app_domain, AppDomainId(APP_DOMAIN));
            put(module, ModuleId(if is_loaded { found.id } else { 0 }));
        }
        let is_incomplete = !(is_loaded || module.is_null());
        Ok(if is_incomplete { HResult::DATA_INCOMPLETE } else { HResult::OK })
    });

    ICorProfilerInfoMethods!(get_app_domain_info = GetAppDomainInfo(self, app_domain, capacity, len,
        name, process) {
        // .NET 10 and 11 answer in callbacks without triggers, as they look code up there: recorded by `.ci/live --doors`.
        self.caller().begin(Accepts::LookUps)?;
        let text = match app_domain.0 {
            APP_DOMAIN => wide(self.session.generation.app_domain_name()),
            // Recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
            SYSTEM_DOMAIN => wide("System.Private.CoreLib.dll"),
            other => return self.unknown(other),
        };
        // SAFETY: the profiler's pointers.
        unsafe {
            put_short(name, capacity, &text);
            put(len, count(text.len()));
            put(process, ProcessId(PROCESS));
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfoMethods!(get_class_info = GetClassIDInfo(self, class, module, token) {
        self.begin()?;
        let (of_class, found) = self.class_of(class.0)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(module, ModuleId(of_class.id));
            put(token, found.token);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(get_class_info2 = GetClassIDInfo2(self, class, module, token, parent,
        capacity, len, type_args) {
        self.begin()?;
        if class.0 == 0 || capacity != 0 && type_args.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let (of_class, found) = self.class_of(class.0)?;
        let metadata = &self.runtime().metadata;
        let arity = count(of_class.parameters_of(found.token).count());
        let filled = arity.min(capacity);
        let arguments = vec![ClassId(metadata.canonical_class()); filled as usize];
        // SAFETY: the profiler's pointers.
        unsafe {
            put(parent, ClassId(if has_parent(found) { metadata.object_class() } else { 0 }));
            put(module, ModuleId(of_class.id));
            put(token, found.token);
            put(len, if capacity == 0 { arity } else { filled });
            put_all(type_args, capacity, &arguments);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfoMethods!(get_metadata = GetModuleMetaData(self, module, flags, riid, import) {
        self.begin()?;
        if module.0 != 0 && flags & !OPEN_FLAGS != 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let id = self.module_of(module.0)?.id;
        self.caller().may_fail(self.method)?;
        // SAFETY: the profiler's pointers.
        unsafe { self.import(id, riid, import) }
    });

    /// Gives out the metadata of a module, if it is wanted.
    unsafe fn import(&self, module: u64, riid: *const Guid, import: *mut *mut c_void) -> Answer {
        if import.is_null() {
            return Ok(HResult::OK);
        }
        if riid.is_null() {
            return self.null("riid");
        }
        // SAFETY: it is not NULL, so it points to an id: the profiler's promise.
        let iid = unsafe { riid.read_unaligned() };
        let (result, object) = Scope::give(self.session, module, iid);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(import, object) };
        Ok(result)
    }

    ICorProfilerInfoMethods!(get_token_and_metadata = GetTokenAndMetaDataFromFunction(self,
        function, riid, import, token) {
        self.begin()?;
        self.check_function(function);
        let info = self.caller().get_function_info2(function, None, 0)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(token, info.token);
            self.import(info.module, riid, import)
        }
    });
}

/// Returns true if a class has a base class.
const fn has_parent(class: &TypeDef) -> bool {
    class.extends & 0x00FF_FFFF != 0
}

/// Writes a name as GetAssemblyInfo and GetAppDomainInfo do: cut off to one unit less than there is
/// room for.
unsafe fn put_short(to: *mut u16, capacity: u32, text: &[u16]) {
    if to.is_null() || capacity == 0 {
        return;
    }
    let units = text.split_last().map_or(&[][..], |(_, units)| units);
    let kept = units.get(..units.len().min(capacity as usize - 1)).unwrap_or(units);
    // SAFETY: `kept` and its final 0 are at most `capacity` units.
    unsafe {
        put_all(to, capacity, kept);
        to.add(kept.len()).write_unaligned(0);
    }
}
