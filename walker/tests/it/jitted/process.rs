//! A process made by hand: bytes by address, and a method in a code heap.

use super::*;
use std::collections::BTreeMap;

/// Low address of the code heap (VA).
pub(crate) const BASE: u64 = 0x7F00_1234_0000;
/// Start of the method (VA).
pub(crate) const START: u64 = BASE + 0x340;
/// Address of the method's code header (VA).
pub(crate) const HEADER: u64 = 0x5500_0000_1000;
/// The method's MethodDesc (VA).
pub(crate) const METHOD_DESC: u64 = 0x7F00_5555_0008;
/// RVA of the unwind data.
pub(crate) const UNWIND: u32 = 0x380;

/// The bytes of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process(BTreeMap<u64, u8>);

impl Process {
    /// Returns a process with a method of 0x20 bytes of code and a funclet of 0x10: `push rbp; sub
    /// rsp, 32; lea rbp, [rsp+32]; …`, by the layout of .NET Core 3.1 to .NET 10.
    pub(crate) fn with_method() -> Self {
        let mut process = Self::default();
        process.write(START - 8, &HEADER.to_le_bytes());
        process.write(START, &[0x90; 0x30]);
        // Debug, exception and GC information.
        process.write(HEADER, &[0xAA; 0x18]);
        process.write(HEADER + 0x18, &METHOD_DESC.to_le_bytes());
        process.write_u32s(HEADER + 0x20, &[2]);
        process.write_u32s(HEADER + 0x24, &[0x340, 0x360, UNWIND, 0x360, 0x370, UNWIND + 0x10]);
        // 3 codes and a slot of padding, then the personality routine.
        let root = [0x19, 9, 3, 0x25, 9, 0x03, 5, 0x32, 1, 0x50, 0, 0, 0x10, 0, 0, 0];
        // 2 codes.
        let funclet = [0x19, 5, 2, 0, 5, 0x32, 1, 0x50, 0x10, 0, 0, 0];
        process.write(BASE + u64::from(UNWIND), &root);
        process.write(BASE + u64::from(UNWIND) + 0x10, &funclet);
        process
    }

    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        self.0.extend((address..).zip(bytes.iter().copied()));
    }

    pub(crate) fn write_u32s(&mut self, address: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(address, &bytes);
    }

    pub(crate) fn write_u64s(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(address, &bytes);
    }

    /// Makes the byte at `address` unreadable.
    pub(crate) fn unmap(&mut self, address: u64) {
        assert!(self.0.remove(&address).is_some());
    }

    /// Returns the addresses of all bytes.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

impl Memory for Process {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        assert!(buffer.len() <= 4096 && address % 4096 + buffer.len() as u64 <= 4096 + 15);
        for (at, byte) in (address..).zip(buffer) {
            *byte = *self.0.get(&at).ok_or(unreadable)?;
        }
        Ok(())
    }
}
