//! An interleaving as one HTML file.

use super::Timeline;
use super::json::json;
use clr_explore::visible;

/// Template of the page, with the names of its parts in double braces.
const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/known.js"),
    include_str!("page/chart.js"),
    include_str!("page/moment.js"),
    include_str!("page/control.js"),
);

/// Returns the page, which is self-contained and depends only on the interleaving.
pub(super) fn page(timeline: &Timeline<'_>) -> String {
    let (title, data) = (escaped(&visible(timeline.title)), json(timeline));
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = PAGE;
    // One pass: the inserted parts may contain braces too.
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        page.push_str(match name {
            "title" => &title,
            "style" => STYLE,
            "script" => SCRIPT,
            "data" => &data,
            _ => "",
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(char),
        }
    }
    html
}
