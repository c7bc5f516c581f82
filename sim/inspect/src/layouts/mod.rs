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
    /// Offsets of fields in bytes, apart from the [common](COMMON_FIELDS) ones; `!` is a size.
    fields: &'static [(&'static str, &'static str, u32)],
    /// Numbers, apart from the [common](COMMON_VALUES) ones.
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

/// Offsets that all builds here have, each seen in each of them.
const COMMON_FIELDS: &[(&str, &str, u32)] = &[
    // ClrMD: the Frames of all threads.
    ("Frame", "Next", 8),
    // ClrMD: of each HijackFrame, the address of the frame below it.
    ("HijackFrame", "ReturnAddress", 16),
    // 10: the map leads from each managed frame to its method.
    ("RangeSectionMap", "TopLevelData", 0),
    ("RangeSectionFragment", "Next", 0),
    ("RangeSectionFragment", "RangeBegin", 8),
    ("RangeSectionFragment", "RangeEndOpen", 16),
    ("RangeSectionFragment", "RangeSection", 24),
    ("RangeSection", "RangeBegin", 0),
    ("RangeSection", "RangeEndOpen", 8),
    ("RangeSection", "Flags", 16),
    ("RangeSection", "JitManager", 24),
    ("RangeSection", "R2RModule", 32),
    ("RangeSection", "HeapList", 40),
    // 10; no section was about to be deleted in the dumps that were looked at.
    ("RangeSection", "NextForDelete", 64),
    ("CodeHeapListNode", "StartAddress", 16),
    ("CodeHeapListNode", "EndAddress", 24),
    ("CodeHeapListNode", "MapBase", 32),
    ("CodeHeapListNode", "HeaderMap", 40),
    ("RealCodeHeader", "MethodDesc", 24),
    ("RealCodeHeader", "NumUnwindInfos", 32),
    ("RealCodeHeader", "UnwindInfos", 36),
    ("RuntimeFunction", "!", 12),
    ("RuntimeFunction", "BeginAddress", 0),
    ("RuntimeFunction", "EndAddress", 4),
    ("RuntimeFunction", "UnwindData", 8),
    // ClrMD: the entries of methods are found in the map, with the methods' MethodDescs.
    ("ReadyToRunInfo", "EntryPointToMethodDescMap", 432),
    // 10: a pointer to itself, a table of functions in the image, and its count.
    ("ReadyToRunInfo", "CompositeInfo", 40),
    ("ReadyToRunInfo", "RuntimeFunctions", 80),
    ("ReadyToRunInfo", "NumRuntimeFunctions", 88),
    ("ReadyToRunInfo", "NumHotColdMap", 104),
    ("ReadyToRunInfo", "DelayLoadMethodCallThunks", 112),
    ("HashMap", "Buckets", 16),
    ("Bucket", "!", 64),
    ("Bucket", "Keys", 0),
    ("Bucket", "Values", 32),
    // ClrMD: the images of methods.
    ("PEAssembly", "PEImage", 8),
    ("PEImage", "LoadedImageLayout", 120),
    ("PEImageLayout", "Base", 8),
    ("PEImageLayout", "Flags", 20),
];

/// Numbers that all builds here have. 10.
const COMMON_VALUES: &[(&str, u64)] = &[
    ("HashMapSlotsPerBucket", 4),
    ("HashMapValueMask", 0x7FFF_FFFF_FFFF_FFFF),
    ("StubCodeBlockLast", 15),
];

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
        for (type_name, field, offset) in self.fields.iter().chain(COMMON_FIELDS) {
            descriptor.add_field(type_name, field, *offset);
        }
        for (name, value) in self.values.iter().chain(COMMON_VALUES) {
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
