//! Functions that the tested functions call.

use iced_x86::code_asm::{AsmRegister64, AsmRegisterXmm, CodeAssembler, ptr, registers as r};
use iced_x86::{Decoder, DecoderOptions};

/// A function that preserves all nonvolatile registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Preserves registers by changing none: a leaf without unwind info.
    Returns,
    /// Preserves registers by saving them, and overwrites every register.
    Clobbers,
}

const SAVED: [AsmRegister64; 8] = [r::rbx, r::rbp, r::rsi, r::rdi, r::r12, r::r13, r::r14, r::r15];
const VOLATILE: [AsmRegister64; 7] = [r::rax, r::rcx, r::rdx, r::r8, r::r9, r::r10, r::r11];
/// All vector registers, of which xmm6 to xmm15 are saved.
const XMM: [AsmRegisterXmm; 16] = [
    r::xmm0,
    r::xmm1,
    r::xmm2,
    r::xmm3,
    r::xmm4,
    r::xmm5,
    r::xmm6,
    r::xmm7,
    r::xmm8,
    r::xmm9,
    r::xmm10,
    r::xmm11,
    r::xmm12,
    r::xmm13,
    r::xmm14,
    r::xmm15,
];
/// Size in bytes of ten xmm registers, and of the padding that aligns rsp.
const FRAME: i32 = 0xA8;

impl Callee {
    pub(crate) fn code(self) -> Vec<u8> {
        let mut a = CodeAssembler::new(64).unwrap();
        if self == Self::Clobbers {
            clobber(&mut a);
        }
        a.ret().unwrap();
        a.assemble(0).unwrap()
    }

    /// Returns the UNWIND_INFO; `None` for a leaf.
    pub(crate) fn unwind_info(self) -> Option<Vec<u8>> {
        if self == Self::Returns {
            return None;
        }
        let code = self.code();
        let mut decoder = Decoder::new(64, &code, DecoderOptions::NONE);
        let mut codes: Vec<[u8; 2]> = Vec::new();
        let mut end = || {
            let _ = decoder.decode();
            decoder.position() as u8
        };
        for register in [3, 5, 6, 7, 12, 13, 14, 15] {
            codes.push([end(), register << 4]);
        }
        // UWOP_ALLOC_LARGE; its operand comes after it because all codes are reversed below.
        let alloc = end();
        codes.extend([[(FRAME / 8) as u8, 0], [alloc, 1]]);
        for n in 6..16 {
            codes.extend([[n - 6, 0], [end(), 8 | n << 4]]);
        }
        let prologue_size = codes.last().unwrap()[0];
        let header = [1, prologue_size, codes.len() as u8, 0];
        Some(header.into_iter().chain(codes.into_iter().rev().flatten()).collect())
    }
}

fn clobber(a: &mut CodeAssembler) {
    for register in SAVED {
        a.push(register).unwrap();
    }
    a.sub(r::rsp, FRAME).unwrap();
    for (n, register) in XMM[6..].iter().enumerate() {
        a.movups(ptr(r::rsp + 16 * n), *register).unwrap();
    }
    for register in SAVED.into_iter().chain(VOLATILE) {
        a.mov(register, -1_i64).unwrap();
    }
    for register in XMM {
        a.pcmpeqd(register, register).unwrap();
    }
    for (n, register) in XMM[6..].iter().enumerate() {
        a.movups(*register, ptr(r::rsp + 16 * n)).unwrap();
    }
    a.add(r::rsp, FRAME).unwrap();
    for register in SAVED.into_iter().rev() {
        a.pop(register).unwrap();
    }
}
