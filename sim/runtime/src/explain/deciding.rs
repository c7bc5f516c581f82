//! The line of a story that decided the outcome of a call.

use super::{StoryLine, Topic};

/// Returns the line that decided the outcome of a call: its last refusal or, if nothing was
/// refused, the start of the walk. Nested calls do not count.
pub fn deciding(story: &[StoryLine]) -> Option<&StoryLine> {
    let own = || story.iter().filter(|line| line.depth == 0);
    let last = |kind| own().rfind(|line| line.kind == kind);
    let refusal = last(Topic::Refusal);
    refusal.or_else(|| own().find(|line| line.kind == Topic::Start)).or_else(|| last(Topic::End))
}

/// Returns the first line of a story that differs from another story: the reason why two calls
/// differ. Addresses are not compared, because the same item may have different addresses.
pub fn parting<'s>(story: &'s [StoryLine], other: &[StoryLine]) -> Option<&'s StoryLine> {
    let same = |line: &StoryLine, other: &StoryLine| {
        line.kind == other.kind && line.clauses == other.clauses && line.callback == other.callback
    };
    let own = || story.iter().filter(|line| line.depth == 0);
    let mut others = other.iter().filter(|line| line.depth == 0);
    own().find(|line| !others.next().is_some_and(|other| same(line, other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clause::Clause;

    /// Returns a line with this text; lower case for a nested call.
    fn line(kind: Topic, text: &str) -> StoryLine {
        StoryLine {
            kind,
            depth: usize::from(text.starts_with(|c: char| c.is_lowercase())),
            callback: None,
            clauses: vec![],
            repeats: false,
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_last_refusal_decides_else_the_start_else_the_end() {
        use Topic::{Call, Callback, End, Refusal, Start};
        for (story, expected) in [
            (&[][..], None),
            (&[(Call, "A")], None),
            (&[(Call, "A"), (End, "B"), (End, "C")], Some("C")),
            (&[(Call, "A"), (Start, "B"), (Callback, "C"), (Start, "D"), (End, "E")], Some("B")),
            (&[(Start, "A"), (Refusal, "B"), (Refusal, "C"), (End, "D")], Some("C")),
            // Nested calls decide nothing.
            (&[(Start, "A"), (Refusal, "b"), (End, "C")], Some("A")),
            (&[(Start, "a"), (End, "b"), (End, "C")], Some("C")),
            (&[(Refusal, "a")], None),
        ] {
            let lines: Vec<_> = story.iter().map(|(kind, text)| line(*kind, text)).collect();
            let found = deciding(&lines).map(|line| line.text.as_str());
            assert_eq!(found, expected, "{story:?}");
        }
    }

    #[test]
    fn stories_part_where_topic_clauses_or_callback_differ() {
        let story = [line(Topic::Call, "A"), line(Topic::Walk, "b"), line(Topic::End, "C")];
        let changed = |n: usize, change: fn(&mut StoryLine)| {
            let mut other = story.clone();
            change(&mut other[n]);
            other
        };
        let parted = |other: &[StoryLine]| parting(&story, other).map(|line| line.text.as_str());
        assert_eq!(parted(&story), None);
        // Addresses are in texts, and nested calls say nothing.
        assert_eq!(parted(&changed(2, |line| line.text = "D".to_owned())), None);
        assert_eq!(parted(&changed(1, |line| line.kind = Topic::Start)), None);
        assert_eq!(parted(&[&story[..1], &story[2..]].concat()), None);
        assert_eq!(parted(&changed(2, |line| line.kind = Topic::Refusal)), Some("C"));
        assert_eq!(parted(&changed(2, |line| line.callback = Some(0))), Some("C"));
        assert_eq!(parted(&changed(0, |line| line.clauses = vec![Clause::new(1)])), Some("A"));
        assert_eq!(parted(&story[..2]), Some("C"), "the other one ends before");
        assert_eq!(parted(&[]), Some("A"));
        assert_eq!(parting(&story[..1], &story), None, "the other one goes on");
    }
}
