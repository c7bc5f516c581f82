use super::{Comparison, compare};

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap()
}

const MACHO: &[u8] = include_bytes!("../compact/sample.dylib");

/// Returns the comparison of an image after a change of the bytes that follow each place where `found`
/// is; other readers, and clr-walker, have to see it alike.
fn damaged(image: &[u8], seed: usize) -> Comparison {
    let mut bytes = image.to_vec();
    let step = 97 + seed;
    for at in (image.len() / 2..image.len()).step_by(step) {
        bytes[at] ^= 1 << (at % 8);
    }
    compare(&bytes).unwrap_or_default()
}

#[test]
fn images_of_compilers_are_read_alike() {
    for name in ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"] {
        let comparison = compare(fixture(name)).unwrap();
        assert_eq!(comparison.differences.len(), 0, "{name}: {comparison:?}");
        assert!(comparison.entries > 20 && comparison.parts > 20, "{name}: {comparison:?}");
    }
    let comparison = compare(MACHO).unwrap();
    assert_eq!(comparison.differences.len(), 0, "{comparison:?}");
    assert!(comparison.entries > 20 && comparison.parts > 20, "{comparison:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_test_itself_is_read_alike() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let comparison = compare(&own).unwrap();
    assert_eq!(comparison.differences.len(), 0, "{comparison:?}");
    assert!(comparison.entries > 1000 && comparison.parts > 10_000, "{comparison:?}");
}
