use super::*;
use clr_unwind::ElfImage;

/// A function of each kind of code.
const KINDS: &str = "
function \"main\" { body { call \"managed\" } }
function \"managed\" kind=\"ready-to-run\" { push \"rbx\"; body { call \"jitted\" } }
function \"jitted\" kind=\"jit\" { push \"rsi\"; locals 0x20 }
";

#[test]
fn images_are_written_and_not_overwritten() {
    let folder = Folder::new();
    let path = folder.write("kinds.kdl", KINDS.as_bytes());
    let (out, args) = (folder.path("deep/out"), ["emit", &path, "-o", &folder.path("deep/out")]);
    insta::assert_snapshot!("emit", folder.clrsim(&args).text());
    for name in ["native.dll", "managed.dll"] {
        let bytes = fs::read(format!("{out}/{name}")).unwrap();
        let image = PeImage::parse(&bytes).unwrap();
        assert!(image.functions().iter().count() >= 1, "{name}");
        assert_eq!(clrsim(&["show", &format!("{out}/{name}")]).code, 0);
    }
    let text = |name: &str| fs::read_to_string(format!("{out}/{name}")).unwrap();
    insta::assert_snapshot!("jit_json", text("jit.json"));
    insta::assert_snapshot!("program_json", text("program.json"));
    let heap: Value = serde_json::from_str(&text("jit.json")).unwrap();
    let size = fs::metadata(format!("{out}/jit.bin")).unwrap().len();
    assert_eq!(heap["size"], format!("{size:#x}"));

    fs::write(format!("{out}/jit.json"), "mine").unwrap();
    let again = folder.clrsim(&args);
    assert_eq!(again.code, 2);
    insta::assert_snapshot!(again.err, @"error: DIR/deep/out/native.dll: is there already; --force replaces it");
    assert_eq!(text("jit.json"), "mine");
    fs::remove_file(format!("{out}/native.dll")).unwrap();
    assert_eq!(folder.clrsim(&args).code, 2);
    assert!(!fs::exists(format!("{out}/native.dll")).unwrap());
    let forced = [&args[..], &["--force"]].concat();
    assert_eq!(folder.clrsim(&forced).code, 0);
    assert_ne!(text("jit.json"), "mine");
}

#[test]
fn kinds_without_functions_have_no_files() {
    let folder = Folder::new();
    let out = folder.path("out");
    let answer = folder.clrsim(&["emit", "programs/tail_call.kdl", "-o", &out]);
    assert_eq!(answer.out.lines().count(), 2, "{}", answer.out);
}

#[test]
fn folders_that_cannot_be_made_are_named() {
    let folder = Folder::new();
    let file = folder.write("file", fixture("programs/alloca.kdl"));
    let answer = folder.clrsim(&["emit", "programs/alloca.kdl", "-o", &format!("{file}/out")]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.starts_with("error: DIR/file/out: no folder can be made there: "));
    // A folder stands where a file should be written.
    fs::create_dir_all(folder.path("taken/native.dll")).unwrap();
    let taken = folder.path("taken");
    let answer = folder.clrsim(&["emit", "programs/alloca.kdl", "-o", &taken, "--force"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.starts_with("error: DIR/taken/native.dll: cannot be written: "));
}

#[test]
fn native_code_of_unix_is_an_elf_file() {
    let folder = Folder::new();
    let path = folder.write("unix.kdl", format!("convention \"system-v\"\n{KINDS}").as_bytes());
    let out = folder.path("out");
    assert_eq!(folder.clrsim(&["emit", &path, "-o", &out]).code, 0);
    let bytes = fs::read(format!("{out}/libnative.so")).unwrap();
    let symbols = ElfImage::parse(&bytes).unwrap().symbols();
    let names: Vec<_> = symbols.as_slice().iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["main", "__gxx_personality_v0"]);
    PeImage::parse(&fs::read(format!("{out}/managed.dll")).unwrap()).unwrap();
    let map = fs::read_to_string(format!("{out}/program.json")).unwrap();
    assert!(map.contains("\"file\": \"libnative.so\""), "{map}");
}
