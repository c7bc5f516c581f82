//! Further rules of single kinds of Frames.

use super::*;

const CALLER: u64 = 0x7FF8_3000_0010;

/// Returns the offset of m_pCallerReturnAddress in an InlinedCallFrame.
fn return_address(generation: Generation) -> u64 {
    if is_new(generation) { 0x20 } else { 0x28 }
}

#[test]
fn an_inactive_call_says_nothing() {
    for generation in Generation::ALL {
        let memory = frame(
            generation,
            FrameKind::InlinedCall,
            &[(return_address(generation), 0), (0x10, 8)],
        );
        let identities = FrameIdentities::of(generation);
        let frame = FrameReader::new(AT, generation, &identities, &memory).unwrap().unwrap();
        assert_eq!(frame.is_active_call(), Ok(false), "{generation}");
        assert_eq!(frame.function(), Ok(0), "{generation}");
        assert_eq!(frame.return_address(&identities), Ok(0), "{generation}");
        assert_eq!(frame.next(), Ok(NEXT));
    }
}

#[test]
fn a_datum_with_bit_0_is_no_method() {
    for generation in Generation::ALL {
        for (datum, function) in [(0, 0), (0x1000, 0x1000), (0x1001, 0), (2, 0), (6, 0)] {
            let fields = [(0x10, datum), (return_address(generation), CALLER)];
            let memory = frame(generation, FrameKind::InlinedCall, &fields);
            let identities = FrameIdentities::of(generation);
            let frame = FrameReader::new(AT, generation, &identities, &memory).unwrap().unwrap();
            assert_eq!(frame.function(), Ok(function), "{generation}, {datum:#x}");
        }
    }
}

#[test]
fn only_frames_of_interrupted_threads_are_resumable() {
    for kind in FrameKind::ALL {
        for generation in generations_of(*kind) {
            let memory = frame(generation, *kind, &[]);
            let identities = FrameIdentities::of(generation);
            let frame = FrameReader::new(AT, generation, &identities, &memory).unwrap().unwrap();
            let resumable = ["ResumableFrame", "RedirectedThreadFrame"].contains(&kind.name());
            assert_eq!(frame.is_resumable(), resumable, "{kind}");
        }
    }
}

#[test]
fn a_word_that_no_class_has_is_no_frame() {
    for generation in Generation::ALL {
        let identities = FrameIdentities::of(generation);
        for word in [0, 0x1234_5678, u64::MAX] {
            let memory = Words::new([(AT, word)]);
            let frame = FrameReader::new(AT, generation, &identities, &memory).unwrap();
            assert!(frame.is_none(), "{generation}, {word:#x}");
        }
        let error = FrameReader::new(AT, generation, &identities, &Words::default()).err();
        assert_eq!(error, Some(Unreadable { address: AT, len: 8 }));
    }
}

/// Returns the return address of an UnmanagedToManagedFrame over `next` (C-080).
fn unmanaged_caller(
    generation: Generation,
    next: u64,
    below: &[(u64, u64)],
) -> Result<u64, Unreadable> {
    let identities = FrameIdentities::of(generation);
    let word = identities.word(FrameKind::UMThkCall).expect("the kind exists");
    let mut memory = Words::new([(AT, word), (AT + 8, next), (AT + 0x18, CALLER)]);
    for (at, value) in below {
        memory.put(NEXT + at, *value);
    }
    let frame = FrameReader::new(AT, generation, &identities, &memory).unwrap().unwrap();
    frame.return_address(&identities)
}

#[test]
fn an_unmanaged_caller_is_reported_only_once() {
    for generation in generations_of(FrameKind::UMThkCall) {
        let identities = FrameIdentities::of(generation);
        let word = |kind| identities.word(kind).unwrap();
        let (call, other) = (word(FrameKind::InlinedCall), word(FrameKind::Hijack));
        let at = return_address(generation);
        for (below, expected) in [
            // An active call that returns to the same place.
            (vec![(0, call), (at, CALLER)], Ok(0)),
            (vec![(0, call), (at, CALLER + 1)], Ok(CALLER)),
            (vec![(0, call), (at, 0)], Ok(CALLER)),
            (vec![(0, other), (at, CALLER)], Ok(CALLER)),
            (vec![(0, 0x99), (at, CALLER)], Ok(CALLER)),
            (vec![(0, call)], Err(NEXT + at)),
            (vec![(at, CALLER)], Err(NEXT)),
        ] {
            let found = unmanaged_caller(generation, NEXT, &below);
            let found = found.map_err(|unreadable| unreadable.address);
            assert_eq!(found, expected, "{generation}, {below:x?}");
        }
        let last = unmanaged_caller(generation, 0xFFFF_FFFF_FFFF_FFFF, &[]);
        assert_eq!(last, Ok(CALLER), "{generation}: the last Frame of a chain");
    }
}

#[test]
fn helper_frames_of_unix_keep_values_that_were_in_no_memory() {
    for generation in generations_of(FrameKind::HelperMethod) {
        let windows = is_windows(generation);
        let pointers = if windows { 0x80 } else { 0x70 };
        let mut memory = frame(
            generation,
            FrameKind::HelperMethod,
            &[(0x10, 0), (0x30, CALLER), (0x38, 0x1F_0400)],
        );
        for (register, n) in callee_saved(generation).iter().zip(0..) {
            memory.put(AT + pointers + 8 * n, 0);
            // On Windows the return address and the captured values have these offsets.
            memory.put(AT + 0xA8 + 8 * n, value_of(*register));
        }
        let said = ask(generation, &memory);
        if windows {
            // On Windows there is no substitute for a null pointer.
            assert_eq!(said, Err(Unreadable { address: 0, len: 8 }), "{generation}");
        } else {
            let registers = said.unwrap().context.registers;
            for register in callee_saved(generation) {
                assert_eq!(registers.get(*register), value_of(*register), "{generation}");
            }
        }
    }
}
