//! Tests with correct walkers, and with walkers that are wrong in known ways.

use super::{Found, Sampler, StackWalker, StoppedThread, WalkerResult, assert_all, judge};
use clr_runtime::generation::{Generation, Generations};

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

#[test]
fn a_seeded_sampler_finds_everything_where_other_threads_may_be_walked() {
    for (text, stops) in [(TEXT, 4), (STACK, 1)] {
        let verdicts = judge(&Sampler, text).unwrap();
        assert_eq!(verdicts.len(), stops * Generation::ALL.len());
        for verdict in verdicts {
            let windows = Generations::WINDOWS.contains(verdict.generation);
            assert!(verdict.is_right(), "{verdict}");
            assert_eq!(verdict.is_complete(), windows, "{verdict}");
        }
    }
    assert_eq!(assert_all(&Sampler, [("text", TEXT), ("stack", STACK)]), Ok(()));
}

#[test]
fn missing_and_invented_frames_are_detected() {
    let complete = |verdicts: &[super::WalkerVerdict]| {
        verdicts.iter().filter(|verdict| verdict.is_complete()).count()
    };
    let without_last =
        judge(&Changed(|found| found.truncate(found.len().saturating_sub(1))), TEXT).unwrap();
    assert!(without_last.iter().any(|v| v.outcome == WalkerResult::Lost("App.Main".to_owned())));
    assert_eq!(complete(&without_last), 0);
    let without_first = judge(&Changed(|found| *found = found.split_off(1.min(found.len()))), TEXT);
    let lost = WalkerResult::Lost("App.Back".to_owned());
    assert!(without_first.unwrap().iter().any(|verdict| verdict.outcome == lost));
    let shifted = Changed(|found| found.iter_mut().for_each(|frame| frame.function.0 += 8));
    let wrong = judge(&shifted, TEXT).unwrap();
    assert!(wrong.iter().any(|verdict| matches!(verdict.outcome, WalkerResult::Wrong(_))));
    let twice = Changed(|found| found.extend(found.clone()));
    let failures = assert_all(&twice, [("text", TEXT)]).unwrap_err();
    assert!(failures.contains("text: coreclr-3.1-windows, stop 0: "), "{failures}");
    assert!(assert_all(&Sampler, [("bad", "stick")]).is_err());
}
