use super::minidump_writer::{Library, MinidumpWriter};
use crate::{
    CachedBytes, CoreDump, DumpBytes, DumpError, Files, Missing, ModuleKind, NoFiles,
    StoppedProcess as _, System,
};
use clr_unwind::{Gpr, ImageIdentity, Memory as _};

const BASE: u64 = 0x7FF0_0000_0000;
const PATH: &str = "C:\\app\\library.dll";

fn open<'d>(dump: &'d [u8], file: &'d [u8]) -> Result<CoreDump<'d>, DumpError> {
    let find = |path: &str, identity: Option<&ImageIdentity>| {
        assert_eq!((path, identity), (PATH, ImageIdentity::of_file(&Library::file()).as_ref()));
        Some(file)
    };
    let files: &dyn Files<'d> = &find;
    CoreDump::open(dump, files)
}

/// Returns a dump with one of everything.
fn whole() -> Vec<u8> {
    MinidumpWriter::default()
        .thread(7, 0x1234, 0x5008)
        .module(BASE, &Library::file(), PATH)
        .page(0x5000, &[9; 0x20])
        .write()
}

#[test]
fn threads_come_with_their_registers() {
    let dump = MinidumpWriter::default().thread(9, 3, 4).thread(7, 0x1234, 0x5008).write();
    let process = CoreDump::open(&dump, &NoFiles).unwrap();
    assert_eq!(process.system(), System::Windows);
    let [thread, other] = process.threads() else { panic!() };
    assert_eq!((thread.id, other.id), (7, 9));
    assert_eq!(
        (thread.registers.rip, thread.registers.rsp(), thread.flags),
        (0x1234, 0x5008, 0x246)
    );
    let numbered = [(Gpr::Rax, 0), (Gpr::Rcx, 1), (Gpr::Rdx, 2), (Gpr::Rbx, 3), (Gpr::Rbp, 5)];
    for (register, value) in numbered.into_iter().chain([(Gpr::Rsi, 6), (Gpr::Rdi, 7)]) {
        assert_eq!(thread.registers.get(register), value, "{register:?}");
    }
    assert_eq!(thread.registers.get(Gpr::R15), 15);
    assert_eq!(thread.registers.xmm.map(|it| it as u64), [12, 14, 16, 18, 20, 22, 24, 26, 28, 30]);
    assert_eq!((thread.gs_base, thread.system_call), (0x7007, None));
}

#[test]
fn a_thread_after_the_instruction_syscall_is_in_that_call() {
    let old = [&[0x4C, 0x8B, 0xD1, 0xB8, 0x5B, 0, 0, 0][..], &[0x0F, 0x05, 0xC3]].concat();
    let test = [0xF6, 0x04, 0x25, 0x08, 0x03, 0xFE, 0x7F, 1, 0x75, 3];
    let new = [&old[..8], &test, &old[8..]].concat();
    for (code, length) in [(&old, 10), (&new, 20)] {
        let call = |rip: u64| {
            let dump = MinidumpWriter::small().thread(1, rip, 0).page(0x1000, code).write();
            CoreDump::open(&dump, &NoFiles).unwrap().threads()[0].system_call
        };
        assert_eq!(call(0x1000 + length), Some(0x5B));
        assert_eq!(call(0x1000 + length - 1), None);
        assert_eq!(call(0x1000), None);
        assert_eq!(call(0), None);
    }
}

#[test]
fn both_lists_of_memory_are_read() {
    for writer in [MinidumpWriter::default(), MinidumpWriter::small()] {
        let dump = writer.thread(1, 0, 0).page(0x1000, &[1; 16]).page(0x1008, &[2; 16]).write();
        let process = CoreDump::open(&dump, &NoFiles).unwrap();
        // A byte that two ranges have is that of the first.
        assert_eq!(process.read_u64(0x1008), Ok(0x0101_0101_0101_0101));
        assert_eq!(process.read_u64(0x1010), Ok(0x0202_0202_0202_0202));
        assert_eq!(process.missing(0x1018), Some(Missing::NotDumped));
    }
}

#[test]
fn a_page_that_the_dump_lacks_is_that_of_the_file_as_windows_loads_it() {
    let (dump, file) = (whole(), Library::file());
    let process = open(&dump, &file).unwrap();
    let [module] = process.modules() else { panic!() };
    assert_eq!((module.name(), module.kind), ("library.dll", ModuleKind::Pe));
    assert_eq!(
        (module.range.clone(), module.version),
        (BASE..BASE + Library::SIZE, Some([10, 0, 1526, 7]))
    );
    let word = |rva: u64| process.read_u64(BASE + rva);
    let unknown = |rva: u64| process.missing(BASE + rva);
    let filling = 0xCCCC_CCCC_CCCC_CCCC;
    assert_eq!(word(Library::CODE), Ok(filling));
    assert_eq!(word(Library::MOVED), Ok(BASE + 0x1234));
    assert_eq!(word(Library::CONSTANT), Ok(filling));
    let may_have = Some(Missing::MayHaveChanged);
    for rva in [Library::IMPORTED, Library::IMPORTED + 8, Library::FILLED, Library::DATA] {
        assert_eq!(unknown(rva), may_have, "{rva:#x}");
    }
    assert_eq!(unknown(Library::BASE_FIELD), may_have);
    assert_eq!(word(0), Ok(u64::from_le_bytes(*b"MZ\0\0\0\0\0\0")));
    // As a constant, data is as the loader left it.
    let mut constant = [0; 8];
    process.read_constant(BASE + Library::MOVED_DATA, &mut constant).unwrap();
    assert_eq!(u64::from_le_bytes(constant), BASE + 0x1234);
    assert_eq!(process.code_map().find(BASE + Library::CODE).map(|_| ()), Some(()));
}

#[test]
fn exports_are_found_by_name() {
    let (dump, file) = (whole(), Library::file());
    let process = open(&dump, &file).unwrap();
    let module = process.module_at(BASE).unwrap();
    for (name, rva) in Library::EXPORTS {
        let expected = (rva != 0).then_some(BASE + rva);
        assert_eq!(module.symbol(&process, name), Ok(expected), "{name}");
    }
    for name in ["Alpha", "Bet", "Beta2", "Delta", "Z", ""] {
        assert_eq!(module.symbol(&process, name), Ok(None), "{name}");
    }
    let process = CoreDump::open(&dump, &NoFiles).unwrap();
    assert!(process.module_at(BASE).unwrap().symbol(&process, "Beta").is_err());
}

#[test]
fn another_file_is_not_used() {
    let (dump, mut file) = (whole(), Library::file());
    file[0x48] ^= 1;
    let process = open(&dump, &file).unwrap();
    assert!(process.modules()[0].file.is_err());
    assert!(process.read_u64(BASE + Library::CODE).is_err());
}

#[test]
fn dumps_of_other_processors_are_refused() {
    let dump = MinidumpWriter::default().thread(1, 0, 0).write_for(0);
    assert_eq!(
        CoreDump::open(&dump, &NoFiles).unwrap_err(),
        DumpError::Processor { offset: 32 + 48 }
    );
    let dump = MinidumpWriter::default().write();
    assert_eq!(CoreDump::open(&dump, &NoFiles).unwrap_err(), DumpError::NoThreads);
}

#[test]
fn images_that_overlap_are_refused() {
    let file = Library::file();
    let dump = MinidumpWriter::default()
        .thread(1, 0, 0)
        .module(BASE, &file, PATH)
        .module(BASE + 0x4000, &file, PATH)
        .write();
    let error = CoreDump::open(&dump, &NoFiles).unwrap_err();
    assert_eq!(error, DumpError::Image { address: BASE + 0x4000 });
}

#[test]
fn a_minidump_that_was_cut_off_is_an_error_with_its_place() {
    let dump = whole();
    for len in 4..dump.len() {
        match CoreDump::open(&dump[..len], &NoFiles).unwrap_err() {
            DumpError::Truncated { offset, size, end } => {
                assert!(offset + size > len as u64 && end == len as u64, "{len}");
            }
            error => panic!("{len}: {error}"),
        }
    }
}

/// A dump that is not in memory.
#[derive(Debug)]
struct Elsewhere<'d>(&'d [u8]);

impl DumpBytes for Elsewhere<'_> {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        buffer.copy_from_slice(self.0.get(offset as usize..)?.get(..buffer.len())?);
        Some(())
    }
}

/// Opens a dump in memory and elsewhere, and reads what can be read.
fn examine<'d>(dump: &'d [u8], files: &dyn Files<'d>) {
    let opened = CoreDump::open(dump, files);
    if let Ok(process) = &opened {
        for module in process.modules() {
            let _ = module.symbol(process, "Beta");
            let _ = process.read_u64(module.range.start.wrapping_add(Library::MOVED));
        }
    }
    let cached = CachedBytes::new(Elsewhere(dump));
    let elsewhere = CoreDump::open_bytes(&cached, &NoFiles);
    assert_eq!(opened.err(), elsewhere.err());
}

#[test]
fn a_damaged_byte_of_a_minidump_is_no_panic() {
    let (mut dump, file) = (whole(), Library::file());
    for at in 0..dump.len() {
        let byte = dump[at];
        for damaged in [0, 0xFF, byte ^ 1, byte ^ 0x80] {
            dump[at] = damaged;
            examine(&dump, &|_: &str, _: Option<&ImageIdentity>| Some(file.as_slice()));
        }
        dump[at] = byte;
    }
}

#[test]
fn a_damaged_byte_of_a_library_is_no_panic() {
    let (dump, mut file) = (whole(), Library::file());
    for at in 0..file.len() {
        let byte = file[at];
        for damaged in [0, 0xFF, byte ^ 1, byte ^ 0x80] {
            file[at] = damaged;
            let process = open(&dump, &file).unwrap();
            let module = process.module_at(BASE).unwrap();
            let _ = module.symbol(&process, "Gamma");
            let _ = process.code_map();
            for rva in (0..Library::SIZE).step_by(0x100) {
                let _ = process.read_u64(BASE + rva);
            }
        }
        file[at] = byte;
    }
}
