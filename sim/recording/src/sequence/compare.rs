//! The comparison of a recorded sequence with a simulated one: order, number, thread, mode, arguments and walks.

use super::{Sequence, SequenceLine};

/// The first line in which two sequences differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDifference {
    /// Index of the recorded line, from 0.
    pub index: usize,
    /// The recorded line; `None` if the simulated sequence has more.
    pub expected: Option<SequenceLine>,
    /// The simulated line; `None` if the recorded sequence has more.
    pub got: Option<SequenceLine>,
}

/// Shapes in which the files have the lines of the first thread before all others, because the order between threads
/// was not the same in all runs.
const SORTED: [&str; 2] = ["gc_running", "shutdown"];

impl Sequence {
    /// Compares the recorded sequence with a simulated one, and returns the first difference.
    #[must_use]
    pub fn compare(&self, simulated: &[SequenceLine]) -> Option<SequenceDifference> {
        let mut simulated = self.filtered(simulated);
        if SORTED.contains(&self.shape.as_str()) {
            simulated.sort_by_key(|line| !line.is_of_first_thread());
        }
        let mut rest = simulated.as_slice();
        let mut recorded = self.lines.iter().enumerate().peekable();
        while let Some((index, line)) = recorded.next() {
            let mut repeated = vec![line];
            if line.repeats() {
                repeated.extend(
                    recorded
                        .next_if(|(_, second)| second.is_pair_of(line))
                        .map(|(_, second)| second),
                );
            }
            let mut differs =
                repeated.iter().zip(rest.iter().copied().map(Some).chain([None, None]));
            let differs = differs.position(|(line, got)| !got.is_some_and(|got| line.is_like(got)));
            if let Some(at) = differs {
                return Some(SequenceDifference {
                    index: index + at,
                    expected: repeated.get(at).copied().cloned(),
                    got: rest.get(at).copied().cloned(),
                });
            }
            rest = rest.get(repeated.len()..).unwrap_or_default();
            while line.repeats()
                && rest.len() >= repeated.len()
                && repeated.iter().zip(rest).all(|(line, got)| line.is_like(got))
            {
                rest = rest.get(repeated.len()..).unwrap_or_default();
            }
        }
        let got = rest.first().copied().cloned()?;
        Some(SequenceDifference { index: self.lines.len(), expected: None, got: Some(got) })
    }
}

impl SequenceLine {
    const fn repeats(&self) -> bool {
        matches!(self, Self::Callback(callback) if callback.repeats)
    }

    fn is_of_first_thread(&self) -> bool {
        matches!(self, Self::Callback(callback) if callback.thread == Some(1))
    }

    /// Returns true if the line is the second one of a pair that came several times: the callback of an older version
    /// of the interface, which is made right after the newer one.
    fn is_pair_of(&self, first: &Self) -> bool {
        match (self, first) {
            (Self::Callback(second), Self::Callback(first)) => {
                second.repeats && first.name.strip_suffix('2') == Some(&second.name)
            }
            _ => false,
        }
    }

    /// Returns true if a simulated line is the recorded one.
    fn is_like(&self, simulated: &Self) -> bool {
        match (self, simulated) {
            (Self::Callback(recorded), Self::Callback(simulated)) => {
                recorded.thread == simulated.thread
                    && recorded.mode == simulated.mode
                    && recorded.name == simulated.name
                    && recorded.arguments == simulated.arguments
                    && recorded.walk == simulated.walk
            }
            _ => self == simulated,
        }
    }
}
