//! A profiler's library, loaded as a CLR does: `EEToProfInterfaceImpl::CreateProfiler` and
//! `CoCreateProfiler` (src/vm/eetoprofinterfaceimpl.cpp of CoreCLR 3.1), `FakeCoCreateInstanceEx`
//! (src/utilcode/util.cpp).

use crate::visit::Visit;
use clr_com::{
    Bool, Forwarding, Guid, IClassFactory, ICorProfilerCallback2, ICorProfilerCallback3,
    ICorProfilerCallback4, ICorProfilerCallback5, ICorProfilerCallback6, ICorProfilerCallback7,
    ICorProfilerCallback8, ICorProfilerCallback9, ICorProfilerCallback10, ICorProfilerCallback11,
    IUnknown, Interface, MainReason, ProfilerLibrary,
};
use clr_walker::profiling::HResult;
use clrsim::hosting::{OTHERS, Pointers, Shared, newest_callback};
use clrsim::{Entry, Session};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;

/// The ids of `ICorProfilerCallback3` to 11, with the names of the steps that ask for them.
const CALLBACKS: [(Guid, &str); 9] = [
    (ICorProfilerCallback3::IID, "QueryInterface(ICorProfilerCallback3)"),
    (ICorProfilerCallback4::IID, "QueryInterface(ICorProfilerCallback4)"),
    (ICorProfilerCallback5::IID, "QueryInterface(ICorProfilerCallback5)"),
    (ICorProfilerCallback6::IID, "QueryInterface(ICorProfilerCallback6)"),
    (ICorProfilerCallback7::IID, "QueryInterface(ICorProfilerCallback7)"),
    (ICorProfilerCallback8::IID, "QueryInterface(ICorProfilerCallback8)"),
    (ICorProfilerCallback9::IID, "QueryInterface(ICorProfilerCallback9)"),
    (ICorProfilerCallback10::IID, "QueryInterface(ICorProfilerCallback10)"),
    (ICorProfilerCallback11::IID, "QueryInterface(ICorProfilerCallback11)"),
];

/// A loaded profiler, with the references that a CLR holds to its object. Only [`end`](Self::end) releases them: a process that
/// ends does not.
pub(crate) struct Loaded {
    library: ProfilerLibrary,
    /// From `ICorProfilerCallback2` up.
    references: ManuallyDrop<Vec<IUnknown>>,
    /// The profiler only wants notifications.
    pub(crate) is_notification_only: bool,
}

impl Visit<'_> {
    /// Loads the library and makes the profiler's object. Returns `None` if a step fails; what was
    /// loaded is then unloaded again.
    pub(crate) fn load(&self, shared: &Shared) -> Option<Loaded> {
        let library = self.load_library(shared)?;
        let created = self.create(shared, &library);
        let Some(second) = created else {
            // The CLR's holder of the library frees it.
            unload(shared, library);
            return None;
        };
        let mut references = vec![second];
        self.ask_for_newer(shared, &mut references);
        shared.with(|report| report.not_loaded(None));
        let references = ManuallyDrop::new(references);
        let mut loaded = Loaded { library, references, is_notification_only: false };
        loaded.is_notification_only = loaded.asks_for_notifications(shared);
        Some(loaded)
    }

    fn load_library(&self, shared: &Shared) -> Option<ProfilerLibrary> {
        shared.write(&Entry::Begins("LoadLibrary"));
        let library = match ProfilerLibrary::load(self.library) {
            Ok(library) => library,
            Err(why) => {
                unloadable(shared, &why);
                return None;
            }
        };
        if !library.call_main(MainReason::Attach) {
            unloadable(shared, "DllMain returned FALSE");
            return None;
        }
        shared.write(&Entry::Loaded { step: "LoadLibrary", result: HResult::OK });
        Some(library)
    }

    /// Makes the profiler's object, and returns its `ICorProfilerCallback2`.
    fn create(&self, shared: &Shared, library: &ProfilerLibrary) -> Option<IUnknown> {
        let Some(get) = library.get_class_object() else {
            unloadable(shared, "it does not export DllGetClassObject");
            return None;
        };
        let factory = step(shared, "DllGetClassObject", |object| {
            // SAFETY: pointers to two ids, and to room for a pointer.
            unsafe { get(&raw const self.class, &IClassFactory::IID, object) }
        })?;
        let created = step(shared, "CreateInstance", |object| {
            // SAFETY: `DllGetClassObject` was asked for this interface.
            let factory = unsafe { IClassFactory::from_raw(factory.as_raw()) };
            let Some(factory) = factory.map(ManuallyDrop::new) else { return HResult::UNEXPECTED };
            // SAFETY: a pointer to an id, and to room for a pointer.
            unsafe { factory.CreateInstance(null_mut(), &ICorProfilerCallback2::IID, object) }
        });
        release(shared, factory);
        let created = created?;
        // Some factories ignore the interface that they are asked for, so a CLR asks once more.
        let second = step(shared, "QueryInterface(ICorProfilerCallback2)", |object| {
            // SAFETY: as above.
            unsafe { created.query(&ICorProfilerCallback2::IID, object) }
        });
        release(shared, created);
        second
    }

    /// Asks for the newest callbacks down to `ICorProfilerCallback3`. For the first that the object has,
    /// a reference is counted for each older one, too.
    fn ask_for_newer(&self, shared: &Shared, references: &mut Vec<IUnknown>) {
        let Some(second) = references.first() else { return };
        let known = newest_callback(self.generation).saturating_sub(2);
        let mut found = None;
        for (number, (iid, name)) in CALLBACKS.iter().take(known).enumerate().rev() {
            let newest = step(shared, name, |object| {
                // SAFETY: a pointer to an id, and to room for a pointer.
                unsafe { second.query(iid, object) }
            });
            if let Some(newest) = newest {
                found = Some((number, newest));
                break;
            }
        }
        if let Some((number, newest)) = found {
            shared.write(&Entry::Begins("AddRef"));
            references.extend((0..number).map(|_| newest.clone()));
            references.push(newest);
            shared.write(&Entry::Loaded { step: "AddRef", result: HResult::OK });
        }
    }
}

impl Loaded {
    /// Returns pointers to the object, or to what forwards calls to it. They are valid for as long as this has its
    /// references.
    pub(crate) fn callbacks(&self, forwarding: Option<&Arc<Forwarding>>) -> Pointers {
        let at = |number: usize| {
            let Some(object) = self.references.get(number - 2) else { return null_mut() };
            match forwarding {
                // SAFETY: the object has this interface.
                Some(all) => unsafe { all.wrap(object.as_raw(), &ICorProfilerCallback2::IID) },
                None => object.as_raw(),
            }
        };
        Pointers { first: at(2), others: OTHERS.map(at) }
    }

    /// Finds the exports that the session's program calls.
    ///
    /// # Errors
    /// Returns a sentence that names an export which the library does not have.
    pub(crate) fn find_exports(&self, session: &Session) -> Result<(), String> {
        session.find_exports(&|name| self.library.export(name))
    }

    /// Asks a profiler with `ICorProfilerCallback11` whether it only wants notifications: after the interfaces, before
    /// `Initialize` (recorded on 8.0.34, 9.0.23, 10.0.15 and 11.0.0). A failure is a no (8.0.34, 11.0.0).
    fn asks_for_notifications(&self, shared: &Shared) -> bool {
        if self.references.len() < CALLBACKS.len() + 1 {
            return false;
        }
        let Some(newest) = self.references.last() else { return false };
        // SAFETY: the object has the interface, as it was asked for all; the reference is not given up.
        let newest = unsafe { ICorProfilerCallback11::from_raw(newest.as_raw()) };
        let Some(newest) = newest.map(ManuallyDrop::new) else { return false };
        let mut only: Bool = 0;
        shared.write(&Entry::Begins("LoadAsNotificationOnly"));
        // SAFETY: a pointer to a BOOL.
        let result = unsafe { newest.LoadAsNotificationOnly(&raw mut only) };
        shared.write(&Entry::Loaded { step: "LoadAsNotificationOnly", result });
        !result.is_failure() && only != 0
    }

    /// Releases the references, as the end of profiling does, and unloads the library if a CLR does:
    /// that of a profiler with `ICorProfilerCallback3`, and not when the process ends
    /// (`EEToProfInterfaceImpl::~EEToProfInterfaceImpl`).
    pub(crate) fn end(self, shared: &Shared, stays: bool) {
        let unloads = self.references.len() > 1 && !stays;
        let mut left = 0;
        for reference in ManuallyDrop::into_inner(self.references) {
            left = release(shared, reference);
        }
        shared.write(&Entry::Released(left));
        if unloads {
            unload(shared, self.library);
        }
    }
}

/// Makes a step that gives an object. One that succeeds without an object is a failure.
fn step(
    shared: &Shared,
    name: &'static str,
    act: impl FnOnce(*mut *mut c_void) -> HResult,
) -> Option<IUnknown> {
    shared.write(&Entry::Begins(name));
    let mut object = null_mut();
    let result = act(&raw mut object);
    // SAFETY: the profiler has set it to NULL or to an object, with a reference.
    let made = if result.is_failure() { None } else { unsafe { IUnknown::from_raw(object) } };
    let is_missing = made.is_none() && !result.is_failure();
    let result = if is_missing { HResult::NO_INTERFACE } else { result };
    shared.write(&Entry::Loaded { step: name, result });
    if made.is_none() {
        shared.with(|report| report.not_loaded(Some(format!("{name} returned {result}"))));
    }
    made
}

fn release(shared: &Shared, reference: IUnknown) -> u32 {
    shared.write(&Entry::Begins("Release"));
    let left = reference.release();
    shared.write(&Entry::Loaded { step: "Release", result: HResult::OK });
    left
}

/// Notes that the library cannot be loaded.
fn unloadable(shared: &Shared, why: &str) {
    shared.with(|report| report.not_loaded(Some(why.to_owned())));
    shared.write(&Entry::Unloadable(why));
}

fn unload(shared: &Shared, library: ProfilerLibrary) {
    shared.write(&Entry::Begins("FreeLibrary"));
    library.call_main(MainReason::Detach);
    // SAFETY: the runtime has released its references; that the profiler has no threads left in its
    // code is its own promise, as to a CLR.
    unsafe { free(library) };
    shared.write(&Entry::Loaded { step: "FreeLibrary", result: HResult::OK });
}

/// Unloads a library.
///
/// # Safety
/// Nothing of the library is called or accessed after this.
unsafe fn free(library: ProfilerLibrary) {
    #[cfg(scheduled)]
    if crate::scheduled::is_in_interleaving() {
        return crate::scheduled::unload(library.handle());
    }
    // SAFETY: the caller's promise.
    unsafe { library.unload() };
}
