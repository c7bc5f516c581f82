//! The nodes of each level: arguments, properties and blocks.

mod histories;

pub(super) use histories::{ACTION, EXPLORE, HISTORY, PROFILER};

use super::{Args, Kind, Level, MAX_ROOM, MAX_WORDS, NodeRule, PropertyRule};
use crate::Export;
use crate::expect::WalkEnd;
use crate::hand_stack::{PlacedThread, SuspensionState, ThreadMode};
use crate::keywords::Keyword;
use crate::mixed::{MixedClaim, ReasonKind};
use crate::snapshot::SEED_SIZE;
use clr_codegen::{
    Allocation, CallForm, CallingConvention, CodeKind, ColdForm, EntryForm, EpilogueCfi, FrameSet,
    MAX_ARGUMENTS, MAX_PUSHES, MAX_SIGNAL_STACK, Realign, Release, ReturnForm, SaveArea,
    TailCallForm, UnwindData, Wrap,
};
use clr_runtime::MethodKind;
use clr_runtime::code_manager::StubKind;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{ContextSafety, FrameKind, Funclet, Pass, ProfilerStatus, ThreadLife};
use clr_walker::mixed::{Policy, SeenBy};
use clr_walker::unwind::{Rules, Trust};
use clr_world::StopBy;
use clr_world::stubs::Hooks;

/// Lists properties, followed by one for each integer register.
macro_rules! with_registers {
    ($($property:expr),*) => {
        &[
            $($property,)*
            property("rax", ANY_U64),
            property("rcx", ANY_U64),
            property("rdx", ANY_U64),
            property("rbx", ANY_U64),
            property("rsp", ANY_U64),
            property("rbp", ANY_U64),
            property("rsi", ANY_U64),
            property("rdi", ANY_U64),
            property("r8", ANY_U64),
            property("r9", ANY_U64),
            property("r10", ANY_U64),
            property("r11", ANY_U64),
            property("r12", ANY_U64),
            property("r13", ANY_U64),
            property("r14", ANY_U64),
            property("r15", ANY_U64),
        ]
    };
}

const fn property(name: &'static str, kind: Kind) -> PropertyRule {
    PropertyRule { name, kind, required: false }
}

const fn required(name: &'static str, kind: Kind) -> PropertyRule {
    PropertyRule { name, kind, required: true }
}

const fn node(name: &'static str, args: Args) -> NodeRule {
    NodeRule { name, args, properties: &[], block: None, once: false }
}

impl NodeRule {
    const fn with(self, properties: &'static [PropertyRule]) -> Self {
        Self { properties, ..self }
    }

    const fn block(self, level: Level) -> Self {
        Self { block: Some(level), ..self }
    }

    const fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

const ANY_U32: Kind = Kind::Number(0, u32::MAX as u64);
const ANY_U64: Kind = Kind::Number(0, u64::MAX);
const RETURN: Args = Args::Optional(Kind::Word(ReturnForm::WORDS));
const TAIL_CALL: &[PropertyRule] = &[property("by", Kind::Word(TailCallForm::WORDS))];
/// Limit of arguments: above the number of registers, each of which can be named once.
const MANY: usize = 64;

const ON: PropertyRule = property("on", Kind::Generations);
const WALK: Kind = Kind::Word(&["continue", "none"]);
/// The search algorithms for histories.
const SEARCHES: &[&str] = &["random", "pct", "exhaustive", "guided"];
const FROM: Kind = Kind::Word(&["source", "documentation", "reported", "observed"]);

/// The node `snapshot`, which appears at the outermost level of texts of stacks, and in stops.
const SNAPSHOT_NODE: NodeRule = node("snapshot", Args::Optional(Kind::Name))
    .with(&[
        property("by", Kind::Caller),
        property("in-callback", Kind::Word(CallbackKind::WORDS)),
        property("thread", Kind::Target),
        property("flags", ANY_U32),
        property("seed", Kind::Seed),
        property("callback", WALK),
        property("stop-at", Kind::Number(1, u32::MAX as u64)),
        property("returns", Kind::HResult),
        property("suspended", Kind::Flag),
    ])
    .block(Level::Snapshot);

/// The node `mixed-walk`, which appears in the same places as `snapshot`.
const MIXED_WALK_NODE: NodeRule = node("mixed-walk", Args::Optional(Kind::Name))
    .with(&[
        required("policy", Kind::Word(Policy::WORDS)),
        property("by", Kind::Caller),
        property("in-callback", Kind::Word(CallbackKind::WORDS)),
        property("room", Kind::Number(1, MAX_ROOM as u64)),
    ])
    .block(Level::MixedWalk);

/// The position of another thread.
const PLACE: &[PropertyRule] = &[
    property("after", ANY_U64),
    property("at", Kind::Code),
    property("callback", Kind::Word(CallbackKind::WORDS)),
    property("hook", Kind::Number(1, u32::MAX as u64)),
    property("instruction", ANY_U32),
    property("visit", Kind::Number(1, u32::MAX as u64)),
];

pub(super) static TEXT: &[NodeRule] = &[
    node("shows", Args::One(Kind::Name)).once(),
    node("tag", Args::Many(Kind::Tag, MANY)).once(),
    node("module", Args::One(Kind::Name))
        .with(&[property("assembly", Kind::Name)])
        .block(Level::Module),
    node("convention", Args::One(Kind::Word(CallingConvention::WORDS))).once(),
    node("signal-stack", Args::One(Kind::Number(0, MAX_SIGNAL_STACK as u64))).once(),
    node("hooks", Args::One(Kind::Word(Hooks::WORDS))).once(),
    node("stop-threads", Args::One(Kind::Word(StopBy::WORDS))).once(),
    node("function", Args::One(Kind::Name))
        .with(&[
            property("kind", Kind::Word(CodeKind::WORDS)),
            property("method", Kind::Word(MethodKind::WORDS)),
        ])
        .block(Level::Function),
    node("interrupt", Args::None)
        .with(&[required("after", ANY_U64), required("handler", Kind::Function)]),
    node("thread", Args::One(Kind::Name)).with(&[
        property("start", Kind::Function),
        property("gc", Kind::Flag),
        property("exits", Kind::Flag),
    ]),
    node("stop", Args::Optional(Kind::Word(&["end"])))
        .with(&[
            property("thread", Kind::Thread),
            property("after", ANY_U64),
            property("at", Kind::Code),
            property("callback", Kind::Word(CallbackKind::WORDS)),
            property("hook", Kind::Number(1, u32::MAX as u64)),
            property("instruction", ANY_U32),
            property("visit", Kind::Number(1, u32::MAX as u64)),
        ])
        .block(Level::Stop),
    node("stack", Args::None).block(Level::Stack).once(),
    SNAPSHOT_NODE,
    MIXED_WALK_NODE,
    node("profiler", Args::None).block(Level::Profiler).once(),
    node("explore", Args::None)
        .with(&[
            property("by", Kind::Word(SEARCHES)),
            property("schedules", Kind::Number(1, u32::MAX as u64)),
            property("seed", ANY_U64),
            property("depth", Kind::Number(1, u8::MAX as u64)),
            property("preemptions", Kind::Number(0, u8::MAX as u64)),
            property("instructions", Kind::Flag),
            property("rules", Kind::Flag),
        ])
        .block(Level::Explore),
];

const PARAMETER_NODE: NodeRule = node("parameter", Args::Many(Kind::Name, MANY)).once();
const ATTRIBUTE_NODE: NodeRule = node("attribute", Args::Many(Kind::Name, MANY)).once();
const TYPE_NODE: NodeRule = node("type", Args::One(Kind::Name)).block(Level::Type);

pub(super) static MODULE: &[NodeRule] = &[TYPE_NODE];

pub(super) static TYPE: &[NodeRule] = &[
    PARAMETER_NODE,
    ATTRIBUTE_NODE,
    node("method", Args::One(Kind::Name)).block(Level::Method),
    TYPE_NODE,
];

pub(super) static METHOD: &[NodeRule] = &[PARAMETER_NODE, ATTRIBUTE_NODE];

pub(super) static FUNCTION: &[NodeRule] = &[
    node("entry", Args::One(Kind::Word(EntryForm::WORDS))).once(),
    node("home", Args::Many(Kind::Slot, 4)).once(),
    node("push", Args::Many(Kind::Gpr, MANY)).once(),
    node("locals", Args::One(ANY_U32)).once(),
    node("save", Args::Many(Kind::Register, MANY))
        .with(&[property("area", Kind::Word(SaveArea::WORDS))])
        .once(),
    node("allocation", Args::One(Kind::Word(Allocation::WORDS))).once(),
    node("frame", Args::One(Kind::Gpr))
        .with(&[
            property("offset", Kind::Number(0, 15)),
            property("set", Kind::Word(FrameSet::WORDS)),
            property("described", Kind::Flag),
        ])
        .once(),
    node("release", Args::One(Kind::Word(Release::WORDS))).once(),
    node("scheduled", Args::None).once(),
    node("unwind", Args::Optional(Kind::Word(UnwindData::WORDS)))
        .with(&[property("handler", Kind::Flag)])
        .once(),
    node("cold-parts", Args::One(Kind::Word(ColdForm::WORDS))).once(),
    node("wrap", Args::One(Kind::Word(Wrap::WORDS))).once(),
    node("realign", Args::One(Kind::Word(Realign::WORDS))).once(),
    node("arguments", Args::One(Kind::Number(0, MAX_ARGUMENTS as u64))).once(),
    node("epilogue-cfi", Args::One(Kind::Word(EpilogueCfi::WORDS))).once(),
    node("export", Args::Named(ANY_U64, Export::MOST_ARGUMENTS)).once(),
    node("body", Args::None).block(Level::Body).once(),
    node("return", RETURN).once(),
    node("tail-call", Args::One(Kind::Function)).with(TAIL_CALL).once(),
    node("no-end", Args::None).once(),
];

pub(super) static BODY: &[NodeRule] = &[
    node("call", Args::One(Kind::Function)).with(&[property("by", Kind::Word(CallForm::WORDS))]),
    node("clobber", Args::One(Kind::Register)),
    node("store", Args::One(ANY_U32)),
    node("work", Args::One(Kind::Number(0, u8::MAX as u64))),
    node("loop", Args::One(Kind::Number(1, u8::MAX as u64))).block(Level::Body),
    node("if", Args::One(Kind::Flag)).block(Level::Body),
    node("return", RETURN),
    node("tail-call", Args::One(Kind::Function)).with(TAIL_CALL),
    node("alloca", Args::One(Kind::Number(0, u16::MAX as u64))),
    node("cold", Args::None).block(Level::Body),
    node("region", Args::Many(Kind::Gpr, MANY)).block(Level::Body),
    node("funclet", Args::None).block(Level::Body),
    node("try", Args::None).block(Level::Body),
    node("catch", Args::None).block(Level::Body),
    node("guarded", Args::None).block(Level::Body),
    node("on-filter", Args::None).with(&[property("accepts", Kind::Flag)]).block(Level::Body),
    node("on-catch", Args::None).block(Level::Body),
    node("on-finally", Args::None).block(Level::Body),
    node("on-fault", Args::None).block(Level::Body),
    node("throw", Args::None),
    node("trap", Args::One(Kind::Function)),
    node("switch-stack", Args::One(Kind::Function)),
    node("stop", Args::None),
    node("p-invoke", Args::One(Kind::Function)),
    node("p-invoke-stub", Args::One(Kind::Function)),
    node("p-invoke-by-helper", Args::One(Kind::Function)),
    node("p-invoke-suppressed", Args::One(Kind::Function)),
    node("p-invoke-calli", Args::One(Kind::Function)),
    node("p-invoke-vararg", Args::One(Kind::Function)),
    node("com-call", Args::One(Kind::Function)),
    node("com-call-generic", Args::One(Kind::Function)),
    node("com-method", Args::One(Kind::Function)),
    node("reverse-p-invoke", Args::One(Kind::Function)),
    node("first-call", Args::One(Kind::Function)),
    node("open-delegate", Args::One(Kind::Function)),
    node("multicast-delegate", Args::One(Kind::Function)),
    node("wrapper-delegate", Args::One(Kind::Function)),
    node("lazy-call", Args::One(Kind::Function)),
    node("virtual-call", Args::One(Kind::Function)),
    node("interface-call", Args::One(Kind::Function)),
    node("boxed-call", Args::One(Kind::Function)),
    node("counted-call", Args::One(Kind::Function)),
    node("tail-call-by-helper", Args::One(Kind::Function)),
    node("reflection-call", Args::One(Kind::Function)),
    node("class-constructor", Args::One(Kind::Function)),
    node("fcall", Args::None),
    node("dynamic-helper", Args::None),
    node("monitor-enter", Args::None),
    node("monitor-wait", Args::None),
    node("sleep", Args::None),
    node("name-thread", Args::None),
    node("load-assembly", Args::None),
    node("unload-assembly", Args::Optional(Kind::Function)),
    node("unload-dynamic-method", Args::Optional(Kind::Function)),
    node("create-handle", Args::None),
    node("destroy-handle", Args::None),
    node("collect", Args::None),
    node("new-with-gc", Args::None),
    node("new", Args::None),
    node("new-fast", Args::None),
    node("write-barrier", Args::None),
    node("raise", Args::None),
    node("rethrow", Args::None),
    node("null-dereference", Args::None),
    node("malloc", Args::None),
    node("load-library", Args::None),
];

pub(super) static STOP: &[NodeRule] = &[
    node("expect", Args::None)
        .with(&[
            property("rules", Kind::Word(Rules::WORDS)),
            property("ends", Kind::Word(WalkEnd::WORDS)),
        ])
        .block(Level::Expect),
    node("other", Args::One(Kind::Thread)).with(PLACE),
    SNAPSHOT_NODE,
    MIXED_WALK_NODE,
];

pub(super) static EXPECT: &[NodeRule] = &[node("frame", Args::Optional(Kind::Function))
    .with(with_registers![property("trust", Kind::Word(Trust::WORDS))])];

/// Returns the node of an activation on a stack.
const fn row(name: &'static str) -> NodeRule {
    const PROPERTIES: &[PropertyRule] = &[
        ON,
        required("rsp", ANY_U64),
        property("funclet", Kind::Word(Funclet::WORDS)),
        property("gs-cookie", ANY_U32),
    ];
    node(name, Args::One(Kind::Label)).with(PROPERTIES).block(Level::Activation)
}

/// Returns a node without arguments that sets a flag of the stack.
const fn mark(name: &'static str) -> NodeRule {
    node(name, Args::None).with(&[ON])
}

/// Returns a node with one argument that sets a value of the stack.
const fn field(name: &'static str, kind: Kind) -> NodeRule {
    node(name, Args::One(kind)).with(&[ON])
}

pub(super) static STACK: &[NodeRule] = &[
    field("mode", Kind::Word(ThreadMode::WORDS)),
    row("jit"),
    row("ready-to-run"),
    row("il-stub"),
    row("dynamic"),
    row("exception-handling"),
    row("native"),
    row("leaf"),
    node("frame", Args::One(Kind::Word(FrameKind::WORDS))).with(&[
        ON,
        required("at", ANY_U64),
        property("to", Kind::Name),
        property("method", Kind::Name),
        property("captured-in", Kind::Name),
        property("fcall-entry", ANY_U64),
        property("attributes", ANY_U32),
        property("context-flags", ANY_U32),
    ]),
    node("exception", Args::One(Kind::Word(Pass::WORDS))).with(&[
        ON,
        property("entered-managed-code", Kind::Flag),
        property("unwound-above", ANY_U64),
        property("unwound-to", ANY_U64),
        property("handler", ANY_U64),
        property("parent", ANY_U64),
    ]),
    mark("inconsistent-exceptions"),
    node("bounds", Args::None).with(&[ON, required("limit", ANY_U64), required("base", ANY_U64)]),
    field("safety", Kind::Word(ContextSafety::WORDS)),
    field("life", Kind::Word(ThreadLife::WORDS)),
    field("forbid-suspend", ANY_U32),
    mark("hijack-locked"),
    mark("gc-special"),
    mark("resists-suspension"),
    mark("leaves-cooperative-mode"),
    mark("debugger-context"),
    field("hijacked", Kind::Name),
    node("stub", Args::One(Kind::Name)).with(&[ON, required("kind", Kind::Word(StubKind::WORDS))]),
    node("block", Args::One(ANY_U64)).with(&[ON, required("size", ANY_U64)]),
    node("word", Args::One(ANY_U64)).with(&[
        ON,
        required("value", ANY_U64),
        property("count", Kind::Number(1, MAX_WORDS as u64)),
    ]),
    field("profiler", Kind::Word(ProfilerStatus::WORDS)),
    mark("attached"),
    field("event-mask", ANY_U32),
    mark("not-started"),
    mark("no-gc"),
    node("suspension", Args::One(Kind::Word(SuspensionState::WORDS)))
        .with(&[ON, property("by", Kind::Word(PlacedThread::WORDS))]),
    mark("suspended-by-profiler"),
    field("code-manager-writer", Kind::Word(PlacedThread::WORDS)),
    field("gs-cookie", ANY_U64),
];

pub(super) static ACTIVATION: &[NodeRule] = &[node("saves", Args::Many(Kind::Saved, MANY)).once()];

pub(super) static SNAPSHOT: &[NodeRule] = &[
    node("seed", Args::One(Kind::Seed)).block(Level::Seed).once(),
    node("nested", Args::None)
        .with(&[property("by", Kind::Caller), property("thread", Kind::Target)]),
    node("expect", Args::None)
        .with(&[
            ON,
            property("from", FROM),
            property("count", ANY_U64),
            property("others", Kind::Flag),
            property("context-flags", Kind::Flags),
        ])
        .block(Level::Report),
];

pub(super) static SEED: &[NodeRule] = &[
    node("rip", Args::One(Kind::Address)).once(),
    node("rax", Args::One(ANY_U64)).once(),
    node("rcx", Args::One(ANY_U64)).once(),
    node("rdx", Args::One(ANY_U64)).once(),
    node("rbx", Args::One(ANY_U64)).once(),
    node("rsp", Args::One(ANY_U64)).once(),
    node("rbp", Args::One(ANY_U64)).once(),
    node("rsi", Args::One(ANY_U64)).once(),
    node("rdi", Args::One(ANY_U64)).once(),
    node("r8", Args::One(ANY_U64)).once(),
    node("r9", Args::One(ANY_U64)).once(),
    node("r10", Args::One(ANY_U64)).once(),
    node("r11", Args::One(ANY_U64)).once(),
    node("r12", Args::One(ANY_U64)).once(),
    node("r13", Args::One(ANY_U64)).once(),
    node("r14", Args::One(ANY_U64)).once(),
    node("r15", Args::One(ANY_U64)).once(),
    node("flags", Args::One(ANY_U32)).once(),
    node("features", Args::One(ANY_U64)).once(),
    node("fill", Args::One(Kind::Number(0, u8::MAX as u64))).once(),
    node("cut", Args::One(Kind::Number(0, SEED_SIZE as u64))).once(),
];

/// The properties of a callback of a snapshot.
const FRAME_REPORT: &[PropertyRule] =
    with_registers![property("stale", Kind::Stale), property("context-flags", Kind::Flags)];

pub(super) static REPORT: &[NodeRule] = &[
    node("frame", Args::One(Kind::Name)).with(FRAME_REPORT),
    node("marker", Args::Optional(Kind::Name)).with(FRAME_REPORT),
    node("nested", Args::One(Kind::Outcome))
        .with(&[property("code", Kind::HResult), property("at", ANY_U64)]),
    node("result", Args::One(Kind::Outcome))
        .with(&[property("code", Kind::HResult), property("at", ANY_U64)])
        .once(),
    node("clause", Args::Many(Kind::Clause, MANY)),
];

pub(super) static MIXED_WALK: &[NodeRule] = &[node("expect", Args::None)
    .with(&[ON, property("from", FROM), property("count", ANY_U64), property("others", Kind::Flag)])
    .block(Level::MixedReport)];

/// The properties of a frame of a mixed walk.
const WHOLE_FRAME: &[PropertyRule] = &[
    property("rsp", ANY_U64),
    property("seen-by", Kind::Word(SeenBy::WORDS)),
    property("trust", Kind::Word(Trust::WORDS)),
];

pub(super) static MIXED_REPORT: &[NodeRule] = &[
    node("managed", Args::One(Kind::Name)).with(WHOLE_FRAME),
    node("hidden", Args::Optional(Kind::Name)).with(WHOLE_FRAME),
    node("native", Args::One(Kind::Name)).with(WHOLE_FRAME),
    node("unknown", Args::Optional(Kind::Name)).with(WHOLE_FRAME),
    node("gap", Args::One(Kind::Word(ReasonKind::WORDS)))
        .with(&[property("result", Kind::HResult)]),
    node("complete", Args::One(Kind::Word(MixedClaim::WORDS))).once(),
    node("result", Args::One(Kind::Outcome))
        .with(&[property("code", Kind::HResult), property("at", ANY_U64)])
        .once(),
    node("clause", Args::Many(Kind::Clause, MANY)),
];

const _: () = assert!(MANY >= MAX_PUSHES, "as many as a function may push");
