//! Handlers of the profiler that interrupt a thread.

use super::*;

fn program() -> Program {
    Program {
        functions: vec![
            function(
                "App.Main",
                CodeKind::Jit,
                vec![runtime(Kind::New, None), Statement::Call(CallForm::Near, FunctionIndex(1))],
            ),
            function("App.Work", CodeKind::Jit, vec![Statement::Work(5)]),
        ],
        ..Program::default()
    }
}

fn is_managed(world: &mut World<'_>) -> bool {
    let rip = world.rip(0).unwrap();
    world.runtime().code.find(rip).is_some()
}

/// At any instruction, the registers interrupted by a handler are a valid seed, and all is
/// unchanged after the handler (H-28).
#[test]
fn a_handler_interrupts_every_instruction() {
    for generation in Generation::ALL.into_iter().filter(|generation| generation.is_unix()) {
        let build = Build::new(&program(), &BTreeMap::new(), generation).unwrap();
        for stack in [SignalStack::Own, SignalStack::Alternate(0x1000)] {
            let start = [ThreadStart::Managed(FunctionIndex(0))];
            let mut plain = build.world(&start).unwrap();
            let mut world = build.world(&start).unwrap();
            let (mut handlers, mut walks) = (0, 0);
            loop {
                let before = world.activations(0);
                let managed = is_managed(&mut world);
                let signal = world.signal(0, stack);
                if before.is_empty() {
                    assert_eq!(signal, Err(SignalError::Ended), "{generation}");
                } else if plain.is_serving(0) || plain.callback(0).is_some() {
                    assert_eq!(signal, Err(SignalError::Busy), "{generation}");
                } else {
                    let signal = signal.unwrap();
                    handlers += 1;
                    assert_eq!(signal.registers, before[0].registers, "{generation}");
                    assert!(world.is_in_handler(0) && world.waits_for(0).is_none());
                    // The interrupted activation is the handler's caller.
                    assert_eq!(world.activations(0)[1..], before, "{generation}");
                    assert_eq!(world.signal(0, stack), Err(SignalError::InHandler));
                    let flags = generation.own_context_flags();
                    let seed = Context { registers: signal.registers, flags };
                    let mut bytes = vec![0; seed.to_bytes().len()];
                    world.runtime().memory.borrow().read(signal.context, &mut bytes).unwrap();
                    assert_eq!(bytes, seed.to_bytes(), "{generation}");
                    if managed && world.is_cooperative(0) {
                        let os = world.os(0).unwrap();
                        let (found, outcome) = callbacks(&mut world, os, 0, Some(&seed));
                        assert_eq!(outcome, "S_OK", "{generation}");
                        assert_eq!(found[0].context.registers.rip, signal.registers.rip);
                        walks += 1;
                    }
                    assert_eq!(world.step(0), Ok(StepEvent::Stepped));
                }
                assert_eq!(world.activations(0), before, "{generation}");
                assert!(!world.is_in_handler(0));
                let event = plain.step(0).unwrap();
                assert_eq!(world.step(0).unwrap(), event, "{generation}");
                assert_eq!(world.activations(0), plain.activations(0), "{generation}");
                if event == StepEvent::Ended {
                    break;
                }
            }
            assert!(handlers > 100 && walks > 10, "{generation}: {handlers}, {walks}");
            assert_eq!(world.signal(0, stack), Err(SignalError::Ended));
        }
    }
}

/// G30: an alternate stack must have room for the registers.
#[test]
fn a_handler_needs_stack() {
    let build = Build::new(&program(), &BTreeMap::new(), Generation::Net9Unix).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let needed = SIGNAL_FRAME_SIZE as u32;
    let room = u64::from(needed) - 1;
    let refused = world.signal(0, SignalStack::Alternate(needed - 1));
    assert_eq!(refused, Err(SignalError::NoRoom { room }));
    assert!(!world.is_in_handler(0));
    let signal = world.signal(0, SignalStack::Alternate(needed + 100)).unwrap();
    assert_eq!(signal.room, 100);
    assert_eq!(world.signal(1, SignalStack::Own), Err(SignalError::NoThread(1)));
}

#[test]
fn windows_has_no_signals() {
    for generation in Generation::ALL.into_iter().filter(|generation| !generation.is_unix()) {
        let build = Build::new(&program(), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        assert_eq!(world.signal(0, SignalStack::Own), Err(SignalError::NoSignals));
    }
}
