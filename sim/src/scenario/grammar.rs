//! The grammar as tables: which nodes stand where, with which arguments and properties. The reader
//! and the tests of the grammar's document know no other names.

use super::expect::WalkEnd;
use super::placed::{PlacedThread, SuspensionState, ThreadMode};
use super::snapshot::SEED_SIZE;
use super::terms::Term;
use crate::code::{
    Allocation, CallForm, CodeKind, ColdForm, Convention, Entry, FrameSet, MAX_PUSHES, Release,
    ReturnForm, SaveArea, TailCallForm, UnwindData,
};
use crate::profiling::CallbackKind;
use crate::runtime::MethodKind;
use crate::runtime::code::StubKind;
use crate::runtime::{ContextSafety, FrameKind, Funclet, Pass, ProfilerStatus, ThreadLife};
use crate::stubs::Hooks;
use clr_walker::unwind::{Rules, Trust};

/// The longest text that is read, in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// The deepest nesting of blocks that is read: more than a valid program needs.
pub(super) const MAX_BLOCKS: u32 = 16;

/// The most nodes that a stack placed by hand has.
pub(super) const MAX_STACK_NODES: usize = 4096;

/// The most words that are written over a stack placed by hand.
pub(super) const MAX_WORDS: u32 = 4096;

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that is defined here.
    Name,
    /// The name of a function.
    Function,
    /// The name of a function, or of one of the runtime's.
    Code,
    /// The name of a thread.
    Thread,
    /// A whole number between these two.
    Number(u64, u64),
    /// `#true` or `#false`.
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
    /// An integer register.
    Gpr,
    /// An integer register, or `none` where a slot stays free.
    Slot,
    /// An integer or a vector register.
    Register,
    /// An integer register, or `all` for the nonvolatile ones.
    Saved,
    /// A word that others look for: letters, digits and `-`.
    Tag,
    /// A place in a function: `App.Foo+0x40`.
    Label,
    /// The same, or an address.
    Address,
    /// Names of generations and of sets of them, with blanks between them.
    Generations,
    /// A thread that calls.
    Caller,
    /// The `thread` of a call.
    Target,
    /// What a seed is made from.
    Seed,
    /// The name of an HRESULT, or its number.
    HResult,
    /// The same, or another way to end.
    Outcome,
    /// ContextFlags, or the word `own`.
    Flags,
    /// The number of a clause: `C-014`.
    Clause,
}

/// The arguments of a node, all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Args {
    /// None.
    None,
    /// Exactly one.
    One(Kind),
    /// One that may be left out.
    Optional(Kind),
    /// As many as wanted, up to a limit.
    Many(Kind, usize),
}

/// A property of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PropertyRule {
    /// Its name.
    pub(super) name: &'static str,
    /// What its value may be.
    pub(super) kind: Kind,
    /// Whether it must be there.
    pub(super) required: bool,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRule {
    /// Its name.
    pub(super) name: &'static str,
    /// Its arguments.
    pub(super) args: Args,
    /// Its properties.
    pub(super) properties: &'static [PropertyRule],
    /// What stands in its block, if it has one.
    pub(super) block: Option<Level>,
    /// Whether it stands at most once in a block.
    pub(super) once: bool,
}

/// Where nodes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    /// In no block.
    Text,
    /// In the block of a function.
    Function,
    /// In a body, or in the block of a statement.
    Body,
    /// In the block of a stop.
    Stop,
    /// In the block of an expectation.
    Expect,
    /// In the block of a stack placed by hand.
    Stack,
    /// In the block of a row of it.
    Row,
    /// In the block of a snapshot.
    Snapshot,
    /// In the block of a seed.
    Seed,
    /// In the block of an expectation of a snapshot.
    Report,
}

impl Level {
    /// All levels, outermost first.
    #[cfg(test)]
    pub(super) const ALL: [Self; 10] = [
        Self::Text,
        Self::Function,
        Self::Body,
        Self::Stop,
        Self::Expect,
        Self::Stack,
        Self::Row,
        Self::Snapshot,
        Self::Seed,
        Self::Report,
    ];

    /// The nodes that may stand there.
    #[must_use]
    pub(super) const fn nodes(self) -> &'static [NodeRule] {
        match self {
            Self::Text => TEXT,
            Self::Function => FUNCTION,
            Self::Body => BODY,
            Self::Stop => STOP,
            Self::Expect => EXPECT,
            Self::Stack => STACK,
            Self::Row => ROW,
            Self::Snapshot => SNAPSHOT,
            Self::Seed => SEED,
            Self::Report => REPORT,
        }
    }

    /// Where it is, for messages.
    pub(super) const fn place(self) -> &'static str {
        match self {
            Self::Text => "at the outermost level",
            Self::Function => "in a function",
            Self::Body => "in a body",
            Self::Stop => "in a stop",
            Self::Expect => "in an expectation",
            Self::Stack => "in a stack",
            Self::Row => "in a row of a stack",
            Self::Snapshot => "in a snapshot",
            Self::Seed => "in a seed",
            Self::Report => "in the expectation of a snapshot",
        }
    }
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
/// More than there are registers to name once.
const MANY: usize = 64;

const ON: PropertyRule = property("on", Kind::Generations);
const WALK: Kind = Kind::Word(&["continue", "none"]);
const FROM: Kind = Kind::Word(&["source", "documentation", "observed"]);

/// It stands in texts of stacks at the outermost level, and in stops.
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

/// Where another thread stands.
const PLACE: &[PropertyRule] = &[
    property("after", ANY_U64),
    property("at", Kind::Code),
    property("callback", Kind::Word(CallbackKind::WORDS)),
    property("hook", Kind::Number(1, u32::MAX as u64)),
    property("instruction", ANY_U32),
    property("visit", Kind::Number(1, u32::MAX as u64)),
];

static TEXT: &[NodeRule] = &[
    node("shows", Args::One(Kind::Name)).once(),
    node("tag", Args::Many(Kind::Tag, MANY)).once(),
    node("convention", Args::One(Kind::Word(Convention::WORDS))).once(),
    node("hooks", Args::One(Kind::Word(Hooks::WORDS))).once(),
    node("function", Args::One(Kind::Name))
        .with(&[
            property("kind", Kind::Word(CodeKind::WORDS)),
            property("method", Kind::Word(MethodKind::WORDS)),
        ])
        .block(Level::Function),
    node("interrupt", Args::None)
        .with(&[required("after", ANY_U64), required("handler", Kind::Function)]),
    node("thread", Args::One(Kind::Name)).with(&[property("start", Kind::Function)]),
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
];

static FUNCTION: &[NodeRule] = &[
    node("entry", Args::One(Kind::Word(Entry::WORDS))).once(),
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
    node("body", Args::None).block(Level::Body).once(),
    node("return", RETURN).once(),
    node("tail-call", Args::One(Kind::Function)).with(TAIL_CALL).once(),
    node("no-end", Args::None).once(),
];

static BODY: &[NodeRule] = &[
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
    node("collect", Args::None),
    node("new-with-gc", Args::None),
    node("new", Args::None),
    node("new-fast", Args::None),
    node("write-barrier", Args::None),
    node("raise", Args::None),
    node("rethrow", Args::None),
    node("null-dereference", Args::None),
];

static STOP: &[NodeRule] = &[
    node("expect", Args::None)
        .with(&[
            property("rules", Kind::Word(Rules::WORDS)),
            property("ends", Kind::Word(WalkEnd::WORDS)),
        ])
        .block(Level::Expect),
    node("other", Args::One(Kind::Thread)).with(PLACE),
    SNAPSHOT_NODE,
];

static EXPECT: &[NodeRule] = &[node("frame", Args::Optional(Kind::Function)).with(&[
    property("trust", Kind::Word(Trust::WORDS)),
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
])];

/// A row of a stack.
const fn row(name: &'static str) -> NodeRule {
    const PROPERTIES: &[PropertyRule] = &[
        ON,
        required("rsp", ANY_U64),
        property("funclet", Kind::Word(Funclet::WORDS)),
        property("gs-cookie", ANY_U32),
    ];
    node(name, Args::One(Kind::Label)).with(PROPERTIES).block(Level::Row)
}

/// Something that a stack has or has not.
const fn mark(name: &'static str) -> NodeRule {
    node(name, Args::None).with(&[ON])
}

/// Something that a stack has one of.
const fn field(name: &'static str, kind: Kind) -> NodeRule {
    node(name, Args::One(kind)).with(&[ON])
}

static STACK: &[NodeRule] = &[
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

static ROW: &[NodeRule] = &[node("saves", Args::Many(Kind::Saved, MANY)).once()];

static SNAPSHOT: &[NodeRule] = &[
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

static SEED: &[NodeRule] = &[
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

/// What a callback of a snapshot may have.
const SHOT: &[PropertyRule] = &[
    property("stale", Kind::Flag),
    property("context-flags", Kind::Flags),
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
];

static REPORT: &[NodeRule] = &[
    node("frame", Args::One(Kind::Name)).with(SHOT),
    node("marker", Args::Optional(Kind::Name)).with(SHOT),
    node("nested", Args::One(Kind::Outcome))
        .with(&[property("code", Kind::HResult), property("at", ANY_U64)]),
    node("result", Args::One(Kind::Outcome))
        .with(&[property("code", Kind::HResult), property("at", ANY_U64)])
        .once(),
    node("clause", Args::Many(Kind::Clause, MANY)),
];

const _: () = assert!(MANY >= MAX_PUSHES, "as many as a function may push");
