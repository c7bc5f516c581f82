//! Dumps and texts of debuggers, imported.

use super::*;
use crate::tests::diagnose::core;

#[test]
fn a_hang_becomes_threads_and_locks() {
    let folder = Folder::new();
    let path = folder.write("core", &core([0, 1, 0], [8, 7], 0));
    let out = folder.path("hang.kdl");
    let answer = folder.clrsim(&["import", &path, "--on", "net10-unix", "-o", &out]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.contains("not in the source: what the threads did before"),
        "{}",
        answer.out
    );
    insta::assert_snapshot!("import_hang", fs::read_to_string(&out).unwrap());
    let answer = folder.clrsim(&["run", &out]);
    assert_eq!(answer.code, 0, "{}", answer.out);
}

#[test]
fn what_a_dump_lacks_is_said() {
    let folder = Folder::new();
    let path = folder.write("core", &core([0, 0, 0], [9, 0], 0));
    for (args, code, said) in [
        // The runtime is in no path.
        (&[][..], 3, "say which with --on"),
        (&["--thread", "7"], 3, "none exports"),
        (&["--thread", "6"], 3, "none exports"),
    ] {
        let args: Vec<_> = ["import", &path].iter().chain(args).copied().collect();
        let answer = folder.clrsim(&args);
        assert_eq!((answer.code, answer.out.as_str()), (code, ""), "{}", answer.err);
        assert!(answer.err.contains(said), "{}", answer.err);
    }
    let chain = folder.write("chain", &core([0, 1, 1], [8, 0], 0));
    let answer = folder.clrsim(&["import", &chain, "--on", "net10-unix"]);
    assert_eq!(answer.code, 3);
    assert!(answer.err.contains("no threads wait in a circle"), "{}", answer.err);
}

const STACKS: &str = "\
OS Thread Id: 0x5604
        Child SP               IP Call Site
00007FFE072C13A0 00007FAF347B84B1 System.Private.CoreLib.dll!System.Threading.Thread.Sleep(Int32) + 17
OS Thread Id: 0x5661
        Child SP               IP Call Site
00007FAFAD1FBB80 00007FAF35373A5F Shop.Program.SleepForever() [./Hang.cs @ 193]
";

#[test]
fn stacks_of_a_debugger_are_listed_and_written() {
    let folder = Folder::new();
    let path = folder.write("stacks.txt", STACKS.as_bytes());
    let answer = folder.clrsim(&["import", &path]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("2 threads, by clrstack"), "{}", answer.out);
    assert!(answer.out.contains("0x5604: 1 frame\n"), "{}", answer.out);
    let out = folder.path("my.kdl");
    let answer = folder.clrsim(&["import", &path, "--thread", "0x5604", "-o", &out]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("not in the source: native frames"), "{}", answer.out);
    let answer = folder.clrsim(&["run", &out]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    for (args, said) in [
        (&["--thread", "1"][..], "there is no thread 1"),
        (&["--thread", "one"], "such as 999 or 0x3e7"),
        (&["-o", "other.kdl"], "--output needs --thread"),
    ] {
        let args: Vec<_> = ["import", &path].iter().chain(args).copied().collect();
        let answer = folder.clrsim(&args);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}
