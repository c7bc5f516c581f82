//! The runtime in dumps, as ClrMD has it.

use crate::collection::{Dump, number};
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{CodeKind, FrameKind, MethodNames, Mode, Runtime, StackFrame, StackWalker};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the Frames of a thread as ClrMD prints them: it has a Frame twice if it walks through it.
fn frames(thread: &Value) -> Vec<(u64, String)> {
    let stack = thread["stack"].as_array().unwrap();
    let frames = stack.iter().filter(|frame| frame["kind"] == "frame");
    let mut frames: Vec<_> = frames
        .map(|frame| (number(&frame["sp"]), frame["frame"].as_str().unwrap().to_owned()))
        .collect();
    frames.dedup();
    frames
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn threads_and_frames_are_those_of_clrmd() {
    let (mut count, mut frame_count) = (0, 0);
    for dump in Dump::all() {
        let (process, known) = (dump.open(), dump.json("clrmd"));
        let runtime = Runtime::find(&process).unwrap();
        let list = runtime.threads(&process).unwrap();
        assert_eq!(list.end, Ok(()));
        let known = known["threads"].as_array().unwrap();
        assert_eq!(list.threads.len(), known.len(), "{}", dump.name);
        let store = list.store;
        assert_eq!(store.count as usize, known.len());
        let by_id: BTreeMap<_, _> = list.threads.iter().map(|it| (it.os_id, it)).collect();
        for known in known {
            let thread = by_id[&(known["os_id"].as_u64().unwrap() as u32)];
            let context = || format!("{} {}", dump.name, thread.os_id);
            assert_eq!(thread.address, number(&known["address"]), "{}", context());
            assert_eq!(u64::from(thread.id), known["managed_id"].as_u64().unwrap());
            assert_eq!(u64::from(thread.state.0), number(&known["state"]), "{}", context());
            let mode =
                if known["mode"] == "cooperative" { Mode::Cooperative } else { Mode::Preemptive };
            assert_eq!(thread.mode, mode, "{}", context());
            let flags = known["flags"].as_array().unwrap();
            let is_background = flags.iter().any(|flag| flag == "Background");
            assert_eq!(thread.state.is_background(), is_background, "{}", context());
            assert_eq!(store.suspender == Some(thread.address), known["gc"] == true);
            assert_eq!(store.finalizer == Some(thread.address), known["finalizer"] == true);
            assert_eq!(thread.frames_end, Ok(()), "{}", context());
            let expected = frames(known);
            assert_eq!(thread.frames.len(), expected.len(), "{} {expected:x?}", context());
            for (frame, (address, name)) in thread.frames.iter().zip(&expected) {
                assert_eq!(frame.address, *address, "{}", context());
                let is_named = matches!(frame.kind, FrameKind::Named(kind) if kind == name);
                assert!(is_named, "{} {frame:x?} {name}", context());
                frame_count += 1;
            }
            // A thread that has ended without the runtime is in its list until somebody looks.
            let has_ended = process.thread(thread.os_id).is_none();
            assert_eq!(thread.state.has_ended(), has_ended, "{}", context());
            count += 1;
        }
    }
    println!("{count} threads, {frame_count} Frames");
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn exceptions_are_those_of_clrmd() {
    let mut thrown = 0;
    for dump in Dump::all() {
        let (process, known) = (dump.open(), dump.json("clrmd"));
        let runtime = Runtime::find(&process).unwrap();
        let mut names = MethodNames::new(&process, &runtime).unwrap();
        for thread in runtime.threads(&process).unwrap().threads {
            let mut known = known["threads"].as_array().unwrap().iter();
            let known = known.find(|it| it["os_id"] == thread.os_id).unwrap();
            let Ok(object) = thread.last_thrown else {
                assert!(dump.name.starts_with("8."), "{:?}", thread.last_thrown);
                continue;
            };
            let exception = object.map(|object| {
                let found = names.exception(runtime.descriptor(), object).unwrap();
                format!("{}: {}", found.class, found.message.unwrap_or_default())
            });
            assert_eq!(exception.as_deref(), known["exception"].as_str(), "{}", dump.name);
            thrown += usize::from(exception.is_some());
        }
    }
    assert_eq!(thrown, 3);
}

/// The profiler asks for threads and stack snapshots, that of `names` for compilations and their inlining, too.
#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn the_event_mask_is_that_of_the_profiler() {
    for dump in Dump::all() {
        let process = dump.open();
        let mask = Runtime::find(&process).unwrap().event_mask(&process);
        if dump.name.starts_with("8.") || dump.name.starts_with("9.") {
            assert!(mask.is_err(), "{mask:?}");
        } else {
            let asked = if dump.name.ends_with("names") { 0x1004_0220 } else { 0x1000_0200 };
            assert_eq!(mask, Ok(asked), "{}", dump.name);
        }
    }
}

/// Returns true if ClrMD has this frame. Below an InlinedCallFrame, it takes the address from there, which that of ready-to-run code
/// does not keep up to date: the call is a few instructions away, in the same frame. Its start is that of a method's first body, which
/// may be another one than that which executes: code of the next tier, or code that replaced a loop.
fn is_same(frame: &StackFrame, method: &Value, before: &Value) -> bool {
    let (ip, sp, start) = (number(&method["ip"]), number(&method["sp"]), number(&method["start"]));
    let (rip, rsp) = (frame.registers.rip, frame.registers.rsp());
    let is_inlined_call = before["frame"] == "InlinedCallFrame" && before["ip"] == method["ip"];
    let is_near = is_inlined_call && rip > start && rip.abs_diff(ip) < 64;
    let is_right_kind = match frame.code {
        CodeKind::Jitted { method: desc, start: found } => {
            let is_right_body = found == start || found.abs_diff(rip) < start.abs_diff(rip);
            is_right_body && desc == number(&method["method_desc"]) && method["compiled"] == "Jit"
        }
        CodeKind::ReadyToRun { method: desc, start: found } => {
            found == start && desc == number(&method["method_desc"]) && method["compiled"] == "Ngen"
        }
        _ => false,
    };
    rsp == sp && (rip == ip || is_near) && is_right_kind
}

/// Compares the name of a method, without its signature.
fn assert_name(names: &mut MethodNames<'_, CoreDump<'_>>, code: CodeKind, known: &Value) {
    let (CodeKind::Jitted { method, .. } | CodeKind::ReadyToRun { method, .. }) = code else {
        panic!("{code:?}");
    };
    let name = names.name(method).unwrap();
    let (expected, _) = known["method"].as_str().unwrap().split_once('(').unwrap();
    assert_eq!(name.to_string(), expected);
    assert_eq!(u64::from(name.token), number(&known["token"]), "{expected}");
    assert_eq!(name.module.rsplit('/').next(), known["module"].as_str(), "{expected}");
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn managed_frames_are_those_of_clrmd() {
    let (mut same, mut lost) = (0, 0);
    for dump in Dump::all() {
        let (process, known) = (dump.open(), dump.json("clrmd"));
        let runtime = Runtime::find(&process).unwrap();
        let mut names = MethodNames::new(&process, &runtime).unwrap();
        let mut walker = StackWalker::new(&process, process.code_map(), Some(&runtime));
        for known in known["threads"].as_array().unwrap() {
            let id = known["os_id"].as_u64().unwrap() as u32;
            let Some(thread) = process.thread(id) else { continue };
            let stack = walker.walk(&thread.registers);
            let is_whole = stack.end.is_root();
            assert!(
                is_whole,
                "{} {id}: {:x?} after {:x?}",
                dump.name,
                stack.end,
                stack.frames.last()
            );
            let is_managed = |frame: &&StackFrame| {
                matches!(frame.code, CodeKind::Jitted { .. } | CodeKind::ReadyToRun { .. })
            };
            let mut rest = stack.frames.iter();
            let mut before = &Value::Null;
            for known in known["stack"].as_array().unwrap() {
                let is_method = known["kind"] == "method" && known["sp"] != "0x0";
                if is_method && let Some(frame) = rest.find(|it| is_same(it, known, before)) {
                    assert_name(&mut names, frame.code, known);
                    same += 1;
                } else if is_method {
                    let frames = stack.frames.iter().filter(is_managed);
                    let found: Vec<_> =
                        frames.map(|it| (it.registers.rsp(), it.registers.rip, it.code)).collect();
                    println!("{} {id}: {known} not in {found:x?}", dump.name);
                    lost += 1;
                    break;
                }
                before = known;
            }
            let managed = stack.frames.iter().filter(is_managed).count();
            let methods = known["stack"].as_array().unwrap().iter();
            let methods = methods.filter(|it| it["kind"] == "method" && it["sp"] != "0x0").count();
            assert_eq!(managed, methods, "{} {id}: none more", dump.name);
        }
    }
    println!("{same} managed frames, {lost} stacks with a lost one");
    assert_eq!(lost, 0);
}
