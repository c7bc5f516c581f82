//! Tests of Thread objects in memory, at offsets that are repeated here.

use super::*;
use crate::words::Words;

/// The Thread object (VA).
const AT: u64 = 0x7F_0000;
const OBJECT: ThreadObject = ThreadObject(ThreadId(AT));
/// The slot of a hijacked return address (VA).
const SLOT: u64 = 0x1F_0038;

/// A Thread object whose fields are all set, by hand.
const FIELDS: [(u64, u64); 10] = [
    // Hijacked, GC-special; cooperative.
    (0x00, 1 << 32 | 3),
    (0x08, 0x1F_0140),
    // The lock is taken; two forbid-suspend regions.
    (0x10, 2 << 32 | 1),
    (0x18, 5),
    (0x20, 0x20_0000),
    (0x28, 0x10_0000),
    (0x30, SLOT),
    (0x38, 0x7FF8_1234),
    (0x40, 0),
    (0x48, 1),
];

const EVERYTHING: ThreadFields = ThreadFields {
    cooperative: true,
    gc_special: true,
    top_frame: 0x1F_0140,
    hijack_locked: true,
    forbid_suspend: 2,
    external_count: 5,
    stack: (0x10_0000, 0x20_0000),
    hijacked: Some((SLOT, 0x7FF8_1234)),
    debugger_context: true,
};

/// Returns the object placed by hand, and the hijacked slot.
fn memory() -> Words {
    let fields = FIELDS.map(|(offset, value)| (AT + offset, value));
    Words::new(fields.into_iter().chain([(SLOT, 0xBAD)]))
}

/// Reads all values of a Thread object that can be read without changing it.
fn ask(memory: &Words) -> Result<ThreadFields, Unreadable> {
    Ok(ThreadFields {
        cooperative: OBJECT.is_cooperative(memory)?,
        gc_special: OBJECT.is_gc_special(memory)?,
        top_frame: OBJECT.top_frame(memory)?,
        hijack_locked: !OBJECT.try_hijack_lock(&mut memory.clone())?,
        forbid_suspend: OBJECT.forbid_suspend(memory)?,
        external_count: OBJECT.external_count(memory)?,
        stack: OBJECT.stack(memory)?,
        hijacked: OBJECT.unhijack(&mut memory.clone())?,
        debugger_context: OBJECT.debugger_context(memory)?,
    })
}

#[test]
fn fields_by_hand_are_read() {
    assert_eq!(ask(&memory()), Ok(EVERYTHING));
    let nothing = Words::new((0..0x50).step_by(8).map(|offset| (AT + offset, 0)));
    let expected =
        ThreadFields { top_frame: 0, external_count: 0, stack: (0, 0), ..ThreadFields::default() };
    assert_eq!(ask(&nothing), Ok(expected));
}

#[test]
fn fields_are_written_where_they_are_read() {
    assert_eq!(THREAD_OBJECT_SIZE, 0x70);
    let mut memory = Words::new((0..0x50).step_by(8).map(|offset| (AT + offset, 0x5107)));
    EVERYTHING.write(&mut memory, ThreadId(AT)).unwrap();
    for (offset, value) in FIELDS {
        assert_eq!(memory.get(AT + offset), value, "{offset:#x}");
    }
    ThreadFields::default().write(&mut memory, ThreadId(AT)).unwrap();
    assert_eq!(ask(&memory), Ok(ThreadFields::default()));
    assert_eq!(memory.get(AT + 8), 0xFFFF_FFFF_FFFF_FFFF, "no Frame");
    for at in memory.addresses() {
        let error = EVERYTHING.write(&mut memory.without(at), ThreadId(AT));
        assert_eq!(error, Err(Unreadable { address: at, len: 8 }));
    }
}

#[test]
fn the_hijack_lock_is_taken_once() {
    let mut memory = memory();
    assert_eq!(OBJECT.try_hijack_lock(&mut memory), Ok(false));
    assert!(memory.written.is_empty());
    OBJECT.release_hijack_lock(&mut memory).unwrap();
    // The forbid-suspend count next to it keeps its value.
    assert_eq!((memory.get(AT + 0x10), OBJECT.forbid_suspend(&memory)), (2 << 32, Ok(2)));
    assert_eq!(OBJECT.try_hijack_lock(&mut memory), Ok(true));
    assert_eq!(OBJECT.try_hijack_lock(&mut memory), Ok(false));
    assert_eq!(memory.get(AT + 0x10), 2 << 32 | 1);
}

#[test]
fn counts_change_alone() {
    let mut memory = memory();
    OBJECT.set_forbid_suspend(&mut memory, 0xFFFF_FFFF).unwrap();
    OBJECT.set_external_count(&mut memory, 0).unwrap();
    OBJECT.set_profiler_context(&mut memory, true).unwrap();
    assert_eq!(OBJECT.profiler_context(&memory), Ok(true));
    let expected = ThreadFields { forbid_suspend: 0xFFFF_FFFF, external_count: 0, ..EVERYTHING };
    assert_eq!(ask(&memory), Ok(expected));
    OBJECT.set_profiler_context(&mut memory, false).unwrap();
    assert_eq!(OBJECT.profiler_context(&memory), Ok(false));
    assert_eq!(ask(&memory), Ok(expected));
}

/// Tests C-077.
#[test]
fn a_hijacked_return_address_is_put_back_once() {
    let mut memory = memory();
    assert_eq!(OBJECT.unhijack(&mut memory), Ok(Some((SLOT, 0x7FF8_1234))));
    assert_eq!(memory.get(SLOT), 0x7FF8_1234);
    // The other flags and the saved value are unchanged.
    assert_eq!((memory.get(AT), memory.get(AT + 0x38)), (1 << 32 | 2, 0x7FF8_1234));
    memory.put(SLOT, 0x77);
    assert_eq!(OBJECT.unhijack(&mut memory), Ok(None));
    assert_eq!(memory.get(SLOT), 0x77);
    let error = OBJECT.unhijack(&mut self::memory().without(SLOT));
    assert_eq!(error, Err(Unreadable { address: SLOT, len: 8 }));
}

/// A query or a change, and the field that it accesses.
type Access = fn(&mut Words) -> Result<(), Unreadable>;

#[test]
fn unreadable_and_unwritable_memory_is_an_error() {
    let accesses: [(u64, Access); 17] = [
        (0x00, |memory| OBJECT.is_gc_special(memory).map(|_| ())),
        (0x04, |memory| OBJECT.is_cooperative(memory).map(|_| ())),
        (0x08, |memory| OBJECT.top_frame(memory).map(|_| ())),
        (0x10, |memory| OBJECT.try_hijack_lock(memory).map(|_| ())),
        (0x10, |memory| OBJECT.release_hijack_lock(memory)),
        (0x14, |memory| OBJECT.forbid_suspend(memory).map(|_| ())),
        (0x10, |memory| OBJECT.set_forbid_suspend(memory, 1)),
        (0x18, |memory| OBJECT.external_count(memory).map(|_| ())),
        (0x18, |memory| OBJECT.set_external_count(memory, 1)),
        (0x20, |memory| OBJECT.stack(memory).map(|_| ())),
        (0x28, |memory| OBJECT.stack(memory).map(|_| ())),
        (0x00, |memory| OBJECT.unhijack(memory).map(|_| ())),
        (0x30, |memory| OBJECT.unhijack(memory).map(|_| ())),
        (0x38, |memory| OBJECT.unhijack(memory).map(|_| ())),
        (0x40, |memory| OBJECT.profiler_context(memory).map(|_| ())),
        (0x40, |memory| OBJECT.set_profiler_context(memory, true)),
        (0x48, |memory| OBJECT.debugger_context(memory).map(|_| ())),
    ];
    for (case, (offset, access)) in accesses.into_iter().enumerate() {
        assert_eq!(access(&mut memory()), Ok(()), "case {case}");
        let mut without = memory().without(AT + offset / 8 * 8);
        let error = access(&mut without).unwrap_err();
        assert_eq!(error.address, AT + offset, "case {case}");
    }
}

#[test]
fn an_object_at_the_end_of_the_address_space_wraps() {
    let at = ThreadObject(ThreadId(0xFFFF_FFFF_FFFF_FFF8));
    let error = at.top_frame(&Words::default()).unwrap_err();
    assert_eq!(error, Unreadable { address: 0, len: 8 });
}

/// Tests contract §2.1.
#[test]
fn bits_4_and_8_pass_every_check() {
    let (callback, triggers) = (CallbackState::IN_CALLBACK, CallbackState::IN_TRIGGERS_SCOPE);
    for (bits, in_callback, may_trigger) in
        [(0, false, false), (1, true, false), (2, false, true), (3, true, true)]
    {
        let state = CallbackState(bits);
        assert_eq!(
            (state.contains(callback), state.contains(triggers)),
            (in_callback, may_trigger)
        );
        assert_eq!((state.passes(callback), state.passes(triggers)), (in_callback, may_trigger));
        assert_eq!(state.passes(CallbackState(3)), bits == 3);
        for more in [4, 8, 12] {
            let state = CallbackState(bits | more);
            assert!(state.passes(CallbackState(3)));
            assert_eq!(state.contains(callback), in_callback);
        }
    }
}

/// The flags next to each other in a word are independent.
#[test]
fn flags_of_a_thread_object_change_alone() {
    let usual = ThreadFields::default();
    for (fields, hijacked, locked) in [
        (usual, false, false),
        (ThreadFields { gc_special: true, ..usual }, false, false),
        (ThreadFields { hijack_locked: true, ..usual }, false, true),
        (ThreadFields { forbid_suspend: 1, ..usual }, false, false),
        (EVERYTHING, true, true),
    ] {
        let mut memory = memory();
        fields.write(&mut memory, ThreadId(AT)).unwrap();
        assert_eq!(OBJECT.is_hijacked(&memory), Ok(hijacked), "{fields:?}");
        assert_eq!(OBJECT.is_hijack_locked(&memory), Ok(locked), "{fields:?}");
        for cooperative in [true, false] {
            OBJECT.set_cooperative(&mut memory, cooperative).unwrap();
            assert_eq!(ask(&memory), Ok(ThreadFields { cooperative, ..fields }));
        }
    }
}

/// Tests C-077: also a return address that is hijacked while another one is.
#[test]
fn a_return_address_is_replaced_and_remembered() {
    for fields in [ThreadFields { hijacked: None, ..EVERYTHING }, EVERYTHING] {
        let mut memory = memory();
        fields.write(&mut memory, ThreadId(AT)).unwrap();
        OBJECT.hijack(&mut memory, SLOT, 0x7FF8_5678, 0x7FF7_0000).unwrap();
        assert_eq!(OBJECT.is_hijacked(&memory), Ok(true));
        assert_eq!(memory.get(SLOT), 0x7FF7_0000);
        let hijacked = Some((SLOT, 0x7FF8_5678));
        assert_eq!(ask(&memory), Ok(ThreadFields { hijacked, ..EVERYTHING }));
        assert_eq!(OBJECT.unhijack(&mut memory), Ok(hijacked));
        assert_eq!(memory.get(SLOT), 0x7FF8_5678);
    }
}
