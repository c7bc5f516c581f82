//! Walks from each kind of unmanaged leaf: the table of contract §4.1, row by row.

use super::*;
use crate::stubs::Stub;
use Walk::{Full, Lost, Refused};

/// The result of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Walk {
    /// All methods.
    Full,
    /// Some methods are missing, or all.
    Lost,
    /// UNMANAGED_CTX.
    Refused,
}

/// The generations that a row of the table is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    All,
    /// Generations with Frames of COM.
    Com,
    /// Generations with HelperMethodFrames.
    Helpers,
    /// Generations with P/Invokes without transition.
    Suppressed,
    /// Generations with call counting stubs.
    Counting,
}

const COOPERATIVE: bool = true;
const PREEMPTIVE: bool = false;

/// A place to stop at: the function, the topmost Frame (`None`: only the Frame of the thread's
/// start), and the mode. Then the results of a walk by another thread on Windows, and of one by the
/// thread itself, both without a seed.
type Row = (On, Call, &'static str, Option<FrameKind>, bool, Walk, Walk);

const INLINED: Option<FrameKind> = Some(FrameKind::InlinedCall);
const HELPER: Option<FrameKind> = Some(FrameKind::HelperMethod);

const ROWS: &[Row] = &[
    (On::All, Call::PInvoke, "Lib.Work", INLINED, PREEMPTIVE, Full, Full),
    (On::All, Call::PInvokeStub, "Lib.Work", INLINED, PREEMPTIVE, Full, Full),
    (On::All, Call::PInvokeByHelper, "Lib.Work", INLINED, PREEMPTIVE, Full, Full),
    (On::Suppressed, Call::PInvokeSuppressed, "Lib.Work", None, COOPERATIVE, Refused, Lost),
    (
        On::All,
        Call::PInvokeCalli,
        "NDirect::GetILStub",
        Some(FrameKind::PInvokeCalli),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (
        On::All,
        Call::PInvokeVararg,
        "NDirect::GetILStub",
        Some(FrameKind::PrestubMethod),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (On::Com, Call::ComCall, "Lib.Work", INLINED, PREEMPTIVE, Full, Full),
    (
        On::Com,
        Call::ComCallGeneric,
        "Lib.Work",
        Some(FrameKind::ComPlusMethod),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (
        On::All,
        Call::FirstCall,
        "MethodDesc::JitCompileCode",
        Some(FrameKind::PrestubMethod),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (
        On::All,
        Call::LazyCall,
        "ExternalMethodFixupWorker",
        Some(FrameKind::ExternalMethod),
        COOPERATIVE,
        Refused,
        Full,
    ),
    (
        On::All,
        Call::LazyCall,
        "ClassLoader::LoadTypeHandleThrowing",
        Some(FrameKind::ExternalMethod),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (
        On::All,
        Call::DynamicHelper,
        "DynamicHelperWorker",
        Some(FrameKind::DynamicHelper),
        COOPERATIVE,
        Refused,
        Full,
    ),
    (
        On::All,
        Call::DynamicHelper,
        "ClassLoader::LoadTypeHandleThrowing",
        Some(FrameKind::DynamicHelper),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (
        On::All,
        Call::VirtualCall,
        "VSD_ResolveWorker",
        Some(FrameKind::StubDispatch),
        COOPERATIVE,
        Refused,
        Full,
    ),
    (
        On::All,
        Call::VirtualCall,
        "ClassLoader::LoadTypeHandleThrowing",
        Some(FrameKind::StubDispatch),
        PREEMPTIVE,
        Full,
        Full,
    ),
    (On::Helpers, Call::FCall, "ObjectNative::GetClass", HELPER, COOPERATIVE, Refused, Full),
    (On::Helpers, Call::New, "AllocateObject", HELPER, COOPERATIVE, Refused, Full),
    (On::Helpers, Call::MonitorWait, "JITutil_MonContention", HELPER, PREEMPTIVE, Full, Full),
    (On::Helpers, Call::Sleep, "ThreadNative::Sleep", HELPER, PREEMPTIVE, Full, Full),
    (On::All, Call::MonitorEnter, "JIT_MonEnter", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::NewFast, "JIT_NewS_MP_FastPortable", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::WriteBarrier, "JIT_WriteBarrier", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::FirstCall, "Precode:App.Work", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::FirstCall, "ThePreStub", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::OpenDelegate, "ShuffleThunk:App.Work", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::VirtualCall, "ResolveStub:App.Work", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::InterfaceCall, "DispatchStub:App.Work", None, COOPERATIVE, Refused, Lost),
    (On::All, Call::BoxedCall, "UnboxingStub:App.Work", None, COOPERATIVE, Refused, Lost),
    (
        On::Counting,
        Call::CountedCall,
        "CallCountingStub:App.Work",
        None,
        COOPERATIVE,
        Refused,
        Lost,
    ),
    (On::All, Call::OpenDelegate, "App.Work", None, COOPERATIVE, Full, Lost),
    (
        On::Helpers,
        Call::NewWithGc,
        "GCHeap::GarbageCollectGeneration",
        HELPER,
        COOPERATIVE,
        Refused,
        Full,
    ),
];

impl On {
    fn holds(self, generation: Generation) -> bool {
        match self {
            Self::All => true,
            Self::Com => generation.has_com_frames(),
            Self::Helpers => generation.has_helper_method_frames(),
            Self::Suppressed => generation.has_suppressed_transitions(),
            Self::Counting => generation.has_call_counting_stubs(),
        }
    }
}

/// Returns the kind of the topmost Frame except the Frame of the thread's start.
fn top_frame(world: &mut World<'_>) -> Option<FrameKind> {
    let object = ThreadObject(world.object(0)?);
    let runtime = world.runtime();
    let memory = runtime.memory.borrow();
    let top = object.top_frame(&*memory).unwrap();
    let base = top == FRAME_TOP || memory.read_u64(top + 8) == Ok(FRAME_TOP);
    if base { None } else { runtime.identities.kind(memory.read_u64(top).unwrap()) }
}

fn name_at<'w>(world: &World<'w>) -> &'w str {
    let function = world.linked().function_of(world.rip(0).unwrap(), Position::Interrupted);
    function.map_or("?", |id| world.expanded().program.functions[id.index()].name.as_str())
}

/// Returns all methods, leaf first, as a walk reports them, without markers.
fn methods(world: &World<'_>) -> String {
    let names = world.activations(0).into_iter().filter_map(|activation| {
        let name = &world.expanded().program.functions[activation.function?.index()].name;
        ["App.", "System.", Stub::PInvokeMethod.prefix()]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            .then(|| format!("{name} "))
    });
    names.collect::<String>() + "*CallDescrWorkerInternal S_OK"
}

fn check(row: &Row, generation: Generation) {
    let (_, kind, name, frame, cooperative, other, own) = *row;
    let program = program(kind);
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let at = format!("{generation}, {}, {name}", kind.word());
    // In a service, the function's name is that of the service's caller.
    let in_function =
        |world: &World<'_>| {
            name_at(world) == name
                || name_at(world) == "?"
                    && world.activations(0).get(1).and_then(|a| a.function).is_some_and(|id| {
                        world.expanded().program.functions[id.index()].name == name
                    })
        };
    while !(in_function(&world)
        && top_frame(&mut world) == frame
        && world.is_cooperative(0) == cooperative)
    {
        assert_ne!(world.step(0).unwrap(), StepEvent::Ended, "{at}: not there");
    }
    let full = methods(&world);
    let refused = HResult::UNMANAGED_CONTEXT.to_string();
    let hold = |found: &str, expected: Walk, what: &str| match expected {
        Full => assert_eq!(found, full, "{at}, {what}"),
        Refused => assert_eq!(found, refused, "{at}, {what}"),
        // Nothing reports which frames are missing.
        Lost => assert!(
            found == "E_FAIL" || found == "S_OK" && !Generations::CLR_4.contains(generation),
            "{at}, {what}: {found}"
        ),
    };
    hold(&walk(&mut world, 0), own, "by itself");
    let found = walk_by(&mut world, None, 0);
    if !generation.is_unix() {
        hold(&found, other, "by another thread");
        return;
    }
    assert_eq!(found, "E_NOTIMPL", "{at}");
    world.runtime().on(super::NOBODY).suspend_runtime().unwrap();
    let found = walk_by(&mut world, None, 0);
    world.runtime().on(super::NOBODY).resume_runtime().unwrap();
    if cooperative {
        assert_eq!(found, "E_NOTIMPL", "{at}");
    } else {
        hold(&found, other, "under SuspendRuntime");
    }
}

#[test]
fn leaves_change_the_state_that_the_contract_names() {
    for generation in Generation::ALL {
        for row in ROWS.iter().filter(|row| row.0.holds(generation)) {
            check(row, generation);
        }
    }
}
