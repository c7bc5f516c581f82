//! Frames on the stack that return to an address that no call precedes: signal handlers, and two
//! functions of CoreCLR on Unix.

use super::*;
use crate::mixed::image;

/// RVA that a handler returns to: a function that no call precedes.
const TRAMPOLINE: u32 = 0x300;
/// The instruction that was interrupted (RVA).
const INTERRUPTED: u32 = 0x520;

/// The initial instructions of functions with two words on the stack, of which the second is the return
/// address: DW_CFA_def_cfa rsp, 16; DW_CFA_offset rip, -8.
const TWO_WORDS: &[u8] = &[0x0C, 7, 16, 0x90, 1];

#[test]
fn a_handler_may_return_where_no_call_is() {
    let trampoline = NATIVE + u64::from(TRAMPOLINE);
    let interrupted = NATIVE + u64::from(INTERRUPTED);
    let mut mock = Mock::new(&[NATIVE + 0x20]);
    let leaf = mock.context.registers.rsp();
    mock.poke(leaf, trampoline);
    mock.poke(leaf + 16, interrupted);
    mock.poke(leaf + 24, 0);
    for is_trampoline in [true, false] {
        let signal: &[u8] = if is_trampoline { b"zRS" } else { b"zR" };
        let functions = [
            ((0, TRAMPOLINE - 0x10), b"zR".as_slice(), USUAL),
            ((TRAMPOLINE, 0x10), signal, TWO_WORDS),
            ((0x400, 0xC00), b"zR", USUAL),
        ];
        let functions = functions.map(|(range, augmentation, instructions)| Functions {
            range,
            augmentation,
            instructions,
            program: &[],
        });
        let stack = image::walk(&mock, &functions, Policy::Seeded);
        let ips: Vec<_> = stack.frames.iter().map(|frame| frame.ip).collect();
        if is_trampoline {
            assert_eq!(ips, [NATIVE + 0x20, trampoline, interrupted]);
            assert_eq!(stack.completeness(), Completeness::Whole);
            let last = stack.frames[2];
            assert_eq!(last.source, Source::Unwound(Trust::SignalFrame));
            assert_eq!(last.position, Position::Interrupted);
        } else {
            assert_eq!(ips, [NATIVE + 0x20]);
            let reason = Reason::NotACall { address: trampoline };
            assert_eq!(stack.completeness(), Completeness::Partial(reason));
        }
    }
}

/// `nop` of 8 bytes: functions that are followed have few instructions.
const NOP: [u8; 8] = [0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0];

/// Walks a thread in a native function that has pushed one word, and of which the call frame
/// information says that the return address is above it. Two methods are below. `last` is the function's last byte,
/// `word` its word on the stack, `named` the word above.
fn walk_of_native_function(last: u8, word: u64, named: u64) -> clr_walker::mixed::MixedStack {
    walk_of_function(TWO_WORDS, (0x50, last), word, named)
}

/// Does the same with these initial instructions, and this first and last byte.
fn walk_of_function(
    instructions: &'static [u8],
    (first, last): (u8, u8),
    word: u64,
    named: u64,
) -> clr_walker::mixed::MixedStack {
    let below = [returns_to(MANAGED, 2), returns_to(MANAGED, 3)];
    let mut mock = Mock::new(&[NATIVE + 0x20, below[0], below[1]]);
    mock.knows_managed = true;
    let leaf = mock.context.registers.rsp();
    let rsp = leaf + FRAME - 8;
    mock.poke(rsp, word);
    mock.poke(rsp + 8, named);
    // As left by an earlier call.
    mock.poke(rsp - 8, below[0]);
    // The return address of a method whose frame begins after the named word.
    mock.poke(rsp + 16 + FRAME - 8, below[1]);
    // The same for the native function: two words.
    mock.poke(rsp + 16 + 8, below[1]);
    mock.context.registers.set(clr_unwind::Gpr::Rsp, rsp);
    let function = Functions { range: (0, 0x100), augmentation: b"zR", instructions, program: &[] };
    let bytes = eh_frame(&[function]);
    let mut code = [&[0x50][..], &NOP.repeat(31), &[0x66, 0x0F, 0x1F, 0x44, 0, 0, last]].concat();
    assert_eq!(code.len(), 0x100);
    code[0] = first;
    let mut map = mock.map();
    map.remove(NATIVE).unwrap();
    image::insert(&mut map, &code, &bytes, image::LAZILY);
    mock.walk_by(&map, Policy::Signal, &mut WalkBuffer::new(8))
}

#[test]
fn a_hijacked_return_leads_to_a_function_that_returns_to_the_word_below_the_named_one() {
    let method = returns_to(MANAGED, 2);
    let (first, second) = (sp(1), returns_to(MANAGED, 3));
    // The word above may be any, an old return address too.
    for above in [7, second] {
        let stack = walk_of_native_function(0xC3, method, above);
        let frames: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        assert_eq!(frames, [(NATIVE + 0x20, first - 8), (method, first), (second, sp(2))]);
        assert_eq!(stack.frames[1].source, Source::Unwound(Trust::ReturnInstruction));
        assert_eq!(stack.completeness(), Completeness::Whole);
    }
}

#[test]
fn a_hijacked_return_leads_nowhere_if_no_call_returns_there() {
    for word in [returns_to(MANAGED, 2) + 1, 7] {
        let stack = walk_of_native_function(0xC3, word, returns_to(MANAGED, 3));
        assert_eq!(stack.frames.len(), 1, "{word:#x}");
        let reason = Reason::NotACall { address: word };
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
    }
}

#[test]
fn a_function_that_does_not_push_first_and_return_last_is_left_by_its_data_alone() {
    for ends in [(0x50, 0x90), (0x90, 0xC3), (0x53, 0xC3)] {
        let stack = walk_of_function(TWO_WORDS, ends, returns_to(MANAGED, 2), 7);
        assert_eq!(stack.frames.len(), 1, "{ends:x?}");
        let reason = Reason::NotACall { address: 7 };
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
    }
}

/// The word below the stack pointer is none of the function's.
#[test]
fn a_function_whose_data_fit_its_return_is_left_by_them_alone() {
    let stack = walk_of_function(USUAL, (0x50, 0xC3), 7, 0);
    assert_eq!(stack.frames.len(), 1);
    let reason = Reason::NotACall { address: 7 };
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}

#[test]
fn a_fault_in_a_method_is_below_the_function_that_handles_it() {
    // The handler was not called: the instruction is the one that faulted.
    let faulted = returns_to(MANAGED, 2) + 1;
    let stack = walk_of_native_function(0x90, 7, faulted);
    let frame = stack.frames[1];
    assert_eq!((frame.ip, frame.sp), (faulted, sp(1) + 8));
    assert_eq!(
        (frame.position, frame.source),
        (Position::Interrupted, Source::Unwound(Trust::Cfi))
    );
    assert_eq!(stack.frames[2].ip, returns_to(MANAGED, 3));

    // Not in a method, though a step from there would find its caller.
    for named in [NATIVE + 0x43, returns_to(UNKNOWN, 2) + 1] {
        let stack = walk_of_native_function(0x90, 7, named);
        let reason = Reason::NotACall { address: named };
        assert_eq!(stack.completeness(), Completeness::Partial(reason));
    }
}
