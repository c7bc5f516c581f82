//! The fuzz target of dumps: cores and minidumps.

use clr_dump::{CachedBytes, CoreDump, DumpBytes, NoFiles, StoppedProcess as _, Wait};
use clr_inspect::{Diagnosis, MethodNames, Runtime, StackWalker};
use clr_recording::vectors::decompress;
use clr_unwind::Memory as _;
use std::sync::LazyLock;

/// Size of a fixture at most, decompressed, in bytes.
const LIMIT: usize = 8 << 20;
/// Threads whose stacks are walked at most.
const STACKS: usize = 16;

/// The dumps of the fixtures.
static DUMPS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let fixtures = clr_fixtures::all().iter().filter(|it| it.name.starts_with("dumps/"));
    fixtures.map(|it| decompress(it.bytes, LIMIT).expect("fixtures can be decompressed")).collect()
});

/// Bytes that are not in memory as a slice.
#[derive(Debug)]
struct Elsewhere<'d>(&'d [u8]);

impl DumpBytes for Elsewhere<'_> {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        buffer.copy_from_slice(self.0.get(usize::try_from(offset).ok()?..)?.get(..buffer.len())?);
        Some(())
    }
}

/// Opens `data` as a dump, and reads the runtime, the stacks and the hang in it. If the first byte is the number of a fixture, the
/// dump is that one, some of its bytes replaced, so that most headers stay valid:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0 to 3 | place of the bytes, modulo the dump's size |
/// | 4 | low half: their number |
/// | then | the bytes, and the next change |
///
/// # Panics
/// If the code under test panics, or finds in a dump elsewhere another thing than in memory.
pub fn dump(data: &[u8]) {
    match data.split_first() {
        Some((number, changes)) if usize::from(*number) < DUMPS.len() => {
            examine(&changed(&DUMPS[usize::from(*number)], changes));
        }
        _ => examine(data),
    }
}

fn changed(dump: &[u8], mut changes: &[u8]) -> Vec<u8> {
    let mut dump = dump.to_vec();
    while let Some((&[p0, p1, p2, p3, count], rest)) = changes.split_first_chunk() {
        let (bytes, rest) = rest.split_at(rest.len().min((count & 15).into()));
        let at = u32::from_le_bytes([p0, p1, p2, p3]) as usize % dump.len();
        for (place, byte) in dump[at..].iter_mut().zip(bytes) {
            *place = *byte;
        }
        changes = rest;
    }
    dump
}

fn examine(data: &[u8]) {
    let cached = CachedBytes::new(Elsewhere(data));
    let elsewhere = CoreDump::open_bytes(&cached, &NoFiles);
    let dump = match (CoreDump::open(data, &NoFiles), &elsewhere) {
        (Ok(dump), Ok(elsewhere)) => {
            for thread in dump.threads() {
                let address = thread.registers.rsp();
                assert_eq!(dump.read_u64(address), elsewhere.read_u64(address));
            }
            dump
        }
        (Err(error), Err(elsewhere)) => return assert_eq!(error, *elsewhere),
        (memory, elsewhere) => panic!("{:?} but {:?}", memory.err(), elsewhere.as_ref().err()),
    };
    for thread in dump.threads() {
        let _ = Wait::of(&dump, thread);
    }
    for module in dump.modules() {
        let _ = module.symbol(&dump, "coreclr_initialize");
    }
    let runtime = Runtime::find(&dump);
    let known = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(&dump, dump.code_map(), known.ok());
    let mut names = known.ok().and_then(|runtime| MethodNames::new(&dump, runtime).ok());
    for thread in dump.threads().iter().take(STACKS) {
        for frame in walker.walk(&thread.registers).frames {
            if let Some(names) = &mut names {
                let _ = names.name(frame.registers.rip);
            }
        }
    }
    let found = Diagnosis::of(&dump, known, &mut walker);
    let _ = (found.verdict(), found.followers());
}
