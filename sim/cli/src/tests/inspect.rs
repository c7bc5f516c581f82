use super::*;

/// Returns a core of one thread, 7, stopped at 0x1111 in the system call 7, outside of any module.
fn core() -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let mut registers = [0; 27];
    // orig_rax, rip and rsp in `struct user_regs_struct`.
    (registers[15], registers[16], registers[19]) = (7, 0x1111, 0x2222);
    let mut note = [5_u32, 336, 1].iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    note.extend(b"CORE\0\0\0\0");
    let status = note.len();
    note.resize(status + 112, 0);
    note[status + 32] = 7;
    note.extend(words(&registers));
    note.extend(words(&[0]));
    let mut core = b"\x7FELF\x02\x01\x01".to_vec();
    core.resize(16, 0);
    core.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    core.extend(words(&[0, 64, 0]));
    core.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    core.extend([4, 0, 0, 0, 0, 0, 0, 0]);
    core.extend(words(&[120, 0, 0, note.len() as u64, 0, 4]));
    core.extend(note);
    core
}

#[test]
fn a_process_without_a_runtime() {
    let folder = Folder::new();
    let path = folder.write("core", &core());
    let answer = folder.clrsim(&["inspect", &path]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    insta::assert_snapshot!("process", answer.out);
}

#[test]
fn what_is_no_dump_is_refused_with_its_place() {
    let folder = Folder::new();
    let mut cut = core();
    cut.truncate(400);
    for (bytes, said) in [
        (&b"no dump"[..], "not an ELF core for x86-64"),
        (&cut, "are beyond the end of the dump (0x190)"),
    ] {
        let path = folder.write("core", bytes);
        let answer = folder.clrsim(&["inspect", &path]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    for verb in ["inspect", "diagnose"] {
        let answer = clrsim(&[verb, "--pid", "2147483647"]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains("process 2147483647"), "{}", answer.err);
        assert_eq!(clrsim(&[verb]).code, 2);
        assert_eq!(clrsim(&[verb, "core", "--pid", "1"]).code, 2);
    }
}

#[test]
fn a_snapshot_needs_a_runtime() {
    let folder = Folder::new();
    let path = folder.write("core", &core());
    let answer = folder.clrsim(&["inspect", &path, "--thread", "7", "--snapshot"]);
    assert_eq!((answer.code, answer.err.as_str()), (3, ""));
    assert!(answer.out.contains("cannot be said: no module is a .NET runtime"), "{}", answer.out);
    let answer = folder.clrsim(&["inspect", &path, "--thread", "0x7"]);
    assert!(answer.code == 0 && answer.out.contains("thread 7"), "{}", answer.out);
    for (args, said) in [
        (&["--thread", "8"][..], "there is no thread 8"),
        (&["--snapshot"], "--thread"),
        (&["--by", "self"], "say how --snapshot is made"),
    ] {
        let args: Vec<_> = ["inspect", &path].iter().chain(args).copied().collect();
        let answer = folder.clrsim(&args);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}

#[test]
fn json_has_the_fields_of_the_help() {
    let folder = Folder::new();
    let path = folder.write("core", &core());
    let answer = folder.clrsim(&["inspect", "--json", &path]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let object: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((&object["system"], &object["threads"][0]["id"]), (&"linux".into(), &7.into()));
    assert_eq!(object["threads"][0]["wait"]["number"], 7);
    assert_eq!(object["threads"][0]["frames"][0]["ip"], "0x1111");
    assert_eq!(object["threads"][0]["cut"], "0x1111 is in no known code");
    assert!(object["unknown"][0].as_str().unwrap().starts_with("the runtime: no module"));
    let help = clrsim(&["inspect", "--help"]).out;
    let (_, described) = help.split_once("JSON:").unwrap();
    let mut names = BTreeSet::new();
    fields::fields(&object, &mut names);
    for name in names.iter().filter(|name| *name != "schema") {
        assert!(described.contains(name.as_str()), "{name}");
    }
    let refused = folder.clrsim(&["inspect", "--json", &path, "--thread", "7", "--snapshot"]);
    assert_eq!(refused.code, 2);
}

/// A note of one thread, with as many parts of memory as a header can count, and with more.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_process_of_any_number_of_mappings_is_a_core() {
    use clr_dump::{CoreDump, NoFiles};
    use clr_unwind::Memory as _;
    let notes = core().split_off(64 + 56);
    for count in [65_533_u64, 65_534, 65_535, 70_000] {
        let parts: Vec<_> = (1..=count).map(|at| (at << 12, vec![at as u8; 8])).collect();
        let made = crate::input::live::core(&notes, &parts);
        let process = CoreDump::open(&made, &NoFiles).unwrap();
        let last = u64::from(count as u8) * 0x0101_0101_0101_0101;
        assert_eq!(process.read_u64(count << 12), Ok(last), "{count}");
    }
}
