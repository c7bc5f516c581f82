//! Metadata as bytes (ECMA-335, II.24).

use crate::{Coded, Kind, Metadata, Table};

/// The version that compilers write into the root.
pub const VERSION: &str = "v4.0.30319";
/// Name of the stream of tables, and of the one whose lists have another order than the rows.
pub(crate) const TABLES: &str = "#~";
pub(crate) const UNORDERED_TABLES: &str = "#-";
/// The largest heap that is named by two bytes.
const SMALL: u32 = 0x1_0000;

/// Numbers of bytes that columns take in a module.
pub(crate) struct Widths {
    rows: [u32; Table::ALL.len()],
    pub(crate) wide_strings: bool,
    pub(crate) wide_guids: bool,
    pub(crate) wide_blobs: bool,
}

impl Widths {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self::new(
            Table::ALL.map(|table| metadata.len(table)),
            metadata.strings.size() >= SMALL,
            metadata.guids.len() * 16 >= SMALL,
            metadata.blobs.size() >= SMALL,
        )
    }

    pub(crate) const fn new(
        rows: [u32; Table::ALL.len()],
        wide_strings: bool,
        wide_guids: bool,
        wide_blobs: bool,
    ) -> Self {
        Self { rows, wide_strings, wide_guids, wide_blobs }
    }

    fn rows(&self, table: Table) -> u32 {
        self.rows.get(table as usize).copied().unwrap_or_default()
    }

    /// Returns the number of bytes that a column takes.
    pub(crate) fn width(&self, kind: Kind) -> u32 {
        let is_wide = match kind {
            Kind::U8 | Kind::U16 | Kind::I16 => false,
            Kind::U32 => true,
            Kind::String => self.wide_strings,
            Kind::Guid => self.wide_guids,
            Kind::Blob => self.wide_blobs,
            Kind::Row(table) => self.rows(table) >= SMALL,
            Kind::Coded(coded) => {
                let most = coded.tables().iter().map(|table| self.rows(*table)).max();
                most.unwrap_or_default() >= SMALL >> coded.bits()
            }
        };
        if is_wide { 4 } else { 2 }
    }
}

impl Metadata {
    /// Returns the offset of each column in a row, its size, and the size of the row, in bytes.
    pub fn columns(&self, table: Table) -> (Vec<(u32, u32)>, u32) {
        let widths = Widths::of(self);
        let mut offset = 0;
        let place = |column: &crate::ColumnSchema| {
            let width = widths.width(column.kind);
            offset += width;
            // A byte is followed by one that nothing uses.
            (offset - width, if column.kind == Kind::U8 { 1 } else { width })
        };
        (table.columns().iter().map(place).collect(), offset)
    }

    /// Returns the bytes of a row, as they are written.
    pub fn row_bytes(&self, table: Table, row: u32) -> Vec<u8> {
        let widths = Widths::of(self);
        let cell = |(index, column): (usize, &crate::ColumnSchema)| {
            let bytes = encoded(Some(column.kind), self.cell(table, row, index)).to_le_bytes();
            bytes.into_iter().take(widths.width(column.kind) as usize)
        };
        table.columns().iter().enumerate().flat_map(cell).collect()
    }
}

/// Returns a cell as it is written.
pub(crate) fn encoded(kind: Option<Kind>, value: u32) -> u32 {
    match kind {
        Some(Kind::Coded(coded)) => coded.encode(value).unwrap_or_default(),
        _ => value,
    }
}

/// Returns the bytes of a metadata root with its streams.
pub fn write(metadata: &Metadata) -> Vec<u8> {
    let is_ordered = [Table::FieldPtr, Table::MethodPtr, Table::ParamPtr]
        .iter()
        .all(|table| metadata.len(*table) == 0);
    let guids: Vec<u8> = metadata.guids.0.iter().flatten().copied().collect();
    let name = if is_ordered { TABLES } else { UNORDERED_TABLES };
    let streams = [
        (name, tables(metadata)),
        ("#Strings", heap(metadata.strings.bytes())),
        ("#US", heap(metadata.user_strings.bytes())),
        ("#GUID", guids),
        ("#Blob", heap(metadata.blobs.bytes())),
    ];
    let version = padded(VERSION);
    let mut out = Vec::new();
    out.extend(*b"BSJB");
    out.extend([1, 0, 1, 0, 0, 0, 0, 0]);
    out.extend((version.len() as u32).to_le_bytes());
    out.extend(version);
    out.extend(0_u16.to_le_bytes());
    out.extend((streams.len() as u16).to_le_bytes());
    let heads: usize = streams.iter().map(|(name, _)| 8 + padded(name).len()).sum();
    let mut offset = out.len() + heads;
    for (name, bytes) in &streams {
        out.extend((offset as u32).to_le_bytes());
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(padded(name));
        offset += bytes.len();
    }
    out.extend(streams.iter().flat_map(|(_, bytes)| bytes));
    out
}

/// Returns a name with its final 0, to a multiple of four bytes.
fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((bytes.len() + 4) & !3, 0);
    bytes
}

/// Returns a heap to a multiple of four bytes. An empty one has its empty entry.
fn heap(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = bytes.len().max(1).next_multiple_of(4);
    bytes.resize(len, 0);
    bytes
}

/// Returns the stream of tables.
fn tables(metadata: &Metadata) -> Vec<u8> {
    let widths = Widths::of(metadata);
    let (mut valid, mut sorted) = (0_u64, 0_u64);
    for table in Table::ALL {
        let bit = 1_u64 << table as u8;
        if metadata.len(table) > 0 {
            valid |= bit;
        }
        if table.key().is_some_and(|key| is_sorted(metadata, table, key)) {
            sorted |= bit;
        }
    }
    let heaps = u8::from(widths.wide_strings)
        | u8::from(widths.wide_guids) << 1
        | u8::from(widths.wide_blobs) << 2;
    let mut out = vec![0, 0, 0, 0, 2, 0, heaps, 1];
    out.extend(valid.to_le_bytes());
    out.extend(sorted.to_le_bytes());
    let present = || Table::ALL.into_iter().filter(|table| metadata.len(*table) > 0);
    for table in present() {
        out.extend(metadata.len(table).to_le_bytes());
    }
    for table in present() {
        let columns = table.columns();
        for row in metadata.cells(table).chunks(columns.len()) {
            for (column, value) in columns.iter().zip(row) {
                let bytes = encoded(Some(column.kind), *value).to_le_bytes();
                let width = widths.width(column.kind) as usize;
                out.extend(bytes.iter().take(width));
            }
        }
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn is_sorted(metadata: &Metadata, table: Table, key: usize) -> bool {
    let kind = table.columns().get(key).map(|column| column.kind);
    let keys = (1..=metadata.len(table)).map(|row| encoded(kind, metadata.cell(table, row, key)));
    keys.is_sorted()
}

impl Coded {
    /// Returns the number of the set in IMetaDataTables, from 0.
    pub const fn number(self) -> u32 {
        self as u32
    }
}
