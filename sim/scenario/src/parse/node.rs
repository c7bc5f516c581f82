//! A node whose arguments and properties were checked against the grammar.

use crate::document::Node;
use crate::error::Span;
use crate::grammar::NodeRule;
use crate::histories::ThreadName;
use crate::keywords::Keyword;
use crate::snapshot::{
    ExpectedFlags, ExpectedOutcome, SeedAddress, SnapshotCaller, SnapshotThread, Stale,
};
use clr_codegen::FunctionIndex;
use clr_explore::{Hazard, LockName, ScheduleString};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generations;
use clr_runtime::profiling::HResult;
use clr_walker::registers::Gpr;
use clr_world::stubs::RuntimeFunction;

/// A value of one of the grammar's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Name(String),
    Function(FunctionIndex),
    Runtime(RuntimeFunction),
    Thread(u32),
    Number(u64),
    Flag(bool),
    Word(&'static str),
    Gpr(Gpr),
    Xmm(u8),
    /// A free slot.
    Free,
    /// All nonvolatile registers.
    All,
    Label(String, u32),
    Address(SeedAddress),
    Generations(Generations),
    Caller(SnapshotCaller),
    Target(SnapshotThread),
    HResult(HResult),
    Outcome(ExpectedOutcome),
    Flags(ExpectedFlags),
    Registers(Vec<Gpr>),
    Clause(Clause),
    Party(ThreadName),
    /// The index of a lock or an event of the profiler.
    Index(u32),
    Lock(LockName),
    Hazard(Hazard),
    Schedule(ScheduleString),
}

impl Value {
    /// Returns the thread, if the value is one.
    pub(super) const fn thread(&self) -> Option<u32> {
        match self {
            Self::Thread(thread) => Some(*thread),
            _ => None,
        }
    }
}

/// The parts of a node. A wrong part is missing: its problem was reported, and the value built from
/// the other parts is discarded.
pub(super) struct Fields<'t> {
    pub(super) node: &'t Node<'t>,
    pub(super) rule: &'static NodeRule,
    pub(super) args: Vec<Value>,
    pub(super) properties: Vec<(&'static str, Value)>,
}

impl<'t> Fields<'t> {
    /// Returns the source range of the node's name.
    pub(super) fn span(&self) -> Span {
        self.node.name.span
    }

    /// Returns the nodes of the block.
    pub(super) fn children(&self) -> &'t [Node<'t>] {
        self.node.children()
    }

    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        Some(&self.properties.iter().find(|(found, _)| *found == name)?.1)
    }

    pub(super) fn arg_text(&self) -> &str {
        match self.args.first() {
            Some(Value::Name(name)) => name,
            _ => "",
        }
    }

    /// Returns the argument, or the default.
    pub(super) fn arg_term<T: Keyword + Default>(&self) -> T {
        match self.args.first() {
            Some(Value::Word(word)) => T::from_word(word).unwrap_or_default(),
            _ => T::default(),
        }
    }

    /// Returns the argument as a number in the range that the grammar gives.
    pub(super) fn arg_number<T: TryFrom<u64> + Default>(&self) -> T {
        match self.args.first() {
            Some(Value::Number(number)) => T::try_from(*number).unwrap_or_default(),
            _ => T::default(),
        }
    }

    /// Returns the arguments that are numbers.
    pub(super) fn arg_numbers(&self) -> Vec<u64> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        self.args.iter().filter_map(number).collect()
    }

    pub(super) fn arg_flag(&self) -> bool {
        matches!(self.args.first(), Some(Value::Flag(true)))
    }

    pub(super) fn arg_function(&self) -> Option<FunctionIndex> {
        match self.args.first() {
            Some(Value::Function(function)) => Some(*function),
            _ => None,
        }
    }

    /// Returns the arguments that are integer registers.
    pub(super) fn arg_gprs(&self) -> Vec<Gpr> {
        let gpr = |value: &Value| match value {
            Value::Gpr(register) => Some(*register),
            _ => None,
        };
        self.args.iter().filter_map(gpr).collect()
    }

    /// Returns the arguments that are vector registers.
    pub(super) fn arg_xmms(&self) -> Vec<u8> {
        let xmm = |value: &Value| match value {
            Value::Xmm(number) => Some(*number),
            _ => None,
        };
        self.args.iter().filter_map(xmm).collect()
    }

    /// Returns the arguments that are names.
    pub(super) fn arg_texts(&self) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Name(name) => Some(name.clone()),
            _ => None,
        };
        self.args.iter().filter_map(text).collect()
    }

    /// Returns the argument as an enum value without a default.
    pub(super) fn arg_word<T: Keyword>(&self) -> Option<T> {
        match self.args.first()? {
            Value::Word(word) => T::from_word(word),
            _ => None,
        }
    }

    /// Returns the arguments that are clauses.
    pub(super) fn arg_clauses(&self) -> impl Iterator<Item = Clause> {
        self.args.iter().filter_map(|arg| match arg {
            Value::Clause(clause) => Some(*clause),
            _ => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.property(name)? {
            Value::Name(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the generations that the node is for, by default all.
    pub(super) fn on(&self) -> Generations {
        match self.property("on") {
            Some(Value::Generations(on)) => *on,
            _ => Generations::ALL,
        }
    }

    pub(super) fn hresult(&self, name: &str) -> Option<HResult> {
        match self.property(name)? {
            Value::HResult(result) => Some(*result),
            _ => None,
        }
    }

    pub(super) fn context_flags(&self) -> Option<ExpectedFlags> {
        match self.property("context-flags")? {
            Value::Flags(flags) => Some(*flags),
            _ => None,
        }
    }

    /// Returns true if the property is present, with a valid value or not.
    pub(super) fn is_written(&self, name: &str) -> bool {
        self.node.has_property(name)
    }

    /// Returns the integer registers for which the node has values, ascending.
    pub(super) fn registers(&self) -> Vec<(Gpr, u64)> {
        let value = |register: Gpr| Some((register, self.number(register.name())?));
        Gpr::ALL.into_iter().filter_map(value).collect()
    }

    pub(super) fn term<T: Keyword>(&self, name: &str) -> Option<T> {
        match self.property(name)? {
            Value::Word(word) => T::from_word(word),
            _ => None,
        }
    }

    pub(super) fn number<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        match self.property(name)? {
            Value::Number(number) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        match self.property(name)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn stale(&self) -> Stale {
        match self.property("stale") {
            Some(Value::Flag(true)) => Stale::All,
            Some(Value::Registers(registers)) => Stale::Only(registers.clone()),
            _ => Stale::None,
        }
    }

    pub(super) fn function(&self, name: &str) -> Option<FunctionIndex> {
        match self.property(name)? {
            Value::Function(function) => Some(*function),
            _ => None,
        }
    }

    pub(super) fn thread(&self, name: &str) -> Option<u32> {
        self.property(name)?.thread()
    }
}
