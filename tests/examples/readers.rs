//! Compares the unwind data of images as `clr_walker` and other readers read it: `.ci/real` runs it.
//! Prints a JSON object a line, for each image that both can open.

#[path = "../tests/code/unwinders/readers/mod.rs"]
mod readers;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let Some(comparison) = readers::compare(&std::fs::read(&path)?) else {
            eprintln!("{path}: not compared");
            continue;
        };
        let differences = comparison.differences.iter().map(|(kind, (count, first))| {
            serde_json::json!({ "kind": kind, "count": count, "first": format!("{first:#x}") })
        });
        let line = serde_json::json!({
            "file": path,
            "format": comparison.format,
            "entries": comparison.entries,
            "parts": comparison.parts,
            "differences": differences.collect::<Vec<_>>(),
        });
        println!("{line}");
    }
    Ok(())
}
