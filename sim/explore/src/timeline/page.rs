//! A history as one HTML file.

use super::Timeline;
use super::json::json;

/// The page without its parts, which stand where their names are in double braces.
const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/known.js"),
    include_str!("page/chart.js"),
    include_str!("page/moment.js"),
    include_str!("page/control.js"),
);

/// The page: the same for the same history, and in need of nothing beside itself.
pub(super) fn page(timeline: &Timeline<'_>) -> String {
    let (title, data) = (escaped(timeline.title), json(timeline));
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = PAGE;
    // One way through: what is put in may have braces too.
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

/// A text as HTML.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\0' => html.push('\u{fffd}'),
            _ => html.push(char),
        }
    }
    html
}
