//! Recognition of addresses that a call returns to.

use crate::memory::Memory;

/// Returns true if the bytes before `address` (VA) end in a call instruction; `None` if they cannot
/// be read.
pub fn follows_call<M: Memory + ?Sized>(address: u64, memory: &M) -> Option<bool> {
    let mut bytes = [0; 7];
    // Near the start of a mapping there may be fewer.
    [7, 5, 3, 2].into_iter().find_map(|len| {
        let before = bytes.get_mut(7 - len..)?;
        memory.read(address.wrapping_sub(len as u64), before).ok()
    })?;
    Some(ends_in_call(bytes))
}

/// Returns true if the bytes end in `call rel32` or `call r/m64`. Prefixes do not matter.
pub fn ends_in_call(bytes: [u8; 7]) -> bool {
    if bytes[2] == 0xE8 {
        return true;
    }
    let forms = bytes.windows(2).enumerate();
    forms.into_iter().any(|(at, pair)| {
        let [0xFF, modrm] = *pair else { return false };
        modrm >> 3 & 7 == 2 && operand_len(modrm, bytes.get(at + 2).copied()) == Some(6 - at)
    })
}

/// Returns the number of bytes of a ModRM byte with what belongs to it, by the processor's manual; `sib`
/// is the byte after it. `None` if that is needed and missing.
pub fn operand_len(modrm: u8, sib: Option<u8>) -> Option<usize> {
    let has_sib = modrm >> 6 != 3 && modrm & 7 == 4;
    let displacement = match (modrm >> 6, modrm & 7) {
        (0, 4) if sib? & 7 == 5 => 4,
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    Some(1 + usize::from(has_sib) + displacement)
}

/// Returns the number of bytes of an epilogue at the start of some code: `pop`s, and a `ret`.
pub fn epilogue_len(code: &[u8]) -> Option<u32> {
    let mut len = 0;
    let mut code = code;
    loop {
        (len, code) = match code {
            [0xC3, ..] => return Some(len + 1),
            [0x58..=0x5F, rest @ ..] => (len + 1, rest),
            [0x41, 0x58..=0x5F, rest @ ..] => (len + 2, rest),
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Segment;

    fn ends(instruction: &[u8]) -> bool {
        let mut bytes = [0x90; 7];
        bytes[7 - instruction.len()..].copy_from_slice(instruction);
        follows_call(0x1007, &Segment::new(0x1000, &bytes)).unwrap()
    }

    #[test]
    fn calls_are_known() {
        for call in [
            &[0xE8, 1, 2, 3, 4][..],         // call rel32
            &[0xFF, 0xD0],                   // call rax
            &[0x41, 0xFF, 0xD3],             // call r11
            &[0xFF, 0x10],                   // call [rax]
            &[0xFF, 0x50, 0x18],             // call [rax+18h]
            &[0xFF, 0x15, 1, 2, 3, 4],       // call [rip+rel32]
            &[0xFF, 0x90, 1, 2, 3, 4],       // call [rax+disp32]
            &[0xFF, 0x14, 0xC8],             // call [rax+rcx*8]
            &[0xFF, 0x54, 0x24, 0x20],       // call [rsp+20h]
            &[0xFF, 0x94, 0x24, 1, 2, 3, 4], // call [rsp+disp32]
            &[0xFF, 0x14, 0x25, 1, 2, 3, 4], // call [disp32]
        ] {
            assert!(ends(call), "{call:02x?}");
        }
    }

    #[test]
    fn other_instructions_are_not() {
        for other in [
            &[0xE9, 1, 2, 3, 4][..],   // jmp rel32
            &[0xFF, 0xE0],             // jmp rax
            &[0xFF, 0x25, 1, 2, 3, 4], // jmp [rip+rel32]
            &[0xFF, 0xD0, 0x90],       // call rax; nop
            &[0xE8, 1, 2, 3, 4, 0x90], // call rel32; nop
            &[0xFF, 0x14, 0x24, 0x90], // call [rsp]; nop
            &[0xCC, 0xCC],
        ] {
            assert!(!ends(other), "{other:02x?}");
        }
    }

    #[test]
    fn code_may_begin_near_by_or_not_be_there() {
        let call = [0xFF, 0xD0];
        let memory = Segment::new(0x1000, &call);
        assert_eq!(follows_call(0x1002, &memory), Some(true));
        assert_eq!(follows_call(0x1001, &memory), None);
        assert_eq!(follows_call(0, &memory), None);
    }

    #[test]
    fn epilogues_pop_registers_and_return() {
        assert_eq!(epilogue_len(&[0xC3]), Some(1));
        assert_eq!(epilogue_len(&[0x41, 0x5C, 0x5D, 0xC3, 0x90]), Some(4), "pop r12; pop rbp; ret");
        for other in [&[0x5D, 0x90, 0xC3][..], &[0x41, 0x50, 0xC3], &[0x5D], &[0x41], &[]] {
            assert_eq!(epilogue_len(other), None, "{other:02x?}");
        }
    }
}
