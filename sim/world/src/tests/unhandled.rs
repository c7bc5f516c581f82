//! Handlers of exceptions that nothing catches, and the end of the process by the program.

use super::*;
use CallbackKind::{ExceptionThrown, ObjectAllocated, Shutdown};

/// Executes a program whose second function is such a handler. Returns the numbers of exceptions and of allocated objects, and
/// whether the program ended with an uncaught exception.
fn executed(
    generation: Generation,
    body: Vec<Statement>,
    handler: &[Statement],
) -> (u32, u32, bool) {
    let body = [vec![runtime(Call::HandleUnhandled, Some(1))], body].concat();
    let functions = vec![
        managed("App.Main", CodeKind::Jit, body),
        managed("App.Handler", CodeKind::Jit, handler.to_vec()),
        managed("App.Thrower", CodeKind::Jit, vec![throw(Raise)]),
    ];
    let program = Program { functions, ..Program::default() };
    let (mut thrown, mut allocated) = (0, 0);
    let unhandled = run(&program, generation, |_, kind| {
        thrown += u32::from(kind == ExceptionThrown.name());
        allocated += u32::from(kind == ObjectAllocated.name());
        assert!(thrown < 9 && allocated < 9, "{generation}");
    });
    (thrown, allocated, unhandled)
}

/// Each call of the handler allocates an object here. The native code that calls class constructors, and methods by reflection, catches.
#[test]
fn a_handler_is_called_only_if_neither_managed_nor_native_code_catches() {
    for generation in Generation::ALL {
        let uncaught = executed(generation, vec![call(2)], &[throw(New)]);
        assert_eq!(uncaught, (1, 1, true), "{generation}");
        for kind in [ReflectionCall, ClassConstructor] {
            let caught = Statement::Guarded(
                vec![runtime(kind, Some(2))],
                vec![clause(EhClauseKind::Catch, Vec::new())],
            );
            let (thrown, allocated, unhandled) = executed(generation, vec![caught], &[throw(New)]);
            assert!(thrown > 0 && !unhandled, "{generation}, {kind:?}");
            assert_eq!(allocated, 0, "{generation}, {kind:?}");
        }
    }
}

/// Each call of the handler allocates an object here, too.
#[test]
fn an_exception_that_leaves_a_handler_is_not_handled_again() {
    for generation in Generation::ALL {
        let handler = [throw(New), throw(Raise)];
        let (_, calls, unhandled) = executed(generation, vec![call(2)], &handler);
        assert_eq!((calls, unhandled), (1, true), "{generation}");
    }
}

#[test]
fn a_program_that_ends_the_process_shuts_the_runtime_down_in_preemptive_mode() {
    for generation in Generation::ALL {
        let program = Program {
            functions: vec![managed("App.Main", CodeKind::Jit, vec![runtime(Call::Exit, None)])],
            ..Program::default()
        };
        let mut modes = Vec::new();
        run(&program, generation, |world, kind| {
            if kind == Shutdown.name() {
                modes.push(world.is_cooperative(0));
            }
        });
        assert_eq!(modes, [false], "{generation}");
    }
}
