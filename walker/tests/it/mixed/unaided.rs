//! Walks in a signal handler, which ask the runtime nothing.

use super::*;

/// Returns a stack of native code over managed code over native code.
fn sandwich() -> [u64; 5] {
    [
        NATIVE + 0x20,
        returns_to(NATIVE, 1),
        returns_to(MANAGED, 2),
        returns_to(MANAGED, 3),
        returns_to(NATIVE, 4),
    ]
}

/// Returns the process of a profiler that adds jitted methods to its map.
fn fed(ips: &[u64]) -> Mock {
    let mut mock = Mock::new(ips);
    mock.knows_managed = true;
    mock
}

fn functions(stack: &MixedStack) -> Vec<Option<FunctionId>> {
    let function = |kind| match kind {
        FrameKind::Managed(function) => Some(function),
        _ => None,
    };
    stack.frames.iter().map(|frame| function(frame.kind)).collect()
}

#[test]
fn a_handler_asks_the_runtime_nothing() {
    let mock = fed(&sandwich());
    let map = mock.map();
    let walker = Walker::new(&mock, &map, Policy::Signal);
    let mut buffer = WalkBuffer::new(32);
    let Ok(()) = walker.take(&mock, &mut buffer);
    assert_eq!(mock.done.borrow().len(), 1, "only the context is read: {:?}", mock.done.borrow());

    let Ok(stack) = walker.stitch(&buffer);
    assert_eq!(stack.completeness(), Completeness::Whole);
    assert_eq!(stack.snapshot, None);
    let [first, second] = [2, 3].map(|n| Some(function_at(returns_to(MANAGED, n))));
    assert_eq!(functions(&stack), [None, None, first, second, None]);
    assert!(stack.frames.iter().all(|frame| !frame.reported));
}

#[test]
fn a_refused_name_is_a_gap_and_costs_no_frame() {
    let mut mock = fed(&sandwich());
    mock.lookup = Some(HResult::ASYNCHRONOUS_UNSAFE);
    let stack = mock.walk(Policy::Signal);
    assert_eq!(stack.frames.len(), 5);
    let reason = Reason::Lookup(HResult::ASYNCHRONOUS_UNSAFE);
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}

/// Without the profiler's map, jitted code ends the walk.
#[test]
fn a_method_that_nobody_has_added_ends_the_walk() {
    let stack = Mock::new(&sandwich()).walk(Policy::Signal);
    assert_eq!(stack.frames.len(), 3);
    let address = returns_to(MANAGED, 2);
    let reason = Reason::Unwind(UnwindError::UnknownCode { address });
    assert_eq!(stack.completeness(), Completeness::Partial(reason));
}

/// Returns the process of a leaf in unknown code, with `word` on top of the stack, and the frames
/// of `ips` after it.
fn stub(word: u64, ips: &[u64]) -> Mock {
    let mut mock = fed(ips);
    // The leaf has no frame of its own.
    mock.context.registers.rip = UNKNOWN + 0x60;
    mock.context.registers.set(Gpr::Rsp, sp(1) - 8);
    mock.poke(sp(1) - 8, word);
    mock
}

#[test]
fn a_stub_is_left_if_the_word_on_top_of_the_stack_follows_a_call_in_a_method() {
    let ips = [UNKNOWN, returns_to(MANAGED, 2), returns_to(NATIVE, 4)];
    let mock = stub(ips[1], &ips);
    let stack = mock.walk(Policy::Signal);
    assert_eq!(stack.completeness(), Completeness::Guessed(Trust::StackTop));
    assert_eq!(functions(&stack), [None, Some(function_at(ips[1])), None]);
    assert_eq!(stack.frames[0].kind, FrameKind::Unknown);
    assert_eq!(stack.frames[1].source, Source::Unwound(Trust::StackTop));
    assert_eq!(stack.frames[1].sp, sp(1));

    let in_no_call = returns_to(MANAGED, 2) + 1;
    let in_unknown_code = returns_to(UNKNOWN, 2);
    for word in [0, 7, in_no_call, in_unknown_code] {
        let stack = stub(word, &ips).walk(Policy::Signal);
        assert_eq!(stack.frames.len(), 1, "{word:#x}");
        let address = UNKNOWN + 0x60;
        let reason = Reason::Unwind(UnwindError::UnknownCode { address });
        assert_eq!(stack.completeness(), Completeness::Partial(reason), "{word:#x}");
    }
}

#[test]
fn a_stub_that_has_pushed_a_register_is_left_by_the_word_above() {
    let ips = [UNKNOWN, returns_to(MANAGED, 2), returns_to(NATIVE, 4)];
    let leaf = |code: &[u8], word| {
        let mut mock = stub(word, &ips);
        mock.context.registers.set(Gpr::Rsp, sp(1) - 16);
        mock.poke(sp(1) - 16, 7);
        mock.patch(0x60, code);
        mock.walk(Policy::Signal)
    };
    let pops = [0x5A, 0xFF, 0x60, 0x10];
    let stack = leaf(&pops, ips[1]);
    assert_eq!(stack.completeness(), Completeness::Whole);
    assert_eq!(stack.frames[1].source, Source::Unwound(Trust::Stub));
    assert_eq!((stack.frames[1].ip, stack.frames[1].sp), (ips[1], sp(1)));
    // pop rdx; call rax
    for stack in [leaf(&[0x5A, 0xFF, 0xD0], ips[1]), leaf(&pops, 7)] {
        assert_eq!(stack.frames.len(), 1);
    }
}

/// A JIT's code with a frame has an old return address on top of its stack, from a call that its caller has
/// made before.
#[test]
fn an_old_return_address_on_top_of_the_stack_is_no_caller() {
    let ips = [UNKNOWN, returns_to(MANAGED, 2), returns_to(NATIVE, 4)];
    let lost = Reason::Unwind(UnwindError::UnknownCode { address: UNKNOWN + 0x60 });
    let is_lost = |stack: &MixedStack| {
        stack.frames.len() == 1 && stack.completeness() == Completeness::Partial(lost)
    };
    // A stack that is aligned as in a body.
    let mut mock = stub(ips[1], &ips);
    mock.context.registers.set(Gpr::Rsp, sp(1) - 16);
    mock.poke(sp(1) - 16, ips[1]);
    assert!(is_lost(&mock.walk(Policy::Signal)));
    // call rel32 to `mov r10, target; jmp r10`; call [rip+8].
    let relative =
        |to: u64| [&[0xE8][..], &(to.wrapping_sub(ips[1]) as u32).to_le_bytes()].concat();
    let (to_stub, through_cell) = (relative(MANAGED + 0x800), [0xFF, 0x15, 8, 0, 0, 0]);
    for (call, target, is_left) in [
        (&to_stub[..], UNKNOWN + 0x60, true),
        (&to_stub, UNKNOWN, true),
        (&to_stub, UNKNOWN + 0x61, false),
        (&to_stub, UNKNOWN - 0x1000, false),
        (&to_stub, NATIVE + 0x500, false),
        (&relative(MANAGED + 0x900), UNKNOWN + 0x60, false),
        // A method that ends with a tail call.
        (&relative(MANAGED + 0xA00), UNKNOWN + 0x60, true),
        (&through_cell, UNKNOWN + 0x50, true),
        // A cell may have been replaced since, but code of the map does not go on elsewhere.
        (&through_cell, 0x7777_0000, true),
        (&through_cell, NATIVE + 0x500, false),
        (&through_cell, MANAGED + 0x800, false),
    ] {
        let mut mock = stub(ips[1], &ips);
        let address = if call == to_stub { target } else { NATIVE };
        mock.patch(
            0x800,
            &[&[0x49, 0xBA][..], &address.to_le_bytes(), &[0x41, 0xFF, 0xE2]].concat(),
        );
        mock.patch(0xA20, &[0xFF, 0xE0]);
        let end = (ips[1] - MANAGED) as usize;
        mock.patch(end - call.len(), call);
        mock.patch(end + 8, &target.to_le_bytes());
        let stack = mock.walk(Policy::Signal);
        assert_eq!(is_lost(&stack), !is_left, "{call:02x?} {target:#x}");
    }
}

/// Unknown code whose instructions lead to its return needs no guess.
#[test]
fn unknown_code_is_left_by_its_return() {
    let ips = [UNKNOWN, returns_to(MANAGED, 2), returns_to(NATIVE, 4)];
    // mov eax, ebx; add rsp, 24; ret: an old return address is on top of the stack.
    let leave = [0x89, 0xD8, 0x48, 0x83, 0xC4, 24, 0xC3];
    let mut mock = stub(ips[1], &ips);
    mock.context.registers.set(Gpr::Rsp, sp(1) - 32);
    mock.poke(sp(1) - 32, returns_to(MANAGED, 9));
    mock.patch(0x60, &leave);
    let stack = mock.walk(Policy::Signal);
    assert_eq!(stack.completeness(), Completeness::Whole);
    assert_eq!(stack.frames[1].source, Source::Unwound(Trust::FollowedCode));
    assert_eq!((stack.frames[1].ip, stack.frames[1].sp), (ips[1], sp(1)));
    // Its return address has to follow a call.
    mock.poke(sp(1) - 8, ips[1] + 1);
    mock.poke(sp(1) - 32, 0);
    assert_eq!(mock.walk(Policy::Signal).frames.len(), 1);
}

/// Only interrupted code may be a stub: a stub calls nothing.
#[test]
fn unknown_code_that_has_called_is_no_stub() {
    let mut mock = fed(&[NATIVE + 0x20, returns_to(UNKNOWN, 1), returns_to(MANAGED, 2)]);
    mock.poke(sp(1), returns_to(MANAGED, 2));
    let stack = mock.walk(Policy::Signal);
    assert_eq!(stack.frames.len(), 2);
    assert!(matches!(stack.completeness(), Completeness::Partial(_)));
}

/// The return value that the runtime's code for hijacked returns has where its unwind data name a
/// return address may be any number.
#[test]
fn a_small_number_on_the_stack_is_no_root() {
    let deep: Vec<_> = (0..400).map(|n| returns_to(NATIVE, n % 16)).collect();
    for (number, root) in [
        (0, StackRoot::ReturnAddress(0)),
        (1, StackRoot::ReturnAddress(1)),
        (0, StackRoot::Undefined),
    ] {
        let mut mock = fed(&deep);
        mock.bounds.root = root;
        mock.poke(sp(4) - 8, number);
        let mut buffer = WalkBuffer::new(512);
        let stack = mock.walk_in(Policy::Signal, &mut buffer);
        assert_eq!(stack.frames.len(), 4);
        let reason = Reason::NotACall { address: number };
        assert_eq!(stack.completeness(), Completeness::Partial(reason), "{root:?}");
    }
    let mut mock = fed(&deep);
    mock.bounds.root = StackRoot::Undefined;
    let stack = mock.walk_in(Policy::Signal, &mut WalkBuffer::new(512));
    assert_eq!(stack.frames.len(), 400);
    let reason = Reason::NotACall { address: 0 };
    assert_eq!(stack.completeness(), Completeness::Partial(reason), "no word is the root");
    mock.bounds.root = StackRoot::ReturnAddress(0);
    let stack = mock.walk_in(Policy::Signal, &mut WalkBuffer::new(512));
    assert_eq!(stack.completeness(), Completeness::Whole, "at the stack's base it is");
}
