//! The simulated runtime of a version.

use clr_dump::StoppedProcess;
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

/// Returns the simulated runtime of a process by the path of its runtime, or `None` if the path does not say which it is.
pub fn generation_of_process<P: StoppedProcess + ?Sized>(process: &P) -> Option<Generation> {
    let runtimes = process.modules().iter().filter(|module| module.name() == "libcoreclr.so");
    runtimes.into_iter().find_map(|module| generation_of_path(&module.path))
}
