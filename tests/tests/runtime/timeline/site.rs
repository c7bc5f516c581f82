//! Tests of the book's site in a browser: pages of each kind, in light and dark, on a phone and on a
//! desk, by keys alone, and as a screen reader gets them. `.ci/site --check` runs them on a site that
//! it has built.

use crate::timeline::browser::Browser;
use crate::timeline::external::{FAINT, overrides_the_scheme};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A page of each kind.
const PAGES: [&str; 20] = [
    "index.html",
    "book/index.html",
    "book/the-tool.html",
    "book/speed.html",
    "contract/walk.html",
    "contract/field-bugs.html",
    "reference/text-format.html",
    "reference/json.html",
    "rules/clauses.html",
    "rules/hazards.html",
    "rules/the-evidence.html",
    "runtimes/index.html",
    "runtimes/net10-unix.html",
    "gallery/index.html",
    "gallery/seeds/index.html",
    "gallery/seeds/c-039-stubs.html",
    "gallery/hazards/h-08-callback-takes-a-lock.html",
    "project/architecture.html",
    "project/changelog.html",
    "search.html",
];

/// A history as a page, which is opened beside them.
const TIMELINE: &str = "gallery/hazards/h-08-callback-takes-a-lock.timeline.html";

/// Maximum number of keys that reach anything.
const KEYS: usize = 150;

/// Returns the folder of the site.
fn site() -> PathBuf {
    std::env::var_os("CLR_SITE").expect("CLR_SITE names the folder of the site").into()
}

/// Opens a page of the site.
fn open(browser: &mut Browser, page: &str) {
    browser.open_file(&site().join(page), "");
}

/// Returns the number of pixels by which the page is wider than the window.
fn overflow(browser: &mut Browser) -> i64 {
    browser.value("document.documentElement.scrollWidth - innerWidth").as_i64().unwrap()
}

/// Asserts that the browser had nothing to complain of, and requested files of the site alone.
fn fine(browser: &mut Browser, page: &str) {
    assert_eq!(browser.complaints, [] as [String; 0], "{page}");
    let inside = format!("file://{}/", site().display());
    for request in &browser.requests {
        assert!(request.starts_with(&inside), "{page} requests {request}");
    }
}

/// Returns the nodes of the accessibility tree that a screen reader gets.
fn tree(browser: &mut Browser) -> Vec<Value> {
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().unwrap().iter();
    nodes.filter(|node| node["ignored"] != true).cloned().collect()
}

fn named<'n>(nodes: &'n [Value], role: &str) -> Vec<&'n str> {
    let nodes = nodes.iter().filter(|node| node["role"]["value"] == role);
    nodes.map(|node| node["name"]["value"].as_str().unwrap_or_default()).collect()
}

/// Returns the levels of the headings, in order.
fn levels(nodes: &[Value]) -> Vec<u64> {
    let headings = nodes.iter().filter(|node| node["role"]["value"] == "heading");
    let level = |node: &Value| {
        let properties = node["properties"].as_array()?;
        properties.iter().find(|it| it["name"] == "level")?["value"]["value"].as_u64()
    };
    headings.filter_map(level).collect()
}

/// Returns the focused element: its id or text, its outline, and true if it is in `main`.
const FOCUSED: &str = "(() => { const it = document.activeElement;
    return [it === document.body ? 'BODY' : it.id || it.textContent.trim(),
        getComputedStyle(it).outlineStyle, it.closest('main') !== null && it.id !== 'site-main']; })()";

/// Returns the element that has the focus after `Tab` was pressed until `wanted` is true of it.
fn tab_until(browser: &mut Browser, page: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut passed = Vec::new();
    for _ in 0..KEYS {
        browser.press("Tab");
        let it = browser.value(FOCUSED);
        assert!(it[0] == "BODY" || it[1] != "none", "{page}: the focus is invisible on {it}");
        if wanted(&it) {
            return it;
        }
        passed.push(it[0].clone());
    }
    panic!("{page}: Tab passes {passed:?}")
}

#[test]
#[ignore = "needs a site: .ci/site, then .ci/site --check"]
fn site_in_light_and_dark_on_a_phone_and_on_a_desk() {
    let mut browser = Browser::start();
    for page in PAGES.iter().chain([&TIMELINE]) {
        for (width, scheme) in [(1200, "light"), (1200, "dark"), (360, "light"), (360, "dark")] {
            browser.scheme(scheme);
            browser.size(width, 800);
            open(&mut browser, page);
            browser.picture(&format!("{}-{scheme}-{width}", page.replace('/', "-")));
            let wide = overflow(&mut browser);
            assert!(wide <= 0, "{page}, {scheme}: {wide} of {width} pixels too wide");
            // Colors are the same at each width.
            if width == 1200 {
                let look = browser.value(FAINT);
                assert_eq!(look["faint"], json!([]), "{page}, {scheme}");
                assert_eq!(look["page"].as_f64().unwrap() < 0.5, scheme == "dark", "{page}");
            }
            fine(&mut browser, page);
        }
    }
}

#[test]
#[ignore = "needs a site: .ci/site, then .ci/site --check"]
fn site_as_a_screen_reader_gets_it() {
    let mut browser = Browser::start();
    browser.size(1200, 800);
    for page in PAGES {
        open(&mut browser, page);
        let nodes = tree(&mut browser);
        for role in ["banner", "main", "search"] {
            assert_eq!(named(&nodes, role).len(), 1, "{page}: {role}");
        }
        let navigations = named(&nodes, "navigation");
        assert!(navigations.contains(&"Contents"), "{page}: {navigations:?}");
        for role in ["navigation", "link", "button", "searchbox", "region", "heading"] {
            assert!(!named(&nodes, role).contains(&""), "{page}: a {role} has no name");
        }
        assert_eq!(named(&nodes, "searchbox"), ["Search"], "{page}");
        let levels = levels(&nodes);
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{page}: {levels:?}");
        assert_eq!(levels[0], 1, "{page}: {levels:?}");
        let steps = levels.windows(2).all(|pair| pair[1] <= pair[0] + 1);
        assert!(steps, "{page}: {levels:?}");
        assert_eq!(browser.value("document.documentElement.lang"), "en");
        fine(&mut browser, page);
    }
}

#[test]
#[ignore = "needs a site: .ci/site, then .ci/site --check"]
fn site_by_keys_alone() {
    let mut browser = Browser::start();
    for (page, width) in
        [("book/the-tool.html", 1200), ("book/the-tool.html", 360), ("index.html", 360)]
    {
        browser.size(width, 800);
        open(&mut browser, page);
        let first = tab_until(&mut browser, page, |_| true);
        assert_eq!(first[0], "Skip to the content", "{page}");
        let left = browser.value("document.activeElement.getBoundingClientRect().left");
        assert!(left.as_f64().unwrap() >= 0.0, "{page}: the link is outside of the window");
        tab_until(&mut browser, page, |it| it[0] == "site-words");
        tab_until(&mut browser, page, |it| it[2] == true);
        // By the link, the content is the next thing.
        open(&mut browser, page);
        browser.press("Tab");
        browser.press("Enter");
        browser.press("Tab");
        assert_eq!(browser.value(FOCUSED)[2], true, "{page}");
    }
    // On a phone a button shows the contents.
    let shown = "getComputedStyle(document.getElementById('site-contents')).display !== 'none'";
    assert_eq!(browser.value(shown), false);
    open(&mut browser, "index.html");
    tab_until(&mut browser, "index.html", |it| it[0] == "site-menu");
    browser.press("Enter");
    assert_eq!(browser.value(shown), true);
    let expanded =
        browser.value("document.getElementById('site-menu').getAttribute('aria-expanded')");
    assert_eq!(expanded, "true");
    assert!(overflow(&mut browser) <= 0);
    // What scrolls can be scrolled by keys.
    open(&mut browser, "rules/the-evidence.html");
    let scrolls = "document.querySelectorAll('.scroll[tabindex=\"0\"][role=region]').length";
    assert!(browser.value(scrolls).as_u64().unwrap() > 3);
    overrides_the_scheme(&mut browser, "site-theme");
    fine(&mut browser, "rules/the-evidence.html");
}

#[test]
#[ignore = "needs a site: .ci/site, then .ci/site --check"]
fn site_search_finds_words_and_ids() {
    let mut browser = Browser::start();
    open(&mut browser, "gallery/seeds/index.html");
    browser.press("/");
    assert_eq!(browser.value("document.activeElement.id"), "site-words");
    for key in ["h", "i", "j", "a", "c", "k"] {
        browser.press(key);
    }
    browser.press("Enter");
    browser.wait_until(
        "location.pathname.endsWith('/search.html') && document.readyState === 'complete'",
    );
    let results = "document.querySelectorAll('#results a').length";
    let hijack = browser.value(results).as_u64().unwrap();
    assert!(hijack > 10, "{hijack}");
    let count = browser.value("document.getElementById('count').textContent");
    assert!(count.as_str().unwrap().contains("pages"), "{count}");
    let first = "document.querySelector('#results a')?.getAttribute('href')";
    for (words, address) in [
        ("C-044", "rules/clauses.html#C-044"),
        ("H-08", "rules/hazards.html#H-08"),
        ("c-039-stubs", "gallery/seeds/c-039-stubs.html"),
        ("the matrix", "book/the-matrix.html"),
    ] {
        let write = format!(
            "(() => {{ const it = document.getElementById('site-words'); it.value = {words:?};
                it.dispatchEvent(new Event('input')); }})()"
        );
        browser.value(&write);
        assert_eq!(browser.value(first), address, "{words}");
    }
    let nothing = "(() => { const it = document.getElementById('site-words'); it.value = 'xyzzy';
        it.dispatchEvent(new Event('input')); return document.getElementById('count').textContent; })()";
    assert_eq!(browser.value(nothing), "0 pages");
    fine(&mut browser, "search.html");
}
