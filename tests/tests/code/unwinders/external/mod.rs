//! Other programs that read the same data: `readelf`, `llvm-readobj`, and a C compiler with the system's headers.

mod readelf;
mod readobj;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ucontext;
