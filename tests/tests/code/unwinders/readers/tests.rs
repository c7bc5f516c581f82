use super::compare;

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(name).unwrap()
}

#[test]
fn images_of_compilers_are_read_alike() {
    for name in ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"] {
        let comparison = compare(fixture(&format!("win64/img/{name}.dll"))).unwrap();
        assert_eq!(comparison.differences.len(), 0, "{name}: {comparison:?}");
        assert!(comparison.entries > 20 && comparison.parts > 20, "{name}: {comparison:?}");
    }
    let comparison = compare(fixture("macho/sample.dylib")).unwrap();
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
