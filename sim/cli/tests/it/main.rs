//! Tests of the tool as a process, and with programs that are compiled here.

#[cfg(target_pointer_width = "64")]
mod external;
#[cfg(any(target_arch = "x86_64", target_os = "macos"))]
mod minimize;
#[cfg(unix)]
mod terminal;
