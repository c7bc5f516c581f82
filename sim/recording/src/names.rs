//! Names for addresses of a recorded process.

use super::{CallbackLine, Recording};
use clr_runtime::explain::{NamedAddress, Names};
use clr_walker::profiling::FunctionId;
use std::collections::BTreeMap;

/// The native modules of a recording, by which its markers are named.
#[derive(Clone, Debug)]
pub(super) struct NativeModules<'r> {
    modules: Vec<Module<'r>>,
}

#[derive(Clone, Copy, Debug)]
struct Module<'r> {
    name: &'r str,
    /// Address (VA).
    base: u64,
    /// Size in bytes, if it is known.
    size: Option<u64>,
}

impl<'r> NativeModules<'r> {
    /// Collects the modules. A module without a line of its own has the base that its first marker
    /// implies.
    pub(super) fn new(recording: &'r Recording) -> Self {
        let images = recording.images.iter();
        let mut modules: Vec<_> = images
            .map(|image| Module { name: &image.name, base: image.base.0, size: image.size })
            .collect();
        for callback in recording.walks.iter().flat_map(|walk| &walk.result.callbacks) {
            let Some((name, offset)) = callback.native_place() else { continue };
            if !modules.iter().any(|module| module.name == name) {
                let base = callback.ip.0.wrapping_sub(offset);
                modules.push(Module { name, base, size: None });
            }
        }
        Self { modules }
    }

    /// Returns true if the marker at `ip` (VA) is in the module and at the offset that were
    /// recorded, or in no module of known size if none was.
    pub(super) fn is_named(&self, ip: u64, recorded: &CallbackLine) -> bool {
        let mut modules = self.modules.iter();
        match recorded.native_place() {
            Some((name, offset)) => {
                modules.any(|module| module.name == name && module.base.wrapping_add(offset) == ip)
            }
            None if recorded.native.is_some() => false,
            None => !modules.any(|module| {
                let offset = ip.checked_sub(module.base);
                offset.zip(module.size).is_some_and(|(offset, size)| offset < size)
            }),
        }
    }
}

impl CallbackLine {
    /// Returns the module and the offset in bytes of a marker's ip, if they were recorded.
    fn native_place(&self) -> Option<(&str, u64)> {
        let (name, offset) = self.native.as_deref()?.rsplit_once("+0x")?;
        Some((name, u64::from_str_radix(offset, 16).ok()?))
    }
}

/// The names of a recording's functions and native code. The names of its managed code come from
/// the runtime in which it is replayed.
#[derive(Clone, Debug)]
pub struct RecordedNames<'r, N> {
    recording: &'r Recording,
    runtime: &'r N,
    /// Names of native addresses from callbacks, for modules of unknown size.
    native: BTreeMap<u64, &'r str>,
}

impl<'r, N: Names> RecordedNames<'r, N> {
    /// Creates the names of a recording that is replayed in `runtime`.
    pub fn new(recording: &'r Recording, runtime: &'r N) -> Self {
        let callbacks = recording.walks.iter().flat_map(|walk| &walk.result.callbacks);
        let native = callbacks
            .filter_map(|callback| Some((callback.ip.0, callback.native.as_deref()?)))
            .collect();
        Self { recording, runtime, native }
    }
}

impl<N: Names> Names for RecordedNames<'_, N> {
    fn function(&self, id: FunctionId) -> Option<String> {
        self.runtime.function(id)
    }

    fn place(&self, address: u64) -> NamedAddress {
        let NamedAddress::Unknown { .. } = self.runtime.place(address) else {
            return self.runtime.place(address);
        };
        if let Some(name) = self.native.get(&address) {
            return NamedAddress::Native((*name).to_owned());
        }
        let image = self.recording.images.iter().find_map(|image| {
            let offset = address.checked_sub(image.base.0)?;
            (offset < image.size?).then(|| format!("{}+{offset:#x}", image.name))
        });
        image.map_or(NamedAddress::Unknown { address }, NamedAddress::Native)
    }
}
