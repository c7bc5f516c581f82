//! The rows of a module.

use crate::{Column, Guids, Heap, Kind, Table, Token, row_of, table_of, token};

/// The metadata of a module. Cells of columns with coded tokens hold the tokens themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Cells of each table, row by row.
    rows: Vec<Vec<u32>>,
    /// `#Strings`.
    pub strings: Heap,
    /// `#Blob`.
    pub blobs: Heap,
    /// `#US`.
    pub user_strings: Heap,
    /// `#GUID`.
    pub guids: Guids,
}

impl Metadata {
    /// Returns the cells of a table.
    pub(crate) fn cells(&self, table: Table) -> &[u32] {
        self.rows.get(table as usize).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn cells_mut(&mut self, table: Table) -> &mut Vec<u32> {
        if self.rows.len() < Table::ALL.len() {
            self.rows.resize(Table::ALL.len(), Vec::new());
        }
        // The table's number is below the length.
        let index = table as usize;
        match self.rows.get_mut(index) {
            Some(cells) => cells,
            None => unreachable!("each table has a place"),
        }
    }

    /// Returns the number of rows of a table.
    pub fn len(&self, table: Table) -> u32 {
        (self.cells(table).len() / table.columns().len()) as u32
    }

    /// Adds a row of zeros and nil tokens. Returns its token.
    pub fn add(&mut self, table: Table) -> Token {
        let nothing = |column: &crate::ColumnSchema| match column.kind {
            Kind::Coded(coded) => coded.decode(0).unwrap_or_default(),
            _ => 0,
        };
        self.cells_mut(table).extend(table.columns().iter().map(nothing));
        token(table, self.len(table))
    }

    /// Returns the tokens of all rows of a table.
    pub fn tokens(&self, table: Table) -> impl Iterator<Item = Token> + use<> {
        (1..=self.len(table)).map(move |row| token(table, row))
    }

    /// Returns true if a token has a row.
    pub fn has(&self, token: Token) -> bool {
        table_of(token).is_some_and(|table| self.has_row(table, token))
    }

    /// Returns true if the table has the row that a token names, whatever table the token is of.
    pub fn has_row(&self, table: Table, token: Token) -> bool {
        (1..=self.len(table)).contains(&row_of(token))
    }

    /// Returns a cell by its column's number, or 0 if there is no such row.
    pub fn cell(&self, table: Table, row: u32, column: usize) -> u32 {
        let columns = table.columns().len();
        let Some(start) = row.checked_sub(1).map(|row| row as usize * columns) else { return 0 };
        self.cells(table).get(start + column).copied().unwrap_or_default()
    }

    /// Changes a cell by its column's number, if there is such a row. A token that a column cannot hold becomes a nil one.
    pub fn set_cell(&mut self, table: Table, row: u32, column: usize, value: u32) {
        let columns = table.columns().len();
        let value = match table.columns().get(column).map(|column| column.kind) {
            Some(Kind::Coded(coded)) if coded.encode(value).is_none() => {
                coded.decode(0).unwrap_or_default()
            }
            _ => value,
        };
        let Some(start) = row.checked_sub(1).map(|row| row as usize * columns) else { return };
        if let Some(cell) = self.cells_mut(table).get_mut(start + column) {
            *cell = value;
        }
    }

    /// Returns a cell of the row that a token names, or 0 if there is none.
    pub fn get<C: Column>(&self, token: Token, column: C) -> u32 {
        self.cell(C::TABLE, row_of(token), column.index())
    }

    /// Changes a cell of the row that a token names, if there is one.
    pub fn set<C: Column>(&mut self, token: Token, column: C, value: u32) {
        self.set_cell(C::TABLE, row_of(token), column.index(), value);
    }

    /// Returns the text that a cell names.
    pub fn string<C: Column>(&self, token: Token, column: C) -> &str {
        self.strings.text(self.get(token, column))
    }

    /// Changes the text that a cell names.
    pub fn set_string<C: Column>(&mut self, token: Token, column: C, text: &str) {
        let offset = self.strings.add(text);
        self.set(token, column, offset);
    }

    /// Returns the blob that a cell names.
    pub fn blob<C: Column>(&self, token: Token, column: C) -> &[u8] {
        self.blobs.blob(self.get(token, column))
    }

    /// Changes the blob that a cell names.
    pub fn set_blob<C: Column>(&mut self, token: Token, column: C, blob: &[u8]) {
        let offset = self.blobs.add_blob(blob);
        self.set(token, column, offset);
    }

    /// Returns the rows in which a column has this value.
    pub fn find_all<C: Column>(&self, column: C, value: u32) -> impl Iterator<Item = Token> {
        let columns = C::TABLE.columns().len();
        let rows = (1..).zip(self.cells(C::TABLE).chunks(columns));
        let index = column.index();
        rows.filter(move |(_, row)| row.get(index) == Some(&value))
            .map(|(row, _)| token(C::TABLE, row))
    }

    /// Returns the first row in which a column has this value.
    pub fn find<C: Column>(&self, column: C, value: u32) -> Option<Token> {
        self.find_all(column, value).next()
    }

    /// Sorts the tables that have to be (II.22), before a token of theirs is given away. Rows with the same key keep
    /// their order.
    pub fn sort(&mut self) {
        for table in Table::ALL {
            let Some(key) = table.key() else { continue };
            let columns = table.columns().len();
            let kind = table.columns().get(key).map(|column| column.kind);
            let cells = self.cells_mut(table);
            let mut rows: Vec<Vec<u32>> = cells.chunks(columns).map(<[u32]>::to_vec).collect();
            rows.sort_by_key(|row| row.get(key).map(|value| crate::write::encoded(kind, *value)));
            *cells = rows.concat();
        }
    }
}
