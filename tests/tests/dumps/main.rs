//! Tests of dumps of real processes, compared with what other programs say of them.
//!
//! The collection has them: `dumps` in the folder `CLR_ORACLES`, and packs of runtimes in the folder `CLR_RUNTIMES`.

#[cfg(target_pointer_width = "64")]
mod collection;
#[cfg(target_pointer_width = "64")]
mod pages;
#[cfg(target_pointer_width = "64")]
mod threads;
