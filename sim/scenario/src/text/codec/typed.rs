//! Reading of values: each literal becomes a value of the kind that its place wants.

use crate::ScenarioThread;
use crate::model::{
    ExpectedFlags, ExpectedOutcome, SeedAddress, SeedSource, SnapshotCaller, SnapshotThread, Stale,
};
use crate::model::{ExportArgument, ThreadName};
use crate::text::codec::value::{
    CALLERS, CONTENT, Code, Label, OUTCOMES, SEEDS, TARGETS, Value, of_word,
};
use crate::text::document::{Literal, Node, named};
use crate::text::grammar::Kind;
use crate::text::hresult::hresult;
use crate::text::keywords::Keyword as _;
use crate::text::problem::ProblemKind;
use crate::text::suggest::nearest;
use clr_codegen::FunctionIndex;
use clr_explore::LockName;
use clr_runtime::Lock;
use clr_runtime::generation::Generations;
use clr_runtime::profiling::{CallFaults, HResult};
use clr_unwind::Gpr;
use clr_world::WaitPlace;
use clr_world::stubs::{RuntimeFunction, Shared};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of the whole text, collected before its parts are read: names may be used before they are
/// defined.
pub(super) struct Names {
    /// The text has a stack placed by hand.
    is_stack: bool,
    functions: Defined,
    threads: Defined,
    /// Threads of the program, followed by those of the profiler.
    parties: Defined,
    locks: Defined,
    events: Defined,
    buffers: Defined,
}

/// Names in the order of the text, with the number of each.
struct Defined {
    in_order: Arc<[String]>,
    numbers: BTreeMap<String, u32>,
}

impl Defined {
    /// Numbers names. A second definition of a name is reported separately.
    fn new(in_order: Vec<String>) -> Self {
        let mut numbers = BTreeMap::new();
        for (name, number) in in_order.iter().zip(0..) {
            numbers.entry(name.clone()).or_insert(number);
        }
        Self { in_order: in_order.into(), numbers }
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Returns the index of a name, or the problem that there is none.
    fn index(
        &self,
        name: &str,
        problem: impl FnOnce(String, Arc<[String]>) -> ProblemKind,
    ) -> Result<Value, ProblemKind> {
        let number = self.number(name).map(|number| Value::Number(number.into()));
        number.ok_or_else(|| problem(name.to_owned(), Arc::clone(&self.in_order)))
    }
}

fn unknown_function(found: String, allowed: Arc<[String]>) -> ProblemKind {
    ProblemKind::UnknownFunction { found, allowed }
}

fn unknown_buffer(found: String, allowed: Arc<[String]>) -> ProblemKind {
    ProblemKind::UnknownBuffer { found, allowed }
}

fn unknown_thread(found: String, allowed: Arc<[String]>) -> ProblemKind {
    ProblemKind::UnknownThread { found, allowed }
}

impl Names {
    pub(super) fn of(nodes: &[Node<'_>]) -> Self {
        let text = |literal: Option<&Literal<'_>>| {
            literal.and_then(Literal::text).unwrap_or_default().to_owned()
        };
        let all = |name| named(nodes, name).map(|node| text(node.args().next())).collect();
        let is_stack = named(nodes, "stack").next().is_some();
        let mut threads: Vec<String> = all("thread");
        if threads.is_empty() && !is_stack {
            threads.push(ScenarioThread::DEFAULT_NAME.to_owned());
        }
        let of_profiler = |name, mut before: Vec<String>| {
            let profiler = named(nodes, "profiler");
            for node in profiler.flat_map(|profiler| named(profiler.children(), name)) {
                before.extend(node.args().map(|arg| text(Some(arg))));
            }
            Defined::new(before)
        };
        Self {
            is_stack,
            functions: Defined::new(all("function")),
            parties: of_profiler("thread", threads.clone()),
            locks: of_profiler("lock", Vec::new()),
            events: of_profiler("event", Vec::new()),
            buffers: Defined::new(all("buffer")),
            threads: Defined::new(threads),
        }
    }

    /// Converts a literal to a value of a kind.
    pub(super) fn typed(&self, kind: Kind, literal: &Literal<'_>) -> Result<Value, ProblemKind> {
        match (kind, literal) {
            (Kind::Flag, Literal::Flag(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Stale, Literal::Flag(flag)) => {
                Ok(Value::Stale(if *flag { Stale::All } else { Stale::None }))
            }
            (Kind::Number(..), Literal::Text(_)) | (Kind::Flag, _) => {
                Err(wrong_type(kind, literal))
            }
            (_, Literal::Text(text)) => match self.text(kind, text)? {
                Some(value) => Ok(value),
                None => Err(ProblemKind::UnknownWord { found: text.to_string(), expected: kind }),
            },
            (
                Kind::Number(..)
                | Kind::HResult
                | Kind::Outcome
                | Kind::Flags
                | Kind::Address
                | Kind::Target
                | Kind::ExportArgument,
                Literal::Number(number),
            ) => number_of(kind, *number),
            (_, _) => Err(wrong_type(kind, literal)),
        }
    }

    /// Converts a text. Returns `None` if it is none of the words that are expected.
    fn text(&self, kind: Kind, text: &str) -> Result<Option<Value>, ProblemKind> {
        let defined = match kind {
            Kind::Code => self.code(text).map(Value::Code).ok_or_else(|| self.no_code(text))?,
            Kind::Function => match self.functions.number(text) {
                Some(number) => Value::Code(Code::Function(FunctionIndex(number))),
                None => self.functions.index(text, unknown_function)?,
            },
            Kind::Thread => self.threads.index(text, unknown_thread)?,
            Kind::Party if text != OWN => match self.parties.index(text, unknown_thread)? {
                Value::Number(number) => Value::Party(ThreadName::Thread(number as u32)),
                other => other,
            },
            Kind::Lock => self.locks.index(text, |found, allowed| {
                ProblemKind::UnknownOfProfiler { what: "lock", found, allowed }
            })?,
            Kind::Event => self.events.index(text, |found, allowed| {
                ProblemKind::UnknownOfProfiler { what: "event", found, allowed }
            })?,
            Kind::Buffer => self.buffers.index(text, unknown_buffer)?,
            Kind::ExportArgument => Value::Argument(self.argument(text)?),
            Kind::Schedule => Value::Schedule(text.parse().map_err(ProblemKind::Schedule)?),
            Kind::Seed => return self.seed(text),
            Kind::Address => return self.address(text),
            _ => return Ok(self.word(kind, text)),
        };
        Ok(Some(defined))
    }

    /// Converts a text with a fixed meaning, or the name of what may have another value besides.
    fn word(&self, kind: Kind, text: &str) -> Option<Value> {
        Some(match kind {
            Kind::Name => Value::Name(text.to_owned()),
            Kind::Word(words) => Value::Word(words.iter().find(|word| **word == text)?),
            Kind::Party => Value::Party(ThreadName::Own),
            Kind::Tag => Value::Name(Some(text).filter(|text| is_tag(text))?.to_owned()),
            Kind::Label => Value::Label(label(text)?),
            Kind::Generations => Value::Generations(generations(text)?),
            Kind::Caller => Value::Caller(match of_word(CALLERS, text) {
                Some(caller) => caller,
                None => SnapshotCaller::Thread(self.threads.number(text)?),
            }),
            Kind::Target => Value::Target(match of_word(TARGETS, text) {
                Some(target) => target,
                None => SnapshotThread::Thread(self.threads.number(text)?),
            }),
            Kind::HResult => Value::HResult(hresult(text)?),
            Kind::Outcome => Value::Outcome(match of_word(OUTCOMES, text) {
                Some(outcome) => outcome,
                None => ExpectedOutcome::Returned(hresult(text)?),
            }),
            Kind::Flags if text == OWN => Value::Flags(ExpectedFlags::Own),
            Kind::Stale => Value::Stale(Stale::Only(registers(text)?)),
            Kind::AnyLock => Value::Lock(match self.locks.number(text) {
                Some(number) => LockName::Profiler(number),
                None => LockName::Runtime(Lock::ALL.into_iter().find(|it| it.name() == text)?),
            }),
            Kind::Clause => Value::Clause(text.parse().ok()?),
            Kind::Hazard => Value::Hazard(text.parse().ok()?),
            Kind::Faults => Value::Faults(CallFaults::from_words(text).ok()?),
            _ => return None,
        })
    }

    /// Returns the function of the program or of the runtime, or the wait, with the given name.
    fn code(&self, name: &str) -> Option<Code> {
        let function = |name: &str| self.functions.number(name).map(FunctionIndex);
        let runtime = || RuntimeFunction::from_name(name, function).map(Code::Runtime);
        let wait = || WaitPlace::from_name(name).map(Code::Wait);
        function(name).map(Code::Function).or_else(runtime).or_else(wait)
    }

    /// The runtime's functions are many: those that may be meant are enough.
    fn no_code(&self, text: &str) -> ProblemKind {
        let runtime = Shared::ALL.iter().map(|shared| shared.name());
        let runtime = runtime.filter(|name| nearest(text, &[name]).is_some());
        let waits = WaitPlace::ALL.iter().map(|place| place.name());
        let waits = waits.filter(|name| nearest(text, &[name]).is_some());
        let own = self.functions.in_order.iter().cloned();
        let known = own.chain(runtime.chain(waits).map(str::to_owned));
        unknown_function(text.to_owned(), known.collect())
    }

    /// Converts the name of a buffer, with or without the sign for its content.
    fn argument(&self, text: &str) -> Result<ExportArgument, ProblemKind> {
        let (name, of): (_, fn(u32) -> ExportArgument) = match text.strip_prefix(CONTENT) {
            Some(name) => (name, ExportArgument::Content),
            None => (text, ExportArgument::Address),
        };
        let allowed = || Arc::clone(&self.buffers.in_order);
        let number = self.buffers.number(name);
        number.map(of).ok_or_else(|| unknown_buffer(name.to_owned(), allowed()))
    }

    fn seed(&self, text: &str) -> Result<Option<Value>, ProblemKind> {
        let source = match text {
            "" => return Ok(None),
            NO_SEED => None,
            text => {
                let source = of_word(SEEDS, text);
                if source.is_none() {
                    self.known(text)?;
                }
                Some(source.unwrap_or_else(|| SeedSource::Function(text.to_owned())))
            }
        };
        Ok(Some(Value::Seed(source)))
    }

    fn address(&self, text: &str) -> Result<Option<Value>, ProblemKind> {
        let Some(label) = label(text) else { return Ok(None) };
        self.known(&label.function)?;
        Ok(Some(Value::Address(SeedAddress::Label(text.to_owned()))))
    }

    /// Reports a name of neither a function of the program nor one of the runtime. On a stack placed by
    /// hand, names are those of the stack.
    fn known(&self, name: &str) -> Result<(), ProblemKind> {
        if self.is_stack || self.code(name).is_some() {
            return Ok(());
        }
        Err(unknown_function(name.to_owned(), Arc::clone(&self.functions.in_order)))
    }
}

/// The word for the thread that executes the action, and for the ContextFlags that the runtime gets
/// from a stopped thread.
pub(super) const OWN: &str = "own";

/// The word for a call without seed.
pub(super) const NO_SEED: &str = "none";

/// Returns true if a text is a word of a kind, which a name cannot hide.
pub(crate) fn is_fixed_word(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Party => text == OWN,
        Kind::Caller => of_word(CALLERS, text).is_some(),
        Kind::Target => of_word(TARGETS, text).is_some(),
        Kind::Seed => text == NO_SEED || of_word(SEEDS, text).is_some(),
        _ => false,
    }
}

fn is_tag(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn label(text: &str) -> Option<Label> {
    let (function, digits) = text.rsplit_once("+0x").filter(|(name, _)| !name.is_empty())?;
    // The format has no sign before the digits.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let offset = u32::from_str_radix(digits, 16).ok().filter(|_| is_plain)?;
    Some(Label { function: function.to_owned(), offset })
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

fn generations(text: &str) -> Option<Generations> {
    let all = parts(text)
        .try_fold(Generations::NONE, |all, word| Some(all.with(Generations::from_word(word)?)));
    all.filter(|_| parts(text).next().is_some())
}

fn registers(text: &str) -> Option<Vec<Gpr>> {
    let mut registers = parts(text).map(Gpr::from_word).collect::<Option<Vec<_>>>()?;
    registers.sort();
    let twice = registers.windows(2).any(|pair| pair.first() == pair.last());
    (!registers.is_empty() && !twice).then_some(registers)
}

/// Converts a number in a place for one, or where names are allowed besides.
fn number_of(kind: Kind, number: i128) -> Result<Value, ProblemKind> {
    let expected = match kind {
        Kind::Number(..) => kind,
        Kind::HResult | Kind::Outcome | Kind::Flags => super::HEX32,
        _ => super::HEX64,
    };
    let fits = |found: &u64| matches!(expected, Kind::Number(least, most, _) if (least..=most).contains(found));
    let found = u64::try_from(number).ok().filter(fits);
    let found = found.ok_or(ProblemKind::OutOfRange { found: number, expected })?;
    Ok(match kind {
        Kind::HResult => Value::HResult(HResult(found as u32)),
        Kind::Outcome => Value::Outcome(ExpectedOutcome::Returned(HResult(found as u32))),
        Kind::Flags => Value::Flags(ExpectedFlags::Value(found as u32)),
        Kind::Address => Value::Address(SeedAddress::Address(found)),
        Kind::Target => Value::Target(SnapshotThread::Value(found)),
        Kind::ExportArgument => Value::Argument(ExportArgument::Number(found)),
        _ => Value::Number(found),
    })
}

fn wrong_type(kind: Kind, literal: &Literal<'_>) -> ProblemKind {
    let found = match literal {
        Literal::Text(_) => "string",
        Literal::Number(_) => "number",
        Literal::Fraction(_) => "fraction",
        Literal::Flag(_) => "truth value",
        Literal::Null => "null",
    };
    ProblemKind::WrongType { found, expected: kind }
}
