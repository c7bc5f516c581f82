//! Exported symbols of a PE module, by the export directory in its memory.

use crate::modules::Module;
use clr_unwind::{Memory, Unreadable};

/// Offset of the directory of exports from the signature of the headers, in bytes, and offsets in it (`IMAGE_EXPORT_DIRECTORY` of the PE
/// format): the number of names, and the tables of functions, of names, and of their ordinals (RVAs).
const DIRECTORY: u64 = 24 + 112;
const NAME_COUNT: u64 = 24;
const FUNCTIONS: u64 = 28;
const NAMES: u64 = 32;
const ORDINALS: u64 = 36;
/// Length of a name at most; longer ones are compared as far as that.
const NAME_LIMIT: u64 = 4096;

impl Module<'_> {
    /// Returns the address (VA) of an export of a 64-bit PE module. The table of names is ascending. One that leads to another module
    /// is none.
    pub(crate) fn export<M: Memory + ?Sized>(
        &self,
        memory: &M,
        name: &str,
    ) -> Result<Option<u64>, Unreadable> {
        let at = |rva: u64| self.range.start.wrapping_add(rva);
        let word = |rva: u64| memory.read_u32(at(rva)).map(u64::from);
        let directory = word(0x3C)? + DIRECTORY;
        let (start, size) = (word(directory)?, word(directory + 4)?);
        if start == 0 {
            return Ok(None);
        }
        let names = word(start + NAMES)?;
        let (mut low, mut high) = (0, word(start + NAME_COUNT)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(memory, at(word(names + 4 * middle)?), name)? {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let ordinals = at(word(start + ORDINALS)? + 2 * middle);
                    let ordinal = u64::from(memory.read_u16(ordinals)?);
                    let rva = word(word(start + FUNCTIONS)? + 4 * ordinal)?;
                    let is_forward = (start..start + size).contains(&rva);
                    return Ok((!is_forward).then(|| at(rva)));
                }
            }
        }
        Ok(None)
    }
}

/// Compares the text at `address` (VA), up to its NUL, with a name.
fn compare<M: Memory + ?Sized>(
    memory: &M,
    address: u64,
    name: &str,
) -> Result<std::cmp::Ordering, Unreadable> {
    let mut expected = name.bytes().chain([0]);
    for at in 0..NAME_LIMIT {
        let mut found = [0];
        memory.read(address.wrapping_add(at), &mut found)?;
        let [found] = found;
        let Some(expected) = expected.next() else { break };
        match found.cmp(&expected) {
            std::cmp::Ordering::Equal => {}
            order => return Ok(order),
        }
    }
    Ok(std::cmp::Ordering::Equal)
}
