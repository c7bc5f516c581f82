//! Tests of profiling methods on a small process that is built by hand.

mod boundaries;
mod calls;
mod code;
mod force_gc;
mod lookup;
mod masks;
mod runtime;
mod seeded;
mod steps;
mod suspension;
mod target;
mod threads;
mod waiting;

use crate::code_manager::{Block, CodeVersion, MethodIndex, RangeSection, StubKind};
use crate::generation::Generation::{self, CoreClr31Windows};
use crate::generation::Generations;
use crate::profiling::{GcRequest, SimulatedThread, ThreadError, *};
use crate::{
    CallbackState, ContextSafety, FRAME_TOP, Lock, Method, MethodKind, Process, Profiler,
    ProfilerStatus, Suspension, Thread, ThreadFields, ThreadLife, Wait,
};
use ProfilerCallback::{RuntimeThreadResumed, RuntimeThreadSuspended};
use clr_machine::{Machine, Protection};
use clr_unwind::{CodeRegion, FunctionTable};
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, ProfilerInfo, ReJitId,
    SnapshotFlags, StackRoot, TargetThread as _, ThreadContext, ThreadId,
};
use core::cell::RefCell;

/// Base of the code heap (VA).
const HEAP: u64 = 0x7FF9_0000_0000;
/// An address in native code.
const NATIVE: u64 = 0x7FF8_0000_1000;
/// Base of two pages of Thread objects (VA).
const OBJECTS: u64 = 0x7F_0000;
/// The top page of stacks (VA).
const STACK: u64 = 0x1F_F000;

/// A thread of the runtime, in cooperative mode, that makes the calls.
const WORKER: OsThreadId = OsThreadId(1);
const WORKER_ID: ThreadId = ThreadId(OBJECTS);
/// Another thread of the runtime, in a P/Invoke: preemptive.
const OTHER: OsThreadId = OsThreadId(2);
const OTHER_ID: ThreadId = ThreadId(OBJECTS + 0x100);
/// A thread that the runtime does not know.
const STRANGER: OsThreadId = OsThreadId(3);
/// A thread that belongs to the GC and has a Thread object.
const GC: OsThreadId = OsThreadId(4);
const GC_ID: ThreadId = ThreadId(OBJECTS + 0x200);
/// Threads that have not started and that have ended.
const CREATED_ID: ThreadId = ThreadId(OBJECTS + 0x300);
const DEAD_ID: ThreadId = ThreadId(OBJECTS + 0x400);
/// Zeroed memory without a Thread object.
const NO_THREAD: ThreadId = ThreadId(OBJECTS + 0x800);
/// An address without memory.
const NOWHERE: ThreadId = ThreadId(0xDEAD_0000);

/// A method with two tiers, and a version for a ReJIT.
const FOO: FunctionId = FunctionId(0x11);
const DYNAMIC: FunctionId = FunctionId(0x12);
const IL_STUB: FunctionId = FunctionId(0x13);
const HANDLING: FunctionId = FunctionId(0x14);
const NOT_COMPILED: FunctionId = FunctionId(0x15);
const UNRESTORED: FunctionId = FunctionId(0x16);
const SHARED: FunctionId = FunctionId(0x17);
/// A method with code in two pieces.
const SPLIT: FunctionId = FunctionId(0x18);

/// Starts of the versions of [`FOO`].
const FOO_TIER0: u64 = HEAP + 0x40;
const FOO_REJIT: u64 = HEAP + 0x80;
const FOO_TIER1: u64 = HEAP + 0xC0;
const DYNAMIC_AT: u64 = HEAP + 0x100;
const IL_STUB_AT: u64 = HEAP + 0x140;
const HANDLING_AT: u64 = HEAP + 0x180;
const UNRESTORED_AT: u64 = HEAP + 0x1C0;
const SHARED_AT: u64 = HEAP + 0x200;
const SPLIT_AT: u64 = HEAP + 0x240;
const PRECODE_AT: u64 = HEAP + 0x280;

static CODE: [u8; 0x1000] = [0xCC; 0x1000];

/// The first runtime.
const FRAMEWORK_2: Generations = Generations::CLR_4.inverse();
/// .NET Framework.
const FRAMEWORK: Generations = Generations::FRAMEWORK;
/// CoreCLR 3.1.
const CORECLR_31: Generations = Generations::CORECLR_31;
/// .NET 9 and newer.
const NEW: Generations = Generations::NEW;
/// The generations after the first one and before .NET 9.
const BEFORE_NET_9: Generations = Generations::CLR_4.without(NEW);
/// The generations that have SuspendRuntime.
const WITH_SUSPENSION: Generations = Generations::FRAMEWORK.inverse();

/// The results used in the tests, by number (contract §1.4).
const E_NOTIMPL: HResult = HResult(0x8000_4001);
const E_FAIL: HResult = HResult(0x8000_4005);
const E_INVALIDARG: HResult = HResult(0x8007_0057);
const FUNCTION_NOT_COMPILED: HResult = HResult(0x8013_1350);
const DATAINCOMPLETE: HResult = HResult(0x8013_1351);
const NOT_MANAGED_THREAD: HResult = HResult(0x8013_1355);
const NOT_YET_AVAILABLE: HResult = HResult(0x8013_135B);
const UNSAFE: HResult = HResult(0x8013_1360);
const UNSUPPORTED_CALL_SEQUENCE: HResult = HResult(0x8013_1363);
const ASYNCHRONOUS_UNSAFE: HResult = HResult(0x8013_1364);
const PROFILER_DETACHING: HResult = HResult(0x8013_1367);
const UNSUPPORTED_FOR_ATTACHING: HResult = HResult(0x8013_136F);
const RUNTIME_UNINITIALIZED: HResult = HResult(0x8013_1371);
const SUSPENSION_IN_PROGRESS: HResult = HResult(0x8013_1388);

type Answer<T> = Result<T, CallError<Outcome>>;

/// Returns the answer of a call that failed with this result.
fn failed<T>(result: HResult) -> Answer<T> {
    Err(CallError::Failed(result))
}

fn fatal<T>(outcome: Outcome) -> Answer<T> {
    Err(CallError::Fatal(outcome))
}

/// Creates a method whose other values are derived from its id.
fn method(id: FunctionId, kind: MethodKind) -> Method {
    Method {
        id,
        kind,
        class: 0xC00 + id.0,
        module: 0xD00,
        token: 0x0600_0000 + id.0 as u32,
        ..Method::default()
    }
}

/// Creates the process.
fn process<'a>(generation: Generation) -> Runtime<'a, Machine> {
    let mut machine = Machine::new();
    machine.map(OBJECTS, 1, Protection::READ_WRITE).unwrap();
    machine.map(STACK, 1, Protection::READ_WRITE).unwrap();
    machine.map(NATIVE, 1, Protection::READ_EXECUTE).unwrap();
    let stack = (0x10_0000, STACK + 0x1000);
    let usual = ThreadFields { stack, ..ThreadFields::default() };
    for (id, fields) in [
        (WORKER_ID, ThreadFields { cooperative: true, ..usual }),
        (OTHER_ID, usual),
        (GC_ID, ThreadFields { gc_special: true, ..usual }),
        (CREATED_ID, usual),
        (DEAD_ID, usual),
    ] {
        fields.write(&mut machine, id).unwrap();
    }
    let mut runtime = Runtime::new(generation, machine);
    let known = |os, id, life| Thread {
        os: OsThreadId(os),
        object: Some(id),
        handle: 0x40 + u64::from(os),
        life,
        ..Thread::default()
    };
    runtime.threads = RefCell::new(vec![
        known(1, WORKER_ID, ThreadLife::Running),
        known(2, OTHER_ID, ThreadLife::Running),
        Thread { os: STRANGER, ..Thread::default() },
        Thread { is_gc_special: true, ..known(4, GC_ID, ThreadLife::Running) },
        Thread { handle: 0, ..known(5, CREATED_ID, ThreadLife::Created) },
        known(6, DEAD_ID, ThreadLife::Dead),
    ]);
    add_code(&mut runtime);
    runtime
}

fn add_code(runtime: &mut Runtime<'_, Machine>) {
    let code = &mut runtime.code;
    let ordinary = |id| method(id, MethodKind::Ordinary);
    let type_arguments = vec![0xA1, 0xA2, 0xA3];
    let foo = code.add_method(Method { type_arguments, ..ordinary(FOO) });
    code.add_method(ordinary(NOT_COMPILED));
    let unrestored = code.add_method(Method { unrestored: true, ..ordinary(UNRESTORED) });
    let shared = code.add_method(Method { shared: true, ..ordinary(SHARED) });
    let dynamic = code.add_method(method(DYNAMIC, MethodKind::Dynamic));
    let il_stub = code.add_method(method(IL_STUB, MethodKind::IlStub));
    let handling = code.add_method(method(HANDLING, MethodKind::ExceptionHandling));
    let split = code.add_method(ordinary(SPLIT));
    let compiled = |method: MethodIndex, start: u64| CodeVersion {
        method,
        start,
        size: 0x30,
        ..CodeVersion::default()
    };
    let blocks = [
        compiled(foo, FOO_TIER0),
        CodeVersion { rejit: ReJitId(5), ..compiled(foo, FOO_REJIT) },
        compiled(foo, FOO_TIER1),
        compiled(dynamic, DYNAMIC_AT),
        compiled(il_stub, IL_STUB_AT),
        compiled(handling, HANDLING_AT),
        compiled(unrestored, UNRESTORED_AT),
        compiled(shared, SHARED_AT),
        CodeVersion { cold: Some((HEAP + 0x900, 0x18)), ..compiled(split, SPLIT_AT) },
    ];
    let blocks = blocks.map(|version| (version.start, Block::Code(code.add_code(version))));
    let stub = (PRECODE_AT, Block::Stub(StubKind::Precode));
    let blocks: Vec<_> = blocks.into_iter().chain([stub]).collect();
    let heap = RangeSection::code_heap(HEAP, HEAP + 0x1000, &blocks).unwrap();
    let region = CodeRegion::heap(HEAP, &CODE, FunctionTable::new(&[])).unwrap();
    code.add_section(heap, region).unwrap();
}

/// Runs `act` with the callback-state bits of a thread set to this value.
fn with_state<T>(
    runtime: &Runtime<'_, Machine>,
    os: OsThreadId,
    bits: u8,
    act: impl FnOnce(Caller<'_, '_, Machine>) -> T,
) -> T {
    runtime.change_thread(os, |thread| thread.callback_state = CallbackState(bits));
    let done = act(runtime.on(os));
    runtime.change_thread(os, |thread| thread.callback_state = CallbackState(0));
    done
}

/// Writes a u32 of a Thread object, at an offset of `runtime::thread`.
fn set_word(runtime: &Runtime<'_, Machine>, id: ThreadId, offset: u64, value: u32) {
    runtime.memory.borrow_mut().write(id.0 + offset, &value.to_le_bytes()).unwrap();
}

fn word(runtime: &Runtime<'_, Machine>, id: ThreadId, offset: u64) -> u32 {
    use clr_unwind::Memory as _;
    runtime.memory.borrow().read_u64(id.0 + offset).unwrap() as u32
}

const FORBID_SUSPEND: u64 = 0x14;
const EXTERNAL_COUNT: u64 = 0x18;
const COOPERATIVE: u64 = 0x04;

/// Returns the outcome of `DoStackSnapshot` of a thread, without seed and contexts.
fn walk(caller: Caller<'_, '_, Machine>, thread: ThreadId) -> Outcome {
    let call = SnapshotRequest { thread, ..SnapshotRequest::default() };
    caller.do_stack_snapshot(&call, Some(&mut |_| HResult::OK))
}

/// State observed in a callback.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    callback: ProfilerCallback,
    thread: OsThreadId,
    /// The flag for a suspension by the profiler.
    marked: bool,
    suspension: Suspension,
    /// Callback-state bits of the thread.
    bits: u8,
    /// Outcomes of walks of the thread itself, and of [`OTHER_ID`].
    own: Outcome,
    other: Outcome,
}

/// A profiler that records all callbacks.
#[derive(Default)]
struct Recorder {
    seen: RefCell<Vec<Seen>>,
}

impl<'a> Profiler<'a, Machine> for Recorder {
    fn call_back(
        &self,
        runtime: &Runtime<'a, Machine>,
        thread: OsThreadId,
        callback: ProfilerCallback,
    ) {
        let Process { suspended_by_profiler: marked, suspension, event_mask, .. } =
            runtime.process.get();
        // The walks must not make callbacks themselves.
        let quiet = clr_walker::profiling::EventMask::ENABLE_STACK_SNAPSHOT;
        runtime.change_process(|process| process.event_mask = quiet);
        let own = walk(runtime.on(thread), ThreadId(0));
        let other = walk(runtime.on(thread), OTHER_ID);
        runtime.change_process(|process| process.event_mask = event_mask);
        let bits = runtime.thread(thread, |thread| thread.callback_state.0).unwrap();
        self.seen.borrow_mut().push(Seen {
            callback,
            thread,
            marked,
            suspension,
            bits,
            own,
            other,
        });
    }
}
