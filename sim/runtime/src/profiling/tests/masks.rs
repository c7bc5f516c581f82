//! Tests of GetEventMask and SetEventMask (contract §1.3, §5.11).

use super::*;

const SNAPSHOT: u32 = 0x1000_0000;

/// Bits that cannot change after startup, from corprof.idl: CODE_TRANSITIONS, REMOTING, its COOKIE and
/// ASYNC, INPROC_DEBUGGING, JIT_MAPS, DISABLE_INLINING and OPTIMIZATIONS, OBJECT_ALLOCATED,
/// FUNCTION_ARGS, FUNCTION_RETVAL, FRAME_INFO, USE_PROFILE_IMAGES, TRANSPARENCY_CHECKS, NGEN_IMAGES.
const IMMUTABLE: [u32; 15] = [
    0x800,
    0x400,
    0x4000,
    0x8000,
    0x8_0000,
    0x10_0000,
    0x20_0000,
    0x40_0000,
    0x80_0000,
    0x200_0000,
    0x400_0000,
    0x800_0000,
    0x2000_0000,
    0x4000_0000,
    0x8000_0000,
];
/// ENABLE_REJIT: immutable until CoreCLR 3 allowed it for attached profilers.
const REJIT: u32 = 0x4_0000;
/// Bits that an attached profiler may set: class, module, assembly and app domain loads, JIT
/// compilation, exceptions, GC, threads, suspensions.
const ATTACHABLE: [u32; 9] = [2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x200, 0x1_0000];
/// The other bits: function unloads, allocations, enter and leave, COM, cache searches, CLR
/// exceptions.
const NEITHER: [u32; 6] = [1, 0x100, 0x1000, 0x2000, 0x2_0000, 0x100_0000];

/// Bits that Framework 2 knows nothing of: no transparency checks, no NGen images.
const SINCE_4: [u32; 2] = [0x4000_0000, 0x8000_0000];
/// DISABLE_INLINING, DISABLE_OPTIMIZATIONS.
const CODE_GENERATION: [u32; 2] = [0x20_0000, 0x40_0000];
/// GC: immutable in Framework 2, as is ENABLE_STACK_SNAPSHOT.
const GC: u32 = 0x80;
/// DISABLE_INLINING and OPTIMIZATIONS: mutable since .NET 10 (recorded on 10.0.15 and 11.0.0; not on 3.1.23, 8.0.34 and 9.0.23).
const UNTIL_10: [u32; 2] = [0x20_0000, 0x40_0000];
/// Exceptions, which a profiler that is attached to Framework 4 may not have.
const EXCEPTIONS: u32 = 0x40;

/// Returns true if a bit cannot be changed after startup.
fn is_immutable(generation: Generation, bit: u32) -> bool {
    if FRAMEWORK_2.contains(generation) && (SINCE_4.contains(&bit) || bit == GC) {
        return bit == GC;
    }
    if generation.family().is_core_since(10) && UNTIL_10.contains(&bit) {
        return false;
    }
    IMMUTABLE.contains(&bit) || bit == REJIT && FRAMEWORK.contains(generation)
}

/// Returns the result of setting one more bit, and true if the mask then has the bit.
fn set(
    generation: Generation,
    status: ProfilerStatus,
    attached: bool,
    bit: u32,
) -> (Answer<()>, bool) {
    let runtime = process(generation);
    runtime.change_process(|process| {
        process.profiler = status;
        process.attached = attached;
    });
    let caller = runtime.on(WORKER);
    let answer = caller.set_event_mask(EventMask(SNAPSHOT | bit));
    let mask = caller.get_event_mask().unwrap().0;
    assert_eq!(mask & !bit, SNAPSHOT);
    (answer, mask & bit != 0)
}

#[test]
fn after_startup_some_events_cannot_be_asked_for() {
    for generation in Generation::ALL {
        for bit in IMMUTABLE.into_iter().chain(ATTACHABLE).chain(NEITHER).chain([REJIT]) {
            let immutable = is_immutable(generation, bit);
            let during = set(generation, ProfilerStatus::InitializingForStartup, false, bit);
            assert_eq!(during, (Ok(()), true), "{generation}, {bit:#x}");
            let after = set(generation, ProfilerStatus::Active, false, bit);
            let expected = if immutable { (failed(E_FAIL), false) } else { (Ok(()), true) };
            assert_eq!(after, expected, "{generation}, {bit:#x}");
        }
    }
}

#[test]
fn attached_profilers_may_have_some_events_alone() {
    for generation in FRAMEWORK_2.inverse().iter() {
        for status in [ProfilerStatus::Active, ProfilerStatus::InitializingForAttach] {
            let expect = |bit, expected: (Answer<()>, bool)| {
                assert_eq!(set(generation, status, true, bit), expected, "{generation}, {bit:#x}");
            };
            for bit in ATTACHABLE {
                let refused = bit == EXCEPTIONS && FRAMEWORK.contains(generation);
                let unsupported = (failed(UNSUPPORTED_FOR_ATTACHING), false);
                expect(bit, if refused { unsupported } else { (Ok(()), true) });
            }
            for bit in NEITHER {
                expect(bit, (failed(UNSUPPORTED_FOR_ATTACHING), false));
            }
            // Immutability is checked first.
            for bit in IMMUTABLE {
                let is_immutable = is_immutable(generation, bit);
                let refused = if is_immutable { E_FAIL } else { UNSUPPORTED_FOR_ATTACHING };
                // What .NET 10 can change at any time, attached profilers may ask for, too: run on Linux alone.
                let is_allowed =
                    CODE_GENERATION.contains(&bit) && !is_immutable && generation.is_unix();
                expect(bit, if is_allowed { (Ok(()), true) } else { (failed(refused), false) });
            }
            let rejit = if FRAMEWORK.contains(generation) {
                (failed(E_FAIL), false)
            } else {
                (Ok(()), true)
            };
            expect(REJIT, rejit);
        }
    }
}

#[test]
fn flags_set_at_startup_cannot_be_cleared() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_process(|process| process.event_mask = EventMask(SNAPSHOT | 0x80_0000));
        let caller = runtime.on(STRANGER);
        assert_eq!(caller.set_event_mask(EventMask(SNAPSHOT)), failed(E_FAIL), "{generation}");
        // Bits that do not change may be set again.
        let more = EventMask(SNAPSHOT | 0x80_0000 | EXCEPTIONS);
        assert_eq!(caller.set_event_mask(more), Ok(()), "{generation}");
        assert_eq!(caller.get_event_mask(), Ok(more), "{generation}");
    }
}

/// Tests C-005.
#[test]
fn snapshots_are_switched_on_and_off_at_any_time() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let caller = runtime.on(WORKER);
        let enabled = walk(caller, ThreadId(0));
        if FRAMEWORK_2.contains(generation) {
            // The flag is one of those that are chosen at startup.
            assert_eq!(caller.set_event_mask(EventMask(0)), failed(E_FAIL));
            continue;
        }
        caller.set_event_mask(EventMask(0)).unwrap();
        let disabled = walk(caller, ThreadId(0));
        caller.set_event_mask(EventMask(SNAPSHOT)).unwrap();
        assert_eq!(walk(caller, ThreadId(0)), enabled, "{generation}");
        let refused = HResult(0x8013_1374);
        assert_eq!((enabled, disabled), (E_FAIL.into(), refused.into()), "{generation}");
    }
}
