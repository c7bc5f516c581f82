//! Tests of the book's site in a browser: what its generator adds to the pages of Sphinx. `.ci/site --check` runs
//! them on a site that it has built.

use super::*;

/// A page of each kind.
const PAGES: [&str; 13] = [
    "index.html",
    "search.html",
    "book/index.html",
    "book/speed.html",
    "book/cpp_profiler/calls-that-fail.html",
    "contract/walk.html",
    "rules/clauses.html",
    "runtimes/index.html",
    "gallery/index.html",
    "gallery/seeds.html",
    "gallery/seeds/c-039-stubs.html",
    "gallery/hazards/h-08-callback-takes-a-lock.html",
    "gallery/hazards/h-08-callback-takes-a-lock.timeline.html",
];

/// The lowest contrast of a text and its background, and that text. Large text needs less, so its contrast counts by half more.
const CONTRAST: &str = r#"(() => {
    const numbers = (color) => color.match(/[\d.]+/g).map(Number);
    const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => {
        for (; node; node = node.parentElement) {
            const color = numbers(getComputedStyle(node).backgroundColor);
            if (color.length < 4 || color[3] > 0.99) return color;
        }
        return [255, 255, 255];
    };
    let [lowest, where] = [99, ""];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const node = texts.currentNode.parentElement, style = getComputedStyle(node);
        const seen = texts.currentNode.data.trim() && node.getBoundingClientRect().width && style.visibility === "visible";
        if (!seen) continue;
        const [a, b] = [luminance(numbers(style.color)), luminance(behind(node))];
        const large = parseFloat(style.fontSize) >= 24;
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) * (large ? 1.5 : 1);
        if (contrast < lowest) [lowest, where] = [contrast, texts.currentNode.data];
    }
    return { lowest, where };
})()"#;

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

/// Returns the texts of the gallery's list that are shown.
fn shown(browser: &mut Browser) -> u64 {
    let count = "[...document.querySelectorAll('#texts li')].filter(it => it.offsetHeight).length";
    browser.value(count).as_u64().unwrap()
}

/// Chooses a value of a filter of the gallery's list, and returns how many texts are shown then.
fn choose(browser: &mut Browser, filter: &str, value: &str) -> u64 {
    let chosen = format!(
        "(() => {{ const it = document.getElementById('filters').elements['{filter}']; it.value = '{value}';
        it.dispatchEvent(new Event('input', {{ bubbles: true }})); return it.value; }})()"
    );
    assert_eq!(browser.value(&chosen), value, "{filter} has no {value}");
    let count = shown(browser);
    let said = browser.value("document.getElementById('filtered').textContent");
    assert!(said.as_str().unwrap().starts_with(&format!("{count} of ")), "{said}");
    count
}

#[test]
#[ignore = "needs a site: .ci/site --check"]
fn site_has_no_script_in_a_page_and_is_readable_in_both_themes() {
    let mut browser = Browser::start();
    for page in PAGES.iter().filter(|page| !page.ends_with(".timeline.html")) {
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            open(&mut browser, page, "");
            let inside = "[...document.scripts].filter(it => !it.src).length";
            assert_eq!(browser.value(inside), json!(0), "{page}");
            let policy =
                "document.querySelector('meta[http-equiv=Content-Security-Policy]')?.content";
            let policy = browser.value(policy);
            assert!(
                policy.as_str().is_some_and(|it| it.contains("script-src 'self'")),
                "{page}: {policy}"
            );
            let found = browser.value(CONTRAST);
            assert!(found["lowest"].as_f64().unwrap() >= 4.5, "{page}, {scheme}: {found}");
            browser.picture(&format!("{scheme}-{}", page.replace('/', "-")));
        }
    }
}

#[test]
#[ignore = "needs a site: .ci/site --check"]
fn site_opens_its_lists_by_keyboard_on_a_phone() {
    let mut browser = Browser::start();
    browser.size(360, 800);
    open(&mut browser, "index.html", "");
    let search = "getComputedStyle(document.querySelector('.sidebar-search')).visibility";
    assert_eq!(browser.value(search), json!("hidden"));
    browser.press("Tab");
    assert_eq!(browser.value("document.activeElement.id"), json!("__navigation"));
    browser.press(" ");
    browser
        .wait_until("document.querySelector('.sidebar-drawer').getBoundingClientRect().left === 0");
    assert_eq!(browser.value(search), json!("visible"));
    browser.press("Tab");
    assert_eq!(browser.value("document.activeElement.id"), json!("__toc"));
}

#[test]
#[ignore = "needs a site: .ci/site --check"]
fn site_gallery_is_filtered() {
    let mut browser = Browser::start();
    open(&mut browser, "gallery/index.html", "");
    let all = shown(&mut browser);
    assert!(all > 700, "{all}");
    let hazard = choose(&mut browser, "hazard", "H-08");
    assert!(hazard > 3 && hazard < 20, "{hazard}");
    let deadlocks = choose(&mut browser, "result", "deadlock");
    assert!(deadlocks > 0 && deadlocks < hazard, "{deadlocks}");
    let named = "[...document.querySelectorAll('#texts li')].filter(it => it.offsetHeight)
        .every(it => it.textContent.includes('h-08') && !it.textContent.includes('avoided'))";
    assert_eq!(browser.value(named), json!(true));
    // Unix has no walk of another thread.
    assert_eq!(choose(&mut browser, "runtime", "net8-unix"), 0);
    assert_eq!(choose(&mut browser, "runtime", "net8-windows"), deadlocks);
    browser.value("document.querySelector('#filters button').click()");
    browser.wait_until(&format!(
        "document.getElementById('filtered').textContent === '{all} of {all} texts'"
    ));
    assert!(choose(&mut browser, "tag", "signal") < choose(&mut browser, "tag", ""));
    assert!(choose(&mut browser, "words", "callback lock") < 100);
    // The address has filters, too.
    open(&mut browser, "gallery/index.html", "?hazard=H-08");
    assert_eq!(shown(&mut browser), hazard);
    // A text begins with what comes out.
    open(&mut browser, "gallery/hazards/h-08-callback-takes-a-lock.html", "");
    let order =
        browser.value("[...document.querySelectorAll('h2')].map(it => it.firstChild.data).join()");
    assert_eq!(order, json!("Results,Source"));
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
        ("FunctionEnter", "gallery/situations/elt-info-enter.html"),
        ("functionenter3", "gallery/clauses/c-072-slow-hooks-have-a-frame.html"),
        ("c++", "book/cpp_profiler.html"),
        ("hang", "book/hang.html"),
        ("hanging", "book/hang.html"),
        ("0x80131", "contract/types.html#hresults"),
        ("0x8013135F", "book/field_bug.html"),
        ("UNMANAGED_CTX", "gallery/walks/unmanaged-ctx.html"),
        ("unmanaged ctx", "gallery/walks/unmanaged-ctx.html"),
        ("p/invoke", "contract/worked_stacks.html"),
        ("walker-avoided", "gallery/hazards/h-02-managed-walker-avoided.html"),
        ("CompilationFinished", "gallery/situations/callback-jit-compilation-finished.html"),
        ("deadlok", "book/tool/search-for-a-deadlock.html"),
        ("install", "index.html#install"),
    ] {
        open(&mut browser, "search.html", &format!("?q={}", words.replace('+', "%2B")));
        let found = format!(
            "[...document.querySelectorAll('#search-results li a')].some(it => it.href.includes('{page}'))"
        );
        browser.wait_until("document.getElementById('search-summary').textContent !== ''");
        // Where there are more than twenty, the first must do.
        assert_eq!(browser.value(&found), json!(true), "{words} does not find {page}");
        let marked = "document.querySelectorAll('#search-results mark').length";
        assert!(browser.value(marked).as_u64().unwrap() > 0, "no excerpt shows {words}");
    }
    open(&mut browser, "search.html", "?q=xyzzy");
    let said =
        "document.getElementById('search-summary').textContent.startsWith('Nothing is found.')";
    browser.wait_until(said);
    assert_eq!(browser.value("document.querySelectorAll('#search-results li').length"), json!(0));
}
