//! `clr-sampler`, as the author of a profiler uses it.

#[cfg(target_os = "linux")]
mod example;
#[cfg(target_os = "linux")]
mod late;
#[cfg(target_os = "linux")]
mod linux;
mod names;
mod profile;
#[cfg(windows)]
mod windows;
