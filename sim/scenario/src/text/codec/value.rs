//! Values of arguments and properties, and the types of scenarios that are written as one.

use crate::model::{
    ExpectedFlags, ExpectedOutcome, SeedAddress, SeedSource, SnapshotCaller, SnapshotThread, Stale,
};
use crate::model::{ExportArgument, ThreadName};
use crate::text::grammar::{Kind, Style};
use crate::text::keywords::REGISTERS;
use clr_codegen::FunctionIndex;
use clr_explore::{LockName, ScheduleString};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generations;
use clr_runtime::profiling::{CallFaults, HResult};
use clr_story::Hazard;
use clr_world::WaitPlace;
use clr_world::stubs::RuntimeFunction;

/// A value of one of the grammar's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Name(String),
    Code(Code),
    /// A number; the index of a thread, a lock or an event that is named.
    Number(u64),
    Flag(bool),
    Word(&'static str),
    Label(Label),
    Address(SeedAddress),
    Generations(Generations),
    Caller(SnapshotCaller),
    Target(SnapshotThread),
    /// The source of a seed, if there is one.
    Seed(Option<SeedSource>),
    HResult(HResult),
    Outcome(ExpectedOutcome),
    Flags(ExpectedFlags),
    Stale(Stale),
    Clause(Clause),
    Party(ThreadName),
    Lock(LockName),
    Hazard(Hazard),
    Faults(CallFaults),
    Argument(ExportArgument),
    Schedule(ScheduleString),
}

/// A place in code: a function of the program or of the runtime, or a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Function(FunctionIndex),
    Runtime(RuntimeFunction),
    Wait(WaitPlace),
}

/// A function and an offset (bytes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) function: String,
    pub(crate) offset: u32,
}

/// The callers that have a word; others have a name.
pub(super) const CALLERS: &[(&str, SnapshotCaller)] = &[
    ("self", SnapshotCaller::Own),
    ("native-walker", SnapshotCaller::NativeWalker),
    ("managed-walker", SnapshotCaller::ManagedWalker),
];

/// The values of `thread=` that have a word; others have a name or a number.
pub(super) const TARGETS: &[(&str, SnapshotThread)] =
    &[("own", SnapshotThread::Own), ("null", SnapshotThread::Null)];

/// The sources of seeds that have a word; others are functions.
pub(super) const SEEDS: &[(&str, SeedSource)] = &[
    ("leaf", SeedSource::Leaf),
    ("top-managed", SeedSource::TopManaged),
    ("stale", SeedSource::Stale),
    ("bytes", SeedSource::Bytes(0)),
];

/// The outcomes that have a word, without their details; others are HRESULTs.
pub(super) const OUTCOMES: &[(&str, ExpectedOutcome)] = &[
    ("killed", ExpectedOutcome::Killed { code: None }),
    ("access-violation", ExpectedOutcome::AccessViolation { at: None }),
    ("blocked", ExpectedOutcome::Blocked),
    ("endless", ExpectedOutcome::Endless),
];

/// The sign before the name of a buffer that stands for the number in it.
pub(crate) const CONTENT: char = '*';

/// Returns the value of a word.
pub(super) fn of_word<T: Clone>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone())
}

/// Returns the word of a value, whatever details it has.
pub(super) fn word_of<T>(words: &[(&'static str, T)], value: &T) -> Option<&'static str> {
    let is_like = |other: &T| core::mem::discriminant(other) == core::mem::discriminant(value);
    words.iter().find(|(_, other)| is_like(other)).map(|(word, _)| *word)
}

/// A part of a scenario that is written as one value.
pub(crate) trait Data: Sized {
    /// The kind of value that most nodes want for this type.
    const KIND: Kind;

    /// Converts a value that was read. Returns `None` for one of another kind.
    fn of(value: Value) -> Option<Self>;

    /// Returns the value to print, if there is one.
    fn value(&self) -> Option<Value>;
}

impl<T: Data> Data for Option<T> {
    const KIND: Kind = T::KIND;

    fn of(value: Value) -> Option<Self> {
        T::of(value).map(Some)
    }

    fn value(&self) -> Option<Value> {
        self.as_ref()?.value()
    }
}

macro_rules! data {
    ($($type:ty: $variant:ident in $kind:expr,)+) => {$(
        impl Data for $type {
            const KIND: Kind = $kind;

            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::$variant(self.clone()))
            }
        }
    )+};
}

data! {
    String: Name in Kind::Name,
    &'static str: Word in Kind::Word(REGISTERS),
    bool: Flag in Kind::Flag,
    Code: Code in Kind::Code,
    Label: Label in Kind::Label,
    SeedAddress: Address in Kind::Address,
    Generations: Generations in Kind::Generations,
    SnapshotCaller: Caller in Kind::Caller,
    SnapshotThread: Target in Kind::Target,
    HResult: HResult in Kind::HResult,
    ExpectedOutcome: Outcome in Kind::Outcome,
    ExpectedFlags: Flags in Kind::Flags,
    Stale: Stale in Kind::Stale,
    Clause: Clause in Kind::Clause,
    ThreadName: Party in Kind::Party,
    LockName: Lock in Kind::AnyLock,
    Hazard: Hazard in Kind::Hazard,
    CallFaults: Faults in Kind::Faults,
    ExportArgument: Argument in Kind::ExportArgument,
    ScheduleString: Schedule in Kind::Schedule,
}

macro_rules! numbers {
    ($($type:ty)+) => {$(
        impl Data for $type {
            const KIND: Kind = Kind::Number(0, <$type>::MAX as u64, Style::Decimal);

            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::Number(number) => number.try_into().ok(),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Number(u64::from(*self)))
            }
        }
    )+};
}

numbers! { u8 u16 u32 u64 }

impl Data for FunctionIndex {
    const KIND: Kind = Kind::Function;

    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Code(Code::Function(function)) => Some(function),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Code(Code::Function(*self)))
    }
}

impl Data for SeedSource {
    const KIND: Kind = Kind::Seed;

    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Seed(source) => source,
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Seed(Some(self.clone())))
    }
}

/// A place for a value.
pub(crate) trait Field {
    /// Takes the value of a property.
    fn set(&mut self, value: Value);

    /// Returns the value to print, if there is one.
    fn get(&self) -> Option<Value>;
}

impl<T: Data> Field for T {
    fn set(&mut self, value: Value) {
        if let Some(value) = T::of(value) {
            *self = value;
        }
    }

    fn get(&self) -> Option<Value> {
        self.value()
    }
}

/// A place for the arguments of a node.
pub(crate) trait List {
    /// Takes the arguments that were read.
    fn set_all(&mut self, values: Vec<Value>);

    /// Calls `print` with each argument.
    fn each(&self, print: &mut dyn FnMut(Value));
}

/// The arguments of a node that has at most one.
pub(super) struct One<'a>(pub(super) &'a mut dyn Field);

impl List for One<'_> {
    fn set_all(&mut self, values: Vec<Value>) {
        values.into_iter().take(1).for_each(|value| self.0.set(value));
    }

    fn each(&self, print: &mut dyn FnMut(Value)) {
        self.0.get().into_iter().for_each(print);
    }
}

/// Arguments are added: the list of some nodes may be continued in another one.
impl<T: Data> List for Vec<T> {
    fn set_all(&mut self, values: Vec<Value>) {
        self.extend(values.into_iter().filter_map(T::of));
    }

    fn each(&self, print: &mut dyn FnMut(Value)) {
        self.iter().filter_map(Data::value).for_each(print);
    }
}

/// A name, and arguments after it.
pub(super) struct Named<'a, T>(pub(super) &'a mut String, pub(super) &'a mut Vec<T>);

impl<T: Data> List for Named<'_, T> {
    fn set_all(&mut self, mut values: Vec<Value>) {
        if matches!(values.first(), Some(Value::Name(_))) {
            self.0.set(values.remove(0));
        }
        self.1.set_all(values);
    }

    fn each(&self, print: &mut dyn FnMut(Value)) {
        print(Value::Name(self.0.clone()));
        self.1.each(print);
    }
}
