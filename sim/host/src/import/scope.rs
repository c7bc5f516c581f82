//! The metadata of a module: one object with several interfaces, as `RegMeta` is.

use super::Call;
use crate::inner::{Inner, Kept, ScopeKey};
use crate::object::{Head, Headed, Kind, make};
use crate::out::Answer;
use crate::report::{Finding, METADATA, METADATA_INTERFACES};
use clr_com::{
    Guid, IMetaDataAssemblyEmit, IMetaDataAssemblyImport, IMetaDataEmit, IMetaDataEmit2,
    IMetaDataImport, IMetaDataImport2, IMetaDataInfo, IMetaDataTables, IMetaDataTables2, IUnknown,
    IUnknownMethods, Interface, OwnedObject,
};
use clr_walker::profiling::HResult;
use std::any::Any;
use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, OnceLock};

/// The interfaces of the object. Those that change metadata are given, whatever it was opened for (observed).
const IDS: [Guid; METADATA_INTERFACES] = [
    IUnknown::IID,
    IMetaDataImport::IID,
    IMetaDataImport2::IID,
    IMetaDataAssemblyImport::IID,
    IMetaDataEmit::IID,
    IMetaDataEmit2::IID,
    IMetaDataAssemblyEmit::IID,
    IMetaDataTables::IID,
    IMetaDataTables2::IID,
    IMetaDataInfo::IID,
];

/// The copy of a module's metadata that all share who open its file for reading.
const SHARED: u32 = 1;

/// The metadata of a module.
pub(crate) struct Scope {
    head: Head,
    key: ScopeKey,
    /// Addresses of the pointers, in the order of [`Faces`].
    addresses: OnceLock<[usize; 6]>,
}

/// The pointers to a scope that a profiler gets.
struct Faces {
    import: OwnedObject<Import>,
    assemblies: OwnedObject<Assemblies>,
    emit: OwnedObject<Emit>,
    assembly_emit: OwnedObject<AssemblyEmit>,
    tables: OwnedObject<Tables>,
    info: OwnedObject<Info>,
}

impl Scope {
    const KIND: Kind = Kind::Counted(METADATA, &IDS);

    /// Answers the request for an interface of a module's metadata (RegMeta::QueryInterface): the
    /// result, and the pointer. As long as there are references, it is the same object.
    pub(crate) fn give(session: &Inner, module: u64, iid: Guid) -> (HResult, *mut c_void) {
        Self::give_by(session, ScopeKey::own(session.stage_number(), module), iid)
    }

    /// The same for the metadata of a module's file, as the image has it: what was opened before, if `is_shared` says so and there
    /// are references to it.
    pub(crate) fn open(
        session: &Inner,
        module: u64,
        iid: Guid,
        is_shared: bool,
    ) -> (HResult, *mut c_void) {
        let own = ScopeKey::own(session.stage_number(), module);
        let scopes = session.scopes.borrow();
        let is_of_file = |key: &&ScopeKey| (key.stage, key.module) == (own.stage, own.module);
        let last = scopes.keys().filter(is_of_file).map(|key| key.copy).max().unwrap_or_default();
        drop(scopes);
        let copy = if is_shared { SHARED } else { last.max(SHARED) + 1 };
        Self::give_by(session, ScopeKey { copy, ..own }, iid)
    }

    fn give_by(session: &Inner, key: ScopeKey, iid: Guid) -> (HResult, *mut c_void) {
        if !IDS.contains(&iid) {
            session.shared.with(|report| report.not_simulated("QueryInterface of metadata"));
            return (HResult::NO_INTERFACE, null_mut());
        }
        let known = session.scopes.borrow().get(&key).cloned();
        let known = known.and_then(|known| known.downcast::<Self>().ok());
        let scope = known.filter(|scope| scope.head.share()).unwrap_or_else(|| {
            let scope = Self::make(session, key);
            let kept: Arc<dyn Any + Send + Sync> = scope.clone();
            session.scopes.borrow_mut().insert(key, kept);
            if key.copy != 0 {
                session.metadata.borrow_mut().remove(&key);
            }
            scope
        });
        match scope.pointer(&iid) {
            Some(pointer) => (HResult::OK, pointer.as_ptr()),
            None => (HResult::NO_INTERFACE, null_mut()),
        }
    }

    fn make(session: &Inner, key: ScopeKey) -> Arc<Self> {
        session.keep_all(|number| {
            let head = Head::new(session, number, Self::KIND);
            let scope = Arc::new(Self { head, key, addresses: OnceLock::new() });
            let faces = Faces {
                import: make::<IMetaDataImport2, _>(Import(Arc::clone(&scope))),
                assemblies: make::<IMetaDataAssemblyImport, _>(Assemblies(Arc::clone(&scope))),
                emit: make::<IMetaDataEmit2, _>(Emit(Arc::clone(&scope))),
                assembly_emit: make::<IMetaDataAssemblyEmit, _>(AssemblyEmit(Arc::clone(&scope))),
                tables: make::<IMetaDataTables2, _>(Tables(Arc::clone(&scope))),
                info: make::<IMetaDataInfo, _>(Info(Arc::clone(&scope))),
            };
            let addresses = [
                faces.import.as_raw(),
                faces.assemblies.as_raw(),
                faces.emit.as_raw(),
                faces.assembly_emit.as_raw(),
                faces.tables.as_raw(),
                faces.info.as_raw(),
            ];
            let _ = scope.addresses.set(addresses.map(|pointer| pointer as usize));
            (Box::new(faces), scope)
        })
    }

    /// Returns the pointer for an interface.
    fn pointer(&self, iid: &Guid) -> Option<NonNull<c_void>> {
        let [import, assemblies, emit, assembly_emit, tables, info] = *self.addresses.get()?;
        let address = match *iid {
            IUnknown::IID | IMetaDataImport::IID | IMetaDataImport2::IID => import,
            IMetaDataAssemblyImport::IID => assemblies,
            IMetaDataEmit::IID | IMetaDataEmit2::IID => emit,
            IMetaDataAssemblyEmit::IID => assembly_emit,
            IMetaDataTables::IID | IMetaDataTables2::IID => tables,
            IMetaDataInfo::IID => info,
            _ => return None,
        };
        NonNull::new(address as *mut c_void)
    }

    /// Answers a call about the module.
    pub(super) fn on(
        &self,
        method: &'static str,
        act: impl FnOnce(&Call<'_>) -> Answer,
    ) -> HResult {
        self.head.call(method, |session| {
            let Some(stage) = session.stage_of(self.key.stage) else {
                return Ok(HResult::UNEXPECTED);
            };
            let Some(module) = stage.runtime().metadata.module(self.key.module) else {
                return Ok(HResult::UNEXPECTED);
            };
            let Some(data) = session.metadata_of(self.key) else {
                return Ok(HResult::UNEXPECTED);
            };
            act(&Call { method, session, process: &stage, module, data })
        })
    }
}

impl Kept for Faces {
    fn leak(&self) -> Option<Finding> {
        self.import.value().head.leak()
    }

    fn buried(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

macro_rules! faces {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name(Arc<Scope>);

        impl Deref for $name {
            type Target = Scope;

            fn deref(&self) -> &Scope {
                &self.0
            }
        }

        impl Headed for $name {
            fn head(&self) -> &Head {
                &self.head
            }

            fn face(&self, iid: &Guid) -> Option<NonNull<c_void>> {
                self.pointer(iid)
            }
        }

        impl IUnknownMethods for $name {
            fn unimplemented(&self, method: &'static str) {
                self.head.not_simulated(method);
            }
        }
    )*};
}

faces! {
    /// `IMetaDataImport2`, and `IUnknown`.
    Import;
    /// `IMetaDataAssemblyImport`.
    Assemblies;
    /// `IMetaDataEmit2`.
    Emit;
    /// `IMetaDataAssemblyEmit`.
    AssemblyEmit;
    /// `IMetaDataTables2`.
    Tables;
    /// `IMetaDataInfo`.
    Info;
}
