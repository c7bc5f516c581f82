use super::*;
use clr_codegen::EhClause;
use clr_generate::Measure;
use clr_unwind::Gpr;

#[test]
fn every_candidate_is_valid_and_smaller() {
    for (size, count) in [(Size::SMALL, 300), (Size::DEEP, 5)] {
        for program in programs(&size, count) {
            for candidate in shrunk(&program) {
                assert_eq!(candidate.check(), Ok(()), "{candidate:#?}");
                assert!(Measure::of(&candidate) < Measure::of(&program), "{candidate:#?}");
            }
        }
    }
}

/// Minimizes some programs that fail, and calls `check` with each result and its size.
fn minima(size: &Size, fails: impl Fn(&Program) -> bool, check: impl Fn(&Program, Measure)) {
    let mut found = 0;
    for program in programs(size, 3_000).filter(|program| fails(program)).take(20) {
        let mut trials = 0;
        let least = minimize(program.clone(), |candidate| {
            trials += 1;
            fails(candidate)
        });
        assert!(fails(&least));
        assert!(trials < 5_000, "{trials}");
        // The result is a local minimum.
        assert!(!shrunk(&least).any(|candidate| fails(&candidate)), "{least:#?}");
        check(&least, Measure::of(&least));
        found += 1;
    }
    assert_eq!(found, 20);
}

fn contains(program: &Program, wanted: impl Fn(&Statement) -> bool) -> bool {
    let bodies = program.functions.iter().flat_map(|function| &function.body);
    bodies.into_iter().any(|statement| statement.contains(&wanted))
}

#[test]
fn without_a_condition_nothing_is_left() {
    minima(
        &Size::SMALL,
        |_| true,
        |least, measure| {
            assert_eq!((measure.functions, measure.statements, measure.interrupts), (1, 0, 0));
            assert_eq!(measure.details, 0, "{least:#?}");
        },
    );
}

#[test]
fn a_tail_call_needs_two_leafs() {
    let jumps = |exit: &Exit| matches!(exit, Exit::TailCall(..));
    let fails = |program: &Program| {
        program.functions.iter().any(|function| function.end.as_ref().is_some_and(jumps))
    };
    minima(&Size::SMALL, fails, |least, measure| {
        assert_eq!((measure.functions, measure.statements), (2, 0), "{least:#?}");
        assert_eq!(measure.details, 6, "{least:#?}");
    });
}

#[test]
fn a_shape_keeps_the_part_that_shows_the_failure() {
    let fails = |program: &Program| {
        program.functions.iter().any(|function| {
            function.shape.saves.contains(&Gpr::Rdi) && function.shape.frame.is_some()
        })
    };
    minima(&Size::SMALL, fails, |least, measure| {
        assert_eq!((measure.functions, measure.statements), (1, 0), "{least:#?}");
        let shape = &least.functions[0].shape;
        assert_eq!(shape.saves, [Gpr::Rdi]);
        assert_eq!(shape.pushes.len(), 1, "{least:#?}");
        // The frame register, its push, the save, and version 1.
        assert_eq!(measure.details, 32 + 1 + 1 + 1, "{least:#?}");
    });
}

#[test]
fn statements_come_out_of_those_around_them() {
    for (name, wanted, statements) in [
        ("alloca", (|s| matches!(s, Statement::Alloca(_))) as fn(&Statement) -> bool, 1),
        ("funclet", |s| matches!(s, Statement::Funclet(_)), 1),
        ("guarded", |s| matches!(s, Statement::Guarded(..)), 1),
        ("region", |s| matches!(s, Statement::Region(..)), 1),
        ("throw", |s| matches!(s, Statement::Throw), 1),
        ("trap", |s| matches!(s, Statement::Trap(_)), 1),
        ("try", |s| matches!(s, Statement::Try(..)), 1),
        (
            "a throw in a loop",
            |s| matches!(s, Statement::Loop(_, body) if body.contains(&Statement::Throw)),
            2,
        ),
    ] {
        minima(
            &Size::SMALL,
            |program| contains(program, wanted),
            |least, measure| {
                assert!(measure.functions <= 2, "{name}: {least:#?}");
                assert_eq!(measure.statements, statements, "{name}: {least:#?}");
                assert_eq!(measure.interrupts, 0, "{name}: {least:#?}");
            },
        );
    }
}

#[test]
fn clauses_become_fewer_and_plainer() {
    let refuses =
        |clause: &EhClause| matches!(clause.kind, EhClauseKind::Filtered { accepts: false, .. });
    for (name, wanted, rank) in [
        ("any", (|_| true) as fn(&EhClause) -> bool, 1),
        ("finally", |clause| clause.kind == EhClauseKind::Finally, 2),
        ("filter", |clause| matches!(clause.kind, EhClauseKind::Filtered { .. }), 4),
        ("filter that refuses", refuses, 5),
    ] {
        let guarded = |s: &Statement| match s {
            Statement::Guarded(_, clauses) => clauses.iter().any(wanted),
            _ => false,
        };
        minima(
            &Size::SMALL,
            |program| contains(program, guarded),
            |least, measure| {
                assert_eq!((measure.functions, measure.statements), (1, 1), "{name}: {least:#?}");
                // Managed code, the frame register, its push, version 1, and the EH clause.
                assert_eq!(measure.details, 1 + 32 + 1 + 1 + rank, "{name}: {least:#?}");
            },
        );
    }
}

#[test]
fn the_depth_of_a_call_chain_is_kept() {
    fn depth(program: &Program, function: usize) -> usize {
        let body = &program.functions[function].body;
        let callee = |statement: &Statement| match statement {
            Statement::Call(_, callee) => depth(program, callee.index()),
            _ => 0,
        };
        1 + body.iter().map(callee).max().unwrap_or(0)
    }
    minima(
        &Size::DEEP,
        |program| depth(program, 0) >= 4,
        |least, measure| {
            assert_eq!((measure.functions, measure.statements), (4, 3), "{least:#?}");
        },
    );
}
