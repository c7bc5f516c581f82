//! The canonical text of a scenario: nodes in the grammar's order, without default values.

mod hand_stack;
mod histories;
mod mixed;
mod modules;
mod snapshot;

pub(super) use histories::expected_history_text;

use super::expect::{Expectation, ExpectedFrame, WalkEnd};
use super::keywords::{Keyword, XMM};
use super::mixed::ExpectedMixed;
use super::parse::FREE_SLOT;
use super::snapshot::ExpectedSnapshot;
use super::{Scenario, ScenarioThread, Stop, StopAt};
use clr_codegen::{
    CallingConvention, EhClause, EhClauseKind, Exit, Function, FunctionIndex, FunctionShape,
    ReturnForm, Statement, UnwindData,
};
use clr_walker::registers::Gpr;
use clr_walker::unwind::Rules;
use clr_world::StopBy;
use clr_world::stubs::Hooks;
use core::fmt::{self, Write as _};

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { scenario: self, out: String::new(), depth: 0 };
        printer.scenario();
        f.write_str(&printer.out)
    }
}

/// Prints the `expect` node of a snapshot as it appears at a depth of nested blocks, without the
/// indentation of its first line and the line break after its last one.
pub(super) fn expected_text(expected: &ExpectedSnapshot, depth: usize) -> String {
    let scenario = Scenario::default();
    let mut printer = Printer { scenario: &scenario, out: String::new(), depth };
    printer.expected(expected);
    printer.out.trim().to_owned()
}

/// Prints the `expect` node of a mixed walk, as [`expected_text`].
pub(super) fn expected_mixed_text(expected: &ExpectedMixed, depth: usize) -> String {
    let scenario = Scenario::default();
    let mut printer = Printer { scenario: &scenario, out: String::new(), depth };
    printer.expected_mixed(expected);
    printer.out.trim().to_owned()
}

/// Prints the `expect` node of a stop, as [`expected_text`].
pub(super) fn expectation_text(
    scenario: &Scenario,
    expectation: &Expectation,
    depth: usize,
) -> String {
    let mut printer = Printer { scenario, out: String::new(), depth };
    printer.expectation(expectation);
    printer.out.trim().to_owned()
}

struct Printer<'s> {
    scenario: &'s Scenario,
    out: String,
    depth: usize,
}

/// A node that is being printed to a line.
struct Line(String);

impl Line {
    fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn arg(mut self, value: impl fmt::Display) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {value}");
        self
    }

    fn text(self, value: &str) -> Self {
        self.arg(quoted(value))
    }

    fn term<T: Keyword>(self, value: T) -> Self {
        self.text(value.word())
    }

    fn property(mut self, name: &str, value: impl fmt::Display) -> Self {
        let _ = write!(self.0, " {name}={value}");
        self
    }

    fn term_unless_default<T: Keyword + Default>(self, name: &str, value: T) -> Self {
        if value == T::default() { self } else { self.property(name, quoted(value.word())) }
    }

    fn gprs(self, registers: &[Gpr]) -> Self {
        registers.iter().fold(self, |line, register| line.text(register.name()))
    }
}

/// Prints a size or an address: small values in decimal, which is easier to read.
fn size(value: u64) -> String {
    if value < 0x40 { value.to_string() } else { format!("{value:#x}") }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str(r"\\"),
            '\n' => quoted.push_str(r"\n"),
            '\r' => quoted.push_str(r"\r"),
            '\t' => quoted.push_str(r"\t"),
            ' ' => quoted.push(' '),
            c if c.is_alphanumeric() || c.is_ascii_punctuation() => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

fn xmm(number: u8) -> &'static str {
    XMM.get(usize::from(number)).copied().unwrap_or("xmm")
}

impl Printer<'_> {
    fn line(&mut self, line: &Line) {
        self.start(line);
        self.out.push('\n');
    }

    fn start(&mut self, line: &Line) {
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        self.out.push_str(&line.0);
    }

    /// Prints a node with its block, which is omitted if it is empty.
    fn block(&mut self, line: &Line, inner: impl FnOnce(&mut Self)) {
        self.start(line);
        let before = self.out.len();
        self.out.push_str(" {\n");
        let start = self.out.len();
        self.depth += 1;
        inner(self);
        self.depth -= 1;
        if self.out.len() == start {
            self.out.truncate(before);
            self.out.push('\n');
        } else {
            self.line(&Line::new("}"));
        }
    }

    /// Prints a node with its block, even if the block is empty.
    fn whole_block(&mut self, line: &Line, inner: impl FnOnce(&mut Self)) {
        self.start(line);
        self.out.push_str(" {\n");
        self.depth += 1;
        inner(self);
        self.depth -= 1;
        self.line(&Line::new("}"));
    }

    /// Prints a blank line between nodes of several lines.
    fn blank(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// Returns the name of a function in quotes; an empty name if the function does not exist.
    fn name(&self, function: FunctionIndex) -> String {
        quoted(self.scenario.function_name(function).unwrap_or_default())
    }

    fn scenario(&mut self) {
        let scenario = self.scenario;
        let program = &scenario.program;
        if let Some(shows) = &scenario.about.shows {
            self.line(&Line::new("shows").text(shows));
        }
        if !scenario.about.tags.is_empty() {
            let tags = scenario.about.tags.iter();
            let line = tags.fold(Line::new("tag"), |line, tag| line.text(tag));
            self.line(&line);
        }
        scenario.modules.iter().for_each(|module| self.module(module));
        if let Some(stack) = &scenario.stack {
            self.stack(stack);
            return;
        }
        if program.convention != CallingConvention::default() {
            self.line(&Line::new("convention").term(program.convention));
        }
        if program.signal_stack != 0 {
            self.line(&Line::new("signal-stack").arg(size(program.signal_stack.into())));
        }
        if scenario.hooks != Hooks::None {
            self.line(&Line::new("hooks").term(scenario.hooks));
        }
        if scenario.stop_by != StopBy::default() {
            self.line(&Line::new("stop-threads").term(scenario.stop_by));
        }
        for (function, id) in program.functions.iter().zip(0..) {
            self.blank();
            self.function(FunctionIndex(id), function);
        }
        if !program.interrupts.is_empty() {
            self.blank();
        }
        for interrupt in &program.interrupts {
            let handler = self.name(interrupt.handler);
            let line = Line::new("interrupt").property("after", interrupt.after);
            self.line(&line.property("handler", handler));
        }
        if scenario.threads != [ScenarioThread::main()] {
            self.blank();
            for thread in &scenario.threads {
                let mut line = Line::new("thread").text(&thread.name);
                if thread.start != FunctionIndex::default() {
                    line = line.property("start", self.name(thread.start));
                }
                if thread.gc {
                    line = line.property("gc", "#true");
                }
                if thread.exits {
                    line = line.property("exits", "#true");
                }
                self.line(&line);
            }
        }
        for stop in &scenario.stops {
            self.blank();
            self.stop(stop);
        }
        if let Some(profiler) = &scenario.profiler {
            self.blank();
            self.profiler(profiler);
        }
        for explore in &scenario.explore {
            self.blank();
            self.explore(explore);
        }
    }

    fn function(&mut self, id: FunctionIndex, function: &Function) {
        let method = self.scenario.methods.get(&id).copied().unwrap_or_default();
        let line = Line::new("function").text(&function.name);
        let line = line.term_unless_default("kind", function.kind);
        let line = line.term_unless_default("method", method);
        self.block(&line, |printer| {
            printer.shape(&function.shape);
            if let Some(export) = printer.scenario.exports.get(&id) {
                let line = Line::new("export").text(&export.name);
                printer.line(&export.arguments.iter().copied().fold(line, Line::arg));
            }
            if !function.body.is_empty() {
                printer.block(&Line::new("body"), |printer| printer.body(&function.body));
            }
            match function.end {
                None => printer.line(&Line::new("no-end")),
                Some(Exit::Return(ReturnForm::Ret)) => {}
                Some(exit) => printer.exit(exit),
            }
        });
    }

    fn shape(&mut self, shape: &FunctionShape) {
        self.term("entry", shape.entry);
        if let Some(last) = shape.home.iter().rposition(Option::is_some) {
            let slots = shape.home.iter().take(last + 1);
            let name = |slot: &Option<Gpr>| slot.map_or(FREE_SLOT, Gpr::name);
            let line = slots.fold(Line::new("home"), |line, slot| line.text(name(slot)));
            self.line(&line);
        }
        if !shape.pushes.is_empty() {
            self.line(&Line::new("push").gprs(&shape.pushes));
        }
        if shape.locals != 0 {
            self.line(&Line::new("locals").arg(size(shape.locals.into())));
        }
        let save = shape
            .xmm_saves
            .iter()
            .fold(Line::new("save").gprs(&shape.saves), |line, number| line.text(xmm(*number)));
        let save = save.term_unless_default("area", shape.save_area);
        if save.0 != "save" {
            self.line(&save);
        }
        self.term("allocation", shape.allocation);
        if let Some(frame) = shape.frame {
            let mut line = Line::new("frame").text(frame.register.name());
            if frame.offset != 0 {
                line = line.property("offset", frame.offset);
            }
            line = line.term_unless_default("set", frame.set);
            if !frame.described {
                line = line.property("described", "#false");
            }
            self.line(&line);
        }
        self.term("release", shape.release);
        if shape.scheduled {
            self.line(&Line::new("scheduled"));
        }
        let mut unwind = Line::new("unwind");
        if shape.unwind != UnwindData::default() {
            unwind = unwind.term(shape.unwind);
        }
        if shape.handler {
            unwind = unwind.property("handler", "#true");
        }
        if unwind.0 != "unwind" {
            self.line(&unwind);
        }
        self.term("cold-parts", shape.cold);
        self.term("wrap", shape.wrap);
        self.term("realign", shape.realign);
        if shape.arguments != 0 {
            self.line(&Line::new("arguments").arg(shape.arguments));
        }
        self.term("epilogue-cfi", shape.epilogue_cfi);
    }

    fn term<T: Keyword + Default>(&mut self, name: &str, value: T) {
        if value != T::default() {
            self.line(&Line::new(name).term(value));
        }
    }

    fn exit(&mut self, exit: Exit) {
        let line = match exit {
            Exit::Return(ReturnForm::Ret) => Line::new("return"),
            Exit::Return(form) => Line::new("return").term(form),
            // The exit belongs to the runtime's own code, which no text contains.
            Exit::Computed => return,
            Exit::TailCall(form, callee) => {
                Line::new("tail-call").arg(self.name(callee)).term_unless_default("by", form)
            }
        };
        self.line(&line);
    }

    fn body(&mut self, body: &[Statement]) {
        for statement in body {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let new = Line::new;
        let line = match statement {
            Statement::Call(form, callee) => {
                new("call").arg(self.name(*callee)).term_unless_default("by", *form)
            }
            Statement::Clobber(register) => new("clobber").text(register.name()),
            Statement::ClobberXmm(number) => new("clobber").text(xmm(*number)),
            Statement::Store(offset) => new("store").arg(size(u64::from(*offset))),
            Statement::Work(count) => new("work").arg(count),
            Statement::Loop(times, body) => return self.nested(&new("loop").arg(times), body),
            Statement::If(true, body) => return self.nested(&new("if").arg("#true"), body),
            Statement::If(false, body) => return self.nested(&new("if").arg("#false"), body),
            Statement::Exit(exit) => return self.exit(*exit),
            Statement::Alloca(units) => new("alloca").arg(units),
            Statement::Cold(body) => return self.nested(&new("cold"), body),
            Statement::Region(saves, body) => {
                return self.nested(&new("region").gprs(saves), body);
            }
            Statement::Funclet(body) => return self.nested(&new("funclet"), body),
            Statement::Try(body, catch) => {
                self.nested(&new("try"), body);
                if !catch.is_empty() {
                    self.nested(&new("catch"), catch);
                }
                return;
            }
            Statement::Guarded(body, clauses) => {
                self.nested(&new("guarded"), body);
                for clause in clauses {
                    self.clause(clause);
                }
                return;
            }
            Statement::Throw => new("throw"),
            Statement::Trap(handler) => new("trap").arg(self.name(*handler)),
            Statement::SwitchStack(callee) => new("switch-stack").arg(self.name(*callee)),
            Statement::Stop => new("stop"),
            Statement::Runtime(call) => {
                let line = new(call.kind.word());
                match call.target {
                    Some(target) => line.arg(self.name(target)),
                    None => line,
                }
            }
            Statement::Primitive(_) => return,
        };
        self.line(&line);
    }

    fn clause(&mut self, clause: &EhClause) {
        let name = match &clause.kind {
            EhClauseKind::Catch => "on-catch",
            EhClauseKind::Finally => "on-finally",
            EhClauseKind::Fault => "on-fault",
            EhClauseKind::Filtered { accepts, filter } => {
                let line = Line::new("on-filter");
                let line = if *accepts { line } else { line.property("accepts", "#false") };
                self.nested(&line, filter);
                "on-catch"
            }
        };
        self.nested(&Line::new(name), &clause.body);
    }

    fn nested(&mut self, line: &Line, body: &[Statement]) {
        self.block(line, |printer| printer.body(body));
    }

    fn stop(&mut self, stop: &Stop) {
        let mut line = Line::new("stop");
        if stop.at == StopAt::End {
            line = line.text("end");
        }
        if stop.thread != 0 {
            let thread = self.scenario.threads.get(stop.thread as usize);
            let name = thread.map_or("", |thread| &thread.name);
            line = line.property("thread", quoted(name));
        }
        let line = self.at(line, stop.at);
        self.block(&line, |printer| {
            for expectation in &stop.expect {
                printer.expectation(expectation);
            }
            for (thread, at) in &stop.others {
                let thread = printer.scenario.threads.get(*thread as usize);
                let name = quoted(thread.map_or("", |thread| &thread.name));
                let line = printer.at(Line::new("other").arg(name), *at);
                printer.line(&line);
            }
            for snapshot in &stop.snapshots {
                printer.snapshot(snapshot);
            }
            for walk in &stop.mixed_walks {
                printer.mixed_walk(walk);
            }
        });
    }

    /// Adds the properties of a stop's position. The end has none: it is printed as an argument.
    fn at(&self, line: Line, at: StopAt) -> Line {
        let (line, visit) = match at {
            StopAt::End => (line, 1),
            StopAt::Hook(visit) => (line.property("hook", visit), 1),
            StopAt::After(count) => (line.property("after", count), 1),
            StopAt::Instruction { function, index, visit } => {
                let line = line.property("at", self.name(function));
                (line.property("instruction", index), visit)
            }
            StopAt::Runtime { function, index, visit } => {
                let name = self.scenario.runtime_function_name(function);
                (line.property("at", quoted(&name)).property("instruction", index), visit)
            }
            StopAt::Callback { kind, visit } => {
                (line.property("callback", quoted(kind.name())), visit)
            }
        };
        if visit == 1 { line } else { line.property("visit", visit) }
    }

    fn expectation(&mut self, expectation: &Expectation) {
        let mut line = Line::new("expect");
        if expectation.rules != Rules::default() {
            line = line.property("rules", quoted(expectation.rules.word()));
        }
        if expectation.ends != WalkEnd::default() {
            line = line.property("ends", quoted(expectation.ends.word()));
        }
        self.block(&line, |printer| {
            for frame in &expectation.frames {
                printer.frame(frame);
            }
        });
    }

    fn frame(&mut self, frame: &ExpectedFrame) {
        let mut line = Line::new("frame");
        if let Some(function) = frame.function {
            line = line.arg(self.name(function));
        }
        if let Some(trust) = frame.trust {
            line = line.property("trust", quoted(trust.word()));
        }
        for (register, value) in &frame.registers {
            line = line.property(register.name(), size(*value));
        }
        self.line(&line);
    }
}
