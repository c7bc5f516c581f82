//! Epilogues of native code without call frame information of their own.

use super::*;

/// The end of `GcSlotDecoder::GetSlotDesc` of CoreCLR 3.1.23, with a register more: pop rbx; pop r14; pop rbp; ret.
const END: &[u8] = &[0x5B, 0x41, 0x5E, 0x5D, 0xC3];
/// RVA of the end.
const AT: usize = 0x316;

/// The call frame information of that function: push rbp; push r14; push rbx, and nothing for the end.
const PROGRAM: &[u8] = &[0x41, 0x0E, 16, 0x86, 2, 0x42, 0x0E, 24, 0x8E, 3, 0x41, 0x0E, 32, 0x83, 4];

/// That of its caller, whose canonical frame address is r14 + 16.
const CALLER: &[u8] = &[0x0C, 14, 16];
/// Stands for the caller's r14.
const R14: u64 = 0xEE;

/// Walks a thread that was stopped `offset` bytes after the start of the epilogue `code`, which has
/// `words` on its stack.
fn walk(code: &[u8], offset: u64, words: &[u64]) -> MixedStack {
    let mut mock = Mock::new(&[NATIVE + AT as u64 + offset, 0, 0, 0]);
    mock.patch(AT, code);
    let sp = mock.context.registers.rsp();
    // Its return address, the last word, is 0.
    let r14 = sp + 8 * words.len() as u64 - 16;
    for (at, word) in (sp..).step_by(8).zip(words) {
        mock.poke(at, if *word == R14 { r14 } else { *word });
    }
    if !words.contains(&R14) {
        mock.context.registers.set(Gpr::R14, r14);
    }
    mock.context.registers.set(Gpr::Rbx, 0x1B);
    let native =
        |range, program| Functions { range, augmentation: b"zR", instructions: USUAL, program };
    let functions = [native((0x300, 0x100), PROGRAM), native((0x400, 0xC00), CALLER)];
    let read = if offset == 0 { AT_ONCE } else { LAZILY };
    walk_read(&mock, &functions, Policy::Signal, read)
}

#[test]
fn the_rest_of_an_epilogue_is_executed_where_the_row_before_it_is_wrong() {
    let caller = returns_to(NATIVE, 5);
    // What has not been popped yet, and the words above.
    let words = [0xBB, R14, 0xB0B, caller, 0xA512, 0xA512, 0xA512, 0xA512, 0xA512, 0];
    for (popped, offset) in [(0, 0), (1, 1), (2, 3), (3, 4)] {
        let stack = walk(END, offset, &words[popped..]);
        let frames: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        let sp = stack.frames[0].sp + 8 * (4 - popped as u64);
        assert_eq!(frames[1..], [(caller, sp)], "{offset}");
        let trust = if popped == 0 { Trust::Cfi } else { Trust::EpilogueInstructions };
        assert_eq!(stack.frames[1].source, Source::Unwound(trust), "{offset}");
        assert_eq!(stack.completeness(), Completeness::Whole, "{offset}");
    }
}

#[test]
fn other_code_and_other_words_are_no_way_to_a_caller() {
    let caller = returns_to(NATIVE, 5);
    let no_call = NATIVE + 0x501;
    for (code, address) in
        [(&[0x5B, 0x41, 0x5E, 0x5D, 0x90][..], caller), (END, no_call), (END, 0x77)]
    {
        let stack = walk(code, 3, &[0xB0B, address, 0, 0xA512, 0xA512, 0xA512]);
        assert_eq!(stack.frames.len(), 1, "{address:#x}");
        let Completeness::Partial(Reason::NotACall { .. }) = stack.completeness() else {
            panic!("{:?}", stack.completeness());
        };
    }
}

/// The end of a function with a frame pointer in libcoreclr.so of .NET Core 3.1: pop rbp; movzx eax, al; ret.
/// The row of its body goes on: push rbp; mov rbp, rsp.
const END_OF_RBP: &[u8] = &[0x5D, 0x0F, 0xB6, 0xC0, 0xC3];
const PROGRAM_OF_RBP: &[u8] = &[0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6];

/// After `pop rbp` the row names the caller of the caller, which is a return address too.
#[test]
fn the_callers_caller_is_no_caller_where_a_row_names_it() {
    let callers = [5, 6, 7].map(|n| returns_to(NATIVE, n));
    for offset in [1, 4] {
        let mut mock = Mock::new(&[NATIVE + AT as u64 + offset, 0, 0, 0]);
        mock.patch(AT, END_OF_RBP);
        let sp = mock.context.registers.rsp();
        // The words of the callers' frames: rbp and the return address.
        let words = [callers[0], sp + 24, callers[1], sp + 40, callers[2], 0, 0];
        for (at, word) in (sp..).step_by(8).zip(words) {
            mock.poke(at, word);
        }
        mock.context.registers.set(Gpr::Rbp, sp + 8);
        let native = |range| Functions {
            range,
            augmentation: b"zR",
            instructions: USUAL,
            program: PROGRAM_OF_RBP,
        };
        let functions = [native((0x300, 0x100)), native((0x400, 0xC00))];
        let stack = walk_read(&mock, &functions, Policy::Signal, LAZILY);
        let found: Vec<_> = stack.frames.iter().skip(1).map(|frame| (frame.ip, frame.sp)).collect();
        let expected = [(callers[0], sp + 8), (callers[1], sp + 24), (callers[2], sp + 40)];
        assert_eq!(found, expected, "{offset}");
        assert_eq!(stack.frames[1].source, Source::Unwound(Trust::EpilogueInstructions));
        assert_eq!(stack.completeness(), Completeness::Whole);
    }
}

/// Before the runtime is up, it cannot say what is managed; a native image needs no question.
#[test]
fn native_frames_have_their_names_before_the_runtime_is_up() {
    let mut mock = Mock::new(&[NATIVE + 0x320, 0, 0, 0]);
    mock.lookup = Some(HResult::NOT_YET_AVAILABLE);
    let sp = mock.context.registers.rsp();
    mock.poke(sp, returns_to(NATIVE, 5));
    mock.poke(sp + 8, 0);
    let native =
        Functions { range: (0x300, 0xD00), augmentation: b"zR", instructions: USUAL, program: &[] };
    let stack = walk_read(&mock, &[native], Policy::Signal, LAZILY);
    let kinds: Vec<_> = stack.frames.iter().map(|frame| frame.kind).collect();
    let native = |rva| FrameKind::Native { image: NATIVE, rva };
    assert_eq!(kinds, [native(0x320), native(0x542)]);
    assert!(!matches!(stack.gaps.first().map(|gap| gap.reason), Some(Reason::Lookup(_))));
}
