//! Parsing of stacks placed by hand.

use super::fit::StackPlaces;
use super::node::{Fields, Value};
use super::reader::Reader;
use crate::grammar::Level;
use crate::hand_stack::{PlacedItem, PlacedThread, StackNode, SuspensionState};
use crate::problem::ProblemKind;
use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::{FrameShape, LazyFields};
use clr_runtime::{ExceptionTracker, FrameKind, MethodKind, RunningFunclet};
use clr_world::synthetic::{CodeLocation, SyntheticActivation, SyntheticFrame};

impl Reader {
    pub(super) fn stack(
        &mut self,
        fields: &Fields<'_>,
        places: &mut StackPlaces,
    ) -> Vec<PlacedItem> {
        places.stack = fields.span();
        let mut items = Vec::new();
        for node in self.nodes(fields.children(), Level::Stack) {
            // The problem of an item with wrong parts was reported already.
            if let Some(item) = self.item(&node) {
                items.push(PlacedItem { on: node.on(), node: item });
                places.items.push((node.rule.name, node.span()));
            }
        }
        items
    }

    fn item(&mut self, node: &Fields<'_>) -> Option<StackNode> {
        let number = || node.arg_number::<u64>();
        Some(match node.rule.name {
            "mode" => StackNode::Mode(node.arg_word()?),
            "frame" => StackNode::Frame(self.frame(node)?),
            "exception" => StackNode::Exception(self.exception(node)?),
            "inconsistent-exceptions" => StackNode::InconsistentExceptions,
            "bounds" => {
                StackNode::Bounds { limit: node.number("limit")?, base: node.number("base")? }
            }
            "safety" => StackNode::Safety(node.arg_word()?),
            "life" => StackNode::Life(node.arg_word()?),
            "forbid-suspend" => StackNode::ForbidSuspend(node.arg_number()),
            "hijack-locked" => StackNode::HijackLocked,
            "gc-special" => StackNode::GcSpecial,
            "resists-suspension" => StackNode::ResistsSuspension,
            "leaves-cooperative-mode" => StackNode::LeavesCooperativeMode,
            "debugger-context" => StackNode::DebuggerContext,
            "hijacked" => StackNode::Hijacked(node.arg_text().to_owned()),
            "stub" => StackNode::Stub(node.arg_text().to_owned(), node.term::<StubKind>("kind")?),
            "block" => StackNode::Block { at: number(), size: node.number("size")? },
            "word" => StackNode::Word {
                at: number(),
                value: node.number("value")?,
                count: node.number("count").unwrap_or(1),
            },
            "profiler" => StackNode::Profiler(node.arg_word()?),
            "attached" => StackNode::Attached,
            "event-mask" => StackNode::EventMask(node.arg_number()),
            "not-started" => StackNode::NotStarted,
            "no-gc" => StackNode::NoGc,
            "suspension" => {
                let by = node.term::<PlacedThread>("by").unwrap_or_default();
                StackNode::Suspension(node.arg_word::<SuspensionState>()?, by)
            }
            "suspended-by-profiler" => StackNode::SuspendedByProfiler,
            "code-manager-writer" => StackNode::CodeManagerWriter(node.arg_word()?),
            "gs-cookie" => StackNode::GsCookie(number()),
            _ => self.activation(node)?,
        })
    }

    fn activation(&mut self, node: &Fields<'_>) -> Option<StackNode> {
        let saves = self.nodes(node.children(), Level::Activation);
        let saves = saves.first();
        let saves_all = saves.is_some_and(|saves| saves.args.contains(&Value::All));
        let registers = saves.map(Fields::arg_gprs).unwrap_or_default();
        if let Some(saves) = saves.filter(|_| saves_all && !registers.is_empty()) {
            self.problem(saves.span(), ProblemKind::Excluded("all", "registers"));
        }
        let (place, kind) = match node.rule.name {
            "jit" => (CodeLocation::Heap, MethodKind::Ordinary),
            "ready-to-run" => (CodeLocation::ReadyToRun, MethodKind::Ordinary),
            "il-stub" => (CodeLocation::Heap, MethodKind::IlStub),
            "dynamic" => (CodeLocation::Heap, MethodKind::Dynamic),
            "exception-handling" => (CodeLocation::ReadyToRun, MethodKind::ExceptionHandling),
            _ => (CodeLocation::Native, MethodKind::Ordinary),
        };
        let Some(Value::Label(function, offset)) = node.args.first() else { return None };
        let activation = SyntheticActivation {
            function: function.clone(),
            offset: *offset,
            place,
            kind,
            sp: node.number("rsp")?,
            saves: registers,
            funclet: node.term("funclet"),
            leaf: node.rule.name == "leaf",
            gs_cookie: node.number("gs-cookie"),
        };
        Some(StackNode::Activation { activation, saves_all })
    }

    fn frame(&mut self, node: &Fields<'_>) -> Option<SyntheticFrame> {
        let captured = node.text("captured-in").map(str::to_owned);
        for (property, written) in [("fcall-entry", "fcall-entry="), ("attributes", "attributes=")]
        {
            if node.is_written(property) && !node.is_written("captured-in") {
                self.problem(node.span(), ProblemKind::Without(written, "captured-in="));
            }
        }
        let kind = node.arg_word::<FrameKind>()?;
        if captured.is_some() && kind.shape() != FrameShape::HelperMethod {
            self.problem(node.span(), ProblemKind::Excluded("captured-in=", kind.name()));
        }
        let fields = LazyFields {
            fcall_entry: node.number("fcall-entry").unwrap_or_default(),
            attributes: node.number("attributes").unwrap_or_default(),
        };
        Some(SyntheticFrame {
            kind,
            at: node.number("at")?,
            leads_to: node.text("to").map(str::to_owned),
            method: node.text("method").map(str::to_owned),
            captured_in: captured.map(|function| (function, fields)),
            context_flags: node.number("context-flags").unwrap_or_default(),
        })
    }

    fn exception(&mut self, node: &Fields<'_>) -> Option<ExceptionTracker> {
        for (one, other) in [
            (("unwound-above", "unwound-above="), ("unwound-to", "unwound-to=")),
            (("unwound-to", "unwound-to="), ("unwound-above", "unwound-above=")),
            (("parent", "parent="), ("handler", "handler=")),
        ] {
            if node.is_written(one.0) && !node.is_written(other.0) {
                self.problem(node.span(), ProblemKind::Without(one.1, other.1));
            }
        }
        let funclet = node
            .number("handler")
            .map(|caller_sp| RunningFunclet { caller_sp, parent_caller_sp: node.number("parent") });
        Some(ExceptionTracker {
            pass: node.arg_word()?,
            entered_managed_code: node.flag("entered-managed-code").unwrap_or_default(),
            unwound: node.number("unwound-above").zip(node.number("unwound-to")),
            funclet,
        })
    }
}
