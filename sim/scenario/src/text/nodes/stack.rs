//! The nodes of stacks placed by hand. Each can be on some generations only.

use crate::model::{PlacedItem, StackNode, SuspensionState};
use crate::text::codec::{Codec, Data, HEX32, HEX64, Item, Label, MANY, SIZE32, between, nodes};
use crate::text::grammar::{Kind, Level, MAX_WORDS};
use crate::text::keywords::{ALL_SAVED, Keyword as _, SAVED};
use crate::text::problem::ProblemKind;
use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::FrameShape;
use clr_runtime::generation::Generations;
use clr_runtime::{ExceptionTracker, FrameKind, MethodKind, Pass, RunningFunclet};
use clr_unwind::Gpr;
use clr_world::synthetic::{CodeLocation, SyntheticActivation, SyntheticFrame};
use std::sync::LazyLock;

const ACTIVATION: SyntheticActivation = SyntheticActivation {
    function: String::new(),
    offset: 0,
    place: CodeLocation::Heap,
    kind: MethodKind::Ordinary,
    sp: 0,
    saves: Vec::new(),
    funclet: None,
    leaf: false,
    gs_cookie: None,
};

const FRAME: SyntheticFrame = SyntheticFrame {
    kind: FrameKind::ALL[0],
    at: 0,
    leads_to: None,
    method: None,
    captured_in: None,
    context_flags: 0,
};

const EXCEPTION: ExceptionTracker = ExceptionTracker {
    pass: Pass::First,
    entered_managed_code: false,
    unwound: None,
    funclet: None,
};

nodes! {
    fn node(stack: StackNode, c, on: Generations), fn blanks;
    Mode(mode) => field("mode", mode, on, c),
    Activation { activation = ACTIVATION, saves_all } => rows(activation, saves_all, on, c),
    Frame(placed = FRAME) => c.node("frame", |c| {
        frame(placed, c);
        c.on(on);
    }),
    Exception(tracker = EXCEPTION) => c.node("exception", |c| {
        exception(tracker, c);
        c.on(on);
    }),
    InconsistentExceptions => mark("inconsistent-exceptions", on, c),
    Bounds { limit, base } => c.node("bounds", |c| {
        c.required_of("limit", HEX64, limit);
        c.required_of("base", HEX64, base);
        c.on(on);
    }),
    Safety(safety) => field("safety", safety, on, c),
    Life(life) => field("life", life, on, c),
    ForbidSuspend(count) => field("forbid-suspend", count, on, c),
    HijackLocked => mark("hijack-locked", on, c),
    GcSpecial => mark("gc-special", on, c),
    ResistsSuspension => mark("resists-suspension", on, c),
    LeavesCooperativeMode => mark("leaves-cooperative-mode", on, c),
    DebuggerContext => mark("debugger-context", on, c),
    Hijacked(function) => field("hijacked", function, on, c),
    Stub(name, kind = StubKind::JumpStub) => c.node("stub", |c| {
        c.arg(name);
        c.required("kind", kind);
        c.on(on);
    }),
    Block { at, size } => c.node("block", |c| {
        c.arg_of(HEX64, at);
        c.required_of("size", HEX64, size);
        c.on(on);
    }),
    Word { at, value, count = 1 } => c.node("word", |c| {
        c.arg_of(HEX64, at);
        c.required_of("value", HEX64, value);
        c.or_of("count", between(1, MAX_WORDS.into()), count, &1);
        c.on(on);
    }),
    Profiler(status) => field("profiler", status, on, c),
    Attached => mark("attached", on, c),
    EventMask(mask) => field_of("event-mask", SIZE32, mask, on, c),
    NotStarted => mark("not-started", on, c),
    NoGc => mark("no-gc", on, c),
    Suspension(state = SuspensionState::Suspending, by) => c.node("suspension", |c| {
        c.arg(state);
        c.with("by", by);
        c.on(on);
    }),
    SuspendedByProfiler => mark("suspended-by-profiler", on, c),
    CodeManagerWriter(thread) => field("code-manager-writer", thread, on, c),
    GsCookie(cookie) => field_of("gs-cookie", HEX64, cookie, on, c),
}

/// A node without arguments that sets a flag of the stack.
fn mark(name: &'static str, on: &mut Generations, c: &mut Codec<'_>) {
    c.node(name, |c| c.on(on));
}

/// A node with one argument that sets a value of the stack.
fn field<T: Data>(name: &'static str, value: &mut T, on: &mut Generations, c: &mut Codec<'_>) {
    field_of(name, T::KIND, value, on, c);
}

fn field_of<T: Data>(
    name: &'static str,
    kind: Kind,
    value: &mut T,
    on: &mut Generations,
    c: &mut Codec<'_>,
) {
    c.node(name, |c| {
        c.arg_of(kind, value);
        c.on(on);
    });
}

/// The node names of activations, with the location and kind of the code, and whether it is a leaf.
const ROWS: [(&str, CodeLocation, MethodKind, bool); 7] = [
    ("jit", CodeLocation::Heap, MethodKind::Ordinary, false),
    ("ready-to-run", CodeLocation::ReadyToRun, MethodKind::Ordinary, false),
    ("il-stub", CodeLocation::Heap, MethodKind::IlStub, false),
    ("dynamic", CodeLocation::Heap, MethodKind::Dynamic, false),
    ("exception-handling", CodeLocation::ReadyToRun, MethodKind::ExceptionHandling, false),
    ("native", CodeLocation::Native, MethodKind::Ordinary, false),
    ("leaf", CodeLocation::Native, MethodKind::Ordinary, true),
];

fn rows(
    activation: &mut SyntheticActivation,
    saves_all: &mut bool,
    on: &mut Generations,
    c: &mut Codec<'_>,
) {
    for (name, place, kind, leaf) in ROWS {
        let is_it = (activation.place, activation.kind, activation.leaf) == (place, kind, leaf);
        c.node_if(name, is_it, |c| {
            (activation.place, activation.kind, activation.leaf) = (place, kind, leaf);
            let mut label = Label {
                function: core::mem::take(&mut activation.function),
                offset: activation.offset,
            };
            c.arg(&mut label);
            (activation.function, activation.offset) = (label.function, label.offset);
            c.required_of("rsp", HEX64, &mut activation.sp);
            c.on(on);
            c.with("funclet", &mut activation.funclet);
            c.with_of("gs-cookie", SIZE32, &mut activation.gs_cookie);
            c.block(Level::Activation, |c| saves(&mut activation.saves, saves_all, c));
        });
    }
}

fn saves(registers: &mut Vec<Gpr>, all: &mut bool, c: &mut Codec<'_>) {
    let mut words: Vec<_> = registers.iter().map(|register| register.word()).collect();
    if *all {
        words = vec![ALL_SAVED];
    }
    c.once("saves", !words.is_empty(), |c| {
        c.args_of(Kind::Word(SAVED), MANY, &mut words);
        let is_all = words.contains(&ALL_SAVED);
        let is_wrong = is_all && words.iter().any(|word| *word != ALL_SAVED);
        c.refuse(is_wrong, ProblemKind::Excluded("all", "registers"));
    });
    *all = words.contains(&ALL_SAVED);
    *registers = words.iter().filter_map(|word| Gpr::from_word(word)).collect();
}

fn frame(frame: &mut SyntheticFrame, c: &mut Codec<'_>) {
    let is_valid = c.has_argument();
    c.arg(&mut frame.kind);
    c.required_of("at", HEX64, &mut frame.at);
    c.with("to", &mut frame.leads_to);
    c.with("method", &mut frame.method);
    let (mut captured, mut fields) = frame.captured_in.take().unzip();
    c.with("captured-in", &mut captured);
    let parts = fields.get_or_insert_default();
    c.with_of("fcall-entry", HEX64, &mut parts.fcall_entry);
    c.with_of("attributes", HEX32, &mut parts.attributes);
    c.needs("fcall-entry=", "captured-in=");
    c.needs("attributes=", "captured-in=");
    let is_wrong = is_valid && captured.is_some() && frame.kind.shape() != FrameShape::HelperMethod;
    c.refuse(is_wrong, ProblemKind::Excluded("captured-in=", frame.kind.name()));
    frame.captured_in = captured.zip(fields);
    c.with_of("context-flags", HEX32, &mut frame.context_flags);
}

fn exception(tracker: &mut ExceptionTracker, c: &mut Codec<'_>) {
    c.arg(&mut tracker.pass);
    c.with("entered-managed-code", &mut tracker.entered_managed_code);
    let (mut above, mut to) = tracker.unwound.unzip();
    let mut handler = tracker.funclet.map(|funclet| funclet.caller_sp);
    let mut parent = tracker.funclet.and_then(|funclet| funclet.parent_caller_sp);
    c.with_of("unwound-above", HEX64, &mut above);
    c.with_of("unwound-to", HEX64, &mut to);
    c.with_of("handler", HEX64, &mut handler);
    c.with_of("parent", HEX64, &mut parent);
    c.needs("unwound-above=", "unwound-to=");
    c.needs("unwound-to=", "unwound-above=");
    c.needs("parent=", "handler=");
    tracker.unwound = above.zip(to);
    let funclet = |caller_sp| RunningFunclet { caller_sp, parent_caller_sp: parent };
    tracker.funclet = handler.map(funclet);
}

impl Item for PlacedItem {
    fn blanks() -> &'static [Self] {
        static BLANKS: LazyLock<Vec<PlacedItem>> = LazyLock::new(|| {
            let blanks = blanks().into_iter();
            blanks.map(|node| PlacedItem { on: Generations::ALL, node }).collect()
        });
        &BLANKS
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        node(&mut self.node, c, &mut self.on);
    }
}
