//! Signal handlers on the stack, which return to an address that no call precedes.

use crate::mock::{Mock, NATIVE};
use clr_walker::cfi::CfiTable;
use clr_walker::code_map::{CodeMap, CodeRegion, RegionKind};
use clr_walker::image::{CfiSections, FunctionTable, Section, Sections};
use clr_walker::mixed::{Completeness, Policy, Reason, Source, WalkBuffer};
use clr_walker::unwind::{Position, Trust};

/// RVA of the call frame information, after all code.
const EH_FRAME: u32 = 0x10_0000;
/// RVA that a handler returns to: a function that no call precedes.
const TRAMPOLINE: u32 = 0x300;
/// The instruction that was interrupted (RVA).
const INTERRUPTED: u32 = 0x520;

/// Returns `.eh_frame`: each function has only its return address on the stack. The trampoline, if
/// `is_trampoline` marks it as one, has two words, of which the second is the interrupted address.
fn eh_frame(is_trampoline: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let entry = |bytes: &mut Vec<u8>, id: u32, content: &[u8]| {
        bytes.extend((content.len() as u32 + 4).to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(content);
    };
    let cie = |bytes: &mut Vec<u8>, augmentation: &[u8], cfa: u8| {
        let at = bytes.len();
        // Version 1; factors 1 and -8; the return address is in column 16; relative addresses of 4 bytes.
        // DW_CFA_def_cfa rsp, cfa; DW_CFA_offset rip, -8.
        let rest = [0, 1, 0x78, 16, 1, 0x1B, 0x0C, 7, cfa, 0x90, 1];
        entry(bytes, 0, &[&[1], augmentation, &rest].concat());
        at
    };
    let usual = cie(&mut bytes, b"zR", 8);
    let signal = cie(&mut bytes, if is_trampoline { b"zRS" } else { b"zR" }, 16);
    for (begin, len, cie) in
        [(0, TRAMPOLINE - 0x10, usual), (TRAMPOLINE, 0x10, signal), (0x400, 0xC00, usual)]
    {
        let here = EH_FRAME + bytes.len() as u32 + 8;
        let from = begin.wrapping_sub(here).to_le_bytes();
        let id = (bytes.len() + 4 - cie) as u32;
        entry(&mut bytes, id, &[&from[..], &u32::to_le_bytes(len), &[0]].concat());
    }
    bytes
}

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
        let bytes = eh_frame(is_trampoline);
        let code = Section { rva: 0, bytes: mock.code(), executable: true };
        let data = Section { rva: EH_FRAME, bytes: &bytes, executable: false };
        let sections = Sections::new(vec![code, data]).unwrap();
        let cfi = CfiSections { eh_frame: Some(data), ..CfiSections::default() };
        let table = CfiTable::new(&cfi, &sections);
        let (kind, functions) = (RegionKind::Image, FunctionTable::default());
        let region = CodeRegion::from_sections(NATIVE, 0x11_0000, kind, sections, functions);
        let mut map = CodeMap::new();
        map.insert(region.unwrap().with_cfi(table)).unwrap();
        let stack = mock.walk_by(&map, Policy::Seeded, &mut WalkBuffer::new(8));
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
