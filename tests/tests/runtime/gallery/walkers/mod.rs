//! Walkers of different kinds on every thread of the gallery: the scores of the book.

mod framehop;

use super::*;
use clr_sim::harness::{
    Found, FramePointers, MixedWalker, Sampler, Score, Scores, StackWalker, StoppedThread,
    WalkerVerdict, judge,
};
use clr_walker::mixed::Policy;
use core::fmt::Write as _;
use framehop::Framehop;

/// The page with the scores, and the marks around them.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/src/book/your_walker.md");
const MARKS: [&str; 2] = ["<!-- scores -->\n", "<!-- end of scores -->\n"];

/// A walker that gives up on all threads.
struct GivesUp;

impl StackWalker for GivesUp {
    fn walk(&self, _: &StoppedThread<'_, '_>, _: &mut Vec<Found>) -> Result<(), String> {
        Err("not today".to_owned())
    }
}

/// The best that can be done: each thread is walked by the policy that fits its system.
struct Best;

impl StackWalker for Best {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let policy = if target.generation().is_unix() { Policy::Signal } else { Policy::Seeded };
        MixedWalker(policy).walk(target, found)
    }
}

/// The walkers, with their names in the page.
const WALKERS: [(&str, &(dyn StackWalker + Sync)); 5] = [
    ("giving up", &GivesUp),
    ("frame pointers alone", &FramePointers),
    ("framehop", &Framehop),
    ("`Sampler`", &Sampler),
    ("`MixedWalker`", &Best),
];

/// The verdicts of a walker, by the names of texts.
type Verdicts = BTreeMap<&'static str, Vec<WalkerVerdict>>;

/// The verdicts of all walkers, in their order. The tests share them.
static VERDICTS: LazyLock<Vec<Verdicts>> = LazyLock::new(|| {
    let of = |walker: &(dyn StackWalker + Sync)| {
        let texts = clr_fixtures::gallery().iter().map(|fixture| {
            let text = core::str::from_utf8(fixture.bytes).unwrap();
            (fixture.name, judge(walker, text).unwrap())
        });
        texts.collect()
    };
    WALKERS.iter().map(|(_, walker)| of(*walker)).collect()
});

/// Returns the scores of a walker on some systems.
fn scores(verdicts: &Verdicts, on: Generations) -> Scores {
    let mut scores = Scores::default();
    for (name, verdicts) in verdicts {
        let some: Vec<_> =
            verdicts.iter().filter(|it| on.contains(it.generation)).cloned().collect();
        scores.add(name, &some);
    }
    scores
}

#[test]
fn neither_the_sampler_nor_the_mixed_walker_is_ever_wrong() {
    let mut wrong = String::new();
    for ((walker, _), verdicts) in WALKERS.iter().zip(&*VERDICTS).skip(3) {
        for (name, verdict) in
            verdicts.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, it)))
        {
            if !verdict.is_true() {
                writeln!(wrong, "{walker}, {name}: {verdict}\n{}", verdict.side_by_side()).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn more_knowledge_finds_more() {
    let totals: Vec<Score> =
        VERDICTS.iter().map(|it| scores(it, Generations::ALL).total()).collect();
    assert!(totals.iter().all(|total| total.walks == totals[0].walks), "{totals:#?}");
    let [gives_up, frame_pointers, framehop, sampler, mixed] = totals.try_into().unwrap();
    assert_eq!((gives_up.found, gives_up.gave_up), (0, gives_up.walks));
    assert!(gives_up.found < frame_pointers.found, "{frame_pointers:?}");
    assert!(frame_pointers.found < sampler.found.min(framehop.found), "{sampler:?}, {framehop:?}");
    assert!(sampler.found.max(framehop.found) < mixed.found, "{mixed:?}");
    // Guesses are wrong without a sign of it.
    assert!(frame_pointers.false_claims > 0 && framehop.false_claims > 0);
}

/// Returns the tables of the page.
fn tables() -> String {
    let mut text = String::from(
        "| walker | walks | complete | false claims | frames | found | missing | wrong |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for (system, on) in [("Windows", Generations::WINDOWS), ("Unix", Generations::UNIX)] {
        for ((walker, _), verdicts) in WALKERS.iter().zip(&*VERDICTS) {
            let total = scores(verdicts, on).total();
            let Score { walks, complete, false_claims, frames, found, missing, wrong, .. } = total;
            writeln!(
                text,
                "| {walker}, {system} | {walks} | {complete} | {false_claims} | {frames} | {found} \
                 ({} %) | {missing} | {wrong} |",
                total.percent(),
            )
            .unwrap();
        }
    }
    text.push_str("\nThe share of frames found, by chapter of the gallery, in percent:\n\n| chapter | frames |");
    for (walker, _) in WALKERS {
        write!(text, " {walker} |").unwrap();
    }
    let columns = "--: | ".repeat(WALKERS.len() + 1);
    writeln!(text, "\n| --- | {}", columns.trim_end()).unwrap();
    let all: Vec<_> = VERDICTS.iter().map(|it| scores(it, Generations::ALL)).collect();
    for (chapter, score) in all[0].chapters().filter(|(_, score)| score.walks > 0) {
        write!(text, "| {chapter} | {} |", score.frames).unwrap();
        for scores in &all {
            let found = scores.chapters().find(|(name, _)| *name == chapter).unwrap().1;
            write!(text, " {} |", found.percent()).unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_book_has_the_scores_of_other_walkers() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let [begin, end] = MARKS.map(|mark| page.find(mark).expect("the page has both marks"));
    let made = format!("{}{}{}", &page[..begin + MARKS[0].len()], tables(), &page[end..]);
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    }
    assert_eq!(page, made, "CLR_BLESS=1 writes the tables anew");
}
