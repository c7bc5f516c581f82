//! Fuzz targets of files. Random bytes hardly ever begin as a file does, so that they are taken for changes to a
//! seed, too.

use super::readers::{lint_images, read_trace};
use super::{examine_pe_image, examine_recording, examine_vector_file, native};

macro_rules! seeds {
    ($($path:literal),*) => { [$(include_bytes!(concat!("../../../fuzz/seeds/", $path))),*] };
}

/// Parses `data` as a PE image, examines its content, and unwinds from the first and last byte of its functions.
/// Does the same with a changed image.
///
/// # Panics
/// As [`unwind_info`](super::unwind_info) does; also if a look-up in the image contradicts its sections or symbols.
pub fn pe_image(data: &[u8]) {
    let seeds: [&[u8]; 3] = seeds!["pe_image/minimal", "pe_image/coff_symbols", "pe_image/exports"];
    with_changes(data, &seeds, examine_pe_image);
}

/// Parses `data` as an ELF image and as a Mach-O image, examines its content, and unwinds from the first and last
/// byte of its functions. Does the same with a changed image.
///
/// # Panics
/// As [`eh_frame`](super::eh_frame) does; also if a look-up in the image contradicts its sections or symbols.
pub fn elf_image(data: &[u8]) {
    let seeds: [&[u8]; 3] =
        seeds!["elf_image/shared_object", "elf_image/mach_o", "elf_image/mach_o_object"];
    with_changes(data, &seeds, native::examine_images);
}

/// Parses `data` as a file of vectors and as one of fuzz records, compressed or not, and replays its content. Does
/// the same with a changed file.
///
/// # Panics
/// If two ways to read the same bytes disagree, or a replay does not repeat.
pub fn vector_file(data: &[u8]) {
    let seeds: [&[u8]; 2] = seeds!["vector_file/asm_chained", "vector_file/fuzz_kind_3"];
    with_changes(data, &seeds, examine_vector_file);
}

/// Parses `data` as an image of any format, and judges the unwind data of all of its functions, on one thread and on two. Does
/// the same with a changed image.
///
/// # Panics
/// If the two reports differ.
pub fn lint(data: &[u8]) {
    let image = |name| clr_fixtures::get(name).expect("the fixture exists");
    let shared_object: [&[u8]; 1] = seeds!["elf_image/shared_object"];
    let [shared_object] = shared_object;
    let seeds = [
        image("win64/img/gcc_O2.dll"),
        image("win64/img/clang_O2_lld.dll"),
        image("macho/sample.dylib"),
        shared_object,
    ];
    with_changes(data, &seeds, lint_images);
}

/// Parses `data` as a trace, prints it, compares it with itself, and makes its program. Does the same with a changed trace.
///
/// # Panics
/// If a trace differs from itself.
pub fn trace(data: &[u8]) {
    let thrown: &[u8] =
        include_bytes!("../../../walker/trace/src/program/thrown_on_two_threads.8.0.34.jsonl");
    with_changes(data, &[thrown], read_trace);
}

/// Parses `data` as a recording, and replays its first walks. Does the same with a changed
/// recording.
///
/// # Panics
/// If the code under test panics.
pub fn recording(data: &[u8]) {
    let seeds: [&[u8]; 2] = seeds!["recording/any.jsonl", "recording/net9-unix.jsonl"];
    with_changes(data, &seeds, examine_recording);
}

/// Examines `data`; and, if its first byte is the number of a seed, that one [`changed`] as the other bytes say.
fn with_changes(data: &[u8], seeds: &[&[u8]], examine: fn(&[u8])) {
    match data.split_first() {
        Some((number, changes)) if usize::from(*number) < seeds.len() => {
            examine(&changed(seeds[usize::from(*number)], changes));
        }
        _ => examine(data),
    }
}

/// Returns `seed` with the changes that `data` describes:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0, 1 | distance from the end of the change before, modulo the file's length |
/// | 2 | low half: number of bytes that are inserted; high half: number of bytes that they replace |
/// | then | the bytes, and the next change |
fn changed(seed: &[u8], mut data: &[u8]) -> Vec<u8> {
    let (mut file, mut at) = (seed.to_vec(), 0);
    while let Some((&[low, high, counts], rest)) = data.split_first_chunk() {
        at = (at + usize::from(u16::from_le_bytes([low, high]))) % (file.len() + 1);
        let (inserted, rest) = rest.split_at(rest.len().min((counts & 15).into()));
        let end = file.len().min(at + usize::from(counts >> 4));
        file.splice(at..end, inserted.iter().copied());
        (at, data) = (at + inserted.len(), rest);
    }
    file
}
