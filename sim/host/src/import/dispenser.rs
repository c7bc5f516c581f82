//! The dispenser of metadata, which opens the files of the process's modules: `Disp` of src/coreclr/md/compiler/disp.cpp of
//! dotnet/runtime. What it answers was recorded on 8.0.34, 9.0.23, 10.0.15 and 11.0.0 on Linux; of 3.1 it is assumed.

use super::Scope;
use crate::inner::Inner;
use crate::object::{Head, Headed, Kind, make};
use crate::out::{put, read_wide};
use crate::report::DISPENSER;
use crate::results;
use clr_com::{
    Guid, IMetaDataDispenser, IMetaDataDispenserEx, IMetaDataDispenserExMethods,
    IMetaDataDispenserMethods, IUnknown, IUnknownMethods, Interface, METADATA_DISPENSER,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

const IDS: [Guid; 3] = [IUnknown::IID, IMetaDataDispenser::IID, IMetaDataDispenserEx::IID];
/// `ofWrite`, `ofReadOnly`.
const WRITE: u32 = 1;
const READ_ONLY: u32 = 0x10;

/// The session that dispensers are asked of: the last one that offers them.
static OFFERED: Mutex<Option<Arc<Head>>> = Mutex::new(None);

/// Lets [`get_dispenser`] give dispensers of a session.
pub(crate) fn offer(session: &Inner) {
    let head = Arc::new(Head::new(session, 0, Kind::Uncounted(&[])));
    *OFFERED.lock().unwrap_or_else(PoisonError::into_inner) = Some(head);
}

/// Stands for `MetaDataGetDispenser`, which the runtime's library exports.
///
/// # Safety
/// The ids are NULL or can be read; `object` is NULL or has room for a pointer.
pub unsafe extern "system" fn get_dispenser(
    class: *const Guid,
    iid: *const Guid,
    object: *mut *mut c_void,
) -> HResult {
    let offered = OFFERED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(head) = offered else { return HResult::UNEXPECTED };
    let method = "MetaDataGetDispenser";
    head.call(method, |session| {
        // SAFETY: the profiler's pointers.
        let ids = unsafe { (class.as_ref(), iid.as_ref()) };
        let (Some(class), Some(iid)) = ids else {
            session.shared.find_null(method, "rclsid or riid");
            return Ok(HResult::INVALID_ARGUMENT);
        };
        if *class != METADATA_DISPENSER {
            return Ok(results::CLASS_NOT_AVAILABLE);
        }
        if !IDS.contains(iid) {
            session.shared.with(|report| report.not_simulated("QueryInterface of the dispenser"));
            return Ok(HResult::NO_INTERFACE);
        }
        let made = Dispenser::make(session);
        // SAFETY: the profiler's pointer.
        unsafe { put(object, made) };
        Ok(HResult::OK)
    })
}

/// An `IMetaDataDispenserEx`.
struct Dispenser(Head);

impl Dispenser {
    const KIND: Kind = Kind::Counted(DISPENSER, &IDS);

    fn make(session: &Inner) -> *mut c_void {
        session.keep(|number| {
            make::<IMetaDataDispenserEx, _>(Self(Head::new(session, number, Self::KIND)))
        })
    }
}

impl Headed for Dispenser {
    fn head(&self) -> &Head {
        &self.0
    }
}

impl IUnknownMethods for Dispenser {
    fn unimplemented(&self, method: &'static str) {
        self.0.not_simulated(method);
    }
}

impl IMetaDataDispenserMethods for Dispenser {
    unsafe fn OpenScope(
        &self,
        path: *const u16,
        open_flags: u32,
        riid: *const Guid,
        scope: *mut *mut c_void,
    ) -> HResult {
        self.0.call("OpenScope", |session| {
            // SAFETY: the profiler's text.
            let path = if path.is_null() { String::new() } else { unsafe { read_wide(path) } };
            if path.is_empty() || scope.is_null() {
                return Ok(HResult::INVALID_ARGUMENT);
            }
            // SAFETY: the profiler's pointers, here and below.
            let iid = unsafe {
                put(scope, null_mut());
                riid.as_ref()
            };
            let is_read_only = open_flags & READ_ONLY != 0;
            if is_read_only && open_flags & WRITE != 0 {
                return Ok(HResult::INVALID_ARGUMENT);
            }
            let Some(iid) = iid else {
                session.shared.find_null("OpenScope", "riid");
                return Ok(HResult::INVALID_ARGUMENT);
            };
            let path = path.strip_prefix("file:").unwrap_or(&path);
            let Some(process) = session.stage() else { return Ok(HResult::UNEXPECTED) };
            // The process has no other files with metadata.
            let modules = process.runtime().metadata.modules();
            let Some(module) = modules.iter().find(|module| module.path == path) else {
                return Ok(results::FILE_NOT_FOUND);
            };
            // Recorded: .NET 8 and 9 share what was opened for reading, .NET 10 and 11 do not. Of 3.1 it is assumed.
            let is_shared = is_read_only && !session.generation.family().is_core_since(10);
            let (result, found) = Scope::open(session, module.id, *iid, is_shared);
            // SAFETY: as above.
            unsafe { put(scope, found) };
            Ok(result)
        })
    }
}

/// Methods that no CLR implements.
macro_rules! not_implemented {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe fn $method(&self, $($argument: $type),*) -> HResult {
            let _ = ($($argument),*);
            self.0.call(stringify!($method), |_| Ok(HResult::NOT_IMPLEMENTED))
        }
    )*};
}

impl IMetaDataDispenserExMethods for Dispenser {
    not_implemented! {
        OpenScopeOnITypeInfo(
            info: *mut c_void, flags: u32, riid: *const Guid, scope: *mut *mut c_void
        );
        GetCORSystemDirectory(buffer: *mut u16, capacity: u32, len: *mut u32);
        FindAssembly(
            base: *const u16, private: *const u16, global: *const u16, assembly: *const u16,
            name: *mut u16, capacity: u32, len: *mut u32
        );
        FindAssemblyModule(
            base: *const u16, private: *const u16, global: *const u16, assembly: *const u16,
            module: *const u16, name: *mut u16, capacity: u32, len: *mut u32
        );
    }
}
