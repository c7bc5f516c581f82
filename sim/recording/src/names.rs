//! Names for addresses of a recorded process.

use super::Recording;
use clr_runtime::explain::{NamedAddress, Names};
use clr_walker::profiling::FunctionId;
use std::collections::BTreeMap;

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
