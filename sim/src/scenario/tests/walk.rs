//! How a walk can leave the truth: true walks, changed by hand.

use super::parse;
use crate::run::Run;
use crate::scenario::{FoundEnd, FoundWalk, Untrue};
use crate::truth::Caller;
use clr_walker::registers::Gpr;
use clr_walker::unwind::{Position, UnwindError};

const TEXT: &str = "
function \"main\" { body { call \"middle\" } }
function \"middle\" { push \"rbx\"; body { call \"leaf\" } }
function \"leaf\" { unwind \"none\"; body { work 1 } }
stop at=\"leaf\"
";

/// The walk at the stop after a change, held against the truth.
fn untrue(change: impl FnOnce(&mut FoundWalk)) -> Option<Untrue> {
    let scenario = parse(TEXT);
    let reached = scenario.run().unwrap().remove(0).reached.unwrap();
    let mut found = reached.walks[0].found.clone();
    let linked = scenario.program.link().unwrap();
    let mut run: Run<'_> = scenario.start(0, &linked).unwrap();
    while run.machine().executed() < reached.executed {
        run.step().unwrap();
    }
    let callers: &[Caller] = run.truth().callers();
    assert_eq!(callers.len(), 3);
    change(&mut found);
    found.untrue(callers, scenario.program.convention)
}

#[test]
fn a_true_walk_is_true() {
    assert_eq!(untrue(|_| ()), None);
    // Volatile registers are nobody's.
    assert_eq!(untrue(|found| found.frames[1].registers.set(Gpr::Rax, 7)), None);
}

#[test]
fn the_innermost_untruth_is_told() {
    let rip = untrue(|found| {
        found.frames[1].registers.rip += 1;
        found.frames[2].registers.rip += 1;
    });
    assert!(matches!(rip, Some(Untrue::Rip { frame: 0, truth, found }) if found == truth + 1));
    for register in [Gpr::Rsp, Gpr::Rbx, Gpr::R15] {
        let change = |found: &mut FoundWalk| found.frames[2].registers.set(register, 7);
        let wrong = untrue(change);
        assert!(
            matches!(wrong, Some(Untrue::Register { frame: 1, register: told, found: 7, .. })
                if told == register),
            "{wrong:?}"
        );
    }
    let xmm = untrue(|found| found.frames[1].registers.xmm[9] = 1);
    assert!(matches!(xmm, Some(Untrue::Xmm { frame: 0, number: 15, found: 1, .. })));
    let position = untrue(|found| found.frames[1].position = Position::Interrupted);
    assert!(matches!(position, Some(Untrue::Position { frame: 0, .. })));
    let base = untrue(|found| {
        if let Some((registers, _)) = &mut found.base {
            registers.set(Gpr::Rbp, 7);
        }
    });
    assert!(matches!(base, Some(Untrue::Register { frame: 2, register: Gpr::Rbp, .. })));
}

#[test]
fn a_walk_that_is_too_short_or_too_long_is_untrue() {
    let short = untrue(|found| {
        found.frames.truncate(2);
        found.base = None;
        found.end = FoundEnd::Error(UnwindError::UnknownCode { address: 7 });
    });
    assert_eq!(short, Some(Untrue::Ended { truth: 3, found: 2 }));
    let no_base = untrue(|found| {
        found.base = None;
        found.end = FoundEnd::Error(UnwindError::UnknownCode { address: 7 });
    });
    assert_eq!(no_base, Some(Untrue::Ended { truth: 3, found: 2 }));
    let long = untrue(|found| {
        let (registers, position) = found.base.unwrap();
        let outermost = found.frames[2];
        found.frames.push(crate::scenario::FoundFrame { registers, position, ..outermost });
    });
    assert_eq!(long, Some(Untrue::WentOn { truth: 3, found: 4 }));
}
