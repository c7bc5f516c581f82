//! The sections of Mach-O images and object files.

use super::*;
use clr_unwind::MachoImage;

/// An object file of clang 18 for x86_64-macos (`-O2 -fomit-frame-pointer -fno-stack-protector`):
///
/// ```c
/// int g(int);
/// int f(int a) { int s = 0; for (int i = 0; i < a; i++) s += g(i); return s; }
/// int h(int a) { char b[64]; b[a & 63] = g(a); return b[3] + g(2); }
/// ```
const OBJECT: &[u8] = include_bytes!("object.o");

#[test]
fn an_object_file_has_one_record_for_each_function() {
    let image = MachoImage::parse(OBJECT).unwrap();
    let table = image.compact_unwind();
    let entries: Vec<_> = table.entries().map(Result::unwrap).collect();
    let found: Vec<_> =
        entries.iter().map(|it| (it.range.start, it.range.end, it.encoding)).collect();
    // As `llvm-objdump --macho --unwind-info` prints them.
    assert_eq!(found, EXPECTED.map(|(start, end, encoding)| (start, end, Encoding(encoding))));
    let mut map = CodeMap::new();
    map.insert_macho(0x1_0000, &image).unwrap();
    assert!(map.regions().next().unwrap().compact().is_some());
}

#[test]
fn damaged_object_files_end_in_an_answer() {
    for at in 0..OBJECT.len() {
        for byte in [0, 0x7F, 0xFF] {
            let mut bytes = OBJECT.to_vec();
            bytes[at] = byte;
            if let Ok(image) = MachoImage::parse(&bytes) {
                let _ = image.compact_unwind().entries().count();
            }
        }
    }
}

/// RVAs of start and end, and encoding.
const EXPECTED: [(u32, u32, u32); 2] = [(0, 0x2E, 0x0204_0C0B), (0x30, 0x59, 0x020A_0400)];
