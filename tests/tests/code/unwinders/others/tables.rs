//! Unwind data written by hand as other readers read it, for `UNWINDERS.md`.

use crate::unwinders::others::code::{Code, Section};
use crate::unwinders::others::framehop::Framehop;
use crate::unwinders::others::pe_unwind_info::PeUnwindInfo;
use clr_machine::{Machine, Protection};
use clr_unwind::{Gpr, Position, Registers};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use pe_unwind_info::x86_64::{UnwindInfo, UnwindInfoTrailer};

const EHANDLER: u8 = 1 << 3;
const CHAININFO: u8 = 4 << 3;

/// Returns an UNWIND_INFO of version 1 with these slots, padded to an even number, and what follows.
fn info(flags: u8, slots: &[[u8; 2]], trailer: &[u32]) -> Vec<u8> {
    let mut bytes = vec![1 | flags, 4, slots.len() as u8, 0];
    bytes.extend(slots.as_flattened());
    if !slots.len().is_multiple_of(2) {
        bytes.extend([0; 2]);
    }
    bytes.extend(trailer.iter().flat_map(|field| field.to_le_bytes()));
    bytes
}

/// +4 allocate 28h; +1 push rbx.
const CODES: [[u8; 2]; 2] = [[4, 0x42], [1, 0x30]];

#[test]
fn pe_unwind_info_reads_handler_and_parent_in_the_padding() {
    let handler = |slots: &[[u8; 2]]| {
        let bytes = info(EHANDLER, slots, &[0x0012_3456]);
        match UnwindInfo::parse(&bytes).unwrap().trailer() {
            Some(UnwindInfoTrailer::ExceptionHandler { handler_address, .. }) => {
                handler_address.get()
            }
            _ => panic!("another kind"),
        }
    };
    let parent = |slots: &[[u8; 2]]| {
        let bytes = info(CHAININFO, slots, &[0x1000, 0x1080, 0x2000]);
        match UnwindInfo::parse(&bytes).unwrap().trailer() {
            Some(UnwindInfoTrailer::ChainedUnwindInfo { chained }) => {
                [&chained.begin_address, &chained.end_address, &chained.unwind_info_address]
                    .map(|field| field.get())
            }
            _ => panic!("another kind"),
        }
    };
    assert_eq!((handler(&[]), handler(&CODES)), (0x0012_3456, 0x0012_3456));
    assert_eq!(parent(&CODES), [0x1000, 0x1080, 0x2000]);
    // Two bytes too early.
    assert_eq!(handler(&CODES[..1]), 0x3456_0000);
    assert_eq!(parent(&CODES[..1]), [0x1000_0000, 0x1080_0000, 0x2000_0000]);
}

#[test]
fn pe_unwind_info_ends_at_operation_11() {
    let count = |slots: &[[u8; 2]]| {
        UnwindInfo::parse(&info(0, slots, &[])).unwrap().unwind_operations().count()
    };
    assert_eq!(count(&CODES), 2);
    // Set the frame register to rsp + 10h, in a slot of its own; the push of rbx is not seen.
    assert_eq!(count(&OPERATION_11), 0);
}

/// +4 operation 11 with a slot of its own; +1 push rbx.
const OPERATION_11: [[u8; 2]; 3] = [[4, 0x0B], [1, 0], [1, 0x30]];

/// In images for Windows the operation has no meaning, so that a step should fail.
#[test]
fn pe_unwind_info_and_framehop_return_to_a_saved_register_by_operation_11() {
    const RBX: u64 = 0xB0B;
    let table: Vec<u8> =
        [0x1000_u32, 0x1040, 0x2000].into_iter().flat_map(u32::to_le_bytes).collect();
    let text = [0x90; 0x40];
    let xdata = info(0, &OPERATION_11, &[]);
    let section = |rva, bytes| Section { rva, bytes };
    let code = [Code {
        base: 0x1_8000_0000,
        size: 0x3000,
        text: section(0x1000, &text),
        xdata: section(0x2000, &xdata),
        pdata: Some(table),
    }];
    let mut machine = Machine::new();
    machine.map(0x1_0000, 1, Protection::READ_WRITE).unwrap();
    machine.write(0x1_0000, &RBX.to_le_bytes()).unwrap();
    machine.write(0x1_0008, &0x5A5A_u64.to_le_bytes()).unwrap();
    let mut frame = Registers { rip: code[0].base + 0x1020, ..Registers::default() };
    frame.set(Gpr::Rsp, 0x1_0000);
    let answers = [
        PeUnwindInfo::new(&code).step(&frame, Position::Interrupted, &machine),
        Framehop::new(&code).step(&frame, Position::Interrupted, &machine),
    ];
    assert_eq!(answers.map(|answer| answer.unwrap().registers.rip), [RBX; 2]);
}

/// `push rbp; pop rbp; ret` with the rows of compilers: behind the `pop`, rbp's slot is below rsp, where a
/// copy of the stack has nothing.
#[test]
fn framehop_keeps_rbp_whose_slot_was_popped() {
    const RETURN_ADDRESS: u64 = 0x5A5A;
    let mut eh_frame = Vec::new();
    // Version 1, no augmentation, factors 1 and -8, rip; CFA = rsp+8, rip at cfa-8.
    let cie = [0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1, 0, 0];
    // 0x1000..0x1003. +1 CFA = rsp+10h, rbp at cfa-10h; +2 rsp+8.
    let mut fde = vec![24, 0, 0, 0];
    fde.extend([0x1000_u64, 3].into_iter().flat_map(u64::to_le_bytes));
    fde.extend([0x41, 0x0E, 0x10, 0x86, 2, 0x41, 0x0E, 8]);
    for entry in [&cie[..], &fde] {
        eh_frame.extend((entry.len() as u32).to_le_bytes());
        eh_frame.extend(entry);
    }
    eh_frame.extend([0; 4]);
    let sections = ExplicitModuleSectionInfo {
        text_svma: Some(0x1000..0x1003),
        eh_frame_svma: Some(0x2000..0x2000 + eh_frame.len() as u64),
        eh_frame: Some(&eh_frame[..]),
        ..ExplicitModuleSectionInfo::default()
    };
    let mut unwinder = UnwinderX86_64::new();
    unwinder.add_module(Module::new("by hand".into(), 0..0x3000, 0, sections));
    for (rip, rsp) in [(0x1000, 0x8008), (0x1001, 0x8000), (0x1002, 0x8008)] {
        let rbp = if rip == 0x1001 { 0xBAD0 } else { 0xB0B };
        let mut registers = UnwindRegsX86_64::new(rip, rsp, rbp);
        let mut read = |at| match at {
            _ if at < rsp => Err(()),
            0x8000 => Ok(0xB0B),
            0x8008 => Ok(RETURN_ADDRESS),
            _ => Err(()),
        };
        let address = FrameAddress::from_instruction_pointer(rip);
        let cache = &mut CacheX86_64::new();
        let found = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
        assert_eq!(found, Ok(Some(RETURN_ADDRESS)), "{rip:#x}");
        assert_eq!((registers.sp(), registers.bp()), (0x8010, 0xB0B), "{rip:#x}");
    }
}
