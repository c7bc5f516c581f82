//! Tests with correct walkers, and with walkers that are wrong in known ways.

use clr_runtime::generation::{Generation, Generations};
use clr_sim::harness::{
    Demand, Found, FramePointers, MixedWalker, Sampler, Score, StackWalker, StoppedThread,
    WalkerResult, WalkerVerdict, assert_all, judge, score,
};

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { call "App.Foo" } }
function "App.Foo" kind="ready-to-run" { body { p-invoke "Lib.Sleep"; new-fast; new } }
function "Lib.Sleep" { body { reverse-p-invoke "App.Back" } }
function "App.Back" kind="jit" { body { work 4; new-fast } }
stop at="Lib.Sleep" { snapshot by="native-walker" }
stop at="App.Back" instruction=3 { snapshot by="native-walker" }
stop at="JIT_NewS_MP_FastPortable" instruction=2 { snapshot by="native-walker" }
stop at="AllocateObject" { snapshot by="native-walker" }
"#;

const STACK: &str = r#"
stack {
    mode "cooperative"
    leaf "JIT_WriteBarrier+0x8" rsp=0x1fdff8
    jit "App.Foo+0x55" rsp=0x1fe000
    dynamic "Emitted+0x20" rsp=0x1fe020
    jit "App.Main+0x30" rsp=0x1fe050
    native "CallDescrWorkerInternal+0x7c" rsp=0x1fe090
}
snapshot by="native-walker" { expect { result "E_NOTIMPL" } }
"#;

/// The sampler, with a change applied to the frames that it found.
struct Changed(fn(&mut Vec<Found>));

impl StackWalker for Changed {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let result = Sampler.walk(target, found);
        (self.0)(found);
        result
    }
}

/// Both texts, with names in two chapters.
const TEXTS: [(&str, &str); 2] = [("programs/text", TEXT), ("stacks/stack", STACK)];

#[test]
fn a_seeded_sampler_finds_everything_where_other_threads_may_be_walked() {
    for (text, stops) in [(TEXT, 4), (STACK, 1)] {
        let verdicts = judge(&Sampler, text).unwrap();
        assert_eq!(verdicts.len(), stops * Generation::ALL.len());
        for verdict in verdicts {
            let windows = Generations::WINDOWS.contains(verdict.generation);
            assert!(verdict.is_true(), "{verdict}");
            assert_eq!(verdict.is_complete(), windows, "{verdict}");
        }
    }
    assert!(assert_all(&Sampler, Demand::NoWorseThan(&Sampler), TEXTS).is_ok());
    // The walks that it gives up on Unix are no success.
    let failures = assert_all(&Sampler, Demand::Complete, TEXTS).unwrap_err();
    assert!(failures.contains("net9-unix, stop 0: gave up with 0 of 2 frames: "), "{failures}");
}

#[test]
fn missing_and_invented_frames_are_detected() {
    let complete = |verdicts: &[WalkerVerdict]| {
        verdicts.iter().filter(|verdict| verdict.is_complete()).count()
    };
    let loses = |verdicts: &[WalkerVerdict], name: &str| {
        let is_lost = |verdict: &WalkerVerdict| match verdict.result() {
            WalkerResult::Lost(lost) => lost.name == name,
            _ => false,
        };
        verdicts.iter().any(is_lost)
    };
    let without_last =
        judge(&Changed(|found| found.truncate(found.len().saturating_sub(1))), TEXT).unwrap();
    assert!(loses(&without_last, "App.Main"));
    assert_eq!(complete(&without_last), 0);
    let without_first = judge(&Changed(|found| *found = found.split_off(1.min(found.len()))), TEXT);
    assert!(loses(&without_first.unwrap(), "App.Back"));
    let shifted = Changed(|found| found.iter_mut().for_each(|frame| frame.function.0 += 8));
    let wrong = judge(&shifted, TEXT).unwrap();
    assert!(wrong.iter().any(|verdict| matches!(verdict.result(), WalkerResult::Wrong(_))));
    let twice = Changed(|found| found.extend(found.clone()));
    let failures = assert_all(&twice, Demand::NoWorseThan(&Sampler), [("text", TEXT)]).unwrap_err();
    assert!(failures.contains("text: coreclr-3.1-windows, stop 0: "), "{failures}");
    assert!(assert_all(&Sampler, Demand::Complete, [("bad", "stick")]).is_err());
}

/// A walker that finds nothing, and says so.
struct GivesUp;

impl StackWalker for GivesUp {
    fn walk(&self, _: &StoppedThread<'_, '_>, _: &mut Vec<Found>) -> Result<(), String> {
        Err("no".to_owned())
    }
}

#[test]
fn giving_up_does_not_pass() {
    for demand in [Demand::Complete, Demand::NoWorseThan(&Sampler), Demand::LikeMixedWalker] {
        assert!(assert_all(&GivesUp, demand, TEXTS).is_err(), "{demand:?}");
    }
    // The sampler gives up on Unix, where the walker of `clr-walker` does not.
    let failures = assert_all(&Sampler, Demand::LikeMixedWalker, TEXTS).unwrap_err();
    assert!(failures.contains("net9-unix") && !failures.contains("-windows, "), "{failures}");
    let scores = score(&GivesUp, TEXTS).unwrap();
    let Score { walks, gave_up, frames, found, missing, .. } = scores.total();
    assert_eq!((walks, gave_up, found, missing), (65, 65, 0, frames));
}

#[test]
fn frames_that_the_mixed_walker_finds_are_all_there_are() {
    use clr_walker::mixed::Policy;
    let total = score(&MixedWalker(Policy::Signal), TEXTS).unwrap().total();
    assert_eq!((total.wrong, total.false_claims), (0, 0), "{total:?}");
    let unix = |policy| {
        let verdicts = judge(&MixedWalker(policy), TEXT).unwrap();
        let unix = verdicts.iter().filter(|it| Generations::UNIX.contains(it.generation));
        unix.filter(|verdict| verdict.is_complete()).count()
    };
    // Signals are for Unix, where a thread walks itself.
    assert_eq!((unix(Policy::Signal), unix(Policy::Unseeded)), (24, 0));
}

#[test]
fn frame_pointers_lose_the_callers_of_functions_without_one() {
    let text = r#"
function "App.Main" kind="jit" { push "rbp"; frame "rbp" set="after-saves"; body { call "App.Foo" } }
function "App.Foo" kind="jit" { push "rbp"; frame "rbp" set="after-saves"; body { work 5; call "App.Bar" } }
function "App.Bar" kind="jit" { body { work 3 } }
stop at="App.Foo" instruction=4 { snapshot by="native-walker" }
stop at="App.Bar" { snapshot by="native-walker" }
"#;
    // On Windows rbp points at the home space of calls instead.
    let verdicts = judge(&FramePointers, text).unwrap().into_iter();
    for verdict in verdicts.filter(|verdict| Generations::UNIX.contains(verdict.generation)) {
        let missing: Vec<_> = verdict.missing().map(|frame| &*frame.name).collect();
        let expected: &[&str] = if verdict.stop == Some(0) { &[] } else { &["App.Foo"] };
        assert_eq!(missing, expected, "{verdict}\n{}", verdict.side_by_side());
        // The native code that has called Main has no frame pointers.
        assert!(matches!(verdict.result(), WalkerResult::GaveUp(_)), "{verdict}");
    }
}

#[test]
fn scores_are_sums_by_chapter() {
    let twice = Changed(|found| found.extend(found.clone()));
    let scores = score(&twice, TEXTS).unwrap();
    let mut total = Score::default();
    for (text, chapter) in [(TEXT, "programs"), (STACK, "stacks")] {
        let mut sum = Score::default();
        for verdict in judge(&twice, text).unwrap() {
            assert_eq!(verdict.score().found + verdict.score().missing, verdict.score().frames);
            sum += verdict.score();
        }
        assert!(scores.chapters().any(|row| row == (chapter, sum)), "{scores}");
        total += sum;
    }
    assert_eq!(scores.total(), total);
    // Each frame is found once too often, and the walker does not say that it gave up.
    assert_eq!((total.wrong, total.false_claims), (total.found, 35), "{scores}");
    insta::assert_snapshot!("scores", scores);
    insta::assert_snapshot!("side_by_side", judge(&twice, TEXT).unwrap()[0].side_by_side());
}
