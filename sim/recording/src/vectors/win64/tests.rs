use super::*;
use crate::vectors::UnwindStatus;
use crate::vectors::tests::{fixture, outcome, patched};
use clr_unwind::{Gpr, Segments};

const HEADER: usize = 32;
const KIND: usize = HEADER + 10;
const TRUTH: usize = HEADER + 324;
const FIRST_SEGMENT: usize = TRUTH + 64 + 32 + 40;
const SECOND_SEGMENT: usize = FIRST_SEGMENT + 12 + 7;
const CHAIN: usize = SECOND_SEGMENT + 12 + 8;
const PADDING: usize = CHAIN + 80;
const END: usize = PADDING + 1;

fn file(vectors: &[&[u8]]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(0x1_4000_0000_u64.to_le_bytes());
    for word in [0x5000, vectors.len() as u32, 3, 0] {
        bytes.extend(word.to_le_bytes());
    }
    [bytes, vectors.concat()].concat()
}

/// Returns a vector with two segments and a chain of one caller.
fn vector() -> Vec<u8> {
    let mut bytes = ((END - HEADER) as u32).to_le_bytes().to_vec();
    bytes.extend(0x1234_u32.to_le_bytes());
    bytes.extend([0x41, 0x02, 3, 2, 0x01, 0x01, 1, 0]);
    for word in [0x1200_u32, 6, 7] {
        bytes.extend(word.to_le_bytes());
    }
    for word in 0..17_u64 {
        bytes.extend((0x1_4000_1234 + word).to_le_bytes());
    }
    for word in 0..10_u128 {
        bytes.extend((1 << 100 | word).to_le_bytes());
    }
    bytes.extend(outcome(1, 0x18, 0x200));
    bytes.extend(outcome(3, 0, 0));
    bytes.extend(outcome(2, 0x10, 0));
    for (address, content) in [(0x8001_u64, &b"seven.."[..]), (0x8008, b"eight...")] {
        bytes.extend(address.to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
    }
    for word in 0..10_u64 {
        bytes.extend((0xC0 + word).to_le_bytes());
    }
    bytes.push(0);
    bytes
}

/// Reads all fields.
fn read_all(bytes: &[u8]) -> Result<Vec<Vector<'_>>, FormatError> {
    let vectors: Vec<_> = VectorFile::parse(bytes)?.iter().collect::<Result<_, _>>()?;
    for vector in &vectors {
        for outcome in [vector.truth, vector.wine, vector.coreclr] {
            let _ = outcome.apply(&vector.registers);
        }
        assert!(Segments::new(vector.segments()).is_ok());
    }
    Ok(vectors)
}

#[test]
fn every_field_is_where_it_should_be() {
    let bytes = file(&[&vector()]);
    assert_eq!(bytes.len(), END);
    let file = VectorFile::parse(&bytes).unwrap();
    assert_eq!((file.image_base(), file.size_of_image()), (0x1_4000_0000, 0x5000));
    assert_eq!((file.len(), file.is_empty(), file.chains()), (1, false, 3));

    let vector = file.get(0).unwrap().unwrap();
    assert_eq!((vector.rva, vector.begin_address), (0x1234, 0x1200));
    assert_eq!((vector.test, vector.depth), (6, 7));
    assert_eq!(vector.kind, VectorKind::CodeEpilogue);
    assert_eq!((vector.flags.bits(), vector.attrs.bits()), (0x241, 0x101));
    assert!(vector.flags.is_gold() && vector.flags.has_chain());
    assert!(vector.flags.no_runtime_function() && !vector.flags.wine_right());
    assert!(vector.attrs.frame_register() && vector.attrs.far_forms());
    assert!(!vector.attrs.chained());
    assert_eq!(vector.registers.rip, 0x1_4000_1234);
    assert_eq!(vector.registers.get(Gpr::Rax), 0x1_4000_1235);
    assert_eq!(vector.registers.get(Gpr::R15), 0x1_4000_1244);
    assert_eq!(vector.registers.xmm[9], 1 << 100 | 9);
    assert_eq!(vector.truth.status, UnwindStatus::Fine);
    assert_eq!(vector.truth.apply(&vector.registers).rsp(), 0xA1);
    assert_eq!(vector.wine.status, UnwindStatus::Failed);
    assert_eq!(vector.coreclr.status, UnwindStatus::AssertionFired);
    assert_eq!(vector.coreclr.apply(&vector.registers).rsp(), 0xA0);
    let segments: Vec<_> = vector.segments().map(|s| (s.address(), s.bytes())).collect();
    assert_eq!(segments, [(0x8001, &b"seven.."[..]), (0x8008, b"eight...")]);
    let nonvolatile = [0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9];
    assert_eq!(vector.chain, [OuterCaller { rip: 0xC0, rsp: 0xC1, nonvolatile }]);

    let empty = self::file(&[]);
    let empty = VectorFile::parse(&empty).unwrap();
    assert!(empty.is_empty() && empty.iter().next().is_none() && empty.get(0).is_none());
}

#[test]
fn every_kind_and_bit_has_its_name() {
    let bytes = file(&[&vector()]);
    let kinds = [
        VectorKind::Leaf,
        VectorKind::Prologue,
        VectorKind::Body,
        VectorKind::CodeEpilogue,
        VectorKind::CodesEpilogue,
    ];
    for (number, kind) in (0..).zip(kinds) {
        assert_eq!(read_all(&patched(&bytes, KIND, &[number])).unwrap()[0].kind, kind);
    }
    let flags = [
        VectorFlags::is_gold,
        VectorFlags::truth_from_return,
        VectorFlags::wine_right,
        VectorFlags::coreclr_right,
        VectorFlags::nonvolatiles_preserved,
        VectorFlags::entered_by_machine_frame,
        VectorFlags::has_chain,
        VectorFlags::wine_rip_rsp_right,
        VectorFlags::coreclr_rip_rsp_right,
        VectorFlags::no_runtime_function,
    ];
    let attrs = [
        VectorAttrs::frame_register,
        VectorAttrs::chained,
        VectorAttrs::machine_frame,
        VectorAttrs::version_2,
        VectorAttrs::save_xmm,
        VectorAttrs::save_nonvol,
        VectorAttrs::alloc_large,
        VectorAttrs::handler,
        VectorAttrs::far_forms,
    ];
    for bit in 0..16 {
        for (i, flag) in flags.iter().enumerate() {
            assert_eq!(flag(VectorFlags(1 << bit)), i == bit, "flag {i}, bit {bit}");
        }
        for (i, attr) in attrs.iter().enumerate() {
            assert_eq!(attr(VectorAttrs(1 << bit)), i == bit, "attr {i}, bit {bit}");
        }
    }
}

#[test]
fn malformed_files_are_refused() {
    let good = file(&[&vector()]);
    let top = (u64::MAX - 6).to_le_bytes();
    let cases: &[(usize, &[u8], FormatError)] = &[
        (7, b"2", FormatError::BadMagic),
        (28, &[1], FormatError::NotZero { offset: 28 }),
        (20, &[0], FormatError::TrailingBytes { offset: HEADER }),
        (20, &[2], FormatError::TooShort { offset: END }),
        (20, &[0xFF; 4], FormatError::TooShort { offset: END }),
        (HEADER, &[0; 4], FormatError::BadLength { offset: HEADER }),
        (HEADER, &[0x46], FormatError::BadLength { offset: HEADER }),
        (HEADER, &[0xFC, 0xFF, 0xFF, 0xFF], FormatError::TooShort { offset: HEADER }),
        (KIND, &[5], FormatError::BadKind { offset: KIND }),
        (KIND + 1, &[0], FormatError::BadLength { offset: HEADER }),
        (KIND + 4, &[0], FormatError::BadLength { offset: HEADER }),
        (KIND + 4, &[0xFF, 0xFF], FormatError::TooShort { offset: PADDING }),
        (TRUTH, &[0], FormatError::BadStatus { offset: TRUTH }),
        (TRUTH + 5, &[4], FormatError::MaskOutOfRange { offset: TRUTH + 4 }),
        (FIRST_SEGMENT + 8, &[0xFF; 4], FormatError::TooShort { offset: FIRST_SEGMENT + 12 }),
        (FIRST_SEGMENT, &[2], FormatError::SegmentOrder { offset: SECOND_SEGMENT }),
        (FIRST_SEGMENT, &top, FormatError::SegmentOrder { offset: SECOND_SEGMENT }),
        (SECOND_SEGMENT, &[1], FormatError::SegmentOrder { offset: SECOND_SEGMENT }),
        (SECOND_SEGMENT, &top, FormatError::SegmentWraps { offset: SECOND_SEGMENT }),
        (PADDING, &[1], FormatError::NotZero { offset: PADDING }),
    ];
    for &(offset, patch, error) in cases {
        let result = read_all(&patched(&good, offset, patch)).map(|_| ());
        assert_eq!(result, Err(error), "{patch:x?} at {offset:#x}");
    }
    let ends_the_space = (u64::MAX - 7).to_le_bytes();
    assert!(read_all(&patched(&good, SECOND_SEGMENT, &ends_the_space)).is_ok());

    // A segment with a shorter length leaves zero bytes at the end, of which three count as
    // padding.
    let length = SECOND_SEGMENT + 8;
    assert!(read_all(&patched(&good, length, &[6])).is_ok());
    let error = FormatError::BadLength { offset: HEADER };
    assert_eq!(read_all(&patched(&good, length, &[5])).unwrap_err(), error);
}

#[test]
fn an_error_ends_the_iteration() {
    let bad = patched(&vector(), KIND - HEADER, &[9]);
    let bytes = file(&[&vector(), &bad, &vector()]);
    let file = VectorFile::parse(&bytes).unwrap();
    let error = FormatError::BadKind { offset: END + KIND - HEADER };
    let mut iter = file.iter();
    assert!(iter.next().unwrap().is_ok());
    assert_eq!(iter.next().unwrap().unwrap_err(), error);
    assert!(iter.next().is_none());
    assert!(iter.next().is_none());
    assert_eq!(file.get(1).unwrap().unwrap_err(), error);
    assert!(file.get(2).unwrap().is_ok());
    assert!(file.get(3).is_none());
}

#[test]
fn damage_anywhere_is_survived() {
    let good = file(&[&vector()]);
    for len in 0..good.len() {
        assert!(VectorFile::parse(&good[..len]).is_err(), "{len} bytes");
    }
    // Cut in the same way, with a length that hides the cut.
    for len in (HEADER + 4..END).step_by(4) {
        let cut = patched(&good[..len], HEADER, &((len - HEADER) as u32).to_le_bytes());
        assert!(matches!(read_all(&cut), Err(FormatError::TooShort { .. })), "{len} bytes");
    }
    for offset in 0..good.len() {
        for byte in [0, 1, 0x7F, 0x80, 0xFF, !good[offset]] {
            let _ = read_all(&patched(&good, offset, &[byte]));
        }
    }
}

/// Returns true if two states agree in all registers that were recorded of the caller.
fn same(a: &Registers, b: &Registers) -> bool {
    let nonvolatile = |r: &Registers| Gpr::NONVOLATILE.map(|register| r.get(register));
    (a.rip, a.rsp(), a.xmm) == (b.rip, b.rsp(), b.xmm) && nonvolatile(a) == nonvolatile(b)
}

#[test]
fn the_fixtures_are_read_whole() {
    for (name, vectors, gold, chains, from_return) in [
        ("asm_raw", 10_300, 10_100, 36, 10_300),
        ("gcc_O2", 3_326, 3_222, 152, 3_326),
        ("clang_O2", 4_374, 4_275, 213, 4_374),
        ("cpp_gcc_O2", 1_080, 1_051, 44, 920),
        ("clang_O2_lld", 4_374, 4_275, 213, 4_374),
    ] {
        let bytes = fixture(&format!("win64/vec/{name}.vec.gz"));
        let tests = clr_fixtures::get(&format!("win64/vec/{name}.tests")).unwrap();
        let tests = tests.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
        let file = VectorFile::parse(&bytes).unwrap();
        let all = read_all(&bytes).unwrap();
        let count = |f: fn(&Vector<'_>) -> bool| all.iter().filter(|vector| f(vector)).count();
        assert_eq!((all.len(), file.len()), (vectors, vectors), "{name}");
        assert_eq!(count(|vector| vector.flags.is_gold()), gold, "{name}");
        assert_eq!(count(|vector| vector.flags.has_chain()), chains, "{name}");
        assert_eq!(file.chains() as usize, chains, "{name}");
        assert_eq!(count(|vector| vector.flags.truth_from_return()), from_return, "{name}");
        for vector in &all {
            let (flags, registers) = (vector.flags, &vector.registers);
            assert_eq!(registers.rip, file.image_base() + u64::from(vector.rva));
            assert!(vector.rva < file.size_of_image());
            assert!((vector.test as usize) < tests);
            assert_eq!(flags.has_chain(), !vector.chain.is_empty());
            assert_eq!(flags.no_runtime_function(), vector.begin_address == 0);
            assert_eq!(flags.no_runtime_function(), vector.kind == VectorKind::Leaf);
            let truth = vector.truth.apply(registers);
            let right = |outcome: UnwindAnswer| {
                outcome.is_answer() && same(&truth, &outcome.apply(registers))
            };
            assert_eq!(right(vector.wine), flags.wine_right(), "{name} {:#x}", vector.rva);
            assert_eq!(right(vector.coreclr), flags.coreclr_right());
            assert_eq!(flags.is_gold(), flags.wine_right() || flags.coreclr_right());
        }
    }
}
