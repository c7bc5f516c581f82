//! The system: Linux.

use clr_sampler::os::vdso;
use clr_unwind::{CodeMap, ElfImage};

#[test]
fn the_kernels_image_is_whole() {
    let Some((base, bytes)) = vdso() else {
        eprintln!("not run: this kernel has no image in processes");
        return;
    };
    let image = ElfImage::parse(bytes).unwrap();
    let mut map = CodeMap::new();
    map.insert_elf(base, &image).unwrap();
    // The loader knows the kernel's functions by this image; each has call frame information.
    let symbols = image.symbols();
    assert!(!symbols.as_slice().is_empty());
    for (rva, name) in symbols.as_slice() {
        let (region, rva) = map.find(base + u64::from(*rva)).unwrap();
        assert!(region.cfi().unwrap().function(rva).is_some(), "{name}");
    }
}
