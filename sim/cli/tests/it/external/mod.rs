//! The tool with libraries that other programs make: a C++ compiler, and cargo.

mod annotate;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod clr_suite;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod doors;
#[path = "../../../src/tests/fields.rs"]
mod fields;
mod host;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod host_histories;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod host_limits;
mod host_trace;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod live;
mod recorder;
mod tool;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
