//! Stacks that need both unwinders: managed code with UNWIND_INFO among native frames.

use super::*;

const NATIVE: u64 = 0x7F00_0000_0000;
const HEAP: u64 = 0x7F80_0000_0000;
const STACK: u64 = 0x7FFE_0000_0000;
const CODE: u32 = 0x1000;

/// main → managed → native, which was interrupted: rbx travels through all of them.
#[test]
fn managed_code_is_unwound_among_native_frames() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    // sub rsp, 16.
    frames.fde(cie, CODE, 0x100, &[Cfi::DefCfaOffset(24)]);
    // push rbx; push rbp; mov rbp, rsp: the outermost one, whose return address is undefined.
    frames.fde(cie, CODE + 0x100, 0x100, &[Cfi::DefCfaOffset(16), Cfi::Undefined(16)]);
    // push rbx; sub rsp, 8, and the UNWIND_INFO that says so.
    let mut heap = vec![0x90; 0x100];
    heap.extend([1, 5, 2, 0, 5, 0x02, 1, 0x30]);
    let table: Vec<u8> = [0_u32, 0x80, 0x100].into_iter().flat_map(u32::to_le_bytes).collect();

    let code = vec![0x90; 0x200];
    let sections = Sections::new(vec![
        Section { rva: CODE, bytes: &code, executable: true },
        Section { rva: EH_FRAME, bytes: &frames.bytes, executable: false },
    ])
    .unwrap();
    let eh_frame = Section { rva: EH_FRAME, bytes: &frames.bytes, executable: false };
    let cfi = CfiSections {
        preferred_base: crate::dwarf::case::PREFERRED,
        eh_frame: Some(eh_frame),
        ..CfiSections::default()
    };
    let cfi = CfiTable::new(&cfi, &sections);
    let (kind, none) = (RegionKind::Image, FunctionTable::default());
    let native = CodeRegion::from_sections(NATIVE, 0x10_0000, kind, sections, none).unwrap();
    let mut map = CodeMap::new();
    map.insert(native.with_cfi(cfi)).unwrap();
    map.insert(CodeRegion::heap(HEAP, &heap, FunctionTable::new(&table)).unwrap()).unwrap();

    let outermost = NATIVE + u64::from(CODE) + 0x140;
    let words = [0, 0, HEAP + 0x40, 0, 0xB0B, outermost, 0xF00];
    let stack: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let memory = Segment::new(STACK, &stack);
    let mut start = Registers { rip: NATIVE + u64::from(CODE) + 0x20, ..Registers::default() };
    start.set(Gpr::Rsp, STACK);

    for rules in [Rules::Precise, Rules::CoreClr, Rules::CoreClrUnix] {
        let unwinder = Unwinder::new(&map).with_rules(rules);
        let walked: Vec<_> = unwinder.walk(&start, &memory).collect();
        let rips: Vec<_> = walked.iter().flatten().map(|frame| frame.registers.rip).collect();
        assert_eq!(rips, [start.rip, HEAP + 0x40, outermost], "{rules:?}");
        let trust = |n: usize| walked[n].unwrap().found_by.unwrap().trust;
        assert_eq!([trust(1), trust(2)], [Trust::Cfi, Trust::Body]);
        let last = walked[2].unwrap().registers;
        assert_eq!((last.get(Gpr::Rbx), last.rsp()), (0xB0B, STACK + 48));
        let known = [0, 1, 2].map(|n: usize| walked[n].unwrap().known);
        let preserved = Convention::SystemV.nonvolatile();
        assert_eq!(known, [RegisterSet::ALL, preserved, preserved]);
        // In a map with native code, managed code has the convention of native code.
        let mut managed = walked[1].unwrap().registers;
        let step = unwinder.step(&mut managed, Position::Interrupted, &memory).unwrap();
        assert_eq!(step.known(RegisterSet::ALL), preserved);
        let end = UnwindError::EndOfStack { address: outermost };
        assert_eq!(walked[3], Err(end), "{rules:?}");

        let mut cache = Cache::new();
        for _ in 0..2 {
            let (mut registers, mut position) = (start, Position::Interrupted);
            for frame in &walked[1..3] {
                let step = unwinder.step_cached(&mut cache, &mut registers, position, &memory);
                position = step.unwrap().caller;
                assert_eq!(registers, frame.unwrap().registers, "{rules:?}");
            }
            let step = unwinder.step_cached(&mut cache, &mut registers, position, &memory);
            assert_eq!(step, Err(end));
        }
    }

    map.remove(NATIVE).unwrap();
    start.rip = HEAP + 0x40;
    let step = Unwinder::new(&map).step(&mut start, Position::Interrupted, &memory).unwrap();
    assert_eq!(step.known(RegisterSet::ALL), Convention::WindowsX64.nonvolatile());
}
