use super::*;
use crate::{MappedFileError, Missing, StoppedProcess as _};
use clr_unwind::Memory as _;

const BASE: u64 = Image::BASE;

/// Returns a core of a process with the image loaded, of which it has the first page.
fn core(file: &[u8]) -> CoreWriter {
    Image::map(CoreWriter::loaded(), "/lib/image.so").page(BASE, &file[..0x1000])
}

#[test]
fn the_dump_comes_before_the_file() {
    let file = Image::file(1);
    let core = core(&file).page(BASE + Image::CODE, &[0xCC; 0x800]).write();
    let dump = open(&core, "/lib/image.so", &file);
    let mut bytes = [0; 4];
    // Half of the page is in the dump.
    dump.read(BASE + Image::CODE + 0x7FE, &mut bytes).unwrap();
    assert_eq!(bytes, [0xCC, 0xCC, 0x00, 0x01]);
    assert_eq!(dump.window(BASE + Image::CODE, 2), Some(&[0xCC; 2][..]));
    assert_eq!(dump.window(BASE + Image::CODE + 0x7FF, 2), None);
    let core = self::core(&file).page(BASE + Image::CODE + 0x800, &[0xCC; 0x800]).write();
    let dump = open(&core, "/lib/image.so", &file);
    dump.read(BASE + Image::CODE + 0x7FE, &mut bytes).unwrap();
    assert_eq!(bytes, [0xFE, 0xFF, 0xCC, 0xCC]);
}

#[test]
fn the_dump_says_what_it_has_itself() {
    let file = Image::file(1);
    let core = core(&file).page(BASE + Image::CODE, &[0xCC; 0x800]).write();
    let dump = open(&core, "/lib/image.so", &file);
    assert!(dump.is_dumped(BASE + Image::CODE) && !dump.is_dumped(BASE + Image::CODE + 0x800));
}

#[test]
fn pages_of_the_file_are_relocated() {
    let file = Image::file(1);
    let core = core(&file).write();
    let dump = open(&core, "/lib/image.so", &file);
    assert_eq!(dump.read_u64(BASE + Image::MOVED_BY_RELA), Ok(BASE + 0x1234));
    for address in Image::MOVED_BY_RELR {
        assert_eq!(dump.read_u64(BASE + address), Ok(BASE + (address & 0xFFF)), "{address:#x}");
    }
    // A word of the bitmap without a bit, and one whose bytes are partly relocated.
    assert_eq!(dump.read_u64(BASE + 0x3118), Ok(0x1F1E_1D1C_1B1A_1918));
    assert_eq!(dump.read_u64(BASE + 0x3104), Ok(u64::from(BASE as u32 + 0x108) << 32));
    assert_eq!(dump.read_u64(BASE + Image::CODE), Ok(0x0706_0504_0302_0100));
}

#[test]
fn what_the_process_may_have_changed_is_unknown() {
    let file = Image::file(1);
    let core = core(&file).write();
    let dump = open(&core, "/lib/image.so", &file);
    let changed = Some(Missing::MayHaveChanged);
    for (address, missing) in [
        (Image::MOVED_BY_RELA, None),
        (Image::IMPORTED - 1, None),
        (Image::IMPORTED, changed),
        (Image::IMPORTED + 7, changed),
        (Image::IMPORTED + 8, None),
        (Image::DATA, changed),
        // Zeros at first: memory without bytes in the file.
        (Image::DATA + 0x800, changed),
        (Image::DATA + 0x2000, Some(Missing::NotDumped)),
    ] {
        assert_eq!(dump.missing(BASE + address), missing, "{address:#x}");
    }
    assert!(dump.read_u64(BASE + Image::IMPORTED - 4).is_err());
    assert!(dump.read_u64(BASE + Image::DATA).is_err());
    assert!(dump.read_u64(u64::MAX - 3).is_err());
}

/// Without a loader in the auxiliary vector, the image is one.
#[test]
fn data_of_the_loader_is_unknown_although_it_is_read_only_later() {
    let file = Image::file(1);
    let core = Image::map(CoreWriter::default().thread(1, 0, 0), "/lib/image.so");
    let core = core.page(BASE, &file[..0x1000]).write();
    let dump = open(&core, "/lib/image.so", &file);
    assert_eq!(dump.missing(BASE + Image::MOVED_BY_RELA), Some(Missing::MayHaveChanged));
    assert_eq!(dump.missing(BASE + Image::CODE), None);
}

/// The runtime fills a table among its constants, whose page is a mapping of its own from then on.
#[test]
fn a_page_of_constants_that_was_changed_is_unknown() {
    let file = Image::file_with_large_code(1);
    let (path, start) = ("/lib/image.so", BASE + 0x1_0000);
    let core = CoreWriter::default().thread(1, 0, 0).page(BASE, &file[..0x1000]);
    let core = core.file(BASE..BASE + 0x1000, 0, path).file(start..start + 0x2000, 0x1_0000, path);
    let core = core.file(start + 0x2000..start + 0x3000, 0x1_2000, path);
    let core = core.file(start + 0x3000..start + 0x8000, 0x1_3000, path).write();
    let dump = open(&core, path, &file);
    assert_eq!(dump.modules().len(), 1);
    for (page, missing) in
        [(0, None), (1, None), (2, Some(Missing::MayHaveChanged)), (3, None), (7, None)]
    {
        assert_eq!(dump.missing(start + 0x1000 * page), missing, "{page}");
    }
}

#[test]
fn a_constant_among_data_is_as_the_loader_left_it() {
    let file = Image::file(1);
    let core = core(&file).page(BASE + Image::DATA + 8, &[0xCC; 8]).write();
    let dump = open(&core, "/lib/image.so", &file);
    let mut bytes = [0; 10];
    dump.read_constant(BASE + Image::DATA + 7, &mut bytes).unwrap();
    assert_eq!(bytes, [0x07, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0x10]);
    let imported = dump.read_constant(BASE + Image::IMPORTED, &mut bytes);
    assert_eq!(imported, Err(Missing::MayHaveChanged));
    // Memory without bytes in the file was zero at first, but nothing constant is there.
    assert!(dump.read_constant(BASE + Image::DATA + 0x800, &mut bytes).is_err());
}

#[test]
fn another_file_of_the_same_name_is_refused() {
    let (file, other) = (Image::file(1), Image::file(2));
    let core = core(&file).write();
    for (found, error) in [
        ("/lib/image.so", MappedFileError::Different),
        ("/lib/other.so", MappedFileError::NotFound),
    ] {
        let dump = open(&core, found, &other);
        let missing = dump.missing(BASE + Image::CODE);
        assert_eq!(missing, Some(Missing::File(error)));
        assert_eq!(dump.modules()[0].file, Err(error));
        assert!(dump.read_u64(BASE + Image::CODE).is_err());
    }
}

#[test]
fn a_file_is_not_used_if_the_dump_does_not_say_which_it_was() {
    let file = Image::file(1);
    let core = CoreWriter::default().thread(1, 0, 0);
    let core = Image::map(core, "/lib/image.so").write();
    let dump = open(&core, "/lib/image.so", &file);
    assert!(dump.modules().is_empty());
    let missing = dump.missing(BASE + Image::CODE);
    assert_eq!(missing, Some(Missing::File(MappedFileError::NoIdentity)));
}

#[test]
fn a_damaged_file_is_refused() {
    let mut file = Image::file(1);
    let core = core(&file).write();
    file.truncate(0x2000);
    let dump = open(&core, "/lib/image.so", &file);
    assert_eq!(dump.modules()[0].file, Err(MappedFileError::Damaged));
}
