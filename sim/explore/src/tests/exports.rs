//! Tests of exports that threads of the program call.

use super::*;

const EXPORT: FunctionIndex = FunctionIndex(1);
const OTHER: FunctionIndex = FunctionIndex(2);

/// Returns a program that calls two functions of unmanaged code twice each. They begin with loops, and have no
/// prologues.
fn program(generation: Generation) -> Program {
    let call = |target| {
        let (kind, target) = (RuntimeCallKind::PInvoke, Some(target));
        Statement::Runtime(RuntimeCall { kind, target })
    };
    let main = vec![Statement::Loop(2, vec![call(EXPORT), call(OTHER)])];
    let main = Function {
        shape: clr_codegen::FunctionShape { locals: 16, ..Default::default() },
        ..function("Main", main)
    };
    let unmanaged = |name: &str| Function {
        kind: CodeKind::Native,
        ..function(name, vec![Statement::Loop(3, vec![Statement::Work(2)])])
    };
    let functions = vec![main, unmanaged("Export"), unmanaged("Other")];
    let convention = if generation.is_unix() {
        CallingConvention::SystemV
    } else {
        CallingConvention::default()
    };
    Program { convention, functions, ..Program::default() }
}

#[test]
fn an_export_is_called_once_for_each_entry_of_its_function_in_preemptive_mode() {
    for generation in Generation::ALL {
        let threads = [("main", ThreadStart::Managed(FunctionIndex(0)))];
        let process = on(generation, &program(generation), &threads).exporting([EXPORT]);
        let calls = Rc::new(RefCell::new(Vec::new()));
        let load = |setup: &mut Setup<'_>| {
            let calls = Rc::clone(&calls);
            setup.on_export(move |me, function| {
                let cooperative = me.kernel.world.borrow().is_cooperative(0);
                calls.borrow_mut().push((me.index(), function, cooperative));
                // Another turn begins here, and the thread is still in the export.
                me.point();
            });
        };
        assert!(check(&process, &load, &Budget::random(0, 1)).unwrap().survives());
        assert_eq!(*calls.borrow(), [(ThreadIndex(0), EXPORT, false); 2], "{generation}");
    }
}
