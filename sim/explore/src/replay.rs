//! Histories as short strings.
//!
//! Whoever had the last turn goes on if it can, else the first thread that can: only where something
//! else was chosen, a history has to say so. `clr1:14b3a` is: at the 14th turn (counted from 0) the
//! second thread, 3 turns later the first one. Behind the 26th thread, `z`, come `aa`, `ab` and so on.

use super::bug::Bug;
use super::history::ThreadIndex;
use super::search::{Choice, Search};
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// The version of the format, and of what a turn is.
const VERSION: &str = "clr1";
/// As many threads can be named.
const MAX_THREADS: u32 = 26 * 27;

/// What was chosen in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trail {
    /// Where something else was chosen than what comes by itself: the turn, and whose it was.
    pub(super) turns: Vec<(u64, ThreadIndex)>,
}

/// Why a text is not the string of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrailError {
    /// It does not begin with the version that this release understands.
    #[error("a replay string of this release begins with `clr1:`")]
    Version,
    /// Here a number is expected, of as many turns as there can be.
    #[error("at byte {0}: a number of turns is expected, as in `14b`")]
    Turns(usize),
    /// Here the letters of a thread are expected.
    #[error("at byte {0}: the letters of a thread are expected, `a` to `z`, then `aa` to `zz`")]
    Thread(usize),
}

impl Trail {
    /// How often something else was chosen than what comes by itself.
    #[must_use]
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The same without one of the choices; what comes later stays where it is.
    #[must_use]
    pub fn without(&self, place: usize) -> Self {
        let mut turns = self.turns.clone();
        if place < turns.len() {
            turns.remove(place);
        }
        Self { turns }
    }

    /// Its first choices alone.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self { turns: self.turns.iter().copied().take(count).collect() }
    }

    /// Notes a choice, if it is none that comes by itself.
    pub(super) fn note(
        &mut self,
        turn: u64,
        runnable: &[ThreadIndex],
        last: Option<ThreadIndex>,
        chosen: ThreadIndex,
    ) {
        if by_itself(runnable, last) != Some(chosen) {
            let late = u64::from(Bug::ReplayOffByOne.is_planted());
            self.turns.push((turn + late, chosen));
        }
    }
}

/// Who comes by itself.
pub(super) fn by_itself(
    runnable: &[ThreadIndex],
    last: Option<ThreadIndex>,
) -> Option<ThreadIndex> {
    last.filter(|last| runnable.contains(last)).or_else(|| runnable.first().copied())
}

impl fmt::Display for Trail {
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

impl FromStr for Trail {
    type Err = TrailError;

    fn from_str(text: &str) -> Result<Self, TrailError> {
        let rest = text.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(':'));
        let rest = rest.ok_or(TrailError::Version)?;
        let start = text.len() - rest.len();
        let mut turns: Vec<(u64, ThreadIndex)> = Vec::new();
        let mut bytes = rest.bytes().enumerate().peekable();
        let mut turn = 0_u64;
        while let Some((at, _)) = bytes.peek().copied() {
            let bad = TrailError::Turns(start + at);
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
                    return Err(TrailError::Thread(letters_at));
                }
            }
            let thread = thread.ok_or(TrailError::Thread(letters_at))?;
            turns.push((turn, ThreadIndex(thread)));
        }
        Ok(Self { turns })
    }
}

/// Makes a history again.
#[derive(Clone, Debug)]
pub struct Replay {
    trail: Trail,
    next: usize,
    strayed: bool,
}

impl Replay {
    /// The one of this trail.
    #[must_use]
    pub const fn new(trail: Trail) -> Self {
        Self { trail, next: 0, strayed: false }
    }

    /// Whether a thread that is named could not go on where it should have, or its turn never came: it is
    /// another history.
    #[must_use]
    pub fn has_strayed(&self) -> bool {
        self.strayed || self.next < self.trail.turns.len()
    }
}

impl Search for Replay {
    fn begin(&mut self, number: u64) -> bool {
        self.next = 0;
        self.strayed = false;
        number == 0
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        let usual = by_itself(at.runnable, at.last);
        let Some((turn, thread)) = self.trail.turns.get(self.next).copied() else { return usual };
        if turn > at.slice {
            return usual;
        }
        self.next += 1;
        if turn == at.slice && at.runnable.contains(&thread) {
            return Some(thread);
        }
        self.strayed = true;
        usual
    }
}
