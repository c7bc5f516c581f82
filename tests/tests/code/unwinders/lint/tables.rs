//! Tables that lead to unwind data, planted wrong, and code that they leave out.

use super::planted::{BASE, FRAME, INFO};
use clr_lint::{Blame, Cause, Layout, Linter, Report};
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CfiSections, CodeMap, CodeRegion, FunctionTable, Section, Sections};
use core::num::NonZeroUsize;

/// RVA of the first UNWIND_INFO.
const INFOS: u32 = 0x800;

/// Judges a region with the layout of an image.
pub(super) fn judge<'a>(region: CodeRegion<'a>, layout: Layout<'a>) -> Report {
    let mut map = CodeMap::new();
    map.insert(region).unwrap();
    let linter = Linter::new(&map, map.regions().next().unwrap()).with_layout(layout);
    linter.run(&(0..u32::MAX), NonZeroUsize::MIN, &mut |_| ())
}

/// Returns a layout with code up to `end`.
pub(super) fn layout<'a>(end: u32) -> Layout<'a> {
    let mut layout = Layout::default();
    layout.code.push(0..end);
    layout
}

/// Judges two frames at 0 and 10h, with these RUNTIME_FUNCTIONs and their UNWIND_INFOs, all at INFOS.
fn windows(entries: &[[u32; 3]], infos: &[u8], layout: Layout<'static>) -> Report {
    let mut bytes = vec![0xCC; 0x1000];
    bytes[..16].copy_from_slice(&FRAME);
    bytes[16..32].copy_from_slice(&FRAME);
    bytes[INFOS as usize..][..infos.len()].copy_from_slice(infos);
    let table: Vec<u8> = entries.iter().flatten().flat_map(|it| it.to_le_bytes()).collect();
    judge(CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap(), layout)
}

/// Returns the kinds of findings, with the begin of each.
fn kinds(report: &Report) -> Vec<(Cause, u32)> {
    assert!(report.findings.iter().all(|it| it.blame == Blame::Data), "{report:#?}");
    report.findings.iter().map(|it| (it.cause, it.function.start)).collect()
}

const SOUND: [[u32; 3]; 2] = [[0, 16, INFOS], [16, 32, INFOS]];

#[test]
fn sound_tables_give_no_finding() {
    let report = windows(&SOUND, &INFO, layout(32));
    assert_eq!(report.findings, []);
    let coverage = report.coverage;
    assert_eq!((coverage.code, coverage.described, coverage.padding), (32, 32, 0));
    assert_eq!(report.totals.undecided.sum(), 0);
}

#[test]
fn tables_and_data_that_are_not_aligned_are_found() {
    let mut moved = layout(32);
    moved.function_table = Some(0x4002);
    assert_eq!(kinds(&windows(&SOUND, &INFO, moved)), [(Cause::Misaligned, 0)]);
    let mut aligned = layout(32);
    aligned.function_table = Some(0x4004);
    assert_eq!(kinds(&windows(&SOUND, &INFO, aligned)), []);
    let mut infos = [0; 10];
    infos[2..].copy_from_slice(&INFO);
    let at = INFOS + 2;
    let report = windows(&[[0, 16, at], [16, 32, at]], &infos, layout(32));
    assert_eq!(kinds(&report), [(Cause::Misaligned, 0), (Cause::Misaligned, 16)]);
}

#[test]
fn entries_out_of_order_on_one_another_or_elsewhere_are_found() {
    let report = windows(&[SOUND[1], SOUND[0]], &INFO, layout(32));
    assert!(kinds(&report).contains(&(Cause::Unordered, 0)), "{report:#?}");
    let report = windows(&[[0, 20, INFOS], SOUND[1]], &INFO, layout(32));
    assert_eq!(kinds(&report), [(Cause::Overlap, 16)]);
    let report = windows(&[SOUND[0], [16, 16, INFOS], SOUND[1]], &INFO, layout(32));
    assert_eq!(kinds(&report), [(Cause::EmptyRange, 16)]);
    let report = windows(&[SOUND[0], SOUND[1], [0x40, 0x50, INFOS]], &INFO, layout(32));
    assert!(kinds(&report).contains(&(Cause::OutsideCode, 0x40)), "{report:#?}");
}

#[test]
fn a_chain_that_does_not_end_is_found() {
    // Version 1, chained, no codes; the parent is the entry itself.
    let mut info = vec![0x21, 0, 0, 0];
    info.extend([16, 32, INFOS + 8].iter().flat_map(|it: &u32| it.to_le_bytes()));
    let mut infos = INFO.to_vec();
    infos.extend(info);
    let report = windows(&[SOUND[0], [16, 32, INFOS + 8]], &infos, layout(32));
    assert_eq!(kinds(&report), [(Cause::ChainLoop, 16)]);
    assert_eq!((report.totals.undecided.unreached, report.totals.parts), (1, 1));
}

#[test]
fn a_function_that_the_table_leaves_out_is_found() {
    let report = windows(&SOUND[..1], &INFO, layout(32));
    assert_eq!(kinds(&report), [(Cause::NoData, 16)]);
    assert_eq!((report.coverage.code, report.coverage.described), (32, 16));
    // By Windows' rules a leaf needs no entry.
    let mut bytes = vec![0xCC; 0x1000];
    bytes[..16].copy_from_slice(&FRAME);
    bytes[16..19].copy_from_slice(&[0x31, 0xC0, 0xC3]);
    bytes[INFOS as usize..][..8].copy_from_slice(&INFO);
    let table: Vec<u8> = SOUND[0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap();
    let report = judge(region, layout(32));
    assert_eq!(report.findings, []);
    assert_eq!((report.totals.functions, report.totals.entered_inside), (2, 1));
}

#[test]
fn texts_in_code_are_not_taken_for_functions() {
    let mut bytes = vec![0xCC; 0x1000];
    bytes[..16].copy_from_slice(&FRAME);
    // "VWSU", a jump into nothing, and a push that nothing undoes.
    for (at, text) in [(0x20, &b"VWSU"[..]), (0x30, &[0x56, 0xC3]), (0x40, &[0x53, 0x5E, 0xC3])] {
        bytes[at..at + text.len()].copy_from_slice(text);
    }
    bytes[INFOS as usize..][..8].copy_from_slice(&INFO);
    let table: Vec<u8> = SOUND[0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap();
    assert_eq!(judge(region, layout(0x50)).findings, []);
}

/// Returns a region of Unix with `code`, which call frame information without entries describes.
pub(super) fn unix<'a>(code: &'a [u8], cfi: &CfiSections<'a>) -> CodeRegion<'a> {
    let section = Section { rva: 0, bytes: code, executable: true };
    let sections = Sections::new(vec![section]).unwrap();
    let table = CfiTable::new(cfi, &sections);
    CodeRegion::heap(BASE, code, FunctionTable::default()).unwrap().with_cfi(table)
}

#[test]
fn an_image_without_unwind_data_is_a_finding() {
    let report = judge(unix(&FRAME, &CfiSections::default()), layout(16));
    assert_eq!(kinds(&report), [(Cause::NoUnwindData, 0)]);
    assert_eq!((report.coverage.code, report.coverage.described), (16, 0));
    let report = windows(&[], &INFO, layout(32));
    assert_eq!(kinds(&report), [(Cause::NoUnwindData, 0)]);
    // What every program has from its linker is no code that lacks data.
    let mut startup = vec![0x48, 0x8D, 0x3D, 0, 0, 0, 0, 0x48, 0x8D, 0x05, 0, 0, 0, 0];
    startup.extend([0x48, 0x39, 0xF8, 0x74, 0, 0xC3]);
    startup.resize(0x100, 0x90);
    let report = judge(unix(&startup, &CfiSections::default()), layout(0x100));
    assert_eq!(report.findings, []);
    assert_eq!(judge(unix(&FRAME, &CfiSections::default()), Layout::default()).findings, []);
}

#[test]
fn an_image_in_which_nothing_could_be_judged_is_a_finding() {
    // A part of a function that no entry of the table is for.
    let mut bytes = vec![0x90; 0x900];
    let part = [0x21, 0, 0, 0].into_iter();
    let parent = [0x40, 0x80, INFOS + 0x20].into_iter().flat_map(u32::to_le_bytes);
    let info: Vec<u8> = part.chain(parent).collect();
    bytes[INFOS as usize..][..info.len()].copy_from_slice(&info);
    bytes[INFOS as usize + 0x20..][..4].copy_from_slice(&[1, 0, 0, 0]);
    let table: Vec<u8> = [0, 0x40, INFOS].into_iter().flat_map(u32::to_le_bytes).collect();
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap();
    let report = judge(region, layout(0x40));
    assert_eq!((report.totals.right, report.totals.wrong), (0, 0));
    assert_eq!(kinds(&report), [(Cause::NothingJudged, 0)]);
}

#[test]
fn a_search_table_out_of_order_is_found() {
    // Version 1; pointer sdata4 relative, count udata4, table sdata4 relative to the section.
    let header = |begins: [i32; 3]| {
        let mut bytes = vec![1, 0x1B, 3, 0x3B, 0, 0, 0, 0, 3, 0, 0, 0];
        for begin in begins {
            bytes.extend((begin - 0x2000).to_le_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    };
    let check = |bytes: &[u8]| {
        let mut layout = layout(16);
        layout.search_table = Some(Section { rva: 0x2000, bytes, executable: false });
        let report = judge(unix(&FRAME, &CfiSections::default()), layout);
        let mut kinds = kinds(&report);
        kinds.retain(|(cause, _)| *cause != Cause::NoUnwindData);
        kinds
    };
    assert_eq!(check(&header([0, 4, 8])), []);
    assert_eq!(check(&header([0, 8, 4])), [(Cause::Unordered, 4)]);
    assert_eq!(check(&header([0, 4, 8])[..20]), [(Cause::Unreadable, 0x2000)]);
}
