//! Schedule strings: the choices of interleavings as text.
//!
//! By default the thread of the last turn continues if it can run, else the first thread that can
//! run; a schedule string lists only the other choices. `clr1:14b3a` means: the second thread at
//! turn 14 (counted from 0), the first thread 3 turns later. The 26th thread, `z`, is followed by
//! `aa`, `ab` and so on.

use super::ids::ThreadIndex;
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
}

impl ScheduleString {
    /// Returns the number of choices that differ from the default.
    #[must_use]
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns true if all choices are the default ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the schedule without one of the choices; later choices keep their turns.
    #[must_use]
    pub fn without(&self, place: usize) -> Self {
        let mut turns = self.turns.clone();
        if place < turns.len() {
            turns.remove(place);
        }
        Self { turns }
    }

    /// Returns the schedule with only its first `count` choices.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self { turns: self.turns.iter().copied().take(count).collect() }
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
            let (high, low) = (thread.0 / 26, thread.0 % 26);
            if high > 0 {
                write!(f, "{}", letter(high - 1))?;
            }
            write!(f, "{}", letter(low))?;
        }
        Ok(())
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
            let letters_at = bytes.peek().map_or(text.len(), |(at, _)| start + at);
            let mut thread: Option<u32> = None;
            while let Some((_, letter)) = bytes.next_if(|(_, byte)| byte.is_ascii_lowercase()) {
                let before = thread.map_or(0, |before| before + 1);
                thread = Some(before * 26 + u32::from(letter - b'a'));
                if thread.is_some_and(|thread| thread >= MAX_THREADS) {
                    return Err(ScheduleStringError::Thread(letters_at));
                }
            }
            let thread = thread.ok_or(ScheduleStringError::Thread(letters_at))?;
            turns.push((turn, ThreadIndex(thread)));
        }
        Ok(Self { turns })
    }
}
