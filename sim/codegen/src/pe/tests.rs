use super::*;
use clr_unwind::{PeImage, RuntimeFunction, TargetOs};
use object::read::pe::PeFile64;
use object::{Object as _, ObjectSection as _};
use std::process::Command;

const BASE: u64 = 0x0001_8000_0000;
const TEXT: u32 = 0x2000;

/// The parts of a test image.
struct Parts {
    text: Vec<u8>,
    xdata: Vec<u8>,
    pdata: Vec<u8>,
}

impl Parts {
    /// Creates two functions: one with `push rbx; sub rsp, 32`, one without a prologue.
    fn new() -> Self {
        let mut text = b"\x53\x48\x83\xEC\x20\x90\x48\x83\xC4\x20\x5B\xC3".to_vec();
        text.resize(0x1200, 0xCC);
        text.push(0xC3);
        let xdata = vec![1, 5, 2, 0, 5, 0x32, 1, 0x30, 1, 0, 0, 0];
        let pdata = [[TEXT, TEXT + 12, 0x4000], [TEXT + 0x1200, TEXT + 0x1201, 0x4008]];
        let pdata = pdata.iter().flatten().flat_map(|field| field.to_le_bytes()).collect();
        Self { text, xdata, pdata }
    }

    fn sections(&self) -> [PeSection<'_>; 5] {
        use SectionKind::{Code, ReadOnly, ReadWrite};
        [
            PeSection { name: ".data", rva: 0x1000, bytes: &[1; 0x201], kind: ReadWrite },
            PeSection { name: ".text", rva: TEXT, bytes: &self.text, kind: Code },
            PeSection { name: ".xdata", rva: 0x4000, bytes: &self.xdata, kind: ReadOnly },
            PeSection { name: ".empty", rva: 0x5000, bytes: &[], kind: ReadOnly },
            // The page before this section is free.
            PeSection { name: ".pdata", rva: 0x7000, bytes: &self.pdata, kind: ReadOnly },
        ]
    }
}

const EXPORTS: [(&str, u32); 3] = [("b", TEXT), ("Tail", TEXT + 0x1200), ("a::b", TEXT)];

fn file<'a>(sections: &'a [PeSection<'a>]) -> PeFile<'a> {
    let (name, exception_directory) = ("native.dll", (0x7000, 24));
    let convention = CallingConvention::WindowsX64;
    PeFile { name, convention, base: BASE, sections, exception_directory, exports: &EXPORTS }
}

fn error(change: impl FnOnce(&mut PeFile<'_>)) -> PeError {
    let parts = Parts::new();
    let sections = parts.sections();
    let mut file = file(&sections);
    change(&mut file);
    file.write().unwrap_err()
}

#[test]
fn the_walker_reads_the_file() {
    let parts = Parts::new();
    let bytes = file(&parts.sections()).write().unwrap();
    assert_eq!(bytes.len() % 0x200, 0);
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!((image.preferred_base(), image.size()), (BASE, 0x9000));
    let sections = image.sections();
    assert_eq!(sections.bytes_from(0x1000), Some(&[1; 0x201][..]));
    assert_eq!(sections.bytes_from(TEXT), Some(&parts.text[..]));
    assert_eq!(sections.bytes_from(0x4000), Some(&parts.xdata[..]));
    assert_eq!(sections.bytes_from(0x5000), None);
    assert_eq!(sections.bytes_from(0x7000), Some(&parts.pdata[..]));
    let executable = sections.as_slice().iter().filter(|section| section.executable);
    assert_eq!(executable.map(|section| section.rva).collect::<Vec<_>>(), [TEXT]);
    let functions = [
        RuntimeFunction { begin: TEXT, end: TEXT + 12, unwind_info: 0x4000 },
        RuntimeFunction { begin: TEXT + 0x1200, end: TEXT + 0x1201, unwind_info: 0x4008 },
    ];
    assert_eq!(image.functions().iter().collect::<Vec<_>>(), functions);
    // If two names have the same address, the walker takes the first.
    assert_eq!(image.symbols().as_slice(), [(TEXT, "a::b"), (TEXT + 0x1200, "Tail")]);
}

/// 0xFD1D is in the ready-to-run images of .NET Core 3.1.23 for Linux.
#[test]
fn the_machine_field_names_the_system() {
    let parts = Parts::new();
    let sections = parts.sections();
    for (convention, machine, system) in [
        (CallingConvention::WindowsX64, 0x8664, TargetOs::Windows),
        (CallingConvention::SystemV, 0xFD1D, TargetOs::Linux),
    ] {
        let bytes = PeFile { convention, ..file(&sections) }.write().unwrap();
        let header = PeFile64::parse(&*bytes).unwrap().nt_headers().file_header;
        assert_eq!(header.machine.get(LE).0, machine);
        assert_eq!(PeImage::parse(&bytes).unwrap().target_os(), system);
    }
}

#[test]
fn object_reads_the_file() {
    let parts = Parts::new();
    let bytes = file(&parts.sections()).write().unwrap();
    let image = PeFile64::parse(&*bytes).unwrap();
    let headers = image.nt_headers();
    let (header, optional) = (&headers.file_header, &headers.optional_header);
    assert_eq!(header.machine.get(LE), pe::IMAGE_FILE_MACHINE_AMD64);
    assert_eq!(header.time_date_stamp.get(LE), 0);
    assert_eq!(header.characteristics.get(LE).0, 0x2023);
    assert_eq!(optional.dll_characteristics.get(LE).0, 0x0100);
    assert_eq!(optional.check_sum.get(LE), 0);
    assert_eq!(optional.section_alignment.get(LE), 0x1000);
    assert_eq!(optional.file_alignment.get(LE), 0x200);
    assert_eq!(optional.size_of_image.get(LE), 0x9000);
    assert_eq!(optional.size_of_headers.get(LE), 0x400);
    assert_eq!(optional.size_of_code.get(LE), 0x1400);
    assert_eq!(optional.base_of_code.get(LE), TEXT);
    let sections: Vec<_> = image
        .sections()
        .map(|section| (section.name().unwrap(), section.address() - BASE, section.size()))
        .collect();
    let edata = 40 + 3 * 10 + "native.dll\0Tail\0a::b\0b\0".len() as u64;
    assert_eq!(
        sections,
        [
            (".data", 0x1000, 0x201),
            (".text", 0x2000, 0x1201),
            (".xdata", 0x4000, 12),
            (".pdata", 0x7000, 24),
            (".edata", 0x8000, edata),
        ]
    );
    for section in image.section_table().iter() {
        assert_eq!(section.pointer_to_raw_data.get(LE) % 0x200, 0);
        assert_eq!(section.size_of_raw_data.get(LE) % 0x200, 0);
    }
    let table = image.export_table().unwrap().unwrap();
    let exports = table.exports().unwrap();
    let exports: Vec<_> =
        exports.iter().map(|export| (export.name.unwrap(), export.ordinal.0)).collect();
    assert_eq!(exports, [(&b"Tail"[..], 1), (b"a::b", 2), (b"b", 3)]);
    let addresses: Vec<_> = table.addresses().iter().map(|address| address.get(LE)).collect();
    assert_eq!(addresses, [TEXT + 0x1200, TEXT, TEXT]);
    let directory = table.directory();
    assert_eq!(table.name_from_pointer(directory.name.get(LE)).unwrap(), b"native.dll");
}

#[test]
fn the_order_of_exports_does_not_matter() {
    let parts = Parts::new();
    let sections = parts.sections();
    let mut exports = EXPORTS;
    let expected = file(&sections).write().unwrap();
    for _ in 0..EXPORTS.len() {
        exports.rotate_left(1);
        assert_eq!(PeFile { exports: &exports, ..file(&sections) }.write().unwrap(), expected);
    }
}

#[test]
fn a_file_may_have_neither_functions_nor_exports() {
    let parts = Parts::new();
    let sections = &parts.sections()[..2];
    let exception_directory = (0, 0);
    let bytes = PeFile { exception_directory, exports: &[], ..file(sections) }.write().unwrap();
    let image = PeImage::parse(&bytes).unwrap();
    assert!(image.functions().is_empty());
    assert!(image.symbols().as_slice().is_empty());
    assert_eq!(image.size(), 0x5000);
}

#[test]
fn images_that_cannot_be_loaded_are_refused() {
    let parts = Parts::new();
    let base = error(|file| file.base += 0x1000);
    assert_eq!(base, PeError::Base { base: BASE + 0x1000, size: 0x9000 });
    for directory in [(0x7000, 36), (0x7000, 23), (0x700C, 24), (0x8000, 12), (0x5000, 12)] {
        let (rva, size) = directory;
        let error = error(|file| file.exception_directory = directory);
        assert_eq!(error, PeError::ExceptionDirectory { rva, size });
    }
    let bad = |change: fn(&mut [PeSection<'_>; 5])| {
        let mut sections = parts.sections();
        change(&mut sections);
        let (exports, exception_directory) = (&[][..], (0, 0));
        PeFile { exception_directory, exports, ..file(&sections) }.write().map(|_| ())
    };
    assert_eq!(bad(|sections| sections[0].name = ".eight_8"), Ok(()));
    let nine = bad(|sections| sections[0].name = ".nine___9");
    assert_eq!(nine, Err(PeError::SectionName { rva: 0x1000 }));
    let range = |rva| Err(PeError::SectionRange { rva });
    assert_eq!(bad(|sections| sections[0].rva = 0), range(0));
    assert_eq!(bad(|sections| sections[2].rva += 0x800), range(0x4800));
    assert_eq!(bad(|sections| sections[2].rva = 0x3000), range(0x3000));
    assert_eq!(bad(|sections| sections[4].rva = 0xFFFF_D000), Ok(()));
    // There is no room left for the export section.
    assert_eq!(bad(|sections| sections[4].rva = 0xFFFF_E000), range(0xFFFF_F000));
    assert_eq!(bad(|sections| sections.swap(1, 2)), range(0x2000));
    let sections =
        [PeSection { name: ".text", rva: 0xE000, bytes: &[0xC3], kind: SectionKind::Code }];
    let (base, exports, exception_directory) = (0xFFFF_FFFF_FFFF_0000, &[][..], (0, 0));
    let last = PeFile { base, exception_directory, exports, ..file(&sections) };
    assert_eq!(last.write(), Err(PeError::Base { base, size: 0x1_0000 }));
    let last = PeFile { base: base - 0x1_0000, ..last };
    assert_eq!(last.write().map(|_| ()), Ok(()));
}

#[test]
fn exports_that_cannot_be_found_are_refused() {
    let of = |exports: &[(&str, u32)]| {
        let parts = Parts::new();
        let sections = parts.sections();
        PeFile { exports, ..file(&sections) }.write().map(|_| ())
    };
    assert_eq!(of(&[("", TEXT)]), Err(PeError::ExportName { index: 0 }));
    assert_eq!(of(&[("a", TEXT), ("b\0", TEXT)]), Err(PeError::ExportName { index: 1 }));
    let twice = [("a", TEXT), ("b", TEXT), ("a", TEXT)];
    assert_eq!(of(&twice), Err(PeError::ExportName { index: 2 }));
    let nowhere = [("a", TEXT + 0x1200), ("b", TEXT + 0x1201)];
    assert_eq!(of(&nowhere), Err(PeError::ExportAddress { index: 1 }));
    // The export section itself: an address there would make the export a forwarder.
    assert_eq!(of(&[("a", 0x8000)]), Err(PeError::ExportAddress { index: 0 }));
    let many = vec![("a", TEXT); 0x1_0000];
    assert_eq!(of(&many), Err(PeError::ExportCount { count: 0x1_0000 }));
    assert_eq!(error(|file| file.name = "a\0b"), PeError::Name);
}

#[test]
#[ignore = "external: needs llvm-readobj"]
fn external_llvm_readobj_accepts_the_file() {
    let parts = Parts::new();
    let bytes = file(&parts.sections()).write().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("native.dll");
    std::fs::write(&path, bytes).unwrap();
    let mut readobj = Command::new("llvm-readobj");
    readobj.args(["--all", "--unwind", "--coff-exports"]).arg(&path);
    let output = readobj.output().expect("llvm-readobj");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "StartAddress: (0x180002000)",
        "EndAddress: (0x18000200C)",
        "0x05: ALLOC_SMALL size=32",
        "0x01: PUSH_NONVOL reg=RBX",
        "StartAddress: (0x180003200)",
        "Ordinal: 1\n",
        "Name: Tail",
        "Name: a::b",
        "Ordinal: 3\n",
        "IMAGE_FILE_RELOCS_STRIPPED (0x1)",
        "SizeOfImage: 36864",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}
