//! A profiler that ships `clr-walker`: the walker at work in a real CLR.
//!
//! ```text
//! CORECLR_ENABLE_PROFILING=1
//! CORECLR_PROFILER={3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11}
//! CORECLR_PROFILER_PATH=…/libclr_recorder.so
//! CLR_RECORDER="mode=sample rate=500 out=app.folded"
//! ```
//!
//! | module | content |
//! |---|---|
//! | `settings` | `CLR_RECORDER`: settings, or the path of a file with settings |
//! | `profiler` | the object that the runtime loads |
//! | `events` | groups of callbacks |
//! | `sample` | profiles |
//! | `check` | second opinions on each walk |
//! | `record` | calls of `DoStackSnapshot` in all situations, written as a file |
//! | `calls` | what the runtime answers in each callback, as text that a simulated runtime can repeat |
//! | `trace` | the calls between the runtime and another profiler |
//! | `output` | where results go |
//!
//! Threads, code, signals and names are [`clr_sampler`]'s: a profiler to copy. The recorder has modes of it.
//!
//! For Linux and Windows on x64; elsewhere the library is empty.
#![cfg(all(any(target_os = "linux", windows), target_arch = "x86_64"))]

mod calls;
mod check;
mod events;
mod output;
mod profiler;
mod record;
mod sample;
mod settings;
mod trace;

/// Counts the allocations that `mode=check` reports.
#[global_allocator]
static ALLOCATOR: clr_sampler::allocations::Counting = clr_sampler::allocations::Counting;

#[cfg(test)]
mod tests {
    use clr_sampler::allocations::{Watch, made};
    use std::hint::black_box;

    #[test]
    fn allocations_of_the_watched_thread_are_counted() {
        let other = std::thread::spawn(|| {
            while made() == 0 {
                drop(black_box(vec![0_u8; 9]));
            }
        });
        let watch = Watch::this_thread();
        assert_eq!(made(), 0, "other threads may allocate");
        drop(black_box(Box::new(5)));
        assert_eq!(made(), 2);
        drop(watch);
        drop(black_box(Box::new(5)));
        assert_eq!(made(), 2);
        other.join().unwrap();
    }

    /// The offsets at which the parts of a file are mapped in the process, in hexadecimal.
    #[cfg(target_os = "linux")]
    fn offsets(path: &str) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let lines = maps.lines().filter(|line| line.ends_with(path));
        lines.map(|line| line.split_whitespace().nth(2).unwrap().to_owned()).collect()
    }

    /// ClrMD takes the mapped header of the runtime's library for the runtime, in a dump of a process.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_first_page_of_a_mapped_file_is_a_copy() {
        use clr_sampler::os::map_file;
        for size in [1, 4096, 4097, 30_000] {
            let name = format!("clr-recorder-map-{}-{size}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let bytes: Vec<u8> = (0..251).cycle().take(size).collect();
            std::fs::write(&path, &bytes).unwrap();
            let path = path.to_str().unwrap();
            assert_eq!(map_file(path), Some(&*bytes));
            let expected: &[&str] = if size > 4096 { &["00001000"] } else { &[] };
            assert_eq!(offsets(path), expected);
            std::fs::remove_file(path).unwrap();
        }
        assert_eq!(map_file("/nonexistent"), None);
    }
}
