//! The nodes of texts: a codec for each. A new node or property is added here and nowhere else.

mod body;
mod coverage;
mod export;
mod function;
mod history;
mod mixed;
mod modules;
mod profiler;
mod snapshot;
mod stack;
mod stop;

pub(crate) use function::ENDS;
pub(crate) use history::expected_history;
pub(crate) use mixed::expected_mixed;
pub(crate) use snapshot::expected;
pub(crate) use stop::expectation;

use crate::model::MixedWalk;
use crate::model::SnapshotCall;
use crate::model::{Exploration, ProfilerScript};
use crate::text::codec::{Blank, Codec};
use crate::text::grammar::{Kind, Level, Style};
use crate::{PlacedStack, Scenario, ScenarioThread, Stop, StopAt};
use clr_codegen::{FunctionIndex, Interrupt, MAX_SIGNAL_STACK};
use clr_runtime::metadata::ModuleNames;
use clr_runtime::profiling::Policy;

/// A text: the nodes outside all blocks.
pub(crate) fn text(text: &mut Scenario, c: &mut Codec<'_>) {
    c.setting("shows", &mut text.about.shows);
    c.words("tag", Kind::Tag, &mut text.about.tags);
    c.each("module", &mut text.modules, &ModuleNames::default(), modules::module);
    c.setting("convention", &mut text.program.convention);
    let size = Kind::Number(0, MAX_SIGNAL_STACK.into(), Style::Size);
    c.setting_of("signal-stack", size, &mut text.program.signal_stack);
    c.setting("hooks", &mut text.hooks);
    c.setting("stop-threads", &mut text.stop_by);
    c.each("buffer", &mut text.buffers, &export::blank(), export::buffer);
    c.blank(Blank::Each);
    function::functions(text, c);
    c.blank(Blank::Once);
    let blank = Interrupt { after: 0, handler: FunctionIndex(0) };
    c.each("interrupt", &mut text.program.interrupts, &blank, |interrupt, c| {
        c.required("after", &mut interrupt.after);
        c.required("handler", &mut interrupt.handler);
    });
    c.blank(Blank::Once);
    if text.threads == [ScenarioThread::main()] {
        text.threads.clear();
    }
    c.each("thread", &mut text.threads, &ScenarioThread::main(), thread);
    c.blank(Blank::Each);
    let blank = Stop {
        thread: 0,
        at: StopAt::End,
        expect: Vec::new(),
        others: Vec::new(),
        snapshots: Vec::new(),
        mixed_walks: Vec::new(),
    };
    c.each("stop", &mut text.stops, &blank, stop::stop);
    stack(&mut text.stack, c);
    c.maybe("profiler", &mut text.profiler, &ProfilerScript::default(), profiler::profiler);
    coverage::coverage(&mut text.coverage, c);
    c.each("explore", &mut text.explore, &Exploration::default(), history::explore);
}

/// A stack placed by hand, and the calls that are made on it. The calls are read without a stack,
/// too: their place is checked later.
fn stack(stack: &mut Option<PlacedStack>, c: &mut Codec<'_>) {
    let mut is_placed = stack.is_some();
    let mut placed = stack.take().unwrap_or_default();
    c.once("stack", is_placed, |c| {
        is_placed = true;
        c.whole_block(Level::Stack, |c| c.items(&mut placed.items));
    });
    calls(&mut placed.snapshots, &mut placed.mixed_walks, c);
    *stack = is_placed.then_some(placed);
}

/// The calls on a stack, or where a thread stops.
fn calls(snapshots: &mut Vec<SnapshotCall>, walks: &mut Vec<MixedWalk>, c: &mut Codec<'_>) {
    c.each("snapshot", snapshots, &SnapshotCall::default(), snapshot::snapshot);
    c.each("mixed-walk", walks, &MixedWalk::new(Policy::Seeded), mixed::mixed_walk);
}

fn thread(thread: &mut ScenarioThread, c: &mut Codec<'_>) {
    c.arg(&mut thread.name);
    c.with("start", &mut thread.start);
    c.with("by-program", &mut thread.by_program);
    c.with("pool", &mut thread.pool);
    c.with("finalizer", &mut thread.finalizer);
    c.with("tiering", &mut thread.tiering);
    c.with("gc", &mut thread.gc);
    c.with("exits", &mut thread.exits);
}
