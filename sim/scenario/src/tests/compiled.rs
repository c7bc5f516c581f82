//! Tests of the program as it is compiled for a profiler.

use super::*;
use clr_walker::profiling::EventMask;
use std::borrow::Cow;

const TEXT: &str = r#"
function "App.Main" kind="jit" {
    inlines "App.Small"
    body { call "App.Ahead"; loop 2 { p-invoke "Lib.Call" } }
}
function "App.Ahead" kind="ready-to-run" { body { p-invoke-by-helper "Lib.Call" } }
function "App.Small" kind="jit" { body { work 1 } }
function "Lib.Call" { body { work 1 } }
"#;

fn compiled(events: u32) -> String {
    let scenario = Scenario::parse(TEXT).unwrap();
    scenario.compiled_for(EventMask(events)).to_string()
}

#[test]
fn a_mask_that_changes_no_code_leaves_the_program_alone() {
    let scenario = Scenario::parse(TEXT).unwrap();
    for events in [0, 0x1, 0x20, 0x80, 0x100, 0x200, 0x4_0000, 0x1000_0000] {
        let same = scenario.compiled_for(EventMask(events));
        assert!(matches!(same, Cow::Borrowed(_)), "{events:x}");
    }
}

#[test]
fn precompiled_code_is_refused_for_hooks_transitions_and_by_two_flags() {
    for events in [0x800, 0x1000, 0x2000_0000, 0x8000_0000] {
        let text = compiled(events);
        assert!(!text.contains("ready-to-run") && !text.contains("by-helper"), "{text}");
        assert_eq!(text.contains("p-invoke-stub"), events == 0x800, "{text}");
        assert_eq!(text.contains("p-invoke \""), events != 0x800, "{text}");
        assert!(text.contains("inlines"));
    }
}
