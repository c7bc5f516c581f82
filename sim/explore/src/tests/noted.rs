//! Tests that a search that learns from notes makes the same choices as one that has executed the interleavings.

use super::*;
use crate::Explorer;

/// Maximum number of interleavings.
const MOST: u64 = 200;

/// Two threads that take two locks in different order, and a third that takes one of them.
fn load(setup: &mut Setup<'_>) {
    let (one, two) = (setup.lock("one"), setup.lock("two"));
    setup.thread("forward", move |me| {
        let _one = me.lock(one);
        let _two = me.lock(two);
    });
    setup.thread("backward", move |me| {
        let _two = me.lock(two);
        let _one = me.lock(one);
    });
    setup.thread("third", move |me| drop(me.lock(one)));
}

fn execute(explorer: &mut Explorer<'_>, search: &mut dyn Search) -> Ending {
    explorer.run(&load, search, Limits::default(), HistoryDetail::Nothing)
}

/// Checks that a search that is taught follows one that executes its interleavings. Returns their number.
fn follows(mut search: impl Search + Clone) -> u64 {
    let mut taught = search.clone();
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    for number in 0..MOST {
        let is_left = search.begin(number);
        assert_eq!(is_left, taught.begin(number), "history {number}");
        if !is_left {
            assert_eq!(search.progress().covered, taught.progress().covered);
            return number;
        }
        let executed = execute(&mut explorer, &mut search);
        search.end(&executed);
        // The copy is lost with the process in which the interleaving is executed.
        let mut copy = taught.clone();
        let mut noting = NotingSearch::new(&mut copy);
        let elsewhere = execute(&mut explorer, &mut noting);
        assert_eq!(executed, elsewhere, "history {number}");
        let noted = noting.into_noted();
        assert_eq!(noted.to_string().parse().as_ref(), Ok(&noted));
        noted.teach(&mut taught, &elsewhere.schedule, elsewhere.in_turn);
    }
    MOST
}

/// Checks that a search that is asked by lines makes the same choices as one that is asked directly, and learns alike.
fn answers(mut search: impl Search + Clone) -> u64 {
    let mut asked = search.clone();
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    for number in 0..MOST {
        let is_left = search.begin(number);
        assert_eq!(is_left, asked.begin(number), "history {number}");
        if !is_left {
            assert_eq!(search.progress().covered, asked.progress().covered);
            return number;
        }
        let executed = execute(&mut explorer, &mut search);
        search.end(&executed);
        let learns = asked.observer().is_some();
        let mut remote = RemoteSearch::new(learns, false, |line: &str, is_question| {
            let answered = answer(&mut asked, line).unwrap();
            assert_eq!(answered.is_some(), is_question, "{line}");
            answered
        });
        let elsewhere = execute(&mut explorer, &mut remote);
        assert_eq!(executed, elsewhere, "history {number}");
        asked.end(&elsewhere);
    }
    MOST
}

#[test]
fn a_search_is_asked_by_lines() {
    assert_eq!(answers(Random::new(3)), MOST);
    assert_eq!(answers(Guided::new(3)), MOST);
    assert_eq!(answers(Pct::new(3, 3)), MOST);
    let histories = answers(Exhaustive::new(None));
    assert!((10..MOST).contains(&histories), "{histories}");
    for line in ["", "choose", "choose 1 0,x :0", "choose 1 0 0", "ran 1", "ran 1 g", "runs 1 2"] {
        assert_eq!(answer(&mut Random::new(1), line), Err(NotALine), "{line}");
    }
}

#[test]
fn an_exhaustive_search_learns_from_notes() {
    let histories = follows(Exhaustive::new(None));
    assert!((10..MOST).contains(&histories), "{histories}");
    let bounded = follows(Exhaustive::new(Some(1)));
    assert!((4..MOST).contains(&bounded), "{bounded}");
}

#[test]
fn a_guided_search_learns_from_notes() {
    assert_eq!(follows(Guided::new(7)), MOST);
}

#[test]
fn a_word_that_is_no_switch_point_is_named_by_its_number() {
    assert_eq!("".parse(), Ok(NotedHistory::default()));
    assert_eq!("0:0,1::ff:1:2.0: 1:0".parse::<NotedHistory>(), Err(1));
    assert_eq!("0:0,x::ff:1:2.0:".parse::<NotedHistory>(), Err(0));
    assert_eq!("0:0,1::ff:1:2.0:2=3.0,4 .".parse::<NotedHistory>(), Err(0));
    assert_eq!("0:0,1::ff:1:2.0:2=3.0 .3".parse::<NotedHistory>(), Err(1));
    assert!("0:0,1::ff:1:2.0:2=3.0 .3=8.1".parse::<NotedHistory>().is_ok());
}

/// A search that has learnt these answers, and counts the ends of interleavings.
struct Fixed {
    answers: bool,
    ends: u32,
}

impl Search for Fixed {
    fn begin(&mut self, _: u64) -> bool {
        self.answers
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        at.runnable.first().copied()
    }

    fn end(&mut self, _: &Ending) {
        self.ends += 1;
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.answers.then_some(self)
    }

    fn progress(&self) -> Progress {
        let covered = self.answers.then(|| Coverage { millionths: 7, ..Coverage::default() });
        Progress { strayed: self.answers, covered }
    }
}

impl Observer for Fixed {}

#[test]
fn a_search_that_notes_answers_as_the_other_one() {
    for answers in [false, true] {
        let mut fixed = Fixed { answers, ends: 0 };
        let mut noting = NotingSearch::new(&mut fixed);
        assert_eq!(
            [noting.begin(0), noting.observer().is_some(), noting.progress().strayed],
            [answers; 3]
        );
        assert_eq!(
            noting.progress().covered.map(|covered| covered.millionths),
            answers.then_some(7)
        );
        let process = nothing();
        let ending = execute(&mut Explorer::new(&process).unwrap(), &mut noting);
        noting.end(&ending);
        assert!(format!("{noting:?}").starts_with("NotingSearch { noted: NotedHistory {"));
        // Only a search that learns needs the states of switch points.
        assert_eq!(noting.into_noted().to_string().contains(":0,1"), answers);
        assert_eq!(fixed.ends, 1);
    }
}

#[test]
fn a_remote_search_begins_each_history_and_learns_if_the_other_one_does() {
    for learns in [false, true] {
        let mut remote = RemoteSearch::new(learns, false, |_: &str, _| Some("0".to_owned()));
        assert!(remote.begin(0) && remote.begin(1));
        assert_eq!(remote.observer().is_some(), learns);
        assert_eq!(format!("{remote:?}"), format!("RemoteSearch {{ learns: {learns}, .. }}"));
    }
}
