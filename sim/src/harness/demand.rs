//! Demands on a walker: what a text's test passes with.

use super::mixed_walker::OnSystem;
use super::{JudgeError, Scores, StackWalker, WalkerVerdict, judge};
use core::fmt;
use core::fmt::Write as _;

/// A demand on each walk of a text.
#[derive(Clone, Copy)]
pub enum Demand<'w> {
    /// The walk finds every frame, and no other one. A walk that gives up does not pass.
    Complete,
    /// The walk reports nothing that is false, and finds at least as many frames as this walker does: for instance
    /// [`Sampler`](super::Sampler), or the last release of your own. A walk may give up where that one does.
    NoWorseThan(&'w (dyn StackWalker + Sync)),
    /// The same with the walker of `clr-walker` as the other one, by the policy that a profiler takes on the system: seeded
    /// on Windows, in the handler of a signal on Unix.
    LikeMixedWalker,
}

impl fmt::Debug for Demand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "Complete",
            Self::NoWorseThan(_) => "NoWorseThan",
            Self::LikeMixedWalker => "LikeMixedWalker",
        })
    }
}

/// The walks of a text that do not meet the demand.
#[derive(Clone, Debug, Default)]
struct Failures(Vec<String>);

impl Failures {
    /// Notes a walk: the first one of a text with its frames.
    fn add(&mut self, name: &str, verdict: &WalkerVerdict, peer: Option<&WalkerVerdict>) {
        let mut text = format!("{name}: {verdict}");
        if let Some(peer) = peer.filter(|_| verdict.is_true()) {
            let (found, of_peer) = (verdict.score().found, peer.score().found);
            // Writing to a string cannot fail.
            let _ = write!(text, " ({found} frames, the other walker {of_peer})");
        }
        if self.0.is_empty() {
            let _ = write!(text, "\n{}", verdict.side_by_side());
        }
        self.0.push(text);
    }
}

/// The walks of a text.
pub(super) struct Walked {
    pub(super) verdicts: Vec<WalkerVerdict>,
    /// A message if a walk does not meet the demand.
    pub(super) failures: Option<String>,
    #[cfg_attr(not(feature = "harness"), expect(dead_code, reason = "`main` asks for it"))]
    /// True if neither this walker nor the other one finds a frame: that is no success.
    pub(super) is_void: bool,
}

/// Walks the threads of a text.
pub(super) fn walk_text(
    walker: &(impl StackWalker + ?Sized),
    demand: Demand<'_>,
    name: &str,
    text: &str,
) -> Result<Walked, JudgeError> {
    let verdicts = judge(walker, text)?;
    let peers = match demand {
        Demand::Complete => Vec::new(),
        Demand::NoWorseThan(peer) => judge(peer, text)?,
        Demand::LikeMixedWalker => judge(&OnSystem, text)?,
    };
    let mut failures = Failures::default();
    for (index, verdict) in verdicts.iter().enumerate() {
        let peer = peers.get(index);
        let passes = match peer {
            None => verdict.is_complete(),
            Some(peer) => verdict.is_true() && verdict.score().found >= peer.score().found,
        };
        if !passes {
            failures.add(name, verdict, peer);
        }
    }
    let mut all = verdicts.iter().chain(&peers);
    let is_void = !peers.is_empty() && all.all(|verdict| verdict.score().found == 0);
    let failures = (!failures.0.is_empty()).then(|| failures.0.join("\n"));
    Ok(Walked { verdicts, failures, is_void })
}

/// Runs a walker on the threads of all texts, given as pairs of name and text. Returns its scores.
///
/// # Errors
/// Returns a message with a line for each walk that does not meet the demand, the first one of each text with the
/// frames on the stack beside those that were found; then the scores.
pub fn assert_all<'t>(
    walker: &(impl StackWalker + ?Sized),
    demand: Demand<'_>,
    texts: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<Scores, String> {
    let (mut scores, mut wrong) = (Scores::default(), Vec::new());
    for (name, text) in texts {
        match walk_text(walker, demand, name, text) {
            Ok(Walked { verdicts, failures, .. }) => {
                scores.add(name, &verdicts);
                wrong.extend(failures);
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    if wrong.is_empty() { Ok(scores) } else { Err(format!("{}\n\n{scores}", wrong.join("\n"))) }
}

/// Returns the scores of a walker on texts, whatever it finds.
///
/// # Errors
/// Returns [`JudgeError`] of the first text that cannot be used, with its name.
pub fn score<'t>(
    walker: &(impl StackWalker + ?Sized),
    texts: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<Scores, (String, JudgeError)> {
    let mut scores = Scores::default();
    for (name, text) in texts {
        let verdicts = judge(walker, text).map_err(|error| (name.to_owned(), error))?;
        scores.add(name, &verdicts);
    }
    Ok(scores)
}
