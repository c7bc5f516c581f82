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
pub(crate) fn stage(generation: Generation, depth: usize) -> SyntheticThread {
    let mut stage = SyntheticThread::new(generation).cooperative();
    let mut sp = LEAF;
    for n in 0..depth - 1 {
        let native = (n / RUN).is_multiple_of(2);
        // A native function that managed code has called has room for the Frame.
        let called = native && n % RUN == RUN - 1;
        stage = if native {
            stage.native(&format!("coreclr.dll!N{n}+0x{:x}", 0x40 + n % 7), sp)
        } else {
            stage.jit(&format!("App.F{n}+0x{:x}", 0x40 + n % 7), sp)
        };
        stage = match n % 3 {
            _ if called => stage.saves(&[Gpr::Rbx]),
            0 => stage.saves(&[Gpr::Rbx, Gpr::R14]),
            1 => stage.saves(&[Gpr::Rbp]),
            _ => stage,
        };
        if called && n + 2 < depth {
            stage = stage.frame(FrameKind::PrestubMethod, sp + 0x20, &format!("App.F{}", n + 1));
        }
        sp += if called { 0x160 } else { 0x50 + 0x10 * (n as u64 % 5) };
    }
    stage.native("host!main+0x40", sp)
}
