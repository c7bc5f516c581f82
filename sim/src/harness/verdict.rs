//! Verdicts: the frames that a walker found, beside those on the shadow stack.

use super::{Found, Score};
use clr_runtime::generation::Generation;
use core::fmt;

/// A managed frame that is on a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Method and ip of the frame.
    pub frame: Found,
    /// Name of the method.
    pub name: String,
    /// The runtime reports the frame to profilers. It does not for the funclet of a `finally` block in normal flow
    /// (C-084), and for its own methods that handle exceptions (C-087, C-163): a walker may find such a frame or not.
    pub is_reported: bool,
}

/// A walk of one thread, compared with the thread's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkerVerdict {
    /// The generation that the thread was walked on.
    pub generation: Generation,
    /// Index of the stop in the text; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Frames on the stack, leaf first.
    pub on_stack: Vec<StackFrame>,
    /// Frames that the walker found, leaf first, each with its index in `on_stack`; `None` for a frame that is
    /// not on the stack, or is out of order.
    pub found: Vec<(Found, Option<usize>)>,
    /// The walker's reason for giving up; `None` if it claims to have found all frames.
    pub gave_up: Option<String>,
}

/// The result of walking one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkerResult<'v> {
    /// The walker found every managed frame that is reported to profilers.
    Complete,
    /// The walker gave up and reported the reason; the frames found before were right, and some may be missing.
    GaveUp(&'v str),
    /// The walker missed frames without an error: the first missing one.
    Lost(&'v StackFrame),
    /// The walker found a frame that is not on the stack, or is out of order.
    Wrong(Found),
}

impl WalkerVerdict {
    /// Compares found frames with those on the stack. `is_same` compares a frame on the stack with a found one.
    pub(super) fn new(
        (generation, stop): (Generation, Option<usize>),
        on_stack: Vec<StackFrame>,
        found: Vec<Found>,
        gave_up: Option<String>,
        is_same: impl Fn(Found, Found) -> bool,
    ) -> Self {
        let mut next = 0;
        let place = |one: Found| {
            let rest = || on_stack.iter().enumerate().skip(next);
            let exact = rest().find(|(_, true_one)| true_one.frame == one);
            let place = exact.or_else(|| rest().find(|(_, it)| is_same(it.frame, one)));
            let place = place.map(|(place, _)| place);
            next = place.map_or(next, |place| place + 1);
            (one, place)
        };
        let found = found.into_iter().map(place).collect();
        Self { generation, stop, on_stack, found, gave_up }
    }

    /// Returns the result.
    pub fn result(&self) -> WalkerResult<'_> {
        if let Some((wrong, _)) = self.found.iter().find(|(_, place)| place.is_none()) {
            return WalkerResult::Wrong(*wrong);
        }
        match (&self.gave_up, self.missing().next()) {
            (Some(why), _) => WalkerResult::GaveUp(why),
            (None, Some(lost)) => WalkerResult::Lost(lost),
            (None, None) => WalkerResult::Complete,
        }
    }

    /// Returns true if the walker found every frame, and no other one.
    pub fn is_complete(&self) -> bool {
        self.result() == WalkerResult::Complete
    }

    /// Returns true if nothing that the walker reported is false: it found every frame, or some of them and an error.
    pub fn is_true(&self) -> bool {
        matches!(self.result(), WalkerResult::Complete | WalkerResult::GaveUp(_))
    }

    /// Returns the frames on the stack that the walker did not find, leaf first.
    pub fn missing(&self) -> impl Iterator<Item = &StackFrame> {
        let is_found = |place: usize| self.found.iter().any(|(_, found)| *found == Some(place));
        self.on_stack.iter().enumerate().filter_map(move |(place, frame)| {
            (frame.is_reported && !is_found(place)).then_some(frame)
        })
    }

    /// Returns the score of this walk alone.
    pub fn score(&self) -> Score {
        let frames = self.on_stack.iter().filter(|frame| frame.is_reported).count() as u64;
        let missing = self.missing().count() as u64;
        let wrong = self.found.iter().filter(|(_, place)| place.is_none()).count() as u64;
        let one = |holds| u64::from(holds);
        Score {
            walks: 1,
            complete: one(self.is_complete()),
            gave_up: one(self.gave_up.is_some()),
            false_claims: one(self.gave_up.is_none() && !self.is_complete()),
            frames,
            found: frames - missing,
            missing,
            wrong,
        }
    }

    /// Returns the frames on the stack and those that were found, side by side, as lines for people.
    pub fn side_by_side(&self) -> SideBySide<'_> {
        SideBySide(self)
    }
}

impl fmt::Display for WalkerVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.generation)?;
        if let Some(stop) = self.stop {
            write!(f, ", stop {stop}")?;
        }
        let Score { frames, found, .. } = self.score();
        match self.result() {
            WalkerResult::Complete => f.write_str(": complete"),
            WalkerResult::GaveUp(why) => {
                write!(f, ": gave up with {found} of {frames} frames: {why}")
            }
            WalkerResult::Lost(lost) => {
                write!(f, ": {} is missing, and no error was reported", lost.name)
            }
            WalkerResult::Wrong(Found { function, ip }) => {
                write!(f, ": {:#x} with ip {ip:#x} is not on the stack", function.0)
            }
        }
    }
}

/// The frames of a walk beside those on the stack, leaf first. A frame that only one side has is marked: `-` for a
/// missing one, `!` for a wrong one.
#[derive(Clone, Copy, Debug)]
pub struct SideBySide<'v>(&'v WalkerVerdict);

impl fmt::Display for SideBySide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(verdict) = self;
        let header = "on the stack";
        let names = verdict.on_stack.iter().map(|frame| frame.name.chars().count());
        let width = names.chain([header.len()]).max().unwrap_or_default() + 20;
        writeln!(f, "      {header:width$}found")?;
        let mut next = 0;
        let on_stack = |f: &mut fmt::Formatter<'_>, mark: char, frame: &StackFrame| {
            let text = format!("{} ip {:#x}", frame.name, frame.frame.ip);
            write!(f, "    {mark} {text:width$}")
        };
        let absent = |f: &mut fmt::Formatter<'_>, frame: &StackFrame| {
            on_stack(f, if frame.is_reported { '-' } else { ' ' }, frame)?;
            writeln!(f, "{}", if frame.is_reported { "missing" } else { "(need not be found)" })
        };
        for (one, place) in &verdict.found {
            let Some(place) = *place else {
                let at = "";
                writeln!(f, "    ! {at:width$}{:#x} ip {:#x}", one.function.0, one.ip)?;
                continue;
            };
            for missing in verdict.on_stack.get(next..place).unwrap_or_default() {
                absent(f, missing)?;
            }
            if let Some(frame) = verdict.on_stack.get(place) {
                on_stack(f, ' ', frame)?;
                writeln!(f, "ip {:#x}", one.ip)?;
            }
            next = place + 1;
        }
        for missing in verdict.on_stack.get(next..).unwrap_or_default() {
            absent(f, missing)?;
        }
        if let Some(why) = &verdict.gave_up {
            writeln!(f, "    the walker gave up: {why}")?;
        }
        Ok(())
    }
}
