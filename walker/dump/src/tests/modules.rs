use super::*;
use crate::{MappedFileError, Missing, ModuleKind, StoppedProcess as _};
use clr_unwind::{ImageIdentity, Memory as _};

const BASE: u64 = Image::BASE;

#[test]
fn a_module_is_an_image_whose_segments_are_mapped_in_order() {
    let file = Image::file(1);
    // Profilers map the whole file to read its symbols: here below the image that is loaded.
    let flat = 0x6000_0000;
    let core = CoreWriter::default().thread(1, 0, 0).file(flat..flat + 0x4000, 0, "/image.so");
    let core = Image::map(core, "/image.so").page(flat, &file[..0x1000]);
    let core = core.page(BASE, &file[..0x1000]).write();
    let dump = open(&core, "/image.so", &file);
    let [module] = dump.modules() else { panic!("{:?}", dump.modules()) };
    assert_eq!((module.range.clone(), module.kind), (BASE..BASE + 0x6000, ModuleKind::Elf));
    assert_eq!((module.path.as_str(), module.name()), ("/image.so", "image.so"));
    assert_eq!(module.build_id().map(ToString::to_string), Some("01".repeat(20)));
    assert_eq!(module.file.as_deref(), Ok(&file[..]));
    assert_eq!(dump.module_at(BASE + 0x5FFF).map(|it| it.range.start), Some(BASE));
    assert!(dump.module_at(BASE + 0x6000).is_none() && dump.module_at(flat).is_none());
    // The flat one is the file, as it is.
    assert_eq!(dump.read_u64(flat + 0x2000), Ok(0x0706_0504_0302_0100));
}

#[test]
fn segments_of_other_offsets_are_no_loaded_image() {
    let file = Image::file(1);
    let core = CoreWriter::default().thread(1, 0, 0).file(BASE..BASE + 0x1000, 0, "/image.so");
    let core = core.file(BASE + 0x1000..BASE + 0x2000, 0x1000, "/image.so");
    // The rest is where the file has it.
    let core = core.file(BASE + 0x3000..BASE + 0x4000, 0x3000, "/image.so");
    let core = core.file(BASE + 0x4000..BASE + 0x5000, 0x4000, "/image.so");
    let core = core.page(BASE, &file[..0x1000]).write();
    assert!(open(&core, "/image.so", &file).modules().is_empty());
}

#[test]
fn segments_in_one_mapping_are_no_loaded_image() {
    // Its code has the same offset as address, and would fit.
    let mut file = Image::file(1);
    file[56..58].copy_from_slice(&2_u16.to_le_bytes());
    let core = CoreWriter::default().thread(1, 0, 0).file(BASE..BASE + 0x4000, 0, "/image.so");
    let core = core.page(BASE, &file[..0x1000]).write();
    assert!(open(&core, "/image.so", &file).modules().is_empty());
}

#[test]
fn an_exported_symbol_is_found_by_name() {
    let file = Image::file(1);
    let core = CoreWriter::default().thread(1, 0, 0);
    let core = Image::map(core, "/image.so").page(BASE, &file[..0x1000]).write();
    let dump = open(&core, "/image.so", &file);
    let module = &dump.modules()[0];
    let (name, address) = Image::EXPORTED;
    assert_eq!(module.symbol(&dump, name), Ok(Some(BASE + address)));
    assert_eq!(module.symbol(&dump, "export"), Ok(None));
    // Without the file the dynamic section is unknown.
    let alone = open(&core, "", &[]);
    assert!(alone.modules()[0].symbol(&alone, name).is_err());
}

#[test]
fn the_image_of_the_kernel_is_a_module_without_a_file() {
    let mut file = Image::file(3);
    // Its only segment is the first.
    file[56..58].copy_from_slice(&1_u16.to_le_bytes());
    let auxiliary: Vec<u8> =
        [33, BASE, 0, 0].iter().flat_map(|it: &u64| it.to_le_bytes()).collect();
    let core = CoreWriter::default().thread(1, 0, 0).note(6, &auxiliary);
    let core = core.page(BASE, &file[..0x1000]).write();
    let dump = open(&core, "", &[]);
    let [module] = dump.modules() else { panic!("{:?}", dump.modules()) };
    assert_eq!((module.name(), module.range.clone()), ("[vdso]", BASE..BASE + 0x1000));
    assert_eq!(module.file.as_deref(), Ok(&file[..0x1000]));
}

#[test]
fn a_pe_image_is_loaded_if_its_sections_are_mapped() {
    let (file, flat) = (Portable::file(), BASE + 0x10_0000);
    let core = CoreWriter::default().thread(1, 0, 0).page(BASE, &file[..0x1000]);
    let core = core.file(BASE..BASE + 0x1000, 0, "/a.dll");
    let core = core.file(BASE + 0x1_0000..BASE + 0x1_1000, 0, "/a.dll");
    let core = core.file(BASE + 0x2_0000..BASE + 0x2_1000, 0x1000, "/a.dll");
    let core = core.file(flat..flat + 0x2000, 0, "/a.dll").page(flat, &file[..0x1000]).write();
    let dump = open(&core, "/a.dll", &file);
    let [module] = dump.modules() else { panic!("{:?}", dump.modules()) };
    assert_eq!((module.range.clone(), module.kind), (BASE..BASE + 0x2_1000, ModuleKind::Pe));
    let Some(ImageIdentity::Pe(identity)) = module.identity else { panic!("{module:?}") };
    assert_eq!((identity.time_stamp, identity.size_of_image), (0x4433_2211, 0x2_1000));
    assert_eq!(dump.read_u64(BASE + Portable::CODE), Ok(0x0706_0504_0302_0100));
    assert_eq!(dump.missing(BASE + Portable::DATA), Some(Missing::MayHaveChanged));
    // Between the sections.
    assert_eq!(dump.missing(BASE + 0x1_F000), Some(Missing::NotDumped));
    // Changed data is data of an image. Here it may be that of a reader, but nothing says so.
    assert_eq!(dump.read_u64(flat + 0x200), Ok(0x0706_0504_0302_0100));
    assert_eq!(dump.missing(flat + 0x1000), Some(Missing::MayHaveChanged));
}

/// gdb's cores have no headers of such images, but the mappings that were changed somewhere.
#[test]
fn a_pe_image_without_headers_is_known_by_another_page() {
    let file = Portable::file();
    let core = |page: &[u8]| {
        let core = CoreWriter::default().thread(1, 0, 0).page(BASE + 0x2_0000, page);
        let core = core.file(BASE..BASE + 0x1000, 0, "/a.dll");
        let core = core.file(BASE + 0x1_0000..BASE + 0x1_1000, 0, "/a.dll");
        core.file(BASE + 0x2_0000..BASE + 0x2_1000, 0x1000, "/a.dll").write()
    };
    let same = core(&file[0x1000..]);
    let dump = open(&same, "/a.dll", &file);
    let [module] = dump.modules() else { panic!("{:?}", dump.modules()) };
    assert_eq!(module.identity, ImageIdentity::of_file(&file));
    assert_eq!(dump.read_u64(BASE + Portable::CODE), Ok(0x0706_0504_0302_0100));
    // Another page, a part of the page, a page with little in it, and a file with other sections.
    let mut other = file.clone();
    other[0x1FFF] ^= 1;
    let mut empty = file.clone();
    empty[0x1000..].fill(0);
    empty[0x1080] = 1;
    let mut elsewhere = file.clone();
    elsewhere[0x58 + 112 + 40 + 13] ^= 0x20;
    for (core, file) in [
        (core(&other[0x1000..]), &file),
        (core(&file[0x1000..0x1FFF]), &file),
        (core(&empty[0x1000..]), &empty),
        (core(&file[0x1000..]), &elsewhere),
    ] {
        let dump = open(&core, "/a.dll", file);
        assert!(dump.modules().is_empty());
        let missing = dump.missing(BASE + Portable::CODE);
        assert_eq!(missing, Some(Missing::File(MappedFileError::NoIdentity)));
    }
}
