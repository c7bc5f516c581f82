//! The simulated runtime of a version.

use clr_dump::{Module, StoppedProcess};
use clr_runtime::generation::Generation;

/// Returns the simulated runtime on Unix of a version as `10.0.15`, or `None` if none is simulated.
pub fn generation_of(version: &str) -> Option<Generation> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    if !minor.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let name = match major {
        "3" => format!("coreclr-{major}.{minor}-unix"),
        _ => format!("net{major}-unix"),
    };
    Generation::from_name(&name)
}

/// Returns the simulated runtime of a module by its path, one part of which is the version in an installed runtime.
pub(crate) fn generation_of_path(path: &str) -> Option<Generation> {
    path.split(['/', '\\']).rev().find_map(generation_of)
}

/// Returns the simulated runtime of a module: on Windows by the version in its resources, elsewhere by its path.
pub(crate) fn generation_of_module(module: &Module<'_>) -> Option<Generation> {
    match module.version {
        Some([major, ..]) => Generation::from_name(&format!("net{major}-windows")),
        None => generation_of_path(&module.path),
    }
}

/// Returns the simulated runtime of a process by its runtime's version, or `None` if neither its path nor its resources say which it is.
pub fn generation_of_process<P: StoppedProcess + ?Sized>(process: &P) -> Option<Generation> {
    let is_runtime = |module: &&Module<'_>| clr_inspect::is_runtime(module);
    process.modules().iter().filter(is_runtime).find_map(generation_of_module)
}
