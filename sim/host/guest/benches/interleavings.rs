//! Benchmark of searches of a small guest, one interleaving after the other, with coverage: the profiler of the C++ chapter, or a
//! library and a text. It needs a C++ compiler.
//!
//! ```console
//! $ cargo bench -p clr-guest --bench interleavings
//! $ cargo bench -p clr-guest --bench interleavings -- libMyProfiler.so text.kdl 5000
//! ```
//!
//! Where it goes (perf, strace, Linux 6.18, the first of these guests on a busy machine, 2,050 µs each):
//!
//! | what | times | µs each | µs |
//! |---|--:|--:|--:|
//! | a copy of this process that ends at once, and the wait for it | 1 | 255 | 255 |
//! | threads that begin and end | 3 | 53 | 160 |
//! | page faults of the copy that copy or clear a page | 123 | 2.2 | 270 |
//! | those that find pages of files, with the pages around | 96 | 1 | 100 |
//! | page faults of this process after a copy | 48 | 1 | 50 |
//! | a thread of the guest asks the scheduler, and gets the answer | 84 | 3.7 | 310 |
//! | code that is not the kernel's | | | 600 |
//!
//! The times of a fault that copies nothing are estimated; the rest, about 300, are other calls of the system. What did not help: to
//! trim the heap or to have no fast bins (as many faults), and to make the pages of files present before (96 faults less,
//! and as much time more for copies of page tables).
//!
//! The times are processor time, of this process and of its copies. The digest is of all ends with their coverage: it
//! stays as it is if nothing but the speed has changed.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn main() {
    linux::main();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
fn main() {
    println!("Guests are copied with their processes on Linux alone.");
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod linux {
    use clr_com::Guid;
    use clr_explore::{Random, Search as _};
    use clr_guest::SearchCoverage;
    use clr_guest::scheduled::{Detail, HostedProfiler, fix_addresses, stay_here};
    use clr_machine::Fnv1a;
    use clr_runtime::generation::Generation;
    use std::os::unix::process::CommandExt as _;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    /// Numbers of interleavings: without measuring one is executed.
    const MEASURED: u64 = 2_000;
    const ONCE: u64 = 1;

    pub(super) fn main() {
        if fix_addresses() {
            let tool = std::env::current_exe().expect("the system knows it");
            let failed = Command::new(tool).args(std::env::args_os().skip(1)).exec();
            panic!("{failed}");
        }
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let is_measured = arguments.iter().any(|it| it == "--bench");
        let given: Vec<_> = arguments.iter().filter(|it| !it.starts_with("--")).collect();
        let folder = tempfile::tempdir().expect("a folder for the library");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../example");
        let library =
            given.first().map_or_else(|| compile(&example, folder.path()), |it| PathBuf::from(*it));
        let text =
            given.get(1).map_or_else(|| example.join("deadlock.kdl"), |it| PathBuf::from(*it));
        let text = std::fs::read_to_string(text).expect("a text");
        let usual = if is_measured { MEASURED } else { ONCE };
        let count = given.get(2).map_or(usual, |it| it.parse().expect("a number"));
        let class = Guid::parse("00000000-0000-0000-0000-000000000000").expect("a class");
        let mut visit = HostedProfiler::open(&library, class, &text, Generation::Net8Unix, None)
            .expect("the profiler and the text are right");
        stay_here();
        println!("| interleavings | different | µs of processor time each | per second |");
        println!("| --: | --: | --: | --: |");
        let digest = search(&mut visit, count);
        println!("\nDigest: {digest:016x}.");
    }

    /// Compiles the profiler of the C++ chapter.
    fn compile(example: &Path, to: &Path) -> PathBuf {
        let library = to.join("libdeadlock.so");
        let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        compiler.args(["-std=c++17", "-g", "-shared", "-fPIC", "-pthread", "-I"]);
        compiler.arg(example.join("../include")).arg(example.join("deadlock.cpp"));
        let status = compiler.arg("-o").arg(&library).status().expect("a C++ compiler");
        assert!(status.success(), "{status}");
        library
    }

    /// Executes interleavings, prints the row of the table, and returns the digest of their ends.
    fn search(visit: &mut HostedProfiler, count: u64) -> u64 {
        let (mut search, mut coverage) = (Random::new(0), SearchCoverage::default());
        let mut digest = Fnv1a::default();
        let before = processor_time();
        for number in 0..count {
            assert!(search.begin(number), "a random search has no end");
            match visit.run_in_copy(&mut search, Detail::Ending) {
                Ok(ending) => {
                    coverage.add(ending.digest, &ending.coverage);
                    let (verdict, schedule) = (ending.verdict.unwrap_or_default(), ending.schedule);
                    let words = format!("{verdict} {schedule} {}", ending.coverage.to_line());
                    digest.write(words.as_bytes());
                }
                Err(died) => digest.write(died.to_string().as_bytes()),
            }
        }
        let time = processor_time().saturating_sub(before);
        let each = (time / u32::try_from(count).expect("fewer")).as_secs_f64();
        let different = coverage.different();
        println!("| {count} | {different} | {:.0} | {:.0} |", each * 1e6, 1.0 / each);
        digest.finish()
    }

    /// Returns the processor time of this process and of its children that have ended.
    fn processor_time() -> Duration {
        let of = |whom| {
            // SAFETY: room for the result.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(whom, &raw mut usage);
                usage
            };
            let time = |it: libc::timeval| {
                Duration::from_secs(it.tv_sec.unsigned_abs())
                    + Duration::from_micros(it.tv_usec.unsigned_abs())
            };
            time(usage.ru_utime) + time(usage.ru_stime)
        };
        of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
    }
}
