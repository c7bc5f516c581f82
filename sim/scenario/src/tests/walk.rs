//! Tests of differences from the shadow stack: correct walks, changed by hand.

use super::*;
use crate::run::walk::Start;
use clr_codegen::execution::{BASE, Execution};
use clr_codegen::shadow_stack::CallerState;
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CfiSections, CodeMap, CodeRegion, FunctionTable, RegionKind, Section, Sections};

const TEXT: &str = "
function \"main\" { body { call \"middle\" } }
function \"middle\" { push \"rbx\"; body { call \"leaf\" } }
function \"leaf\" { unwind \"none\"; body { work 1 } }
stop at=\"leaf\"
";

/// Returns the first difference from the shadow stack after a change of the walk at the stop.
fn difference(change: impl FnOnce(&mut FoundWalk)) -> Option<ShadowStackDifference> {
    let scenario = parse(TEXT);
    let reached = scenario.run().unwrap().remove(0).reached.unwrap();
    let mut found = reached.walks[0].found.clone();
    let linked = scenario.program.link().unwrap();
    let mut run: Execution<'_> = scenario.start(0, &linked).unwrap();
    while run.machine().executed() < reached.executed {
        run.step().unwrap();
    }
    let callers: &[CallerState] = run.shadow_stack().callers();
    assert_eq!(callers.len(), 3);
    change(&mut found);
    found.shadow_stack_difference(callers, scenario.program.convention)
}

#[test]
fn a_right_walk_has_no_difference() {
    assert_eq!(difference(|_| ()), None);
    // Volatile registers are not compared.
    assert_eq!(difference(|found| found.frames[1].registers.set(Gpr::Rax, 7)), None);
}

#[test]
fn the_innermost_wrong_frame_is_reported() {
    let rip = difference(|found| {
        found.frames[1].registers.rip += 1;
        found.frames[2].registers.rip += 1;
    });
    assert!(
        matches!(rip, Some(ShadowStackDifference::Rip { frame: 0, expected, found }) if found == expected + 1)
    );
    for register in [Gpr::Rsp, Gpr::Rbx, Gpr::R15] {
        let change = |found: &mut FoundWalk| found.frames[2].registers.set(register, 7);
        let wrong = difference(change);
        assert!(
            matches!(wrong, Some(ShadowStackDifference::Register { frame: 1, register: reported, found: 7, .. })
                if reported == register),
            "{wrong:?}"
        );
    }
    let xmm = difference(|found| found.frames[1].registers.xmm[9] = 1);
    assert!(matches!(xmm, Some(ShadowStackDifference::Xmm { frame: 0, number: 15, found: 1, .. })));
    let position = difference(|found| found.frames[1].position = Position::Interrupted);
    assert!(matches!(position, Some(ShadowStackDifference::Position { frame: 0, .. })));
    let base = difference(|found| {
        if let Some((registers, _)) = &mut found.base {
            registers.set(Gpr::Rbp, 7);
        }
    });
    assert!(matches!(
        base,
        Some(ShadowStackDifference::Register { frame: 2, register: Gpr::Rbp, .. })
    ));
}

#[test]
fn a_walk_that_is_too_short_or_too_long_is_wrong() {
    let short = difference(|found| {
        found.frames.truncate(2);
        found.base = None;
        found.end = FoundEnd::Error(UnwindError::UnknownCode { address: 7 });
    });
    assert_eq!(short, Some(ShadowStackDifference::Ended { expected: 3, found: 2 }));
    let no_base = difference(|found| {
        found.base = None;
        found.end = FoundEnd::Error(UnwindError::UnknownCode { address: 7 });
    });
    assert_eq!(no_base, Some(ShadowStackDifference::Ended { expected: 3, found: 2 }));
    let long = difference(|found| {
        let (registers, position) = found.base.unwrap();
        let outermost = found.frames[2];
        found.frames.push(crate::FoundFrame { registers, position, ..outermost });
    });
    assert_eq!(long, Some(ShadowStackDifference::WentOn { expected: 3, found: 4 }));
}

/// The call frame information of two bytes of code at RVA 0x1000, as in vfork: the return address
/// is popped into rdx, then pushed back.
const LIKE_VFORK: &[u8] = &[
    16, 0, 0, 0, // A CIE of 16 bytes:
    0, 0, 0, 0, 1, 0, // version 1, no augmentation;
    1, 0x78, 16, // code counts in bytes, data in -8, the return address is 16;
    0x0C, 7, 8, 0x90, 1, // the CFA is rsp + 8, the return address at CFA - 8;
    0, 0, // nops.
    28, 0, 0, 0, // An FDE of 28 bytes:
    24, 0, 0, 0, // its CIE;
    0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // its range;
    9, 16, 1, 0x0E, 0, // the return address is in rdx, and the CFA is rsp;
    0, 0, 0, // nops.
];

#[test]
fn the_first_step_may_leave_the_stack_pointer_where_it_is() {
    const IMAGE: u64 = 0x5000_0000;
    let code = Section { rva: 0x1000, bytes: &[0x0F, 0x05], executable: true };
    let frames = Section { rva: 0x2000, bytes: LIKE_VFORK, executable: false };
    let sections = Sections::new(vec![code, frames]).unwrap();
    let table =
        CfiTable::new(&CfiSections { eh_frame: Some(frames), ..CfiSections::default() }, &sections);
    assert_eq!((table.problems(), table.function(0x1001)), (0, Some(0x1000..0x1002)));
    let region = CodeRegion::from_sections(
        IMAGE,
        0x3000,
        RegionKind::Image,
        sections,
        FunctionTable::default(),
    );
    let mut map = CodeMap::new();
    map.insert(region.unwrap().with_cfi(table)).unwrap();
    let scenario = parse(TEXT);
    let linked = scenario.program.link().unwrap();
    let run = scenario.start(0, &linked).unwrap();
    let walk = |position, rdx| {
        let mut registers = run.machine().cpu().registers();
        registers.rip = IMAGE + 0x1001;
        registers.set(Gpr::Rdx, rdx);
        let memory = run.machine();
        let start = Start { linked: &linked, map: &map, memory, registers, position };
        let walk = start.walk(Rules::Precise);
        (walk.frames.len(), walk.end, walk.base.map(|(base, _)| base.rsp() == registers.rsp()))
    };
    assert_eq!(walk(Position::Interrupted, BASE), (1, FoundEnd::Base, Some(true)));
    // No other step may keep it, or a walk might not end.
    let rsp = run.machine().cpu().rsp();
    let stuck = FoundEnd::Error(UnwindError::NoProgress { rsp, caller_rsp: rsp });
    assert_eq!(walk(Position::Interrupted, IMAGE + 0x1001), (2, stuck, None));
    assert_eq!(walk(Position::ReturnAddress, BASE), (1, stuck, None));
}
