//! Stacks of dumps, as gdb has them of the live processes.

use crate::collection::Dump;
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_unwind::{Convention, Memory as _, Unwinder};

/// A native frame as gdb prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    At(u64),
    /// The frame of a signal, without its address.
    Signal,
}

/// Reads the native frames of each thread until the first one of an unknown module. A frame without an address is where a function
/// was inlined: its caller has the address, or the innermost one.
fn printed(text: &str) -> Vec<(u32, Vec<Printed>)> {
    let mut threads: Vec<(u32, Vec<Printed>)> = Vec::new();
    let mut has_ended = false;
    for line in text.lines() {
        if let Some((_, id)) = line.split_once("(LWP ") {
            threads.push((id.split(')').next().unwrap().parse().unwrap(), Vec::new()));
            has_ended = false;
        }
        let Some(frame) = line.strip_prefix('#') else { continue };
        let frame = frame.split_once(' ').unwrap().1.trim_start();
        has_ended |= frame.contains("in ?? ()") && !frame.contains(" from ");
        if has_ended {
            continue;
        }
        let frames = &mut threads.last_mut().unwrap().1;
        if frame.starts_with("<signal handler called>") {
            frames.push(Printed::Signal);
        } else if let Some(digits) = frame.strip_prefix("0x") {
            let digits = digits.split(' ').next().unwrap();
            frames.push(Printed::At(u64::from_str_radix(digits, 16).unwrap()));
        }
    }
    threads
}

/// Returns true if the address follows a jump to another function. gdb makes a frame of it, by the call sites in DWARF, which is
/// not on the stack.
fn follows_tail_call(process: &CoreDump<'_>, rip: u64) -> bool {
    let mut opcode = [0];
    process.read(rip - 5, &mut opcode).is_ok() && opcode == [0xE9]
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn native_frames_are_those_of_gdb() {
    let (mut same, mut tail_calls) = (0, 0);
    for dump in Dump::all() {
        let process = dump.open();
        let map = process.code_map();
        for (id, expected) in printed(&dump.text("gdb.txt")) {
            let Some(thread) = process.thread(id) else { panic!("{} {id}", dump.name) };
            let unwinder = Unwinder::new(&map).with_convention(Convention::SystemV);
            let walk = unwinder.walk(&thread.registers, &process);
            let found: Vec<_> = walk.map_while(Result::ok).map(|it| it.registers.rip).collect();
            // The first address is printed unless its instruction begins a line.
            let is_first = expected.first() == Some(&Printed::At(found[0]));
            let mut rest = found.iter().skip(usize::from(!is_first)).peekable();
            for frame in &expected {
                match (frame, rest.peek()) {
                    (Printed::At(rip), next)
                        if next != Some(&rip) && follows_tail_call(&process, *rip) =>
                    {
                        tail_calls += 1;
                        continue;
                    }
                    (Printed::At(rip), Some(next)) if rip == *next => {}
                    (Printed::Signal, Some(_)) => {}
                    _ => panic!("{} {id}: {frame:x?} of {expected:x?} in {found:x?}", dump.name),
                }
                rest.next();
                same += 1;
            }
        }
    }
    println!("{same} frames, and {tail_calls} of tail calls");
    assert!(same > 300);
}
