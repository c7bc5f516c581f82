//! Programs that are executed to their end.

use clr_codegen::execution::*;
use clr_codegen::shadow_stack::Broken;
use clr_codegen::*;
use clr_machine::{Access, Cause, Fault, StopReason};
use clr_scenario::Scenario;
use clr_unwind::{Gpr, Memory as _, Registers};

fn parse(text: &str) -> Program {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).program
}

/// Bytes between the first return address and the top of the stack.
const ABOVE: u64 = 0x80;
/// Maximum number of steps.
const LIMIT: u32 = 10_000;

/// Returns the exit, all registers, and the number of executed instructions.
fn finish(program: &Program) -> (ExecutionEnd, Registers, u64) {
    let linked = program.link().unwrap();
    let mut run = Execution::new(program, &linked, FunctionIndex(0), 3).unwrap();
    for _ in 0..LIMIT {
        if let Err(outcome) = run.step() {
            return (outcome, run.machine().cpu().registers(), run.machine().executed());
        }
    }
    panic!("the execution does not end");
}

fn outcome(text: &str) -> ExecutionEnd {
    finish(&parse(text)).0
}

/// Executes up to a condition.
fn up_to(run: &mut Execution<'_>, mut condition: impl FnMut(&Execution<'_>) -> bool) {
    for _ in 0..LIMIT {
        if condition(run) {
            return;
        }
        run.step().unwrap();
    }
    panic!("the condition never holds");
}

#[test]
fn runs_end_as_their_programs_say() {
    assert_eq!(outcome("function f"), ExecutionEnd::Returned);
    assert_eq!(outcome("function f { body { stop }; no-end }"), ExecutionEnd::Stopped);
    assert_eq!(outcome("function f { body { throw }; no-end }"), ExecutionEnd::Uncaught);
}

#[test]
fn the_first_function_returns_with_its_callers_registers() {
    let text = "function f { push rbx; save xmm6; body { clobber rbx; clobber xmm6 } }";
    let (outcome, registers, _) = finish(&parse(text));
    let mut before = initial_registers(3);
    assert_eq!((outcome, registers.rip), (ExecutionEnd::Returned, BASE));
    assert_eq!(registers.rsp(), STACK_TOP - ABOVE);
    assert_eq!(registers.xmm, before.xmm);
    before.set(Gpr::Rsp, registers.rsp());
    for register in Gpr::NONVOLATILE {
        assert_eq!(registers.get(register), before.get(register), "{register:?}");
    }
    let values: std::collections::BTreeSet<_> = before.gpr.into_iter().collect();
    assert_eq!(values.len(), 16);
}

#[test]
fn only_functions_that_are_called_can_be_started() {
    let program =
        parse("function f; function isr { entry interrupt }; function g { body { stop } }");
    let linked = program.link().unwrap();
    for start in [1, 3, u32::MAX].map(FunctionIndex) {
        assert_eq!(
            Execution::new(&program, &linked, start, 0).err(),
            Some(ProgramLoadError::Start(start))
        );
    }
    let mut run = Execution::new(&program, &linked, FunctionIndex(2), 0).unwrap();
    assert_eq!(run.machine().cpu().rip(), linked.entries[2]);
    up_to(&mut run, |run| run.machine().executed() == 0);
    assert_eq!((run.shadow_stack().callers().len(), run.linked().entries.len()), (1, 3));
    assert_eq!(run.shadow_stack().callers()[0].registers.rip, BASE);
    assert_eq!(run.step(), Err(ExecutionEnd::Stopped));
}

#[test]
fn without_stack_nothing_can_be_pushed() {
    let program = parse("function f { push rbx }; function isr { entry interrupt }");
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    run.machine_mut().cpu_mut().set(Gpr::Rsp, 0x1008);
    let before = run.machine().cpu().registers();
    let fault = Fault { address: 0x1000, access: Access::Write, cause: Cause::Unmapped };
    let Err(ExecutionEnd::Fault(StopReason::Fault { fault: found, .. })) = run.step() else {
        panic!()
    };
    assert_eq!(found, fault);
    assert_eq!(run.machine().cpu().registers(), before);
    assert_eq!(run.shadow_stack().callers().len(), 1);
}

#[test]
fn without_stack_nothing_can_be_interrupted() {
    let program = parse(
        "function f; function isr { entry interrupt-with-error-code }; interrupt after=0 handler=isr",
    );
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    run.machine_mut().cpu_mut().set(Gpr::Rsp, 0x1048);
    let before = run.machine().cpu().registers();
    // The lowest of six words below the next lower multiple of 16.
    let fault = Fault { address: 0x1010, access: Access::Write, cause: Cause::Unmapped };
    assert_eq!(run.step(), Err(ExecutionEnd::NoStack(fault)));
    assert_eq!(run.machine().cpu().registers(), before);
    assert_eq!(run.shadow_stack().callers().len(), 1);
}

#[test]
fn a_breakpoint_without_handler_is_a_fault() {
    let program = parse("function f { body { work 1 } }");
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    let address = linked.entries[0];
    run.machine_mut().write(address, &[0xCC]).unwrap();
    assert_eq!(run.step(), Err(ExecutionEnd::Fault(StopReason::Int3 { address })));
}

#[test]
fn code_that_breaks_the_convention_is_found() {
    let program = parse("function f { body { work 1; work 1 } }");
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    // inc ebx; ret
    run.machine_mut().write(linked.entries[0], &[0xFF, 0xC3, 0xC3]).unwrap();
    run.step().unwrap();
    let from = linked.entries[0] + 2;
    let broken = Broken::Register { from, register: Gpr::Rbx };
    assert_eq!(run.step(), Err(ExecutionEnd::Broken(broken)));
}

/// An interrupt pushes its machine frame at an aligned address, regardless of rsp.
#[test]
fn machine_frames_are_those_of_a_processor() {
    for (entry, size) in [("interrupt", 40), ("interrupt-with-error-code", 48)] {
        let program = parse(&format!(
            "function f {{ push rbx rsi; body {{ work 2; trap isr }} }}
             function isr {{ entry {entry} }}
             interrupt after=1 handler=isr"
        ));
        let linked = program.link().unwrap();
        let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
        for from_outside in [true, false] {
            let before = |run: &Execution<'_>| {
                let placed = linked.instruction(run.machine().cpu().rip()).unwrap();
                let due =
                    run.machine().executed() == 1 && run.machine().cpu().rip() != linked.entries[1];
                if from_outside { due } else { placed.handler.is_some() }
            };
            up_to(&mut run, before);
            let registers = run.machine().cpu().registers();
            let flags = run.machine().cpu().rflags();
            let executed = run.machine().executed();
            run.step().unwrap();
            assert_eq!(run.machine().executed(), executed);
            let rsp = run.machine().cpu().rsp();
            assert_eq!(rsp, (registers.rsp() & !15) - size);
            assert_eq!(run.machine().cpu().rip(), linked.entries[1]);
            let rip = if from_outside { registers.rip } else { registers.rip + 1 };
            let words: Vec<_> =
                (0..5).map(|n| run.machine().read_u64(rsp + size - 40 + 8 * n).unwrap()).collect();
            assert_eq!(words, [rip, 0x33, flags, registers.rsp(), 0x2B]);
            let caller = run.shadow_stack().callers().last().unwrap();
            assert_eq!(caller.registers, Registers { rip, ..registers });
            assert_eq!(caller.from, (!from_outside).then_some(registers.rip));
        }
        up_to(&mut run, |run| run.machine().cpu().rip() == linked.entries[1]);
    }
}

/// Returns a program in which a signal arrives while another one is handled, with an alternate
/// stack of `size` bytes.
fn stacked_signals(size: u32) -> Program {
    parse(&format!(
        r#"
        convention "system-v"
        signal-stack {size}
        function "f" {{ push "rbx"; locals 0x1000; body {{ clobber "rbx"; trap "first" }} }}
        function "first" {{ entry "signal"; push "rbx"; locals 0x100; body {{ work 4 }} }}
        function "second" {{ entry "signal"; push "rbx" }}
        interrupt after=7 handler="second"
        "#
    ))
}

/// The kernel's frame takes 0x1b8 bytes, the first handler's 0x108; the second signal leaves the
/// red zone free. Without room the kernel calls no handler.
#[test]
fn signals_need_room_on_their_stack() {
    let no_room = |below| {
        let address = SIGNAL_STACK_TOP - below;
        ExecutionEnd::NoStack(Fault { address, access: Access::Write, cause: Cause::Unmapped })
    };
    for (size, expected) in [
        (0, ExecutionEnd::Returned),
        (0x1B7, no_room(0x1B8)),
        (0x4F7, no_room(0x4F8)),
        (0x4F8, ExecutionEnd::Returned),
        (0x2000, ExecutionEnd::Returned),
    ] {
        assert_eq!(finish(&stacked_signals(size)).0, expected, "{size:#x}");
    }
}

#[test]
fn signals_are_handled_on_their_stack_alone() {
    for (size, top) in [(0, STACK_TOP), (0x2000, SIGNAL_STACK_TOP)] {
        let program = stacked_signals(size);
        let linked = program.link().unwrap();
        let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
        for handler in 1..=2 {
            up_to(&mut run, |run| run.machine().cpu().rip() == linked.entries[handler]);
            let used = top - run.machine().cpu().rsp();
            assert!(used < 0x2000, "{handler}: {used:#x} below {top:#x}");
        }
        up_to(&mut run, |run| linked.signal_return == Some(run.machine().cpu().rip()));
        up_to(&mut run, |run| run.shadow_stack().callers().len() == 1);
        assert!(STACK_TOP - run.machine().cpu().rsp() < 0x2000);
    }
}

#[test]
fn an_interrupt_anywhere_changes_nothing() {
    let mut program = parse(
        "
        function main {
            push rbp rbx; frame rbp; release lea; locals 0x20; save xmm6
            body {
                clobber rbx; clobber xmm6; loop 2 { call f }
                try { call thrower }
                catch { work 1 }
                funclet { work 1 }
                region rsi { clobber rsi }
                switch-stack f
                alloca 2
                trap isr
            }
        }
        function f kind=jit { push rdi; scheduled; body { clobber rdi }; tail-call g }
        function g kind=jit { locals 0x1800; allocation probe-loop }
        function thrower { body { throw }; no-end }
        function isr { entry interrupt; push rbx rsi; body { clobber rbx; clobber rax; call h } }
        function h { push rbx; locals 8; body { clobber rbx; work 3 } }",
    );
    let isr = FunctionIndex(4);
    let (outcome, registers, executed) = finish(&program);
    assert_eq!(outcome, ExecutionEnd::Returned);
    let interrupt = |after| clr_codegen::Interrupt { after, handler: isr };
    program.interrupts = vec![interrupt(0)];
    let more = finish(&program).2 - executed;
    assert!(executed > 80 && more > 20, "{executed} {more}");
    for after in 0..executed {
        for count in [1, 2] {
            program.interrupts = vec![interrupt(after); count];
            let expected = (outcome, registers, executed + count as u64 * more);
            assert_eq!(finish(&program), expected, "{count} after {after}");
        }
    }
    program.interrupts = vec![interrupt(executed)];
    assert_eq!(finish(&program), (outcome, registers, executed), "the interrupt is too late");
}

/// `catch` stops the program, which shows which one it was.
#[test]
fn the_innermost_try_around_the_call_catches() {
    let thrower = "function thrower { body { throw }; no-end }";
    let of = |body: &str| {
        let more = "function middle { push rbx; locals 8; body { clobber rbx; call thrower } }";
        outcome(&format!(
            "function main {{ push rbp; frame rbp; body {{ {body} }} }}\n{more}\n{thrower}"
        ))
    };
    assert_eq!(of("try { call thrower }"), ExecutionEnd::Returned);
    assert_eq!(of("try { throw }"), ExecutionEnd::Returned);
    assert_eq!(of("try { call middle }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { try { call middle }\ncatch { stop } }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { try { call middle } }\ncatch { stop }"), ExecutionEnd::Returned);
    // An exception thrown in a catch goes to the enclosing try, and code after a try is not
    // protected by it.
    assert_eq!(of("try { try { throw }\ncatch { throw } }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { work 1 }\ncatch { stop }\nthrow"), ExecutionEnd::Uncaught);
    assert_eq!(of("try { throw }\ncatch { throw }"), ExecutionEnd::Uncaught);
    // The call is in code that is placed separately.
    assert_eq!(of("try { cold { call middle } }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("cold { try { call middle }\ncatch { stop } }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { funclet { call middle } }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("funclet { try { call middle }\ncatch { stop } }"), ExecutionEnd::Stopped);
}

/// An exception is not caught there: a region would have to restore its registers, and another
/// stack would stay the current one.
#[test]
fn a_try_does_not_catch_in_its_regions_and_on_other_stacks() {
    let of = |body: &str| {
        outcome(&format!(
            "function main {{ body {{ try {{ call f }}\ncatch {{ stop }} }} }}
             function f {{ push rbp; frame rbp; body {{ {body} }} }}
             function thrower {{ body {{ throw }}; no-end }}"
        ))
    };
    assert_eq!(of("try { region rbx { call thrower } }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { switch-stack thrower }"), ExecutionEnd::Stopped);
    assert_eq!(of("try { call thrower }"), ExecutionEnd::Returned);
    assert_eq!(of("region rbx { try { call thrower } }"), ExecutionEnd::Returned);
}

#[test]
fn throwing_leads_out_of_interrupts() {
    let of = |interrupts: &str, body: &str| {
        outcome(&format!(
            "function main {{ push rbx; body {{ {body} }} }}
             function f {{ push rbx; body {{ clobber rbx; trap isr }} }}
             function isr {{ entry interrupt; push rbx; body {{ clobber rbx; throw }}; no-end }}
             {interrupts}"
        ))
    };
    assert_eq!(of("", "clobber rbx; try { call f }"), ExecutionEnd::Returned);
    assert_eq!(of("", "try { call f }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("", "try { trap isr }\ncatch { stop }"), ExecutionEnd::Stopped);
    assert_eq!(of("", "call f"), ExecutionEnd::Uncaught);
    // An external interrupt is not in a call of the function that it interrupts.
    let body = "try { work 9 }\ncatch { stop }";
    assert_eq!(of("interrupt after=4 handler=isr", body), ExecutionEnd::Uncaught);
    assert_eq!(
        of("interrupt after=5 handler=isr", "try { call f }\ncatch { stop }"),
        ExecutionEnd::Stopped
    );
}

/// The catching frame has its own registers again, and the shadow stack its callers.
#[test]
fn throwing_cuts_the_stack() {
    let program = parse(
        "function main { push rbx; body { clobber rbx; try { call f }; call g } }
         function f { push rbx rsi rdi; locals 0x40; body { clobber rbx; clobber rsi; throw }; no-end }
         function g",
    );
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    up_to(&mut run, |run| run.machine().cpu().rip() == linked.entries[1]);
    let caller = run.shadow_stack().callers()[1];
    assert_eq!(run.shadow_stack().callers().len(), 2);
    up_to(&mut run, |run| run.shadow_stack().callers().len() == 1);
    let landing = linked.instruction(caller.from.unwrap()).unwrap().landing.unwrap();
    let expected = Registers { rip: landing, ..caller.registers };
    assert_eq!(run.machine().cpu().registers(), expected);
}

#[test]
fn other_stacks_are_given_back() {
    let text = "
        function main { body { loop 9 { try { call f } } } }
        function f kind=KIND { push rbp; frame rbp; body { switch-stack g } }
        function g { body { throw }; no-end }";
    let returning = text.replace("{ body { throw }; no-end }", "");
    for kind in ["native", "jit", "ready-to-run"] {
        for text in [text, &returning] {
            switch_nine_times(&parse(&text.replace("KIND", kind)));
        }
    }
}

fn switch_nine_times(program: &Program) {
    let linked = program.link().unwrap();
    let mut run = Execution::new(program, &linked, FunctionIndex(0), 0).unwrap();
    let unit = linked.units.iter().find(|unit| unit.kind == program.functions[1].kind).unwrap();
    let full = unit.kind.other_stacks();
    let lower = full - linked.stack_stride;
    for _ in 0..9 {
        assert_eq!(run.machine().read_u64(unit.stack_cell), Ok(full));
        up_to(&mut run, |run| run.machine().cpu().rip() == linked.entries[2]);
        assert_eq!(run.machine().read_u64(unit.stack_cell), Ok(lower));
        assert_eq!(run.machine().cpu().rsp(), lower - 8);
        up_to(&mut run, |run| run.shadow_stack().callers().len() == 1);
    }
    assert_eq!(run.machine().read_u64(unit.stack_cell), Ok(full));
}

/// rax holds the target while a volatile register that was pushed to take space is popped.
#[test]
fn tail_calls_by_register_keep_their_target() {
    for by in ["register", "register-memory"] {
        let text = format!("function f {{ push rax; tail-call g by={by} }}; function g");
        assert_eq!(outcome(&text), ExecutionEnd::Returned, "{by}");
    }
}

/// Code placed closely together is not overwritten by the method headers in the heap.
#[test]
fn methods_of_any_length_run() {
    for length in 0..32 {
        let text = format!(
            "function f kind=jit {{ body {{ work 8; call g }} }}
             function g kind=jit {{ locals {}; body {{ {} work {length} }} }}
             function h kind=jit {{ body {{ stop }} }}",
            8 * (length % 2),
            "clobber rax; ".repeat(length % 3),
        );
        assert_eq!(outcome(&text), ExecutionEnd::Returned, "{length}");
    }
}

/// Stores, counters and saves use the right slots although rsp has moved.
#[test]
fn slots_are_found_behind_dynamic_stack() {
    let text = "
        function f {
            push rbp; frame rbp offset=1; release lea; locals 0x40
            body { alloca 9; region rbx { clobber rbx; loop 3 { store 0; store 0x38; alloca 1 } } }
        }";
    let program = parse(text);
    let linked = program.link().unwrap();
    let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0).unwrap();
    let layout = clr_codegen::FrameLayout::new(&program.functions[0], program.convention);
    let origin = STACK_TOP - ABOVE - u64::from(layout.cfa());
    let locals = origin + u64::from(layout.locals);
    let mut lowest = u64::MAX;
    while run.step().is_ok() {
        lowest = lowest.min(run.machine().cpu().rsp());
    }
    assert_eq!(lowest, origin - 12 * 16);
    let words: Vec<_> = (0..8).map(|n| run.machine().read_u64(locals + 8 * n).unwrap()).collect();
    assert!(words[0] != 0 && words[7] != 0 && words[1..7].iter().all(|word| *word == 0));
    assert_eq!(run.machine().read_u64(origin + u64::from(layout.counters)), Ok(0));
    let saved = run.machine().read_u64(origin + u64::from(layout.region_saves));
    assert_eq!(saved, Ok(initial_registers(0).get(Gpr::Rbx)));
}

/// The largest frames still work: the last page of a thread's stack is not reached.
#[test]
fn the_largest_locals_have_room() {
    for allocation in ["sub", "probes", "probe-loop", "chkstk"] {
        let program = parse(&format!(
            "function f {{ push rbx; locals 0x100000; allocation {allocation}; body {{
                 store 0; store 0xffff8; call g
             }} }}
             function g {{ push rbx; locals 0x100000; allocation {allocation}; body {{ store 0 }} }}"
        ));
        assert_eq!(finish(&program).0, ExecutionEnd::Returned, "{allocation}");
    }
}

/// An exception out of an interrupt leaks at most one stack, for which there is room.
#[test]
fn throwing_out_of_a_switch_is_no_fault() {
    let mut program = parse(
        "function main { body { loop 3 { try { call f } } } }
         function f { push rbp; frame rbp; body { switch-stack g } }
         function g { body { work 1 } }
         function isr { entry interrupt; body { throw }; no-end }",
    );
    let executed = finish(&program).2;
    for after in 0..executed {
        let interrupt = |after| clr_codegen::Interrupt { after, handler: FunctionIndex(3) };
        program.interrupts = vec![interrupt(after), interrupt(after + 12)];
        let outcome = finish(&program).0;
        assert!(
            matches!(outcome, ExecutionEnd::Returned | ExecutionEnd::Uncaught),
            "{after}: {outcome}"
        );
    }
}
