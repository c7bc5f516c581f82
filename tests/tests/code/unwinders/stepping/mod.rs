//! Unwinding at every instruction of real libraries, compared with the true callers.
//!
//! On Linux x86-64 a C++ program ([`external`], `program.cpp`) is stepped by ptrace through libc,
//! libstdc++, libgcc, libm and the dynamic linker: sorting with callbacks, formatting, copying,
//! allocation, mathematics, exceptions, nested signals and signals on their own stack, longjmp.
//! [`shadow`] records the registers that each call must return with. At every instruction, the
//! caller that is found must be the one that the return then shows, in rip, rsp and all preserved
//! registers; for an interrupted caller, in all registers.
//!
//! [`vectors`] has recorded steps of such a run, for other hosts (`CLR_RECORD_STEPS=FILE cargo test
//! -p clr-tests --test code stepping::record -- --ignored` records new ones).

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod external;
mod shadow;
mod vectors;

use crate::unwinders::*;
use clr_unwind::{Gpr, Registers};

fn recorded() -> (Vec<vectors::Image>, Vec<vectors::Vector>) {
    let file = clr_fixtures::get("dwarf/debian12.steps.jsonl.gz").unwrap();
    let text = decompress(file, DECOMPRESSED_LIMIT).unwrap();
    vectors::parse(str::from_utf8(&text).unwrap()).unwrap()
}

/// Rewrites the vectors.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
#[ignore = "writes to the file that CLR_RECORD_STEPS names"]
fn record() {
    external::record();
}

#[test]
fn recorded_steps_find_the_same_callers() {
    let (images, vectors) = recorded();
    assert_eq!(vectors::wrong_ones(&images, &vectors), [""; 0]);
    let mut of_images = BTreeMap::new();
    for vector in &vectors {
        *of_images.entry(images[vector.image].name.as_str()).or_insert(0) += 1;
    }
    println!("{of_images:?}");
    assert!(of_images.len() >= 6 && vectors.len() > 3000, "{of_images:?}");
    let signals = vectors.iter().filter(|vector| vector.began == shadow::Began::Signal);
    assert!(signals.count() > 0);
}

/// A caller that differs in any significant register must be found to be wrong.
#[test]
fn wrong_callers_are_reported() {
    let (images, vectors) = recorded();
    for (n, vector) in vectors.iter().enumerate().step_by(97) {
        let mut one = vector.clone();
        one.caller.set(Gpr::R12, one.caller.get(Gpr::R12) ^ 1);
        assert_eq!(vectors::wrong_ones(&images, &[one]).len(), 1, "{n}");
        let caller = Registers { rip: vector.caller.rip + 1, ..vector.caller };
        let one = vectors::Vector { caller, ..vector.clone() };
        assert_eq!(vectors::wrong_ones(&images, &[one]).len(), 1, "{n}");
    }
}

#[test]
fn lines_are_read_as_they_were_written() {
    let (images, vectors) = recorded();
    let lines: Vec<String> = images
        .iter()
        .map(vectors::Image::to_line)
        .chain(vectors.iter().map(vectors::Vector::to_line))
        .collect();
    assert_eq!(vectors::parse(&lines.join("\n")), Ok((images, vectors)));
}
