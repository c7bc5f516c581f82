//! Tests of dumps of real processes, compared with what other programs say of them.
//!
//! The collection has them: `dumps` in the folder `CLR_ORACLES`, and packs of runtimes in the folder `CLR_RUNTIMES`. Minidumps are made
//! here.

mod collection;
mod cut;
mod hangs;
mod imports;
mod kinds;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod live;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod made;
mod minidumps;
mod pages;
mod runtime;
mod stacks;
mod threads;
mod waits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod windows;
