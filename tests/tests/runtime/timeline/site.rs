//! Tests of the book's site in a browser: what its generator adds to the pages of Sphinx. `.ci/site --check` runs
//! them on a site that it has built.

use super::*;

/// A page of each kind.
const PAGES: [&str; 9] = [
    "index.html",
    "book/speed.html",
    "contract/walk.html",
    "rules/clauses.html",
    "runtimes/index.html",
    "gallery/seeds.html",
    "gallery/seeds/c-039-stubs.html",
    "gallery/hazards/h-08-callback-takes-a-lock.html",
    "gallery/hazards/h-08-callback-takes-a-lock.timeline.html",
];

/// Opens a page of the site. Asserts that the browser complains of nothing, and requests files of the site alone.
fn open(browser: &mut Browser, page: &str, query: &str) {
    let site = PathBuf::from(std::env::var_os("CLR_SITE").expect("CLR_SITE names the site"));
    browser.open_file(&site.join(page), query);
    assert_eq!(browser.complaints, [] as [String; 0], "{page}");
    let inside = format!("file://{}/", site.display());
    for request in &browser.requests {
        assert!(request.starts_with(&inside), "{page} requests {request}");
    }
}

#[test]
#[ignore = "needs a site: .ci/site --check"]
fn site_fits_a_phone_and_fetches_nothing() {
    let mut browser = Browser::start();
    browser.size(360, 800);
    for page in PAGES {
        open(&mut browser, page, "");
        browser.picture(&page.replace('/', "-"));
        let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_i64().unwrap() <= 0, "{page}: {wide} pixels too wide");
    }
}

#[test]
#[ignore = "needs a site: .ci/site --check"]
fn site_search_finds_words_and_ids() {
    let mut browser = Browser::start();
    for (words, page) in [
        ("C-044", "rules/clauses.html#c-044"),
        ("H-08", "rules/hazards.html#h-08"),
        ("c-039-stubs", "gallery/seeds/c-039-stubs.html"),
        ("hijack", "gallery/"),
    ] {
        open(&mut browser, "search.html", &format!("?q={words}"));
        let found = format!(
            "[...document.querySelectorAll('#search-results li a')].some(it => it.href.includes('{page}'))"
        );
        browser.wait_until(&found);
    }
    open(&mut browser, "search.html", "?q=xyzzy");
    browser.wait_until("document.querySelector('#search-results .search-summary') !== null");
    assert_eq!(browser.value("document.querySelectorAll('#search-results li').length"), json!(0));
}
