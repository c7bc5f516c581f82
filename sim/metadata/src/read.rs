//! Metadata from bytes.

use crate::write::{TABLES, UNORDERED_TABLES, Widths};
use crate::{Guids, Heap, Kind, Metadata, Table};

/// Why bytes are no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The bytes do not begin with a metadata root.
    #[error("no metadata root at the start")]
    NoRoot,
    /// The bytes end too early.
    #[error("the metadata ends at {0:#x}, in the middle")]
    Short(usize),
    /// There is no stream of tables.
    #[error("no stream of tables")]
    NoTables,
    /// A table that the standard does not have.
    #[error("a table {0:#x}, which the standard does not have")]
    UnknownTable(u32),
    /// A coded token of no table.
    #[error("table {table}: {value:#x} is of no table that column {column} may name")]
    WrongToken {
        /// The table's name.
        table: &'static str,
        /// The column's name.
        column: &'static str,
        /// The cell.
        value: u32,
    },
}

/// Bytes that are read from the start to the end.
struct Bytes<'b> {
    all: &'b [u8],
    at: usize,
}

impl<'b> Bytes<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8], MetadataError> {
        let end = self.at.checked_add(len).ok_or(MetadataError::Short(self.all.len()))?;
        let taken = self.all.get(self.at..end).ok_or(MetadataError::Short(self.all.len()))?;
        self.at = end;
        Ok(taken)
    }

    /// Reads a number of up to eight bytes.
    fn number(&mut self, len: usize) -> Result<u64, MetadataError> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn word(&mut self) -> Result<u32, MetadataError> {
        Ok(self.number(4)? as u32)
    }
}

/// A stream of a metadata root, with offsets from the root's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Offset of the name, which ends with 0.
    pub name: usize,
    /// Offset of the first byte.
    pub offset: usize,
    /// Number of bytes.
    pub size: usize,
}

/// Returns the streams of a metadata root.
///
/// # Errors
/// If the bytes do not begin with a metadata root by ECMA-335, II.24.2.
pub fn streams(bytes: &[u8]) -> Result<Vec<Stream>, MetadataError> {
    let mut root = Bytes { all: bytes, at: 0 };
    if root.take(4).map_err(|_| MetadataError::NoRoot)? != b"BSJB" {
        return Err(MetadataError::NoRoot);
    }
    root.take(8)?;
    let version = root.word()? as usize;
    root.take(version)?;
    root.take(2)?;
    let count = root.number(2)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let (offset, size) = (root.word()? as usize, root.word()? as usize);
        let name = root.at;
        while root.number(1)? != 0 {}
        let padding = (root.at - name).next_multiple_of(4) - (root.at - name);
        root.take(padding)?;
        Bytes { all: bytes, at: offset }.take(size)?;
        found.push(Stream { name, offset, size });
    }
    Ok(found)
}

/// Reads a metadata root with its streams.
///
/// # Errors
/// If the bytes are no metadata by ECMA-335, II.24.
pub fn read(bytes: &[u8]) -> Result<Metadata, MetadataError> {
    let mut found = Metadata::default();
    let mut tables = None;
    for stream in streams(bytes)? {
        let name = bytes.get(stream.name..).unwrap_or_default().split(|byte| *byte == 0).next();
        let content = bytes.get(stream.offset..stream.offset + stream.size).unwrap_or_default();
        match std::str::from_utf8(name.unwrap_or_default()).unwrap_or_default() {
            TABLES | UNORDERED_TABLES => tables = Some(content),
            "#Strings" => found.strings = Heap::of_strings(content),
            "#US" => found.user_strings = Heap::of_blobs(content),
            "#Blob" => found.blobs = Heap::of_blobs(content),
            "#GUID" => {
                let guids = content.chunks_exact(16);
                found.guids = Guids(guids.map(|one| one.try_into().unwrap_or_default()).collect());
            }
            _ => {}
        }
    }
    read_tables(tables.ok_or(MetadataError::NoTables)?, &mut found)?;
    Ok(found)
}

fn read_tables(stream: &[u8], to: &mut Metadata) -> Result<(), MetadataError> {
    let mut bytes = Bytes { all: stream, at: 6 };
    let heaps = bytes.number(1)?;
    bytes.take(1)?;
    let valid = bytes.number(8)?;
    bytes.take(8)?;
    if valid >> Table::ALL.len() != 0 {
        return Err(MetadataError::UnknownTable(valid.ilog2()));
    }
    let mut rows = [0; Table::ALL.len()];
    for (table, rows) in rows.iter_mut().enumerate() {
        if valid >> table & 1 != 0 {
            *rows = bytes.word()?;
        }
    }
    let widths = Widths::new(rows, heaps & 1 != 0, heaps & 2 != 0, heaps & 4 != 0);
    for (table, rows) in Table::ALL.into_iter().zip(rows) {
        let columns = table.columns();
        let width: usize = columns.iter().map(|one| widths.width(one.kind) as usize).sum();
        // The rows are there before room is made for them.
        let mut cells = Bytes { all: bytes.take(width.saturating_mul(rows as usize))?, at: 0 };
        let mut values = Vec::with_capacity(columns.len() * rows as usize);
        for column in (0..rows).flat_map(|_| columns) {
            let value = cells.number(widths.width(column.kind) as usize)? as u32;
            values.push(match column.kind {
                Kind::Coded(coded) => coded.decode(value).ok_or(MetadataError::WrongToken {
                    table: table.name(),
                    column: column.name(),
                    value,
                })?,
                _ => value,
            });
        }
        *to.cells_mut(table) = values;
    }
    Ok(())
}
