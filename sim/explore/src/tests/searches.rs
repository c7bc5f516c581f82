//! Tests of the choices that searches make, without a process.

use super::*;

const fn threads<const N: usize>(numbers: [u32; N]) -> [ThreadIndex; N] {
    let mut threads = [ThreadIndex(0); N];
    let mut place = 0;
    while place < N {
        threads[place] = ThreadIndex(numbers[place]);
        place += 1;
    }
    threads
}

const TWO: [ThreadIndex; 2] = threads([0, 1]);

/// A state of which only the hash is known.
#[derive(Debug)]
struct Known(u64);

impl ProcessState for Known {
    fn abstract_state(&self) -> u64 {
        self.0
    }

    fn contents(&self) -> Option<Contents> {
        None
    }
}

/// Reports a turn that has accessed nothing.
fn ran(search: &mut dyn Search, thread: u32) {
    let (thread, footprint) = (ThreadIndex(thread), Footprint::default());
    if let Some(observer) = search.observer() {
        observer.stepped(&Step { thread, footprint, contents: &|| None });
    }
}

/// Asks for a thread at a switch point.
fn choose(search: &mut dyn Search, turn: u64, runnable: &[ThreadIndex], last: Option<u32>) -> u32 {
    let (last, process) = (last.map(ThreadIndex), &Known(turn));
    search.choose(&Choice { turn, runnable, last, within: false, waits: &[], process }).unwrap().0
}

/// Returns the choices of an interleaving that has begun, in which these threads can run at each turn.
fn choices(search: &mut dyn Search, runnable: &[&[ThreadIndex]]) -> Vec<u32> {
    let mut chosen = Vec::new();
    for (turn, runnable) in (0..).zip(runnable) {
        let next = choose(search, turn, runnable, chosen.last().copied());
        ran(search, next);
        chosen.push(next);
    }
    chosen
}

/// Returns the choices of an interleaving in which the same threads can always run.
fn history(search: &mut dyn Search, number: u64, runnable: &[ThreadIndex], turns: u64) -> Vec<u32> {
    assert!(search.begin(number));
    choices(search, &vec![runnable; turns as usize])
}

/// Returns the turns at which another thread than before was chosen.
fn changes(chosen: &[u32]) -> Vec<usize> {
    (1..chosen.len()).filter(|turn| chosen[*turn] != chosen[turn - 1]).collect()
}

#[test]
fn a_replay_takes_the_listed_choices_and_else_the_usual_ones() {
    let mut replay = ReplaySearch::new("clr1:1b3c".parse().unwrap());
    assert!(replay.begin(0));
    let three = threads([0, 1, 2]);
    assert_eq!(choose(&mut replay, 0, &three, None), 0, "the first one");
    assert_eq!(choose(&mut replay, 1, &three, Some(0)), 1, "listed");
    assert_eq!(choose(&mut replay, 2, &three, Some(1)), 1, "the last one goes on");
    assert_eq!(choose(&mut replay, 3, &threads([0, 2]), Some(1)), 0, "it cannot");
    assert!(replay.progress().strayed, "a turn is left");
    assert_eq!(choose(&mut replay, 4, &three, Some(0)), 2, "listed");
    assert!(!replay.progress().strayed);
    assert_eq!(choose(&mut replay, 5, &three, Some(2)), 2);
    assert!(!replay.progress().strayed);
    // There is one interleaving.
    assert!(!replay.begin(1));
}

#[test]
fn a_replay_strays_where_a_listed_thread_cannot_run() {
    let mut replay = ReplaySearch::new("clr1:1c".parse().unwrap());
    for (turn, runnable, strays) in
        [(1, &TWO[..], true), (2, &threads([0, 2]), true), (1, &threads([0, 2]), false)]
    {
        replay.begin(0);
        assert_eq!(choose(&mut replay, 0, &TWO, None), 0);
        let chosen = choose(&mut replay, turn, runnable, Some(0));
        assert_eq!(
            (chosen, replay.progress().strayed),
            (if strays { 0 } else { 2 }, strays),
            "{turn}"
        );
    }
}

#[test]
fn priorities_choose_the_same_thread_until_they_change() {
    let mut first = BTreeSet::new();
    for number in 0..50 {
        let chosen = history(&mut Pct::new(3, 1), number, &threads([0, 1, 2]), 300);
        assert_eq!(changes(&chosen), [] as [usize; 0], "{number}");
        first.insert(chosen[0]);
    }
    assert_eq!(first, [0, 1, 2].into(), "any thread can have the highest one");
    // A depth of 0 is one of 1.
    assert_eq!(changes(&history(&mut Pct::new(3, 0), 0, &TWO, 300)), [] as [usize; 0]);
}

#[test]
fn a_bug_of_depth_two_needs_one_change() {
    let mut search = Pct::new(5, 2).over(10);
    let mut turns = BTreeSet::new();
    for number in 0..3_000 {
        let chosen = history(&mut search, number, &TWO, 60);
        let changes = changes(&chosen);
        assert_eq!(changes.len(), 1, "{number}");
        turns.extend(changes);
    }
    // The length is varied: half of the measured one, the same, or twice as much.
    assert_eq!(turns, (1..=20).collect());
    // Without a measured one it is a hundred; an interleaving without turns counts as one turn.
    let latest = |mut search: Pct| {
        let last = |number| changes(&history(&mut search, number, &TWO, 300))[0];
        (0..3_000).map(last).max()
    };
    assert!((190..=200).contains(&latest(Pct::new(5, 2)).unwrap()));
    assert_eq!(latest(Pct::new(5, 2).over(0)), Some(2));
}

#[test]
fn deeper_bugs_have_as_many_changes_as_they_need_at_most() {
    for depth in 2..6 {
        let mut search = Pct::new(5, depth).over(30);
        let three = threads([0, 1, 2]);
        let most =
            (0..500).map(|number| changes(&history(&mut search, number, &three, 90)).len()).max();
        assert_eq!(most, Some(depth as usize - 1), "{depth}");
    }
}

#[test]
fn a_history_depends_on_its_seed_and_number() {
    let searches: [fn(u64) -> Box<dyn Search>; 3] = [
        |seed| Box::new(Random::new(seed)),
        |seed| Box::new(Pct::new(seed, 3)),
        |seed| Box::new(Guided::new(seed)),
    ];
    for search in searches {
        let of = |seed, number| history(&mut *search(seed), number, &threads([0, 1, 2]), 100);
        assert_eq!(of(1, 5), of(1, 5));
        let distinct: BTreeSet<_> = (0..4)
            .flat_map(|seed| (0..4).map(move |number| (seed, number)))
            .map(|(a, b)| of(a, b))
            .collect();
        assert!(distinct.len() > 8, "{}", distinct.len());
    }
}

#[test]
fn strategies_make_their_searches() {
    let learns = |strategy: Strategy| strategy.search(0).observer().is_some();
    assert!(learns(Strategy::Guided) && learns(Strategy::Exhaustive { preemptions: None }));
    assert!(!learns(Strategy::Random) && !learns(Strategy::Pct { depth: 3 }));
    let shared = |strategy: Strategy| strategy.can_be_shared();
    assert!(shared(Strategy::Random) && shared(Strategy::Pct { depth: 3 }));
    assert!(!shared(Strategy::Guided) && !shared(Strategy::Exhaustive { preemptions: None }));
    // Only priorities need the length of interleavings.
    for strategy in [Strategy::Random, Strategy::Guided, Strategy::Exhaustive { preemptions: None }]
    {
        let _ = strategy.prepare(0, |_| panic!("not measured"));
    }
    let mut measured = false;
    let mut search = Strategy::Pct { depth: 2 }.prepare(5, |usual| {
        measured = true;
        assert_eq!(choose(usual, 0, &TWO, None), 0);
        10
    });
    assert!(measured);
    let mut same = Pct::new(5, 2).over(10);
    for number in 0..20 {
        let expected = history(&mut same, number, &TWO, 60);
        assert_eq!(history(&mut *search, number, &TWO, 60), expected);
    }
}

fn ended(in_turn: bool) -> Ending {
    Ending { turns: 2, in_turn, ..Ending::default() }
}

#[test]
fn all_interleavings_of_two_turns_are_four() {
    let mut search = Interleavings::new(None);
    let mut found = BTreeSet::new();
    let mut number = 0;
    while search.begin(number) {
        assert_eq!(search.progress().covered.unwrap().millionths, 0, "not yet");
        let chosen: Vec<_> = (0..2)
            .map(|turn| {
                let next = choose(&mut search, turn, &TWO, None);
                ran(&mut search, next);
                next
            })
            .collect();
        found.insert(chosen);
        search.end(&ended(false));
        number += 1;
    }
    assert_eq!((number, found.len()), (4, 4));
    let covered = search.progress().covered.unwrap();
    assert!(covered.everything && covered.millionths == 1_000_000 && covered.cut == 0);
    assert!(!search.progress().strayed);
}

#[test]
fn interleavings_beyond_the_limit_are_not_everything() {
    let mut search = Interleavings::new(Some(0));
    while search.begin(0) {
        choose(&mut search, 0, &threads([0]), None);
        ran(&mut search, 0);
        search.end(&ended(true));
    }
    let covered = search.progress().covered.unwrap();
    assert!(!covered.everything);
    assert_eq!((covered.millionths, covered.preemptions), (0, Some(0)));
}

#[test]
fn interleavings_stray_if_the_thread_of_before_cannot_run() {
    let mut search = Interleavings::new(None);
    search.begin(0);
    assert_eq!(choose(&mut search, 0, &TWO, None), 1);
    ran(&mut search, 1);
    search.end(&ended(false));
    search.begin(1);
    assert_eq!(choose(&mut search, 0, &threads([1]), None), 0);
    assert!(search.progress().strayed);
    assert_eq!(search.progress().covered, None);
}

#[test]
fn a_random_search_knows_no_share_and_expects_no_history() {
    let mut random = Random::new(0);
    history(&mut random, 0, &TWO, 9);
    assert_eq!(random.progress(), Progress::default());
    assert!(random.observer().is_none());
}

#[test]
fn another_line_is_an_error_that_says_so() {
    assert_eq!(NotALine.to_string(), "this is no line of a search in another process");
}

/// Returns the choices of all interleavings in which these threads can run at each turn.
fn interleavings(preemptions: Option<u32>, runnable: &[&[ThreadIndex]]) -> Vec<Vec<u32>> {
    let (mut search, mut all) = (Interleavings::new(preemptions), Vec::new());
    while search.begin(all.len() as u64) {
        all.push(choices(&mut search, runnable));
    }
    assert!(!search.progress().strayed);
    all
}

/// Of the interleavings of N turns in which two threads can always run, 2·C(N-1, k) have k preemptions. A thread that cannot go
/// on is not preempted.
#[test]
fn interleavings_are_all_within_the_bound() {
    for (bound, count) in
        [(Some(0), 2), (Some(1), 2 + 6), (Some(2), 2 + 6 + 6), (Some(3), 16), (None, 16)]
    {
        let all = interleavings(bound, &[&TWO[..]; 4]);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), count, "{bound:?}");
        assert_eq!(all.len(), count, "{bound:?}: each one once");
        let most = bound.unwrap_or(3) as usize;
        assert!(all.iter().all(|chosen| changes(chosen).len() <= most), "{bound:?}");
    }
    let second = threads([1]);
    let forced = |bound| {
        let mut all = interleavings(Some(bound), &[&TWO, &second, &TWO]);
        all.sort();
        all
    };
    assert_eq!(forced(0), [[0, 1, 1], [1, 1, 1]]);
    assert_eq!(forced(1), [[0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]]);
}

#[test]
fn a_search_of_interleavings_notices_that_it_strays() {
    let mut search = Interleavings::new(None);
    assert_eq!(history(&mut search, 0, &TWO, 2), [1, 1]);
    let one = threads([0]);
    assert!(search.begin(1));
    assert_eq!(choose(&mut search, 0, &one, None), 1, "the plan");
    assert!(search.progress().strayed && search.progress().covered.is_none());
}

/// A search that does not learn covers no known share, strays from nothing, and observes nothing.
#[test]
fn a_search_that_learns_nothing_claims_nothing() {
    for search in [&mut Random::new(1) as &mut dyn Search, &mut Pct::new(1, 2)] {
        assert_eq!(search.progress(), Progress::default());
        assert!(search.observer().is_none());
    }
}
