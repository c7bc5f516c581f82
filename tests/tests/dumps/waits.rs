//! What threads wait for, and the circles that come of it.

use crate::collection::{Dump, number};
use clr_dump::{StoppedProcess as _, Wait};
use serde_json::Value;

/// Compares the words that threads wait for, the owners of mutexes, and the threads that are joined.
#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names"]
fn waits_are_as_expected() {
    let (mut mutexes, mut joins, mut words) = (0, 0, 0);
    for dump in Dump::all() {
        let process = dump.open_alone();
        for expected in dump.json("expected")["threads"].as_array().unwrap() {
            let thread = process.thread(expected["tid"].as_u64().unwrap() as u32).unwrap();
            let context = || format!("{} {}", dump.name, thread.id);
            let (wait, futex) = (Wait::of(&process, thread), &expected["futex"]);
            match wait.unwrap() {
                Wait::Mutex { address, owner } => {
                    assert_eq!(address, number(&futex["address"]), "{}", context());
                    assert_eq!(Some(owner.into()), futex["owner"].as_u64(), "{}", context());
                    mutexes += 1;
                }
                Wait::Thread { id } => {
                    assert_eq!(Some(id.into()), futex["joins"].as_u64(), "{}", context());
                    joins += 1;
                }
                Wait::Word { address, value } => {
                    assert_eq!(address, number(&futex["address"]), "{}", context());
                    assert_eq!(value.map(Into::into), futex["word"].as_u64(), "{}", context());
                    let named = [&futex["owner"], &futex["joins"]];
                    assert_eq!(named, [&Value::Null; 2], "{}", context());
                    words += 1;
                }
                Wait::Call { .. } => assert_eq!(*futex, Value::Null, "{}", context()),
            }
        }
    }
    println!("{mutexes} mutexes, {joins} joins, {words} words");
}
