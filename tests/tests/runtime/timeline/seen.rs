//! Tests of the data in a page, without a browser.

use super::*;
use clr_explore::visible;

/// Parses the data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"id="data" nonce="timeline">"#).unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Returns the states of all threads after a turn: those in the page, and the true ones.
fn statuses(data: &Value, turn: &Value, history: &History, own: &Turn) -> [Vec<Value>; 2] {
    let place = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let text = |value: &Value| data["strings"][place(value)].clone();
    let texts = |list: &Value| list.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    let reported = turn["stand"].as_array().unwrap().iter().map(|stand| {
        let status = &data["standings"][place(stand)];
        let edges = status["edges"].as_array().unwrap().iter();
        let edges: Vec<_> = edges.map(|edge| json!([edge[0], text(&edge[1])])).collect();
        json!({
            "stack": texts(&status["stack"]),
            "holds": texts(&status["holds"]),
            "waits": Some(&status["waits"]).filter(|waits| !waits.is_null()).map(text),
            "edges": edges,
            "by": status["by"],
            "cooperative": status["cooperative"],
            "ended": status["life"] == "ended",
        })
    });
    let is = |status: &ThreadStatus| {
        let names = status.holds.iter().map(|lock| history.lock_name(*lock));
        let edges = status.edges.iter().filter(|edge| edge.why != BlockReason::Suspended);
        let edges = edges.map(|edge| {
            let BlockReason::Lock(lock) = edge.why else { panic!("{edge:?}") };
            let why = format!("waits for {}, which is owned by", history.lock_name(lock));
            json!([edge.for_whom.0, why])
        });
        json!({
            "stack": &*status.stack,
            "holds": names.collect::<Vec<_>>(),
            "waits": waits(history, status),
            "edges": edges.collect::<Vec<_>>(),
            "by": status.suspended_by.iter().map(|by| by.0).collect::<Vec<_>>(),
            "cooperative": status.cooperative,
            "ended": status.ended,
        })
    };
    [reported.collect(), own.statuses.iter().map(is).collect()]
}

fn check(history: &History) {
    let timeline =
        Timeline { history, title: "t", ending: "", edges: &[], replay: None, facts: &[] };
    let page = timeline.page();
    assert_eq!(page, timeline.page());
    let data = data(&page);
    let turns = data["slices"].as_array().unwrap();
    assert_eq!(turns.len(), history.turns.len());
    for (own, turn) in history.turns.iter().zip(turns) {
        assert_eq!(turn["at"], own.at);
        assert_eq!(turn["thread"], own.thread.0);
        // The page leaves out that a sleeping thread waits.
        let slept = |pair: &&[TurnEvent]| matches!(pair, [TurnEvent::Sleeps(_), TurnEvent::Waits]);
        let reported = own.events.len() - own.events.windows(2).filter(slept).count();
        assert_eq!(turn["does"].as_array().unwrap().len(), reported);
        let [reported, is] = statuses(&data, turn, history, own);
        assert_eq!(reported, is);
    }
}

#[test]
fn a_page_has_the_status_of_every_turn() {
    check(&frozen_in_malloc().0);
    check(&long(2000));
    check(&History::default());
}

#[test]
fn the_end_is_described_without_recorded_statuses() {
    let (mut history, edges) = frozen_in_malloc();
    for turn in &mut history.turns {
        turn.statuses.clear();
    }
    let timeline = Timeline {
        history: &history,
        title: "t",
        ending: ENDING,
        edges: &edges,
        replay: None,
        facts: &[],
    };
    let data = data(&timeline.page());
    assert_eq!(data["ending"], ENDING);
    assert_eq!(data["edges"][2], json!({ "waits": 1, "why": "is suspended by", "for": 2 }));
    let whom = |thread: usize| {
        let stand = &data["slices"].as_array().unwrap().last().unwrap()["stand"][thread];
        let status = &data["standings"][usize::try_from(stand.as_u64().unwrap()).unwrap()];
        [status["edges"][0][0].clone(), status["by"][0].clone()]
    };
    let expected = [[json!(2), Value::Null], [Value::Null, json!(2)], [json!(1), Value::Null]];
    assert_eq!([whom(0), whom(1), whom(2)], expected);
}

/// Returns an interleaving with texts that try to escape from their context in the page.
pub(crate) fn hostile() -> (History, Vec<Edge>) {
    let mut story = Story::new(&[
        ("</script><script>pwned=1</script>", ThreadKind::App),
        ("<img src=x onerror=pwned=1>", ThreadKind::App),
        ("{{data}}\"'`\\\u{2028}\u{0}<!--<script>", ThreadKind::Profiler),
    ]);
    story.stack(MAIN, &["List<T>.Add", "</script><svg onload=pwned=1>", "${pwned=1}"]);
    story.turn(MAIN, &[TurnEvent::Says("</SCRIPT><b>")]);
    story.set(WORKER).waits = Some("<i onclick=pwned=1>\u{202e}".to_owned());
    story.turn(WORKER, &[TurnEvent::Waits]);
    story.set(WORKER).suspended_by = vec![SAMPLER];
    story.turn(SAMPLER, &[TurnEvent::Suspended(WORKER)]);
    let edges = vec![Edge { waits: WORKER, why: BlockReason::Suspended, for_whom: SAMPLER }];
    (story.history, edges)
}

pub(crate) const HOSTILE: &str = "<!--</title></script><script>pwned=1</script>{{script}}&amp;";

#[test]
fn nothing_gets_out_of_where_it_is_put() {
    let (history, edges) = hostile();
    let timeline = Timeline {
        history: &history,
        title: HOSTILE,
        ending: HOSTILE,
        edges: &edges,
        replay: Some(HOSTILE),
        facts: &[],
    };
    let page = timeline.page();
    let data = data(&page);
    assert_eq!(data["ending"], HOSTILE);
    assert_eq!(data["lanes"][2]["name"], visible(&history.threads[2].name));
    // Markup of the page itself, without its data.
    let own = Timeline {
        history: &History::default(),
        title: "",
        ending: "",
        edges: &[],
        replay: None,
        facts: &[],
    };
    let own = own.page();
    for what in ["<script", "</script", "<!--", "<img", "<svg", "onerror=", "<title", "</title"] {
        let count = |page: &str| page.to_lowercase().matches(what).count();
        let (_, rest) = page.split_once("<body>").unwrap();
        let in_text = usize::from(what == "onerror=") * rest.matches("onerror=").count();
        assert_eq!(count(&page) - in_text, count(&own), "{what}");
    }
}

#[test]
fn a_page_needs_nothing_else() {
    let (history, _) = frozen_in_malloc();
    let timeline = Timeline {
        history: &history,
        title: "t",
        ending: "",
        edges: &[],
        replay: None,
        facts: &[],
    };
    let page = timeline.page();
    for what in ["src=", "@import", "fetch(", "innerHTML", "eval(", "onclick="] {
        assert!(!page.contains(what), "{what}");
    }
    let addresses: Vec<_> = page.match_indices("http").map(|(at, _)| &page[at..at + 27]).collect();
    // The content security policy, and the name of a namespace.
    assert_eq!(
        addresses,
        ["http-equiv=\"Content-Security", "http://www.w3.org/2000/svg\""].map(|it| &it[..27])
    );
}
