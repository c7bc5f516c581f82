//! Checking of nodes against the grammar's tables. Every problem is reported.

use super::node::{Fields, Value};
use super::words::{ALL_SAVED, caller, can_be_saved, number_of, target, word};
use crate::ScenarioThread;
use crate::document::{Entry, Literal, Name, Node, named};
use crate::error::Span;
use crate::grammar::{Args, Kind, Level, NodeRule};
use crate::hand_stack::PlacedThread;
use crate::histories::ThreadName;
use crate::keywords::{Keyword, XMM, xmm_number};
use crate::problem::{ExpectedSyntax, ProblemKind};
use crate::snapshot::{SnapshotCaller, SnapshotThread};
use crate::suggest::nearest;
use clr_codegen::FunctionIndex;
use clr_explore::LockName;
use clr_runtime::Lock;
use clr_runtime::generation::Generations;
use clr_walker::registers::Gpr;
use clr_world::stubs::{RuntimeFunction, Shared};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names of the whole text, collected before its parts are read: names may be used before they are
/// defined.
pub(super) struct Reader {
    pub(super) problems: Vec<(Span, ProblemKind)>,
    /// The text has a stack placed by hand.
    is_stack: bool,
    functions: Names,
    threads: Names,
    /// Threads of the program, followed by those of the profiler.
    parties: Names,
    locks: Names,
    events: Names,
}

/// Names in the order of the text, with the number of each.
struct Names {
    in_order: Arc<[String]>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// Collects the names that the profiler's nodes of the given name define, after the names in
    /// `before`.
    fn of_profiler(nodes: &[Node<'_>], node: &'static str, before: &[String]) -> Self {
        let mut names = Self { in_order: [].into(), numbers: BTreeMap::new() };
        let mut in_order = before.to_vec();
        let profiler = named(nodes, "profiler");
        for node in profiler.flat_map(|profiler| named(profiler.children(), node)) {
            in_order.extend(node.args().map(|arg| arg.text().unwrap_or_default().to_owned()));
        }
        for (name, number) in in_order.iter().zip(0..) {
            names.numbers.entry(name.clone()).or_insert(number);
        }
        names.in_order = in_order.into();
        names
    }

    fn of(nodes: &[Node<'_>], node: &'static str) -> Self {
        let (mut in_order, mut numbers) = (Vec::new(), BTreeMap::new());
        for node in named(nodes, node) {
            let name = node.args().next().and_then(Literal::text).unwrap_or_default();
            // A second definition of a name is reported separately.
            numbers.entry(name.to_owned()).or_insert(in_order.len() as u32);
            in_order.push(name.to_owned());
        }
        Self { in_order: in_order.into(), numbers }
    }
}

impl Reader {
    pub(super) fn new(nodes: &[Node<'_>]) -> Self {
        let mut threads = Names::of(nodes, "thread");
        let is_stack = named(nodes, "stack").next().is_some();
        if threads.in_order.is_empty() && !is_stack {
            threads.in_order = [ScenarioThread::DEFAULT_NAME.to_owned()].into();
            threads.numbers.insert(ScenarioThread::DEFAULT_NAME.to_owned(), 0);
        }
        let of_profiler = |node, before: &[String]| Names::of_profiler(nodes, node, before);
        Self {
            problems: Vec::new(),
            is_stack,
            functions: Names::of(nodes, "function"),
            parties: of_profiler("thread", &threads.in_order),
            locks: of_profiler("lock", &[]),
            events: of_profiler("event", &[]),
            threads,
        }
    }

    pub(super) fn problem(&mut self, span: Span, kind: ProblemKind) {
        self.problems.push((span, kind));
    }

    /// Returns the nodes of a block, without those that are not allowed there.
    pub(super) fn nodes<'t>(&mut self, nodes: &'t [Node<'t>], level: Level) -> Vec<Fields<'t>> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (span, name) = (node.name.span, &*node.name.text);
            let Some(rule) = level.nodes().iter().find(|rule| rule.name == name) else {
                let allowed = level.nodes().iter().map(|rule| rule.name.to_owned()).collect();
                let found = name.to_owned();
                let place = level.place();
                self.problem(span, ProblemKind::UnknownNode { found, place, allowed });
                continue;
            };
            if rule.once && !seen.insert(rule.name) {
                self.problem(span, ProblemKind::DuplicateNode(rule.name));
            }
            all.push(self.fields(node, rule));
        }
        all
    }

    fn fields<'t>(&mut self, node: &'t Node<'t>, rule: &'static NodeRule) -> Fields<'t> {
        let name_span = node.name.span;
        let (first, kind, least, limit) = match rule.args {
            Args::None => (Kind::Flag, Kind::Flag, 0, 0),
            Args::One(kind) => (kind, kind, 1, 1),
            Args::Optional(kind) => (kind, kind, 0, 1),
            Args::Many(kind, limit) => (kind, kind, 0, limit),
            Args::Named(kind, limit) => (Kind::Name, kind, 1, 1 + limit),
        };
        let mut fields = Fields { node, rule, args: Vec::new(), properties: Vec::new() };
        let mut count = 0;
        let mut names = BTreeSet::new();
        for entry in &node.entries {
            let span = entry.span;
            if let Some(name) = &entry.name {
                if !names.insert(&*name.text) {
                    self.problem(span, ProblemKind::DuplicateProperty(name.text.to_string()));
                }
                self.property(&mut fields, name, entry);
                continue;
            }
            count += 1;
            if count > limit {
                self.problem(span, ProblemKind::ExtraArgument { node: rule.name, limit });
            } else {
                let kind = if count == 1 { first } else { kind };
                fields.args.extend(self.value(kind, &entry.value, span));
            }
        }
        if count < least {
            let expected = expected(first);
            self.problem(name_span, ProblemKind::MissingArgument { node: rule.name, expected });
        }
        for property in rule.properties {
            if property.required && !names.contains(property.name) {
                let expected = expected(property.kind);
                let (node, property) = (rule.name, property.name);
                let missing = ProblemKind::MissingProperty { node, property, expected };
                self.problem(name_span, missing);
            }
        }
        if node.block.is_some() && rule.block.is_none() {
            self.problem(name_span, ProblemKind::ExtraBlock(rule.name));
        }
        fields
    }

    fn property(&mut self, fields: &mut Fields<'_>, name: &Name<'_>, entry: &Entry<'_>) {
        let rules = fields.rule.properties;
        if let Some(rule) = rules.iter().find(|rule| rule.name == name.text) {
            let value = self.value(rule.kind, &entry.value, entry.value_span);
            fields.properties.extend(value.map(|value| (rule.name, value)));
        } else {
            let allowed = rules.iter().map(|rule| rule.name.to_owned()).collect();
            let (node, found) = (fields.rule.name, name.text.to_string());
            self.problem(name.span, ProblemKind::UnknownProperty { node, found, allowed });
        }
    }

    /// Reports a name of neither a function of the program nor one of the runtime. On a stack placed by
    /// hand, names are those of the stack.
    pub(super) fn function_of_program(&mut self, fields: &Fields<'_>, name: &str) {
        let is_written = |entry: &&Entry<'_>| {
            entry.value.text().is_some_and(|text| text.split("+0x").next() == Some(name))
        };
        if !self.is_stack && self.code(name).is_none() {
            let entry = fields.node.entries.iter().find(is_written);
            let span = entry.map_or(fields.span(), |entry| entry.value_span);
            let allowed = Arc::clone(&self.functions.in_order);
            self.problem(span, ProblemKind::UnknownFunction { found: name.to_owned(), allowed });
        }
    }

    /// Returns the function of the runtime or of the program with the given name.
    fn code(&self, name: &str) -> Option<Value> {
        let function = |name: &str| self.functions.numbers.get(name).copied().map(FunctionIndex);
        let runtime = || RuntimeFunction::from_name(name, function).map(Value::Runtime);
        function(name).map(Value::Function).or_else(runtime)
    }

    fn value(&mut self, kind: Kind, value: &Literal<'_>, span: Span) -> Option<Value> {
        match self.typed(kind, value) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem(span, problem);
                None
            }
        }
    }

    fn typed(&self, kind: Kind, value: &Literal<'_>) -> Result<Value, ProblemKind> {
        match (kind, value) {
            (Kind::Number(least, most), Literal::Number(number)) => u64::try_from(*number)
                .ok()
                .filter(|number| (least..=most).contains(number))
                .map(Value::Number)
                .ok_or_else(|| ProblemKind::OutOfRange {
                    found: *number,
                    expected: expected(kind),
                }),
            (Kind::Flag | Kind::Stale, Literal::Flag(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Number(..) | Kind::Flag, _) => Err(wrong_type(kind, value)),
            (_, Literal::Text(text)) => self.text(kind, text),
            (_, Literal::Number(number)) => number_of(kind, *number, value),
            (_, _) => Err(wrong_type(kind, value)),
        }
    }

    fn text(&self, kind: Kind, text: &str) -> Result<Value, ProblemKind> {
        let found = || text.to_owned();
        let value = match kind {
            Kind::Name => Some(Value::Name(text.to_owned())),
            Kind::Code => Some(self.code(text).ok_or_else(|| {
                // The runtime's functions are many: those that may be meant are enough.
                let runtime = Shared::ALL.iter().map(|shared| shared.name());
                let runtime = runtime.filter(|name| nearest(text, &[name]).is_some());
                let own = self.functions.in_order.iter().cloned();
                let allowed = own.chain(runtime.map(str::to_owned)).collect();
                ProblemKind::UnknownFunction { found: found(), allowed }
            })?),
            Kind::Function => {
                let number = self.functions.numbers.get(text).ok_or_else(|| {
                    let allowed = Arc::clone(&self.functions.in_order);
                    ProblemKind::UnknownFunction { found: found(), allowed }
                })?;
                Some(Value::Function(FunctionIndex(*number)))
            }
            Kind::Thread => {
                let number = self.threads.numbers.get(text).ok_or_else(|| {
                    let allowed = Arc::clone(&self.threads.in_order);
                    ProblemKind::UnknownThread { found: found(), allowed }
                })?;
                Some(Value::Thread(*number))
            }
            Kind::Party if text == OWN => Some(Value::Party(ThreadName::Own)),
            Kind::Party => {
                let number = self.parties.numbers.get(text).ok_or_else(|| {
                    let allowed = Arc::clone(&self.parties.in_order);
                    ProblemKind::UnknownThread { found: found(), allowed }
                })?;
                Some(Value::Party(ThreadName::Thread(*number)))
            }
            Kind::AnyLock if !self.locks.numbers.contains_key(text) => {
                let lock = Lock::ALL.into_iter().find(|lock| lock.name() == text);
                lock.map(|lock| Value::Lock(LockName::Runtime(lock)))
            }
            Kind::AnyLock => {
                let number = self.locks.numbers.get(text);
                number.map(|number| Value::Lock(LockName::Profiler(*number)))
            }
            Kind::Lock | Kind::Event => {
                let names = if kind == Kind::Lock { &self.locks } else { &self.events };
                let number = names.numbers.get(text).ok_or_else(|| {
                    let what = if kind == Kind::Lock { "lock" } else { "event" };
                    let allowed = Arc::clone(&names.in_order);
                    ProblemKind::UnknownOfProfiler { what, found: found(), allowed }
                })?;
                Some(Value::Index(*number))
            }
            Kind::Schedule => {
                let schedule = text.parse().map_err(ProblemKind::Schedule)?;
                Some(Value::Schedule(schedule))
            }
            Kind::Word(words) => {
                words.iter().find(|word| **word == text).map(|word| Value::Word(word))
            }
            Kind::Slot if text == FREE_SLOT => Some(Value::Free),
            Kind::Gpr | Kind::Slot => Gpr::from_word(text).map(Value::Gpr),
            Kind::Register => {
                let xmm = || xmm_number(text).map(Value::Xmm);
                Gpr::from_word(text).map(Value::Gpr).or_else(xmm)
            }
            Kind::Caller => {
                let term = PlacedThread::from_word(text).and_then(caller);
                let thread = || Some(SnapshotCaller::Thread(*self.threads.numbers.get(text)?));
                term.or_else(thread).map(Value::Caller)
            }
            Kind::Target => {
                let thread = || Some(SnapshotThread::Thread(*self.threads.numbers.get(text)?));
                target(text).or_else(thread).map(Value::Target)
            }
            _ => word(kind, text),
        };
        value.ok_or_else(|| ProblemKind::UnknownWord { found: found(), expected: expected(kind) })
    }
}

/// The word for the thread that executes the action.
const OWN: &str = "own";

/// The word for a home slot in which nothing is stored.
pub(crate) const FREE_SLOT: &str = "none";

fn expected(kind: Kind) -> ExpectedSyntax {
    let registers = || Gpr::WORDS.to_vec();
    match kind {
        Kind::Name => ExpectedSyntax::Name,
        Kind::Function | Kind::Code => ExpectedSyntax::Function,
        Kind::Thread => ExpectedSyntax::Thread,
        Kind::Number(least, most) => ExpectedSyntax::Number(least, most),
        Kind::Flag => ExpectedSyntax::Flag,
        Kind::Word(words) => ExpectedSyntax::Word(words.to_vec()),
        Kind::Gpr => ExpectedSyntax::Word(registers()),
        Kind::Slot => ExpectedSyntax::Word([registers(), vec![FREE_SLOT]].concat()),
        Kind::Register => ExpectedSyntax::Word([registers(), XMM.to_vec()].concat()),
        Kind::Saved => {
            let saved = Gpr::ALL.into_iter().filter(|it| can_be_saved(*it)).map(Gpr::name);
            ExpectedSyntax::Word(saved.chain([ALL_SAVED]).collect())
        }
        Kind::Tag => ExpectedSyntax::Tag,
        Kind::Label => ExpectedSyntax::Label,
        Kind::Address => ExpectedSyntax::Address,
        Kind::Generations => ExpectedSyntax::Generations(Generations::all_words().collect()),
        Kind::Caller => ExpectedSyntax::Caller,
        Kind::Target => ExpectedSyntax::Target,
        Kind::Seed => ExpectedSyntax::Seed,
        Kind::HResult => ExpectedSyntax::HResult,
        Kind::Outcome => ExpectedSyntax::Outcome,
        Kind::Flags => ExpectedSyntax::Flags,
        Kind::Stale => ExpectedSyntax::Stale,
        Kind::Clause => ExpectedSyntax::Clause,
        Kind::Party => ExpectedSyntax::Party,
        Kind::Lock => ExpectedSyntax::Lock,
        Kind::AnyLock => ExpectedSyntax::AnyLock,
        Kind::Event => ExpectedSyntax::Event,
        Kind::Hazard => ExpectedSyntax::Hazard,
        Kind::Schedule => ExpectedSyntax::Schedule,
    }
}

pub(super) fn wrong_type(kind: Kind, value: &Literal<'_>) -> ProblemKind {
    let found = match value {
        Literal::Text(_) => "string",
        Literal::Number(_) => "number",
        Literal::Fraction(_) => "fraction",
        Literal::Flag(_) => "truth value",
        Literal::Null => "null",
    };
    ProblemKind::WrongType { found, expected: expected(kind) }
}
