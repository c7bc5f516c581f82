//! Dumps cut down to the pages that a verdict needs: the fixtures `dumps/NAME.core.gz`.

use crate::collection::Dump;
use clr_dump::{CoreDump, Mapping, Missing, Module, NoFiles, StoppedProcess, System, Thread};
use clr_inspect::{
    Diagnosis, ExplicitFrame, FrameKind, InspectError, Runtime, StackWalker, Verdict,
};
use clr_recording::vectors::decompress;
use clr_unwind::{Memory, Unreadable};
use flate2::Compression;
use flate2::read::GzEncoder;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Mutex;

pub(crate) const PAGE: u64 = 0x1000;
/// Size of a fixture at most, decompressed, in bytes.
pub(crate) const LIMIT: usize = 8 << 20;

/// A process that remembers the pages which were read.
pub(crate) struct Watched<'p> {
    process: &'p CoreDump<'p>,
    pages: Mutex<BTreeSet<u64>>,
}

impl<'p> Watched<'p> {
    pub(crate) fn new(process: &'p CoreDump<'p>) -> Self {
        Self { process, pages: Mutex::default() }
    }

    /// Returns the pages that were read.
    pub(crate) fn pages(self) -> BTreeSet<u64> {
        self.pages.into_inner().unwrap()
    }

    /// Takes the pages of some bytes as read.
    pub(crate) fn note(&self, address: u64, len: usize) {
        let last = address.saturating_add(len.max(1) as u64 - 1);
        let mut pages = self.pages.lock().unwrap();
        pages.extend((address / PAGE..=last / PAGE).map(|page| page * PAGE));
    }
}

impl Memory for Watched<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.note(address, buffer.len());
        self.process.read(address, buffer)
    }
}

impl StoppedProcess for Watched<'_> {
    fn system(&self) -> System {
        self.process.system()
    }

    fn threads(&self) -> &[Thread] {
        self.process.threads()
    }

    fn modules(&self) -> &[Module<'_>] {
        self.process.modules()
    }

    fn mappings(&self) -> &[Mapping] {
        self.process.mappings()
    }

    fn auxiliary(&self, key: u64) -> Option<u64> {
        self.process.auxiliary(key)
    }

    fn missing(&self, address: u64) -> Option<Missing> {
        self.process.missing(address)
    }

    fn read_constant(&self, address: u64, buffer: &mut [u8]) -> Result<(), Missing> {
        self.note(address, buffer.len());
        self.process.read_constant(address, buffer)
    }
}

/// What is found in a dump: the runtime's threads with their Frames, and the hang.
pub(crate) fn examine<P: StoppedProcess>(process: &P, code: &CoreDump<'_>) -> (String, Verdict) {
    let runtime = Runtime::find(process);
    let threads = runtime.as_ref().map_err(|error| *error).and_then(|it| it.threads(process));
    let known: Result<&Runtime, InspectError> = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(process, code.code_map(), known.ok());
    let found = Diagnosis::of(process, known, &mut walker);
    let verdict = found.verdict();
    (format!("{threads:#x?}\n{found:#x?}"), verdict)
}

/// Returns a core with the notes of another one, and with those of its pages that are wanted.
fn cut(core: &[u8], process: &CoreDump<'_>, pages: &BTreeSet<u64>) -> Vec<u8> {
    let word = |at: usize| u64::from_le_bytes(core[at..at + 8].try_into().unwrap());
    let (first, count) = (word(32) as usize, u16::from_le_bytes([core[56], core[57]]));
    let headers = (0..usize::from(count)).map(|index| first + 56 * index);
    let notes: Vec<_> = headers.filter(|at| core[*at] == 4).collect();
    let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
    for page in pages {
        let mut bytes = vec![0; PAGE as usize];
        if !process.is_dumped(*page) || process.read(*page, &mut bytes).is_err() {
            continue;
        }
        match runs.last_mut() {
            Some((start, run)) if *start + run.len() as u64 == *page => run.extend(bytes),
            _ => runs.push((*page, bytes)),
        }
    }
    let count = notes.len() + runs.len();
    let mut result = core[..64].to_vec();
    result[32..40].copy_from_slice(&64_u64.to_le_bytes());
    result[40..48].fill(0);
    result[56..58].copy_from_slice(&(count as u16).to_le_bytes());
    result[58..64].fill(0);
    let mut body = Vec::new();
    let start = 64 + 56 * count as u64;
    let header = |kind: u32, address: u64, offset: u64, size: u64| {
        let words = [offset, address, 0, size, size, 1];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        kind.to_le_bytes().into_iter().chain([4, 0, 0, 0]).chain(words).collect::<Vec<u8>>()
    };
    for at in notes {
        let (offset, size) = (word(at + 8) as usize, word(at + 32) as usize);
        result.extend(header(4, 0, start + body.len() as u64, size as u64));
        body.extend(&core[offset..offset + size]);
    }
    for (address, bytes) in runs {
        result.extend(header(1, address, start + body.len() as u64, bytes.len() as u64));
        body.extend(bytes);
    }
    result.extend(body);
    result
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/dumps").join(name)
}

/// Writes the fixture, if that is wanted.
pub(crate) fn bless(name: &str, dump: &[u8]) {
    if std::env::var_os("CLR_BLESS").is_some() {
        let mut packed = Vec::new();
        GzEncoder::new(dump, Compression::best()).read_to_end(&mut packed).unwrap();
        std::fs::write(fixture(name), packed).unwrap();
    }
}

/// `CLR_BLESS=1` writes the fixtures.
#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn cut_dumps_are_those_of_the_collection() {
    for dump in Dump::all() {
        let process = dump.open_alone();
        let watched = Watched::new(&process);
        for module in process.modules() {
            // Their headers and notes.
            watched.note(module.range.start, 2 * PAGE as usize);
        }
        let expected = examine(&watched, &process);
        let pages = watched.pages();
        let core = cut(&dump.core(), &process, &pages);
        assert!(core.len() < LIMIT);
        let again = CoreDump::open(&core, &NoFiles).unwrap();
        assert_eq!(examine(&again, &again), expected, "{}", dump.name);
        let name = format!("{}.core.gz", dump.name);
        bless(&name, &core);
        let packed = std::fs::read(fixture(&name)).unwrap();
        println!("{}: {:?}, {} pages, {}", dump.name, expected.1, pages.len(), packed.len());
        assert!(decompress(&packed, LIMIT).unwrap() == core, "{}", dump.name);
    }
}

/// The fixtures with the numbers of `expected.json` and ClrMD: of threads, and of those that the runtime knows, and the verdict without any
/// file of the process. The descriptor of .NET 9 and 10 is in libcoreclr.so alone, so that the runtime is unknown.
const FIXTURES: [(&str, usize, Option<usize>, Verdict); 6] = [
    ("10.0.15-idle", 12, None, Verdict::Open),
    ("10.0.15-shutdown", 13, None, Verdict::Proved),
    ("11.0.0-names", 11, Some(5), Verdict::Proved),
    ("8.0.34-walked", 12, Some(5), Verdict::Open),
    ("9.0.23-allocated", 12, None, Verdict::Open),
    ("9.0.23-joined", 13, None, Verdict::Proved),
];

#[test]
fn a_cut_dump_has_its_threads_and_its_verdict() {
    for (name, count, managed, verdict) in FIXTURES {
        let packed = clr_fixtures::get(&format!("dumps/{name}.core.gz")).unwrap();
        let core = decompress(packed, LIMIT).unwrap();
        let process = CoreDump::open(&core, &NoFiles).unwrap();
        let runtime = Runtime::find(&process).ok();
        let list = runtime.map(|runtime| runtime.threads(&process).unwrap());
        assert_eq!(list.as_ref().map(|list| list.end), managed.map(|_| Ok(())), "{name}");
        let threads = list.map(|list| list.threads);
        assert_eq!(threads.as_ref().map(Vec::len), managed, "{name}");
        assert_eq!(
            (process.threads().len(), examine(&process, &process).1),
            (count, verdict),
            "{name}"
        );
        for thread in threads.iter().flatten() {
            let is_named = |frame: &ExplicitFrame| matches!(frame.kind, FrameKind::Named(_));
            assert!(thread.frames.iter().all(is_named) && thread.frames_end == Ok(()), "{name}");
            assert!(process.thread(thread.os_id).is_some() || thread.state.has_ended(), "{name}");
        }
    }
}

/// Numbers without order, from a number.
fn scattered(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Most damage is done to headers and notes, whose end is before this place.
const HEADERS: u64 = 0x6000;

#[test]
fn four_hundred_mutants_of_dumps_are_survived() {
    let all = clr_fixtures::all().iter();
    let fixtures = all.filter(|fixture| fixture.name.starts_with("dumps/")).count();
    let mut seed = 1;
    for mutant in 0..400_u64 {
        let mut input = vec![(mutant % fixtures as u64) as u8];
        for _ in 0..=scattered(&mut seed) % 4 {
            let among_headers = !scattered(&mut seed).is_multiple_of(4);
            let place = scattered(&mut seed) % if among_headers { HEADERS } else { 1 << 30 };
            let value = match scattered(&mut seed) % 4 {
                0 => 0,
                1 => u64::MAX,
                2 => scattered(&mut seed) << 12,
                _ => scattered(&mut seed),
            };
            let count = 1 << (scattered(&mut seed) % 4);
            input.extend((place as u32).to_le_bytes());
            input.push(count);
            input.extend(&value.to_le_bytes()[..count.into()]);
        }
        clr_tests::fuzz::dump(&input);
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        assert!(peak < 1 << 20, "{peak} KiB");
    }
}
