//! The grammar as tables: which nodes stand where, with which arguments and properties. The reader
//! and the tests of the grammar's document know no other names.

use super::expect::WalkEnd;
use super::terms::Term;
use crate::code::{
    Allocation, CallForm, CodeKind, ColdForm, Convention, Entry, FrameSet, MAX_PUSHES, Release,
    ReturnForm, SaveArea, TailCallForm, UnwindData,
};
use clr_walker::unwind::{Rules, Trust};

/// The longest text that is read, in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// The deepest nesting of blocks that is read: more than a valid program needs.
pub(super) const MAX_BLOCKS: u32 = 16;

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that is defined here.
    Name,
    /// The name of a function.
    Function,
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
}

impl Level {
    /// All levels, outermost first.
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] =
        [Self::Text, Self::Function, Self::Body, Self::Stop, Self::Expect];

    /// The nodes that may stand there.
    #[must_use]
    pub(super) const fn nodes(self) -> &'static [NodeRule] {
        match self {
            Self::Text => TEXT,
            Self::Function => FUNCTION,
            Self::Body => BODY,
            Self::Stop => STOP,
            Self::Expect => EXPECT,
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

static TEXT: &[NodeRule] = &[
    node("convention", Args::One(Kind::Word(Convention::WORDS))).once(),
    node("function", Args::One(Kind::Name))
        .with(&[property("kind", Kind::Word(CodeKind::WORDS))])
        .block(Level::Function),
    node("interrupt", Args::None)
        .with(&[required("after", ANY_U64), required("handler", Kind::Function)]),
    node("thread", Args::One(Kind::Name)).with(&[property("start", Kind::Function)]),
    node("stop", Args::Optional(Kind::Word(&["end"])))
        .with(&[
            property("thread", Kind::Thread),
            property("after", ANY_U64),
            property("at", Kind::Function),
            property("instruction", ANY_U32),
            property("visit", Kind::Number(1, u32::MAX as u64)),
        ])
        .block(Level::Stop),
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
    node("throw", Args::None),
    node("trap", Args::One(Kind::Function)),
    node("switch-stack", Args::One(Kind::Function)),
    node("stop", Args::None),
    node("p-invoke", Args::One(Kind::Function)),
    node("p-invoke-stub", Args::One(Kind::Function)),
    node("reverse-p-invoke", Args::One(Kind::Function)),
    node("first-call", Args::One(Kind::Function)),
    node("new", Args::None),
    node("new-fast", Args::None),
    node("write-barrier", Args::None),
];

static STOP: &[NodeRule] = &[node("expect", Args::None)
    .with(&[
        property("rules", Kind::Word(Rules::WORDS)),
        property("ends", Kind::Word(WalkEnd::WORDS)),
    ])
    .block(Level::Expect)];

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

const _: () = assert!(MANY >= MAX_PUSHES, "as many as a function may push");
