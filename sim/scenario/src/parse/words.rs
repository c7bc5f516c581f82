//! Words and numbers with a fixed meaning.

use super::node::Value;
use super::reader::wrong_type;
use crate::document::Literal;
use crate::grammar::Kind;
use crate::hand_stack::PlacedThread;
use crate::keywords::Keyword;
use crate::problem::{ExpectedSyntax, ProblemKind};
use crate::snapshot::{
    ExpectedFlags, ExpectedOutcome, SeedAddress, SnapshotCaller, SnapshotThread,
};
use clr_runtime::generation::Generations;
use clr_runtime::profiling::HResult;
use clr_walker::registers::Gpr;

/// Converts a text with a fixed meaning to a value.
pub(super) fn word(kind: Kind, text: &str) -> Option<Value> {
    let is_tag = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let label = || {
        let (function, offset) = text.rsplit_once("+0x").filter(|(name, _)| !name.is_empty())?;
        // The format has no sign before the digits.
        let digits = offset.bytes().all(|byte| byte.is_ascii_hexdigit());
        let offset = u32::from_str_radix(offset, 16).ok().filter(|_| digits)?;
        Some((function.to_owned(), offset))
    };
    let hresult = || HResult::NAMED.iter().copied().find(|it| it.name() == Some(text));
    match kind {
        Kind::Saved if text == ALL_SAVED => Some(Value::All),
        Kind::Saved => {
            Gpr::from_word(text).filter(|register| can_be_saved(*register)).map(Value::Gpr)
        }
        Kind::Tag => is_tag(text).then(|| Value::Name(text.to_owned())),
        Kind::Label => label().map(|(function, offset)| Value::Label(function, offset)),
        Kind::Address => label().map(|_| Value::Address(SeedAddress::Label(text.to_owned()))),
        Kind::Generations => {
            let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
            words.peek()?;
            let all = words.try_fold(Generations::NONE, |all, word| {
                Some(all.with(Generations::from_word(word)?))
            });
            all.map(Value::Generations)
        }
        Kind::Seed => (!text.is_empty()).then(|| Value::Name(text.to_owned())),
        Kind::HResult => hresult().map(Value::HResult),
        Kind::Outcome => {
            let other = match text {
                "killed" => Some(ExpectedOutcome::Killed { code: None }),
                "access-violation" => Some(ExpectedOutcome::AccessViolation { at: None }),
                "blocked" => Some(ExpectedOutcome::Blocked),
                "endless" => Some(ExpectedOutcome::Endless),
                _ => None,
            };
            other.or_else(|| hresult().map(ExpectedOutcome::Returned)).map(Value::Outcome)
        }
        Kind::Flags if text == OWN_FLAGS => Some(Value::Flags(ExpectedFlags::Own)),
        Kind::Stale => {
            let words = text.split(' ').filter(|word| !word.is_empty());
            let mut registers = words.map(Gpr::from_word).collect::<Option<Vec<_>>>()?;
            registers.sort();
            let twice = registers.windows(2).any(|pair| pair.first() == pair.last());
            (!registers.is_empty() && !twice).then_some(Value::Registers(registers))
        }
        Kind::Clause => text.parse().ok().map(Value::Clause),
        Kind::Hazard => text.parse().ok().map(Value::Hazard),
        _ => None,
    }
}

/// Converts a number in a place where names are also allowed.
pub(super) fn number_of(
    kind: Kind,
    number: i128,
    value: &Literal<'_>,
) -> Result<Value, ProblemKind> {
    let most = match kind {
        Kind::HResult | Kind::Outcome | Kind::Flags => u64::from(u32::MAX),
        Kind::Address | Kind::Target => u64::MAX,
        _ => return Err(wrong_type(kind, value)),
    };
    let fits = u64::try_from(number).ok().filter(|number| *number <= most);
    let out_of_range =
        || ProblemKind::OutOfRange { found: number, expected: ExpectedSyntax::Number(0, most) };
    let number = fits.ok_or_else(out_of_range)?;
    Ok(match kind {
        Kind::HResult => Value::HResult(HResult(number as u32)),
        Kind::Outcome => Value::Outcome(ExpectedOutcome::Returned(HResult(number as u32))),
        Kind::Flags => Value::Flags(ExpectedFlags::Value(number as u32)),
        Kind::Address => Value::Address(SeedAddress::Address(number)),
        _ => Value::Target(SnapshotThread::Value(number)),
    })
}

pub(super) fn caller(thread: PlacedThread) -> Option<SnapshotCaller> {
    match thread {
        PlacedThread::Own => Some(SnapshotCaller::Own),
        PlacedThread::NativeWalker => Some(SnapshotCaller::NativeWalker),
        PlacedThread::ManagedWalker => Some(SnapshotCaller::ManagedWalker),
        PlacedThread::Other => None,
    }
}

pub(super) fn target(text: &str) -> Option<SnapshotThread> {
    match text {
        "own" => Some(SnapshotThread::Own),
        "null" => Some(SnapshotThread::Null),
        _ => None,
    }
}

/// The word for all nonvolatile registers.
pub(crate) const ALL_SAVED: &str = "all";

/// Returns true if a prologue may save a register: RSP is not saved, as the position of the frame gives it.
pub(crate) const fn can_be_saved(register: Gpr) -> bool {
    !matches!(register, Gpr::Rsp)
}

/// The word for the ContextFlags that the runtime gets from a stopped thread.
pub(crate) const OWN_FLAGS: &str = "own";
