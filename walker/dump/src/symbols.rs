//! Exported symbols of an ELF module, by the hash table in its memory.

use crate::modules::Module;
use clr_unwind::{Memory, Unreadable};
use object::elf;

/// Entries of the dynamic section at most.
const DYNAMIC_LIMIT: u64 = 0x1_0000 / 16;
/// Symbols with the same hash bucket at most.
const CHAIN_LIMIT: u32 = 1 << 16;
/// Size of a symbol (`Elf64_Sym`) in bytes.
const SYMBOL: u64 = 24;

/// What a look-up needs of the dynamic section (VA).
#[derive(Clone, Copy, Debug, Default)]
struct Tables {
    hash: u64,
    symbols: u64,
    names: u64,
}

impl Module<'_> {
    /// Returns the address (VA) of an exported symbol, or `None` if the module has none of this name. Of ELF it needs DT_GNU_HASH,
    /// as linkers write by default. Images that .NET has mapped on Linux have no exports.
    ///
    /// # Errors
    /// [`Unreadable`] if a part of the tables is unknown.
    pub fn symbol<M: Memory + ?Sized>(
        &self,
        memory: &M,
        name: &str,
    ) -> Result<Option<u64>, Unreadable> {
        if self.is_of_windows() {
            return self.export(memory, name);
        }
        let tables = self.tables(memory)?;
        if tables.hash == 0 || tables.symbols == 0 || tables.names == 0 {
            return Ok(None);
        }
        let at = |offset: u64| tables.hash.wrapping_add(offset);
        let (buckets, first) = (memory.read_u32(at(0))?, memory.read_u32(at(4))?);
        let filter = 8 * u64::from(memory.read_u32(at(8))?);
        let hash = gnu_hash(name.as_bytes());
        let Some(bucket) = hash.checked_rem(buckets) else { return Ok(None) };
        let buckets_at = 16 + filter;
        let chains = buckets_at + 4 * u64::from(buckets);
        let start = memory.read_u32(at(buckets_at + 4 * u64::from(bucket)))?;
        for index in start..start.saturating_add(CHAIN_LIMIT) {
            let Some(chain) = index.checked_sub(first) else { return Ok(None) };
            let found = memory.read_u32(at(chains + 4 * u64::from(chain)))?;
            if found | 1 == hash | 1 {
                let symbol = tables.symbols.wrapping_add(SYMBOL * u64::from(index));
                let name_at = tables.names.wrapping_add(memory.read_u32(symbol)?.into());
                if is_text(memory, name_at, name.as_bytes())? {
                    let value = memory.read_u64(symbol.wrapping_add(8))?;
                    return Ok(Some(value.wrapping_add(self.bias)));
                }
            }
            if found & 1 != 0 {
                break;
            }
        }
        Ok(None)
    }

    fn tables<M: Memory + ?Sized>(&self, memory: &M) -> Result<Tables, Unreadable> {
        let mut tables = Tables::default();
        let Some(dynamic) = &self.dynamic else { return Ok(tables) };
        let count = (dynamic.end - dynamic.start) / 16;
        let (in_file, _) = self.dynamic_in_file().as_chunks();
        // Loaders change values in place, so the memory may not know what the file does.
        let word = |index: u64| {
            let of_file = usize::try_from(index).ok().and_then(|index| in_file.get(index));
            let of_memory = memory.read_u64(dynamic.start.wrapping_add(index * 8));
            of_memory.or_else(|error| of_file.map(|it| u64::from_le_bytes(*it)).ok_or(error))
        };
        for index in 0..count.min(DYNAMIC_LIMIT) {
            let tag = word(index * 2)?;
            let field = match elf::DynamicTag(tag.cast_signed()) {
                elf::DT_NULL => break,
                elf::DT_GNU_HASH => &mut tables.hash,
                elf::DT_SYMTAB => &mut tables.symbols,
                elf::DT_STRTAB => &mut tables.names,
                _ => continue,
            };
            let value = word(index * 2 + 1)?;
            // glibc's loader turns these values into addresses of the process in place; others leave them.
            let is_moved = self.range.contains(&value);
            *field = if is_moved { value } else { value.wrapping_add(self.bias) };
        }
        Ok(tables)
    }
}

/// Returns the hash of DT_GNU_HASH.
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()))
}

/// Returns true if the text with a NUL after it is at `address`.
fn is_text<M: Memory + ?Sized>(memory: &M, address: u64, text: &[u8]) -> Result<bool, Unreadable> {
    let mut at = address;
    for byte in text.iter().copied().chain([0]) {
        let mut found = [0];
        memory.read(at, &mut found)?;
        if found != [byte] {
            return Ok(false);
        }
        at = at.wrapping_add(1);
    }
    Ok(true)
}
