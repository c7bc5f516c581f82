//! Expectations written anew.

use super::*;

fn wrong() -> String {
    BARRIER.replace("frame \"App.Main+0x30\" rsp=0x1fe050", "frame \"App.Bar\"")
}

#[test]
fn the_change_is_shown_and_written() {
    let folder = Folder::new();
    let wrong = wrong();
    let path = folder.write("a/wrong.kdl", wrong.as_bytes());
    folder.write("a/right.kdl", BARRIER.as_bytes());
    let all = folder.path("a");
    let dry = folder.clrsim(&["run", "--bless", "--dry-run", &all]);
    insta::assert_snapshot!("dry", dry.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), wrong);
    let json = folder.clrsim(&["run", "--bless", "--dry-run", "--json", &all]);
    let lines: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("changed"), [false, true]);
    assert_eq!(of("written"), [false, false]);
    let shown = lines[1]["patch"].as_str().unwrap();
    assert!(dry.out.starts_with(shown), "{shown}");
    let blessed = folder.clrsim(&["run", "--bless", &all]);
    assert_eq!(blessed.out, dry.out.replace("would change", "changed"));
    let new = fs::read_to_string(&path).unwrap();
    assert!(new.contains("frame \"App.Main+0x30\" rsp=0x1fe050"), "{new}");
    assert_eq!(folder.clrsim(&["run", &all]).code, 0);
    let again = folder.clrsim(&["run", "--bless", &all]);
    assert_eq!((again.code, again.out.as_str()), (0, "changed: 0 of 2 scenarios\n"));
}

#[test]
fn only_the_runtimes_that_are_named_are_blessed() {
    let folder = Folder::new();
    let path = folder.write("wrong.kdl", wrong().as_bytes());
    assert_eq!(folder.clrsim(&["run", "--bless", "--on", "net10", &path]).code, 0);
    assert_eq!(folder.clrsim(&["run", "--on", "net10", &path]).code, 0);
    assert_eq!(folder.clrsim(&["run", "--on", "framework", &path]).code, 1);
}

#[test]
fn some_texts_cannot_be_blessed() {
    let folder = Folder::new();
    let broken = folder.write("broken.kdl", b"stack { mode \"none\" }");
    let unreached = "function \"a\" kind=\"jit\"\nstop after=1000 { snapshot }\n";
    let unreached = folder.write("unreached.kdl", unreached.as_bytes());
    let mut text = String::new();
    for args in [
        &["run", "--bless"][..],
        &["run", "--dry-run", &broken],
        &["run", "--bless", &broken],
        &["run", "--bless", "--on", "net10-windows", &unreached],
    ] {
        let answer = folder.clrsim(args);
        assert_eq!(answer.code, 2, "{args:?}");
        text += &answer.err;
    }
    insta::assert_snapshot!("refusals", without_layout(&text));
}

/// A call that cannot be made with its seed is no result to expect.
#[test]
fn a_call_without_its_seed_is_not_blessed() {
    let folder = Folder::new();
    let text = "function \"App.Main\" kind=\"jit\" { body { new } }
function \"App.Other\" kind=\"jit\"
stop at=\"AllocateObject\" {
    snapshot by=\"native-walker\" seed=\"App.Other\" { expect on=\"windows\" { result \"E_FAIL\" } }
}
";
    let path = folder.write("seed.kdl", text.as_bytes());
    let answer = folder.clrsim(&["run", "--bless", "--on", "net8-windows", &path]);
    assert_eq!(answer.code, 2, "{}", answer.text());
    insta::assert_snapshot!(answer.err, @"error: DIR/seed.kdl: cannot be run on net8-windows: thread main has no activation of App.Other for the seed there");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// The results of walks at the stops of a program are written too.
#[test]
fn walks_are_blessed() {
    let folder = Folder::new();
    let text = String::from_utf8(super::super::fixture("programs/tail_call.kdl").to_vec()).unwrap();
    let wrong =
        text.replace("frame \"worker\" trust=\"prologue\"", "frame \"worker\" trust=\"body\"");
    assert_ne!(wrong, text);
    let path = folder.write("wrong.kdl", wrong.as_bytes());
    assert_eq!(folder.clrsim(&["run", &path]).code, 1);
    let shown = folder.clrsim(&["run", "--bless", &path]);
    assert_eq!(shown.code, 0);
    assert!(shown.out.contains("-        frame \"worker\" trust=\"body\"\n"), "{}", shown.out);
    assert!(shown.out.ends_with("changed: 1 of 1 scenarios\n"), "{}", shown.out);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(folder.clrsim(&["run", &path]).code, 0);
}
