//! Unwind data written by hand as other readers read it, for `UNWINDERS.md`.

use crate::others::code::{Code, Section};
use crate::others::framehop::Framehop;
use crate::others::pe_unwind_info::PeUnwindInfo;
use clr_machine::{Machine, Protection};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::Position;
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
