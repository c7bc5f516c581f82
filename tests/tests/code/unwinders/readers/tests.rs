use super::compact::meanings;
use super::{Comparison, compare};
use clr_generate::{Seeded, Size, program};
use clr_unwind::PeImage;
use object::pe::IMAGE_SCN_MEM_EXECUTE;
use object::read::pe::PeFile64;
use object::read::{ExportTarget, NameOrOrdinal};
use object::{Object as _, ObjectSection as _, SectionFlags};
use std::collections::BTreeMap;

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(name).unwrap()
}

#[test]
fn images_of_compilers_are_read_alike() {
    for name in ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"] {
        let comparison = compare(fixture(&format!("win64/img/{name}.dll"))).unwrap();
        assert_eq!(comparison.differences.len(), 0, "{name}: {comparison:?}");
        assert!(comparison.entries > 20 && comparison.parts > 20, "{name}: {comparison:?}");
        check_sections(fixture(&format!("win64/img/{name}.dll")));
    }
    let comparison = compare(fixture("macho/sample.dylib")).unwrap();
    assert_eq!(comparison.differences.len(), 0, "{comparison:?}");
    assert!(comparison.entries > 20 && comparison.parts > 20, "{comparison:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_test_itself_is_read_alike() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let comparison = compare(&own).unwrap();
    assert_eq!(comparison.differences.len(), 0, "{comparison:?}");
    assert!(comparison.entries > 1000 && comparison.parts > 10_000, "{comparison:?}");
}

/// Checks that the object crate finds the same sections, and that each export is a symbol.
fn check_sections(image: &[u8]) {
    let ours = PeImage::parse(image).unwrap();
    let file = PeFile64::parse(image).unwrap();
    let rva = |address: u64| u32::try_from(address - ours.preferred_base()).unwrap();
    let theirs = file.sections().map(|section| {
        let SectionFlags::Coff { characteristics } = section.flags() else { panic!() };
        let is_code = characteristics.0 & IMAGE_SCN_MEM_EXECUTE.0 != 0;
        (rva(section.address()), section.data().unwrap().len(), is_code)
    });
    let mut theirs: Vec<_> = theirs.filter(|(_, size, _)| *size > 0).collect();
    theirs.sort_unstable();
    let own = ours.sections().as_slice().iter().filter(|section| section.rva > 0);
    let own: Vec<_> = own.map(|it| (it.rva, it.bytes.len(), it.executable)).collect();
    assert_eq!(own, theirs);
    // Of several names of an address, clr-unwind keeps one.
    let mut exports = BTreeMap::<u32, Vec<Vec<u8>>>::new();
    for export in file.exports().unwrap().map(Result::unwrap) {
        if let (ExportTarget::Address { address }, NameOrOrdinal::Name(name)) =
            (export.target(), export.name())
        {
            exports.entry(rva(address)).or_default().push(name.to_vec());
        }
    }
    let symbols = ours.symbols();
    for (rva, names) in exports {
        let (symbol, distance) = symbols.find(rva).unwrap();
        assert!(
            distance == 0 && names.iter().any(|name| name == symbol.as_bytes()),
            "{symbol}+{distance:#x}"
        );
    }
}

#[test]
fn generated_images_are_read_alike() {
    let (mut images, mut sum) = (0, Comparison::default());
    for seed in 0.. {
        let Ok(linked) = program(&mut Seeded::new(seed), &Size::SMALL).link() else { continue };
        for unit in linked.units.iter().filter(|unit| unit.format == clr_codegen::Format::Pe) {
            let found = compare(&unit.bytes).unwrap();
            check_sections(&unit.bytes);
            (images, sum.entries, sum.parts) =
                (images + 1, sum.entries + found.entries, sum.parts + found.parts);
            sum.differences.extend(found.differences);
        }
        if images >= clr_tests::cases(120).max(120) {
            break;
        }
    }
    let kinds: Vec<_> = sum.differences.keys().copied().collect();
    assert_eq!(kinds, ["version 3, which pe-unwind-info refuses"], "{sum:?}");
    assert!(sum.entries > 300 && sum.parts > 1_000, "{sum:?}");
}

/// Each order of registers that calls preserve has a number, for each count of them.
#[test]
fn encodings_of_saved_registers_are_read_alike() {
    for (count, orders) in (0..).zip([1, 6, 30, 120, 360, 720, 720]) {
        for encoding in (0..orders).map(|number| 0x0209_0000 | count << 10 | number) {
            let [own, theirs] = meanings(encoding);
            assert_eq!(own, theirs, "{encoding:#x}");
            assert_eq!(own.unwrap().3.len() as u32, count, "{encoding:#x}");
        }
    }
}
