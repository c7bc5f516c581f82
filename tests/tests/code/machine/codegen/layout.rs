//! Layout of frames.

use super::*;
use clr_codegen::{FrameLayout, FunctionShape, SaveArea, Statement};

const CALLS: &str = r#"
    function "main" {
        push "rbp" "rbx"
        frame "rbp"; release "lea"
        body {
            call "g"; call "g" by="register"; call "g" by="memory"
            region "r12" "r13" "r14" { call "g" }
            cold { call "g"; funclet { call "g" } }
            funclet { call "g"; cold { call "g" } }
            loop 2 { call "g" }
            try { call "thrower" }
            catch { call "g" }
            alloca 3
            call "g"
            switch-stack "g"
            alloca 0
            funclet { call "g" }
            trap "isr"; trap "isr2"
        }
    }
    function "isr" { entry "interrupt"; push "rbx"; locals 8; body { call "g" } }
    function "isr2" { entry "interrupt-with-error-code"; body { call "g"; try { throw } } }
    function "thrower" { push "rbx"; body { throw }; no-end }
    function "g" { locals 8 }
    function "unused" kind="jit""#;

/// Executes to the end, and returns each call with the value of rsp modulo 16.
fn calls(program: &Program, linked: &LinkedProgram) -> Vec<(u64, u64)> {
    let mut run = Execution::new(program, linked, FunctionIndex(0), 1).unwrap();
    let mut calls = Vec::new();
    let mut depth = run.shadow_stack().callers().len();
    loop {
        if let Err(outcome) = run.step() {
            assert_eq!(outcome, ExecutionEnd::Returned);
            return calls;
        }
        let callers = run.shadow_stack().callers();
        if let Some(caller) = callers.get(depth)
            && caller.position == Position::ReturnAddress
        {
            calls.push((caller.from.unwrap(), caller.registers.rsp() % 16));
        }
        depth = callers.len();
    }
}

#[test]
fn the_stack_is_aligned_at_each_call() {
    let program = parse(CALLS);
    let mut seen = 0;
    for convention in [CallingConvention::WindowsX64, CallingConvention::SystemV] {
        for (pushes, locals, loops) in
            (0..3).flat_map(|p| (0..3).flat_map(move |l| (0..2).map(move |c| (p, 8 * l, c))))
        {
            let mut program = program.clone();
            program.convention = convention;
            for function in &mut program.functions[..4] {
                function.shape.pushes.splice(0..0, [Gpr::R15, Gpr::Rax].into_iter().take(pushes));
                function.shape.locals += locals;
                for _ in 0..loops {
                    function.body.insert(0, Statement::Loop(1, vec![]));
                }
            }
            let linked = program.link().unwrap();
            for (from, misaligned) in calls(&program, &linked) {
                let role = linked.instruction(from).unwrap().role;
                assert_eq!((misaligned, role), (0, Role::Body), "at {from:#x} of {program:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 30 * 20, "{seen}");
}

#[test]
fn chkstk_is_called_before_the_stack_is_aligned() {
    let program = parse(
        r#"function "main" { push "rbx"; locals 0x3000; allocation "chkstk"; body { call "g" } }
           function "g""#,
    );
    let linked = program.link().unwrap();
    let calls: Vec<_> = calls(&program, &linked).into_iter().map(|call| call.1).collect();
    assert_eq!(calls, [0, 0], "one push, so the stack happens to be aligned");
}

/// Returns functions whose shapes save registers and nest statements in all ways.
fn functions() -> Vec<(Program, CallingConvention)> {
    let program = parse(
        r#"function "main" {
            push "rbp"
            frame "rbp"; release "lea"
            body {
                loop 1 { loop 2 { region "r12" "r13" { region "r14" { funclet { loop 1 } } } } }
                cold { loop 1 { region "r15" } }
                try { call "g" }
                catch { loop 2 }
                alloca 2
            }
        }
        function "g""#,
    );
    let mut all = Vec::new();
    for area in [SaveArea::AboveLocals, SaveArea::BelowLocals] {
        for locals in [0, 8, 0x18, 0x1_0000] {
            for (saves, xmm) in [(0, 0), (1, 0), (1, 1), (2, 2), (0, 1)] {
                for pushes in 0..2 {
                    let mut program = program.clone();
                    let shape = &mut program.functions[0].shape;
                    *shape = FunctionShape {
                        locals,
                        saves: [Gpr::Rbx, Gpr::Rdi][..saves].into(),
                        xmm_saves: [6, 15][..xmm].into(),
                        save_area: area,
                        ..shape.clone()
                    };
                    shape.pushes.extend([Gpr::Rsi].iter().take(pushes));
                    program.check().unwrap();
                    all.push((program, CallingConvention::WindowsX64));
                }
            }
        }
    }
    all
}

#[test]
fn areas_of_a_frame_do_not_overlap() {
    for (program, convention) in functions() {
        let shape = &program.functions[0].shape;
        let layout = FrameLayout::new(&program.functions[0], convention);
        let of = |start: u32, size: u32| start..start + size;
        let mut areas: Vec<Range<u32>> = vec![
            of(0, layout.outgoing),
            of(layout.psp.unwrap(), 8),
            // Five loops, and four registers in regions.
            of(layout.counters, 5 * 8),
            of(layout.region_saves, 4 * 8),
            of(layout.locals, shape.locals),
            of(layout.allocation, 0),
        ];
        areas.extend(layout.saves.iter().map(|save| of(save.1, 8)));
        areas.extend(layout.xmm_saves.iter().map(|save| of(save.1, 16)));
        areas.sort_by_key(|area| (area.start, area.end));
        for pair in areas.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{areas:x?}");
        }
        assert!(layout.xmm_saves.iter().all(|save| save.1 % 16 == 0), "{layout:?}");
        assert_eq!(layout.outgoing, 32);
        assert_eq!(layout.pushed, 8 * shape.pushes.len() as u32);
        assert_eq!(layout.cfa() % 16, 0);
        assert_eq!(layout.cfa(), layout.allocation + layout.pushed + 8);
        assert_eq!(layout.home(3), layout.cfa() + 24);
        let above = |save: u32| save >= layout.locals + shape.locals;
        let mut saves =
            layout.saves.iter().map(|s| s.1).chain(layout.xmm_saves.iter().map(|s| s.1));
        assert!(saves.all(|save| above(save) == (shape.save_area == SaveArea::AboveLocals)));
    }
}

#[test]
fn a_frame_is_as_small_as_it_can_be() {
    let layout =
        |text: &str| FrameLayout::new(&parse(text).functions[0], CallingConvention::WindowsX64);
    // Without calls, the stack need not be aligned.
    let leaf = layout(r#"function "f" { push "rbx" "rsi"; locals 0x10 }"#);
    assert_eq!((leaf.allocation, leaf.cfa()), (0x10, 0x28));
    let caller = layout(r#"function "f" { push "rbx" "rsi"; locals 0x10; body { throw } }"#);
    assert_eq!((caller.outgoing, caller.allocation, caller.cfa()), (0x20, 0x38, 0x50));
    let saver = layout(r#"function "f" { push "rbx" "rsi"; save "xmm6" }"#);
    assert_eq!((saver.xmm_saves, saver.allocation), (vec![(6, 0)], 0x18));
    let nothing = layout(r#"function "f" { body { if #true { work 1 } } }"#);
    assert_eq!(nothing, FrameLayout { entry: 8, ..FrameLayout::default() });
    // A machine frame has five words, or six with an error code.
    let mut program = parse("function f");
    for (entry, size) in [(EntryForm::Interrupt, 40), (EntryForm::InterruptWithErrorCode, 48)] {
        program.functions[0].shape.entry = entry;
        let windows = FrameLayout::new(&program.functions[0], CallingConvention::WindowsX64);
        assert_eq!((windows.entry, windows.pushed), (size, 7 * 8));
        let system_v = FrameLayout::new(&program.functions[0], CallingConvention::SystemV);
        assert_eq!((system_v.entry, system_v.pushed), (size, 9 * 8));
    }
}
