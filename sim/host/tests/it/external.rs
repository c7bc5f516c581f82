//! Guests in C++, compiled and run.

#[cfg(all(target_arch = "x86_64", not(windows)))]
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the library that this test was built with.
pub(super) fn library_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Compiles a guest.
pub(super) fn compile(guest: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let library = library_folder();
    let program = folder.join(guest).with_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(&compiler);
    command
        .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/guests").join(guest).with_extension("cpp"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .args(["-lclrsim", "-pthread"]);
    if cfg!(unix) {
        command.arg(format!("-Wl,-rpath,{}", library.display()));
    }
    let output = command.output().expect("a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a guest with a runtime, and returns what it printed.
pub(super) fn run(program: &Path, runtime: &str) -> String {
    let mut command = Command::new(program);
    // cargo's own search path has other builds of the library.
    let variable = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    let rest = std::env::var_os("PATH").filter(|_| cfg!(windows)).unwrap_or_default();
    let folders = std::iter::once(library_folder()).chain(std::env::split_paths(&rest));
    command.env(variable, std::env::join_paths(folders).unwrap());
    let output = command.arg(runtime).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{runtime}: {text}{errors}");
    text.replace("\r\n", "\n")
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn three_products_calls_are_answered_on_every_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("clients", folder.path(), &[]);
    for generation in clr_runtime::generation::Generation::ALL {
        run(&program, generation.name());
    }
}

/// COM objects have no RTTI, which `vptr` needs.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn sanitizers_find_nothing_in_calls_and_misuse() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"];
    let folder = tempfile::tempdir().unwrap();
    let program = compile("clients", folder.path(), &flags);
    for runtime in ["net8-unix", "net10-windows", "framework-2"] {
        run(&program, runtime);
    }
}

/// Sources: `tests/guests/edges`, recorded by `edges_profiler.cpp` in CoreCLR 3.1.23, .NET 8.0.4 and
/// .NET 9.0.7 on Linux.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn calls_with_edge_arguments_are_answered_as_recorded_in_real_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("edges", folder.path(), &[]);
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/edges");
    let mut count = 0;
    for file in std::fs::read_dir(recorded).unwrap() {
        let file = file.unwrap().path();
        let runtime = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let expected = std::fs::read_to_string(&file).unwrap();
        let found = run(&program, &runtime);
        assert!(expected.lines().count() > 200, "{runtime}");
        for (number, (expected, found)) in (1..).zip(expected.lines().zip(found.lines())) {
            assert_eq!(found, expected, "{runtime}, line {number}");
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{runtime}");
        count += 1;
    }
    assert_eq!(count, 3);
}

/// The project of the chapter, as CTest runs it.
#[test]
#[ignore = "external: needs cmake"]
fn the_example_is_built_by_cmake() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let library = format!("-DCLRSIM_LIBRARY_DIR={}", library_folder().display());
    let package = format!("-Dclrsim_DIR={}", here.join("cmake").display());
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(here.join("example")).arg("-B").arg(folder.path());
    let configured = configure.args([package, library]).output().expect("cmake");
    let report = |output: &std::process::Output| {
        [&output.stdout, &output.stderr]
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .concat()
    };
    assert!(configured.status.success(), "{}", report(&configured));
    let built = Command::new("cmake").arg("--build").arg(folder.path()).output().unwrap();
    assert!(built.status.success(), "{}", report(&built));
    let mut test = Command::new("ctest");
    let tested =
        test.arg("--output-on-failure").arg("--test-dir").arg(folder.path()).output().unwrap();
    assert!(tested.status.success(), "{}", report(&tested));
    assert!(
        report(&tested).contains("100% tests passed, 0 tests failed out of 1"),
        "{}",
        report(&tested)
    );
}

#[test]
#[ignore = "external: needs pkg-config"]
fn the_example_is_built_with_the_flags_of_pkg_config() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", here.join("pkgconfig"));
    pkg_config.arg(format!("--define-variable=libdir={}", library_folder().display()));
    let flags = pkg_config.args(["--cflags", "--libs", "clrsim"]).output().expect("pkg-config");
    assert!(flags.status.success(), "{}", String::from_utf8_lossy(&flags.stderr));
    let flags = String::from_utf8(flags.stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sampler_test");
    let mut compile = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compile.arg("-std=c++17").arg(here.join("example/sampler_test.cpp")).arg("-o").arg(&program);
    let output = compile.args(flags.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let texts = here.join("example/texts");
    assert_eq!(run(&program, texts.to_str().unwrap()), "all checks hold\n");
}

#[test]
fn the_chapter_shows_the_text_of_the_example() {
    let chapter = include_str!("../../../src/book/cpp_profiler.md");
    let text = include_str!("../../example/texts/allocates.kdl");
    assert!(chapter.contains(&format!("```kdl\n{text}```")), "{text}");
}

/// In the ABI of Linux and macOS, a pointer to a virtual method is the method's offset in the table,
/// plus 1.
#[cfg(all(target_arch = "x86_64", not(windows)))]
const SLOT_OF: &str = "\
#include \"clrsim_interfaces.hpp\"
#include <cstdio>
template <typename Method> static int check(Method method, unsigned slot, const char *name) {
    std::size_t words[2];
    static_assert(sizeof method == sizeof words, \"another ABI\");
    std::memcpy(words, &method, sizeof words);
    if (words[0] == slot * sizeof(void *) + 1) return 0;
    std::printf(\"%s: slot %zu, not %u\\n\", name, (words[0] - 1) / sizeof(void *), slot);
    return 1;
}
int main() {
    int wrong = 0;
";

#[cfg(all(target_arch = "x86_64", not(windows)))]
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_compiler_puts_the_methods_into_their_slots() {
    let mut program = SLOT_OF.to_owned();
    let (mut interface, mut count) = (String::new(), 0);
    for line in crate::header::header().lines() {
        if let Some(name) = line.strip_prefix("struct ") {
            interface = name.split([' ', ':']).next().unwrap().to_owned();
        }
        let method =
            line.trim().strip_prefix("virtual ").and_then(|line| line.split_once(" = 0; // "));
        if let Some((method, slot)) = method {
            let name = method.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap();
            let name = format!("{interface}::{name}");
            writeln!(program, "    wrong += check(&clrsim::{name}, {slot}, \"{name}\");").unwrap();
            count += 1;
        }
    }
    assert!(count > 250, "{count}");
    program.push_str("    return wrong;\n}\n");
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("slots.cpp"), folder.path().join("slots"));
    std::fs::write(&source, program).unwrap();
    let mut compile = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compile.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I"]);
    compile
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(&source)
        .arg("-o")
        .arg(&binary);
    let output = compile.output().expect("a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Command::new(&binary).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
