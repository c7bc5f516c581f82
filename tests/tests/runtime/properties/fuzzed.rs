//! Properties for any input: the result is an answer or an error, never a panic or an endless loop.

use clr_recording::vectors::{DECOMPRESSED_LIMIT, decompress};
use clr_tests::{cases, fuzz};
use clr_unwind::{CONTEXT_SIZE, PeImage, Registers};
use proptest::array::{uniform4, uniform8, uniform10, uniform12, uniform16};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;
use std::path::Path;

fn config(normal: u32) -> ProptestConfig {
    ProptestConfig {
        cases: cases(normal),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x5EED ^ clr_tests::seed()),
        ..ProptestConfig::default()
    }
}

fn bytes_of(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

/// Length of the code in an input of `unwind_info`, after which the unwind data begins.
const INFOS: u32 = 0x100;
const INFO_LEN: usize = 0x40;

/// Generates nearly valid inputs of `unwind_info`: four functions, four unwind infos.
fn unwind_input() -> impl Strategy<Value = Vec<u8>> {
    let function = (0_u32..INFOS, 0_u32..0x80, 0_u32..20).prop_map(|(begin, len, info)| {
        // Some entries are indirect, or point elsewhere.
        let info = match info {
            n @ 0..16 => INFOS + (n % 4) * INFO_LEN as u32,
            16 | 17 => INFOS | 1,
            n => n,
        };
        [begin, begin + len, info]
    });
    let header = (0_u32..INFOS, any::<u32>(), any::<u32>());
    (header, uniform4(function), uniform4(unwind_info()), uniform16(any::<u64>())).prop_map(
        |((pc, how, seed), mut functions, infos, code)| {
            let [registers, stack, ..] = how.to_le_bytes();
            let [pc_low, pc_high, ..] = pc.to_le_bytes();
            let mut input = vec![pc_low, pc_high, registers & 0xF0 | 4, stack];
            input.extend(seed.to_le_bytes());
            functions.sort_unstable();
            input.extend(bytes_of(&functions.concat()));
            let code = code.iter().flat_map(|word| word.to_le_bytes());
            input.extend(code.clone().chain(code).map(likely_code));
            for (info, parent) in infos.into_iter().zip(functions) {
                let mut info = [info, bytes_of(&parent)].concat();
                info.resize(INFO_LEN, 0xCC);
                input.extend(info);
            }
            input
        },
    )
}

/// Turns many bytes into those of epilogues.
fn likely_code(byte: u8) -> u8 {
    const EPILOGUE: [u8; 12] =
        [0x5B, 0x5D, 0x41, 0x5C, 0xC3, 0x48, 0x83, 0xC4, 0xEB, 0xF2, 0xFF, 0x8D];
    EPILOGUE.get(usize::from(byte / 16)).copied().unwrap_or(byte)
}

/// Generates a header and some slots of random operations, most of which exist.
fn unwind_info() -> impl Strategy<Value = Vec<u8>> {
    (any::<u32>(), any::<u32>(), uniform12(any::<u32>())).prop_map(|(header, rare, slots)| {
        let [version, prologue, count, frame] = header.to_le_bytes();
        let common_version = version & !7 | if version & 7 < 5 { 1 } else { 2 };
        let version = if rare % 16 == 0 { version } else { common_version };
        let count = if rare / 16 % 16 == 0 { count } else { count % 13 };
        // Half of the functions have no frame register.
        let frame = if frame & 0x80 == 0 { 0 } else { frame << 1 };
        let mut info = vec![version, prologue & 0x1F, count, frame];
        for slot in slots {
            let [offset, op_info, op, rare] = slot.to_le_bytes();
            let op = if rare == 0 { op & 15 } else { op % 11 };
            info.extend([offset & 0x1F, op_info & 0xF0 | op]);
        }
        info
    })
}

/// A change of some bytes.
#[derive(Clone, Copy, Debug)]
struct Damage {
    kind: u32,
    at: u32,
    value: u64,
}

fn damage() -> impl Strategy<Value = Damage> {
    (0_u32..8, any::<u32>(), any::<u64>()).prop_map(|(kind, at, value)| Damage { kind, at, value })
}

impl Damage {
    /// Damages `bytes`, half of the time near their start, where the headers are.
    fn apply(self, bytes: &mut Vec<u8>) {
        let Self { kind, at, value } = self;
        let len = bytes.len() as u32;
        let range = if at & 1 == 0 { len } else { len.min(0x400) };
        let Some(at) = (at >> 1).checked_rem(range) else { return };
        let interesting = [0, 1, 4, 0xFF, 0x1000, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX];
        let chosen = interesting[(value >> 61) as usize];
        let (value, len) = match kind {
            0 => (u64::from(bytes[at as usize] ^ 1 << (value % 8)), 1),
            1 => (value, 1),
            2 => (value % 0x100, 4),
            3 => (value % 0x4000, 4),
            4 => (chosen, 2),
            5 => (chosen, 4),
            6 => (chosen, 8),
            _ => {
                // Truncation, which seldom removes most of the bytes.
                let keep = at.max(u32::try_from(value % u64::from(len)).unwrap_or(0));
                bytes.truncate(keep as usize);
                return;
            }
        };
        for (byte, value) in bytes.iter_mut().skip(at as usize).zip(value.to_le_bytes()).take(len) {
            *byte = value;
        }
    }
}

/// Returns a copy of `bytes` with the first `count` of these damages.
fn damaged(bytes: &[u8], damages: &[Damage], count: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in damages.iter().take(count as usize) {
        damage.apply(&mut bytes);
    }
    bytes
}

const IMAGES: [&str; 3] = ["clang_O2_lld", "cpp_gcc_O2", "gcc_O2"];

fn image(name: &str) -> &'static [u8] {
    clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap()
}

/// Returns one of the seeds of a fuzz target.
fn seed(target: &str, n: u32) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    std::fs::read(&paths[n as usize % paths.len()]).unwrap()
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn any_unwind_data_is_survived(input in unwind_input()) {
        fuzz::unwind_info(&input);
    }

    #[test]
    fn any_bytes_are_survived(words in uniform16(any::<u64>())) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fuzz::unwind_info(&bytes);
        fuzz::pe_image(&bytes);
        fuzz::vector_file(&bytes);
        fuzz::eh_frame(&bytes);
        fuzz::elf_image(&bytes);
        fuzz::dump(&bytes);
        fuzz::compact_unwind(&bytes);
    }

    #[test]
    fn a_context_gives_back_what_was_written(
        rip in any::<u64>(),
        gpr in uniform16(any::<u64>()),
        xmm in uniform10(any::<[u64; 2]>()),
        alignment in 0_u32..16,
        fill in any::<u8>(),
    ) {
        let xmm = xmm.map(|[low, high]| u128::from(low) | u128::from(high) << 64);
        let registers = Registers { rip, gpr, xmm };
        let at = alignment as usize;
        let mut bytes = vec![fill; at + CONTEXT_SIZE + 16];
        registers.write_context(&mut bytes[at..]).unwrap();
        prop_assert_eq!(Registers::from_context(&bytes[at..]), Ok(registers));
        let outside = bytes[..at].iter().chain(&bytes[at + CONTEXT_SIZE..]);
        prop_assert!(outside.copied().all(|byte| byte == fill));
        // The result does not depend on the previous content.
        let mut other = vec![!fill; CONTEXT_SIZE];
        registers.write_context(&mut other).unwrap();
        prop_assert_eq!(Registers::from_context(&other), Ok(registers));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_damaged_image_is_survived(
        name in 0_u32..3,
        damages in uniform8(damage()),
        count in 0_u32..9,
    ) {
        let image = damaged(image(IMAGES[name as usize]), &damages, count);
        fuzz::pe_image(&image);
    }

    #[test]
    fn damaged_call_frame_information_is_survived(
        n in 0_u32..1000,
        damages in uniform8(damage()),
        count in 0_u32..9,
    ) {
        fuzz::eh_frame(&damaged(&seed("eh_frame", n), &damages, count));
        fuzz::elf_image(&damaged(&seed("elf_image", n), &damages, count));
        fuzz::compact_unwind(&damaged(&seed("compact_unwind", n), &damages, count));
    }

    #[test]
    fn a_damaged_file_of_vectors_is_survived(
        damages in uniform4(damage()),
        count in 0_u32..5,
        fuzz_records in any::<bool>(),
    ) {
        // Only the first records are used, with the count corrected, so that the damage takes
        // effect.
        let bytes = SAMPLES.with(|samples| samples[usize::from(fuzz_records)].clone());
        fuzz::vector_file(&damaged(&bytes, &damages, count));
    }
}

thread_local! {
    /// The first few vectors and fuzz records, as files.
    static SAMPLES: [Vec<u8>; 2] = [
        first_records("win64/vec/gcc_O2.vec.gz", 32, 20, 4),
        first_records("win64/diff/fuzz.bin.gz", 16, 8, 4),
    ];
}

/// Returns the file with only the first `count` records, whose number is at `count_at` in the
/// header.
fn first_records(name: &str, header: usize, count_at: usize, count: u32) -> Vec<u8> {
    let bytes = decompress(clr_fixtures::get(name).unwrap(), DECOMPRESSED_LIMIT).unwrap();
    let mut end = header;
    for _ in 0..count {
        let len: [u8; 4] = bytes[end..][..4].try_into().unwrap();
        end += u32::from_le_bytes(len) as usize;
    }
    let mut bytes = bytes[..end].to_vec();
    bytes[count_at..][..4].copy_from_slice(&count.to_le_bytes());
    bytes
}

#[test]
fn damage_leaves_some_images_readable() {
    // Otherwise the property above would test headers only.
    let (readable, all) = (Cell::new(0), Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(config(300));
    let strategy = (uniform8(damage()), 1_u32..9);
    let result = runner.run(&strategy, |(damages, count)| {
        let image = damaged(image("gcc_O2"), &damages, count);
        readable.set(readable.get() + u32::from(PeImage::parse(&image).is_ok()));
        all.set(all.get() + 1);
        Ok(())
    });
    result.unwrap();
    let (readable, all) = (readable.get(), all.get());
    assert!(all < 50 || (all / 5..all).contains(&readable), "{readable} of {all}");
}

#[test]
fn samples_are_whole() {
    use clr_recording::vectors::fuzz::FuzzFile;
    use clr_recording::vectors::win64::VectorFile;
    SAMPLES.with(|[vectors, records]| {
        let (vectors, records) =
            (VectorFile::parse(vectors).unwrap(), FuzzFile::parse(records).unwrap());
        assert_eq!((vectors.len(), records.len()), (4, 4));
        assert!(vectors.iter().all(|vector| vector.is_ok()));
        assert!(records.iter().all(|record| record.is_ok()));
    });
}

/// Nearly all damaged files of vectors are refused at once: what is behind the first checks is reached by those that are repaired.
#[test]
fn repaired_files_of_vectors_are_read() {
    let (refused, repaired, all) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(config(300));
    let strategy = (uniform4(damage()), 1_u32..5, any::<bool>(), any::<bool>());
    let result = runner.run(&strategy, |(damages, count, fuzz_records, compressed)| {
        let whole = SAMPLES.with(|samples| samples[usize::from(fuzz_records)].clone());
        let file = if compressed { gzip(&whole) } else { whole.clone() };
        let file = damaged(&file, &damages, count);
        let content = if compressed {
            decompress(&file, DECOMPRESSED_LIMIT).unwrap_or_default()
        } else {
            file.clone()
        };
        refused.set(refused.get() + u32::from(!fuzz::is_readable(&content)));
        let file = fuzz::repaired(&file, DECOMPRESSED_LIMIT);
        // What is readable is still damaged.
        repaired.set(repaired.get() + u32::from(fuzz::is_readable(&file) && file != whole));
        all.set(all.get() + 1);
        Ok(())
    });
    result.unwrap();
    let (refused, repaired, all) = (refused.get(), repaired.get(), all.get());
    println!("{refused} of {all} are refused, {repaired} of them repaired are read");
    assert!(all < 30 || repaired * 10 > all * 6, "{refused} and {repaired} of {all}");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
