//! An image of native code with call frame information made by hand.

use super::*;

/// RVA of the call frame information, after all code.
const EH_FRAME: u32 = 0x10_0000;

/// The initial instructions of functions that have only their return address on the stack:
/// DW_CFA_def_cfa rsp, 8; DW_CFA_offset rip, -8.
pub(crate) const USUAL: &[u8] = &[0x0C, 7, 8, 0x90, 1];

/// Functions that have the same rules at the same distance from their starts.
pub(crate) struct Functions {
    /// The first byte (RVA), and the size in bytes.
    pub(crate) range: (u32, u32),
    pub(crate) augmentation: &'static [u8],
    pub(crate) instructions: &'static [u8],
    /// The instructions after the initial ones: none for functions with the same rules everywhere.
    pub(crate) program: &'static [u8],
}

/// Returns `.eh_frame`.
pub(crate) fn eh_frame(functions: &[Functions]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let entry = |bytes: &mut Vec<u8>, id: u32, content: &[u8]| {
        bytes.extend((content.len() as u32 + 4).to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(content);
    };
    for Functions { range: (begin, len), augmentation, instructions, program } in functions {
        let cie = bytes.len();
        // Version 1; factors 1 and -8; the return address is in column 16; relative addresses of 4
        // bytes.
        let content = [&[1], *augmentation, &[0, 1, 0x78, 16, 1, 0x1B], *instructions].concat();
        entry(&mut bytes, 0, &content);
        let here = EH_FRAME + bytes.len() as u32 + 8;
        let from = begin.wrapping_sub(here).to_le_bytes();
        let id = (bytes.len() + 4 - cie) as u32;
        entry(&mut bytes, id, &[&from[..], &len.to_le_bytes(), &[0], *program].concat());
    }
    bytes
}

/// A way to read call frame information: at once, or for each look-up.
pub(crate) type Read = for<'a> fn(&CfiSections<'a>, &Sections<'_>) -> CfiTable<'a>;

pub(crate) const AT_ONCE: Read = |cfi, code| CfiTable::new(cfi, code);
pub(crate) const LAZILY: Read = |cfi, code| CfiTable::lazy(cfi, code);

/// Adds an image of `code` at [`NATIVE`], with these entries, read in this way, to a map.
pub(crate) fn insert<'a>(map: &mut CodeMap<'a>, code: &'a [u8], eh_frame: &'a [u8], read: Read) {
    let code = Section { rva: 0, bytes: code, executable: true };
    let data = Section { rva: EH_FRAME, bytes: eh_frame, executable: false };
    let sections = Sections::new(vec![code, data]).unwrap();
    let cfi = CfiSections { eh_frame: Some(data), ..CfiSections::default() };
    let table = read(&cfi, &sections);
    let (kind, none) = (RegionKind::Image, FunctionTable::default());
    let region = CodeRegion::from_sections(NATIVE, 0x11_0000, kind, sections, none).unwrap();
    map.insert(region.with_cfi(table)).unwrap();
}

/// Walks a thread in native code that these entries describe.
pub(crate) fn walk(mock: &Mock, functions: &[Functions], policy: Policy) -> MixedStack {
    walk_read(mock, functions, policy, AT_ONCE)
}

/// Does the same with entries that are read in this way.
pub(crate) fn walk_read(
    mock: &Mock,
    functions: &[Functions],
    policy: Policy,
    read: Read,
) -> MixedStack {
    let bytes = eh_frame(functions);
    let mut map = CodeMap::new();
    insert(&mut map, mock.code(), &bytes, read);
    mock.walk_by(&map, policy, &mut WalkBuffer::new(8))
}
