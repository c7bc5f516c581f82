//! Hooks and their methods.

use super::*;
use clr_codegen::TailCallForm;

/// Each method's hooks come in order, with the method: entered, left, left by a tail call.
#[test]
fn hooks_name_their_method_and_the_reason() {
    let call = |of| Statement::Call(CallForm::Near, FunctionIndex(of));
    let program = Program {
        functions: vec![
            managed("App.Main", CodeKind::Jit, vec![call(1)]),
            Function {
                end: Some(Exit::TailCall(TailCallForm::Near, FunctionIndex(2))),
                ..managed("App.Jump", CodeKind::Jit, vec![Statement::Work(1)])
            },
            managed("App.Work", CodeKind::Jit, vec![Statement::Work(1)]),
        ],
        ..Program::default()
    };
    for (generation, hooks) in
        Generation::ALL.into_iter().flat_map(|of| [(of, Hooks::Slow), (of, Hooks::Fast)])
    {
        let build = Build::with_hooks(&program, &BTreeMap::new(), generation, hooks).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let mut found = Vec::new();
        loop {
            let event = world.step(0).unwrap();
            match event {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) if kind.name() != "EnterLeaveSlow" => {}
                StepEvent::Hook | StepEvent::Callback(_) => {
                    let (kind, method) = world.hook(0).unwrap();
                    let (_, method) = world.as_synced().code.method(method).unwrap();
                    found.push((kind, method.name.clone()));
                }
                _ => {}
            }
        }
        let found: Vec<_> = found.iter().map(|(kind, name)| (*kind, name.as_str())).collect();
        let expected = [
            (HookKind::Enter, "App.Main"),
            (HookKind::Enter, "App.Jump"),
            (HookKind::Tailcall, "App.Jump"),
            (HookKind::Enter, "App.Work"),
            (HookKind::Leave, "App.Work"),
            (HookKind::Leave, "App.Main"),
        ];
        assert_eq!(found, expected, "{generation}, {hooks:?}");
    }
}
