#[cfg(target_os = "linux")]
mod faults;

use super::*;
use std::fs::{read_to_string, remove_file};

/// A path that no other test has.
fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("clr-recorder-{name}-{}", std::process::id()));
    let _ = remove_file(&path);
    path
}

#[test]
fn one_process_writes_a_file() {
    let path = path("one");
    std::fs::write(&path, "old").unwrap();
    let mut first = Output::create(&path, Duration::ZERO).unwrap();
    first.write(b"a\n").unwrap();
    let refused = Output::create(&path, Duration::ZERO).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    first.write(b"b\n").unwrap();
    assert_eq!(read_to_string(&path).unwrap(), "a\nb\n");
    drop(first);
    Output::create(&path, Duration::ZERO).unwrap().write(b"c\n").unwrap();
    assert_eq!(read_to_string(&path).unwrap(), "c\n");
    remove_file(path).unwrap();
}

#[test]
fn results_of_processes_that_end_together_do_not_mix() {
    let path = path("many");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let (path, line) = (&path, letter.repeat(50_000) + "\n");
            scope.spawn(move || (0..5).for_each(|_| append(Some(path), line.as_bytes())));
        }
    });
    let text = read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 20);
    for line in text.lines() {
        assert!(line.len() == 50_000 && line.bytes().all(|it| it == line.as_bytes()[0]));
    }
    remove_file(path).unwrap();
}

#[test]
fn a_result_begins_a_line() {
    let path = path("cut");
    std::fs::write(&path, "{\"of\":\"a process that was killed").unwrap();
    append(Some(&path), b"{}\n");
    assert!(read_to_string(&path).unwrap().ends_with("killed\n{}\n"));
    remove_file(path).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_said() {
    // The process goes on, and so does this test.
    replace(Some(Path::new("/dev/full")), b"stacks");
    append(Some(Path::new("/dev/full")), b"stacks\n");
    append(Some(Path::new("/nowhere/file")), b"stacks\n");
    // No file: nobody has it alone.
    let null = Path::new("/dev/null");
    let _first = Output::create(null, Duration::ZERO).unwrap();
    Output::create(null, Duration::ZERO).unwrap().write(b"a\n").unwrap();
}

/// A limit is a process's, so this is one of its own.
#[cfg(target_os = "linux")]
#[test]
fn lines_that_do_not_fit_leave_nothing() {
    const FILE: &str = "RECORDER_TEST_FILE";
    let test = "output::tests::lines_that_do_not_fit_leave_nothing";
    let Ok(path) = std::env::var(FILE) else {
        let path = path("full");
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        // The limit would be that of a file with this test's output, too.
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let status = command.args(["--exact", test]).env(FILE, &path).status().unwrap();
        assert!(status.success());
        assert_eq!(read_to_string(&path).unwrap(), "first\nc\n");
        remove_file(path).unwrap();
        return;
    };
    let mut output = Output::create(Path::new(&path), Duration::ZERO).unwrap();
    output.write(b"first\n").unwrap();
    // A profile takes a file's place, or leaves it.
    let beside = Path::new(&path).with_extension("profile");
    replace(Some(&beside), b"old");
    // SAFETY: the pointer is to a local; the signal would end the process.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let limit = libc::rlimit { rlim_cur: 10, rlim_max: 10 };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
    assert!(output.write(b"a line that is too long\n").is_err());
    output.write(b"c\n").unwrap();
    replace(Some(&beside), b"a profile that is too long");
    assert_eq!(read_to_string(&beside).unwrap(), "old");
    replace(Some(&beside), b"new");
    assert_eq!(read_to_string(&beside).unwrap(), "new");
    remove_file(&beside).unwrap();
    let own = format!(".clr-recorder-{}.new", std::process::id());
    assert!(!beside.with_file_name(own).exists());
}

/// A profile keeps the mode of the file whose place it takes, and a link stays one.
#[cfg(target_os = "linux")]
#[test]
fn a_profile_keeps_mode_and_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let (path, link) = (path("mode"), path("link"));
    replace(Some(&path), b"old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    replace(Some(&link), b"new");
    assert_eq!(read_to_string(&path).unwrap(), "new");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    remove_file(link).unwrap();
    remove_file(path).unwrap();
}
