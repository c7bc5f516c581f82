//! `include/clr_profiling.h`: the interfaces for C++, generated from the declarations in Rust.
//!
//! `CLR_BLESS=1 cargo test -p clr-com --test header` writes the file anew.

mod declarations;
mod write;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn header_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("include/clr_profiling.h")
}

#[test]
fn the_header_has_the_interfaces_as_they_are_declared() {
    let text = write::header(&declarations::read());
    let path = header_path();
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{} is stale: CLR_BLESS=1 writes it anew", path.display());
}

/// The position of the method in the table that a C++ compiler makes, for each interface's last method.
#[test]
fn a_compiler_puts_the_methods_into_their_slots() {
    let Some(compiler) = ["c++", "clang++", "g++"].into_iter().find(|name| is_there(name)) else {
        assert!(std::env::var_os("CLR_TESTS_COMPLETE").is_none(), "there is no C++ compiler");
        println!("skipped: there is no C++ compiler");
        return;
    };
    let mut program =
        String::from("#include \"clr_profiling.h\"\n#include <cstdio>\n#include <cstring>\n");
    program.push_str(SLOT_OF);
    program.push_str("int main() {\n  int wrong = 0;\n");
    let all = declarations::read();
    for interface in &all.interfaces {
        for method in &interface.methods {
            let (interface, method, slot) = (&interface.name, &method.name, method.slot);
            let name = format!("{interface}::{method}");
            writeln!(program, "  wrong += check(&{name}, {slot}, \"{name}\");").unwrap();
        }
    }
    program.push_str("  return wrong;\n}\n");
    let folder = std::env::temp_dir().join(format!("clr-com-header-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, binary) = (folder.join("slots.cpp"), folder.join("slots"));
    std::fs::write(&source, program).unwrap();
    let include = header_path();
    let include = include.parent().unwrap();
    let mut compile = Command::new(compiler);
    compile.args(["-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(include);
    let output = compile.arg(&source).arg("-o").arg(&binary).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

fn is_there(compiler: &str) -> bool {
    let mut version = Command::new(compiler);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    // A pointer to a method is its place in the table only in the ABI of Itanium, not in Microsoft's.
    cfg!(all(target_arch = "x86_64", not(windows)))
        && version.status().is_ok_and(|status| status.success())
}

/// In the ABI that Linux and macOS use, a pointer to a virtual method is the method's offset in the
/// table, plus 1.
const SLOT_OF: &str = r#"
template <typename Method> static int check(Method method, unsigned slot, const char *name) {
  std::size_t words[2];
  static_assert(sizeof method == sizeof words, "another ABI");
  std::memcpy(words, &method, sizeof words);
  if (words[0] == slot * sizeof(void *) + 1) return 0;
  std::printf("%s: slot %zu, not %u\n", name, (words[0] - 1) / sizeof(void *), slot);
  return 1;
}
"#;
