//! The line of a story that decided how the call came out.

use super::{Kind, Line};

/// The line that decided how a call came out: its last refusal; in a walk that nothing refused, what
/// it started from. Calls within the call have no say.
#[must_use]
pub fn deciding(story: &[Line]) -> Option<&Line> {
    let own = || story.iter().filter(|line| line.depth == 0);
    let last = |kind| own().rfind(|line| line.kind == kind);
    let refusal = last(Kind::Refusal);
    refusal.or_else(|| own().find(|line| line.kind == Kind::Start)).or_else(|| last(Kind::End))
}

/// The first line of a story that another one has not: what made two calls differ. Addresses are
/// not looked at, for what lies elsewhere may be the same.
#[must_use]
pub fn parting<'s>(story: &'s [Line], other: &[Line]) -> Option<&'s Line> {
    let same = |line: &Line, other: &Line| {
        line.kind == other.kind && line.clauses == other.clauses && line.callback == other.callback
    };
    let own = || story.iter().filter(|line| line.depth == 0);
    let mut others = other.iter().filter(|line| line.depth == 0);
    own().find(|line| !others.next().is_some_and(|other| same(line, other)))
}
