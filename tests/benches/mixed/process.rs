//! Stacks in which the two kinds of code alternate.

use clr_runtime::FrameKind;
use clr_runtime::generation::Generation;
use clr_unwind::Gpr;
use clr_world::synthetic::{STACK, SyntheticThread};

/// Number of frames of one kind in a row.
const RUN: usize = 4;
/// Distance in bytes of the root's stack pointer from the stack's base: a walk believes in the root
/// only within two pages.
const ROOT: u64 = 0x200;

/// Builds a stack of `depth` frames, with native code at the leaf and the root. Native code was
/// called through stubs with a Frame, by which the runtime finds managed code.
pub(crate) fn target(generation: Generation, depth: usize) -> SyntheticThread {
    let mut target = SyntheticThread::new(generation).cooperative();
    let is_native = |n: usize| (n / RUN).is_multiple_of(2);
    // A native function that managed code has called has room for the Frame.
    let is_called = |n: usize| is_native(n) && n % RUN == RUN - 1;
    let size = |n: usize| if is_called(n) { 0x160 } else { 0x50 + 0x10 * (n as u64 % 5) };
    let mut sp = STACK.1 - ROOT - (0..depth - 1).map(size).sum::<u64>();
    for n in 0..depth - 1 {
        let (native, called) = (is_native(n), is_called(n));
        target = if native {
            target.native(&format!("coreclr.dll!N{n}+0x{:x}", 0x40 + n % 7), sp)
        } else {
            target.jit(&format!("App.F{n}+0x{:x}", 0x40 + n % 7), sp)
        };
        target = match n % 3 {
            _ if called => target.saves(&[Gpr::Rbx]),
            0 => target.saves(&[Gpr::Rbx, Gpr::R14]),
            1 => target.saves(&[Gpr::Rbp]),
            _ => target,
        };
        if called && n + 2 < depth {
            target = target.frame(FrameKind::PrestubMethod, sp + 0x20, &format!("App.F{}", n + 1));
        }
        sp += size(n);
    }
    target.native("host!main+0x40", sp)
}
