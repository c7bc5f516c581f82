//! An interrupted function that has popped its return address.

use super::*;

/// The function (RVA).
const POPPED: u32 = 0x300;

/// As vfork does, because another process is about to use the stack: the return address is in rdi,
/// and the caller's stack pointer is the function's own.
#[test]
fn a_function_that_has_popped_its_return_address_leaves_the_stack_pointer_in_place() {
    let popped = Functions {
        range: (POPPED, 0x10),
        augmentation: b"zR",
        // DW_CFA_def_cfa rsp, 0; DW_CFA_register rip, rdi.
        instructions: &[0x0C, 7, 0, 0x09, 16, 5],
        program: &[],
    };
    let usual =
        Functions { range: (0x400, 0xC00), augmentation: b"zR", instructions: USUAL, program: &[] };
    let functions = [popped, usual];
    let leaf = NATIVE + u64::from(POPPED) + 4;
    let mut mock = Mock::new(&[leaf]);
    let rsp = mock.context.registers.rsp();
    let callers = [returns_to(NATIVE, 5), returns_to(NATIVE, 6)];
    mock.context.registers.set(Gpr::Rdi, callers[0]);
    mock.poke(rsp, callers[1]);
    mock.poke(rsp + 8, 0);
    for policy in [Policy::Seeded, Policy::Signal] {
        let stack = walk(&mock, &functions, policy);
        let frames: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        let expected = [(leaf, rsp), (callers[0], rsp), (callers[1], rsp + 8)];
        assert_eq!(frames, expected, "{policy:?}");
        assert_eq!(stack.completeness(), Completeness::Whole, "{policy:?}");
    }
}
