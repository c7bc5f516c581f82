//! ELF files as a reader sees them that nobody here wrote: binutils' readelf.

use clr_sim::code::{Convention, Format, Unit};
use clr_sim::strategy::{Seeded, Size, program};
use clr_tests::cases;
use std::io::ErrorKind;
use std::process::Command;

/// What readelf says of an image, or `None` if there is no readelf.
fn readelf(unit: &Unit, options: &[&str]) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libnative.so");
    std::fs::write(&path, &unit.bytes).unwrap();
    let output = match Command::new("readelf").args(options).arg(&path).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && errors.is_empty(), "{errors}\n{out}");
    assert!(!out.contains("Warning") && !out.contains("Error"), "{out}");
    Some(out)
}

/// The ELF files of generated programs, each with how many functions it has.
fn images(count: u32) -> impl Iterator<Item = (Unit, usize)> {
    let size = Size::SMALL.of(Convention::SystemV);
    (0..cases(count)).filter_map(move |seed| {
        let program = program(&mut Seeded::new(seed.into()), &size);
        let linked = program.link().ok()?;
        let unit = linked.units.into_iter().find(|unit| unit.format == Format::Elf)?;
        let own = program.functions.iter().filter(|function| function.kind == unit.kind).count();
        Some((unit, own))
    })
}

#[test]
fn frames_are_read() {
    let mut seen = 0;
    for (unit, functions) in images(100) {
        let Some(text) = readelf(&unit, &["--debug-dump=frames"]) else {
            println!("there is no readelf");
            return;
        };
        // One of them is the handler's.
        assert!(text.matches(" FDE ").count() > functions, "{text}");
        seen += text.matches("DW_CFA_def_cfa_offset").count();
    }
    assert!(seen > 100, "{seen} rows say little");
}

#[test]
fn headers_and_symbols_are_read() {
    for (unit, functions) in images(30) {
        let options = ["--headers", "--dyn-syms", "--syms", "--dynamic", "--histogram", "--wide"];
        let Some(text) = readelf(&unit, &options) else {
            println!("there is no readelf");
            return;
        };
        assert!(text.contains("GNU_EH_FRAME"), "{text}");
        assert!(text.contains("Library soname: [libnative.so]"), "{text}");
        let exported = text.lines().filter(|line| line.contains(" GLOBAL DEFAULT ")).count();
        assert_eq!(exported, 2 * functions, "{text}");
    }
}
