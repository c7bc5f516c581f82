//! Async methods of .NET 11, as far as walks depend on them.
//!
//! A method that was compiled for runtime async has two MethodDescs: its own, and that of a thunk, through
//! which ordinary code calls it. Both have the method's name and token, and no walk reports the thunk. What
//! tells them apart are flags in data behind the MethodDesc's optional slots, whose sizes the runtime states.
//!
//! | fact | source |
//! |---|---|
//! | sizes and offsets | stated by the runtime: its data contracts |
//! | bits of MethodDesc's flags, and of the data's that hide a method: bit 4 without bit 0 | recorded walks of .NET 11.0.0 on Linux: methods without such data and with the flags 0x01, 0x02, 0x05 and 0x15 had callbacks, those with 0x12 had none |

use clr_unwind::Memory;
use clr_walker::jitted::contracts::ContractDescriptor;
use clr_walker::profiling::FunctionId;

/// The classes of MethodDescs, by the lowest three bits of the flags.
const CLASSES: [Option<&str>; 8] = [
    Some("MethodDesc"),
    Some("FCallMethodDesc"),
    Some("PInvokeMethodDesc"),
    Some("EEImplMethodDesc"),
    Some("ArrayMethodDesc"),
    Some("InstantiatedMethodDesc"),
    // Of COM.
    None,
    Some("DynamicMethodDesc"),
];
/// The optional slots behind a MethodDesc, in their order: the bit of the flags, and the type.
const SLOTS: [(u16, &str); 3] =
    [(8, "NonVtableSlot"), (0x10, "MethodImpl"), (0x20, "NativeCodeSlot")];
/// The bit of the flags that says that there is data of an async method, behind the slots.
const HAS_ASYNC_DATA: u16 = 0x40;
/// The bits of the data's flags that make a thunk: its own, and that of the methods that are called by async ones.
const THUNK: u32 = 0x10;
const CALLED_BY_ASYNC: u32 = 1;

/// The places of async methods' data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AsyncMethods {
    /// Offset of the flags in a MethodDesc, in bytes.
    flags: u64,
    /// Sizes of MethodDescs by class, in bytes.
    sizes: [Option<u64>; 8],
    /// Sizes of the optional slots, in bytes.
    slots: [u64; 3],
    /// Offset of the flags in the data, in bytes.
    data_flags: u64,
}

impl AsyncMethods {
    /// Takes the places from what a runtime states. `None` if it has no such methods: before .NET 11.
    pub(super) fn new(stated: &ContractDescriptor) -> Option<Self> {
        let at = |name, field| stated.field(name, field).ok().map(u64::from);
        let [first, second, third] = SLOTS.map(|(_, name)| at(name, "!"));
        Some(Self {
            data_flags: at("AsyncMethodData", "Flags")?,
            flags: at("MethodDesc", "Flags")?,
            sizes: CLASSES.map(|class| at(class?, "!")),
            slots: [first?, second?, third?],
        })
    }

    /// Returns true if a function is the thunk of an async method, which walks pass without a callback.
    pub(super) fn is_thunk(&self, function: FunctionId, memory: &impl Memory) -> bool {
        let flags = self.data_flags(function.0, memory);
        flags.is_some_and(|flags| flags & (THUNK | CALLED_BY_ASYNC) == THUNK)
    }

    /// Returns the flags of a MethodDesc's data of async methods, if it has any and they can be read.
    fn data_flags(&self, method: u64, memory: &impl Memory) -> Option<u32> {
        let flags = word(memory, method.checked_add(self.flags)?)? as u16;
        if flags & HAS_ASYNC_DATA == 0 {
            return None;
        }
        let size = self.sizes[usize::from(flags & 7)]?;
        let slots = SLOTS.iter().zip(self.slots).filter(|((bit, _), _)| flags & bit != 0);
        let before = size + slots.map(|(_, size)| size).sum::<u64>();
        word(memory, method.checked_add(before)?.checked_add(self.data_flags)?)
    }
}

fn word(memory: &impl Memory, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::layout::stated;
    use super::*;
    use clr_unwind::{Segment, Segments};

    /// The parts of the data contracts of .NET 11.0.0 that are read here.
    const STATED: &str = r#"{"version":2,"baseline":"empty","types":{
        "MethodDesc":{"!":16,"Flags":6},"FCallMethodDesc":{"!":24},"PInvokeMethodDesc":{"!":56},
        "EEImplMethodDesc":{"!":32},"ArrayMethodDesc":{"!":32},"InstantiatedMethodDesc":{"!":40},
        "DynamicMethodDesc":{"!":48},"NonVtableSlot":{"!":8},"MethodImpl":{"!":16},"NativeCodeSlot":{"!":8},
        "AsyncMethodData":{"!":24,"Flags":0,"Signature":8}},"globals":{},"contracts":{}}"#;
    const AT: u64 = 0x1000;

    /// Returns true if a MethodDesc with these flags, and data with these at an offset, is a thunk.
    fn is_thunk(flags: u16, offset: usize, data: u8) -> bool {
        let mut bytes = [0; 0x60];
        bytes[6..8].copy_from_slice(&flags.to_le_bytes());
        bytes[offset] = data;
        let memory = Segments::new([Segment::new(AT, &bytes)]).unwrap();
        let methods = AsyncMethods::new(&stated(STATED)).unwrap();
        methods.is_thunk(FunctionId(AT), &memory)
    }

    #[test]
    fn the_flags_are_behind_the_slots() {
        assert!(is_thunk(0x40, 16, 0x12));
        assert!(is_thunk(0x48, 24, 0x12));
        assert!(is_thunk(0x78, 16 + 8 + 16 + 8, 0x12));
        assert!(is_thunk(0x65, 40 + 8, 0x12), "of a generic method");
        assert!(!is_thunk(0x28, 24, 0x12), "there is no such data");
        assert!(!is_thunk(0x46, 16, 0x12), "of COM");
        for shown in [0x05, 0x0D, 0x15, 0] {
            assert!(!is_thunk(0x40, 16, shown), "{shown:#x}");
        }
    }

    #[test]
    fn a_runtime_before_11_has_none() {
        let before = STATED.replace("AsyncMethodData", "Other");
        assert_eq!(AsyncMethods::new(&stated(&before)), None);
    }
}
