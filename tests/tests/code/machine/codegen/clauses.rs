//! EH clauses: the code that each protects, and their order.

use super::*;
use HandlerKind::{Catch, Fault, Filtered, Finally};
use clr_codegen::{FuncletKind, HandlerKind, PlacedEhClause};

const CALLED: [&str; 14] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];

/// Returns the text of a program with statements in a managed function `main`, which can call each
/// function of [`CALLED`] once.
fn text(body: &str) -> String {
    let mut text = format!(
        r#"function "main" kind="jit" {{ push "rbp" "rax"; frame "rbp"; body {{ {body} }} }}"#
    );
    for name in CALLED {
        write!(text, "\nfunction \"{name}\" kind=\"jit\"").unwrap();
    }
    text
}

/// Returns the address of the call of a function (VA).
fn call(linked: &LinkedProgram, callee: &str) -> Range<u64> {
    let index = CALLED.iter().position(|name| *name == callee).unwrap();
    let target = linked.entries[1 + index];
    let map = linked.code_map().unwrap();
    let mut calls = linked.instructions.iter().filter(|placed| {
        let (region, rva) = map.find(placed.address).unwrap();
        let bytes = region.bytes_from(rva).unwrap();
        let decoded = Decoder::with_ip(64, bytes, placed.address, DecoderOptions::NONE).decode();
        decoded.is_call_near() && decoded.near_branch_target() == target
    });
    let found = calls.next().unwrap();
    assert!(calls.next().is_none());
    found.address..found.address + u64::from(found.len)
}

/// Returns the kinds of the EH clauses that protect the call of a function, with their depths and
/// whether they are separate from the guarded body. The frame is looked up by the return address.
fn at(linked: &LinkedProgram, callee: &str) -> Vec<(HandlerKind, u32, bool)> {
    let call = call(linked, callee);
    let found = |address| linked.clauses_at(address).copied().collect::<Vec<_>>();
    assert_eq!(found(call.start), found(call.end - 1));
    found(call.start).iter().map(|one| (one.kind, one.depth, one.apart)).collect()
}

const NESTED: &str = r"
    call a
    guarded {
        call b
        guarded { call c }
        on-catch { call d; guarded { call e }; on-fault { call f } }
        on-filter { call g; guarded { call h }; on-catch { call i } }
        on-catch { call j }
        call k
    }
    on-finally { call l }
    guarded { call m }
    on-catch { call n }
";

#[test]
fn the_innermost_clauses_come_first() {
    let linked = link(&text(NESTED));
    let here = |kind, depth| (kind, depth, false);
    let apart = |kind, depth| (kind, depth, true);
    for (callee, expected) in [
        ("a", vec![]),
        ("b", vec![here(Finally, 0)]),
        ("c", vec![here(Catch, 1), here(Filtered, 1), here(Finally, 0)]),
        // A handler is protected by the statements around its guarded statement.
        ("d", vec![apart(Finally, 0)]),
        ("e", vec![here(Fault, 1), apart(Finally, 0)]),
        ("f", vec![apart(Finally, 0)]),
        // An exception thrown by a filter ends with the filter.
        ("g", vec![]),
        ("h", vec![here(Catch, 0)]),
        ("i", vec![]),
        ("j", vec![apart(Finally, 0)]),
        ("k", vec![here(Finally, 0)]),
        ("l", vec![]),
        ("m", vec![here(Catch, 0)]),
        ("n", vec![]),
    ] {
        assert_eq!(at(&linked, callee), expected, "{callee}");
    }
}

#[test]
fn a_call_at_the_end_of_the_body_is_protected_by_its_last_byte() {
    let linked =
        link(&text("guarded { call a }; on-catch; work 1; guarded { call b }; on-finally"));
    for callee in ["a", "b"] {
        let call = call(&linked, callee);
        let clause = linked.clauses_at(call.end - 1).next().unwrap();
        assert_eq!((clause.begin, clause.end), (call.start, call.end));
        assert_eq!(linked.clauses_at(call.end).count(), 0);
    }
    // The catch resumes directly after the call.
    assert_eq!(linked.clauses[0].resume, Some(call(&linked, "a").end));
    assert_eq!(linked.clauses[1].resume, None);
}

#[test]
fn cold_parts_are_protected_too() {
    for form in ["chained", "separate"] {
        let body = "guarded { cold { call a; guarded { call b }; on-fault { cold { call c } } } }
            on-finally { cold { call d } }";
        let text = text(body).replacen("body", &format!("cold-parts {form}; body"), 1);
        let linked = link(&text);
        let (fault, finally) = ((Fault, 1, false), (Finally, 0, true));
        assert_eq!(at(&linked, "a"), [finally]);
        assert_eq!(at(&linked, "b"), [fault, finally]);
        assert_eq!(at(&linked, "c"), [finally]);
        assert_eq!(at(&linked, "d"), []);
        // A cold part of a funclet belongs to the funclet.
        let funclet = |name| linked.part(call(&linked, name).start).unwrap().funclet;
        let handler = Some(FuncletKind::Handler);
        assert_eq!(["a", "b", "c", "d"].map(funclet), [None, None, handler, handler], "{form}");
    }
}

#[test]
fn an_empty_body_has_something_to_protect() {
    let linked = link(&text("guarded; on-catch; guarded; on-fault"));
    let [catch, fault] = &linked.clauses[..] else { panic!("{:?}", linked.clauses) };
    assert_eq!((catch.end - catch.begin, fault.end - fault.begin), (1, 1));
    assert_eq!(catch.end, fault.begin);
}

/// Checks invariants of any EH clause of any program.
fn check(linked: &LinkedProgram, clause: &PlacedEhClause) {
    let part = linked.part(clause.begin).unwrap();
    assert!(clause.begin < clause.end && clause.end <= part.end, "{clause:?}");
    assert_eq!(part.function, clause.function);
    let funclet = |address| {
        let part = linked.part(address).unwrap();
        assert_eq!((part.begin, part.root, part.function), (address, address, clause.function));
        assert!(!clause.protects(address));
        part.funclet
    };
    assert_eq!(funclet(clause.handler), Some(FuncletKind::Handler));
    assert_eq!(clause.filter.map(funclet), clause.filter.map(|_| Some(FuncletKind::Filter)));
    assert_eq!(clause.filter.is_some(), clause.kind == Filtered);
    assert_eq!(clause.resume.is_some(), matches!(clause.kind, Catch | Filtered));
    if let Some(resume) = clause.resume {
        assert_eq!(linked.part(resume).unwrap().function, clause.function);
        assert!(!clause.protects(resume));
    }
    // Execution resumes in the part with the body of its statement, directly after the body if that
    // is one run.
    let body = |one: &&PlacedEhClause| {
        !one.apart && (one.function, one.statement) == (clause.function, clause.statement)
    };
    let body = linked.clauses.iter().find(body).unwrap();
    assert_eq!(clause.resume.unwrap_or(body.end), body.end);
}

#[test]
fn clauses_of_any_program_are_in_order() {
    let (mut clauses, mut nested, mut apart) = (0, 0, 0);
    for seed in 0..3_000 {
        let program = program(&mut Seeded::new(seed), &Size::SMALL);
        let Ok(linked) = program.link() else { continue };
        for (index, clause) in linked.clauses.iter().enumerate() {
            check(&linked, clause);
            clauses += 1;
            apart += u32::from(clause.apart);
            for later in &linked.clauses[index + 1..] {
                assert!(clause.function <= later.function);
                if clause.begin < later.end && later.begin < clause.end {
                    // The later EH clause encloses this one, or belongs to the same statement.
                    let around = later.begin <= clause.begin && clause.end <= later.end;
                    let same = later.statement == clause.statement;
                    assert!(around && (same || later.depth < clause.depth), "{clause:?} {later:?}");
                    assert!(!same || clause.number < later.number);
                    nested += u32::from(!same);
                }
            }
        }
    }
    assert!(clauses > 500 && nested > 100 && apart > 50, "{clauses} {nested} {apart}");
}

#[test]
fn only_funclets_are_marked_as_such() {
    let linked = link(&text(
        "funclet { call a }; guarded { call b }; on-filter { call c }; on-catch { call d }",
    ));
    let funclet = |name| linked.part(call(&linked, name).start).unwrap().funclet;
    let (handler, filter) = (Some(FuncletKind::Handler), Some(FuncletKind::Filter));
    assert_eq!(["a", "b", "c", "d"].map(funclet), [handler, None, filter, handler]);
    assert!(parse(&text("")).link().unwrap().clauses.is_empty());
}
