//! Unwind data written by hand as other readers read it, for `UNWINDERS.md`.

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
    assert_eq!(count(&[[4, 0x0B], [1, 0], [1, 0x30]]), 0);
}
