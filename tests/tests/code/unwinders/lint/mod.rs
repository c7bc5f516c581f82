//! The linter against generated programs: what it finds is what the generator made wrong.

mod acquitted;
mod planted;
mod tables;

use super::*;
use clr_lint::{Linter, Report, Subject};
use core::num::NonZeroUsize;

/// Judges each image and code heap of a program, and calls `check` with the report and the base.
fn for_regions(
    linked: &LinkedProgram,
    convention: Convention,
    mut check: impl FnMut(&Report, u64),
) {
    let mut map = CodeMap::new();
    for region in linked.code_map().unwrap().regions() {
        map.insert(region.clone().with_convention(convention)).unwrap();
    }
    for region in map.regions() {
        let linter = Linter::new(&map, region);
        check(&linter.run(&(0..u32::MAX), NonZeroUsize::MIN, &mut |_| ()), region.base());
    }
}

/// Number of programs in a full run, and the least that have enough of all kinds.
const PROGRAMS: u32 = 60;
const LEAST: u32 = 30;

/// Judges programs. Returns the number of right answers, and of findings.
fn judge(convention: CallingConvention) -> (u64, u64) {
    let size = Size::SMALL.of(convention);
    let convention = match convention {
        CallingConvention::WindowsX64 => Convention::WindowsX64,
        CallingConvention::SystemV => Convention::SystemV,
    };
    let (mut right, mut findings) = (0, 0);
    for seed in 0..u64::from(cases(PROGRAMS).max(LEAST)) {
        let program = program(&mut Seeded::new(seed), &size);
        let Ok(linked) = program.link() else { continue };
        for_regions(&linked, convention, |report, base| {
            right += report.totals.right;
            for finding in &report.findings {
                findings += 1;
                for rva in &finding.instructions {
                    let rip = base + u64::from(*rva);
                    let instruction = linked.instruction(rip);
                    // A call is a finding if its return address is unwound wrong.
                    let after = instruction.map_or(rip, |it| rip + u64::from(it.len));
                    let known = linked.cfi_mistake(rip, Position::Interrupted).is_some()
                        || linked.windows_mistake(rip, Position::Interrupted).is_some()
                        || linked.windows_mistake(after, Position::ReturnAddress).is_some();
                    let role = instruction.map(|it| it.role);
                    assert!(known, "seed {seed}, {rip:#x}, {role:?}: {finding:#x?}");
                }
            }
        });
    }
    (right, findings)
}

#[test]
fn generated_unix_functions_are_wrong_where_their_data_is() {
    let (right, findings) = judge(CallingConvention::SystemV);
    assert!(right > 1000 && findings > 0, "{right} right, {findings} findings");
}

#[test]
fn generated_windows_functions_are_wrong_where_their_rules_are() {
    let (right, findings) = judge(CallingConvention::WindowsX64);
    assert!(right > 1000 && findings > 0, "{right} right, {findings} findings");
}

/// clang's compact unwind information is right, so that what is damaged in it is found.
#[test]
fn a_dylib_is_judged_by_its_compact_unwind_information() {
    let judge = |bytes: &[u8]| {
        let image = MachoImage::parse(bytes).unwrap();
        let mut map = CodeMap::new();
        map.insert_macho(image.preferred_base(), &image).unwrap();
        let region = map.regions().next().unwrap();
        Linter::new(&map, region).run(&(0..u32::MAX), NonZeroUsize::MIN, &mut |_| ())
    };
    let mut bytes = clr_fixtures::get("macho/sample.dylib").unwrap().to_vec();
    let report = judge(&bytes);
    assert_eq!(report.findings, [], "of {:?}", report.totals);
    assert!(report.totals.right > 590, "{:?}", report.totals);

    // Each frame without rbp is said to be 8 bytes larger: instructions decide where they lead to a
    // return, and calls are wrong.
    let header = [1, 0, 0, 0, 0x1C, 0, 0, 0];
    let at = bytes.windows(8).position(|it| it == header).unwrap();
    for word in bytes[at..at + 0x200].as_chunks_mut::<4>().0 {
        let encoding = u32::from_le_bytes(*word);
        if encoding >> 24 & 0x0F == 2 && encoding >> 16 & 0xFF > 1 {
            *word = (encoding + 0x1_0000).to_le_bytes();
        }
    }
    let report = judge(&bytes);
    assert!(
        report.findings.iter().any(|it| it.subject == Subject::Caller && it.calls > 0),
        "{:#x?} {:?}",
        report.findings,
        report.totals
    );
}
