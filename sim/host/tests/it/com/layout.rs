//! The binary interface: slots, ids, and calls that go through a vtable by number.
#![allow(non_snake_case)]

use clr_com::*;
use clr_walker::profiling::{
    CallError, CodeRange, FunctionId, HResult, ProfilerInfo, SnapshotFlags, SnapshotRequest,
    ThreadId,
};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the number of slots of an interface's vtable, and its id.
fn shape<I: Interface>() -> (usize, String) {
    (size_of::<I::Vtable>() / size_of::<usize>(), I::IID.to_string())
}

/// Source: the interfaces' pages in the .NET documentation, and corprof.idl and cor.h of
/// dotnet/runtime; compared with another project's translation of them (D language).
#[test]
fn interfaces_have_the_published_ids_and_numbers_of_slots() {
    let published = [
        (shape::<IUnknown>(), 3, "00000000-0000-0000-c000-000000000046"),
        (shape::<IClassFactory>(), 5, "00000001-0000-0000-c000-000000000046"),
        (shape::<ICorProfilerCallback>(), 72, "176fbed1-a55c-4796-98ca-a9da0ef883e7"),
        (shape::<ICorProfilerCallback2>(), 80, "8a8cc829-ccf2-49fe-bbae-0f022228071a"),
        (shape::<ICorProfilerCallback3>(), 83, "4fd2ed52-7731-4b8d-9469-03d2cc3086c5"),
        (shape::<ICorProfilerCallback4>(), 89, "7b63b2e3-107d-4d48-b2f6-f61e229470d2"),
        (shape::<ICorProfilerCallback5>(), 90, "8dfba405-8c9f-45f8-bffa-83b14cef78b5"),
        (shape::<ICorProfilerCallback6>(), 91, "fc13df4b-4448-4f4f-950c-ba8d19d00c36"),
        (shape::<ICorProfilerCallback7>(), 92, "f76a2dba-1d52-4539-866c-2aa518f9efc3"),
        (shape::<ICorProfilerCallback8>(), 94, "5bed9b15-c079-4d47-bfe2-215a140c07e0"),
        (shape::<ICorProfilerCallback9>(), 95, "27583ec3-c8f5-482f-8052-194b8ce4705a"),
        (shape::<ICorProfilerCallback10>(), 97, "cec5b60e-c69c-495f-87f6-84d28ee16ffb"),
        (shape::<ICorProfilerCallback11>(), 98, "42350846-aaed-47f7-b128-fd0c98881cde"),
        (shape::<ICorProfilerInfo>(), 36, "28b5557d-3f3f-48b4-90b2-5f9eea2f6c48"),
        (shape::<ICorProfilerInfo2>(), 57, "cc0935cd-a518-487d-b0bb-a93214e65478"),
        (shape::<ICorProfilerInfo3>(), 71, "b555ed4f-452a-4e54-8b39-b5360bad32a0"),
        (shape::<ICorProfilerInfo4>(), 81, "0d8fdcaa-6257-47bf-b1bf-94dac88466ee"),
        (shape::<ICorProfilerInfo5>(), 83, "07602928-ce38-4b83-81e7-74adaf781214"),
        (shape::<ICorProfilerInfo6>(), 84, "f30a070d-bffb-46a7-b1d8-8781ef7b698a"),
        (shape::<ICorProfilerInfo7>(), 87, "9aeecc0d-63e0-4187-8c00-e312f503f663"),
        (shape::<ICorProfilerInfo8>(), 90, "c5ac80a6-782e-4716-8044-39598c60cfbf"),
        (shape::<ICorProfilerInfo9>(), 93, "008170db-f8cc-4796-9a51-dc8aa0b47012"),
        (shape::<ICorProfilerInfo10>(), 99, "2f1b5152-c869-40c9-aa5f-3abe026bd720"),
        (shape::<ICorProfilerInfo11>(), 101, "06398876-8987-4154-b621-40a00d6e4d04"),
        (shape::<ICorProfilerInfo12>(), 108, "27b24ccd-1cb1-47c5-96ee-98190dc30959"),
        (shape::<ICorProfilerInfo13>(), 111, "6e6c7ee2-0701-4ec2-9d29-2e8733b66934"),
        (shape::<ICorProfilerInfo14>(), 114, "f460e352-d76d-4fe9-835f-f6af9d6e862d"),
        (shape::<ICorProfilerInfo15>(), 115, "b446462d-bd22-41dd-872d-dc714c49eb56"),
        (shape::<ICorProfilerObjectEnum>(), 8, "2c6269bd-2d13-4321-ae12-6686365fd6af"),
        (shape::<ICorProfilerFunctionEnum>(), 8, "ff71301a-b994-429d-a10b-b345a65280ef"),
        (shape::<ICorProfilerModuleEnum>(), 8, "b0266d75-2081-4493-af7f-028ba34db891"),
        (shape::<ICorProfilerMethodEnum>(), 8, "fccee788-0088-454b-a811-c99f298d1942"),
        (shape::<ICorProfilerThreadEnum>(), 8, "571194f7-25ed-419f-aa8b-7016b3159701"),
        (shape::<IMethodMalloc>(), 4, "a0efb28b-6ee2-4d7b-b983-a75ef7beedb8"),
        (shape::<ICorProfilerFunctionControl>(), 6, "f0963021-e1ea-4732-8581-e01b0bd3c0c6"),
        (
            shape::<ICorProfilerAssemblyReferenceProvider>(),
            4,
            "66a78c24-2eef-4f65-b45f-dd1d8038bf3c",
        ),
        (shape::<IMetaDataImport>(), 65, "7dac8207-d3ae-4c75-9b67-92801a497d44"),
        (shape::<IMetaDataImport2>(), 73, "fce5efa0-8bba-4f8e-a036-8f2022b08466"),
        (shape::<IMetaDataAssemblyImport>(), 17, "ee62470b-e94b-424e-9b7c-2f00c9249f93"),
        (shape::<IMetaDataEmit>(), 52, "ba3fee4c-ecb9-4e41-83b7-183fa41cd859"),
        (shape::<IMetaDataEmit2>(), 60, "f5dd9950-f693-42e6-830e-7b833e8146a9"),
        (shape::<IMetaDataAssemblyEmit>(), 13, "211ef15b-5317-4438-b196-dec87b887693"),
        (shape::<IMetaDataTables>(), 22, "d8f579ab-402d-4b8e-82d9-5d63b1065c68"),
        (shape::<IMetaDataTables2>(), 24, "badb5f70-58da-43a9-a1c6-d74819f19b15"),
        (shape::<IMetaDataInfo>(), 4, "7998ea64-7f95-48b8-86fc-17caf48bf5cb"),
        (shape::<IMetaDataDispenser>(), 6, "809c652e-7396-11d2-9771-00a0c9b4d50c"),
        (shape::<IMetaDataDispenserEx>(), 12, "31bcfce2-dafb-11d2-9f81-00c04f79a0a3"),
    ];
    for ((slots, iid), published_slots, published_iid) in published {
        assert_eq!((slots, iid.as_str()), (published_slots, published_iid));
    }
}

/// A runtime that records which method was called last.
#[derive(Default)]
struct Runtime {
    called: Arc<AtomicU32>,
}

impl Runtime {
    fn called(&self, slot: u32) -> HResult {
        self.called.store(slot, Ordering::Relaxed);
        HResult::OK
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.called.store(u32::MAX, Ordering::Relaxed);
    }
}

impl IUnknownMethods for Runtime {}

impl ICorProfilerInfoMethods for Runtime {
    unsafe fn SetEventMask(&self, events: u32) -> HResult {
        assert_eq!(events, 0x1000_0000);
        self.called(16)
    }
}

impl ICorProfilerInfo2Methods for Runtime {
    unsafe fn DoStackSnapshot(
        &self,
        thread: ThreadId,
        callback: StackSnapshotCallback,
        _flags: u32,
        client_data: *mut c_void,
        _context: *const u8,
        context_size: u32,
    ) -> HResult {
        assert_eq!(context_size, 1232);
        if let Some(callback) = callback {
            let mut context = [0xAB; 16];
            let context = context.as_mut_ptr();
            for function in [FunctionId(thread.0), FunctionId(0)] {
                // SAFETY: the arguments of a StackSnapshotCallback.
                let result = unsafe { callback(function, 0x1234, 7, 16, context, client_data) };
                if result != HResult::OK {
                    return HResult::ABORTED;
                }
            }
        }
        self.called(36)
    }

    unsafe fn GetCodeInfo2(
        &self,
        _function: FunctionId,
        capacity: u32,
        len: *mut u32,
        ranges: *mut CodeRange,
    ) -> HResult {
        // SAFETY: the caller's pointers.
        unsafe {
            len.write(2);
            if capacity > 0 {
                ranges.write(CodeRange { start: 0x5000, size: 0x20 });
            }
        }
        self.called(42)
    }
}

impl ICorProfilerInfo3Methods for Runtime {}

impl ICorProfilerInfo4Methods for Runtime {
    unsafe fn EnumThreads(&self, enumerator: *mut *mut c_void) -> HResult {
        let threads: ICorProfilerThreadEnum = create(Threads(AtomicU32::new(0)));
        // SAFETY: the caller's pointer.
        unsafe { enumerator.write(IUnknown::from(threads).into_raw()) };
        self.called(71)
    }
}

impl ICorProfilerInfo5Methods for Runtime {
    unsafe fn SetEventMask2(&self, low: u32, high: u32) -> HResult {
        assert_eq!((low, high), (0x20, 2));
        self.called(82)
    }
}

impl ICorProfilerInfo6Methods for Runtime {}
impl ICorProfilerInfo7Methods for Runtime {}
impl ICorProfilerInfo8Methods for Runtime {}
impl ICorProfilerInfo9Methods for Runtime {}

impl ICorProfilerInfo10Methods for Runtime {
    unsafe fn SuspendRuntime(&self) -> HResult {
        self.called(97)
    }
}

/// Three threads.
struct Threads(AtomicU32);

impl IUnknownMethods for Threads {}

impl ICorProfilerThreadEnumMethods for Threads {
    unsafe fn Next(&self, capacity: u32, threads: *mut ThreadId, fetched: *mut u32) -> HResult {
        assert_eq!(capacity, 1);
        let next = self.0.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's pointers.
        unsafe {
            fetched.write((next < 3).into());
            threads.write(ThreadId(u64::from(next) + 70));
        }
        if next < 3 { HResult::OK } else { HResult::FALSE }
    }
}

fn runtime() -> (ICorProfilerInfo10, Arc<AtomicU32>) {
    let called = Arc::default();
    (create(Runtime { called: Arc::clone(&called) }), called)
}

/// Calls slot `N` of an object's vtable, as a C++ profiler would.
macro_rules! call_slot {
    ($object:expr, $slot:literal, $($argument:expr => $type:ty),*) => {{
        type Slot = unsafe extern "system" fn(*mut c_void $(, $type)*) -> u32;
        let this = $object.as_raw();
        // SAFETY: the interface has this slot, with these arguments.
        unsafe {
            let slot = *(*this.cast::<*const Slot>()).add($slot);
            slot(this $(, $argument)*)
        }
    }};
}

#[test]
fn methods_are_where_profilers_call_them() {
    let (info, called) = runtime();
    let called = || called.load(Ordering::Relaxed);
    assert_eq!(call_slot!(info, 16, 0x1000_0000 => u32), 0);
    assert_eq!(called(), 16);
    let null = std::ptr::null_mut::<c_void>();
    let result = call_slot!(
        info, 36, 5 => usize, null => *mut c_void, 1 => u32, null => *mut c_void,
        null => *mut c_void, 1232 => u32
    );
    assert_eq!((result, called()), (0, 36));
    assert_eq!(call_slot!(info, 82, 0x20 => u32, 2 => u32), 0);
    assert_eq!(called(), 82);
    assert_eq!(call_slot!(info, 97,), 0);
    assert_eq!(called(), 97);
    // GetFunctionInfo2, not implemented.
    let pointers = call_slot!(
        info, 38, 1 => usize, 0 => usize, null => *mut c_void, null => *mut c_void,
        null => *mut c_void, 0 => u32, null => *mut c_void, null => *mut c_void
    );
    assert_eq!((HResult(pointers), called()), (HResult::NOT_IMPLEMENTED, 97));
}

/// A module's metadata with one method.
struct Metadata;

impl IUnknownMethods for Metadata {}

impl IMetaDataImportMethods for Metadata {
    unsafe fn GetMethodProps(
        &self,
        token: Token,
        class: *mut Token,
        _name: *mut u16,
        name_capacity: u32,
        _name_len: *mut u32,
        _attr: *mut u32,
        _signature: *mut *const u8,
        _signature_size: *mut u32,
        _code_rva: *mut u32,
        _impl_flags: *mut u32,
    ) -> HResult {
        assert_eq!((token, name_capacity), (0x0600_0001, 256));
        // SAFETY: the caller's pointer.
        unsafe { class.write(0x0200_0002) };
        HResult::OK
    }

    unsafe fn IsValidToken(&self, token: Token) -> Bool {
        (token == 5).into()
    }
}

impl IMetaDataImport2Methods for Metadata {
    unsafe fn GetVersionString(
        &self,
        _version: *mut u16,
        capacity: u32,
        _len: *mut u32,
    ) -> HResult {
        assert_eq!(capacity, 9);
        HResult::FALSE
    }
}

#[test]
fn metadata_is_read_where_profilers_read_it() {
    let import: IMetaDataImport2 = create(Metadata);
    let mut class = 0;
    let null = std::ptr::null_mut::<c_void>();
    let result = call_slot!(
        import, 30, 0x0600_0001 => u32, (&raw mut class) => *mut u32, null => *mut c_void,
        256 => u32, null => *mut c_void, null => *mut c_void, null => *mut c_void,
        null => *mut c_void, null => *mut c_void, null => *mut c_void
    );
    assert_eq!((result, class), (0, 0x0200_0002));
    assert_eq!([4, 5].map(|token| call_slot!(import, 61, token => u32)), [0, 1]);
    assert_eq!(call_slot!(import, 71, null => *mut c_void, 9 => u32, null => *mut c_void), 1);
}

#[test]
fn an_object_answers_for_its_own_interfaces_alone_and_ends_with_its_last_reference() {
    let (info, called) = runtime();
    let base: ICorProfilerInfo2 = info.cast().unwrap();
    assert_eq!(base.as_raw(), info.as_raw(), "one object, one vtable");
    assert_eq!(info.cast::<ICorProfilerInfo11>().unwrap_err(), HResult::NO_INTERFACE);
    assert_eq!(info.cast::<ICorProfilerCallback>().unwrap_err(), HResult::NO_INTERFACE);
    let unknown = IUnknown::from(info.clone());
    drop((info, base));
    assert_eq!(called.load(Ordering::Relaxed), 0, "the object is still there");
    drop(unknown);
    assert_eq!(called.load(Ordering::Relaxed), u32::MAX);
}

#[test]
fn a_class_factory_makes_the_objects_that_it_is_asked_for() {
    let mut found = std::ptr::null_mut();
    let make = || runtime().0;
    // SAFETY: pointers to locals.
    let got = unsafe { ClassFactory::get(make, &IClassFactory::IID, &raw mut found) };
    assert_eq!(got, HResult::OK);
    // SAFETY: the factory's only reference.
    let factory = unsafe { IClassFactory::from_raw(found) }.unwrap();
    let create = |outer: *mut c_void, iid: &Guid| {
        let mut object = std::ptr::null_mut();
        // SAFETY: pointers to locals; the factory does not look at `outer`.
        let result = unsafe { factory.CreateInstance(outer, iid, &raw mut object) };
        // SAFETY: NULL, or the reference that the factory has given.
        (result, unsafe { IUnknown::from_raw(object) }.is_some())
    };
    let null = std::ptr::null_mut();
    assert_eq!(create(null, &ICorProfilerInfo4::IID), (HResult::OK, true));
    assert_eq!(create(null, &IMetaDataImport::IID), (HResult::NO_INTERFACE, false));
    assert_eq!(create(factory.as_raw(), &IUnknown::IID), (HResult::NO_AGGREGATION, false));
    // SAFETY: pointers to locals.
    let got = unsafe { ClassFactory::get(make, &ICorProfilerInfo::IID, &raw mut found) };
    assert_eq!((got, found.is_null()), (HResult::NO_INTERFACE, true));
}

#[test]
fn the_walkers_calls_reach_the_runtime() {
    let (info, called) = runtime();
    let info = RuntimeInfo::new(&info).unwrap();
    let mut frames = Vec::new();
    let mut callback = |frame: &mut clr_walker::profiling::SnapshotFrame<'_>| {
        frames.push((frame.function, frame.ip, frame.frame_info.handle(), frame.context.len()));
        assert_eq!(frame.client_data, 99);
        HResult::OK
    };
    let (thread, flags) = (ThreadId(5), SnapshotFlags::REGISTER_CONTEXT);
    let request = SnapshotRequest { context_size: 1232, ..SnapshotRequest::of(thread, flags) };
    let called_back = SnapshotRequest { client_data: 99, ..request };
    info.do_stack_snapshot(&called_back, Some(&mut callback)).unwrap();
    assert_eq!(called.load(Ordering::Relaxed), 36);
    assert_eq!(frames, [(Some(FunctionId(5)), 0x1234, 7, 16), (None, 0x1234, 7, 16)]);
    let mut stop = |_: &mut clr_walker::profiling::SnapshotFrame<'_>| HResult::FALSE;
    let stopped = info.do_stack_snapshot(&request, Some(&mut stop));
    assert_eq!(stopped, Err(CallError::Failed(HResult::ABORTED)));

    assert_eq!(info.enum_threads(), Ok([70, 71, 72].map(ThreadId).to_vec()));
    let mut ranges = [CodeRange { start: 0, size: 0 }];
    assert_eq!(info.get_code_info2(FunctionId(1), &mut ranges), Ok(2));
    assert_eq!(ranges, [CodeRange { start: 0x5000, size: 0x20 }]);
    assert_eq!(info.get_code_info2(FunctionId(1), &mut []), Ok(2));
    let missing = CallError::Failed(HResult::NOT_IMPLEMENTED);
    assert_eq!(info.get_function_from_ip3(1), Err(missing));
}

#[test]
fn structures_have_the_sizes_of_the_documentation() {
    assert_eq!(size_of::<Guid>(), 16);
    assert_eq!(size_of::<CodeRange>(), 16);
    assert_eq!(size_of::<Method>(), 16);
    assert_eq!(size_of::<Function>(), 16);
    assert_eq!(size_of::<IlMap>(), 12);
    assert_eq!(size_of::<IlToNative>(), 12);
    assert_eq!(size_of::<AssemblyMetadata>(), 56);
    assert_eq!(size_of::<FieldOffset>(), 8);
    assert_eq!(size_of::<ArgumentRange>(), 16);
    assert_eq!(size_of::<FunctionArguments>(), 24);
    assert_eq!(size_of::<GenerationRange>(), 32);
    assert_eq!(size_of::<ClauseInfo>(), 32);
    assert_eq!(size_of::<EventProviderConfig>(), 32);
    assert_eq!(size_of::<EventParameter>(), 16);
    assert_eq!(size_of::<EventData>(), 16);
}

/// Counts references by itself, and the calls of a method that it lacks.
#[derive(Default)]
struct Kept {
    references: AtomicU32,
    lacking: AtomicU32,
}

impl IUnknownMethods for Kept {
    fn unimplemented(&self, method: &'static str) {
        assert_eq!(method, "Reset");
        self.lacking.fetch_add(1, Ordering::Relaxed);
    }
}

impl ICorProfilerThreadEnumMethods for Kept {}

#[test]
fn an_owned_object_outlives_its_references() {
    let unknown = OwnUnknown::<Kept> {
        query: |_, iid| match iid {
            Some(iid) if *iid == ICorProfilerThreadEnum::IID => Ok(None),
            // Another object, which is only compared.
            Some(iid) if *iid == ICorProfilerInfo::IID => Ok(NonNull::new(0x1000 as *mut c_void)),
            Some(_) => Err(HResult::NO_INTERFACE),
            None => Err(HResult::UNEXPECTED),
        },
        add_reference: |kept| kept.references.fetch_add(1, Ordering::Relaxed) + 1,
        release: |kept| kept.references.fetch_sub(1, Ordering::Relaxed).wrapping_sub(1),
    };
    let owned = own::<ICorProfilerThreadEnum, _>(Kept::default(), unknown);
    // SAFETY: `owned` lives longer than the pointer.
    let threads = unsafe { ICorProfilerThreadEnum::from_raw(owned.as_raw()) }.unwrap();
    assert!(threads.cast::<IUnknown>().is_err());
    // SAFETY: as above; both pointers are NULL.
    unsafe {
        assert_eq!(threads.query(std::ptr::null(), std::ptr::null_mut()), HResult::UNEXPECTED);
        assert_eq!(threads.Reset(), HResult::NOT_IMPLEMENTED);
        let mut found = std::ptr::null_mut();
        let result = threads.query(&ICorProfilerInfo::IID, &raw mut found);
        assert_eq!((result, found as usize), (HResult::OK, 0x1000));
        let result = threads.query(&ICorProfilerThreadEnum::IID, &raw mut found);
        assert_eq!((result, found), (HResult::OK, threads.as_raw()));
        assert_eq!(threads.query(&IUnknown::IID, &raw mut found), HResult::NO_INTERFACE);
        assert!(found.is_null());
    }
    drop(threads.clone());
    drop(threads);
    // One more was released than was counted.
    assert_eq!(owned.value().references.load(Ordering::Relaxed), u32::MAX);
    assert_eq!(owned.value().lacking.load(Ordering::Relaxed), 1);
}

/// An object of which no method is implemented, and the method that was called last.
struct Nothing(Arc<std::sync::Mutex<&'static str>>);

impl IUnknownMethods for Nothing {
    fn unimplemented(&self, method: &'static str) {
        *self.0.lock().unwrap() = method;
    }
}

macro_rules! implement {
    ($($methods:ident)*) => { $(impl $methods for Nothing {})* };
}

implement! {
    ICorProfilerInfoMethods ICorProfilerInfo2Methods ICorProfilerInfo3Methods
    ICorProfilerInfo4Methods ICorProfilerInfo5Methods ICorProfilerInfo6Methods
    ICorProfilerInfo7Methods ICorProfilerInfo8Methods ICorProfilerInfo9Methods
    ICorProfilerInfo10Methods ICorProfilerInfo11Methods ICorProfilerInfo12Methods
    ICorProfilerInfo13Methods ICorProfilerInfo14Methods ICorProfilerInfo15Methods
    IMetaDataImportMethods IMetaDataImport2Methods IMetaDataAssemblyImportMethods
    IMetaDataEmitMethods IMetaDataEmit2Methods IMetaDataAssemblyEmitMethods
    IMetaDataTablesMethods IMetaDataTables2Methods IMetaDataInfoMethods
    IMetaDataDispenserMethods IMetaDataDispenserExMethods
    ICorProfilerThreadEnumMethods
}

fn each_slot_has_its_method<I: Interface + Implements<Nothing> + Callable>() {
    let called = Arc::default();
    let object: I = create(Nothing(Arc::clone(&called)));
    let slots = shape::<I>().0 as u32;
    assert_eq!(I::method(slots), None);
    for slot in 3..slots {
        let method = I::method(slot).unwrap();
        let words = vec![0; method.arguments.len()];
        // SAFETY: no pointer is used.
        let result = unsafe { object.call(slot, &words) };
        assert_eq!(*called.lock().unwrap(), method.name, "{}", I::IID);
        let refused = u64::from(HResult::NOT_IMPLEMENTED.0);
        assert!(matches!(result, Some(0)) || result == Some(refused), "{result:?}");
        // SAFETY: the same.
        let too_few = words.split_last().map(|(_, rest)| unsafe { object.call(slot, rest) });
        assert!(too_few.is_none_or(|result| result.is_none()), "{}", method.name);
    }
}

#[test]
fn methods_are_called_by_slot_with_words() {
    each_slot_has_its_method::<ICorProfilerInfo15>();
    each_slot_has_its_method::<IMetaDataImport2>();
    each_slot_has_its_method::<IMetaDataAssemblyImport>();
    each_slot_has_its_method::<IMetaDataEmit2>();
    each_slot_has_its_method::<IMetaDataAssemblyEmit>();
    each_slot_has_its_method::<IMetaDataTables2>();
    each_slot_has_its_method::<IMetaDataInfo>();
    each_slot_has_its_method::<IMetaDataDispenserEx>();
    each_slot_has_its_method::<ICorProfilerThreadEnum>();
    let (runtime, called) = runtime();
    // SAFETY: the callback is NULL, and no other argument is a pointer that is used.
    let result = unsafe { runtime.call(36, &[0x77, 0, 1, 0x5000, 0, 1232]) };
    assert_eq!((result, called.load(Ordering::Relaxed)), (Some(0), 36));
    let mut found = 0_u64;
    let arguments = [std::ptr::from_ref(&ICorProfilerInfo2::IID) as u64, &raw mut found as u64];
    // SAFETY: the pointers are what they should be; the references are counted.
    unsafe {
        assert_eq!(runtime.call(0, &arguments), Some(0));
        assert_eq!(found, runtime.as_raw() as u64);
        assert_eq!(runtime.call(1, &[]), Some(3));
        assert_eq!(runtime.call(2, &[]), Some(2));
        assert_eq!(runtime.call(2, &[]), Some(1));
    }
}
