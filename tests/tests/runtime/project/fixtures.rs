//! The fixtures are found by name, and their folders are complete.

use super::*;
use clr_fixtures::{Fixture, all, gallery, get};

#[test]
fn names_ascend_and_are_found() {
    assert!(all().iter().any(|fixture| fixture.text().is_none()));
    assert!(all().is_sorted_by(|a, b| a.name < b.name));
    for fixture in all() {
        assert_eq!(get(fixture.name), Some(fixture.bytes), "{}", fixture.name);
        let is_text = fixture.name.starts_with("gallery/");
        assert!(fixture.text().is_some() || !is_text, "{}", fixture.name);
        assert!(!fixture.bytes.is_empty(), "{}", fixture.name);
    }
    for name in ["", "win64", "win64/vec/gcc_O2.vec", "win64\\vec\\gcc_O2.vec.gz", "~"] {
        assert_eq!(get(name), None, "{name}");
    }
}

#[test]
fn the_gallery_is_a_part_of_all() {
    let names = all().iter().filter_map(|fixture| fixture.name.strip_prefix("gallery/"));
    assert_eq!(gallery().iter().map(|fixture| fixture.name).collect::<Vec<_>>(), {
        names.collect::<Vec<_>>()
    });
    for Fixture { name, bytes } in gallery() {
        assert_eq!(get(&format!("gallery/{name}")), Some(*bytes), "{name}");
    }
}

/// The build script and the manifest name the folders; only this test notices a new one.
#[test]
fn every_folder_is_listed_and_packaged() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures"));
    // There is no such directory if the test runs on another machine than the one that built
    // it.
    if !directory.is_dir() {
        return;
    }
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = folders.map(|folder| folder.file_name().into_string().unwrap());
    let on_disk: BTreeSet<_> = names.filter(|name| name != "src").collect();
    let listed = all().iter().filter_map(|fixture| fixture.name.split('/').next());
    assert_eq!(on_disk, listed.map(str::to_owned).collect());
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    for folder in on_disk {
        assert!(manifest.contains(&format!("\"/{folder}/**\"")), "{folder}");
    }
}
