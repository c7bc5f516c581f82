//! A profiler that notes each callback with its arguments.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use clrsim::{Report, Session};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

/// A callback as it was raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) name: &'static str,
    /// The arguments of the call. A pointer is replaced by the values that it points to.
    pub(crate) words: Vec<u64>,
    /// The name of the method that it is about.
    pub(crate) method: String,
}

thread_local! {
    static RAISED: RefCell<Vec<Raised>> = const { RefCell::new(Vec::new()) };
    static RUN: Cell<Run> = const { Cell::new(Run { events: 0, initialize: None }) };
    static INFO: RefCell<Option<ManuallyDrop<ICorProfilerInfo>>> = const { RefCell::new(None) };
}

trait Word {
    fn word(self) -> u64;
}

macro_rules! words {
    ($($type:ident)*) => { $(impl Word for $type { fn word(self) -> u64 { self.0.word() } })* };
}

words! {
    AppDomainId AssemblyId ModuleId ClassId ObjectId GcHandleId FunctionId ThreadId ReJitId HResult
}

impl Word for u32 {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for u64 {
    fn word(self) -> u64 {
        self
    }
}

impl Word for i32 {
    fn word(self) -> u64 {
        u64::try_from(self).unwrap()
    }
}

fn note(name: &'static str, words: Vec<u64>, function: Option<FunctionId>) -> HResult {
    let method = function.map(name_of).unwrap_or_default();
    RAISED.with_borrow_mut(|all| all.push(Raised { name, words, method }));
    HResult::OK
}

/// Returns the name of a method, as the runtime says it: without its type.
fn name_of(function: FunctionId) -> String {
    if function.0 == 0 {
        return "none".to_owned();
    }
    INFO.with_borrow(|info| {
        let info = info.as_ref().unwrap();
        let (mut import, mut token) = (null_mut(), 0);
        // SAFETY: pointers to an id, and to room.
        let found = unsafe {
            let iid = &IMetaDataImport::IID;
            info.GetTokenAndMetaDataFromFunction(function, iid, &raw mut import, &raw mut token)
        };
        assert_eq!(found, HResult::OK, "{function:?}");
        // A nil token.
        if token.trailing_zeros() >= 24 {
            return "without metadata".to_owned();
        }
        // SAFETY: the runtime has set it to its object.
        let import = unsafe { IMetaDataImport::from_raw(import) }.unwrap();
        let (mut name, mut len) = ([0; 64], 0);
        // SAFETY: the room is as announced; NULL is allowed for what is not wanted.
        let found = unsafe {
            import.GetMethodProps(
                token,
                null_mut(),
                name.as_mut_ptr(),
                64,
                &raw mut len,
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
            )
        };
        assert_eq!(found, HResult::OK);
        String::from_utf16_lossy(&name[..len as usize - 1])
    })
}

/// Returns the values behind a pointer.
unsafe fn values<T: Copy + Word>(from: *const T, len: u32) -> Vec<u64> {
    // SAFETY: the runtime passes this number of values.
    unsafe { std::slice::from_raw_parts(from, len as usize) }.iter().map(|one| one.word()).collect()
}

struct Profiler;

impl IUnknownMethods for Profiler {
    fn unimplemented(&self, method: &'static str) {
        note(method, Vec::new(), None);
    }
}

macro_rules! notes {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe fn $name(&self, $($argument: $type),*) -> HResult {
            note(stringify!($name), vec![$($argument.word()),*], None)
        })*
    };
}

macro_rules! notes_of_methods {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe fn $name(&self, function: FunctionId $(, $argument: $type)*) -> HResult {
            note(stringify!($name), vec![function.word() $(, $argument.word())*], Some(function))
        })*
    };
}

impl ICorProfilerCallbackMethods for Profiler {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's object; its references are not counted.
        let info = ManuallyDrop::new(unsafe { ICorProfilerInfo::from_raw(info) }.unwrap());
        let run = RUN.get();
        // SAFETY: no pointers.
        let set = unsafe { info.SetEventMask(run.events) };
        assert_eq!(set, HResult::OK);
        if let Some(act) = run.initialize {
            act(info.as_raw());
        }
        INFO.set(Some(info));
        note("Initialize", Vec::new(), None)
    }

    unsafe fn ObjectReferences(
        &self,
        object: ObjectId,
        _: ClassId,
        references: u32,
        _: *const ObjectId,
    ) -> HResult {
        note("ObjectReferences", vec![object.0, references.into()], None)
    }

    unsafe fn ObjectsAllocatedByClass(
        &self,
        len: u32,
        _: *const ClassId,
        objects: *const u32,
    ) -> HResult {
        // SAFETY: the runtime's array.
        note("ObjectsAllocatedByClass", unsafe { values(objects, len) }, None)
    }

    unsafe fn MovedReferences(
        &self,
        len: u32,
        old: *const ObjectId,
        new: *const ObjectId,
        sizes: *const u32,
    ) -> HResult {
        // SAFETY: the runtime's arrays.
        let words = unsafe { [values(old, len), values(new, len), values(sizes, len)].concat() };
        note("MovedReferences", words, None)
    }

    unsafe fn RootReferences(&self, len: u32, objects: *const ObjectId) -> HResult {
        // SAFETY: the runtime's array.
        note("RootReferences", unsafe { values(objects, len) }, None)
    }

    unsafe fn JITCachedFunctionSearchStarted(
        &self,
        function: FunctionId,
        uses: *mut Bool,
    ) -> HResult {
        // SAFETY: the runtime's BOOL.
        let words = vec![function.0, unsafe { *uses }.word()];
        note("JITCachedFunctionSearchStarted", words, Some(function))
    }

    notes! {
        Shutdown();
        AppDomainCreationStarted(app_domain: AppDomainId);
        AppDomainCreationFinished(app_domain: AppDomainId, status: HResult);
        AssemblyLoadStarted(assembly: AssemblyId);
        AssemblyLoadFinished(assembly: AssemblyId, status: HResult);
        AssemblyUnloadStarted(assembly: AssemblyId);
        AssemblyUnloadFinished(assembly: AssemblyId, status: HResult);
        ModuleLoadStarted(module: ModuleId);
        ModuleLoadFinished(module: ModuleId, status: HResult);
        ModuleUnloadStarted(module: ModuleId);
        ModuleUnloadFinished(module: ModuleId, status: HResult);
        ModuleAttachedToAssembly(module: ModuleId, assembly: AssemblyId);
        ClassLoadStarted(class: ClassId);
        ClassLoadFinished(class: ClassId, status: HResult);
        ClassUnloadStarted(class: ClassId);
        ClassUnloadFinished(class: ClassId, status: HResult);
        ThreadCreated(thread: ThreadId);
        ThreadDestroyed(thread: ThreadId);
        ThreadAssignedToOSThread(thread: ThreadId, os: u32);
        RuntimeSuspendStarted(reason: u32);
        RuntimeThreadSuspended(thread: ThreadId);
        RuntimeThreadResumed(thread: ThreadId);
        ObjectAllocated(object: ObjectId, class: ClassId);
        ExceptionThrown(object: ObjectId);
    }

    notes_of_methods! {
        FunctionUnloadStarted();
        JITCompilationStarted(is_safe: Bool);
        JITCompilationFinished(status: HResult, is_safe: Bool);
        JITCachedFunctionSearchFinished(result: u32);
        UnmanagedToManagedTransition(reason: u32);
        ManagedToUnmanagedTransition(reason: u32);
        ExceptionSearchFunctionEnter();
        ExceptionSearchFilterEnter();
        ExceptionSearchCatcherFound();
        ExceptionUnwindFunctionEnter();
        ExceptionUnwindFinallyEnter();
        ExceptionCatcherEnter(object: ObjectId);
    }
}

impl ICorProfilerCallback2Methods for Profiler {
    unsafe fn ThreadNameChanged(&self, thread: ThreadId, len: u32, name: *const u16) -> HResult {
        // SAFETY: the runtime's name.
        let name = unsafe { std::slice::from_raw_parts(name, len as usize) };
        assert_eq!(String::from_utf16_lossy(name), "worker");
        note("ThreadNameChanged", vec![thread.0], None)
    }

    unsafe fn GarbageCollectionStarted(
        &self,
        len: i32,
        collected: *const Bool,
        reason: u32,
    ) -> HResult {
        // SAFETY: the runtime's array.
        let mut words = unsafe { values(collected, u32::try_from(len).unwrap()) };
        words.push(reason.word());
        note("GarbageCollectionStarted", words, None)
    }

    unsafe fn FinalizeableObjectQueued(&self, flags: u32, object: ObjectId) -> HResult {
        note("FinalizeableObjectQueued", vec![flags.into(), object.0], None)
    }

    unsafe fn SurvivingReferences(
        &self,
        len: u32,
        starts: *const ObjectId,
        sizes: *const u32,
    ) -> HResult {
        // SAFETY: the runtime's arrays.
        let words = unsafe { [values(starts, len), values(sizes, len)].concat() };
        note("SurvivingReferences", words, None)
    }

    unsafe fn RootReferences2(
        &self,
        len: u32,
        objects: *const ObjectId,
        kinds: *const u32,
        flags: *const u32,
        ids: *const u64,
    ) -> HResult {
        // SAFETY: the runtime's arrays.
        let words = unsafe {
            [values(objects, len), values(kinds, len), values(flags, len), values(ids, len)]
        };
        note("RootReferences2", words.concat(), None)
    }

    notes! {
        HandleCreated(handle: GcHandleId, object: ObjectId);
        HandleDestroyed(handle: GcHandleId);
    }
}

impl ICorProfilerCallback3Methods for Profiler {}
impl ICorProfilerCallback4Methods for Profiler {
    unsafe fn MovedReferences2(
        &self,
        len: u32,
        old: *const ObjectId,
        new: *const ObjectId,
        sizes: *const u64,
    ) -> HResult {
        // SAFETY: the runtime's arrays.
        let words = unsafe { [values(old, len), values(new, len), values(sizes, len)].concat() };
        note("MovedReferences2", words, None)
    }

    unsafe fn SurvivingReferences2(
        &self,
        len: u32,
        starts: *const ObjectId,
        sizes: *const u64,
    ) -> HResult {
        // SAFETY: the runtime's arrays.
        let words = unsafe { [values(starts, len), values(sizes, len)].concat() };
        note("SurvivingReferences2", words, None)
    }
}
impl ICorProfilerCallback5Methods for Profiler {}
impl ICorProfilerCallback6Methods for Profiler {}
impl ICorProfilerCallback7Methods for Profiler {}
impl ICorProfilerCallback8Methods for Profiler {
    unsafe fn DynamicMethodJITCompilationStarted(
        &self,
        function: FunctionId,
        is_safe: Bool,
        code: *const u8,
        len: u32,
    ) -> HResult {
        // SAFETY: the runtime's array.
        let code = unsafe { std::slice::from_raw_parts(code, len as usize) };
        let mut words = vec![function.0, is_safe.word()];
        words.extend(code.iter().map(|byte| u64::from(*byte)));
        note("DynamicMethodJITCompilationStarted", words, Some(function))
    }

    notes_of_methods! {
        DynamicMethodJITCompilationFinished(status: HResult, is_safe: Bool);
    }
}
impl ICorProfilerCallback9Methods for Profiler {
    notes_of_methods! {
        DynamicMethodUnloaded();
    }
}
impl ICorProfilerCallback10Methods for Profiler {}
impl ICorProfilerCallback11Methods for Profiler {}

/// A way to run a program with the profiler.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    /// The event mask.
    pub(crate) events: u32,
    /// Called in `Initialize`, with the runtime's object.
    pub(crate) initialize: Option<fn(*mut c_void)>,
}

impl Run {
    /// Opens a text and runs it. Returns the callbacks that were raised, and the session's report.
    pub(crate) fn with(
        self,
        text: &str,
        generation: Generation,
        run: impl FnOnce(&Session),
    ) -> (Vec<Raised>, Report) {
        RAISED.take();
        RUN.set(self);
        let session =
            Session::open(text, generation).unwrap_or_else(|error| panic!("{text}: {error}"));
        let profiler: ICorProfilerCallback11 = create(Profiler);
        // SAFETY: a profiler's object.
        assert_eq!(unsafe { session.initialize(profiler.as_raw()) }, HResult::OK);
        run(&session);
        let report = session.report();
        INFO.take();
        (RAISED.take(), report)
    }
}

/// Runs a text's program for an event mask.
pub(crate) fn run(text: &str, generation: Generation, events: u32) -> (Vec<Raised>, Report) {
    let run = Run { events, ..Run::default() };
    run.with(text, generation, |session| session.run().unwrap())
}
