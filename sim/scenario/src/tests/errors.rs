//! Tests of messages: position, problem, and allowed values.

use super::*;
use core::fmt::Write as _;
use miette::{Diagnostic, NarratableReportHandler};

fn error(text: &str) -> ScenarioError {
    match Scenario::parse(text) {
        Ok(_) => panic!("this is a scenario:\n{text}"),
        Err(error) => error,
    }
}

/// Prints the messages with their lines, the source ranges underlined, and the hints.
fn render(text: &str) -> String {
    let error = error(text);
    let mut out = String::new();
    for problem in error.problems() {
        let position = problem.position;
        let line = text.lines().nth(position.line as usize - 1).unwrap_or_default();
        let marked = text.get(problem.span.offset..problem.span.end()).unwrap();
        let width = marked.lines().next().unwrap_or_default().chars().count().max(1);
        let indent = " ".repeat(position.column as usize - 1);
        writeln!(out, "{problem}\n    {line}\n    {indent}{}", "^".repeat(width)).unwrap();
        if let Some(help) = problem.help() {
            let help = help.to_string().replace(&words(ProfilerMethod::WORDS), "METHODS");
            writeln!(out, "    help: {help}").unwrap();
        }
    }
    out
}

/// Returns words as hints list them.
fn words(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

macro_rules! check {
    ($($name:ident: $text:literal,)+) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(render($text));
        })+
    };
}

check! {
    unknown_nodes_and_a_near_one: "functoin \"main\"\nfunction \"a\" { pushh \"rbx\"; body { \n  cal \"a\"\n  zzz 1 } }",
    unknown_and_duplicate_properties: "function main knid=jit kind=native kind=native {\n  frame rbp ofset=1\n  locals 8 size=3\n}",
    missing_and_extra_arguments: "function {\n  push \"rbx\"\n  locals\n  scheduled 1\n  home rcx rdx r8 r9 rax\n  body { loop; throw { } ; clobber rax rcx }\n}",
    missing_properties: "function main\nfunction isr { entry interrupt }\ninterrupt after=1\ninterrupt",
    numbers_out_of_range: "function main { locals -8; frame rbp offset=16\n  body { loop 0; loop 256; work 1.5; work \"3\"; alloca 0x1_0000 } }\nstop after=18446744073709551616 // more than 64 bits",
    words_that_do_not_exist: "convention windows\nfunction main kind=rtr { release leav; push eax; save xmm16; home non\n  unwind version2 handler=yes }\nstop end\nstop ending",
    unknown_functions: "function main { body { call wroker; call \"\" } }\nfunction worker\nthread a start=mian\nstop thread=b at=worker { expect { frame elsewhere } }\nstop at=slepp",
    what_stands_once: "function main {\n  push rbx\n  push rbp\n  return\n  tail-call leaf\n  no-end\n}\nfunction leaf\nconvention windows-x64\nconvention windows-x64",
    catch_without_try: "function main { body {\n  catch { work 1 }\n  try { throw }\n  work 1\n  catch { }\n  try; catch; catch\n} }",
    clauses_without_guarded: "function main { body {\n  on-catch { work 1 }\n  guarded\n  work 1\n  on-finally\n  try; on-fault\n  guarded; on-filter { }; on-filter { }\n} }",
    stops_at_no_or_several_places: "function main\nstop\nstop after=1 at=main\nstop after=1 visit=2\nstop end instruction=3\nstop at=sleep instruction=3",
    callbacks_that_nothing_raises: "function main kind=jit { body { new } }\nprofiler {\n  on EventPipeEventDelivered\n  on JITInlining\n  on AssemblyLoadStarted\n  on HandleCreated\n  on JITCachedFunctionSearchStarted\n  on ObjectAllocated\n}",
    a_rule_broken_by_the_shape: "function main {\n  locals 8\n  push rbx\n  save rbx rcx\n}",
    a_rule_broken_by_a_statement: "function main {\n  body {\n    try { work 1; }\n    catch { loop 2 { work 2\n      store 64 } }\n  }\n}",
    a_rule_broken_by_the_end: "function main { no-end; body { work 1 } }",
    a_rule_broken_by_an_interrupt: "function main\nfunction isr { entry interrupt }\ninterrupt after=2 handler=isr\ninterrupt after=1 handler=isr",
    a_rule_broken_by_a_name: "function main\nfunction main",
    no_function: "// nothing\n",
    threads_that_cannot_be: "function main\nfunction isr { entry interrupt }\nthread a\nthread a start=isr\nthread \"\"\nfunction late optional=#true",
    values_of_exports: "function a { export; export x y 1 2 3 4 5 6 7 8 9 10 11 12 }\nfunction b { export 1 }\nfunction c { export x 1 z=2 { } }",
    exports_that_cannot_be: "function a kind=jit { body { work 1 }; export x }\nfunction b { export x }\nfunction c { export x }\nfunction d kind=jit { attach; body { work 1 } }\nthread t start=a\nthread u start=b",
    exports_beside_requests_to_attach: "function a { export x; attach }\nfunction b { attach x y; attach 1 }",
    buffers_that_cannot_be: "buffer\nbuffer a size=4 number=0x100000000\nbuffer a size=65537\nbuffer \"*b\" size=2 text=abc\nbuffer c text=x number=1\nbuffer d size=0",
    names_of_buffers: "function main\nbuffer a\nbuffer a\nbuffer \"\"\nbuffer \"*b\"",
    buffers_of_exports: "buffer count size=4\nbuffer other\nfunction a { body { work 1 } }\nfunction b {\n  export x cuont \"*cont\" \"*count\" result=states {\n    expect count is=0x1_0000_0000\n    expect cunt is=1\n    expect count is=1 not=1\n    expect other\n    expect\n  }\n}",
    text_that_is_no_kdl: "/-function main; function \"main {\n  push rbx=\n  locals 08x\n  /- /- work\n  frame \"rbp\"offset=1\n  { }\n  body { } return\n  (u8)work 1; work true; work #null; = 1\n  throw \"\\q\"\n} }\n/* never",
    a_stack_and_a_program: "function main\nstack { }\nshows a\ntag \"a b\" \"\" ok",
    a_snapshot_of_nothing: "function main\nsnapshot { expect { result S_OK } }",
    values_of_stacks: "stack {\n  jit App.Foo rsp=1 on=windws { saves rax al rsp }\n  jit \"App.Foo+0x+1\" rsp=1 on=\"\"\n  frame GCFrme at=1\n  word 1 value=2 count=9999\n  frame GCFrame at=1 attributes=1\n  frame GCFrame at=9 captured-in=App.Foo\n  exception second parent=1 unwound-to=2\n  leaf \"A+0x1\" rsp=2 { saves all rbx }\n}",
    values_of_snapshots: "stack { }\nsnapshot by=other thread=x flags=0x100000000 seed=\"\" returns=S_FLASE {\n  seed App.Foo { fill 1; rip App.Foo; rsp a; cut 0xCA1 }\n  expect count=1 context-flags=owm {\n    clause nothing\n    result E_FAIL at=1 code=2\n    nested kiled\n    frame\n  }\n  expect\n}\nsnapshot seed=leaf returns=1 { seed leaf }",
    values_of_mixed_walks: "stack { }\nmixed-walk by=other capacity=0 {\n  expect count=1 {\n    managd \"A\"\n    managed\n    native \"B\" seen-by=snapshot trust=sure\n    gap \"not-a-cal\"\n    gap \"unreported\" result=E_FAIL\n    complete \"hole\"\n  }\n  expect { managed \"A\" }\n  expect { gap not-stopped; complete whole }\n  expect { complete not-stopped; complete whole }\n}\nmixed-walk policy=seedd",
    a_mixed_walk_of_nothing: "function main\nmixed-walk policy=seeded",
    what_a_stack_has_once: "stack {\n  mode cooperative on=\"windows net9\"\n  mode preemptive on=\"coreclr-3.1-unix\"\n  mode preemptive on=\"new\"\n  frame GCFrame at=0x1fe000\n}",
    a_row_that_does_not_fit: "stack {\n  jit \"App.Foo+0x20\" rsp=0x1fe000\n  jit \"App.Foo+0x30\" rsp=0x1fe040 on=new\n  native \"Root+0x20\" rsp=0x1fe100\n}\nsnapshot { expect on=net10 { result S_OK } }",
    a_frame_of_no_row: "stack {\n  native \"Root+0x20\" rsp=0x1fe100\n  frame InlinedCallFrame at=0x1fe000\n  frame InlinedCallFrame at=0x1fe040 to=Rot\n}",
    a_word_in_no_memory: "stack {\n  native \"Root+0x20\" rsp=0x1fe100\n  word 0x1fe000 value=1\n  word 0x50000 value=1\n}",
    a_hijack_of_no_row: "stack { hijacked Foo }",
    seeds_that_are_not_there: "stack { native \"Root+0x20\" rsp=0x1fe100 }\nsnapshot seed=Rot\nsnapshot seed=stale\nsnapshot seed=top-managed\nsnapshot { seed Root { rip \"Ruut+0x1\" } }",
    registers_that_cannot_be_stale: "stack { native \"Root+0x20\" rsp=0x1fe100 }\nsnapshot { expect {\n  marker stale=\"rbx rbx\"\n  marker stale=\"\"\n  marker stale=1\n  marker stale=\"rbx xmm6\"\n  result S_OK\n} }",
    values_of_profilers: "function main\nprofiler {\n  lock a a \"\"\n  event a\n  thread main { suspend mian; lock b; set c; call Enum; walk main }\n  thread t { else { bark }; wait a; else { bark }; repeat 0; on ObjectAllocated; signal other; escape; snapshot main { lock a { escape } } }\n  on ObjectAllocated; on ObjectAllocated\n}",
    values_of_searches: "function main\nprofiler { lock a; thread t }\nexplore depth=2 preemptions=1 by=randm {\n  expect { }\n  expect { survives; deadlock }\n  expect { survives everything=#true; hazard H-08; replay \"clr1:\" }\n  expect { killed; waits t for=main lock=heap why=because; hazard H-99 }\n  expect { rule none; replay \"clr1:b\"; waits t }\n}",
    a_profiler_of_a_stack: "stack { native \"Root+0x20\" rsp=0x1fe100 }\nprofiler { thread t }\nexplore",
    deep_nesting: "function main { body { if #true { if #true { if #true { if #true { if #true { if #true { if #true { if #true { if #true { } } } } } } } } } } }",
}

#[test]
fn positions_count_characters_from_1() {
    let text = "\u{FEFF}ä b\r\nüü x\n";
    let of = |part: &str| LineColumn::of(text, text.find(part).unwrap()).to_string();
    assert_eq!(["ä", "b", "üü", "x"].map(of), ["1:1", "1:3", "2:1", "2:4"]);
    assert_eq!(LineColumn::of(text, usize::MAX).to_string(), "3:1");
    // In the middle of a character.
    assert_eq!(LineColumn::of("ä", 1).to_string(), "1:1");
}

#[test]
fn the_name_of_the_file_comes_first() {
    let error = error("function main\nstop after=x\nx").with_name("a.kdl");
    let lines = error.to_string();
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines[0], "a.kdl:2:12: a string is not allowed here");
    assert_eq!(lines[1], "a.kdl:3:1: there is no node `x` at the outermost level");
    assert_eq!(lines.len(), 2);
}

/// A report of `miette` shows the source, the label and the hint.
#[test]
fn a_report_shows_the_source() {
    let error = error("function main\nstop thread=mian after=3").with_name("a.kdl");
    let mut report = String::new();
    NarratableReportHandler::new().render_report(&mut report, &error).unwrap();
    insta::assert_snapshot!(report);
}

/// A scenario can be parsed with `str::parse`.
#[test]
fn a_scenario_is_read_from_a_string() {
    let text = "function main";
    assert_eq!(text.parse::<Scenario>(), Ok(parse(text)));
}

/// Files of other kinds get one line, and texts with mistakes all of theirs.
#[test]
fn foreign_files_have_one_problem() {
    let services =
        "# Services\n\nssh  22/tcp\nsmtp 25/tcp\nhttp 80/tcp\npop3 110/tcp\nimap 143/tcp\n";
    let found = error(services);
    assert_eq!(found.problems().len(), 1, "{found}");
    assert_eq!(found.problems()[0].position, LineColumn { line: 1, column: 1 });
    insta::assert_snapshot!(found.problems()[0].to_string(), @"1:1: this file has no node of a scenario, such as `function` or `stack`");
    let with_a_node = error(&format!("{services}function \"main\"\n"));
    assert!(with_a_node.problems().len() > 4, "{with_a_node}");
    assert!(error("functon \"main\"\n").to_string().contains("functon"));
}
