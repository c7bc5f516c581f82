//! The images that a process has mapped.

use super::*;
use crate::unwinders::stepping::external::tracee::Tracee;
use std::{fs, io};

/// An image: a file, or the vdso.
#[derive(Clone, Debug)]
pub(super) struct Module {
    /// The file's name without folders.
    pub name: String,
    /// Address of its first page (VA).
    pub base: u64,
    /// End address (VA).
    pub end: u64,
    /// Bytes of the file.
    pub bytes: Vec<u8>,
    /// Names of functions, by RVA.
    pub symbols: Vec<(u32, String)>,
}

/// Returns all images with code, ascending.
pub(super) fn modules(tracee: &Tracee) -> io::Result<Vec<Module>> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", tracee.id()))?;
    let mut modules: Vec<Module> = Vec::new();
    let mut path_before = "";
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[range, _, offset, _, _, path] = fields.as_slice() else { continue };
        let range = range.split_once('-').and_then(|(start, end)| {
            Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        });
        let Some((start, end)) = range else { continue };
        if path == path_before
            && let Some(module) = modules.last_mut()
        {
            module.end = end;
            continue;
        }
        let bytes = match path {
            "[vdso]" => tracee.memory.bytes(start, (end - start) as usize)?,
            _ if path.starts_with('/') && offset.bytes().all(|digit| digit == b'0') => {
                fs::read(path)?
            }
            _ => continue,
        };
        path_before = path;
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let symbols = ElfImage::parse(&bytes).map(|image| {
            let symbols = image.symbols();
            let owned = |(rva, name): &(u32, &str)| (*rva, (*name).to_owned());
            symbols.as_slice().iter().map(owned).collect()
        });
        if let Ok(symbols) = symbols {
            modules.push(Module { name, base: start, end, bytes, symbols });
        }
    }
    Ok(modules)
}
