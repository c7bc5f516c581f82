//! Minidumps cut down to the pages that a verdict needs: the fixtures `dumps/NAME.dmp.gz`.

use crate::cut::{LIMIT, PAGE, Watched, bless, examine};
use crate::imports::hang;
use clr_dump::{CoreDump, NoFiles, StoppedProcess as _, System};
use clr_import::ImportError;
use clr_inspect::{Runtime, Verdict};
use clr_recording::vectors::decompress;
use clr_unwind::Memory as _;
use std::collections::BTreeSet;

/// Size of the header, and of an entry of the directory.
const HEADER: usize = 32;
const ENTRY: usize = 12;
/// Kind of the stream with ranges of 64 bits.
const MEMORY64: u32 = 9;

/// Cuts a minidump down, sees that all comes out as before, and writes the fixture, if that is wanted. `dump`: with all memory, and its
/// ranges at the end, as our writer makes it. `hidden`: texts that are overwritten.
pub(crate) fn cut_down(name: &str, dump: &[u8], hidden: &[String]) {
    let process = CoreDump::open(dump, &NoFiles).unwrap();
    let watched = Watched::new(&process);
    for thread in process.threads() {
        // The dump was opened before: which system call the thread is in.
        watched.note(thread.registers.rip - 32, 32);
    }
    let expected = examine(&watched, &process);
    let pages = watched.pages();
    let mut made = cut(dump, &process, &pages);
    for text in hidden {
        hide(&mut made, text);
    }
    assert!(made.len() < LIMIT);
    let again = CoreDump::open(&made, &NoFiles).unwrap();
    assert_eq!(examine(&again, &again), expected, "{name}");
    check_is_clean(name, &made);
    println!("{name}: {:?}, {} pages", expected.1, pages.len());
    bless(&format!("{name}.dmp.gz"), &made);
}

/// Variables that processes of the tests have, too.
const USUAL: [&str; 3] = ["HOME", "PATH", "USER"];

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Overwrites each occurrence of a text.
fn hide(dump: &mut [u8], text: &str) {
    for (bytes, x) in [(text.as_bytes().to_vec(), &b"x"[..]), (wide(text), b"x\0")] {
        for at in 0..=dump.len() - bytes.len() {
            if dump[at..].starts_with(&bytes) {
                dump[at..at + bytes.len()].copy_from_slice(&x.repeat(text.len()));
            }
        }
    }
}

/// Fails if a dump has a variable of the environment here, or a path below one of the repository.
fn check_is_clean(name: &str, dump: &[u8]) {
    let has = |text: &str| {
        let found = |bytes: &[u8]| dump.windows(bytes.len()).any(|it| it == bytes);
        found(text.as_bytes()) || found(&wide(text))
    };
    let variables = std::env::vars().map(|(key, _)| key);
    for key in variables.filter(|key| !USUAL.contains(&key.as_str())) {
        assert!(!has(&format!("{key}=")), "{name}: {key}");
    }
    for path in [env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")] {
        assert!(!has(path), "{name}: {path}");
    }
}

/// Returns a minidump with the streams of another one, and with those of its pages that are wanted.
fn cut(dump: &[u8], process: &CoreDump<'_>, pages: &BTreeSet<u64>) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().unwrap());
    let mut entries = (0..word(8) as usize).map(|index| HEADER + ENTRY * index);
    let entry = entries.find(|at| word(*at) == MEMORY64).unwrap();
    let stream = word(entry + 8) as usize;
    let mut wanted = Vec::new();
    for page in pages.iter().filter(|page| process.is_dumped(**page)) {
        let mut bytes = vec![0; PAGE as usize];
        process.read(*page, &mut bytes).unwrap();
        wanted.push((*page, bytes));
    }
    let size = 16 + 16 * wanted.len();
    let mut made = dump[..stream].to_vec();
    made[entry + 4..entry + 8].copy_from_slice(&(size as u32).to_le_bytes());
    let ranges = wanted.iter().flat_map(|(page, _)| [*page, PAGE]);
    let words = [wanted.len() as u64, (stream + size) as u64].into_iter().chain(ranges);
    made.extend(words.flat_map(u64::to_le_bytes));
    made.extend(wanted.into_iter().flat_map(|(_, bytes)| bytes));
    made
}

#[test]
fn a_cut_minidump_has_its_threads_and_its_verdict() {
    for version in ["10.0.15", "11.0.0"] {
        let packed = clr_fixtures::get(&format!("dumps/{version}-monitors.dmp.gz")).unwrap();
        let dump = decompress(packed, LIMIT).unwrap();
        let process = CoreDump::open(&dump, &NoFiles).unwrap();
        assert_eq!(process.system(), System::Windows);
        let runtime = Runtime::find(&process).unwrap();
        let list = runtime.threads(&process).unwrap();
        assert_eq!((list.end, list.threads.len()), (Ok(()), 4), "{version}");
        assert!(list.threads.iter().all(|thread| thread.frames_end == Ok(())), "{version}");
        assert_eq!(examine(&process, &process).1, Verdict::Proved, "{version}");
        assert_eq!(hang(&process).unwrap_err(), ImportError::Monitors, "{version}");
    }
}
