//! Values for the places of a text: of the kind that the grammar wants there.

use crate::text::grammar::Kind;
use crate::text::mutate::tree::Value;
use clr_generate::Choices;
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::HResult;

/// Values that texts have, with their kinds.
pub(super) type Pool = Vec<(Kind, Value)>;

/// Words of the kinds that have other values besides.
const fn words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Word(words) => words,
        Kind::Caller => &["own", "native-walker", "managed-walker"],
        Kind::Target => &["own", "null"],
        Kind::Seed => &["none", "leaf", "top-managed", "stale", "bytes"],
        Kind::Outcome => &["killed", "access-violation", "blocked", "endless"],
        Kind::Party | Kind::Flags => &["own"],
        Kind::Stale => &["rax", "rbx rsi", "rbp r12"],
        Kind::Tag => &["fuzz"],
        Kind::Hazard => &["H-01", "H-02", "H-04", "H-06", "H-08", "H-09"],
        Kind::Code => &["AllocateObject", "JIT_New", "ThePreStub"],
        Kind::Faults => &["all", "EnumThreads", "DoStackSnapshot=E_FAIL"],
        Kind::Schedule => &["clr1:", "clr1:3b", "clr1:5b2a7c"],
        _ => &[],
    }
}

/// Draws a value of a kind: often another one that the text has already.
pub(super) fn draw<C: Choices>(kind: Kind, pool: &Pool, choices: &mut C) -> Option<Value> {
    let known: Vec<_> = pool.iter().filter(|(other, _)| *other == kind).collect();
    if !known.is_empty() && choices.chance(1, 2) {
        let index = choices.below(known.len() as u32) as usize;
        return Some(known.get(index)?.1.clone());
    }
    let text = |text: &str| Value::Text(text.to_owned());
    let word = |choices: &mut C| choices.pick(words(kind)).map(text);
    Some(match kind {
        Kind::Flag => Value::Flag(choices.chance(1, 2)),
        Kind::Number(least, most, _) => number(least, most, choices),
        Kind::Stale | Kind::Flags if choices.chance(1, 2) => match kind {
            Kind::Stale => Value::Flag(choices.chance(1, 2)),
            _ => Value::Number(i128::from(choices.one([0x10_000B, 0x10_0001, 0x10_0003, 0]))),
        },
        Kind::Generations => text(&choices.one(Generation::ALL).to_string()),
        Kind::HResult => HResult::NAMED
            .get(choices.below(HResult::NAMED.len() as u32) as usize)?
            .name()
            .map(text)?,
        Kind::Clause => text(&Clause::new(choices.between(1, 150) as u16).to_string()),
        Kind::Name => text(choices.one(["x", "App.Foo", "App.Main"])),
        Kind::Label | Kind::Address => {
            let function = known_name(pool, choices)?;
            text(&format!("{function}+{:#x}", choices.below(0x60)))
        }
        _ => word(choices)?,
    })
}

/// Draws the name of a function of the text.
fn known_name<C: Choices>(pool: &Pool, choices: &mut C) -> Option<String> {
    let name = |(kind, value): &'_ (Kind, Value)| match (kind, value) {
        (Kind::Function, Value::Text(name)) => Some(name.clone()),
        (Kind::Label, Value::Text(label)) => label.split("+0x").next().map(ToOwned::to_owned),
        _ => None,
    };
    let mut names: Vec<_> = pool.iter().filter_map(name).collect();
    let index = choices.below(names.len() as u32) as usize;
    (index < names.len()).then(|| names.swap_remove(index))
}

/// Draws a number in a range: an end, a power of two or its neighbour, or a small one.
fn number<C: Choices>(least: u64, most: u64, choices: &mut C) -> Value {
    let number = match choices.below(6) {
        0 => least,
        1 => most,
        2 => (1_u64 << choices.below(64)).wrapping_sub(u64::from(choices.below(2))),
        _ => least.saturating_add(u64::from(choices.below(40))),
    };
    Value::Number(i128::from(number.clamp(least, most)))
}

/// Changes a value a little: a number by a few or by a factor, an offset, one choice of a schedule.
/// Returns `None` for values that have no neighbours.
pub(super) fn nudge<C: Choices>(kind: Kind, value: &Value, choices: &mut C) -> Option<Value> {
    let near = |number: i128, choices: &mut C| {
        let by = i128::from(1_u32 << choices.below(6));
        match choices.below(4) {
            0 => number + by,
            1 => number - by,
            2 => number.saturating_mul(2),
            _ => number / 2,
        }
    };
    match (kind, value) {
        (Kind::Number(least, most, _), Value::Number(number)) => {
            let near = near(*number, choices).clamp(i128::from(least), i128::from(most));
            Some(Value::Number(near))
        }
        (_, Value::Number(number)) => Some(Value::Number(near(*number, choices).max(0))),
        (Kind::Flag, Value::Flag(flag)) => Some(Value::Flag(!flag)),
        (Kind::Label | Kind::Address, Value::Text(label)) => {
            let (function, offset) = label.rsplit_once("+0x")?;
            let offset = i128::from(u32::from_str_radix(offset, 16).ok()?);
            Some(Value::Text(format!("{function}+{:#x}", near(offset, choices).max(0))))
        }
        (Kind::Schedule, Value::Text(string)) => schedule(string, choices).map(Value::Text),
        _ => None,
    }
}

/// Changes, removes or adds one choice of a schedule string.
fn schedule<C: Choices>(string: &str, choices: &mut C) -> Option<String> {
    let (version, rest) = string.split_once(':')?;
    // Injected failures stay.
    let (rest, faults) = rest.split_at(rest.find('+').unwrap_or(rest.len()));
    // A choice is a number of turns and the letters of a thread.
    let mut turns: Vec<(u64, String)> = Vec::new();
    for part in rest.split_inclusive(|c: char| c.is_ascii_lowercase()) {
        let digits = part.trim_end_matches(|c: char| c.is_ascii_lowercase());
        match (turns.last_mut(), digits.parse()) {
            (_, Ok(gap)) => turns.push((gap, part[digits.len()..].to_owned())),
            (Some((_, thread)), Err(_)) => thread.push_str(part),
            (None, Err(_)) => return None,
        }
    }
    let at = choices.below(turns.len() as u32) as usize;
    let thread = |choices: &mut C| choices.one(["a", "b", "c", "d"]).to_owned();
    match (choices.below(4), turns.get_mut(at)) {
        (0, Some(turn)) => turn.0 = u64::from(choices.between(1, 1 + 2 * turn.0.min(1000) as u32)),
        (1, Some(turn)) => turn.1 = thread(choices),
        (2, Some(_)) => drop(turns.remove(at)),
        _ => {
            let turn = (u64::from(choices.between(1, 12)), thread(choices));
            turns.insert(at, turn);
        }
    }
    let parts = turns.into_iter().flat_map(|(gap, thread)| [gap.to_string(), thread]);
    Some(format!("{version}:{}{faults}", parts.collect::<String>()))
}
