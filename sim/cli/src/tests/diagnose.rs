use super::*;
use crate::tests::fields::fields;
use writer::CoreWriter;

#[expect(dead_code, reason = "images are for other tests")]
#[path = "../../../../walker/dump/src/tests/writer.rs"]
mod writer;

/// Two mutexes.
const MUTEXES: [u64; 2] = [0x5000, 0x5040];

/// Returns a core of threads 7, 8 and 9, which wait for mutexes with these owners.
pub(super) fn core(wanted: [usize; 3], owners: [u32; 2], timeout: u64) -> Vec<u8> {
    let mut core = CoreWriter::default();
    for (id, mutex) in (7_u32..).zip(wanted) {
        let mut status = vec![0; 336];
        status[32..36].copy_from_slice(&id.to_le_bytes());
        // Places in `struct user_regs_struct`: r10, rdx, rsi, rdi, orig_rax.
        for (place, value) in
            [(7, timeout), (12, 2), (13, 0x80), (14, MUTEXES[mutex]), (15, 202_u64)]
        {
            status[112 + 8 * place..][..8].copy_from_slice(&value.to_le_bytes());
        }
        core = core.note(1, &status);
    }
    for (mutex, owner) in MUTEXES.into_iter().zip(owners) {
        let words = [2, 0, owner, 1, 0];
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        core = core.page(mutex, &bytes);
    }
    core.write()
}

#[test]
fn the_verdict_is_in_the_exit_code() {
    let folder = Folder::new();
    for (name, core, code) in [
        ("proved", core([0, 1, 0], [8, 7], 0), 1),
        ("fits", core([0, 1, 0], [8, 7], 1), 3),
        ("itself", core([0, 0, 0], [8, 0], 0), 1),
        ("chain", core([0, 1, 1], [8, 0], 0), 3),
    ] {
        let path = folder.write("core", &core);
        let answer = folder.clrsim(&["diagnose", &path]);
        assert_eq!((answer.code, answer.err.as_str()), (code, ""), "{name}");
        insta::assert_snapshot!(format!("diagnose_{name}"), answer.out);
    }
    let path = folder.write("core", b"no dump");
    assert_eq!(folder.clrsim(&["diagnose", &path]).code, 2);
}

#[test]
fn a_second_dump_says_what_has_moved() {
    let folder = Folder::new();
    let dumps = [("free", core([0, 1, 0], [8, 0], 0)), ("fits", core([0, 1, 0], [8, 7], 1))];
    let [free, fits] = dumps.map(|(name, core)| folder.write(name, &core));
    let moved = folder.clrsim(&["diagnose", &free, &fits]);
    assert_eq!(moved.code, 3);
    assert!(moved.out.contains("have moved between the dumps: 1"), "{}", moved.out);
    let still = folder.clrsim(&["diagnose", &fits, &fits]);
    assert!(still.out.contains("verdict fits"), "{}", still.out);
}

#[test]
fn json_has_the_fields_of_the_help() {
    let folder = Folder::new();
    let path = folder.write("core", &core([0, 1, 0], [8, 7], 1));
    let answer = folder.clrsim(&["diagnose", "--json", &path]);
    let object: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(object["verdict"], "fits");
    assert_eq!(object["circles"][0]["waits"][1]["from"], 8);
    assert_eq!(object["followers"][0]["kind"], "mutex");
    let help = clrsim(&["diagnose", "--help"]).out;
    let (_, described) = help.split_once("JSON:").unwrap();
    let mut names = BTreeSet::new();
    fields(&object, &mut names);
    for name in names.iter().filter(|name| *name != "schema") {
        assert!(described.contains(name.as_str()), "{name}");
    }
}
