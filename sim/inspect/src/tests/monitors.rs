//! Threads that wait for monitors.

use super::hang::{Call, diagnose, waits};
use super::threads::{Process, TABLE};
use crate::{Cause, Evidence, Verdict};

/// Stacks of threads 100 and 101, the table of sync blocks, objects, locks.
const STACKS: [u64; 2] = [0x4_0000, 0x4_1000];
const ENTRIES: u64 = 0x4_2000;
const OBJECTS: [u64; 2] = [0x4_3008, 0x4_3048];
const BLOCKS: [u64; 2] = [0x4_4000, 0x4_4040];
const LOCKS: [u64; 2] = [0x4_5008, 0x4_5048];
const HANDLES: [u64; 2] = [0x4_6000, 0x4_6008];
/// A word that is known to be what threads wait for.
const WORD: u64 = 0x2_0080;

/// Adds two objects with sync blocks 1 and 2.
fn add_objects(process: &mut Process) {
    process.put(TABLE, ENTRIES).add(ENTRIES, 0x40).add(OBJECTS[0] - 8, 0x80).add(BLOCKS[0], 0x80);
    for index in 0..2_usize {
        let number = index as u64 + 1;
        process.put(OBJECTS[index] - 8, (0x0800_0000 | number) << 32);
        process.put(ENTRIES + 16 * number, BLOCKS[index]);
        process.put(ENTRIES + 16 * number + 8, OBJECTS[index]).add(STACKS[index], 0x100);
    }
}

/// Threads 100 and 101, each waiting for the lock that the other one owns, in .NET 10.
fn native() -> Process {
    let mut process = Process::net10();
    add_objects(&mut process);
    for (index, owner) in [101, 100].into_iter().enumerate() {
        process.put(BLOCKS[index], 0x41 | 1 << 32).put(BLOCKS[index] + 16, owner);
        process.put(BLOCKS[index] + 24, 1 | (0x8000_0001 + index as u64) << 32);
        process.put(STACKS[index] + 0x80, BLOCKS[index]);
    }
    process
}

/// The same in .NET 11, whose locks are objects.
fn managed() -> Process {
    let mut process = Process::net11();
    add_objects(&mut process);
    process.add(LOCKS[0] - 8, 0x80).add(HANDLES[0], 0x10);
    for (index, owner) in [2, 1].into_iter().enumerate() {
        process.put(BLOCKS[index] + 8, HANDLES[index]).put(HANDLES[index], LOCKS[index]);
        process.put(LOCKS[index] + 16, owner | 0x81 << 32);
        process.put(STACKS[index] + 0x80, OBJECTS[index]).put(STACKS[index] + 0x88, LOCKS[index]);
    }
    process
}

fn threads() -> [Call; 2] {
    let waits = |index: usize| {
        let mut call = waits(100 + index as u32, WORD, 0);
        call.stack = STACKS[index];
        call
    };
    [waits(0), waits(1)]
}

#[test]
fn monitors_in_a_circle_are_proved() {
    for process in [native(), managed()] {
        let found = diagnose(process, [0, 0], &threads());
        assert_eq!(found.verdict(), Verdict::Proved);
        let [circle] = found.circles.as_slice() else { panic!("{found:?}") };
        assert_eq!(circle.cause, Cause::Monitors);
        let waits: Vec<_> = circle.edges.iter().map(|it| (it.from, it.to, it.evidence)).collect();
        let evidence = OBJECTS.map(|object| Evidence::Monitor { object });
        assert_eq!(waits, [(100, 101, evidence[0]), (101, 100, evidence[1])]);
    }
}

#[test]
fn a_monitor_is_one_only_if_all_that_names_it_fits() {
    let nothing = |process: Process| {
        assert_eq!(diagnose(process, [0, 0], &threads()).verdict(), Verdict::Nothing);
    };
    let change = |mut process: Process, address: u64, word: u64| {
        process.put(address, word);
        nothing(process);
    };
    // Nobody waits; nobody owns it; the index of another block; a thread that is not known.
    change(native(), BLOCKS[0], 1 | 1 << 32);
    change(native(), BLOCKS[0], 0x40 | 1 << 32);
    change(native(), BLOCKS[0] + 24, 1 | 0x8000_0002 << 32);
    change(native(), BLOCKS[0] + 16, 99);
    // Two locks of another thread on one stack.
    let mut two = native();
    two.put(BLOCKS[1] + 16, 101).put(STACKS[0] + 0x40, BLOCKS[1]);
    nothing(two);
    change(managed(), LOCKS[0] + 16, 2 | 1 << 32);
    change(managed(), LOCKS[0] + 16, 2 | 0x80 << 32);
    change(managed(), LOCKS[0] + 16, 3 | 0x81 << 32);
    change(managed(), OBJECTS[0] - 8, 0x0C00_0001 << 32);
    change(managed(), ENTRIES + 16 + 8, OBJECTS[0] + 8);
    // The object without its lock.
    change(managed(), STACKS[0] + 0x88, 0);
}
