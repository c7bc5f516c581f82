//! Tests of the gallery's stacks on every generation: state that calls leave behind, inputs that
//! they ignore, and properties of some stacks beyond their results.

use super::*;
use clr_runtime::{
    CallbackState, OsThreadId, Profiler, Runtime, THREAD_OBJECT_SIZE, TargetMemory as _, Thread,
};
use clr_scenario::{PlacedStack, SeedSource, SnapshotCaller, SnapshotSeed};
use clr_unwind::{Gpr, Memory as _, Position, Registers, Unwinder};
use clr_walker::profiling::{EventMask, ProfilerInfo as _, ThreadId};
use clr_world::synthetic::{MANAGED_WALKER, NATIVE_WALKER, SELF, SyntheticProcess};
use std::cell::RefCell;

/// The problems found, by generation, file and call. Dropping them fails the test if there are any.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn check(&mut self, of: &str, right: bool, problem: impl FnOnce() -> String) {
        if !right {
            self.0.push(format!("{of}: {}", problem()));
        }
    }
}

impl Drop for Problems {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} problems:\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}

/// Returns the stacks placed by hand, with their names.
fn stacks() -> impl Iterator<Item = (&'static str, &'static PlacedStack)> {
    gallery().filter_map(|(name, _, scenario)| Some((name, scenario.stack.as_ref()?)))
}

/// Calls `check` with every call on every stack, set up.
fn every_call(mut check: impl FnMut(&mut Problems, &str, &SyntheticProcess, &SnapshotCall)) {
    let mut problems = Problems::default();
    for (name, stack) in stacks() {
        for generation in stack.generations().iter() {
            let set = stack.synthetic_thread(generation).build().unwrap();
            for call in stack.snapshots.iter().filter(|call| call.applies_to(generation)) {
                let title = call.title.as_deref().unwrap_or_default();
                let name = format!("{name}, {generation}, {title}");
                check(&mut problems, &name, &set, call);
            }
        }
    }
}

/// Reads the memory of the Thread objects, which calls must not change.
fn objects(set: &SyntheticProcess, runtime: &Runtime<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 0x800 + THREAD_OBJECT_SIZE as usize];
    runtime.memory.borrow().read(set.thread().0, &mut bytes).expect("there are two Thread objects");
    bytes
}

fn threads(runtime: &Runtime<'_>) -> Vec<Thread> {
    runtime
        .threads
        .borrow()
        .iter()
        .map(|thread| Thread { initialized: true, ..thread.clone() })
        .collect()
}

/// C-025. Calls that do not return may leave anything behind.
#[test]
fn nothing_is_left_behind() {
    every_call(|problems, name, set, call| {
        let runtime = call.process(set);
        let (objects_before, threads_before) = (objects(set, &runtime), threads(&runtime));
        let process_before = runtime.process.get();
        let first = call.make_on(set, &runtime);
        if !matches!(first.outcome, Outcome::Returned(_)) {
            return;
        }
        let after = objects(set, &runtime);
        // A hijack is undone.
        let from = if set.synthetic_thread().hijacked.is_some() { 8 } else { 0 };
        problems.check(name, after[from..] == objects_before[from..], || {
            let at = after.iter().zip(&objects_before).position(|(one, other)| one != other);
            format!("the Thread objects differ at {at:x?}")
        });
        problems.check(name, threads(&runtime) == threads_before, || "a thread differs".to_owned());
        problems.check(name, runtime.process.get() == process_before, || "process".to_owned());
        // A hijack is undone once, so the second call decides less.
        let mut second = call.make_on(set, &runtime);
        second.decided_by.clone_from(&first.decided_by);
        problems.check(name, second == first, || format!("the second call found\n{second}"));
    });
}

/// C-021, C-022: the caller's situation and contextSize do not matter.
#[test]
fn unexamined_state_plays_no_part() {
    every_call(|problems, name, set, call| {
        // Only the code manager's lock matters (C-036).
        if set.synthetic_thread().process.code_manager_writer.is_some() {
            return;
        }
        let elsewhere = SnapshotCall {
            in_callback: match call.in_callback {
                Some(_) => None,
                None => Some(CallbackKind::GarbageCollectionStarted),
            },
            ..call.clone()
        };
        let snapshot = elsewhere.make(set);
        problems.check(name, snapshot.to_string() == call.make(set).to_string(), || {
            format!("in another situation it found\n{snapshot}")
        });
    });
}

/// C-023, and C-053 for ContextFlags that do not request more: the flags are ignored.
#[test]
fn context_flags_of_seeds_play_no_part() {
    let mut seeded = 0;
    every_call(|problems, name, set, call| {
        // Other tests cover seeds that are cut off, and ContextFlags that request more.
        let Some(seed) = call.seed.as_ref().filter(|seed| seed.cut.is_none() && seed.features == 0)
        else {
            return;
        };
        seeded += 1;
        let expected = call.make(set).to_string();
        // CONTEXT_XSTATE, by which newer runtimes on Unix read more (C-162), is not set.
        for flags in [0, 0x10_0001, 0xFFFF_FFBF_u32] {
            let seed = SnapshotSeed { flags: Some(flags), ..seed.clone() };
            let snapshot = SnapshotCall { seed: Some(seed), ..call.clone() }.make(set);
            problems.check(name, snapshot.to_string() == expected, || {
                format!("with ContextFlags {flags:#x} it found\n{snapshot}")
            });
        }
    });
    assert!(seeded > 100, "{seeded}");
}

/// Returns a stack of the gallery, and its first call.
fn placed(generation: Generation, name: &str) -> (SyntheticProcess, SnapshotCall) {
    let (set, mut calls) = calls_of(generation, name);
    (set, calls.swap_remove(0))
}

/// Returns a stack of the gallery, and its calls.
fn calls_of(generation: Generation, name: &str) -> (SyntheticProcess, Vec<SnapshotCall>) {
    let (_, stack) = stacks().find(|(other, _)| *other == name).expect("the gallery has the stack");
    let set = stack.synthetic_thread(generation).build().expect("the stack is consistent");
    let mut calls = stack.snapshots.clone();
    calls.retain(|call| call.applies_to(generation));
    (set, calls)
}

const OBJECT_ALLOCATED: &str = "helpers/e-01-object-allocated.kdl";
const P_INVOKE: &str = "transitions/e-02-inlined-p-invoke.kdl";
const JITTED_LEAF: &str = "helpers/e-04-jitted-leaf.kdl";
const CALLBACK: &str = "sandwiches/e-06-lossy-callback.kdl";

fn is_own_seeded(call: &SnapshotCall) -> bool {
    call.by == SnapshotCaller::Own && call.seed.is_some()
}

/// E-6: from the marker's context, native code can be unwound to the P/Invoke stub.
#[test]
fn native_code_can_be_unwound_from_a_marker() {
    for generation in Generation::ALL {
        let (set, calls) = calls_of(generation, CALLBACK);
        let seeded = calls.iter().find(|call| is_own_seeded(call)).unwrap();
        let runtime = set.runtime();
        let snapshot = seeded.make_on(&set, &runtime);
        let marker =
            snapshot.frame_reports.iter().find(|report| report.function.is_none()).unwrap();
        let mut registers = marker.frame_report.context.unwrap().registers;
        let unwinder = Unwinder::new(runtime.native.map()).with_rules(generation.unwind_rules());
        let mut native = Vec::new();
        while runtime.native.function(registers.rip).is_some() {
            native.push(set.label(registers.rip));
            let memory = &*runtime.memory.borrow();
            unwinder.step(&mut registers, Position::ReturnAddress, memory).unwrap();
        }
        let all = ["UMThunkStub+0x8f", "qsort+0x123"];
        let without_thunk = generation.family().is_core_since(8);
        let expected = if without_thunk { &all[1..] } else { &all };
        assert_eq!(native, expected, "{generation}");
        assert_eq!(set.label(registers.rip), "IL_STUB_PInvoke+0x90", "{generation}");
        let stub = set
            .synthetic_thread()
            .activations
            .iter()
            .position(|activation| activation.function == "IL_STUB_PInvoke");
        registers.set(Gpr::Rax, 0);
        assert_eq!(
            Some(registers),
            stub.and_then(|activation| set.registers(activation)),
            "{generation}"
        );
    }
}

/// E-13: checks the slot before and after the call, and that the flag is cleared.
#[test]
fn a_hijacked_return_address_is_put_back() {
    for generation in Generation::ALL {
        let (set, call) = placed(generation, "helpers/e-13-hijacked-return-address.kdl");
        let runtime = call.process(&set);
        let slot = || runtime.memory.borrow().read_u64(0x1F_E038).unwrap();
        let main = set.address("App.Main+0x20").unwrap();
        let trip = slot();
        assert_ne!(trip, main, "{generation}");
        // A profiler that unwinds before the call finds unmanaged code.
        let found = runtime.on(NATIVE_WALKER).get_function_from_ip(trip);
        assert_eq!(found, Err(HResult::FAIL.into()), "{generation}");
        assert_eq!(call.make_on(&set, &runtime).outcome, HResult::OK.into());
        assert_eq!(slot(), main, "{generation}");
        // The hijack is undone once: the thread is no longer hijacked.
        let other = set.address("App.Main+0x24").unwrap();
        runtime.memory.borrow_mut().write_u64(0x1F_E038, other).unwrap();
        let again = call.make_on(&set, &runtime).to_string();
        assert!(again.contains("App.Main+0x24"), "{generation}: {again}");
        assert_eq!(slot(), other, "{generation}");
    }
}

/// E-20: one FunctionID, two ips.
#[test]
fn tiers_have_one_function_id() {
    for generation in Generation::ALL {
        let (set, call) = placed(generation, "helpers/e-20-tiers.kdl");
        let frame_reports = call.make(&set).frame_reports;
        let functions: Vec<_> =
            frame_reports.iter().map(|report| report.frame_report.function).collect();
        assert_eq!(functions[0], functions[1], "{generation}");
        assert_eq!(functions[0], set.function("App.Fib"));
        assert_ne!(functions[1], functions[2]);
    }
}

/// A profiler that walks in RuntimeThreadSuspended and RuntimeThreadResumed.
#[derive(Default)]
struct Walking {
    reported: RefCell<Vec<String>>,
}

impl<'a> Profiler<'a, clr_machine::Machine> for Walking {
    fn call_back(&self, runtime: &Runtime<'a>, thread: OsThreadId, callback: ProfilerCallback) {
        let (name, id) = match callback {
            ProfilerCallback::RuntimeThreadSuspended(id) => ("suspended", id),
            ProfilerCallback::RuntimeThreadResumed(id) => ("resumed", id),
            _ => return,
        };
        let call = |thread| {
            let call = clr_runtime::profiling::SnapshotRequest { thread, ..Default::default() };
            runtime.on(MANAGED_WALKER).do_stack_snapshot(&call, None)
        };
        assert_eq!(runtime.object_of(SELF), Some(id));
        let state = runtime.thread(MANAGED_WALKER, |thread| thread.callback_state);
        assert!(state.unwrap().contains(CallbackState::IN_CALLBACK));
        let frozen = runtime.thread(SELF, |thread| thread.suspended).unwrap();
        let line = format!("{name} on {}, {frozen}: {}, {}", thread.0, call(id), call(ThreadId(0)));
        self.reported.borrow_mut().push(line);
    }
}

/// C-029, C-031, contract §6: a call that suspends its target raises callbacks, and holds its lock
/// meanwhile.
#[test]
fn suspensions_are_reported() {
    for generation in Generation::ALL {
        let (set, _) = placed(generation, P_INVOKE);
        for (mask, suspended) in [(0x1001_0000, false), (0x1000_0000, false), (0x1001_0000, true)] {
            let profiler = Walking::default();
            let mut runtime = set.runtime();
            runtime.profiler = Some(&profiler);
            runtime.change_process(|process| {
                process.event_mask = EventMask(mask);
                process.suspended_by_profiler = suspended;
            });
            let mut frozen = Vec::new();
            let outcome = runtime.on(MANAGED_WALKER).do_stack_snapshot(
                &set.call(),
                Some(&mut |_| {
                    frozen.push(runtime.thread(SELF, |thread| thread.suspended).unwrap());
                    HResult::OK
                }),
            );
            let windows = Generations::WINDOWS.contains(generation);
            let reported = profiler.reported.take();
            if suspended || !windows {
                assert!(reported.is_empty(), "{generation}: {reported:?}");
                let expected = if suspended { HResult::OK } else { HResult::NOT_IMPLEMENTED };
                assert_eq!(outcome, expected.into(), "{generation}");
                assert_eq!(frozen, vec![0; frozen.len()], "{generation}");
                continue;
            }
            assert_eq!(outcome, HResult::OK.into(), "{generation}");
            assert_eq!(frozen, [1, 1, 1], "{generation}");
            // The caller's own walk finds an empty stack. The lock is still held after the target
            // has been resumed.
            let expected = [
                "suspended on 3, 1: CORPROF_E_STACKSNAPSHOT_UNSAFE, E_FAIL",
                "resumed on 3, 0: CORPROF_E_STACKSNAPSHOT_UNSAFE, E_FAIL",
            ];
            let expected = if mask == 0x1001_0000 { &expected[..] } else { &[] };
            assert_eq!(reported, expected, "{generation}");
        }
    }
}

/// C-089, C-100: arguments of callbacks besides the frame.
#[test]
fn callbacks_get_the_arguments_of_the_call() {
    for generation in Generation::ALL {
        let (set, _) = placed(generation, OBJECT_ALLOCATED);
        let runtime = set.runtime();
        let call =
            clr_runtime::profiling::SnapshotRequest { client_data: 0xC11E_4747, ..set.call() };
        let mut functions = Vec::new();
        let outcome = runtime.on(SELF).do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                assert_eq!(frame.client_data, 0xC11E_4747);
                let own = runtime.on(SELF);
                if let Some(function) = frame.function {
                    assert!(own.get_function_info2(function, Some(frame.frame_info), 0).is_ok());
                }
                let other = set.function("App.Main").filter(|main| Some(*main) != frame.function);
                if let Some(other) = other {
                    let refused = own.get_function_info2(other, Some(frame.frame_info), 0);
                    assert_eq!(refused, Err(HResult::INVALID_ARGUMENT.into()));
                }
                functions.push(frame.function);
                HResult::OK
            }),
        );
        assert_eq!(outcome, HResult::OK.into(), "{generation}");
        assert_eq!(functions, [set.function("App.Foo"), set.function("App.Main"), None]);
    }
}

/// Contract §3.7: changes that a callback makes to a managed frame's context are lost; after a marker they
/// persist.
#[test]
fn contexts_may_be_written_to() {
    for generation in Generation::ALL {
        let (set, _) = placed(generation, CALLBACK);
        let runtime = set.runtime();
        let seed = SnapshotSeed::new(SeedSource::Function("App.Compare".to_owned())).bytes(&set);
        let call = clr_runtime::profiling::SnapshotRequest { seed: seed.as_deref(), ..set.call() };
        let mut values = Vec::new();
        let outcome = runtime.on(SELF).do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                let mut registers = Registers::from_context(frame.context).unwrap();
                values.push(registers.get(Gpr::Rcx));
                let number = values.len() as u64;
                registers.set(Gpr::Rcx, 0xBAD0 + number);
                registers.write_context(frame.context).unwrap();
                HResult::OK
            }),
        );
        assert_eq!(outcome, HResult::OK.into(), "{generation}");
        // Compare, marker, Sort, Main, marker.
        assert_eq!(values, [0, 0, 0xBAD2, 0xBAD2, 0xBAD2], "{generation}");
    }
}

/// C-037: no byte of an ignored seed appears in a context.
#[test]
fn an_ignored_seed_leaves_no_trace() {
    for generation in Generation::ALL {
        let (set, _) = placed(generation, P_INVOKE);
        let seed = [0xFF; 0xC20];
        let call = clr_runtime::profiling::SnapshotRequest { seed: Some(&seed), ..set.call() };
        let mut contexts = 0;
        let outcome = set.runtime().on(SELF).do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                contexts += 1;
                assert!(frame.context.iter().all(|byte| *byte != 0xFF), "{generation}");
                HResult::OK
            }),
        );
        assert_eq!((outcome, contexts), (HResult::OK.into(), 3), "{generation}");
    }
}

/// Contract §8.6: a HelperMethodFrame is completed by the first walk that reaches it.
#[test]
fn a_helpers_frame_is_completed_once() {
    let mut completed = 0;
    for (name, stack) in stacks().filter(|(name, _)| name.starts_with("frames/section-8.6-")) {
        for generation in stack.generations().iter() {
            let set = stack.synthetic_thread(generation).build().unwrap();
            let runtime = set.runtime();
            let unix = Generations::UNIX.contains(generation);
            let slot = 0x1F_C800 + if unix { 0xA0 } else { 0xC0 };
            let read = || runtime.memory.borrow().read_u64(slot).unwrap();
            assert_eq!(read(), 0, "{generation}, {name}");
            let _ = stack.snapshots[0].make_on(&set, &runtime);
            assert_ne!(read(), 0, "{generation}, {name}");
            completed += 1;
        }
    }
    assert!(completed > 0);
}

/// Contract §2.6: the thread that has suspended the runtime looks code up without the lock.
#[test]
fn the_suspending_thread_takes_no_lock() {
    use clr_runtime::Suspension;
    for generation in [Generation::Framework2, Generation::Net10Windows] {
        let (set, _) = placed(generation, JITTED_LEAF);
        let runtime = set.runtime();
        runtime.change_process(|process| {
            process.code_manager_writer = Some(OsThreadId(9));
            process.suspension = Suspension::Suspended(MANAGED_WALKER);
        });
        let outcome =
            runtime.on(MANAGED_WALKER).do_stack_snapshot(&set.call(), Some(&mut |_| HResult::OK));
        assert_eq!(outcome, HResult::OK.into(), "{generation}");
        runtime.change_process(|process| process.suspension = Suspension::Suspended(OsThreadId(9)));
        let outcome =
            runtime.on(MANAGED_WALKER).do_stack_snapshot(&set.call(), Some(&mut |_| HResult::OK));
        assert_eq!(outcome, Outcome::Blocked, "{generation}");
    }
}

/// Snapshots are equal if all of their parts are.
#[test]
fn the_same_call_gives_the_same() {
    every_call(|problems, name, set, call| {
        let (one, other) = (call.make(set), call.make(set));
        problems.check(name, one == other, || "a repeated call differs".to_owned());
    });
}
