//! Synthetic threads: their labels, names and code.

use super::*;

/// Creates a thread that allocates: a method calls itself, and a helper with a Frame.
fn allocating() -> SyntheticThread {
    SyntheticThread::new(Generation::CoreClr31Windows)
        .cooperative()
        .native("coreclr.dll!JIT_New+0x80", 0x1F_E000)
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Foo+0x40", 0x1F_E340)
        .jit("App.Main+0x20", 0x1F_E380)
        .native("coreclr.dll!CallDescrWorkerInternal+0x7c", 0x1F_E3C0)
        .frame(FrameKind::HelperMethod, 0x1F_E1C0, "App.Foo")
}

#[test]
fn a_snapshot_is_written_with_labels_and_its_outcome() {
    let thread = allocating();
    let process = thread.build().unwrap();
    let runtime = process.runtime();
    let snapshot = process.snapshot(&runtime, SELF, &process.call());
    let expected = "App.Foo+0x40, rsp 0x1fe300\n\
                    App.Foo+0x40, rsp 0x1fe340\n\
                    App.Main+0x20, rsp 0x1fe380\n\
                    marker: coreclr.dll!CallDescrWorkerInternal+0x7c, rsp 0x1fe3c0\n\
                    S_OK\n";
    assert_eq!(snapshot.to_string(), expected);
    // A callback that stops is the last one.
    for last in 0..4 {
        let stopped = process.snapshot_until(&runtime, SELF, &process.call(), last);
        assert_eq!(stopped.frame_reports, snapshot.frame_reports[..=last]);
        assert_ne!(stopped.outcome, snapshot.outcome);
    }
}

#[test]
fn names_labels_and_addresses_lead_to_each_other() {
    let process = allocating().build().unwrap();
    let (foo, main) = (process.function("App.Foo").unwrap(), process.function("App.Main").unwrap());
    assert_ne!(foo, main);
    assert_eq!((process.name(foo), process.name(main)), (Some("App.Foo"), Some("App.Main")));
    assert_eq!((process.name(FunctionId(1)), process.function("App.Other")), (None, None));
    assert_eq!(process.function("coreclr.dll!JIT_New"), None, "it is no method");
    for (row, label) in [(0, "coreclr.dll!JIT_New+0x80"), (1, "App.Foo+0x40"), (3, "App.Main+0x20")]
    {
        let ip = process.registers(row).unwrap().rip;
        assert_eq!(process.address(label), Some(ip));
        assert_eq!(process.label(ip), label);
    }
    assert_eq!((process.label(5), process.address("App.Other+0x1")), ("0x5".to_owned(), None));
    // Two activations of a function have different stack pointers.
    let ip = process.address("App.Foo+0x40").unwrap();
    for sp in [0x1F_E300, 0x1F_E340] {
        assert_eq!(process.activation_of(ip, sp).unwrap().sp, sp);
    }
    assert_eq!(
        (process.activation_of(ip, 0x1F_E380), process.activation_of(ip + 1, 0x1F_E300)),
        (None, None)
    );
    let seed = process.seed("App.Main").unwrap();
    assert_eq!(seed.registers, process.registers(3).unwrap());
    assert_eq!(process.seed("App.Other"), None);
}

#[test]
fn functions_are_as_far_apart_as_their_code_needs() {
    let apart = |offset: u32| {
        let process = SyntheticThread::new(Generation::CoreClr31Windows)
            .jit(&format!("App.One+{offset:#x}"), 0x1F_E300)
            .jit("App.Two+0x20", 0x1F_E340)
            .build()
            .unwrap();
        process.address("App.Two").unwrap() - process.address("App.One").unwrap()
    };
    for (offset, expected) in
        [(0x10, 0x400), (SIZE - 1, 0x400), (SIZE, 0x800), (0x780, 0x800), (0x781, 0xC00)]
    {
        assert_eq!(apart(offset), expected, "{offset:#x}");
    }
}

#[test]
fn words_can_be_written_into_each_block_and_not_beyond_it() {
    let block = 0x5000_0000;
    let thread = |at: u64| SyntheticThread {
        blocks: vec![(block, 0x1000)],
        overwritten: vec![(at, 7)],
        ..allocating()
    };
    for at in [block, block + 8, block + 0xFF8] {
        let process = thread(at).build().unwrap();
        let runtime = process.runtime();
        assert_eq!(runtime.memory.borrow().read_u64(at), Ok(7), "{at:#x}");
    }
    for at in [block - 8, block + 0xFF9, block + 0x1000] {
        assert_eq!(thread(at).build().err(), Some(SyntheticError::Memory { at }), "{at:#x}");
    }
}
