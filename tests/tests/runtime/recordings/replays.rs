//! Replays of walks that real CLRs made.

use super::*;
use clr_recording::{NestedLine, PolicyLine, WalkDifference, WalkVerdict};
use clr_runtime::Outcome;
use std::fmt::Write as _;

/// Number of walks with the recorded result, and of those that cannot be replayed.
#[derive(Default)]
struct Count {
    same: u32,
    others: u32,
}

/// Replays all walks of a recording.
fn replay(name: &str, recording: &Recording, counts: &mut BTreeMap<String, Count>) {
    let code = RecordedCode::new(recording);
    let mut replay = RecordingReplay::new(recording, &code).unwrap();
    let count = counts.entry(recording.generation.to_string()).or_default();
    for walk in &recording.walks {
        let verdict = replay.walk(walk, |_| {});
        if walk.replayable {
            assert_eq!(verdict, WalkVerdict::Same, "{name}, walk {}", walk.n);
            count.same += 1;
        } else {
            count.others += 1;
        }
    }
}

fn table(counts: &BTreeMap<String, Count>) -> String {
    counts.iter().fold(String::new(), |mut table, (generation, Count { same, others })| {
        writeln!(table, "{generation}: {same} as recorded, {others} not replayable").unwrap();
        table
    })
}

#[test]
fn walks_come_out_as_recorded() {
    let mut counts = BTreeMap::new();
    for (name, recording) in embedded() {
        replay(name, recording, &mut counts);
    }
    insta::assert_snapshot!(table(&counts));
}

/// Tests the whole collection.
#[test]
#[ignore = "needs the collection, in the folder that CLR_RECORDINGS names"]
fn all_walks_come_out_as_recorded() {
    let directory = std::env::var_os("CLR_RECORDINGS").expect("CLR_RECORDINGS names a folder");
    let mut counts = BTreeMap::new();
    for (name, recording) in in_directory(&directory) {
        replay(&name, &recording, &mut counts);
    }
    println!("{}", table(&counts));
}

/// A change of a walk's result or state.
type Change = fn(&mut WalkLine);

/// Tests that the comparison detects a change of any part of a result.
#[test]
fn a_difference_is_noticed() {
    let recording = recording_with(has_contexts);
    let code = RecordedCode::new(&recording);
    let mut replay = RecordingReplay::new(&recording, &code).unwrap();
    let walk = recording.walks.iter().find(|walk| has_contexts(walk)).unwrap();
    assert_eq!(replay.walk(walk, |_| {}), WalkVerdict::Same);
    let changes: [(&str, Change); 13] = [
        ("hr", |walk| walk.result.hr = Some(Hex(0x8000_4005))),
        ("dead", |walk| walk.result.hr = None),
        ("function", |walk| walk.result.callbacks[0].function = None),
        ("ip", |walk| walk.result.callbacks[0].ip.0 += 1),
        ("frame info", |walk| walk.result.callbacks[0].frame_info = false),
        ("module", |walk| rename(walk, |name| format!("x{name}"))),
        ("offset", |walk| rename(walk, |name| name + "0")),
        ("no module", |walk| rename(walk, |name| name.replace("+0x", "-"))),
        ("context size", |walk| walk.result.callbacks[0].context_size = 0),
        ("register", |walk| {
            walk.result.callbacks[1].registers.as_mut().unwrap()[12].0 ^= 1;
        }),
        ("flags", |walk| walk.result.callbacks[1].context_flags = Some(Hex(0x7777))),
        ("one more", |walk| {
            let last = walk.result.callbacks.last().unwrap().clone();
            walk.result.callbacks.push(last);
        }),
        ("one less", |walk| {
            walk.result.callbacks.pop();
        }),
    ];
    for (what, change) in changes {
        let mut other = walk.clone();
        change(&mut other);
        assert_ne!(replay.walk(&other, |_| {}), WalkVerdict::Same, "{what}");
    }
}

/// Renames the native code of the first marker.
fn rename(walk: &mut WalkLine, change: impl FnOnce(String) -> String) {
    let callback = walk.result.callbacks.iter_mut().find(|callback| callback.native.is_some());
    let native = &mut callback.expect("the walk has a named marker").native;
    *native = native.take().map(change);
}

/// A callback ends the walk unless it returns S_OK, whatever the number.
#[test]
fn a_callback_returns_what_was_recorded() {
    let recording = recording_with(has_contexts);
    let code = RecordedCode::new(&recording);
    let mut replay = RecordingReplay::new(&recording, &code).unwrap();
    let mut walk = recording.walks.iter().find(|walk| has_contexts(walk)).unwrap().clone();
    let aborted = WalkDifference::Outcome(Outcome::Returned(HResult::ABORTED));
    let aborted = WalkVerdict::Different(aborted);
    let whole = walk.result.callbacks.len();
    for (returns, verdict, count) in [
        (0, WalkVerdict::Same, whole),
        (1, aborted.clone(), 2),
        (0x7FFF_FFFF, aborted.clone(), 2),
        (0x8000_4005, aborted, 2),
    ] {
        let returns = Some(Hex(returns));
        walk.call.policy = Some(PolicyLine { stop_at: Some(1), returns, ..PolicyLine::default() });
        let mut found = 0;
        assert_eq!(replay.walk(&walk, |_| found += 1), verdict, "{returns:x?}");
        assert_eq!(found, count, "{returns:x?}");
    }
}

/// The nested call is recorded within the outer one on Windows, and as a walk of its own on Unix.
#[test]
fn a_difference_of_a_nested_call_is_noticed() {
    for generation in [Generation::CoreClr31Windows, Generation::CoreClr31Unix] {
        let nests = |recording: &Recording, walk: &WalkLine| {
            let calls = !walk.result.callbacks.is_empty();
            recording.generation == generation && calls && recording.nested(walk).is_some()
        };
        let (_, mut recording) = embedded()
            .iter()
            .find(|(_, recording)| recording.walks.iter().any(|walk| nests(recording, walk)))
            .expect("some callback makes a nested call")
            .clone();
        let at = recording.walks.iter().position(|walk| nests(&recording, walk)).unwrap();
        let outer = recording.walks[at].n;
        let replayed = |recording: &Recording| {
            let code = RecordedCode::new(recording);
            let mut replay = RecordingReplay::new(recording, &code).unwrap();
            replay.walk(&recording.walks[at], |_| {})
        };
        assert_eq!(replayed(&recording), WalkVerdict::Same);
        let walks = recording.walks.clone();
        let difference =
            WalkDifference::Nested { outcome: Outcome::Returned(HResult::UNSAFE), callbacks: 0 };
        let changes: [fn(&mut NestedLine); 2] =
            [|nested| nested.hr = Some(Hex(0)), |nested| nested.callback_count = Some(1)];
        for change in changes {
            let mut nested = recording.nested(&recording.walks[at]).unwrap();
            change(&mut nested);
            let inner = recording.walks.iter_mut().find(|inner| inner.nested_in == Some(outer));
            match inner {
                Some(inner) => {
                    inner.result.hr = nested.hr;
                    inner.result.callback_count = nested.callback_count;
                }
                None => recording.walks[at].result.nested = Some(nested),
            }
            assert_eq!(replayed(&recording), WalkVerdict::Different(difference.clone()));
            recording.walks.clone_from(&walks);
        }
    }
}

/// Returns the first embedded recording with such a walk.
fn recording_with(is_wanted: fn(&WalkLine) -> bool) -> Recording {
    let (_, recording) = embedded()
        .iter()
        .find(|(_, recording)| recording.walks.iter().any(is_wanted))
        .expect("some recording has such a walk");
    recording.clone()
}

fn has_contexts(walk: &WalkLine) -> bool {
    let callbacks = &walk.result.callbacks;
    walk.replayable
        && walk.result.callback_count.is_none()
        && callbacks.len() > 2
        && callbacks.iter().all(|callback| callback.registers.is_some())
        && callbacks.iter().any(|callback| callback.native.is_some())
        && callbacks[0].function.is_some()
}

/// The checks have a fixed order: each state determines the result, regardless of later errors.
#[test]
fn refusals_have_an_order() {
    let recording = recording_with(has_contexts);
    let code = RecordedCode::new(&recording);
    let mut replay = RecordingReplay::new(&recording, &code).unwrap();
    let mut walk = recording.walks.iter().find(|walk| has_contexts(walk)).unwrap().clone();
    walk.relation = "self".to_owned();
    // From the last check to the first: each new error takes precedence over those before.
    let troubles: [(Change, HResult); 6] = [
        (|walk| walk.state.forbid_suspend = true, HResult::UNSAFE),
        (|walk| walk.state.hijack_lock_held = true, HResult::UNSAFE),
        (|walk| walk.state.target = Some("none".to_owned()), HResult::OK),
        (|walk| walk.call.flags = Hex(6), HResult::INVALID_ARGUMENT),
        (|walk| walk.state.snapshot_enabled = Some(false), HResult::INCONSISTENT_WITH_FLAGS),
        (|walk| walk.state.ee_started = Some(false), HResult::UNSAFE),
    ];
    for (trouble, expected) in troubles {
        trouble(&mut walk);
        walk.result.callbacks.clear();
        // No call returns this result, so the verdict has the actual one.
        walk.result.hr = Some(Hex(u64::MAX));
        let difference = WalkDifference::Outcome(Outcome::Returned(expected));
        assert_eq!(replay.walk(&walk, |_| {}), WalkVerdict::Different(difference));
    }
}

#[test]
fn text_that_is_no_recording_is_an_error_with_its_line() {
    let header = r#"{"t":"recording","format":1,"generation":"net9-unix","name":"x"}"#;
    for (text, expected) in [
        ("", "line 1: the first line must be of type `recording`, format 1"),
        (r#"{"t":"image","id":1,"name":"a","base":"0x0","size":1}"#, "line 1: the first line must"),
        (r#"{"t":"recording","format":2,"generation":"net9-unix"}"#, "line 1: the first line must"),
        (
            r#"{"t":"recording","format":1,"generation":"net4"}"#,
            "line 1: the generation is unknown",
        ),
        (&format!("{header}\n{header}"), "line 2: a second line"),
        (
            &format!("{header}\n{{\"t\":\"bytes\",\"at\":\"12\",\"hex\":\"\"}}"),
            "line 2: `12`: not a 0x",
        ),
        (
            &format!("{header}\n{{\"t\":\"bytes\",\"at\":\"0x1\",\"hex\":\"f\"}}"),
            "line 2: invalid length",
        ),
        (&format!("{header}\n{{\n"), "line 2: EOF"),
        (&format!("{header}\n{{\n{header}"), "line 2: EOF"),
        (&header[..header.len() - 1], "line 1: EOF"),
    ] {
        let error = Recording::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

/// A process that is killed, or whose disk is full, leaves a line without its end.
#[test]
fn a_last_line_that_is_cut_is_left_out() {
    let header = r#"{"t":"recording","format":1,"generation":"net9-unix","name":"x"}"#;
    let image = r#"{"t":"image","id":1,"name":"é","base":"0x0","size":1}"#;
    let letters = (1..image.len()).filter(|len| image.is_char_boundary(*len));
    for len in letters {
        let recording = Recording::parse(&format!("{header}\n{image}\n{}", &image[..len]));
        let recording = recording.unwrap();
        assert_eq!((recording.images.len(), recording.cut), (1, Some(3)), "{len}");
    }
    for end in ["", "\n"] {
        let whole = Recording::parse(&format!("{header}\n{image}{end}")).unwrap();
        assert_eq!((whole.images.len(), whole.cut), (1, None));
    }
}

/// Walks from a seed in the second part of a function, whose unwind data is that of the first part.
#[test]
fn chained_unwind_data_leads_to_the_parent() {
    let lines = [
        r#"{"t":"recording","format":1,"generation":"coreclr-3.1-windows","name":"chain"}"#,
        r#"{"t":"function","id":1,"function_id":"0x777000","name":"App.Foo","dynamic":false}"#,
        // sub rsp, 0x20 in a prologue of 4 bytes; the second part has no prologue of its own.
        r#"{"t":"code","id":1,"function":1,"kind":"jit","image":null,"ranges":[["0x10001000",64]],
            "unwind_base":"0x10000000","entries":[
            {"begin":4096,"end":4128,"unwind_info":"0104010004320000"},
            {"begin":4128,"end":4160,"unwind_info":"21000000",
             "chain":[{"begin":4096,"end":4128,"unwind_info":"0104010004320000"}]}]}"#,
        r#"{"t":"bytes","at":"0x10001030","hex":"90909090909090909090909090909090"}"#,
        r#"{"t":"walk","n":1,"situation":"test","variant":"seeded","relation":"self",
            "walker":"managed","thread":1,"call":{"thread":"null","flags":"0x0","context_size":0,
            "seed":{"made":"by hand","context_flags":"0x10000b","registers":["0x0","0x0","0x0","0x0",
            "0x501000","0x0","0x0","0x0","0x0","0x0","0x0","0x0","0x0","0x0","0x0","0x0",
            "0x10001030"]}},"state":{"mode":"coop"},"frames":[],
            "stack":{"base":"0x502000","limit":"0x500000",
            "parts":[["0x501020","QEIPAAAAAAA="]]},
            "result":{"hr":"0x0","callbacks":[
            {"function":1,"ip":"0x10001030","frame_info":true,"context_size":0},
            {"function":null,"ip":"0xf4240","frame_info":true,"context_size":0}]},
            "replayable":true}"#,
    ];
    let text: Vec<_> = lines.iter().map(|line| line.replace('\n', " ")).collect();
    let recording = Recording::parse(&text.join("\n")).unwrap();
    let code = RecordedCode::new(&recording);
    let mut replay = RecordingReplay::new(&recording, &code).unwrap();
    assert_eq!(replay.walk(&recording.walks[0], |_| {}), WalkVerdict::Same);
}

/// Two pieces of known machine code with an unknown byte between them.
#[test]
fn code_with_a_gap_stays_in_two_pieces() {
    let lines = [
        r#"{"t":"recording","format":1,"generation":"coreclr-3.1-windows","name":"gap"}"#,
        r#"{"t":"code","id":1,"function":null,"kind":"jit","image":null,
            "ranges":[["0x10001000",64]],"unwind_base":"0x10000000","entries":[]}"#,
        r#"{"t":"bytes","at":"0x10001000","hex":"9090"}"#,
        r#"{"t":"bytes","at":"0x10001003","hex":"c3"}"#,
    ];
    let text: Vec<_> = lines.iter().map(|line| line.replace('\n', " ")).collect();
    let code = RecordedCode::new(&Recording::parse(&text.join("\n")).unwrap());
    let manager = code.manager().unwrap();
    assert!([0, 3].iter().all(|at| manager.find(0x1000_1000 + at).is_some()));
}
