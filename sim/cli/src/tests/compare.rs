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
        (&["compare", &late, "--format", "folded"], "cannot be walked on net10-windows"),
        (&["compare", &late, "--policy", "best"], "invalid value 'best'"),
        (&["compare", SEEDS, "--json", "--format", "folded"], "cannot be used with"),
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

#[test]
fn stacks_are_folded() {
    let on = ["--on", "net10-windows", "--format", "folded"];
    let folded = |policies: &str| new(&[&on[..], &["--policy", policies]].concat()).out;
    let whole = "coreclr.dll!CallDescrWorkerInternal;App.Main;App.Foo;coreclr.dll!JIT_New";
    assert_eq!(folded("truth"), format!("{whole} 1\n"));
    assert_eq!(folded("truth,seeded"), format!("{whole} 2\n"));
    assert_eq!(folded("unseeded"), "[snapshot];[not-unwound] 1\n");
    let walk = ["show", "clr/win31-async-alloc.walks.jsonl.gz", "--case", "5"];
    insta::assert_snapshot!("folded_walk", clrsim(&[&walk[..], &on[2..]].concat()).text());
    let vector = ["show", "win64/vec/gcc_O2.vec.gz", "--case", "7"];
    insta::assert_snapshot!("folded_vector", clrsim(&[&vector[..], &on[2..]].concat()).text());
    let record = ["show", "win64/diff/fuzz.bin.gz", "--case", "7"];
    let answer = clrsim(&[&record[..], &on[2..]].concat());
    assert!(answer.code == 0 && answer.out.ends_with(" 1\n"), "{answer:?}");
}

/// Checks a file with sampled profiles against
/// <https://www.speedscope.app/file-format-schema.json>.
fn check_speedscope(file: &Value) {
    let only = |value: &Value, allowed: &[&str], needed: &[&str]| {
        let object = value.as_object().unwrap();
        assert!(object.keys().all(|key| allowed.contains(&key.as_str())), "{value}");
        assert!(needed.iter().all(|key| object.contains_key(*key)), "{value}");
    };
    let top = ["$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"];
    only(file, &top, &["$schema", "shared", "profiles"]);
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    for frame in frames {
        only(frame, &["name", "file", "line", "col"], &["name"]);
        assert!(frame["name"].is_string() && frame.get("file").is_none_or(Value::is_string));
    }
    let profiles = file["profiles"].as_array().unwrap();
    assert!((file["activeProfileIndex"].as_u64().unwrap() as usize) < profiles.len());
    let fields = ["type", "name", "unit", "startValue", "endValue", "samples", "weights"];
    for profile in profiles {
        only(profile, &fields, &fields);
        assert_eq!(profile["type"], "sampled");
        let units = ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"];
        assert!(units.contains(&profile["unit"].as_str().unwrap()));
        let (samples, weights) = (&profile["samples"], profile["weights"].as_array().unwrap());
        assert_eq!(samples.as_array().unwrap().len(), weights.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        let (start, end) = (&profile["startValue"], &profile["endValue"]);
        assert_eq!(end.as_u64().unwrap() - start.as_u64().unwrap(), sum);
        for sample in samples.as_array().unwrap() {
            let mut indices = sample.as_array().unwrap().iter();
            assert!(indices.all(|index| (index.as_u64().unwrap() as usize) < frames.len()));
        }
    }
}

#[test]
fn stacks_are_written_for_speedscope() {
    let on = ["--on", "net10-windows", "--format", "speedscope"];
    let answer = new(&[&on[..], &["--policy", "truth,unseeded,seeded"]].concat());
    check_speedscope(&serde_json::from_str(&answer.out).unwrap());
    insta::assert_snapshot!("speedscope", answer.text());
    let walk = ["show", "clr/win31-async-alloc.walks.jsonl.gz", "--case", "5"];
    for args in [
        &["compare", SEEDS, "--format", "speedscope"][..],
        &[&walk[..], &["--format", "speedscope"]].concat(),
        &["show", "win64/vec/gcc_O2.vec.gz", "--format", "speedscope"],
    ] {
        let answer = clrsim(args);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let file: Value = serde_json::from_str(&answer.out).unwrap();
        check_speedscope(&file);
        assert!(!file["shared"]["frames"].as_array().unwrap().is_empty(), "{args:?}");
    }
    // Leaf last: the order of their samples.
    let file: Value = serde_json::from_str(&answer.out).unwrap();
    let leaf = file["profiles"][0]["samples"][0].as_array().unwrap().last().unwrap();
    let leaf = &file["shared"]["frames"][leaf.as_u64().unwrap() as usize];
    assert_eq!((&leaf["name"], &leaf["file"]), (&"JIT_New".into(), &"coreclr.dll".into()));
}
