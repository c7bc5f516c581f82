//! Stacks in which the two kinds of code alternate.

use clr_runtime::FrameKind;
use clr_runtime::generation::Generation;
use clr_walker::registers::Gpr;
use clr_world::synthetic::SyntheticThread;

/// Number of frames of one kind in a row.
const RUN: usize = 4;
/// The leaf's stack pointer (VA).
const LEAF: u64 = 0x1C_0000;

/// Builds a stack of `depth` frames, with native code at the leaf and the root. Native code was
/// called through stubs with a Frame, by which the runtime finds managed code.
pub(crate) fn target(generation: Generation, depth: usize) -> SyntheticThread {
    let mut target = SyntheticThread::new(generation).cooperative();
    let mut sp = LEAF;
    for n in 0..depth - 1 {
        let native = (n / RUN).is_multiple_of(2);
        // A native function that managed code has called has room for the Frame.
        let called = native && n % RUN == RUN - 1;
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
        sp += if called { 0x160 } else { 0x50 + 0x10 * (n as u64 % 5) };
    }
    target.native("host!main+0x40", sp)
}
