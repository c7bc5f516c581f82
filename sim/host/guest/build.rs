//! Says whether threads of profilers are scheduled on the target: `cfg(scheduled)`.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(scheduled)");
    let target = |part: &str| var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_known = match target("OS").as_str() {
        "linux" => target("ENV") == "gnu",
        system => system == "windows",
    };
    if is_known && target("ARCH") == "x86_64" {
        println!("cargo::rustc-cfg=scheduled");
    }
}
