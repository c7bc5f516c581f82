//! UNWIND_INFO, byte for byte. The expected bytes were written from the tables of contract §8.1,
//! and the walker parses all of them back.

use super::super::unwind_info::{Epilogs, Operation, Trailer, UnwindCode, UnwindInfo};
use clr_unwind::win64::{self, Operation as Decoded};
use clr_unwind::{CodeRegion, FunctionTable, Gpr};

/// Address of the encoded bytes (VA).
const BASE: u64 = 0x1000;

fn decode<T>(bytes: &[u8], look: impl FnOnce(win64::UnwindInfo<'_>) -> T) -> T {
    let region = CodeRegion::heap(BASE, bytes, FunctionTable::new(&[])).unwrap();
    look(win64::UnwindInfo::read(&region, 0).unwrap())
}

/// Returns the operations in table order with their offsets.
fn codes(bytes: &[u8]) -> Vec<(u8, Decoded)> {
    decode(bytes, |info| {
        info.codes().map(|code| code.unwrap()).map(|code| (code.offset, code.operation)).collect()
    })
}

fn version1(codes: &[(u8, Operation)]) -> UnwindInfo {
    let codes: Vec<_> =
        codes.iter().map(|&(offset, operation)| UnwindCode { offset, operation }).collect();
    let prologue_size = codes.last().map_or(0, |code| code.offset);
    UnwindInfo { version: 1, prologue_size, codes, ..UnwindInfo::default() }
}

/// Checks the slots of a single operation, and its decoded form.
#[track_caller]
fn check(operation: Operation, slots: &[[u8; 2]], decoded: Decoded) {
    let bytes = version1(&[(9, operation)]).encode().unwrap();
    let mut expected = vec![1, 9, slots.len() as u8, 0];
    expected.extend(slots.iter().flatten());
    if slots.len() % 2 == 1 {
        expected.extend([0, 0]);
    }
    assert_eq!(bytes, expected, "{operation:?}");
    assert_eq!(codes(&bytes), [(9, decoded)]);
}

// The first byte of a code is the offset, here 9. The low nibble of the second one is the
// operation, the high nibble its info.

#[test]
fn operations_take_as_many_slots_as_their_operands_need() {
    use Decoded::{Alloc, PushMachframe, PushNonvol, SaveNonvol, SaveXmm128};
    use Operation::{Allocate, MachineFrame, Push, Save, SaveXmm};
    check(Push(Gpr::Rax), &[[9, 0x00]], PushNonvol(Gpr::Rax));
    check(Push(Gpr::Rbx), &[[9, 0x30]], PushNonvol(Gpr::Rbx));
    check(Push(Gpr::R15), &[[9, 0xF0]], PushNonvol(Gpr::R15));
    // Operation 2; the info counts units of 8 bytes, starting with 8.
    check(Allocate(8), &[[9, 0x02]], Alloc(8));
    check(Allocate(120), &[[9, 0xE2]], Alloc(120));
    check(Allocate(128), &[[9, 0xF2]], Alloc(128));
    // Operation 1, info 0; 17 · 8 = 136, and 0xFFFF · 8 is 8 less than 512 KiB.
    check(Allocate(136), &[[9, 0x01], [17, 0]], Alloc(136));
    let last = 512 * 1024 - 8;
    check(Allocate(last), &[[9, 0x01], [0xFF, 0xFF]], Alloc(last));
    // Operation 1, info 1; 512 KiB = 0x8_0000, low half first.
    let first = 512 * 1024;
    check(Allocate(first), &[[9, 0x11], [0, 0], [8, 0]], Alloc(first));
    check(Allocate(0x1234_5678), &[[9, 0x11], [0x78, 0x56], [0x34, 0x12]], Alloc(0x1234_5678));
    // Operation 4 with one operand, 5 with two.
    check(Save(Gpr::Rsi, 0), &[[9, 0x64], [0, 0]], SaveNonvol(Gpr::Rsi, 0));
    check(Save(Gpr::Rdi, 0x128), &[[9, 0x74], [0x25, 0]], SaveNonvol(Gpr::Rdi, 0x128));
    let last = 8 * 65535;
    check(Save(Gpr::R12, last), &[[9, 0xC4], [0xFF, 0xFF]], SaveNonvol(Gpr::R12, last));
    let far = last + 8;
    check(Save(Gpr::R12, far), &[[9, 0xC5], [0, 0], [8, 0]], SaveNonvol(Gpr::R12, far));
    // Operation 8 with one operand, 9 with two.
    check(SaveXmm(6, 0x20), &[[9, 0x68], [2, 0]], SaveXmm128(6, 0x20));
    let last = 16 * 65535;
    check(SaveXmm(15, last), &[[9, 0xF8], [0xFF, 0xFF]], SaveXmm128(15, last));
    let far = last + 16;
    check(SaveXmm(15, far), &[[9, 0xF9], [0, 0], [16, 0]], SaveXmm128(15, far));
    check(MachineFrame(false), &[[9, 0x0A]], PushMachframe(false));
    check(MachineFrame(true), &[[9, 0x1A]], PushMachframe(true));
}

#[test]
fn the_header_has_the_frame_register() {
    // rbp is 5, its offset of 2 · 16 bytes the high nibble.
    let mut info = version1(&[
        (1, Operation::Push(Gpr::Rbp)),
        (5, Operation::Allocate(0x30)),
        (10, Operation::SetFrame),
    ]);
    info.frame = Some((Gpr::Rbp, 2));
    let bytes = info.encode().unwrap();
    assert_eq!(bytes, [1, 10, 3, 0x25, 10, 0x03, 5, 0x52, 1, 0x50, 0, 0]);
    decode(&bytes, |info| {
        assert_eq!((info.frame_register(), info.frame_offset()), (5, 0x20));
    });
    info.frame = Some((Gpr::R15, 15));
    let bytes = info.encode().unwrap();
    assert_eq!(bytes[3], 0xFF);
    decode(&bytes, |info| assert_eq!((info.frame_register(), info.frame_offset()), (15, 240)));
}

/// The last operation comes first; the count is the number of slots, without the padding.
#[test]
fn slots_are_padded_to_an_even_number() {
    assert_eq!(version1(&[]).encode().unwrap(), [1, 0, 0, 0]);
    let push = (1, Operation::Push(Gpr::Rbx));
    assert_eq!(version1(&[push]).encode().unwrap(), [1, 1, 1, 0, 1, 0x30, 0, 0]);
    // push rbx; sub rsp, 20h
    let both = version1(&[push, (5, Operation::Allocate(0x20))]).encode().unwrap();
    assert_eq!(both, [1, 5, 2, 0, 5, 0x32, 1, 0x30]);
    assert_eq!(codes(&both), [(5, Decoded::Alloc(0x20)), (1, Decoded::PushNonvol(Gpr::Rbx))]);
}

#[test]
fn a_handler_comes_after_the_padding() {
    for pushes in 0..4_u8 {
        let pushes: Vec<_> = (1..=pushes).map(|n| (n, Operation::Push(Gpr::Rbx))).collect();
        let mut info = version1(&pushes);
        info.trailer = Trailer::Handler(0x1234_5678);
        let bytes = info.encode().unwrap();
        let at = 4 + 2 * pushes.len().next_multiple_of(2);
        // Flags 1 and 2, for exceptions and for unwinding, above the version's 3 bits.
        assert_eq!(bytes[0], 0x19);
        assert_eq!(bytes[at..], [0x78, 0x56, 0x34, 0x12]);
        decode(&bytes, |info| {
            let handler = info.handler().unwrap().unwrap();
            assert_eq!((handler.rva, handler.data_rva), (0x1234_5678, at as u32 + 4));
            assert!(!info.is_chained());
        });
    }
}

#[test]
fn a_parent_comes_after_the_padding() {
    for slots in 0..4_u8 {
        let pushes: Vec<_> = (1..=slots).map(|n| (n, Operation::Push(Gpr::Rbx))).collect();
        let mut info = version1(&pushes);
        info.trailer = Trailer::Chained([0x1010, 0x1020, 0x3004]);
        let bytes = info.encode().unwrap();
        let at = 4 + 2 * pushes.len().next_multiple_of(2);
        // Flag 4, above the version's 3 bits.
        assert_eq!(bytes[0], 0x21);
        assert_eq!(bytes[at..], [0x10, 0x10, 0, 0, 0x20, 0x10, 0, 0, 0x04, 0x30, 0, 0]);
        decode(&bytes, |info| {
            let parent = info.parent().unwrap().unwrap();
            assert_eq!((parent.begin, parent.end, parent.unwind_info), (0x1010, 0x1020, 0x3004));
            assert_eq!(info.handler(), Ok(None));
        });
    }
}

/// Checks the EPILOG codes, followed by a push, and the decoded starts of the epilogues of a
/// function that ends at 0x2000.
#[track_caller]
fn check_epilogs(epilogs: Epilogs, slots: &[[u8; 2]], starts: &[u32]) {
    let mut info = version1(&[(1, Operation::Push(Gpr::Rbx))]);
    info.version = 2;
    info.epilogs = Some(epilogs);
    let bytes = info.encode().unwrap();
    let mut expected = vec![2, 1, slots.len() as u8 + 1, 0];
    expected.extend(slots.iter().flatten());
    // The padding makes an even number of slots with the push.
    expected.extend([1, 0x30, 0, 0]);
    assert_eq!(bytes, expected);
    decode(&bytes, |info| {
        assert_eq!(info.version(), 2);
        let epilogs = info.epilogs().unwrap();
        assert_eq!(epilogs.size(), 5);
        assert_eq!(epilogs.starts(0x2000).collect::<Vec<_>>(), starts);
    });
    let pushes: Vec<_> =
        codes(&bytes).into_iter().filter(|(_, operation)| *operation != Decoded::Epilog).collect();
    assert_eq!(pushes, [(1, Decoded::PushNonvol(Gpr::Rbx))]);
}

// The first EPILOG code (operation 6) has the size and, in bit 0 of its info, a flag for an
// epilogue at the function's end. The others have 12 bits of distance from the end.

#[test]
fn an_epilogue_at_the_end_is_a_flag() {
    let epilogs = Epilogs { size: 5, at_end: true, distances: vec![] };
    check_epilogs(epilogs, &[[5, 0x16], [0, 0x06]], &[0x1FFB]);
}

#[test]
fn an_epilogue_elsewhere_is_a_distance() {
    let epilogs = Epilogs { size: 5, at_end: false, distances: vec![0x123] };
    check_epilogs(epilogs, &[[5, 0x06], [0x23, 0x16]], &[0x1EDD]);
}

#[test]
fn the_list_of_epilogues_is_padded() {
    let epilogs = Epilogs { size: 5, at_end: true, distances: vec![0xFFF, 6] };
    let slots = [[5, 0x16], [0xFF, 0xF6], [6, 0x06], [0, 0x06]];
    check_epilogs(epilogs, &slots, &[0x1FFB, 0x1001, 0x1FFA]);
    let epilogs = Epilogs { size: 5, at_end: true, distances: vec![0x100] };
    check_epilogs(epilogs, &[[5, 0x16], [0, 0x16]], &[0x1FFB, 0x1F00]);
}

#[test]
fn there_are_at_most_255_slots() {
    let pushes = |count| version1(&vec![(1, Operation::Push(Gpr::Rbx)); count]);
    let bytes = pushes(255).encode().unwrap();
    assert_eq!((bytes[2], bytes.len()), (255, 4 + 2 * 256));
    assert_eq!(codes(&bytes).len(), 255);
    assert_eq!(pushes(256).encode(), None);
    // The slots of the list of epilogues count too.
    let mut info = pushes(254);
    info.epilogs = Some(Epilogs { size: 5, at_end: true, distances: vec![] });
    assert_eq!(info.encode(), None);
}
