//! Wrong walks in the table of `clrsim compare`.

use super::Comparison;
use crate::render::style::unstyled;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::Policy;
use clr_scenario::{Compared, FoundMixed, FoundMixedFrame, MixedFrameKind, Scenario, ShadowFrame};
use clr_unwind::{Position, Trust};
use clr_walker::mixed::{Completeness, FrameKind, Gap, MixedFrame, Reason, Source};

fn there(label: &str, sp: u64) -> ShadowFrame {
    ShadowFrame { kind: MixedFrameKind::Native, label: label.to_owned(), ip: 0x1000 + sp, sp }
}

fn found(label: &str, sp: u64) -> FoundMixedFrame {
    let frame = MixedFrame {
        kind: FrameKind::Native { image: 0, rva: 0 },
        ip: 0x1000 + sp,
        sp,
        position: Position::ReturnAddress,
        source: Source::Unwound(Trust::FramePointer),
        reported: false,
    };
    FoundMixedFrame { frame, label: label.to_owned() }
}

/// Frames that are not on the stack have rows of their own, and gaps keep their places.
#[test]
fn missing_frames_are_marked() {
    let walk = |frames: &[FoundMixedFrame]| FoundMixed {
        frames: frames.to_vec(),
        gaps: vec![Gap { at: frames.len() - 1, reason: Reason::FramePointers }],
        completeness: Some(Completeness::Partial(Reason::FramePointers)),
        outcome: None,
        decided_by: None,
    };
    let compared = Compared {
        stop: None,
        shadow_frames: vec![
            there("Leaf+0x1", 0x10),
            there("Middle+0x2", 0x20),
            there("Root+0x3", 0x30),
        ],
        walks: vec![
            (
                Policy::FramePointers,
                walk(&[found("Leaf+0x1", 0x10), found("Old+0x8", 0x18), found("Root+0x3", 0x30)]),
            ),
            (
                Policy::Seeded,
                walk(&[
                    found("Leaf+0x1", 0x10),
                    found("Old+0x8", 0x18),
                    found("Middle+0x2", 0x20),
                    found("Gone+0x9", 0x28),
                ]),
            ),
        ],
    };
    let on = Generation::Net10Windows;
    let comparison = Comparison::new(&Scenario::default(), "", None, on, Ok(compared));
    let mut out = Vec::new();
    comparison.write(&mut out).unwrap();
    insta::assert_snapshot!(unstyled(&String::from_utf8(out).unwrap()));
}
