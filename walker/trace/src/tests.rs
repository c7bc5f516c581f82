//! Traces that are read, shown and compared.

use super::*;
use crate::line::{Arguments, Line};

/// A trace that a test builds.
#[derive(Clone)]
struct Story(Vec<Line>);

/// A call of the runtime: the method, its arguments and its result.
type CallIn<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c str);

fn arguments(list: &[(&str, &str)]) -> Arguments {
    Arguments(list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
}

impl Story {
    fn new(names: &[(&str, &str)]) -> Self {
        let mut lines = vec![Line::Trace { version: 1, runtime: "CLR 8.0.34".to_owned() }];
        let names = names.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned()));
        lines.extend(names.map(|(id, name)| Line::Name { id, name, module: None }));
        Self(lines)
    }

    /// A callback on a thread, with calls of the runtime in it: method, argument and result.
    fn callback(
        mut self,
        thread: &str,
        callback: &str,
        about: &[(&str, &str)],
        calls: &[CallIn<'_>],
    ) -> Self {
        let (thread, callback) = (thread.to_owned(), callback.to_owned());
        self.0.push(Line::Enters {
            thread: thread.clone(),
            callback: callback.clone(),
            arguments: arguments(about),
        });
        for (method, given, result) in calls {
            let (method, result) = ((*method).to_owned(), (*result).to_owned());
            let (given, none) = (arguments(given), Arguments::default());
            self.0.push(Line::Calls {
                thread: thread.clone(),
                method: method.clone(),
                arguments: given,
            });
            self.0.push(Line::Returns { thread: thread.clone(), method, result, arguments: none });
        }
        let (result, none) = ("S_OK".to_owned(), Arguments::default());
        self.0.push(Line::Leaves { thread, callback, result, arguments: none });
        self
    }

    fn text(&self) -> String {
        self.0.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
    }

    fn trace(&self) -> Trace {
        Trace::read(&self.text()).unwrap()
    }
}

const NAMES: [(&str, &str); 4] = [
    ("os-thread#1", "thread#1"),
    ("function#1", "App.Main"),
    ("function#2", "App.Work"),
    ("function#3", "System.GC.Collect"),
];
const MASK: CallIn<'_> = ("SetEventMask", &[("events", "64")], "S_OK");
const INFO: CallIn<'_> = ("GetFunctionInfo", &[("function", "function#1")], "S_OK");

fn jit(story: Story, function: &str, calls: &[CallIn<'_>]) -> Story {
    story.callback("os-thread#1", "JITCompilationStarted", &[("function", function)], calls)
}

fn initialize() -> Story {
    Story::new(&NAMES).callback("os-thread#1", "Initialize", &[("info", "pointer")], &[MASK])
}

/// Compares with the text that has `App.Main` and `App.Work`.
fn compared(there: &Story, here: &Story) -> Comparison {
    let is_named = |_, name: &str| name.starts_with("App.");
    compare(&there.trace(), &here.trace(), &is_named)
}

fn first(there: &Story, here: &Story) -> String {
    let found = compared(there, here);
    found.differences.first().map_or_else(String::new, |one| format!("{}: {one}", one.kind()))
}

#[test]
fn the_same_story_has_no_difference_and_says_how_much_was_compared() {
    let story = jit(jit(initialize(), "function#1", &[INFO]), "function#2", &[]);
    let found = compared(&story, &story);
    assert_eq!(found.differences, []);
    assert_eq!((found.callbacks, found.calls), (3, 2));
    assert_eq!(found.left_out, LeftOut::default());
}

/// Each profiler has a start and an end: that they are the same says nothing of a program.
#[test]
fn a_comparison_of_nothing_but_the_start_and_the_end_is_not_the_same() {
    let ended = |story: Story| story.callback("os-thread#1", "Shutdown", &[], &[]);
    let found = compared(&ended(initialize()), &ended(initialize()));
    assert_eq!((found.differences.len(), found.callbacks, found.callbacks_of_program), (0, 2, 0));
    assert!(!found.is_same());
    let story = ended(jit(initialize(), "function#1", &[]));
    let found = compared(&story, &story);
    assert_eq!((found.callbacks_of_program, found.is_same()), (1, true));
    // Of a program that the text does not name nothing is compared.
    let other = ended(jit(initialize(), "function#3", &[]));
    assert!(!compared(&other, &other).is_same());
}

/// Tokens of all tables are each runtime's own; HRESULTs without a name are not.
#[test]
fn tokens_do_not_count_and_hresults_do() {
    let story = |token, status| {
        let given = [("token", token), ("status", status)];
        let calls: [CallIn<'_>; 1] = [("GetAssemblyRefProps", &given, "S_OK")];
        Story::new(&NAMES).callback("os-thread#1", "Initialize", &[], &calls)
    };
    let there = story("0x23000001", "0x80131377");
    for token in ["0x01000002", "0x06000001", "0x23000002", "0x70000001"] {
        assert_eq!(first(&there, &story(token, "0x80131377")), "", "{token}");
    }
    let found = first(&there, &story("0x23000001", "0x80131378"));
    assert!(found.ends_with("status is 0x80131377, and here 0x80131378"), "{found}");
}

#[test]
fn a_wrong_order_is_reported_first() {
    let there = jit(jit(initialize(), "function#1", &[]), "function#2", &[]);
    let here = jit(jit(initialize(), "function#2", &[]), "function#1", &[INFO]);
    assert_eq!(
        first(&there, &here),
        "order: JITCompilationStarted(function=App.Main) comes first, and here \
         JITCompilationStarted(function=App.Work)"
    );
}

#[test]
fn a_wrong_hresult_is_reported_first() {
    let there = jit(jit(initialize(), "function#1", &[INFO]), "function#2", &[]);
    let (method, given, _) = INFO;
    let wrong = (method, given, "CORPROF_E_DATAINCOMPLETE");
    let here = jit(initialize(), "function#1", &[wrong]);
    let found = compared(&there, &here);
    let [Difference::Result(place, call, theirs, ours)] = &found.differences[..] else {
        panic!("{found:?}");
    };
    assert_eq!(call, "GetFunctionInfo(function=App.Main)");
    assert_eq!((theirs.as_str(), ours.as_str()), ("S_OK", "CORPROF_E_DATAINCOMPLETE"));
    assert_eq!(place.within, ["JITCompilationStarted(function=App.Main)"]);
    assert_eq!(place.line, Some(11));
}

#[test]
fn a_missing_call_and_one_too_many_are_reported_first() {
    let with = jit(initialize(), "function#1", &[INFO]);
    let without = jit(jit(initialize(), "function#1", &[]), "function#2", &[]);
    assert_eq!(
        first(&with, &without),
        "missing: GetFunctionInfo(function=App.Main) does not come here"
    );
    assert_eq!(first(&without, &with), "extra: GetFunctionInfo(function=App.Main) comes only here");
}

#[test]
fn a_number_that_the_profiler_passes_counts_and_one_of_the_runtime_does_not() {
    let mask = |events| ("SetEventMask", [("events", events)], "S_OK");
    let story = |(method, given, result): (_, [(&'static str, &'static str); 1], _)| {
        let calls: [CallIn<'_>; 1] = [(method, &given, result)];
        Story::new(&NAMES).callback("os-thread#1", "Initialize", &[], &calls)
    };
    assert_eq!(
        first(&story(mask("64")), &story(mask("65"))),
        "value: SetEventMask(events=64): events is 64, and here 65"
    );
    let assigned = |os_thread| {
        let about = [("os_thread", os_thread)];
        initialize().callback("os-thread#1", "ThreadAssignedToOSThread", &about, &[])
    };
    assert_eq!(first(&assigned("3530"), &assigned("1")), "");
}

#[test]
fn code_that_the_text_does_not_name_is_left_out_and_counted() {
    let there = jit(jit(initialize(), "function#3", &[INFO]), "function#1", &[]);
    let here = jit(initialize(), "function#1", &[]);
    let found = compared(&there, &here);
    assert_eq!(found.differences, []);
    assert_eq!(found.left_out.unnamed, 1);
}

#[test]
fn the_end_of_a_callback_that_is_left_out_is_left_out_too() {
    let search = |story: Story, function| {
        let about = [("function", function)];
        let story = story.callback("os-thread#1", "ExceptionSearchFunctionEnter", &about, &[]);
        story.callback("os-thread#1", "ExceptionSearchFunctionLeave", &[], &[])
    };
    let there = search(search(initialize(), "function#3"), "function#1");
    let here = search(initialize(), "function#1");
    let found = compared(&there, &here);
    assert_eq!(found.differences, []);
    assert_eq!((found.callbacks, found.left_out.unnamed), (3, 2));
}

#[test]
fn suspensions_count_only_for_a_gc() {
    let suspend = |story: Story, reason| {
        let about = [("suspend_reason", reason)];
        let story = story.callback("os-thread#1", "RuntimeSuspendStarted", &about, &[]);
        story.callback("os-thread#1", "RuntimeResumeFinished", &[], &[])
    };
    assert_eq!(first(&suspend(initialize(), "6"), &initialize()), "");
    assert_eq!(
        first(&suspend(initialize(), "1"), &initialize()),
        "missing: RuntimeSuspendStarted(suspend_reason=1) does not come here"
    );
}

#[test]
fn threads_are_pairs_by_their_code_and_native_ones_are_left_out() {
    let names = |second: &'static str| {
        let mut names = NAMES.to_vec();
        names.extend([(second, "thread#2"), ("thread#2", "worker")]);
        names
    };
    let story = |names: &[_], second: &str, created: &str| {
        let story = Story::new(names).callback("os-thread#1", "Initialize", &[], &[]);
        let story = story.callback(second, "ThreadCreated", &[("thread", created)], &[]);
        story.callback(second, "JITCompilationStarted", &[("function", "function#2")], &[])
    };
    let there = story(&names("os-thread#7"), "os-thread#7", "thread#2");
    let here = story(&names("os-thread#2"), "os-thread#2", "thread#2");
    let with_sampler = here.clone().callback("os-thread#9", "ProfilerAttachComplete", &[], &[]);
    assert_eq!(first(&there, &here), "");
    assert_eq!(compared(&with_sampler, &there).left_out.native, 1);
    let without = Story::new(&NAMES).callback("os-thread#1", "Initialize", &[], &[]);
    let found = compared(&there, &without);
    assert!(matches!(&found.differences[..], [Difference::Thread(_, true)]), "{found:?}");
}

#[test]
fn a_trace_says_the_line_of_what_it_does_not_understand() {
    let read = |text: &str| Trace::read(text).unwrap_err().to_string();
    assert!(read("").starts_with("line 1: a trace begins with"));
    let head = initialize().text();
    let lines = head.lines().count();
    assert!(read(&format!("{head}{{\"x\":1}}\n")).starts_with(&format!("line {}: ", lines + 1)));
    let ends = r#"{"leaves":{"thread":"os-thread#1","callback":"Shutdown","result":"S_OK","arguments":{}}}"#;
    assert_eq!(
        read(&format!("{head}{ends}\n")),
        format!("line {}: Shutdown ends, and another call is in progress on its thread", lines + 1)
    );
}

#[test]
fn a_trace_is_shown_with_names_and_depth() {
    let text = as_text(&jit(initialize(), "function#1", &[INFO]).text()).unwrap();
    let expected = "\
CLR 8.0.34
thread#1     Initialize info=pointer
thread#1       SetEventMask events=64 -> S_OK
thread#1     Initialize -> S_OK
thread#1     JITCompilationStarted function=App.Main
thread#1       GetFunctionInfo function=App.Main -> S_OK
thread#1     JITCompilationStarted -> S_OK
";
    assert_eq!(text, expected);
}

/// Recorded in .NET 8.0.34 with a profiler that asks for compilations, loads, threads, exceptions and GCs; callbacks about the
/// class library, and calls in callbacks, were taken out.
const RECORDED: &str = include_str!("program/thrown_on_two_threads.8.0.34.jsonl");

#[test]
fn a_recorded_trace_gives_its_program() {
    let program = Program::of(&Trace::read(RECORDED).unwrap()).unwrap();
    let text = program.text("app.jsonl");
    let all: Vec<_> = text.lines().map(str::trim).collect();
    let body = |name: &str| {
        let function = all.iter().position(|line| line.starts_with(&format!("function {name:?}")));
        let body = all[function.unwrap()..].iter().skip_while(|line| **line != "body {").skip(1);
        // The end of the body, and of the function.
        body.scan(0, |depth, line| {
            *depth += i32::from(line.ends_with('{')) - i32::from(*line == "}");
            (*depth >= 0).then(|| (*line).to_owned())
        })
        .collect::<Vec<_>>()
        .join("; ")
    };
    assert_eq!(
        body("App.Main"),
        "first-call \"App.Run\"; start-thread \"System.EntryPoint.CallThread\"; join-thread \
         \"System.EntryPoint.CallThread\"; collect"
    );
    assert_eq!(body("App.Work"), "first-call \"App.Run\"");
    assert_eq!(body("App.Run"), "guarded {; first-call \"App.Throw\"; }; on-catch {; work 1; }");
    assert_eq!(body("App.Throw"), "raise");
    assert!(text.ends_with(
        "thread \"main\" start=\"System.EntryPoint.CallMain\"\n\
         thread \"thread 1\" start=\"System.EntryPoint.CallThread\" by-program=#true\n\
         thread \"finalizer\" finalizer=#true\n"
    ));
}

/// The story of a program is compared with itself, as it was recorded.
#[test]
fn a_recorded_trace_has_no_difference_to_itself() {
    let trace = Trace::read(RECORDED).unwrap();
    let found = compare(&trace, &trace, &|_, name: &str| name.starts_with("App"));
    assert_eq!(found.differences, []);
    // Two of them are about the finalizer's thread.
    assert_eq!((found.callbacks, found.calls), (58, 2));
}
