//! Handlers and filters, called as by a runtime. Their frames are unwound correctly at each
//! instruction, they return what they should, and after a catch the program continues.

use super::*;
use clr_tests::first_seed;
use clr_tests::funclets::{Called, FuncletFailure, call_all};

const LIMIT: u64 = 2_000;

/// Returns the text of a function with every kind of clause, in the given frame.
fn every_kind(frame: &str, convention: &str) -> String {
    format!(
        r#"
convention "{convention}"
function "main" {{ push "rbx"; body {{ clobber "rbx"; call "f" }} }}
function "f" kind="jit" {{
    push "rbp" "rbx" "rax" "r12"
    locals 0x40
    {frame}
    body {{
        clobber "rbx"
        guarded {{
            work 2
            guarded {{ call "g"; loop 2 {{ work 1 }} }}
            on-filter accepts=#false {{ clobber "rbx"; call "g" }}
            on-catch {{ clobber "r12"; loop 2 {{ call "g" }} }}
            on-catch {{
                guarded {{ call "g" }}
                on-catch {{ guarded {{ work 1 }}; on-finally {{ call "g" }} }}
            }}
            guarded {{ work 3 }}
            on-fault {{ cold {{ call "g" }} }}
            cold {{ call "g" }}
        }}
        on-finally {{
            clobber "r12"
            guarded {{ call "g"; work 1 }}
            on-catch {{ call "g"; store 8 }}
            store 0x10
        }}
        clobber "r12"
        call "g"
    }}
}}
function "g" kind="jit" {{ push "rsi" "rdi" "rbx"; body {{ work 1 }} }}
"#
    )
}

#[test]
fn every_kind_of_clause_can_be_called() {
    for frame in [
        "frame \"rbp\" set=\"after-saves\" described=#false",
        "frame \"rbp\" offset=2",
        "frame \"rbp\" set=\"before-allocation\"; release \"lea\"",
        "frame \"rbp\" set=\"before-allocation\" offset=3; release \"lea\"; cold-parts \"separate\"",
        "frame \"rbp\" offset=1; release \"lea\"; scheduled; unwind \"version-2\"",
    ] {
        for convention in ["windows-x64", "system-v"] {
            let mut text = every_kind(frame, convention);
            if frame.contains("version-2") {
                text = text.replace(" \"rax\"", "");
            }
            if convention == "system-v" {
                text = text.replace("\"rsi\" \"rdi\" ", "");
            }
            let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
            let called = call_all(&scenario.program, LIMIT).unwrap_or_else(|error| {
                panic!("{frame} {convention}: {error}");
            });
            let Called { filters, accepted, catches, others, from_funclets, boundaries } = called;
            assert!(filters >= 2 && accepted == 0 && catches >= 6 && others >= 8, "{called:?}");
            assert!(from_funclets >= 2 && boundaries > 500, "{called:?}");
            let accepting = Scenario::parse(&text.replace("accepts=#false", "")).unwrap();
            let called = call_all(&accepting.program, LIMIT).unwrap();
            assert_eq!((called.filters, called.accepted), (filters, filters));
        }
    }
}

#[test]
fn dynamic_stack_does_not_hide_the_frame() {
    let text = r#"
function "main" kind="ready-to-run" {
    push "rbp" "rbx"
    frame "rbp" offset=1
    release "lea"
    body {
        alloca 7
        guarded { alloca 3; work 2 }
        on-catch { clobber "rbx"; call "g" }
        alloca 5
    }
}
function "g" { push "rbx"; body { clobber "rbx" } }
"#;
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let called = call_all(&scenario.program, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert!(called.catches >= 3, "{called:?}");
}

#[test]
fn funclets_of_any_program_can_be_called() {
    let mut all = Called::default();
    for seed in (first_seed()..).take(cases(400) as usize) {
        let program = program(&mut Seeded::new(seed), &Size::SMALL);
        match call_all(&program, LIMIT) {
            Ok(called) => {
                all.filters += called.filters;
                all.accepted += called.accepted;
                all.catches += called.catches;
                all.others += called.others;
                all.from_funclets += called.from_funclets;
                all.boundaries += called.boundaries;
            }
            Err(FuncletFailure::Run(Failure::Link(error))) if error.is_size() => {}
            Err(error) => panic!("seed {seed}: {error}\n{}", Scenario::new(program)),
        }
    }
    println!("{all:?}");
    assert!(all.filters > 50 && all.catches > 100 && all.others > 50, "{all:?}");
    assert!(all.from_funclets > 10, "{all:?}");
}
