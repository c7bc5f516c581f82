//! Fields of the JSON output, printed and described.

use super::*;

const PAGE: &str = include_str!("../schema.md");

/// Returns the fields that a section of the page describes.
pub(crate) fn described(section: &str) -> BTreeSet<String> {
    let (_, text) = PAGE.split_once(&format!("\n## {section}\n")).unwrap();
    let text = text.split("\n## ").next().unwrap();
    let fields = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    fields.map(str::to_owned).collect()
}

/// Adds the names of an object's fields, and of all in it.
pub(crate) fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(name.clone());
                fields(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, into)),
        _ => {}
    }
}
