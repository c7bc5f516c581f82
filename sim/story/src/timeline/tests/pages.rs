//! Tests of the page, and of the data in it.

use super::*;
use crate::timeline::json::json;

fn plain(history: &History) -> Timeline<'_> {
    Timeline { history, title: "an interleaving", ending: "", edges: &[], replay: None, facts: &[] }
}

/// Returns the value of a part of the data.
fn part<'d>(data: &'d str, name: &str) -> &'d str {
    let (_, rest) = data.split_once(&format!("\"{name}\":")).unwrap();
    if rest.starts_with("[\n") { rest.split("\n]").next() } else { rest.split(",\n").next() }
        .unwrap()
}

/// Returns the lines of a list.
fn lines(list: &str) -> Vec<&str> {
    list.lines().skip(1).map(|line| line.trim_end_matches(',')).collect()
}

#[test]
fn a_page_has_the_title_escaped_and_all_parts() {
    let history = sampled();
    let title = "<b> & \"it's\" \0 {{data}}";
    let page = Timeline { title, ..plain(&history) }.page();
    let escaped = "&lt;b&gt; &amp; &quot;it&#39;s&quot; \\u{0} {{data}}";
    assert!(page.contains(&format!("<title>{escaped}</title>")), "{page}");
    assert!(page.contains(&format!("<h1>{escaped}</h1>")));
    // No part is inserted into another one: these braces are those of the title alone, in the two places above.
    let data = json(&Timeline { title, ..plain(&history) });
    assert_eq!(page.replace(&data, "").matches("{{").count(), 2);
    assert!(page.contains(&data));
    for part in [include_str!("../page/page.css"), include_str!("../page/chart.js")] {
        assert!(page.contains(part));
    }
    assert!(page.trim_end().ends_with("</html>"));
}

#[test]
fn data_have_the_title_the_ending_and_the_facts() {
    let history = sampled();
    let empty = json(&plain(&history));
    assert!(
        empty.starts_with("{\"format\":1,\n\"title\":\"an interleaving\",\n\"ending\":\"\",\n"),
        "{empty}"
    );
    assert_eq!((part(&empty, "replay"), part(&empty, "facts")), ("null", "[]"));
    let lanes = [
        r#"{"name":"main","kind":"app","os":100}"#,
        r#"{"name":"worker","kind":"app","os":101}"#,
        r#"{"name":"sampler","kind":"profiler","os":102}"#,
    ];
    assert_eq!(lines(part(&empty, "lanes")), lanes);
    let edges = [edge(SAMPLER, BlockReason::Join, WORKER)];
    let facts = [("runtime", "net9"), ("hazard", "\"H-01\"")];
    let full = json(&Timeline {
        ending: "it ends",
        edges: &edges,
        replay: Some("clr1:2b"),
        facts: &facts,
        ..plain(&history)
    });
    assert_eq!(part(&full, "ending"), "\"it ends\"");
    assert_eq!(part(&full, "replay"), "\"clr1:2b\"");
    assert_eq!(part(&full, "facts"), r#"[["runtime","net9"],["hazard","\"H-01\""]]"#);
    assert_eq!(
        lines(part(&full, "edges")),
        [r#"{"waits":2,"why":"waits for the end of","for":1}"#]
    );
    let managed = self::history(&[("gc", ThreadKind::ManagedProfiler)]);
    let lanes = lines(part(&json(&plain(&managed)), "lanes"))[0].to_owned();
    assert_eq!(lanes, r#"{"name":"gc","kind":"managed","os":100}"#);
}

#[test]
fn each_event_has_its_keyword_its_words_and_its_target() {
    use TurnEvent as Event;
    let (kind, lock) = (CallbackKind::ThreadCreated, LockName::Profiler(0));
    let rule = clr_explore::ProfilerRule::ResumeDoubled;
    let returned = Event::Returned("ForceGC", Outcome::Returned(HResult::OK));
    let cases = [
        (Event::Executed(1), "executes", None),
        (Event::Acquired(lock), "takes", None),
        (Event::Released(lock), "gives", None),
        (Event::Waits, "waits", None),
        (Event::Suspended(WORKER), "suspends", Some(1)),
        (Event::Resumed(SAMPLER), "resumes", Some(2)),
        (Event::Started(WORKER), "starts", Some(1)),
        (Event::Context(SAMPLER), "reads", Some(2)),
        (Event::Mode { cooperative: true }, "mode", None),
        (Event::Callback(kind), "enters", None),
        (Event::Hook, "enters", None),
        (Event::Export, "enters", None),
        (Event::Signal, "enters", None),
        (Event::CallbackOver(kind), "leaves", None),
        (Event::HookOver, "leaves", None),
        (Event::ExportOver, "leaves", None),
        (Event::SignalOver, "leaves", None),
        (Event::Called("ForceGC", Some(WORKER)), "calls", None),
        (returned, "returns", None),
        (Event::Refused(0), "refused", None),
        (Event::SnapshotCallback, "frame", None),
        (Event::System("allocates"), "system", None),
        (Event::Sleeps(5), "sleeps", None),
        (Event::TimedOut, "timeout", None),
        (Event::Breaks(rule), "breaks", None),
        (Event::Says("hello"), "says", None),
        (Event::Begins, "begins", None),
        (Event::Ends, "ends", None),
    ];
    for (event, keyword, target) in cases {
        let mut history = sampled();
        history.turn(MAIN, &[event]);
        let data = json(&plain(&history));
        let target = target.map(|target| format!(",{target}")).unwrap_or_default();
        let does = format!(r#""does":[["{keyword}",0{target}]]"#);
        assert!(part(&data, "slices").contains(&does), "{event}: {data}");
    }
}

#[test]
fn texts_and_statuses_are_stored_once() {
    let mut history = sampled();
    let says = TurnEvent::Says("hello");
    history.turn(MAIN, &[says, TurnEvent::Hook, says]);
    history.turn_at(7, WORKER, &[says]);
    history.turn_at(8, MAIN, &[TurnEvent::HookOver]);
    let data = json(&plain(&history));
    let lives = |inside: &str| {
        format!(
            r#"{{"life":"lives","stack":[],"holds":[],"waits":null,"edges":[],"by":[],"cooperative":null,"inside":[{inside}]}}"#
        )
    };
    let strings = ["\"hello\"", "\"enters a hook\"", "\"hook\"", "\"leaves a hook\""];
    assert_eq!(lines(part(&data, "strings")), strings);
    assert_eq!(lines(part(&data, "standings")), [lives("2"), lives("")]);
    let slices = [
        r#"{"at":1,"thread":0,"does":[["says",0],["enters",1],["says",0]],"stand":[0,1,1]}"#,
        r#"{"at":7,"thread":1,"does":[["says",0]],"stand":[0,1,1]}"#,
        r#"{"at":8,"thread":0,"does":[["leaves",3]],"stand":[1,1,1]}"#,
    ];
    assert_eq!(lines(part(&data, "slices")), slices);
}

#[test]
fn a_status_has_all_that_is_known_of_a_thread() {
    let heap = LockName::Runtime(Lock::ProcessHeap);
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Waits]);
    let main = ThreadStatus {
        stack: vec!["leaf".to_owned(), "root".to_owned()].into(),
        holds: vec![heap],
        edges: vec![edge(MAIN, BlockReason::Join, WORKER)],
        suspended_by: vec![WORKER, SAMPLER],
        cooperative: Some(true),
        ..ThreadStatus::default()
    };
    let worker = ThreadStatus { cooperative: Some(false), ended: true, ..ThreadStatus::default() };
    history.record(&[main, worker]);
    history.turn(SAMPLER, &[TurnEvent::Begins]);
    let data = json(&plain(&history));
    let strings = ["has to wait for the end of worker", "leaf", "root", "the process heap"];
    let others = ["waits for the end of worker", "waits for the end of", "begins"];
    let strings: Vec<_> = strings.iter().chain(&others).map(|text| format!("\"{text}\"")).collect();
    assert_eq!(lines(part(&data, "strings")), strings);
    let standings = lines(part(&data, "standings"));
    let expected = r#"{"life":"lives","stack":[1,2],"holds":[3],"waits":4,"edges":[[1,5]],"by":[1,2],"cooperative":true,"inside":[]}"#;
    assert_eq!(standings[0], expected);
    assert!(
        standings[1].starts_with(r#"{"life":"ended","#)
            && standings[1].contains(r#""cooperative":false"#)
    );
    assert!(standings[2].starts_with(r#"{"life":"before","#), "{}", standings[2]);
}
