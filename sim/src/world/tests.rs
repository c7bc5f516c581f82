//! Programs in worlds.

mod every_instruction;
mod kinds;
mod leaves;
mod suspension;
mod unloading;

use super::{Build, Event, Start, World};
use crate::code::{
    CodeKind, Exit, Function, FunctionId, FunctionShape, Program, ReturnForm, RuntimeCall,
    RuntimeCallKind, Statement,
};
use crate::generation::Generation;
use crate::profiling::{Call, CallbackKind};
use crate::runtime::OsThreadId;
use clr_walker::profiling::{HResult, SnapshotFlags};
use core::fmt::Write as _;
use std::collections::BTreeMap;

mod exceptions;
mod handlers;
mod reference;

fn runtime(kind: RuntimeCallKind, target: Option<u32>) -> Statement {
    Statement::Runtime(RuntimeCall { kind, target: target.map(FunctionId) })
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

/// A thread that the runtime does not know.
const NOBODY: OsThreadId = OsThreadId(99);

/// A walk of a thread by another one; `None` is one that the runtime does not know.
fn walk_by(world: &mut World<'_>, by: Option<OsThreadId>, thread: usize) -> String {
    let os = by.unwrap_or(NOBODY);
    let Some(object) = world.object(thread) else { return "no thread".to_owned() };
    let mut found = String::new();
    let names: Vec<_> = world.expanded().program.functions.iter().map(|f| f.name.clone()).collect();
    let linked = world.linked();
    let runtime = world.runtime();
    let call = Call { thread: object, flags: SnapshotFlags::REGISTER_CONTEXT, ..Call::default() };
    let callback: &mut clr_walker::profiling::SnapshotCallback<'_> = &mut |frame| {
        let by_ip = || linked.function_of(frame.ip, clr_walker::unwind::Position::ReturnAddress);
        let function = frame.function.map_or_else(by_ip, |id| crate::stubs::method_of(id.0));
        let name = function.map_or("?", |id| names[id.index()].as_str());
        if frame.function.is_none() {
            found.push('*');
        }
        found.push_str(name);
        found.push(' ');
        HResult::OK
    };
    let outcome = runtime.on(os).do_stack_snapshot(&call, Some(callback));
    format!("{found}{outcome}")
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
        let mut world = build.world(&[Start::Managed(FunctionId(0))]).unwrap();
        writeln!(log, "{generation}").unwrap();
        loop {
            match world.step(0).unwrap() {
                Event::Ended => break,
                Event::Callback(kind) => {
                    let walk = walk(&mut world, 0);
                    writeln!(log, "  {}: {walk}", CallbackKind::name(kind)).unwrap();
                }
                Event::Stepped | Event::Waits | Event::Hook => {}
            }
        }
        assert_eq!(world.truth(0).unwrap().callers(), []);
    }
    insta::assert_snapshot!(log);
}
