//! The layout of a signal handler's context, held against this system's own headers.

use std::process::Command;

/// Each register that the walker reads, with its offset in a `ucontext_t`.
const HEADER: &str = r"
#define _GNU_SOURCE
#include <stddef.h>
#include <ucontext.h>
#define AT(reg, offset) \
    _Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[reg]) == (offset), #reg)
AT(REG_R8, 40); AT(REG_R9, 48); AT(REG_R10, 56); AT(REG_R11, 64);
AT(REG_R12, 72); AT(REG_R13, 80); AT(REG_R14, 88); AT(REG_R15, 96);
AT(REG_RDI, 104); AT(REG_RSI, 112); AT(REG_RBP, 120); AT(REG_RBX, 128);
AT(REG_RDX, 136); AT(REG_RAX, 144); AT(REG_RCX, 152); AT(REG_RSP, 160); AT(REG_RIP, 168);
";

/// The unit test of the walker has the same offsets.
#[test]
#[ignore = "external: needs a C compiler"]
fn the_system_agrees_on_the_layout_of_a_ucontext() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    std::fs::write(&source, HEADER).unwrap();
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler).arg("-fsyntax-only").arg(&source).status();
    assert!(status.expect("a C compiler").success(), "the offsets differ");
}
