//! An image as the system has loaded it.

use crate::headers::ImageHeaders;
use crate::process::Missing;
use crate::relocations::{Change, Relocations};

/// An image that the system has loaded. Addresses are those of an ELF file, or RVAs of a PE image.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) headers: ImageHeaders,
    pub(crate) relocations: Relocations,
}

impl Loaded {
    /// Applies the relocations to the bytes at `address`. Returns the number of bytes before the first unknown one.
    pub(crate) fn relocate(
        &self,
        bias: u64,
        address: u64,
        bytes: &mut [u8],
    ) -> Result<usize, Missing> {
        let end = address + bytes.len() as u64;
        let mut known = end;
        for relocation in self.relocations.from(address) {
            if relocation.address >= known {
                break;
            }
            if relocation.end() <= address {
                continue;
            }
            let Change::Moved(value) = relocation.change else {
                known = relocation.address.max(address);
                break;
            };
            for (index, byte) in value.wrapping_add(bias).to_le_bytes().into_iter().enumerate() {
                let at = relocation.address.wrapping_add(index as u64).wrapping_sub(address);
                if let Some(place) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at)) {
                    *place = byte;
                }
            }
        }
        if known == address { Err(Missing::MayHaveChanged) } else { Ok((known - address) as usize) }
    }
}
