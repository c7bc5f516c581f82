//! The system: Linux.

use super::names::process;
use clr_sampler::os::{self, OwnProcess, vdso};
use clr_unwind::{CodeMap, ElfImage, ImageIdentity, ImageLayout};
use std::ffi::CString;
use std::path::Path;

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

/// The library of this process whose file has this name.
fn library(name: &str) -> os::Image {
    let images = os::images().into_iter();
    let mut named = images.filter(|image| image.path.rsplit('/').next().unwrap().starts_with(name));
    named.next().unwrap()
}

/// Replaces a file as an update does: those who have it open keep the old one. Each build id becomes another one.
fn update(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let id = bytes.windows(16).position(|note| note == b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0");
    bytes[id.unwrap() + 20] ^= 1;
    let new = path.with_extension("new");
    std::fs::write(&new, bytes).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn an_image_has_the_build_of_its_file() {
    let loaded = |base| ImageIdentity::of(&OwnProcess, base, ImageLayout::Loaded);
    for image in &os::images() {
        let file = std::fs::read(&image.path).unwrap_or_default();
        let (loaded, build) = (loaded(image.base), ImageIdentity::of_file(&file));
        assert!(file.is_empty() || loaded.is_some() && loaded == build, "{}", image.path);
    }
    let [c, gcc] = ["libc.so", "libgcc_s"].map(|name| loaded(library(name).base));
    assert_ne!(c, gcc);
    for text in [
        "",
        "\x7FELF",
        "MZ",
        "no image, but a text that is longer than any header: 64 bytes at least",
    ] {
        assert_eq!(ImageIdentity::of_file(text.as_bytes()), None);
    }
}

#[test]
fn a_file_that_was_replaced_since_it_was_loaded_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    // The loader would find a library of this process by its name.
    let open = |name: &str| {
        let path = folder.path().join(name);
        std::fs::copy(library("libgcc_s").path, &path).unwrap();
        let text = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the library is a copy of one of this process.
        assert!(!unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW) }.is_null());
        path
    };
    let (kept, updated) = (open("kept.so"), open("updated.so"));
    update(&updated);
    let process = process();
    let is_known = |path: &Path| {
        let image = library(path.file_name().unwrap().to_str().unwrap());
        image.code.step_by(0x100).any(|address| process.code.knows(address))
    };
    assert!(is_known(&kept) && !is_known(&updated));
}
