//! Tests of programs executed in worlds.

mod arguments;
mod contents;
mod every_instruction;
mod kinds;
mod leaves;
mod locks;
mod mortal;
mod profiler_rules;
mod runtime_code;
mod signals;
mod start;
mod suspension;
mod synthetic_code;
mod synthetics;
mod unhandled;
mod unloading;
mod wait_places;
mod worlds;

use crate::stubs::{Expanded, Hooks, Identity, RuntimeFunction, Shared, expand, method_id};
use crate::synthetic::{
    CODE, MANAGED_WALKER, MAX_OFFSET, NATIVE_WALKER, SELF, SIZE, SyntheticError, SyntheticProcess,
    SyntheticThread,
};
use crate::tests::exceptions::{call, clause, managed, throw};
use crate::tests::handlers::{in_callbacks, observed, registers_of, run, shape, snapshot};
use crate::tests::kinds::program;
use crate::{
    Activation, Build, CallbackArguments, HookKind, ProcessEnd, SIGNAL_FRAME_SIZE, SignalError,
    SignalStack, StepEvent, StopBy, ThreadStart, World, WorldError,
};
use RuntimeCallKind::{ClassConstructor, New, NullDereference, Raise, ReflectionCall};
use clr_codegen::{
    CallForm, CallTarget, CodeKind, EhClause, EhClauseKind, Exit, Function, FunctionIndex,
    FunctionShape, Program, ReturnForm, RuntimeCall, RuntimeCallKind, RuntimeCallKind as Call,
    RuntimeCallKind as Kind, Statement,
};
use clr_machine::Machine;
use clr_runtime::generation::{Family, Generation, Generations, Os, Product, Version};
use clr_runtime::profiling::{
    self, CallbackKind, CallbackMode, ProfilerCallback, SimulatedThread, SnapshotRequest,
    SuspensionReason,
};
use clr_runtime::thread::ThreadObject;
use clr_runtime::{
    Context, FRAME_TOP, FrameKind, Lock, MethodKind, OsThreadId, Outcome, Process, Suspension,
    ThreadLife,
};
use clr_unwind::{Gpr, Memory as _, Position, Registers};
use clr_walker::profiling::{
    CallError, EventMask, FunctionId, HResult, ProfilerInfo, SnapshotCallback, SnapshotFlags,
    SnapshotFrame, TargetThread,
};
use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};

mod compilation;
mod exceptions;
mod handlers;
mod hooks;
mod inlining;
mod leaving;
mod machinery;
mod reference;

fn runtime(kind: RuntimeCallKind, target: Option<u32>) -> Statement {
    Statement::Runtime(RuntimeCall { kind, target: target.map(FunctionIndex) })
}

fn function(name: &str, kind: CodeKind, body: Vec<Statement>) -> Function {
    Function {
        name: name.to_owned(),
        kind,
        shape: FunctionShape::default(),
        body,
        end: Some(Exit::Return(ReturnForm::Ret)),
    }
}

fn walk(world: &mut World<'_>, thread: usize) -> String {
    let os = world.os(thread);
    walk_by(world, os, thread)
}

/// A walker thread that the runtime does not know.
const NOBODY: OsThreadId = OsThreadId(99);

/// A callback of a walk.
#[derive(Clone, Copy, Debug)]
struct Callback {
    /// The FunctionID; `None` for a marker.
    function: Option<u64>,
    context: Context,
}

/// Walks a thread that the runtime knows, from the thread `os`. Returns the callbacks and the
/// outcome.
fn callbacks(
    world: &mut World<'_>,
    os: OsThreadId,
    thread: usize,
    seed: Option<&Context>,
) -> (Vec<Callback>, String) {
    let bytes = seed.map(|context| {
        let mut bytes = vec![0; 0xC20];
        let context = context.to_bytes();
        bytes[..context.len()].copy_from_slice(&context);
        bytes
    });
    let call = SnapshotRequest {
        thread: world.object(thread).unwrap(),
        flags: SnapshotFlags::REGISTER_CONTEXT,
        seed: bytes.as_deref(),
        ..SnapshotRequest::default()
    };
    let mut found = Vec::new();
    let callback: &mut SnapshotCallback<'_> = &mut |frame| {
        let context = Context::from_bytes(frame.context).unwrap();
        assert_eq!(context.registers.rip, frame.ip);
        found.push(Callback { function: frame.function.map(|id| id.0), context });
        HResult::OK
    };
    let outcome = world.runtime().on(os).do_stack_snapshot(&call, Some(callback));
    (found, outcome.to_string())
}

/// Walks a thread from another one; `None` is a walker that the runtime does not know.
fn walk_by(world: &mut World<'_>, by: Option<OsThreadId>, thread: usize) -> String {
    if world.object(thread).is_none() {
        return "no thread".to_owned();
    }
    let (callbacks, outcome) = callbacks(world, by.unwrap_or(NOBODY), thread, None);
    let functions = &world.expanded().program.functions;
    let mut found = String::new();
    for Callback { function, context } in callbacks {
        let by_ip = || world.linked().function_of(context.registers.rip, Position::ReturnAddress);
        let id = function.map_or_else(by_ip, crate::stubs::method_of);
        let name = id.map_or("?", |id| functions[id.index()].name.as_str());
        let mark = if function.is_none() { "*" } else { "" };
        write!(found, "{mark}{name} ").unwrap();
    }
    found + &outcome
}

fn everything() -> Program {
    use RuntimeCallKind as Kind;
    Program {
        functions: vec![
            function(
                "App.Main",
                CodeKind::Jit,
                vec![
                    runtime(Kind::New, None),
                    runtime(Kind::NewFast, None),
                    runtime(Kind::WriteBarrier, None),
                    runtime(Kind::FirstCall, Some(4)),
                    runtime(Kind::PInvoke, Some(1)),
                    runtime(Kind::PInvokeStub, Some(1)),
                ],
            ),
            function("Lib.Sort", CodeKind::Native, vec![runtime(Kind::ReversePInvoke, Some(2))]),
            function("App.Compare", CodeKind::ReadyToRun, vec![runtime(Kind::PInvoke, Some(3))]),
            function("Lib.Sleep", CodeKind::Native, vec![Statement::Work(3)]),
            function("App.Late", CodeKind::Jit, vec![Statement::Work(3)]),
        ],
        ..Program::default()
    }
}

#[test]
fn a_program_runs_through_the_runtime_to_its_end() {
    let mut log = String::new();
    for generation in Generation::ALL {
        let build = Build::new(&everything(), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        writeln!(log, "{generation}").unwrap();
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) => {
                    let walk = walk(&mut world, 0);
                    writeln!(log, "  {}: {walk}", CallbackKind::name(kind)).unwrap();
                }
                StepEvent::Stepped | StepEvent::Entered(_) | StepEvent::Waits | StepEvent::Hook => {
                }
            }
        }
        assert_eq!(world.shadow_stack(0).unwrap().callers(), []);
    }
    insta::assert_snapshot!(log);
}
