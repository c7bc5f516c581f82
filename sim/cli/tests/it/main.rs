//! Tests of the tool as a process, and with programs that are compiled here.

#[cfg(target_pointer_width = "64")]
mod external;
#[cfg(unix)]
mod terminal;
