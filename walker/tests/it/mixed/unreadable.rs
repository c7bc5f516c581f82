//! Walks through images whose code can be read neither in the map nor in the process: a call before a
//! return address cannot be seen, but the function around it can.

use super::*;

/// RVA after all functions of the mock's native code, and of their unwind data.
const END: u32 = 0x1000;
/// RVA of the call frame information.
const EH_FRAME: u32 = 0x10_0000;

/// Walks a thread whose native code is in this region only.
fn walk(mock: &Mock, region: CodeRegion<'_>) -> MixedStack {
    let mut map = CodeMap::new();
    map.insert(region).unwrap();
    mock.walk_by(&map, Policy::Signal, &mut WalkBuffer::new(8))
}

/// Walks a thread by RUNTIME_FUNCTION entries.
fn walk_by_functions(ips: &[u64], is_readable: bool) -> MixedStack {
    let mut mock = Mock::new(ips);
    mock.hides_code = !is_readable;
    let bytes = &mock.code()[END as usize..];
    let data = Section { rva: END, bytes, executable: false };
    let sections = Sections::new(vec![data]).unwrap();
    let kind = RegionKind::Image;
    let region = CodeRegion::from_sections(NATIVE, 0x2000, kind, sections, mock.functions());
    walk(&mock, region.unwrap())
}

#[test]
fn a_function_of_an_image_may_be_returned_to() {
    let ips = [NATIVE + 0x20, returns_to(NATIVE, 1), returns_to(NATIVE, 2)];
    for is_readable in [true, false] {
        let stack = walk_by_functions(&ips, is_readable);
        let found: Vec<_> = stack.frames.iter().map(|frame| frame.ip).collect();
        assert_eq!((&found[..], stack.completeness()), (&ips[..], Completeness::Whole));
        let kind = FrameKind::Native { image: NATIVE, rva: 0x142 };
        assert_eq!(stack.frames[1].kind, kind);
    }
    // Where code can be read, it says more than the function table; behind all functions there is none.
    let no_call = returns_to(NATIVE, 1) + 1;
    let no_function = NATIVE + u64::from(END) + 0x900;
    for (address, is_readable, frames) in
        [(no_call, false, 3), (no_call, true, 1), (no_function, false, 1)]
    {
        let stack = walk_by_functions(&[ips[0], address, ips[2]], is_readable);
        assert_eq!(stack.frames.len(), frames, "{address:#x}");
        if frames == 1 {
            let reason = Reason::NotACall { address };
            assert_eq!(stack.completeness(), Completeness::Partial(reason));
        }
    }
}

#[test]
fn call_frame_information_shows_functions_too() {
    let functions =
        [Functions { range: (0, 0x300), augmentation: b"zR", instructions: USUAL, program: &[] }];
    let bytes = eh_frame(&functions);
    for (address, frames) in [(returns_to(NATIVE, 1), 3), (returns_to(NATIVE, 4), 1)] {
        let mut mock = Mock::new(&[NATIVE + 0x20]);
        mock.hides_code = true;
        let rsp = mock.context.registers.rsp();
        for (at, word) in [(0, address), (8, returns_to(NATIVE, 2)), (16, 0)] {
            mock.poke(rsp + at, word);
        }
        let code = Section { rva: 0, bytes: mock.code(), executable: true };
        let data = Section { rva: EH_FRAME, bytes: &bytes, executable: false };
        let cfi = CfiSections { eh_frame: Some(data), ..CfiSections::default() };
        let table = CfiTable::new(&cfi, &Sections::new(vec![code]).unwrap());
        let (kind, none) = (RegionKind::Image, FunctionTable::default());
        let region = CodeRegion::from_sections(NATIVE, 0x11_0000, kind, Sections::default(), none);
        let stack = walk(&mock, region.unwrap().with_cfi(table));
        assert_eq!(stack.frames.len(), frames, "{address:#x}");
    }
}
