//! Schedule strings: the choices of interleavings as text.
//!
//! By default the thread of the last turn continues if it can run, else the first thread that can
//! run; a schedule string lists only the other choices. `clr1:14b3a` means: the second thread at
//! turn 14 (counted from 0), the first thread 3 turns later. The 26th thread, `z`, is followed by
//! `aa`, `ab` and so on. Failures that the search has injected follow: `+b2.80131360.0`, call 2 of the second thread, counted
//! from 0, of those that may fail, fails with 0x80131360 after 0 frames.

use super::ids::ThreadIndex;
use clr_runtime::profiling::{CallFault, HResult};
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Version of the format, and of the definition of a turn.
const VERSION: &str = "clr1";
/// Number of threads that can be named.
const MAX_THREADS: u32 = 26 * 27;

/// The choices of an interleaving.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScheduleString {
    /// The choices that differ from the default: the turn and its thread.
    pub(super) turns: Vec<(u64, ThreadIndex)>,
    /// The failures, in order.
    pub(super) faults: Vec<InjectedFault>,
}

/// A failure of a call that the search has injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InjectedFault {
    /// The thread.
    pub thread: ThreadIndex,
    /// Number of the call among those of the thread that may fail.
    pub call: u32,
    /// The result.
    pub result: HResult,
    /// Number of frames that a walk reports before it fails.
    pub frames: u32,
}

impl InjectedFault {
    pub(super) const fn new(thread: ThreadIndex, call: u32, fault: CallFault) -> Self {
        Self { thread, call, result: fault.result, frames: fault.frames }
    }
}

/// Reason why a text is not a schedule string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleStringError {
    /// The text does not begin with the version that this release supports.
    #[error("a schedule string begins with `clr1:`")]
    Version,
    /// A number of turns is expected at this byte.
    #[error("at byte {0}: expected a number of turns, as in `14b`")]
    Turns(usize),
    /// The letters of a thread are expected at this byte.
    #[error("at byte {0}: expected the letters of a thread, `a` to `z`, then `aa` to `zz`")]
    Thread(usize),
    /// A failure is expected at this byte.
    #[error("at byte {0}: expected a failure, as in `+b2.80131360.0`")]
    Failure(usize),
}

impl ScheduleString {
    /// Returns the number of choices that differ from the default, injected failures included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.turns.len() + self.faults.len()
    }

    /// Returns true if all choices are the default ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the failures that the search has injected.
    #[must_use]
    pub fn faults(&self) -> &[InjectedFault] {
        &self.faults
    }

    /// Returns the schedule without one of the choices; later choices keep their turns.
    #[must_use]
    pub fn without(&self, place: usize) -> Self {
        let mut all = self.clone();
        if place < all.turns.len() {
            all.turns.remove(place);
        } else if place < self.len() {
            all.faults.remove(place - all.turns.len());
        }
        all
    }

    /// Returns the schedule with only its first `count` choices of threads.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self { turns: self.turns.iter().copied().take(count).collect(), faults: Vec::new() }
    }

    /// Records an injected failure.
    pub(super) fn inject(&mut self, fault: InjectedFault) {
        self.faults.push(fault);
    }

    /// Records a choice unless it is the default one.
    pub(super) fn note(
        &mut self,
        turn: u64,
        runnable: &[ThreadIndex],
        last: Option<ThreadIndex>,
        chosen: ThreadIndex,
    ) {
        if by_itself(runnable, last) != Some(chosen) {
            self.turns.push((turn, chosen));
        }
    }
}

/// Returns the default choice.
pub(super) fn by_itself(
    runnable: &[ThreadIndex],
    last: Option<ThreadIndex>,
) -> Option<ThreadIndex> {
    last.filter(|last| runnable.contains(last)).or_else(|| runnable.first().copied())
}

impl fmt::Display for ScheduleString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}:")?;
        let mut from = 0;
        for (turn, thread) in &self.turns {
            write!(f, "{}", turn - from)?;
            from = *turn;
            write!(f, "{}", Letters(*thread))?;
        }
        for InjectedFault { thread, call, result, frames } in &self.faults {
            write!(f, "+{}{call}.{:08x}.{frames}", Letters(*thread), result.0)?;
        }
        Ok(())
    }
}

/// A thread as letters.
struct Letters(ThreadIndex);

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = (self.0.0 / 26, self.0.0 % 26);
        if high > 0 {
            write!(f, "{}", letter(high - 1))?;
        }
        write!(f, "{}", letter(low))
    }
}

fn letter(of: u32) -> char {
    char::from(b'a' + (of % 26) as u8)
}

impl FromStr for ScheduleString {
    type Err = ScheduleStringError;

    fn from_str(text: &str) -> Result<Self, ScheduleStringError> {
        let rest = text.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(':'));
        let rest = rest.ok_or(ScheduleStringError::Version)?;
        let start = text.len() - rest.len();
        let mut parts = rest.split('+');
        let rest = parts.next().unwrap_or_default();
        let mut faults = Vec::new();
        let mut at = start + rest.len();
        for part in parts {
            at += 1;
            faults.push(fault(part).ok_or(ScheduleStringError::Failure(at))?);
            at += part.len();
        }
        let mut turns: Vec<(u64, ThreadIndex)> = Vec::new();
        let mut bytes = rest.bytes().enumerate().peekable();
        let mut turn = 0_u64;
        while let Some((at, _)) = bytes.peek().copied() {
            let bad = ScheduleStringError::Turns(start + at);
            let mut gap: Option<u64> = None;
            while let Some((_, digit)) = bytes.next_if(|(_, byte)| byte.is_ascii_digit()) {
                let more = gap.unwrap_or(0).checked_mul(10);
                gap = Some(
                    more.and_then(|more| more.checked_add(u64::from(digit - b'0'))).ok_or(bad)?,
                );
            }
            let gap = gap.filter(|gap| *gap > 0 || turns.is_empty()).ok_or(bad)?;
            turn = turn.checked_add(gap).ok_or(bad)?;
            let letters_at = bytes.peek().map_or(start + rest.len(), |(at, _)| start + at);
            let mut letters = String::new();
            while let Some((_, letter)) = bytes.next_if(|(_, byte)| byte.is_ascii_lowercase()) {
                letters.push(letter.into());
            }
            turns.push((turn, thread(&letters).ok_or(ScheduleStringError::Thread(letters_at))?));
        }
        Ok(Self { turns, faults })
    }
}

/// Returns the thread of some letters.
fn thread(letters: &str) -> Option<ThreadIndex> {
    let mut number: Option<u32> = None;
    for letter in letters.bytes() {
        let before = number.map_or(0, |before| before + 1);
        number = Some(before * 26 + u32::from(letter - b'a')).filter(|it| *it < MAX_THREADS);
        number?;
    }
    number.map(ThreadIndex)
}

/// Reads a failure, `b2.80131360.0`.
fn fault(text: &str) -> Option<InjectedFault> {
    let letters = text.bytes().take_while(u8::is_ascii_lowercase).count();
    let (letters, rest) = text.split_at(letters);
    let mut parts = rest.split('.');
    let mut part = || parts.next();
    let (call, result, frames) = (part()?, part()?, part()?);
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(InjectedFault {
        thread: thread(letters)?,
        call: Some(call).filter(is_number)?.parse().ok()?,
        result: HResult(u32::from_str_radix(Some(result).filter(is_number)?, 16).ok()?),
        frames: Some(frames).filter(is_number)?.parse().ok()?,
    })
    .filter(|_| parts.next().is_none())
}
