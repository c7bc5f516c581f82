//! A thread in the function of CoreCLR on Unix that a hijacked return leads to.

use super::*;

/// `OnHijackTripThread` (libcoreclr.so of .NET 11.0.0, 0x4521E0). Those of 3.1, 8 and 9 push a word less, that of 10 is the
/// same.
const CODE: &[u8] = &[
    0x50, // push rax
    0x55, // push rbp
    0x53, // push rbx
    0x41, 0x57, // push r15
    0x41, 0x56, // push r14
    0x41, 0x55, // push r13
    0x41, 0x54, // push r12
    0x51, // push rcx
    0x52, // push rdx
    0x50, // push rax
    0x48, 0x89, 0xE7, // mov rdi, rsp
    0x48, 0x8D, 0x64, 0x24, 0xE0, // lea rsp, [rsp-32]
    0x66, 0x0F, 0x7F, 0x04, 0x24, // movdqa [rsp], xmm0
    0x66, 0x0F, 0x7F, 0x4C, 0x24, 0x10, // movdqa [rsp+16], xmm1
    0xE8, 0xDA, 0x87, 0xFD, 0xFF, // call OnHijackWorker
    0x66, 0x0F, 0x6F, 0x04, 0x24, // movdqa xmm0, [rsp]
    0x66, 0x0F, 0x6F, 0x4C, 0x24, 0x10, // movdqa xmm1, [rsp+16]
    0x48, 0x8D, 0x64, 0x24, 0x20, // lea rsp, [rsp+32]
    0x58, // pop rax
    0x5A, // pop rdx
    0x59, // pop rcx
    0x41, 0x5C, // pop r12
    0x41, 0x5D, // pop r13
    0x41, 0x5E, // pop r14
    0x41, 0x5F, // pop r15
    0x5B, // pop rbx
    0x5D, // pop rbp
    0xC3, // ret
];

/// Its instructions, and the canonical frame addresses of its call frame information there, from rsp. They are those of a
/// function that was called: 8 bytes too much.
const ROWS: [(u8, u8); 27] = [
    (0, 8),
    (1, 16),
    (2, 24),
    (3, 32),
    (5, 40),
    (7, 48),
    (9, 56),
    (11, 64),
    (12, 72),
    (13, 80),
    (14, 88),
    (17, 88),
    (22, 120),
    (27, 120),
    (33, 120),
    (38, 120),
    (43, 120),
    (49, 120),
    (54, 88),
    (55, 80),
    (56, 72),
    (57, 64),
    (59, 56),
    (61, 48),
    (63, 40),
    (65, 32),
    (66, 24),
];
/// The same for its `ret`.
const RET: (u8, u8) = (67, 16);
/// Offset of the instruction after its call.
const CALLED: u8 = 38;
/// Its address (RVA).
const AT: u32 = 0x500;

/// Returns its call frame program.
fn program() -> Vec<u8> {
    let rows = ROWS.iter().chain([&RET]);
    let mut last = 0;
    let mut row = |&(offset, cfa): &(u8, u8)| {
        let advance = 0x40 | (offset - std::mem::replace(&mut last, offset));
        // DW_CFA_advance_loc, DW_CFA_def_cfa_offset
        [advance, 0x0E, cfa]
    };
    rows.flat_map(&mut row).collect()
}

/// Walks a thread at an offset of the function, where it is interrupted or has called the leaf. The method would have
/// returned to `own`; the word above that address on the stack is `above`.
fn walk_at((offset, cfa): (u8, u8), is_leaf: bool, own: u64, above: u64) -> MixedStack {
    let ips = [NATIVE + 0x20, 0, 0, 0, 0, 0, returns_to(MANAGED, 3)];
    let mut mock = Mock::new(&ips);
    mock.knows_managed = true;
    // The method's caller has its frame there.
    let top = sp(5).next_multiple_of(16);
    let slot = top - 8;
    let here = slot + 16 - u64::from(cfa);
    let (rip, rsp) = if is_leaf {
        mock.poke(here - 8, NATIVE + u64::from(AT) + u64::from(offset));
        (NATIVE + 0x20, here - 8)
    } else {
        (NATIVE + u64::from(AT) + u64::from(offset), here)
    };
    mock.poke(top, above);
    mock.poke(top + FRAME - 8, returns_to(MANAGED, 3));
    // Until the runtime's worker has put it there, the address is in the Thread object alone.
    if offset < CALLED {
        mock.poke(slot, 0xBAD);
        for (n, word) in [own, slot].iter().enumerate() {
            mock.object[0x128 + 8 * n..][..8].copy_from_slice(&word.to_le_bytes());
        }
    } else {
        mock.poke(slot, own);
    }
    mock.context.registers.rip = rip;
    mock.context.registers.set(Gpr::Rsp, rsp);
    mock.patch(AT as usize, CODE);
    let (program, code) = (program().leak(), mock.code().to_vec());
    let functions = [
        Functions { range: (0, AT), augmentation: b"zR", instructions: USUAL, program: &[] },
        Functions { range: (AT, 68), augmentation: b"zR", instructions: USUAL, program },
    ];
    let bytes = eh_frame(&functions);
    let mut map = mock.map();
    map.remove(NATIVE).unwrap();
    image::insert(&mut map, &code, &bytes, LAZILY);
    mock.walk_by(&map, Policy::Signal, &mut WalkBuffer::new(8))
}

#[test]
fn each_instruction_leads_to_where_the_method_would_have_returned() {
    let own = returns_to(MANAGED, 2);
    let interrupted = ROWS.iter().chain([&RET]).map(|at| (*at, false));
    let called = [((CALLED, 120), true)];
    // The word above may be anything, an old return address of a method or of a native function, too.
    for above in [7, returns_to(MANAGED, 5), returns_to(NATIVE, 1)] {
        for (at, is_leaf) in interrupted.clone().chain(called) {
            let stack = walk_at(at, is_leaf, own, above);
            let ips: Vec<_> = stack.frames.iter().map(|frame| frame.ip).collect();
            let expected = [own, returns_to(MANAGED, 3)];
            assert_eq!(ips[1 + usize::from(is_leaf)..][..2], expected, "{at:?} {above:#x}");
        }
    }
}
