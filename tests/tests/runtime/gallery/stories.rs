//! Tests that each walk of the embedded recordings has a story.

use super::*;
use crate::recordings::embedded;
use clr_recording::{RecordedCode, RecordedNames, RecordingReplay};
use clr_runtime::explain::{Event, StoryWriter, Topic};

/// Checks properties of every story, and of all of them together.
#[test]
fn every_recorded_walk_is_explained() {
    let (mut walks, mut kinds, mut clauses) = (0, BTreeSet::new(), BTreeSet::new());
    for (name, recording) in embedded() {
        let code = RecordedCode::new(recording);
        let mut replay = RecordingReplay::new(recording, &code).unwrap();
        for walk in &recording.walks {
            let mut callbacks = 0;
            replay.runtime().log.listen();
            replay.walk(walk, |_| callbacks += 1);
            let runtime = replay.runtime();
            let events = runtime.log.take();
            let names = RecordedNames::new(recording, runtime);
            let teller =
                StoryWriter { generation: recording.generation, names: &names, chain: &[] };
            let story = teller.write(&events);
            let what = format!("{name} walk {}", walk.n);
            let (Some(first), Some(last)) = (story.first(), story.last()) else {
                panic!("{what} has no story");
            };
            assert_eq!((first.kind, last.kind), (Topic::Call, Topic::End), "{what}");
            assert!(story.iter().all(|line| !line.text.is_empty()), "{what}");
            // A NULL callback is part of the story, too.
            let null = u32::from(events.contains(&Event::NullCallback));
            let outer = story.iter().filter(|line| line.depth == 0);
            let reported = outer.filter_map(|line| line.callback);
            assert!(reported.eq(0..callbacks + null), "{what}");
            kinds.extend(story.iter().map(|line| line.kind));
            clauses.extend(story.iter().flat_map(|line| &line.clauses).copied());
            walks += 1;
        }
    }
    assert_eq!((walks, kinds.len()), (40_067, 7));
    assert!(clauses.len() > 60 && clauses.contains(&Clause::new(44)), "{}", clauses.len());
}
