use super::*;
use clr_generate::near_valid::{CodeField, EntryField, HeaderField, Mutation, Table};

const RVA: u32 = 0x2000;

/// Returns two entries with an UNWIND_INFO of two codes each, and the infos.
fn tables() -> (Vec<u8>, Vec<u8>) {
    let words = [0x1000, 0x1010, RVA, 0x1010, 0x1030, RVA + 8_u32];
    let pdata = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let xdata = vec![
        0x01, 5, 2, 0x00, 5, 0x42, 1, 0x30, //
        0x09, 9, 2, 0x25, 9, 0x03, 1, 0x50,
    ];
    (pdata, xdata)
}

fn applied(mutation: Mutation) -> (bool, Vec<u8>, Vec<u8>) {
    let (mut pdata, mut xdata) = tables();
    let changed = mutation.apply(&mut pdata, &mut xdata, RVA);
    (changed, pdata, xdata)
}

#[test]
fn mutations_change_the_part_that_they_name() {
    let (pdata, xdata) = tables();
    let one = |mutation, at: usize, byte: u8| {
        let mut expected = xdata.clone();
        expected[at] = byte;
        assert_eq!(applied(mutation), (true, pdata.clone(), expected), "{mutation:?}");
    };
    one(Mutation::Flip { table: Table::Xdata, at: 16 + 3, bit: 1 }, 3, 0x02);
    for (field, value, at, byte) in [
        (HeaderField::Version, 2, 8, 0x0A),
        (HeaderField::Flags, 0xFF, 8, 0xF9),
        (HeaderField::PrologSize, 255, 9, 255),
        (HeaderField::CodeCount, 77, 10, 77),
        (HeaderField::FrameRegister, 3, 11, 0x23),
        (HeaderField::FrameOffset, 7, 11, 0x75),
    ] {
        one(Mutation::Header { entry: 3, field, value }, at, byte);
    }
    for (field, value, at, byte) in [
        (CodeField::Offset, 200, 14, 200),
        (CodeField::Operation, 9, 15, 0x59),
        (CodeField::Info, 9, 15, 0x90),
    ] {
        one(Mutation::Code { entry: 1, slot: 5, field, value }, at, byte);
    }
    one(Mutation::Truncate { entry: 0, count: 5 }, 2, 1);

    let (changed, moved, _) =
        applied(Mutation::Entry { entry: 1, field: EntryField::End, by: -0x10 });
    assert!(changed);
    assert_eq!(moved[16..20], 0x1020_u32.to_le_bytes());
    let (changed, swapped, _) = applied(Mutation::SwapEntries(0, 1));
    assert!(changed);
    assert_eq!(swapped, [&pdata[12..], &pdata[..12]].concat());
    let (changed, _, swapped) = applied(Mutation::SwapCodes { entry: 0, slots: (0, 1) });
    assert!(changed);
    assert_eq!(swapped[4..8], [1, 0x30, 5, 0x42]);
}

#[test]
fn the_answer_says_whether_anything_changed() {
    let (pdata, xdata) = tables();
    let mut seeded = Seeded::new(0);
    let mut kinds = BTreeSet::new();
    let mut changes = 0;
    for _ in 0..5_000 {
        let mutation = Mutation::draw(&mut seeded);
        kinds.insert(match mutation {
            Mutation::Flip { .. } => 0,
            Mutation::Entry { .. } => 1,
            Mutation::SwapEntries(..) => 2,
            Mutation::Header { .. } => 3,
            Mutation::Truncate { .. } => 4,
            Mutation::Code { .. } => 5,
            Mutation::SwapCodes { .. } => 6,
        });
        let (says, left, right) = applied(mutation);
        let differs = left != pdata || right != xdata;
        assert_eq!(says, differs, "{mutation:?}");
        changes += u32::from(says);
    }
    assert_eq!(kinds.len(), 7);
    assert!(changes > 3_500, "{changes}");
}

#[test]
fn any_bytes_can_be_mutated() {
    let mut seeded = Seeded::new(1);
    for _ in 0..20_000 {
        let mutation = Mutation::draw(&mut seeded);
        let mut bytes = |most: u64| -> Vec<u8> {
            (0..seeded.bits() % most).map(|_| (seeded.bits() & 0x1F) as u8).collect()
        };
        let (mut pdata, mut xdata) = (bytes(40), bytes(40));
        mutation.apply(&mut pdata, &mut xdata, 0);
        mutation.apply(&mut pdata, &mut xdata, u32::MAX);
    }
}
