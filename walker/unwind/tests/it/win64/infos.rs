//! UNWIND_INFO as data, for tools that print it.

use super::*;

const INFO: u32 = 0x800;

/// Calls `use_info` with the unwind info, read from an image.
fn read<T>(info: &Info, use_info: impl FnOnce(&UnwindInfo<'_>) -> T) -> T {
    Case::new().put(INFO, &info.bytes()).with_map(|map| {
        let info = UnwindInfo::read(map.regions().next().unwrap(), INFO).unwrap();
        use_info(&info)
    })
}

#[test]
fn the_header_has_its_fields() {
    let info = Info::new(0x12, &[(4, Push(Rbx)), (1, Push(Rbp))]).version(2).frame(R15, 0xE0);
    read(&info, |info| {
        assert_eq!((info.rva(), info.version(), info.flags()), (INFO, 2, 0));
        assert_eq!((info.prologue_size(), info.slot_count()), (0x12, 2));
        assert_eq!((info.frame_register(), info.frame_offset()), (15, 0xE0));
        assert!(!info.is_chained());
        assert_eq!((info.parent(), info.handler()), (Ok(None), Ok(None)));
    });
}

#[test]
fn operations_have_sizes_in_bytes() {
    let operations = [
        (Push(R15), 15, Operation::PushNonvol(R15), 1),
        (Small(8), 0, Operation::Alloc(8), 1),
        (Small(128), 15, Operation::Alloc(128), 1),
        (Large(0x7_FFF8), 0, Operation::Alloc(0x7_FFF8), 2),
        (LargeFar(0x1234_5678), 1, Operation::Alloc(0x1234_5678), 3),
        (SetFrame, 0, Operation::SetFpreg, 1),
        (Save(Rbx, 0x7_FFF8), 3, Operation::SaveNonvol(Rbx, 0x7_FFF8), 2),
        (SaveFar(Rbx, 0x1234_5678), 3, Operation::SaveNonvol(Rbx, 0x1234_5678), 3),
        (Raw(6, 5, &[0]), 5, Operation::Epilog, 2),
        (Raw(7, 5, &[0, 0]), 5, Operation::Spare, 3),
        (Xmm(15, 0xF_FFF0), 15, Operation::SaveXmm128(15, 0xF_FFF0), 2),
        (XmmFar(6, 0x1234_5678), 6, Operation::SaveXmm128(6, 0x1234_5678), 3),
        (MachineFrame, 0, Operation::PushMachframe(false), 1),
        (MachineFrameWithError, 1, Operation::PushMachframe(true), 1),
        (Raw(11, 0, &[0x10, 1]), 0, Operation::SetFpregLarge(0x10_0100), 3),
    ];
    let codes: Vec<_> = (0..).zip(&operations).map(|(at, (op, ..))| (at, *op)).collect();
    read(&Info::new(20, &codes), |info| {
        let codes: Vec<_> = info.codes().map(Result::unwrap).collect();
        assert_eq!(codes.len(), operations.len());
        for ((code, at), (op, op_info, operation, slots)) in codes.iter().zip(0..).zip(operations) {
            assert_eq!((code.offset, code.info), (at, op_info), "{op:?}");
            assert_eq!((code.operation, code.slots), (operation, slots), "{op:?}");
        }
    });
}

#[test]
fn an_unknown_operation_ends_the_codes() {
    let codes = [(4, Push(Rbx)), (3, Raw(12, 0, &[])), (1, Push(Rbp))];
    read(&Info::new(4, &codes), |info| {
        let mut codes = info.codes();
        assert_eq!(codes.next().unwrap().unwrap().operation, Operation::PushNonvol(Rbx));
        let error = UnwindError::InvalidOperation { operation: 12, rva: INFO + 6 };
        assert_eq!(codes.next(), Some(Err(error)));
        assert_eq!(codes.next(), None);
        assert_eq!(codes.next(), None);
    });
}

#[test]
fn epilogues_are_counted_from_the_end() {
    let starts = |codes: &[(u8, Op)]| {
        read(&Info::new(4, codes).version(2), |info| {
            let epilogs = info.epilogs()?;
            Some((epilogs.size(), epilogs.starts(0x1000).collect::<Vec<_>>()))
        })
    };
    assert_eq!(starts(&[]), None);
    assert_eq!(starts(&[(4, Push(Rbx)), (4, Epilog(1))]), None);
    // The bytes after the codes are no codes.
    let behind = Info::new(4, &[(4, Epilog(1))]).version(2).bytes_with_count(0);
    let none = Case::new().put(INFO, &behind).with_map(|map| {
        UnwindInfo::read(map.regions().next().unwrap(), INFO).unwrap().epilogs().is_none()
    });
    assert!(none);
    assert_eq!(starts(&[(4, Epilog(1)), (0, Epilog(0))]), Some((4, vec![0xFFC])));
    let two = [(9, Epilog(0)), (0x50, Epilog(0)), (0x34, Epilog(2)), (0, Epilog(0))];
    assert_eq!(starts(&two), Some((9, vec![0xFB0, 0xDCC])));
    assert_eq!(starts(&[(9, Epilog(0)), (0x50, Push(Rbx))]), Some((9, vec![])));
}

#[test]
fn data_after_the_codes_is_at_an_even_slot() {
    for pushes in 0..4 {
        let codes = vec![(1, Push(Rbx)); pushes];
        let behind = INFO + 4 + 2 * (pushes as u32).next_multiple_of(2);
        read(&Info::new(1, &codes).handler(2, 0x1510), |info| {
            let handler = Handler { rva: 0x1510, data_rva: behind + 4 };
            assert_eq!((info.handler(), info.parent()), (Ok(Some(handler)), Ok(None)));
            assert_eq!(info.flags(), 2);
        });
        read(&Info::new(1, &codes).parent([1, 2, 3]), |info| {
            let parent = RuntimeFunction { begin: 1, end: 2, unwind_info: 3 };
            assert_eq!((info.handler(), info.parent()), (Ok(None), Ok(Some(parent))));
            assert!(info.is_chained());
        });
    }
}
