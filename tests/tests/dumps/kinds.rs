//! One process as each kind of dump.

use crate::collection::{Dump, folder};
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{CodeKind, MethodNames, Runtime, StackWalker};
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// The code of a frame.
#[derive(Clone, Debug)]
enum Code {
    Native,
    Method(String),
    /// A method of an assembly of which the dump does not say which build it was.
    Unnamed,
}

/// A frame: its stack pointer, its address, and its code.
#[derive(Clone, Debug)]
struct Frame {
    place: (u64, u64),
    code: Code,
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        let is_same = match (&self.code, &other.code) {
            (Code::Method(name), Code::Method(other)) => name == other,
            (Code::Native, Code::Native) => true,
            (Code::Native, _) | (_, Code::Native) => false,
            (Code::Unnamed, _) | (_, Code::Unnamed) => true,
        };
        is_same && self.place == other.place
    }
}

type Stack = Vec<Frame>;

/// Returns the stacks of a dump, by thread, with the ends of those that break off.
fn stacks(process: &CoreDump<'_>, name: &str) -> (BTreeMap<u32, Stack>, Vec<String>) {
    let runtime = Runtime::find(process).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut names = MethodNames::new(process, &runtime).unwrap();
    let mut walker = StackWalker::new(process, process.code_map(), Some(&runtime));
    let mut broken = Vec::new();
    let stacks = process.threads().iter().map(|thread| {
        let stack = walker.walk(&thread.registers);
        if !stack.end.is_root() {
            broken.push(format!(
                "{name} {}: {:x?} after {}",
                thread.id,
                stack.end,
                stack.frames.len()
            ));
        }
        let frames = stack.frames.iter().map(|frame| {
            let code = match frame.code {
                CodeKind::Jitted { method, .. } | CodeKind::ReadyToRun { method, .. } => {
                    names.name(method).map_or(Code::Unnamed, |name| Code::Method(name.to_string()))
                }
                _ => Code::Native,
            };
            Frame { place: (frame.registers.rsp(), frame.registers.rip), code }
        });
        (thread.id, frames.collect())
    });
    (stacks.collect(), broken)
}

#[test]
#[ignore = "needs dumps by cases/dumps/dump.sh in the folder that CLR_DUMPS names, and the collection"]
fn each_kind_of_dump_has_the_same_stacks() {
    let (mut same, mut moved, mut frames, mut unnamed) = (0, 0, 0, 0);
    let mut broken = Vec::new();
    let mut folders: Vec<_> =
        fs::read_dir(folder("CLR_DUMPS")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let mut first: Option<BTreeMap<u32, Stack>> = None;
        for dump in Dump::kinds(folder).values() {
            let start = Instant::now();
            let process = dump.open();
            for module in process.modules() {
                if let Err(error) = &module.file {
                    println!("{}: {}: {error}", dump.name, module.path);
                }
            }
            let (found, ends) = stacks(&process, &dump.name);
            println!("{}: {} threads, {:?}", dump.name, found.len(), start.elapsed());
            broken.extend(ends);
            let known = first.get_or_insert_with(|| found.clone());
            for (id, stack) in &found {
                let before = known.get(id).filter(|before| before.first() == stack.first());
                match before {
                    Some(before) => {
                        assert_eq!(before, stack, "{} {id}", dump.name);
                        frames += stack.len();
                        let is_unnamed = |frame: &&Frame| matches!(frame.code, Code::Unnamed);
                        unnamed += stack.iter().filter(is_unnamed).count();
                        same += 1;
                    }
                    // It has run between the dumps.
                    None => moved += 1,
                }
            }
        }
    }
    println!(
        "{same} stacks of {frames} frames are the same, {unnamed} managed ones without a name; \
         {moved} threads have moved"
    );
    assert_eq!(broken, [""; 0]);
    assert!(same > 0);
}
