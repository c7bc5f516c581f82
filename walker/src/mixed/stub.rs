//! Stubs without unwind data, which only jump on (coreclr#25676).
//!
//! A runtime on Unix does not announce the precodes, jump stubs and dispatch stubs in its heaps.
//! The instructions that are recognised here leave the stack unchanged between the interrupted
//! instruction and a jump, so the return address is on top of it.

use clr_unwind::x64::{Fields, Map};
use clr_unwind::{Gpr, Memory, Registers};

/// Maximum number of instructions of a stub that only jumps.
const MOST_INSTRUCTIONS: usize = 6;
/// Maximum number of instructions that are followed to a jump.
const MOST_FOLLOWED: usize = 24;

/// Returns the address that the stub at rip jumps to (VA), if it is one: it moves addresses between
/// registers, and then jumps out. Code that jumps relative to rip by a byte is no stub, because
/// such a jump stays within a function.
pub(super) fn target<M: Memory + ?Sized>(registers: &Registers, memory: &M) -> Option<u64> {
    let mut known = *registers;
    for _ in 0..MOST_INSTRUCTIONS {
        let code = Code::read(known.rip, memory)?;
        let (it, next) = (&code.it, code.next);
        let is_relative = it.is_relative();
        let place = next.wrapping_add_signed(it.displacement.into());
        match it.opcode {
            // nop, endbr64
            0x90 => {}
            _ if code.is_endbr64() => {}
            0xB8..=0xBF if it.is_wide() => known.set(it.opcode_register(), code.number()?),
            // lea, mov
            0x8D if it.is_wide() && is_relative => known.set(it.register(), place),
            0x8B if it.is_wide() && is_relative => {
                known.set(it.register(), memory.read_u64(place).ok()?);
            }
            // add r64, imm8, as in the thunks that shuffle the arguments of a delegate
            0x83 if it.is_wide() && it.extension() == 0 => {
                let to = it.operand().filter(|to| *to != Gpr::Rsp)?;
                known.set(to, known.get(to).wrapping_add_signed(it.immediate.into()));
            }
            0xE9 => return Some(next.wrapping_add_signed(it.immediate.into())),
            0xFF if it.extension() == 4 && is_relative => return memory.read_u64(place).ok(),
            0xFF if it.extension() == 4 => return it.operand().map(|register| known.get(register)),
            _ => return None,
        }
        known.rip = next;
    }
    None
}

/// Returns the number of words that the code at `rip` (VA) pops before it jumps out, if it gets there
/// without another use of the stack. Branches within the code are not taken: the words are the same
/// on each way.
///
/// CoreCLR's resolve stubs on Unix push rdx, look the target up by the object's type, pop rdx and jump
/// (`ResolveStub` in virtualcallstubcpu.hpp, dotnet/coreclr v3.1.23).
pub(super) fn popped<M: Memory + ?Sized>(rip: u64, memory: &M) -> Option<u64> {
    let (mut rip, mut words) = (rip, 0);
    for _ in 0..MOST_FOLLOWED {
        let code = Code::read(rip, memory)?;
        let (it, next) = (&code.it, code.next);
        let of_rsp = it.operand() == Some(Gpr::Rsp);
        match it.opcode {
            // pop of a register that no convention preserves
            0x58..=0x5F if matches!(it.opcode_register().number(), 0..=2 | 8..=11) => words += 1,
            // add, sub, xor, cmp, test, mov to a register other than rsp
            0x03 | 0x2B | 0x33 | 0x3B | 0x85 | 0x8B if !of_rsp && it.register() != Gpr::Rsp => {}
            // shifts by a byte; add, and, xor, cmp of a byte: only the operand is a register
            0xC1 | 0x83 if !of_rsp => {}
            // nop; add, and, xor, cmp of rax and 32 bits; branches
            0x90 | 0x05 | 0x25 | 0x35 | 0x3D | 0x70..=0x7F => {}
            0xB8..=0xBF if it.is_wide() => {}
            0xE9 => return Some(words),
            0xFF if it.extension() == 4 => return Some(words),
            _ => return None,
        }
        rip = next;
    }
    None
}

/// Length of the longest instruction of a stub: `mov r64, imm64`.
const LONGEST: usize = 10;

/// An instruction without a prefix but REX, or `endbr64`.
struct Code {
    bytes: [u8; LONGEST],
    it: Fields,
    /// The address behind it (VA).
    next: u64,
}

impl Code {
    fn read<M: Memory + ?Sized>(address: u64, memory: &M) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        // The jump may be at a mapping's end.
        let len = [LONGEST, 7, 6, 5, 3, 2].into_iter().find(|len| {
            let room = bytes.get_mut(..*len);
            room.is_some_and(|room| memory.read(address, room).is_ok())
        })?;
        let it = Fields::read(bytes.get(..len)?)?;
        let next = address.wrapping_add(it.len.into());
        let code = Self { bytes, it, next };
        (code.is_plain() || code.is_endbr64()).then_some(code)
    }

    fn is_plain(&self) -> bool {
        let first = if self.it.has_rex { self.bytes[1] } else { self.bytes[0] };
        self.it.map == Map::One && first == self.it.opcode
    }

    fn is_endbr64(&self) -> bool {
        self.bytes.starts_with(&[0xF3, 0x0F, 0x1E, 0xFA])
    }

    /// Returns the number that the instruction ends with.
    fn number(&self) -> Option<u64> {
        self.bytes.last_chunk().copied().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use clr_unwind::Segment;

    const AT: u64 = 0x7000_0000;

    fn target_of(code: &[u8]) -> Option<u64> {
        let registers = Registers { rip: AT, ..Registers::default() };
        target(&registers, &Segment::new(AT, code))
    }

    #[test]
    fn jumps_of_stubs_are_followed() {
        let far = [0x49, 0xBA, 1, 2, 3, 4, 5, 6, 7, 0, 0x41, 0xFF, 0xE2];
        assert_eq!(target_of(&far), Some(0x07_0605_0403_0201), "mov r10, imm64; jmp r10");
        let near = [0xE9, 0x10, 0, 0, 0];
        assert_eq!(target_of(&near), Some(AT + 0x15), "jmp rel32");
        let back = [0xE9, 0xF0, 0xFF, 0xFF, 0xFF];
        assert_eq!(target_of(&back), Some(AT - 0xB), "jmp rel32 backwards");
        let mut cell =
            [0x4C, 0x8D, 0x15, 9, 0, 0, 0, 0xFF, 0x25, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cell[15..].copy_from_slice(&0x1234_5678_u64.to_le_bytes());
        assert_eq!(target_of(&cell), Some(0x1234_5678), "lea r10, [rip+9]; jmp [rip+2]");
        let mut loaded = [0x48, 0x8B, 0x05, 3, 0, 0, 0, 0xFF, 0xE0, 0x90, 0, 0, 0, 0, 0, 0, 0, 0];
        loaded[10..].copy_from_slice(&0x9876_u64.to_le_bytes());
        assert_eq!(target_of(&loaded), Some(0x9876), "mov rax, [rip+3]; jmp rax");
        // add r11, 20h; jmp r10
        let registers = Registers { rip: AT, ..Registers::default() };
        let thunk = [0x49, 0x83, 0xC3, 0x20, 0x49, 0xFF, 0xE2];
        let mut shuffled = registers;
        shuffled.set(Gpr::R10, 0x4321);
        assert_eq!(target(&shuffled, &Segment::new(AT, &thunk)), Some(0x4321));
        assert_eq!(target_of(&[0x48, 0x83, 0xC0, 0x7F, 0xFF, 0xE0, 0, 0, 0, 0]), Some(0x7F));
        assert_eq!(target_of(&[0x48, 0x83, 0xC4, 0x20, 0xFF, 0xE0, 0, 0, 0, 0]), None, "rsp");
        let marked = [0xF3, 0x0F, 0x1E, 0xFA, 0x90, 0xE9, 0, 0, 0, 0];
        assert_eq!(target_of(&marked), Some(AT + 10), "endbr64; nop; jmp rel32");
    }

    /// The 16 registers by all forms: where a prefix or a mode differs, the code is none of these.
    #[test]
    fn every_register_may_hold_the_target() {
        const CELL: u64 = 0x0807_0605_0403_0201;
        for number in 0..16_u8 {
            let (low, high) = (number & 7, number >> 3);
            // mov r64, imm64; jmp r64
            let mut code = vec![0x48 | high, 0xB8 | low];
            code.extend(CELL.to_le_bytes());
            code.extend([0x40 | high, 0xFF, 0xE0 | low]);
            assert_eq!(target_of(&code), Some(CELL), "mov of {number}");
            // lea r64, [rip+0]; jmp r64
            let rip = 5 | low << 3;
            let code = [0x48 | high << 2, 0x8D, rip, 0, 0, 0, 0, 0x40 | high, 0xFF, 0xE0 | low];
            assert_eq!(target_of(&code), Some(AT + 7), "lea of {number}");
            // mov r64, [rip+3]; jmp r64
            let mut code =
                vec![0x48 | high << 2, 0x8B, rip, 3, 0, 0, 0, 0x40 | high, 0xFF, 0xE0 | low];
            code.extend(CELL.to_le_bytes());
            assert_eq!(target_of(&code), Some(CELL), "load of {number}");
            for other in 0..16_u8 {
                // mov r64, imm64; jmp of another register, which was not set
                let mut code = vec![0x48 | high, 0xB8 | low];
                code.extend(CELL.to_le_bytes());
                code.extend([0x40 | other >> 3, 0xFF, 0xE0 | other & 7]);
                // Stubs compute no stack pointer.
                let expected = if other == number { CELL } else { 0 };
                assert_eq!(target_of(&code), Some(expected), "{number} and {other}");
            }
        }
        // Each register may hold the target before.
        for number in 0..16_u8 {
            let mut registers = Registers { rip: AT, ..Registers::default() };
            registers.gpr = core::array::from_fn(|n| 0x1000 + n as u64);
            let code = [0x40 | number >> 3, 0xFF, 0xE0 | number & 7];
            let expected = 0x1000 + u64::from(number);
            assert_eq!(target(&registers, &Segment::new(AT, &code)), Some(expected), "{number}");
        }
        // With a prefix that says nothing: rex jmp rel32; rex jmp [rip+rel32].
        assert_eq!(target_of(&[0x40, 0xE9, 0x10, 0, 0, 0]), Some(AT + 0x16));
        let mut code = vec![0x48, 0xFF, 0x25, 0, 0, 0, 0];
        code.extend(CELL.to_le_bytes());
        assert_eq!(target_of(&code), Some(CELL));
    }

    /// Instructions that look like a stub's but for one field.
    #[test]
    fn forms_of_other_instructions_are_not_taken_for_a_stubs() {
        let jump = [0xFF, 0xE0];
        for start in [
            &[0xB8, 1, 2, 3, 4, 0x90, 0x90, 0x90, 0x90][..], // mov eax, imm32; nops
            &[0xB8, 1, 2, 3, 4],                             // mov eax, imm32
            &[0x8D, 0x05, 0, 0, 0, 0],                       // lea eax, [rip+0]
            &[0x8B, 0x05, 0, 0, 0, 0],                       // mov eax, [rip+0]
            &[0x48, 0x8D, 0x40, 0],                          // lea rax, [rax+0]
            &[0x48, 0x8D, 0x45, 0],                          // lea rax, [rbp+0]
            &[0x48, 0x8D, 0x85, 0, 0, 0, 0],                 // lea rax, [rbp+0] with 32 bits
            &[0x48, 0x8D, 0x04, 0x25, 0, 0, 0, 0],           // lea rax, [0]
            &[0x48, 0x8B, 0x00],                             // mov rax, [rax]
            &[0x48, 0x8B, 0x45, 0],                          // mov rax, [rbp+0]
            &[0xF3, 0x0F, 0x1E, 0xC8],                       // rdsspd eax
            &[0xF3, 0x0F, 0x10, 0xC0],                       // movss xmm0, xmm0
            &[0x0F, 0x1E, 0xFA],                             // nop edx
        ] {
            let code = [start, &jump, &[0; 12]].concat();
            assert_eq!(target_of(&code), None, "{code:02x?}");
        }
        // jmp [rax]; call [rip+0]; jmp far [rax]; push rax
        for code in [[0xFF, 0x20], [0xFF, 0x15], [0xFF, 0x28], [0xFF, 0xF0]] {
            let code = [&code[..], &[0; 12]].concat();
            assert_eq!(target_of(&code), None, "{code:02x?}");
        }
    }

    /// The fast path of a resolve stub of CoreCLR 3.1 on Unix, after its `push rdx`.
    const RESOLVE: &[u8] = &[
        0x49, 0xBA, 1, 2, 3, 4, 5, 6, 7, 8, // mov r10, cache
        0x48, 0x8B, 0x07, // mov rax, [rdi]
        0x48, 0x8B, 0xD0, // mov rdx, rax
        0x48, 0xC1, 0xE8, 0x0C, // shr rax, 12
        0x48, 0x03, 0xC2, // add rax, rdx
        0x48, 0x35, 1, 2, 3, 4, // xor rax, token
        0x48, 0x25, 1, 2, 3, 4, // and rax, mask
        0x4A, 0x8B, 0x04, 0x10, // mov rax, [rax+r10]
        0x49, 0xBA, 1, 2, 3, 4, 5, 6, 7, 8, // mov r10, token
        0x48, 0x3B, 0x50, 0x00, // cmp rdx, [rax]
        0x75, 0x0A, // jne
        0x4C, 0x3B, 0x50, 0x08, // cmp r10, [rax+8]
        0x75, 0x04, // jne
        0x5A, // pop rdx
        0xFF, 0x60, 0x10, // jmp [rax+10h]
    ];

    #[test]
    fn words_that_a_stub_has_pushed_are_counted() {
        let starts = [0, 10, 13, 16, 20, 23, 29, 35, 39, 49, 53, 55, 59, 61, 62];
        for start in starts {
            let code = RESOLVE.get(start..).unwrap();
            let expected = u64::from(start < 62);
            assert_eq!(popped(AT, &Segment::new(AT, code)), Some(expected), "{start}");
        }
    }

    /// pop of a volatile register, an instruction, jmp rax. Instructions that could move rsp, and pops of what a
    /// callee preserves, are in no stub (System V psABI, figure 3.4).
    #[test]
    fn instructions_between_pop_and_jump_are_followed_if_they_leave_the_stack_alone() {
        let popped = |between: &[u8]| {
            let code = [&[0x5A][..], between, &[0xFF, 0xE0]].concat();
            popped(AT, &Segment::new(AT, &code))
        };
        for number in 0..16_u8 {
            let (low, high) = (number & 7, number >> 3);
            let is_volatile = matches!(number, 0..=2 | 8..=11);
            assert_eq!(
                popped(&[0x40 | high, 0x58 | low]),
                is_volatile.then_some(2),
                "pop of {number}"
            );
            let is_other = (number != 4).then_some(1);
            // add r64, rax; add rax, r64; shl r64, 4; and r64, 15
            let (to, from) = (0xC0 | low << 3, 0xC0 | low);
            assert_eq!(popped(&[0x48 | high << 2, 0x03, to]), is_other, "add to {number}");
            assert_eq!(popped(&[0x48 | high, 0x03, from]), is_other, "add of {number}");
            assert_eq!(popped(&[0x48 | high, 0xC1, 0xE0 | low, 4]), is_other, "shift of {number}");
            assert_eq!(popped(&[0x48 | high, 0x83, 0xE0 | low, 15]), is_other, "and of {number}");
            // mov r64, imm64; mov r32, imm32
            let wide = [0x48 | high, 0xB8 | low, 1, 2, 3, 4, 5, 6, 7, 8];
            assert_eq!(popped(&wide), Some(1), "mov to {number}");
            let short = [0x40 | high, 0xB8 | low, 1, 2, 3, 4, 0x90, 0x90, 0x90, 0x90];
            assert_eq!(popped(&short), None, "short mov to {number}");
        }
        for (between, expected) in [
            (&[0x90][..], Some(1)),                           // nop
            (&[0x40, 0x90], Some(1)),                         // nop, with a prefix
            (&[0x48, 0x05, 1, 2, 3, 4], Some(1)),             // add rax, imm32
            (&[0x25, 1, 2, 3, 4], Some(1)),                   // and eax, imm32
            (&[0x48, 0x8B, 0x04, 0x24], Some(1)),             // mov rax, [rsp]
            (&[0x48, 0x8B, 0x84, 0x24, 0, 1, 0, 0], Some(1)), // mov rax, [rsp+100h]
            (&[0x48, 0x83, 0x38, 0], Some(1)),                // cmp qword [rax], 0
            (&[0x48, 0x8B, 0x04, 0x25, 1, 0, 0, 0], Some(1)), // mov rax, [1]
            (&[0x75, 0x02], Some(1)),                         // jne
            (&[0xFF, 0xD0], None),                            // call rax
            (&[0xFF, 0xF0], None),                            // push rax
        ] {
            assert_eq!(popped(between), expected, "{between:02x?}");
        }
        // jmp rel32, with and without a prefix.
        for jump in [&[0x58, 0xE9, 0, 0, 0, 0][..], &[0x58, 0x40, 0xE9, 0, 0, 0, 0]] {
            assert_eq!(super::popped(AT, &Segment::new(AT, jump)), Some(1), "{jump:02x?}");
        }
    }

    #[test]
    fn other_uses_of_the_stack_are_not_followed() {
        for code in [
            &[0x52, 0x5A, 0xFF, 0xE0][..],         // push rdx
            &[0x5A, 0xC3],                         // ret
            &[0x5A, 0xE8, 0, 0, 0, 0],             // call
            &[0x48, 0x83, 0xC4, 8, 0xFF, 0xE0],    // add rsp, 8
            &[0x5B, 0xFF, 0xE0],                   // pop rbx
            &[0x5C, 0xFF, 0xE0],                   // pop rsp
            &[0x48, 0x8B, 0xE0, 0xFF, 0xE0],       // mov rsp, rax
            &[0x48, 0x89, 0x04, 0x24, 0xFF, 0xE0], // mov [rsp], rax
            &[0x5A, 0xFF, 0xD0],                   // call rax
            &[0x90; 40],
            &[0x5A],
        ] {
            assert_eq!(popped(AT, &Segment::new(AT, code)), None, "{code:02x?}");
        }
    }

    #[test]
    fn other_code_is_no_stub() {
        for code in [
            &[0x50, 0xFF, 0xE0][..],                  // push rax; jmp rax
            &[0x48, 0x83, 0xEC, 8, 0xE9, 0, 0, 0, 0], // sub rsp, 8; jmp
            &[0xEB, 0x10],                            // jmp rel8
            &[0xFF, 0xD0],                            // call rax
            &[0xC3],
            &[0x90; 12],
            &[0xE9, 0, 0], // cut off
            &[],
        ] {
            assert_eq!(target_of(code), None, "{code:02x?}");
        }
    }
}
