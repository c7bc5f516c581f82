//! Tests of the simulated runtime behind the profiling interfaces.
#![cfg(target_pointer_width = "64")]

mod answers;
mod callbacks;
mod callers;
mod clr_suite;
mod com;
mod events;
mod external;
mod fields;
mod forward;
mod header;

mod lists;
mod loading;
mod metadata;
mod not_simulated;
mod providers;
mod readers;
mod rejit;
#[cfg(all(any(target_os = "linux", windows), target_arch = "x86_64"))]
mod sampler;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod undefined;
