use super::*;
use crate::{NoFiles, StoppedProcess as _};
use clr_unwind::Memory as _;

/// Returns a core with something of each kind, and its file.
fn whole() -> (Vec<u8>, Vec<u8>) {
    let file = Image::file(1);
    let auxiliary: Vec<u8> =
        [33_u64, 0x5000, 0, 0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let core = CoreWriter::default().thread(1, 0, 0).note(2, &[0; 512]).note(6, &auxiliary);
    let core = Image::map(core, "/image.so").page(Image::BASE, &file[..0x1000]);
    (core.page(0x5000, &file[..0x300]).write(), file)
}

/// Reads what can be read.
fn read_all(dump: &CoreDump<'_>) {
    for page in 0..8 {
        for at in [0, 0x10, 0x100, 0x800, 0xFF9] {
            let address = Image::BASE + 0x1000 * page + at;
            let read = dump.read_u64(address);
            let known = (0..8).all(|byte| dump.missing(address + byte).is_none());
            assert_eq!(read.is_ok(), known, "{address:#x}");
        }
    }
    for module in dump.modules() {
        let _ = module.symbol(dump, "exported");
    }
}

#[test]
fn a_dump_that_was_cut_off_is_an_error_with_its_place() {
    let (core, _) = whole();
    assert!(CoreDump::open(&core, &NoFiles).is_ok());
    for len in 0..core.len() {
        let error = CoreDump::open(&core[..len], &NoFiles).unwrap_err();
        match error {
            DumpError::NotACore => assert!(len < 64, "{len}"),
            DumpError::ProgramHeaders { offset } => assert!(offset == 64 && len < 64 + 56 * 3),
            DumpError::Truncated { offset, size, end } => {
                assert!(offset + size > len as u64 && end == len as u64, "{len}");
            }
            error => panic!("{len}: {error}"),
        }
    }
}

#[test]
fn segments_that_overlap_are_refused() {
    let core = CoreWriter::default().thread(1, 0, 0).page(0x1000, &[0; 16]).page(0x100F, &[0; 16]);
    let core = core.write();
    let DumpError::Segment { address, offset } = CoreDump::open(&core, &NoFiles).unwrap_err()
    else {
        panic!()
    };
    assert_eq!((address, offset), (0x100F, core.len() as u64 - 16));
    let core = CoreWriter::default().thread(1, 0, 0).page(u64::MAX - 3, &[0; 5]).write();
    assert!(matches!(CoreDump::open(&core, &NoFiles), Err(DumpError::Segment { .. })));
}

#[test]
fn a_damaged_byte_of_a_dump_is_no_panic() {
    let (mut core, file) = whole();
    for at in 0..core.len() {
        let byte = core[at];
        for damaged in [0, 0xFF, byte ^ 1, byte ^ 0x80] {
            core[at] = damaged;
            if let Ok(dump) = try_open(&core, "/image.so", &file) {
                read_all(&dump);
            }
        }
        core[at] = byte;
    }
}

#[test]
fn a_damaged_byte_of_a_file_is_no_panic() {
    let (core, mut file) = whole();
    for at in 0..file.len() {
        let byte = file[at];
        for damaged in [0, 0xFF, byte ^ 1, byte ^ 0x80] {
            file[at] = damaged;
            read_all(&open(&core, "/image.so", &file));
        }
        file[at] = byte;
    }
}
