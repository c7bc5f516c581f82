use super::*;

const TEXT: &str = "\
# shape: catch
# runtimes: CoreCLR linux-x64 8.0.34 9.0.23-legacy
# SEQ_EVENTS: exc,gc,snap  SEQ_WALK: 1
T1 c ExceptionThrown Outer | S_OK App.Main -
T1 p ExceptionSearchFunctionEnter App.Main | S_OK App.Main -
T1 c SurvivingReferences2*
T1 c SurvivingReferences*
# RequestProfilerDetach S_OK
T- ProfilerDetachSucceeded
";

fn sequence() -> Sequence {
    Sequence::parse(TEXT).unwrap()
}

#[test]
fn a_text_is_read_and_printed() {
    let sequence = sequence();
    assert!(Sequence::is_one(TEXT));
    assert_eq!(sequence.shape, "catch");
    assert_eq!(sequence.walks, SequenceWalks::Exceptions);
    assert_eq!(sequence.event_mask(), 0x1000_00C0);
    assert!(sequence.asks_for("exc") && !sequence.asks_for("elt"));
    let generations: Vec<_> = sequence.runtimes.iter().map(|one| one.generation).collect();
    assert_eq!(
        generations,
        [Some(Generation::Net8Unix), Some(Generation::Net9UnixLegacyExceptions)]
    );
    let lines: Vec<_> = sequence.lines.iter().map(ToString::to_string).collect();
    let text: Vec<_> = TEXT.lines().skip(3).collect();
    assert_eq!(lines, text);
}

#[test]
fn runtimes_are_found_by_system_and_version() {
    let named = |line: &str| {
        let text = TEXT.replace("linux-x64 8.0.34 9.0.23-legacy", line);
        let runtimes = Sequence::parse(&text).unwrap().runtimes;
        let named =
            runtimes.into_iter().map(|one| (one.name, one.generation.map(Generation::name)));
        named.collect::<Vec<_>>()
    };
    assert_eq!(
        named("win-x64 (under wine) 9.0.22 10.0.15"),
        [
            ("win-9.0.22".to_owned(), Some("net9-windows")),
            ("win-10.0.15".to_owned(), Some("net10-windows")),
        ]
    );
    assert_eq!(named("linux-x64 3.1.3"), [("3.1.3".to_owned(), Some("coreclr-3.1-unix"))]);
    assert_eq!(named("linux-x64 99.0.1"), [("99.0.1".to_owned(), None)]);
}

#[test]
fn a_text_with_another_form_is_an_error() {
    for (from, to, line) in [
        ("# shape: catch\n", "", 1),
        ("# runtimes: CoreCLR", "# runtimes: Mono", 2),
        ("8.0.34", "8.0", 2),
        ("exc,gc,snap", "exc,what", 3),
        ("SEQ_WALK: 1", "SEQ_WALK: 2", 3),
        ("T1 c ExceptionThrown", "c ExceptionThrown", 4),
        ("T1 c ExceptionThrown", "Tx c ExceptionThrown", 4),
        ("SurvivingReferences2*", "Surviving-References2*", 6),
    ] {
        let error = Sequence::parse(&TEXT.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.line, line, "{from} {error}");
    }
}

/// Returns the simulated sequence that is the recorded one.
fn same() -> Vec<SequenceLine> {
    let mut lines = sequence().lines;
    for line in &mut lines {
        if let SequenceLine::Callback(callback) = line {
            callback.repeats = false;
        }
    }
    lines
}

fn callback(lines: &mut [SequenceLine], index: usize) -> &mut SequenceCallback {
    match &mut lines[index] {
        SequenceLine::Callback(callback) => callback,
        SequenceLine::Request(_) => panic!("no callback at {index}"),
    }
}

#[test]
fn the_same_sequence_has_no_difference() {
    let sequence = sequence();
    assert_eq!(sequence.compare(&same()), None);
    // The pair came several times.
    let mut lines = same();
    let pair = lines[2..4].to_vec();
    lines.splice(4..4, pair.iter().cloned().chain(pair.clone()));
    assert_eq!(sequence.compare(&lines), None);
    lines.insert(4, pair[1].clone());
    assert!(sequence.compare(&lines).is_some());
}

#[test]
fn each_change_is_a_difference() {
    type Change = fn(&mut Vec<SequenceLine>);
    let changes: [(&str, usize, Change); 11] = [
        ("a line less", 1, |lines| drop(lines.remove(1))),
        ("the first line less", 0, |lines| drop(lines.remove(0))),
        ("the last line less", 5, |lines| drop(lines.pop())),
        ("a line more", 6, |lines| lines.push(lines[0].clone())),
        ("two lines exchanged", 0, |lines| lines.swap(0, 1)),
        ("another mode", 1, |lines| {
            callback(lines, 1).mode = Some(SequenceMode::Cooperative);
        }),
        ("another thread", 0, |lines| callback(lines, 0).thread = Some(2)),
        ("another argument", 0, |lines| callback(lines, 0).arguments = "Inner".to_owned()),
        ("another walk", 1, |lines| {
            callback(lines, 1).walk = Some("S_OK App.Main".to_owned());
        }),
        ("no walk", 1, |lines| callback(lines, 1).walk = None),
        ("another request", 4, |lines| {
            lines[4] = SequenceLine::Request("RequestProfilerDetach 0x80131363".to_owned());
        }),
    ];
    let sequence = sequence();
    for (what, index, change) in changes {
        let mut lines = same();
        change(&mut lines);
        let difference = sequence.compare(&lines);
        assert_eq!(difference.as_ref().map(|one| one.index), Some(index), "{what} {difference:?}");
    }
}

#[test]
fn nothing_is_left_out_but_what_recordings_leave_out() {
    let shape = |shape: &str| Sequence { shape: shape.to_owned(), ..sequence() };
    let line = |text: &str| SequenceLine::parse(text).unwrap();
    let more = |sequence: &Sequence, text: &str| {
        let mut lines = same();
        lines.insert(0, line(text));
        sequence.compare(&lines).is_some()
    };
    for (text, of, kept) in [
        ("T1 c Enter App.Begin", "catch", false),
        ("T1 c Enter System.Exception..ctor", "catch", false),
        ("T1 c Enter App.Work", "catch", true),
        ("T1 p ManagedToUnmanagedTransition System.String.Ctor call", "catch", false),
        ("T1 p UnmanagedToManagedTransition System.Runtime.EH.RhThrowEx call", "catch", true),
        ("T1 p JITCompilationStarted System.String.Ctor safe", "catch", false),
        ("T1 p DynamicMethodJITCompilationStarted dynamic:IL_STUB_PInvoke safe", "catch", false),
        ("T1 p DynamicMethodJITCompilationStarted dynamic:Emitted safe", "catch", true),
        ("T2 p RuntimeThreadSuspended T2", "catch", false),
        ("T2 p RuntimeThreadSuspended T2", "gc_running", true),
        ("T1 c ObjectsAllocatedByClass", "catch", false),
        ("T1 c ObjectsAllocatedByClass", "gc_finalizer", true),
    ] {
        assert_eq!(more(&shape(of), text), kept, "{text} {of}");
    }
    // The thread that suspends reports itself.
    let mut lines = same();
    lines.splice(
        0..0,
        [line("T1 p RuntimeSuspendStarted GC"), line("T1 p RuntimeThreadSuspended T1")],
    );
    let mut recorded = sequence();
    recorded.lines.splice(0..0, lines[..2].to_vec());
    assert_eq!(recorded.compare(&lines), None);
    lines.remove(1);
    assert!(recorded.compare(&lines).is_some());
}
