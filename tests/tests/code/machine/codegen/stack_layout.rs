//! Checks of the stack layout against the values on the stack.

use super::*;
use clr_codegen::{MachineWord, SlotRole};
use clr_unwind::Memory as _;
use std::collections::BTreeMap;

/// Number of times that each kind of role was checked.
type Seen = BTreeMap<&'static str, u32>;

fn check(program: &Program, map: &CodeMap<'_>, run: &Execution<'_>, seen: &mut Seen) {
    let frames = run.frames();
    let areas = run.stack(program, map);
    let mut count = |what| *seen.entry(what).or_default() += 1;
    for area in &areas {
        let value = run.machine().read_u64(area.address).unwrap();
        let Some(frame) = frames.get(area.frame) else { continue };
        let caller = &frame.caller.registers;
        match area.role {
            SlotRole::ReturnAddress => {
                assert_eq!(value, caller.rip);
                count("return address");
            }
            SlotRole::Saved(register) => {
                assert_eq!(value, caller.get(register), "{register:?} {area:x?}");
                count("saved");
                let placed = run.linked().instruction(frame.registers.rip);
                if placed.is_some_and(|placed| placed.role == Role::Prologue) {
                    count("saved in a prologue");
                }
                let shape = frame.function.map(|id| &program.functions[id.index()].shape);
                if shape.is_some_and(|shape| {
                    shape.entry == EntryForm::Call && !shape.saves_register(register)
                }) {
                    count("saved in a region");
                }
                if area.address >= frame.cfa {
                    count("saved in home space");
                }
            }
            SlotRole::SavedXmm(n) => {
                let high = run.machine().read_u64(area.address + 8).unwrap();
                let value = u128::from(high) << 64 | u128::from(value);
                assert_eq!(value, caller.xmm[usize::from(n) - 6], "xmm{n} {area:x?}");
                count("saved xmm");
            }
            SlotRole::Machine(MachineWord::Rip) => {
                assert_eq!(value, caller.rip);
                count("machine frame");
            }
            // The trampoline of a signal whose handler has a stack of its own.
            SlotRole::Helper
                if frame.caller.position == Position::Interrupted
                    && caller.rsp() < area.address =>
            {
                let saved_rip = run.machine().read_u64(area.address + 168).unwrap();
                assert_eq!((saved_rip, area.len), (caller.rip, 432));
                count("signal stack");
            }
            SlotRole::NotYet(_) | SlotRole::NotYetXmm(_) => {
                let back = u64::from(frame.position == Position::ReturnAddress);
                let placed = run.linked().instruction(frame.registers.rip - back);
                assert_eq!(placed.unwrap().role, Role::Prologue);
                count("not yet");
            }
            _ => {}
        }
    }
    // Before a call on another stack, that stack is still empty.
    let rsp = run.machine().cpu().rsp();
    let first = areas.first().map_or(rsp, |area| area.address);
    assert!(first == rsp || first - rsp > run.linked().stack_stride, "{rsp:#x} {areas:x?}");
    for pair in areas.windows(2) {
        let [area, next] = pair else { continue };
        let gap = next.address.wrapping_sub(area.address + area.len);
        // The processor aligns rsp before it pushes a machine frame; stacks can be switched.
        let aligned = gap == 8 && frames[area.frame].caller.position == Position::Interrupted;
        assert!(gap == 0 || aligned || gap > run.linked().stack_stride, "{pair:x?}");
        if gap > 8 {
            count("another stack");
        }
    }
    if let Some(last) = frames.last() {
        // The alternate stack for signals is above the thread's, but its areas come first.
        let end = areas.last().map(|area| area.address + area.len).unwrap();
        assert_eq!(end, last.cfa + u64::from(program.convention.home_space()));
    }
}

#[test]
fn the_roles_of_slots_are_what_they_hold() {
    let mut seen = Seen::new();
    for seed in 0..300 {
        let program = program(&mut Seeded::new(seed), &Size::SMALL);
        let Ok(linked) = program.link() else { continue };
        let map = linked.code_map().unwrap();
        let mut run = Execution::new(&program, &linked, FunctionIndex(0), seed).unwrap();
        for _ in 0..1500 {
            check(&program, &map, &run, &mut seen);
            if run.step().is_err() {
                break;
            }
        }
    }
    for what in [
        "return address",
        "saved",
        "saved in a prologue",
        "saved in home space",
        "saved in a region",
        "saved xmm",
        "machine frame",
        "not yet",
        "another stack",
        "signal stack",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count > 100), "{what}: {seen:?}");
    }
}

#[test]
fn a_funclet_is_known_by_its_caller() {
    let text = "function \"f\" {\n push \"rbp\"\n frame \"rbp\"\n body { funclet { work 1 } }\n}";
    let Ok(scenario) = text.parse::<clr_scenario::Scenario>() else { panic!("{text}") };
    let linked = scenario.program.link().unwrap();
    let mut run = scenario.start(0, &linked).unwrap();
    let mut funclets = 0;
    while run.step().is_ok() {
        let frames = run.frames();
        assert!(frames.iter().skip(1).all(|frame| !frame.is_funclet));
        let inside = frames.len() == 2;
        assert_eq!(frames[0].is_funclet, inside);
        funclets += u32::from(inside);
        assert_eq!(frames[0].registers.rsp(), run.machine().cpu().rsp());
    }
    assert!(funclets > 3);
}
