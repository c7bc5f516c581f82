//! The line of a story that decided the outcome of a call.

use super::{StoryLine, Topic};

/// Returns the line that decided the outcome of a call: its last refusal or, if nothing was
/// refused, the start of the walk. Nested calls do not count.
#[must_use]
pub fn deciding(story: &[StoryLine]) -> Option<&StoryLine> {
    let own = || story.iter().filter(|line| line.depth == 0);
    let last = |kind| own().rfind(|line| line.kind == kind);
    let refusal = last(Topic::Refusal);
    refusal.or_else(|| own().find(|line| line.kind == Topic::Start)).or_else(|| last(Topic::End))
}

/// Returns the first line of a story that differs from another story: the reason why two calls
/// differ. Addresses are not compared, because the same item may have different addresses.
#[must_use]
pub fn parting<'s>(story: &'s [StoryLine], other: &[StoryLine]) -> Option<&'s StoryLine> {
    let same = |line: &StoryLine, other: &StoryLine| {
        line.kind == other.kind && line.clauses == other.clauses && line.callback == other.callback
    };
    let own = || story.iter().filter(|line| line.depth == 0);
    let mut others = other.iter().filter(|line| line.depth == 0);
    own().find(|line| !others.next().is_some_and(|other| same(line, other)))
}
