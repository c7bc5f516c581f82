//! A program as a text of the simulator.

use super::{Handlers, Method, Program, Statement, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What calls the first method of the program: it stands for the runtime, or what there is of it in the class library.
const FIRST_CALLER: &str = "System.EntryPoint.CallMain";
/// The one that calls the first method of a thread; threads after the first have a number behind it.
const THREAD_CALLER: &str = "System.EntryPoint.CallThread";

/// Returns the text.
pub(super) fn write(program: &Program, from: &str) -> String {
    let mut text = format!("// Made by clrsim import {from}.\n");
    for lack in &program.lacks {
        let _ = writeln!(text, "// Not in it: {lack}.");
    }
    write_modules(program, &mut text);
    let starts = starts(program);
    for (name, method) in ordered(program) {
        // A method is called, and a thread is started, only by those before it.
        let all = starts.iter().zip(&program.threads);
        let is_its = |caller: &String, thread: &Thread| thread.start == *name && caller != name;
        for (caller, _) in all.filter(|(caller, thread)| is_its(caller, thread)) {
            let _ = writeln!(text, "function {caller:?} kind=\"ready-to-run\" {{");
            let _ = writeln!(text, "    body {{\n        {}\n    }}\n}}", call(program, name));
        }
        write_method(program, name, method, &starts, &mut text);
    }
    for (at, (caller, thread)) in starts.iter().zip(&program.threads).enumerate() {
        let is_started = if at == 0 { "" } else { " by-program=#true" };
        let _ = writeln!(text, "thread {:?} start={caller:?}{is_started}", thread.name);
    }
    if program.has_finalizer {
        text.push_str("thread \"finalizer\" finalizer=#true\n");
    }
    text
}

/// Returns the methods with which threads start: those that call their first ones, or, if these were compiled before the
/// trace, themselves.
fn starts(program: &Program) -> Vec<String> {
    let name = |(at, thread): (usize, &Thread)| match at {
        _ if !is_compiled(program, &thread.start) => thread.start.clone(),
        0 => FIRST_CALLER.to_owned(),
        1 => THREAD_CALLER.to_owned(),
        _ => format!("{THREAD_CALLER}:{at}"),
    };
    program.threads.iter().enumerate().map(name).collect()
}

/// Returns true for a method that the trace has compiled.
fn is_compiled(program: &Program, name: &str) -> bool {
    program.methods.get(name).is_some_and(|method| method.is_compiled)
}

fn write_modules(program: &Program, text: &mut String) {
    let mut modules: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (name, method) in &program.methods {
        // A name may end with a constructor: `App..ctor`.
        let end = name.find("..").or_else(|| name.rfind('.')).unwrap_or_default();
        let class = name.get(..end).unwrap_or_default();
        modules.entry(&method.module).or_default().entry(class).or_default().insert(name);
    }
    for (module, classes) in modules {
        let assembly = module.rsplit_once('.').map_or(module, |(name, _)| name);
        let _ = writeln!(text, "module {module:?} assembly={assembly:?} {{");
        for (class, methods) in classes {
            let _ = writeln!(text, "    type {class:?} {{");
            for method in methods {
                let _ = writeln!(text, "        method {method:?}");
            }
            text.push_str("    }\n");
        }
        text.push_str("}\n");
    }
}

/// Returns the methods, those that call before those that are called.
fn ordered(program: &Program) -> Vec<(&String, &Method)> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for name in &program.order {
        visit(program, name, &mut seen, &mut order);
    }
    order.reverse();
    order
}

fn visit<'p>(
    program: &'p Program,
    name: &'p String,
    seen: &mut BTreeSet<&'p String>,
    order: &mut Vec<(&'p String, &'p Method)>,
) {
    let Some((name, method)) = program.methods.get_key_value(name) else { return };
    if !seen.insert(name) {
        return;
    }
    for statement in &method.body {
        match statement {
            Statement::Call(called)
            | Statement::Guarded(Some(called), _)
            | Statement::Start(called) => visit(program, called, seen, order),
            _ => {}
        }
    }
    order.push((name, method));
}

fn write_method(
    program: &Program,
    name: &str,
    method: &Method,
    starts: &[String],
    text: &mut String,
) {
    let _ = writeln!(text, "function {name:?} kind=\"jit\" {{");
    text.push_str("    push \"rbp\"\n    frame \"rbp\" set=\"after-saves\"\n    body {\n");
    if method.body.is_empty() {
        text.push_str("        work 1\n");
    }
    for statement in &method.body {
        write_statement(program, statement, starts, text);
    }
    text.push_str("    }\n}\n");
}

fn write_statement(program: &Program, statement: &Statement, starts: &[String], text: &mut String) {
    let thread_of = |start: &String| {
        let at = program.threads.iter().skip(1).position(|thread| thread.start == *start);
        at.and_then(|at| starts.get(at + 1)).cloned().unwrap_or_default()
    };
    let line = match statement {
        Statement::Call(called) => call(program, called),
        Statement::Throw => "raise".to_owned(),
        Statement::Collect => "collect".to_owned(),
        Statement::Start(start) => format!("start-thread {:?}", thread_of(start)),
        Statement::Join(start) => format!("join-thread {:?}", thread_of(start)),
        Statement::Guarded(called, handlers) => {
            let inner =
                called.as_ref().map_or_else(|| "raise".to_owned(), |called| call(program, called));
            let _ = writeln!(text, "        guarded {{\n            {inner}\n        }}");
            write_handlers(*handlers, text);
            return;
        }
    };
    let _ = writeln!(text, "        {line}");
}

fn write_handlers(handlers: Handlers, text: &mut String) {
    let Handlers { catches, filters, finallies } = handlers;
    let mut write = |clause: &str| {
        let _ = writeln!(text, "        {clause} {{\n            work 1\n        }}");
    };
    if filters {
        write(if catches { "on-filter" } else { "on-filter accepts=#false" });
    }
    if catches || filters {
        write("on-catch");
    }
    if finallies && !catches && !filters {
        write("on-finally");
    }
}

/// Returns the call of a method.
fn call(program: &Program, name: &str) -> String {
    let word = if is_compiled(program, name) { "first-call" } else { "call" };
    format!("{word} {name:?}")
}
