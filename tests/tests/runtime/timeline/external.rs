//! Tests of the page in a browser: its content at each moment, its keys, its colors in light and
//! dark.

use super::*;
use crate::timeline::seen::{HOSTILE, hostile};
use clr_explore::visible;

/// Reads the content of the cards.
const CARDS: &str = r#"[...document.querySelectorAll(".card")].map((card) => ({
    name: card.querySelector("h3 b").textContent,
    stack: [...card.querySelectorAll(".stack li")].map((line) => line.textContent),
    waits: card.querySelector(".b-waits")?.textContent ?? null,
    suspended: card.querySelector(".b-suspended")?.textContent ?? null,
    holds: [...card.querySelectorAll(".b-holds")].map((badge) => badge.textContent),
}))"#;

/// Returns the content that the cards must have after a turn.
fn cards(history: &History, index: usize) -> Value {
    let turn = &history.turns[index];
    let card = |(thread, status): (usize, &ThreadStatus)| {
        let holds: Vec<_> =
            status.holds.iter().map(|lock| format!("owns {}", history.lock_name(*lock))).collect();
        json!({
            "name": history.threads[thread].name,
            "stack": if begun(history, index, thread) { &*status.stack } else { &[] },
            "waits": waits(history, status),
            "suspended": status.suspended_by.first()
                .map(|by| format!("suspended by {}", history.name(*by))),
            "holds": holds,
        })
    };
    turn.statuses.iter().enumerate().map(card).collect()
}

fn begun(history: &History, turn: usize, thread: usize) -> bool {
    let own = |turn: &&Turn| turn.thread.index() == thread;
    history.turns[..=turn].iter().any(|turn| own(&turn))
        || !history.turns[turn].statuses[thread].stack.is_empty()
}

fn turn(browser: &mut Browser) -> u64 {
    browser.value("Number(document.getElementById('slider').value)").as_u64().unwrap()
}

fn fine(browser: &Browser) {
    assert_eq!(browser.complaints, [] as [String; 0]);
    assert_eq!(browser.requests.len(), 1, "{:?}", browser.requests);
}

/// Asserts that the button with this id overrides the system's scheme, one click after the other.
pub(crate) fn overrides_the_scheme(browser: &mut Browser, button: &str) {
    browser.scheme("dark");
    for (theme, dark) in [("light", false), ("dark", true), ("system", true)] {
        browser.value(&format!("document.getElementById('{button}').click()"));
        let said = browser.value(&format!("document.getElementById('{button}').textContent"));
        assert_eq!(said, format!("Theme: {theme}"));
        let look = browser.value(FAINT);
        assert_eq!(look["page"].as_f64().unwrap() < 0.5, dark, "{theme}");
    }
}

/// Returns texts with low contrast, and the brightness of the page.
pub(crate) const FAINT: &str = r#"(() => {
    const parts = (color) => color.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let it = element; it; it = it.parentElement) {
            const color = parts(getComputedStyle(it).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
    };
    const faint = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !element.checkVisibility() || element.closest("svg, script")) continue;
        const [a, b] = [parts(getComputedStyle(element).color), behind(element)].map(light);
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.push(`${element.className} ${element.textContent}: ${contrast}`);
    }
    return { faint, page: light(behind(document.body)) };
})()"#;

#[test]
#[ignore = "external: needs Chromium"]
fn every_moment_in_light_and_dark_narrow_and_wide() {
    let mut browser = Browser::start();
    let (history, edges) = frozen_in_malloc();
    let timeline = Timeline {
        history: &history,
        title: "a thread is frozen in malloc",
        ending: ENDING,
        edges: &edges,
        replay: Some("1:random:7f3a:0120212"),
        facts: &[("runtime", "net9-windows"), ("avoided by", "no allocation <here>")],
    };
    let last = history.turns.len();
    for (scheme, width) in [("light", 1600), ("dark", 1600), ("light", 800), ("dark", 800)] {
        browser.scheme(scheme);
        browser.size(width, 900);
        browser.open(&timeline.page(), "");
        assert_eq!(turn(&mut browser), last as u64, "a failure begins at its end");
        let facts = browser.value("document.getElementById('facts').textContent");
        assert_eq!(facts, "runtimenet9-windowsavoided byno allocation <here>");
        browser.picture(&format!("{scheme}-{width}"));
        let look = browser.value(FAINT);
        assert_eq!(look["faint"], json!([]), "{scheme}");
        assert_eq!(look["page"].as_f64().unwrap() < 0.5, scheme == "dark");
        let overflow = "document.documentElement.scrollWidth - innerWidth";
        assert!(browser.value(overflow).as_i64().unwrap() <= 0, "{width}");
        browser.press("Home");
        for at in 0..last {
            assert_eq!(turn(&mut browser), at as u64 + 1);
            assert_eq!(browser.value(CARDS), cards(&history, at), "turn {}", at + 1);
            browser.press("ArrowRight");
        }
        browser.press("ArrowLeft");
        assert_eq!(browser.value(CARDS), cards(&history, last - 2));
        browser.press("End");
        assert_eq!(browser.value(CARDS), cards(&history, last - 1));
        browser.value("location.hash = '#turn=17&thread=3'");
        browser.picture(&format!("{scheme}-{width}-17"));
        assert_eq!(browser.value(FAINT)["faint"], json!([]), "{scheme}");
        browser.press("End");
        let arcs = "document.querySelectorAll('#arcs .arc').length";
        assert_eq!(browser.value(arcs), edges.len());
    }
    browser.size(1600, 900);
    overrides_the_scheme(&mut browser, "theme");
    fine(&browser);
}

#[test]
#[ignore = "external: needs Chromium"]
fn by_keys_alone() {
    let mut browser = Browser::start();
    let (history, _) = frozen_in_malloc();
    let timeline = Timeline {
        history: &history,
        title: "t",
        ending: "",
        edges: &[],
        replay: None,
        facts: &[],
    };
    browser.size(1000, 700);
    browser.open(&timeline.page(), "#turn=1&thread=3");
    assert_eq!(turn(&mut browser), 1);
    // Turns of the sampler that do more than execute instructions; none is skipped.
    let own: Vec<_> = (2_u64..)
        .zip(&history.turns[1..])
        .filter(|(_, turn)| turn.thread == SAMPLER)
        .map(|(turn, _)| turn)
        .collect();
    for expected in &own {
        browser.press("n");
        assert_eq!(turn(&mut browser), *expected);
    }
    browser.press("n");
    assert_eq!(turn(&mut browser), *own.last().unwrap(), "there is no next one");
    browser.press("p");
    assert_eq!(turn(&mut browser), own[own.len() - 2]);
    let place = own[own.len() - 2];
    assert_eq!(browser.value("location.hash"), format!("#turn={place}&thread=3"));
    browser.value("location.hash = '#turn=2&thread=2'");
    assert_eq!(turn(&mut browser), 2);
    assert_eq!(browser.value("document.getElementById('marked').textContent"), "worker");

    // The keys that the page names work before anything has the focus.
    browser.press("ArrowDown");
    assert_eq!(browser.value("document.getElementById('marked').textContent"), "sampler");
    browser.press("ArrowUp");
    assert_eq!(browser.value("document.getElementById('marked').textContent"), "worker");

    // All controls are reached by Tab, and their focus is visible.
    let focused = r"(() => { const it = document.activeElement, style = getComputedStyle(it);
        return [it === document.body ? 'BODY' : it.id || it.textContent.trim(), style.outlineStyle]; })()";
    let mut reached = Vec::new();
    for _ in 0..40 {
        browser.press("Tab");
        let it = browser.value(focused);
        if it[0] == "BODY" || reached.contains(&it[0]) {
            break;
        }
        assert_ne!(it[1], "none", "{it}");
        reached.push(it[0].clone());
        if it[0] == "mainprogram" {
            browser.press("ArrowDown");
            browser.press("ArrowDown");
            let marked = browser.value("document.getElementById('marked').textContent");
            assert_eq!(marked, "sampler");
            browser.press("ArrowUp");
            browser.press("ArrowUp");
        }
    }
    for name in ["theme", "mainprogram", "slider", "list"] {
        assert!(reached.contains(&json!(name)), "{name} is not in {reached:?}");
    }
    // In the list, the up and down keys change the turn.
    browser.value("document.getElementById('list').focus()");
    browser.press("ArrowDown");
    assert_eq!(turn(&mut browser), 3);

    // The content of the accessibility tree.
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let of = |role: &str| -> Vec<_> {
        let nodes = nodes.iter().filter(|node| node["role"]["value"] == role);
        nodes.map(|node| node["name"]["value"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(of("slider"), ["Turn"]);
    assert!(of("button").iter().all(|name| !name.is_empty()), "{:?}", of("button"));
    assert!(of("region").contains(&"worker program".to_owned()), "{:?}", of("region"));
    assert!(of("list").contains(&"Stack of worker, leaf first".to_owned()), "{:?}", of("list"));
    let said = browser.value("document.getElementById('slider').getAttribute('aria-valuetext')");
    assert_eq!(said, "Turn 3 of 26, 3 µs, worker: begins, executes 2 instructions");
    fine(&browser);
}

#[test]
#[ignore = "external: needs Chromium"]
fn a_long_history_by_mouse() {
    let mut browser = Browser::start();
    let history = long(2000);
    assert_eq!(history.turns.len(), 2000);
    let timeline = Timeline {
        history: &history,
        title: "2,000 turns",
        ending: "",
        edges: &[],
        replay: None,
        facts: &[],
    };
    for (scheme, width) in [("light", 1600), ("dark", 800)] {
        browser.scheme(scheme);
        browser.size(width, 1000);
        browser.open(&timeline.page(), "#turn=1000");
        browser.picture(&format!("long-{scheme}"));
        assert_eq!(browser.value(CARDS), cards(&history, 999));
        assert_eq!(browser.value(FAINT)["faint"], json!([]), "{scheme}");
        let lines = browser.value("document.querySelectorAll('.turn').length").as_u64().unwrap();
        assert!((10..60).contains(&lines), "{lines} lines of the list exist");
        let place = browser.value(
            "(() => { const { x, y, height } = document.querySelectorAll('.row')[3]
                .getBoundingClientRect();
                const turn = parseFloat(getComputedStyle(document.documentElement)
                .getPropertyValue('--turn')); return [x + turn * 1003.5, y + height / 2]; })()",
        );
        browser.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        assert_eq!(turn(&mut browser), 1004);
        assert_eq!(browser.value(CARDS), cards(&history, 1003));
        let marked = browser.value("document.getElementById('marked').textContent");
        assert_eq!(marked, "uploader");
        browser.press("0");
        let overflow = "document.getElementById('scroll').scrollWidth
            - document.getElementById('scroll').clientWidth";
        assert!(browser.value(overflow).as_i64().unwrap() <= 1);
        browser.picture(&format!("long-fit-{scheme}"));
        browser.press("End");
        assert_eq!(browser.value(CARDS), cards(&history, 1999));
    }
    fine(&browser);
}

#[test]
#[ignore = "external: needs Chromium"]
fn names_are_words_and_nothing_else() {
    let mut browser = Browser::start();
    let (history, edges) = hostile();
    let timeline = Timeline {
        history: &history,
        title: HOSTILE,
        ending: HOSTILE,
        edges: &edges,
        replay: Some(HOSTILE),
        facts: &[],
    };
    browser.open(&timeline.page(), "");
    assert_eq!(browser.value("typeof pwned"), "undefined");
    assert_eq!(browser.value(CARDS)[0]["stack"], json!(&*history.turns[0].statuses[0].stack));
    assert_eq!(browser.value(CARDS)[2]["name"], visible(&history.threads[2].name));
    assert_eq!(browser.value("document.title"), HOSTILE);
    let code = browser.value("document.querySelector('#replay code').textContent");
    assert_eq!(code, HOSTILE);
    browser.picture("hostile");
    fine(&browser);
}
