//! The object that callbacks are raised into.

use clr_com::{
    ICorProfilerCallback, ICorProfilerCallback2, ICorProfilerCallback3, ICorProfilerCallback4,
    ICorProfilerCallback8, ICorProfilerCallback9, ICorProfilerCallback10, IUnknown, Interface,
};
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

/// Returns the number of the newest `ICorProfilerCallback` that a runtime asks for: 9 in CoreCLR 3.1, 11 in
/// dotnet/runtime since it has that interface (both read in eetoprofinterfaceimpl.cpp). Of the others it is
/// assumed: .NET Framework 2 knows 2, and each callback came with an ICorProfilerInfo.
#[must_use]
pub const fn newest_callback(generation: Generation) -> usize {
    match generation.profiler_info() {
        0..=2 => 2,
        3..=11 => 9,
        12 => 10,
        _ => 11,
    }
}

/// Pointers to an object, with `ICorProfilerCallback` or 2, and 2, 3, 4, 8, 9 and 10; those that it does not have,
/// and those that the runtime does not ask for, are NULL.
#[derive(Clone, Copy, Debug)]
pub struct Pointers {
    /// `ICorProfilerCallback` or 2.
    pub first: *mut c_void,
    /// The others.
    pub others: [*mut c_void; 6],
}

/// The numbers of the interfaces in [`Pointers::others`].
pub const OTHERS: [usize; 6] = [2, 3, 4, 8, 9, 10];

/// The object that callbacks are raised into. Its pointers are not counted.
pub(crate) struct Target {
    pub(crate) first: ManuallyDrop<ICorProfilerCallback>,
    pub(crate) second: Option<ManuallyDrop<ICorProfilerCallback2>>,
    third: Option<ManuallyDrop<ICorProfilerCallback3>>,
    pub(crate) fourth: Option<ManuallyDrop<ICorProfilerCallback4>>,
    pub(crate) eighth: Option<ManuallyDrop<ICorProfilerCallback8>>,
    pub(crate) ninth: Option<ManuallyDrop<ICorProfilerCallback9>>,
    pub(crate) tenth: Option<ManuallyDrop<ICorProfilerCallback10>>,
    /// References for as long as this exists, if nothing else holds them.
    _held: Vec<IUnknown>,
}

impl Target {
    /// Makes the target of an object that its owner keeps.
    ///
    /// # Safety
    /// The pointers are NULL, or point to an object with these interfaces, which lives for as long as the
    /// target.
    pub(crate) unsafe fn new(pointers: Pointers) -> Option<Self> {
        let [second, third, fourth, eighth, ninth, tenth] = pointers.others;
        // SAFETY: the caller's promise. The references are not given up.
        unsafe {
            Some(Self {
                first: ManuallyDrop::new(ICorProfilerCallback::from_raw(pointers.first)?),
                second: ICorProfilerCallback2::from_raw(second).map(ManuallyDrop::new),
                third: ICorProfilerCallback3::from_raw(third).map(ManuallyDrop::new),
                fourth: ICorProfilerCallback4::from_raw(fourth).map(ManuallyDrop::new),
                eighth: ICorProfilerCallback8::from_raw(eighth).map(ManuallyDrop::new),
                ninth: ICorProfilerCallback9::from_raw(ninth).map(ManuallyDrop::new),
                tenth: ICorProfilerCallback10::from_raw(tenth).map(ManuallyDrop::new),
                _held: Vec::new(),
            })
        }
    }

    /// Makes the target of an object, which is asked for the interfaces that a runtime knows.
    pub(crate) fn of_object(object: &IUnknown, generation: Generation) -> Result<Self, HResult> {
        let newest = newest_callback(generation);
        let mut held = vec![IUnknown::from(object.cast::<ICorProfilerCallback>()?)];
        let first = held.iter().map(IUnknown::as_raw).next().unwrap_or_else(null_mut);
        let all = [
            ICorProfilerCallback2::IID,
            ICorProfilerCallback3::IID,
            ICorProfilerCallback4::IID,
            ICorProfilerCallback8::IID,
            ICorProfilerCallback9::IID,
            ICorProfilerCallback10::IID,
        ];
        let mut others = [null_mut(); 6];
        for ((iid, number), pointer) in all.iter().zip(OTHERS).zip(&mut others) {
            let mut found = null_mut();
            // SAFETY: a pointer to an id, and to room for a pointer.
            if number > newest || unsafe { object.query(iid, &raw mut found) }.is_failure() {
                continue;
            }
            // SAFETY: the object has set it to NULL or to the interface, with a reference.
            if let Some(interface) = unsafe { IUnknown::from_raw(found) } {
                *pointer = interface.as_raw();
                held.push(interface);
            }
        }
        // SAFETY: pointers to these interfaces, whose references are held below.
        let target = unsafe { Self::new(Pointers { first, others }) };
        target.map(|target| Self { _held: held, ..target }).ok_or(HResult::NO_INTERFACE)
    }

    /// Returns true if the object has `ICorProfilerCallback3`.
    pub(crate) const fn has_third(&self) -> bool {
        self.third.is_some()
    }

    /// Calls `Initialize` with the runtime's object.
    ///
    /// # Safety
    /// The pointer is to an `ICorProfilerInfo` that outlives the target.
    pub(crate) unsafe fn initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the profiler's object, which there is a reference to; the caller's promise.
        unsafe { self.first.Initialize(info) }
    }

    /// Calls `InitializeForAttach` with the runtime's object and the client's data.
    ///
    /// # Safety
    /// As of [`initialize`](Self::initialize).
    pub(crate) unsafe fn initialize_for_attach(&self, info: *mut c_void, data: &[u8]) -> HResult {
        let Some(to) = &self.third else { return HResult::CALLBACK3_REQUIRED };
        let at = if data.is_empty() { null_mut() } else { data.as_ptr().cast_mut().cast() };
        // SAFETY: the profiler's object, which there is a reference to; the caller's promise; data of this size.
        unsafe { to.InitializeForAttach(info, at, data.len() as u32) }
    }

    /// Calls `ProfilerAttachComplete`.
    pub(crate) fn attach_complete(&self) -> HResult {
        // SAFETY: the profiler's object, which there is a reference to.
        self.third.as_ref().map_or(HResult::OK, |to| unsafe { to.ProfilerAttachComplete() })
    }

    /// Calls `ProfilerDetachSucceeded`.
    pub(crate) fn detach_succeeded(&self) -> HResult {
        // SAFETY: the profiler's object, which there is a reference to.
        self.third.as_ref().map_or(HResult::OK, |to| unsafe { to.ProfilerDetachSucceeded() })
    }

    /// Calls `Shutdown`.
    pub(crate) fn shutdown(&self) -> HResult {
        // SAFETY: the same.
        unsafe { self.first.Shutdown() }
    }
}
