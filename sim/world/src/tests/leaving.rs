//! Exceptions that leave managed code for native code of the runtime (C-166).

use super::*;

const ROOT: &str = "*CallDescrWorkerInternal S_OK";
const REFUSED: &str = "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX";

/// Creates a program: Main catches exceptions of a call, through native code, of a method that
/// calls a thrower.
fn program(kind: RuntimeCallKind) -> Program {
    let called = vec![runtime(kind, Some(1))];
    let catch = vec![clause(EhClauseKind::Catch, Vec::new())];
    Program {
        functions: vec![
            managed("App.Main", CodeKind::Jit, vec![Statement::Guarded(called, catch)]),
            managed("App.Called", CodeKind::Jit, vec![call(2)]),
            managed("App.Thrower", CodeKind::Jit, vec![throw(Raise)]),
        ],
        ..Program::default()
    }
}

fn found(kind: RuntimeCallKind, generation: Generation) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    in_callbacks(&program(kind), generation, |world, callback| {
        if let Some(callback) = callback.strip_prefix("Exception") {
            found.push((callback, walk(world, 0)));
        }
    });
    found
}

/// Returns true if native code dispatches exceptions, but that of reflection does not catch them:
/// observed on .NET 8 and with legacy handling on .NET 9.
pub(super) fn passes_through_reflection(generation: Generation) -> bool {
    let family = generation.family();
    family.legacy_exceptions || family.is_core_since(8) && !family.is_core_since(9)
}

fn expect(found: &[(&'static str, String)], expected: &[(&'static str, &str)], what: &str) {
    let found: Vec<_> = found.iter().map(|(kind, walk)| (*kind, walk.as_str())).collect();
    assert_eq!(found, expected, "{what}");
}

/// The callbacks are those that were recorded on U8, U9, on U31 and with legacy handling; the callbacks
/// of the other generations follow from the same sources.
#[test]
fn an_exception_that_leaves_managed_code_is_thrown_again() {
    for kind in [ReflectionCall, ClassConstructor] {
        for generation in Generation::ALL {
            // Where the native code is a QCall, the QCall's method is on the stack.
            let method = match (generation.family().is_core_since(10), kind) {
                (true, ReflectionCall) => "System.RuntimeMethodHandle.InvokeMethod ",
                (true, _) => {
                    "System.Runtime.CompilerServices.InitHelpers.InitClassSlow \
                     System.Runtime.CompilerServices.StaticsHelpers.GetNonGCStaticBaseSlow "
                }
                (false, _) => "",
            };
            let rest = format!("{method}App.Main {ROOT}");
            // The method of .NET 11 that calls class constructors catches what they throw (recorded).
            let entry = kind == ClassConstructor && generation.has_managed_entry_points();
            let caller = if entry {
                "System.Runtime.CompilerServices.InitHelpers.CallClassConstructor *JIT_ClassInitDynamicClass"
            } else {
                "*CallDescrWorkerInternal"
            };
            let all = format!("App.Thrower App.Called {caller} {rest}");
            let caught = format!("{caller} {rest}");
            let (all, rest) = (all.as_str(), rest.as_str());
            let own = format!("App.Main {ROOT}");
            let is_one = passes_through_reflection(generation) && kind == ReflectionCall;
            let managed = generation.hides_exception_handling();
            let mut expected = vec![
                ("Thrown", all),
                ("SearchFunctionEnter", all),
                ("SearchFunctionLeave", all),
                ("SearchFunctionEnter", all),
            ];
            let left = [("UnwindFunctionEnter", REFUSED), ("UnwindFunctionLeave", REFUSED)];
            if entry {
                expected.extend([
                    ("SearchFunctionLeave", all),
                    ("SearchFunctionEnter", all),
                    ("SearchCatcherFound", all),
                    ("SearchFunctionLeave", all),
                ]);
                expected.extend([left, left].concat());
                expected.extend([
                    ("UnwindFunctionEnter", REFUSED),
                    ("CatcherEnter", caught.as_str()),
                    ("CatcherLeave", caught.as_str()),
                ]);
            } else if managed {
                expected.extend([
                    ("UnwindFunctionLeave", all),
                    ("UnwindFunctionEnter", all),
                    ("UnwindFunctionLeave", all),
                    ("UnwindFunctionEnter", all),
                ]);
            } else {
                expected.push(("SearchFunctionLeave", all));
            }
            if !managed && !is_one {
                expected.extend([left, left].concat());
            }
            let second = if is_one { all } else { rest };
            if !is_one {
                expected.push(("Thrown", rest));
            }
            for _ in method.split_whitespace() {
                expected.extend([("SearchFunctionEnter", rest), ("SearchFunctionLeave", rest)]);
            }
            expected.extend([
                ("SearchFunctionEnter", second),
                ("SearchCatcherFound", second),
                ("SearchFunctionLeave", second),
            ]);
            if is_one {
                expected.extend([left, left].concat());
            }
            for _ in method.split_whitespace() {
                expected.extend(left);
            }
            // The frame that catches is not reported as left.
            expected.push(("UnwindFunctionEnter", REFUSED));
            let own = if managed { own.as_str() } else { REFUSED };
            expected.extend([("CatcherEnter", own), ("CatcherLeave", own)]);
            expect(&found(kind, generation), &expected, &format!("{generation}, {kind:?}"));
        }
    }
}

/// Finally handlers of the part that is left run before the exception is thrown again; under
/// managed handling, walks in their callbacks begin at the thrower (from its source: nothing is
/// marked as unwinding).
#[test]
fn finally_handlers_run_before_it_is_thrown_again() {
    let mut program = program(ReflectionCall);
    let finally = clause(EhClauseKind::Finally, vec![Statement::Work(1)]);
    let called = Statement::Guarded(vec![call(2)], vec![finally]);
    program.functions[1].body = vec![called];
    for generation in Generation::ALL {
        let mut found = Vec::new();
        in_callbacks(&program, generation, |world, kind| {
            if ["ExceptionThrown", "ExceptionUnwindFinallyEnter"].contains(&kind) {
                let at = if walk(world, 0).starts_with("App.Thrower") { "thrower" } else { "-" };
                found.push((kind, at));
            }
        });
        let managed = generation.hides_exception_handling();
        let mut expected = vec![
            ("ExceptionThrown", "thrower"),
            ("ExceptionUnwindFinallyEnter", if managed { "thrower" } else { "-" }),
        ];
        if !passes_through_reflection(generation) {
            expected.push(("ExceptionThrown", "-"));
        }
        assert_eq!(found, expected, "{generation}");
    }
}

/// Nothing is left of the part, and nothing catches: the process ends, but only after the part has
/// been left.
#[test]
fn an_exception_may_leave_all_parts() {
    let mut program = program(ReflectionCall);
    program.functions[0].body = vec![runtime(ReflectionCall, Some(1))];
    for generation in Generation::ALL {
        let mut thrown = 0;
        let world = super::handlers::run(&program, generation, |_, kind| {
            thrown += u32::from(kind == "ExceptionThrown");
        });
        assert!(world, "{generation}");
        let parts = if passes_through_reflection(generation) { 1 } else { 2 };
        assert_eq!(thrown, parts, "{generation}");
    }
}
