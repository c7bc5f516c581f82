//! What a runtime's descriptor lacks, of builds whose layout is known.
//!
//! .NET 8 has no descriptor, and that of .NET 9 says nothing of code and of kinds of Frames. For one build of each, found by its
//! build id, the offsets and addresses are written down here; each has its witness beside it. Another build has others, so there is
//! no layout for it.
//!
//! Witnesses: *table* is `g_dacTable`, which libcoreclr.so exports, as dumps of that build have it: the addresses of variables in
//! the order of dacvars.h, then those of vtables in the order of vptr_list.h (both in src/coreclr/inc of dotnet/runtime; the packs'
//! libcoreclr.so has no other symbols of these). *ClrMD*: the objects of a dump have there what ClrMD says of them. *10*: .NET
//! 10.0.15 has the same offset in its descriptor, and what the dump has there fits to ClrMD.

mod net8;
mod net9;

use clr_unwind::BuildId;
use clr_walker::jitted::contracts::ContractDescriptor;

/// The layout of one build.
#[derive(Debug)]
pub(crate) struct Layout {
    build_id: &'static str,
    /// Offsets of fields in bytes; `!` is a size.
    fields: &'static [(&'static str, &'static str, u32)],
    /// Numbers.
    values: &'static [(&'static str, u64)],
    /// RVAs of variables.
    variables: &'static [(&'static str, u32)],
    /// RVAs of the vtables of Frames, with the names of the globals that .NET 10 has instead.
    frames: &'static [(&'static str, u32)],
    /// Contracts whose algorithm is that of the runtime, with their versions.
    contracts: &'static [(&'static str, u64)],
    /// True if the runtime has no descriptor.
    is_whole: bool,
}

const LAYOUTS: [&Layout; 2] = [&net8::LAYOUT, &net9::LAYOUT];

impl Layout {
    /// Returns the layout of a build.
    pub(crate) fn of(id: &BuildId) -> Option<&'static Self> {
        let id = id.to_string();
        LAYOUTS.into_iter().find(|layout| layout.build_id == id)
    }

    #[cfg(test)]
    pub(crate) const fn all() -> [&'static Self; 2] {
        LAYOUTS
    }

    #[cfg(test)]
    pub(crate) const fn frames(&self) -> &'static [(&'static str, u32)] {
        self.frames
    }

    /// Returns true if no descriptor is needed.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Adds to a descriptor what it does not state. `base`: where the runtime is loaded (VA).
    pub(crate) fn complete(&self, descriptor: &mut ContractDescriptor, base: u64) {
        for (type_name, field, offset) in self.fields {
            descriptor.add_field(type_name, field, *offset);
        }
        for (name, value) in self.values {
            descriptor.add_global(name, *value);
        }
        for (name, rva) in self.variables.iter().chain(self.frames) {
            descriptor.add_global(name, base.wrapping_add((*rva).into()));
        }
        for (name, version) in self.contracts {
            descriptor.add_contract(name, *version);
        }
    }
}
