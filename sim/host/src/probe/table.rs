//! The tables of methods behind the pointers that a runtime gives away.

use clr_com::{
    Callable, Guid, ICorProfilerFunctionEnum, ICorProfilerInfo15, ICorProfilerMethodEnum,
    ICorProfilerModuleEnum, ICorProfilerObjectEnum, ICorProfilerThreadEnum, IMetaDataAssemblyEmit,
    IMetaDataAssemblyImport, IMetaDataEmit, IMetaDataEmit2, IMetaDataImport, IMetaDataImport2,
    IUnknown, Interface, MethodSignature,
};
use std::mem::ManuallyDrop;

macro_rules! tables {
    ($($name:ident $interface:ident,)*) => {
        /// The tables of methods that pointers have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table {
            $(
                #[doc = concat!("`", stringify!($interface), "`.")]
                $name,
            )*
        }

        impl Table {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the method in a slot.
            pub fn method(self, slot: u32) -> Option<MethodSignature> {
                match self { $(Self::$name => $interface::method(slot),)* }
            }

            /// Calls the method in a slot of an object.
            ///
            /// # Safety
            /// The address is that of an object with this table, and the words keep a profiler's promises.
            pub(super) unsafe fn call(self, object: usize, slot: u32, words: &[u64]) -> Option<u64> {
                // SAFETY: the caller's promise.
                unsafe {
                    match self { $(Self::$name => through::<$interface>(object, slot, words),)* }
                }
            }
        }
    };
}

tables! {
    Info ICorProfilerInfo15,
    Threads ICorProfilerThreadEnum,
    Modules ICorProfilerModuleEnum,
    Import IMetaDataImport2,
    AssemblyImport IMetaDataAssemblyImport,
    Emit IMetaDataEmit2,
    AssemblyEmit IMetaDataAssemblyEmit,
    Functions ICorProfilerFunctionEnum,
    Objects ICorProfilerObjectEnum,
    Methods ICorProfilerMethodEnum,
}

/// Calls a method of an object with the interface `I`.
///
/// # Safety
/// As [`Table::call`].
unsafe fn through<I: Interface + Callable>(object: usize, slot: u32, words: &[u64]) -> Option<u64> {
    // SAFETY: the caller's promise. The reference is not this pointer's, so it is not released.
    let pointer = ManuallyDrop::new(unsafe { I::from_raw(object as *mut _) }?);
    // SAFETY: the caller's promise.
    unsafe { pointer.call(slot, words) }
}

impl Table {
    /// Returns the number of slots.
    pub fn slots(self) -> u32 {
        (0..u32::MAX).take_while(|slot| self.method(*slot).is_some()).count() as u32
    }

    /// Returns true for an interface of metadata.
    const fn is_metadata(self) -> bool {
        matches!(self, Self::Import | Self::AssemblyImport | Self::Emit | Self::AssemblyEmit)
    }

    /// Returns the table of the pointer for an interface that an object gives, if it gives one. `self` is a
    /// table of the object.
    pub(super) fn of(self, iid: &[u8; 16]) -> Self {
        let is = |wanted: Guid| bytes_of(wanted) == *iid;
        if !self.is_metadata() {
            self
        } else if is(IMetaDataAssemblyImport::IID) {
            Self::AssemblyImport
        } else if is(IMetaDataEmit::IID) || is(IMetaDataEmit2::IID) {
            Self::Emit
        } else if is(IMetaDataAssemblyEmit::IID) {
            Self::AssemblyEmit
        } else {
            Self::Import
        }
    }
}

fn bytes_of(iid: Guid) -> [u8; 16] {
    let mut bytes = [0; 16];
    let fields = [
        &iid.data1.to_ne_bytes()[..],
        &iid.data2.to_ne_bytes(),
        &iid.data3.to_ne_bytes(),
        &iid.data4,
    ];
    bytes.iter_mut().zip(fields.concat()).for_each(|(to, from)| *to = from);
    bytes
}

/// Number of ids of metadata in [`interface_ids`].
pub const METADATA_IDS: usize = 7;

/// Returns the ids of interfaces that a test may ask for, as they are in memory; those of metadata
/// come first.
pub fn interface_ids() -> Vec<[u8; 16]> {
    let others: [Guid; METADATA_IDS + 2] = [
        IMetaDataImport2::IID,
        IMetaDataImport::IID,
        IUnknown::IID,
        IMetaDataAssemblyImport::IID,
        IMetaDataEmit2::IID,
        IMetaDataAssemblyEmit::IID,
        IMetaDataEmit::IID,
        ICorProfilerThreadEnum::IID,
        ICorProfilerModuleEnum::IID,
    ];
    others.into_iter().chain(crate::object::INFO_IDS).map(bytes_of).collect()
}
