//! Objects between a runtime and a profiler: they pass each call on, and an observer sees it.
//!
//! A forwarder takes the place of an object, and wraps the objects that pass through its calls: the runtime's in
//! `Initialize`, metadata, enumerators. `AddRef` and `Release` are passed on and not observed, nor are the steps in which a
//! profiler is loaded. Hooks for enter, leave and tailcall, and the mappers of FunctionIDs, are functions of the profiler that no
//! forwarder sees: the runtime calls them itself.

use crate::captured::{MOST_ARGUMENTS, Moment};
use crate::dynamic::{Callable, Word};
use crate::object::OwnUnknown;
use crate::{
    ArgumentSignature, FrameHandle, Guid, IClassFactory, ICorProfilerAssemblyReferenceProvider,
    ICorProfilerCallback11, ICorProfilerFunctionControl, ICorProfilerFunctionEnum,
    ICorProfilerInfo15, ICorProfilerMethodEnum, ICorProfilerModuleEnum, ICorProfilerObjectEnum,
    ICorProfilerThreadEnum, IMetaDataAssemblyEmit, IMetaDataAssemblyImport, IMetaDataEmit2,
    IMetaDataImport2, IMetaDataInfo, IMetaDataTables2, IMethodMalloc, IUnknown, IUnknownMethods,
    Interface, MethodSignature, OwnedObject, Queried, StackSnapshotCallback, own,
};
use clr_walker::profiling::{FunctionId, HResult};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

/// The side that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A method of the runtime.
    Runtime,
    /// A callback, or another method of the profiler.
    Profiler,
}

/// A call that is passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedCall<'c> {
    pub(crate) callee: Callee,
    pub(crate) method: MethodSignature,
    /// A word for each argument, as the caller has given it.
    pub(crate) words: &'c [u64],
}

/// An observer of calls. Its functions are called on the thread of the call, which may be in a signal handler.
pub trait CallObserver: Send + Sync {
    /// Notices the runtime's object before the profiler gets it.
    fn starts(&self, info: &IUnknown) {
        let _ = info;
    }

    /// Notices a moment of a call.
    fn notice(&self, moment: Moment);
}

/// Declares the families of interfaces: interfaces of one vtable, and the one that has all its methods.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident: $newest:ident, $callee:ident;)*) => {
        /// Interfaces that share a vtable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            fn of(iid: &Guid) -> Option<Self> {
                $(if $newest::extends(iid) && *iid != IUnknown::IID {
                    return Some(Self::$family);
                })*
                None
            }

            const fn callee(self) -> Callee {
                match self {
                    $(Self::$family => Callee::$callee,)*
                }
            }

            fn object(self, forwarder: Forwarder) -> OwnedObject<Forwarder> {
                match self {
                    $(Self::$family => own::<$newest, _>(forwarder, UNKNOWN),)*
                }
            }
        }
    };
}

families! {
    Info: ICorProfilerInfo15, Runtime;
    Callback: ICorProfilerCallback11, Profiler;
    Factory: IClassFactory, Profiler;
    Import: IMetaDataImport2, Runtime;
    AssemblyImport: IMetaDataAssemblyImport, Runtime;
    Emit: IMetaDataEmit2, Runtime;
    AssemblyEmit: IMetaDataAssemblyEmit, Runtime;
    Tables: IMetaDataTables2, Runtime;
    MetadataFile: IMetaDataInfo, Runtime;
    Objects: ICorProfilerObjectEnum, Runtime;
    Functions: ICorProfilerFunctionEnum, Runtime;
    Modules: ICorProfilerModuleEnum, Runtime;
    Methods: ICorProfilerMethodEnum, Runtime;
    Threads: ICorProfilerThreadEnum, Runtime;
    Malloc: IMethodMalloc, Runtime;
    FunctionControl: ICorProfilerFunctionControl, Runtime;
    References: ICorProfilerAssemblyReferenceProvider, Runtime;
}

/// The objects that are passed into callbacks: callback, index of the argument.
const PASSED: [(&str, usize, Family); 4] = [
    ("Initialize", 0, Family::Info),
    ("InitializeForAttach", 0, Family::Info),
    ("GetReJITParameters", 2, Family::FunctionControl),
    ("GetAssemblyReferences", 1, Family::References),
];

/// The objects that methods return without being asked for an interface.
const RETURNED: [(&str, Family); 8] = [
    ("EnumModuleFrozenObjects", Family::Objects),
    ("EnumerateNonGCObjects", Family::Objects),
    ("EnumJITedFunctions", Family::Functions),
    ("EnumJITedFunctions2", Family::Functions),
    ("EnumModules", Family::Modules),
    ("EnumNgenModuleMethodsInliningThisMethod", Family::Methods),
    ("EnumThreads", Family::Threads),
    ("GetILFunctionBodyAllocator", Family::Malloc),
];

/// All forwarders of a process, and their observer. Forwarders live as long as the process, because a profiler may use
/// them at any time.
pub struct Forwarding {
    observer: Arc<dyn CallObserver>,
    forwarders: Mutex<HashMap<(usize, Family), OwnedObject<Forwarder>>>,
}

impl fmt::Debug for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarding").finish_non_exhaustive()
    }
}

impl Forwarding {
    /// Makes a forwarding with this observer.
    pub fn new(observer: Arc<dyn CallObserver>) -> Arc<Self> {
        Arc::new(Self { observer, forwarders: Mutex::default() })
    }

    /// Returns the pointer to the forwarder of an object with the interface `iid`; the object's own pointer if calls of
    /// the interface are not observed. References are those of the object: none is counted here.
    ///
    /// # Safety
    /// The object is NULL or has this interface, and is called as the documentation of the interface demands.
    pub unsafe fn wrap(self: &Arc<Self>, object: *mut c_void, iid: &Guid) -> *mut c_void {
        Family::of(iid).map_or(object, |family| self.forwarder(object, family))
    }

    fn forwarder(self: &Arc<Self>, object: *mut c_void, family: Family) -> *mut c_void {
        let Some(inner) = NonNull::new(object) else { return null_mut() };
        let mut forwarders = self.forwarders.lock().unwrap_or_else(PoisonError::into_inner);
        let forwarder = forwarders.entry((object as usize, family)).or_insert_with(|| {
            let inner = Inner(inner);
            family.object(Forwarder { inner, family, forwarding: Arc::clone(self) })
        });
        forwarder.as_raw()
    }

    /// Shows the runtime's object to the observer.
    fn start(&self, info: *mut c_void) {
        // SAFETY: the object that the runtime passes to `Initialize`; its reference stays the runtime's.
        let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) });
        if let Some(info) = info.as_ref() {
            self.observer.starts(info);
        }
    }

    /// Returns the object of a forwarder of this process, or the pointer itself.
    fn unwrap(&self, pointer: u64) -> u64 {
        let forwarders = self.forwarders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |forwarder: &&OwnedObject<Forwarder>| forwarder.as_raw() as u64 == pointer;
        let found = forwarders.values().find(is_its);
        found.map_or(pointer, |forwarder| forwarder.value().inner.0.as_ptr() as u64)
    }
}

/// A pointer to the object that calls are passed on to.
#[derive(Clone, Copy, Debug)]
struct Inner(NonNull<c_void>);

// SAFETY: all objects behind these interfaces can be used by any thread: see `IUnknown`.
unsafe impl Send for Inner {}
// SAFETY: the same.
unsafe impl Sync for Inner {}

/// An object that passes each call on.
#[derive(Debug)]
pub struct Forwarder {
    inner: Inner,
    family: Family,
    forwarding: Arc<Forwarding>,
}

/// The methods of `IUnknown` are the object's.
const UNKNOWN: OwnUnknown<Forwarder> = OwnUnknown {
    query: Forwarder::query,
    // SAFETY: the caller has a reference, or says that it has.
    add_reference: |this| unsafe { this.inner::<IUnknown>().add_reference() },
    // SAFETY: the same; the caller gives it up.
    release: |this| unsafe { this.inner::<IUnknown>().release_reference() },
};

impl IUnknownMethods for Forwarder {}

impl Forwarder {
    /// Returns the object. Its references are the callers'.
    ///
    /// # Safety
    /// The object has the interface.
    unsafe fn inner<I: Interface>(&self) -> ManuallyDrop<I> {
        // SAFETY: the pointer is not NULL; the caller's promise.
        ManuallyDrop::new(unsafe { I::from_raw(self.inner.0.as_ptr()).unwrap_unchecked() })
    }

    /// Returns true for a step in which a profiler is loaded: it is no call of a running one.
    fn is_of_loading(&self, method: &MethodSignature) -> bool {
        match self.family {
            Family::Factory => true,
            Family::Callback => ["QueryInterface", "LoadAsNotificationOnly"].contains(&method.name),
            _ => false,
        }
    }

    /// Makes a call, which the observer notices.
    ///
    /// # Safety
    /// The words are as the documentation of the method demands.
    unsafe fn observe(
        &self,
        method: MethodSignature,
        words: &[u64],
        make: impl FnOnce() -> u64,
    ) -> u64 {
        if self.is_of_loading(&method) {
            return make();
        }
        let call = ForwardedCall { callee: self.family.callee(), method, words };
        let observer = &self.forwarding.observer;
        // SAFETY: the caller's promise.
        observer.notice(Moment::Begins(unsafe { call.inputs() }));
        let result = make();
        // SAFETY: the same, and the call has ended.
        observer.notice(Moment::Ends(unsafe { call.outputs(result) }, result));
        result
    }

    fn query(&self, iid: Option<&Guid>) -> Queried {
        // Which of the two pointers is NULL is not known, and a CLR does not survive the one or the other.
        let (Some(iid), Some(method)) = (iid, IUnknown::method(0)) else {
            return Err(HResult::INVALID_ARGUMENT);
        };
        let mut found = null_mut();
        let to: *mut *mut c_void = &raw mut found;
        let words = [std::ptr::from_ref(iid) as u64, to as u64];
        // SAFETY: the two pointers are to an id and to a local.
        let result = unsafe {
            self.observe(method, &words, || self.inner::<IUnknown>().query(iid, to).0.into())
        };
        let result = HResult(result as u32);
        if result.is_failure() {
            return Err(result);
        }
        if *iid == IUnknown::IID {
            return Ok(None);
        }
        // SAFETY: the object says that it has the interface.
        Ok(NonNull::new(unsafe { self.forwarding.wrap(found, iid) }))
    }

    /// Passes a call on.
    ///
    /// # Safety
    /// The object has the interface, and the words are as the documentation of the method demands.
    pub(crate) unsafe fn forward<I: Callable + Interface>(
        &self,
        slot: u32,
        words: &mut [u64],
    ) -> u64 {
        let Some(method) = I::method(slot) else { return 0 };
        // Of an interface that the object does not have, nobody has a pointer.
        // SAFETY: the caller's promise.
        let inner = unsafe { self.inner::<I>() };
        let given: Words = words.into();
        let walk = self.replace(&method, words);
        if let Some(walk) = &walk {
            walk.take_place(words);
        }
        let call = || {
            // SAFETY: the caller's promise; what was replaced is of the same kind.
            let result = unsafe { inner.call(slot, words) }.unwrap_or_default();
            if !HResult(result as u32).is_failure() {
                // SAFETY: the call has succeeded, so that it has written what it is to write.
                unsafe { self.wrap_returned(&method, given.all()) };
            }
            result
        };
        // SAFETY: the caller's promise.
        unsafe { self.observe(method, given.all(), call) }
    }

    /// Puts forwarders in the place of the runtime's objects, and objects in the place of forwarders. Returns the walk,
    /// if the call is one.
    fn replace(&self, method: &MethodSignature, words: &mut [u64]) -> Option<Walk<'_>> {
        match self.family {
            Family::Callback => {
                for (_, at, family) in PASSED.iter().filter(|(name, ..)| *name == method.name) {
                    if let Some(word) = words.get_mut(*at) {
                        if *family == Family::Info {
                            self.forwarding.start(*word as usize as _);
                        }
                        *word = self.forwarding.forwarder(*word as usize as _, *family) as u64;
                    }
                }
                None
            }
            Family::Emit | Family::AssemblyEmit => {
                for (argument, word) in method.arguments.iter().zip(words) {
                    if matches!(argument.declared, "*mut c_void" | "*const c_void") {
                        *word = self.forwarding.unwrap(*word);
                    }
                }
                None
            }
            Family::Info => Walk::new(&*self.forwarding.observer, method, words),
            _ => None,
        }
    }

    /// Puts forwarders in the place of the objects that a call has returned.
    ///
    /// # Safety
    /// The call has succeeded.
    unsafe fn wrap_returned(&self, method: &MethodSignature, words: &[u64]) {
        let is_object = |argument: &ArgumentSignature| argument.declared == "*mut *mut c_void";
        let Some(at) = method.arguments.iter().position(is_object) else { return };
        let asked = method.arguments.iter().position(|argument| argument.name == "riid");
        let family = match asked.and_then(|at| words.get(at)) {
            // SAFETY: the method has read the id there.
            Some(iid) => Family::of(unsafe { &*(*iid as usize as *const Guid) }),
            None if method.name == "Clone" => Some(self.family),
            None => {
                let named = RETURNED.iter().find(|(name, _)| *name == method.name);
                named.map(|(_, family)| *family)
            }
        };
        let Some((family, to)) = family.zip(words.get(at)) else { return };
        let to = *to as usize as *mut *mut c_void;
        if !to.is_null() {
            // SAFETY: the method has written a pointer there.
            unsafe { to.write(self.forwarding.forwarder(to.read(), family)) };
        }
    }
}

/// The words of a call, without an allocation.
struct Words {
    words: [u64; MOST_ARGUMENTS],
    len: usize,
}

impl Words {
    fn all(&self) -> &[u64] {
        self.words.get(..self.len).unwrap_or_default()
    }
}

impl From<&mut [u64]> for Words {
    fn from(given: &mut [u64]) -> Self {
        let mut words = [0; MOST_ARGUMENTS];
        words.iter_mut().zip(&*given).for_each(|(to, word)| *to = *word);
        Self { words, len: given.len().min(MOST_ARGUMENTS) }
    }
}

/// A call of `DoStackSnapshot`: the profiler's callback and client data, for the time of the call.
struct Walk<'w> {
    observer: &'w dyn CallObserver,
    callback: StackSnapshotCallback,
    client_data: *mut c_void,
}

impl<'w> Walk<'w> {
    /// Index of the callback among the arguments.
    const CALLBACK: usize = 1;
    /// Index of the client data.
    const CLIENT_DATA: usize = 3;

    fn new(
        observer: &'w dyn CallObserver,
        method: &MethodSignature,
        words: &[u64],
    ) -> Option<Self> {
        if method.name != "DoStackSnapshot" {
            return None;
        }
        let (callback, client_data) = (*words.get(Self::CALLBACK)?, *words.get(Self::CLIENT_DATA)?);
        // SAFETY: the word is 0 or the address of such a function: it was made of one.
        let callback: StackSnapshotCallback = unsafe { Word::from_word(callback) };
        callback.is_some().then_some(Self {
            observer,
            callback,
            client_data: client_data as usize as _,
        })
    }

    /// Takes the place of the profiler's callback.
    fn take_place(&self, words: &mut [u64]) {
        let reported: StackSnapshotCallback = Some(Self::report);
        if let Some(word) = words.get_mut(Self::CALLBACK) {
            *word = reported.word();
        }
        if let Some(word) = words.get_mut(Self::CLIENT_DATA) {
            *word = std::ptr::from_ref(self) as u64;
        }
    }

    /// Passes a frame on.
    unsafe extern "system" fn report(
        function: FunctionId,
        ip: u64,
        frame_info: FrameHandle,
        context_size: u32,
        context: *mut u8,
        client_data: *mut c_void,
    ) -> HResult {
        // SAFETY: the client data of the call that reports the frame: a walk, which lives until the call is over.
        let walk = unsafe { &*client_data.cast::<Walk<'_>>() };
        let Some(callback) = walk.callback else { return HResult::OK };
        // SAFETY: the profiler's function, with the runtime's arguments.
        let answer =
            unsafe { callback(function, ip, frame_info, context_size, context, walk.client_data) };
        walk.observer.notice(Moment::Frame(function, answer));
        answer
    }
}
