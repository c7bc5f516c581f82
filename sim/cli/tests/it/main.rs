//! Tests of the tool as a process, and with programs that are compiled here.

mod determinism;
#[cfg(target_pointer_width = "64")]
mod external;
#[cfg(target_os = "linux")]
mod faults;
mod shards;
#[cfg(unix)]
mod terminal;
