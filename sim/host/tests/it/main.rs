//! Tests of the simulated runtime behind the profiling interfaces.
#![cfg(target_pointer_width = "64")]

mod callbacks;
mod com;
mod events;
mod external;
mod header;
