//! Files that are written whole or not at all: what stays of the old one. What the system refuses is in `tests/it/faults`.

use super::*;

/// A text that `fmt` changes.
const UGLY: &str = "function   \"main\"\nstop at=\"main+0x1\"\n";

/// Returns the names in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.0.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn a_file_keeps_its_mode_and_the_links_to_it() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = Folder::new();
    let path = folder.write("texts/a.kdl", UGLY.as_bytes());
    let link = folder.path("link.kdl");
    symlink("texts/a.kdl", &link).unwrap();
    let mode = |path: &str| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for wanted in [0o600, 0o640, 0o755] {
        fs::write(&path, UGLY).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        assert_eq!(clrsim(&["fmt", &link]).code, 0);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("texts/a.kdl"));
        assert_ne!(fs::read_to_string(&path).unwrap(), UGLY);
        assert_eq!(mode(&path), wanted);
    }
    // A new file has the mode that others get.
    let new = folder.path("new.kdl");
    assert_eq!(clrsim(&["new", &new]).code, 0);
    fs::write(folder.path("usual"), "").unwrap();
    assert_eq!(mode(&new), mode(&folder.path("usual")));
    assert_eq!(names(&folder), ["link.kdl", "new.kdl", "texts", "usual"]);
}

#[test]
fn a_device_stays_one() {
    use std::os::unix::fs::FileTypeExt as _;
    let args = ["replay", "gallery/hazards/h-08-callback-takes-a-lock.kdl@net10-windows:clr1:"];
    let answer = clrsim(&[&args[..], &["--html", "/dev/null", "--force"]].concat());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}
