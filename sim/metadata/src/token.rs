//! Tokens.

use crate::Table;

/// A metadata token: a table in the highest byte, a row from 1 in the others.
pub type Token = u32;

/// Returns the token of a row.
pub const fn token(table: Table, row: u32) -> Token {
    (table as u32) << 24 | row & 0x00FF_FFFF
}

/// Returns the row that a token names, whatever table it is of.
pub const fn row_of(token: Token) -> u32 {
    token & 0x00FF_FFFF
}

/// Returns the table that a token is of, if there is such a table.
pub fn table_of(token: Token) -> Option<Table> {
    Table::ALL.get((token >> 24) as usize).copied()
}
