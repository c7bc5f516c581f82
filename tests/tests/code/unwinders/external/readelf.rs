//! Tests of ELF files with an independent reader: binutils' readelf.

use clr_codegen::{CallingConvention, Format, PlacedHelper, Unit};
use clr_generate::{Seeded, Size, program};
use clr_tests::cases;
use std::ops::Range;
use std::process::Command;

/// Returns readelf's output for an image.
fn readelf(unit: &Unit, options: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libnative.so");
    std::fs::write(&path, &unit.bytes).unwrap();
    let output = Command::new("readelf").args(options).arg(&path).output().expect("readelf");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && errors.is_empty(), "{errors}\n{out}");
    assert!(!out.contains("Warning") && !out.contains("Error"), "{out}");
    out
}

/// Returns the ELF files of generated programs, each with its number of functions.
fn images(count: u32) -> impl Iterator<Item = (Unit, usize)> {
    linked_images(count).map(|(unit, functions, _)| (unit, functions))
}

/// Does the same, and also returns the address ranges of their procedure linkage tables, if any
/// (VA).
fn linked_images(count: u32) -> impl Iterator<Item = (Unit, usize, Option<Range<u64>>)> {
    let size = Size::SMALL.of(CallingConvention::SystemV);
    (0..cases(count).max(count)).filter_map(move |seed| {
        let program = program(&mut Seeded::new(seed.into()), &size);
        let linked = program.link().ok()?;
        let own = |helper: &&PlacedHelper| helper.name == "plt" || helper.name.ends_with("@plt");
        let mut entries = linked.helpers.iter().filter(own).map(|helper| helper.range.clone());
        let table = entries
            .next()
            .map(|first| first.start..entries.next_back().map_or(first.end, |last| last.end));
        let unit = linked.units.into_iter().find(|unit| unit.format == Format::Elf)?;
        let own = program.functions.iter().filter(|function| function.kind == unit.kind).count();
        Some((unit, own, table))
    })
}

#[test]
#[ignore = "external: needs readelf"]
fn frames_are_read() {
    let mut seen = 0;
    for (unit, functions) in images(100) {
        let text = readelf(&unit, &["--debug-dump=frames"]);
        // One FDE is the handler's.
        assert!(text.matches(" FDE ").count() > functions, "{text}");
        seen += text.matches("DW_CFA_def_cfa_offset").count();
    }
    assert!(seen > 100, "only {seen} rows");
}

#[test]
#[ignore = "external: needs readelf"]
fn headers_and_symbols_are_read() {
    for (unit, functions) in images(30) {
        let options = ["--headers", "--dyn-syms", "--syms", "--dynamic", "--histogram", "--wide"];
        let text = readelf(&unit, &options);
        assert!(text.contains("GNU_EH_FRAME"), "{text}");
        assert!(text.contains("Library soname: [libnative.so]"), "{text}");
        let exported = text.lines().filter(|line| line.contains(" GLOBAL DEFAULT ")).count();
        assert_eq!(exported, 2 * functions, "{text}");
    }
}

/// Linkers place the procedure linkage table in a section before the code, with one FDE.
#[test]
#[ignore = "external: needs readelf"]
fn linkage_has_a_section_of_its_own() {
    let mut seen = 0;
    for (unit, _, table) in linked_images(100) {
        let text = readelf(&unit, &["--sections", "--wide"]);
        let line = text.lines().find(|line| line.contains(" .plt "));
        let Some(table) = table else {
            assert_eq!(line, None, "{text}");
            continue;
        };
        let (_, fields) = line.expect("a section .plt exists").split_once(" .plt ").unwrap();
        let fields: Vec<_> = fields.split_whitespace().collect();
        let address = table.start - unit.base;
        let (address, size) =
            (format!("{address:016x}"), format!("{:06x}", table.end - table.start));
        let [of, at, offset, len, entry, flags, _, _, alignment] = fields[..] else {
            panic!("{fields:?}");
        };
        assert_eq!((of, at, len, entry, flags), ("PROGBITS", &*address, &*size, "10", "AX"));
        assert_eq!(
            (u64::from_str_radix(offset, 16).unwrap(), alignment),
            (table.start - unit.base, "16")
        );
        let frames = readelf(&unit, &["--debug-dump=frames-interp"]);
        let begin_end = format!("pc={address}..{:016x}", table.end - unit.base);
        assert_eq!(frames.matches(&begin_end).count(), 1, "{begin_end} in {frames}");
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} tables");
}
