//! Printing of stacks placed by hand.

use super::{Line, Printer, quoted, size};
use crate::hand_stack::{PlacedItem, PlacedStack, PlacedThread, StackNode};
use crate::keywords::Keyword;
use crate::parse::ALL_SAVED;
use clr_runtime::generation::Generations;
use clr_runtime::{ExceptionTracker, MethodKind};
use clr_world::synthetic::{CodeLocation, SyntheticActivation, SyntheticFrame};

impl Line {
    /// Adds `on=`, unless the generations are all.
    pub(super) fn on(self, on: Generations) -> Self {
        if on == Generations::ALL { self } else { self.property("on", quoted(&on.to_string())) }
    }

    /// Adds an address, always in hexadecimal.
    pub(super) fn address(self, name: &str, value: u64) -> Self {
        self.property(name, format_args!("{value:#x}"))
    }

    /// Adds a property if there is a value.
    fn some_text(self, name: &str, value: Option<&String>) -> Self {
        match value {
            Some(value) => self.property(name, quoted(value)),
            None => self,
        }
    }
}

impl Printer<'_> {
    pub(super) fn stack(&mut self, stack: &PlacedStack) {
        self.blank();
        self.whole_block(&Line::new("stack"), |printer| {
            for item in &stack.items {
                printer.item(item);
            }
        });
        for snapshot in &stack.snapshots {
            self.blank();
            self.snapshot(snapshot);
        }
        for walk in &stack.mixed_walks {
            self.blank();
            self.mixed_walk(walk);
        }
    }

    fn item(&mut self, item: &PlacedItem) {
        let on = |line: Line| line.on(item.on);
        let new = Line::new;
        let line = match &item.node {
            StackNode::Activation { activation, saves_all } => {
                return self.activation(activation, *saves_all, item.on);
            }
            StackNode::Frame(frame) => on(placed_frame(frame)),
            StackNode::Mode(mode) => on(new("mode").term(*mode)),
            StackNode::Bounds { limit, base } => {
                on(new("bounds").address("limit", *limit).address("base", *base))
            }
            StackNode::Safety(safety) => on(new("safety").term(*safety)),
            StackNode::Exception(tracker) => on(exception(tracker)),
            StackNode::InconsistentExceptions => on(new("inconsistent-exceptions")),
            StackNode::ForbidSuspend(count) => on(new("forbid-suspend").arg(count)),
            StackNode::HijackLocked => on(new("hijack-locked")),
            StackNode::GcSpecial => on(new("gc-special")),
            StackNode::Life(life) => on(new("life").term(*life)),
            StackNode::ResistsSuspension => on(new("resists-suspension")),
            StackNode::LeavesCooperativeMode => on(new("leaves-cooperative-mode")),
            StackNode::DebuggerContext => on(new("debugger-context")),
            StackNode::Hijacked(function) => on(new("hijacked").text(function)),
            StackNode::Stub(name, kind) => {
                on(new("stub").text(name).property("kind", quoted(kind.word())))
            }
            StackNode::Block { at, size } => {
                on(new("block").arg(format_args!("{at:#x}")).address("size", *size))
            }
            StackNode::Word { at, value, count } => {
                let line = new("word").arg(format_args!("{at:#x}")).address("value", *value);
                on(if *count == 1 { line } else { line.property("count", count) })
            }
            StackNode::Profiler(status) => on(new("profiler").term(*status)),
            StackNode::Attached => on(new("attached")),
            StackNode::EventMask(mask) => on(new("event-mask").arg(size(u64::from(*mask)))),
            StackNode::NotStarted => on(new("not-started")),
            StackNode::NoGc => on(new("no-gc")),
            StackNode::Suspension(state, by) => {
                let line = new("suspension").term(*state);
                let other = *by == PlacedThread::default();
                on(if other { line } else { line.property("by", quoted(by.word())) })
            }
            StackNode::SuspendedByProfiler => on(new("suspended-by-profiler")),
            StackNode::CodeManagerWriter(thread) => on(new("code-manager-writer").term(*thread)),
            StackNode::GsCookie(cookie) => on(new("gs-cookie").arg(format_args!("{cookie:#x}"))),
        };
        self.line(&line);
    }

    fn activation(&mut self, activation: &SyntheticActivation, saves_all: bool, on: Generations) {
        let label = format!("{}+{:#x}", activation.function, activation.offset);
        let mut line =
            Line::new(row_node(activation)).text(&label).address("rsp", activation.sp).on(on);
        if let Some(funclet) = activation.funclet {
            line = line.property("funclet", quoted(funclet.word()));
        }
        if let Some(below) = activation.gs_cookie {
            line = line.property("gs-cookie", size(u64::from(below)));
        }
        let saves = if saves_all {
            Line::new("saves").text(ALL_SAVED)
        } else {
            Line::new("saves").gprs(&activation.saves)
        };
        self.block(&line, |printer| {
            if saves_all || !activation.saves.is_empty() {
                printer.line(&saves);
            }
        });
    }
}

/// Returns the node name of an activation on a stack placed by hand.
const fn row_node(activation: &SyntheticActivation) -> &'static str {
    match (activation.place, activation.kind, activation.leaf) {
        (CodeLocation::Native, _, true) => "leaf",
        (CodeLocation::Native, ..) => "native",
        (_, MethodKind::ExceptionHandling, _) => "exception-handling",
        (CodeLocation::ReadyToRun, ..) => "ready-to-run",
        (CodeLocation::Heap, MethodKind::IlStub, _) => "il-stub",
        (CodeLocation::Heap, MethodKind::Dynamic, _) => "dynamic",
        (CodeLocation::Heap, ..) => "jit",
    }
}

fn placed_frame(frame: &SyntheticFrame) -> Line {
    let captured = frame.captured_in.as_ref();
    let mut line = Line::new("frame")
        .term(frame.kind)
        .address("at", frame.at)
        .some_text("to", frame.leads_to.as_ref())
        .some_text("method", frame.method.as_ref())
        .some_text("captured-in", captured.map(|(function, _)| function));
    if let Some((_, fields)) = captured {
        if fields.fcall_entry != 0 {
            line = line.address("fcall-entry", fields.fcall_entry);
        }
        if fields.attributes != 0 {
            line = line.address("attributes", fields.attributes.into());
        }
    }
    if frame.context_flags != 0 {
        line = line.address("context-flags", frame.context_flags.into());
    }
    line
}

fn exception(tracker: &ExceptionTracker) -> Line {
    let mut line = Line::new("exception").term(tracker.pass);
    if tracker.entered_managed_code {
        line = line.property("entered-managed-code", "#true");
    }
    if let Some((above, to)) = tracker.unwound {
        line = line.address("unwound-above", above).address("unwound-to", to);
    }
    if let Some(funclet) = tracker.funclet {
        line = line.address("handler", funclet.caller_sp);
        if let Some(parent) = funclet.parent_caller_sp {
            line = line.address("parent", parent);
        }
    }
    line
}
