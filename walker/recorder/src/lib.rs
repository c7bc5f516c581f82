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

    /// ClrMD takes the mapped header of the runtime's library for the runtime, in a dump of a process; and a mapped page that is
    /// no longer in the file ends the process that reads it.
    #[cfg(target_os = "linux")]
    #[test]
    fn bytes_of_files_stay_when_they_are_cut_off() {
        use clr_sampler::os::file_bytes;
        for size in [1, 4096, 4097, 30_000] {
            let name = format!("clr-recorder-file-{}-{size}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let expected: Vec<u8> = (0..251).cycle().take(size).collect();
            std::fs::write(&path, &expected).unwrap();
            let bytes = file_bytes(path.to_str().unwrap()).unwrap();
            std::fs::File::create(&path).unwrap();
            assert!(bytes == expected);
            assert!(offsets(path.to_str().unwrap()).is_empty());
            std::fs::remove_file(path).unwrap();
        }
        assert_eq!(file_bytes("/nonexistent"), None);
    }

    /// What is left out of a copy is nothing that a walk or a name needs.
    #[cfg(target_os = "linux")]
    #[test]
    fn copies_of_images_have_the_same_code_unwind_data_and_names() {
        use clr_sampler::os::file_bytes;
        use clr_unwind::{ElfImage, ImageIdentity};
        let own = std::env::current_exe().unwrap();
        let libc = clr_sampler::os::images().into_iter().find(|it| it.path.contains("libc.so"));
        for path in [own.to_str().unwrap(), &libc.unwrap().path] {
            let (file, copy) = (std::fs::read(path).unwrap(), file_bytes(path).unwrap());
            assert_eq!(copy.len(), file.len());
            assert_eq!(ImageIdentity::of_file(copy), ImageIdentity::of_file(&file));
            let (file, copy) = (ElfImage::parse(&file).unwrap(), ElfImage::parse(copy).unwrap());
            assert_eq!(copy.symbols().as_slice(), file.symbols().as_slice());
            assert_eq!(copy.code(), file.code());
            let cfi = |image: &ElfImage<'_>| {
                let (cfi, rows) = (image.cfi(), |it: clr_unwind::Section<'_>| it.bytes.to_vec());
                (cfi.eh_frame.map(rows), cfi.eh_frame_hdr.map(rows))
            };
            assert!(cfi(&copy) == cfi(&file) && cfi(&copy).0.is_some());
            for range in file.code() {
                let bytes = |image: &ElfImage<'_>| {
                    let from = image.sections().bytes_from(range.start).unwrap();
                    from[..range.len()].to_vec()
                };
                assert!(bytes(&copy) == bytes(&file));
            }
        }
    }
}
