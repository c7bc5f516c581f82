//! Other programs that read the same data: `readelf`, and a C compiler with the system's headers.

mod readelf;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ucontext;
