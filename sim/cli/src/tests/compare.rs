//! Frames found by each kind of profiler.

use super::*;

/// Native code that managed code has called.
const SEEDS: &str = "gallery/seeds/hole-at-the-leaf.kdl";
/// The text that `clrsim new` writes.
const NEW: &str = include_str!("../commands/new/stack.kdl");

fn new(args: &[&str]) -> super::Answer {
    let folder = Folder::new();
    let path = folder.write("my.kdl", NEW.as_bytes());
    folder.clrsim(&[&["compare", &path], args].concat())
}

fn comparisons(args: &[&str]) -> Vec<Value> {
    let answer = clrsim(&[&["compare", "--json"], args].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_stacks_of_policies_are_shown_side_by_side() {
    insta::assert_snapshot!("stack", new(&[]).text());
    let some = ["--on", "net10-windows,net10-unix", "--policy", "seeded,frame-pointers"];
    insta::assert_snapshot!("stack_json", new(&[&some[..], &["--json"]].concat()).text());
}

/// In the example of seeds, walks without a seed lose frames wherever the thread is; walks with a
/// seed find exactly the frames of the stack and claim to be complete.
#[test]
fn the_naive_lose_frames_and_the_documented_lose_none() {
    let all = comparisons(&[SEEDS, "--on", "windows"]);
    let mut stops: Vec<_> = all.iter().map(|one| one["stop"].as_u64().unwrap()).collect();
    stops.dedup();
    assert_eq!(stops, [0, 1]);
    let mut runtimes = 0;
    for one in &all {
        runtimes += one["runtimes"].as_array().unwrap().len();
        let column = |policy: &str| {
            let columns = one["columns"].as_array().unwrap();
            let at = columns.iter().position(|column| column["policy"] == policy).unwrap();
            (at, &columns[at]["complete"])
        };
        let rows = one["rows"].as_array().unwrap();
        assert!(rows.len() >= 5 && rows.iter().all(|row| row["is_there"] == true));
        let seen = |at: usize| rows.iter().filter(|row| !row["seen_by"][at].is_null()).count();
        let (naive, claims) = column("unseeded");
        assert!(2 * seen(naive) < rows.len() && claims == "not-unwound", "{one}");
        let (documented, claims) = column("seeded");
        assert!(seen(documented) == rows.len() && claims == "whole", "{one}");
    }
    assert_eq!(runtimes, 2 * Generations::WINDOWS.iter().count());
}

#[test]
fn texts_that_cannot_be_compared_are_errors() {
    let folder = Folder::new();
    let program = "function \"main\" { body { work 3 } }\n";
    let none = folder.write("none.kdl", program.as_bytes());
    let late = folder.write("late.kdl", format!("{program}stop after=9000\n").as_bytes());
    for (args, error) in [
        (&["compare", &none][..], "stops nowhere: there is nothing to compare"),
        (&["compare", &late, "--stop", "1"], "has 1 stops, counted from 0"),
        (&["compare", &late, "--policy", "best"], "invalid value 'best'"),
    ] {
        let answer = folder.clrsim(args);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{args:?}");
        assert!(answer.err.contains(error), "{args:?}: {}", answer.err);
    }
    let stack = new(&["--stop", "0"]);
    assert!(stack.code == 2 && stack.err.contains("stops nowhere"), "{}", stack.err);
    let answer = folder.clrsim(&["compare", &late]);
    assert!(
        answer.code == 0 && answer.out.contains("thread main does not come to its stop after"),
        "{}",
        answer.out
    );
}
