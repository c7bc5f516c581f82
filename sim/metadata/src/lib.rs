//! The metadata of a module by ECMA-335: tables, heaps, IL, and the image around them.
//!
//! [`schema`] lists the tables with their columns. Everything else reads that list: rows in memory ([`Metadata`]), their
//! bytes, and what a debugger or profiler asks about a column. A row is found by its [`Token`]. Rows may be added at any
//! time; a row, a string and a blob keep their place for ever.
//!
//! | module | content |
//! |---|---|
//! | `schema` | tables, columns, kinds of columns, coded tokens |
//! | `token` | a table and a row as one number |
//! | `heap` | strings, blobs, user strings, GUIDs |
//! | `tables` | the rows of a module |
//! | `lists` | which fields, methods and parameters are whose |
//! | `write`, `read` | the bytes of a metadata root |
//! | `signature` | compressed numbers, signatures of methods |
//! | `body` | IL with its header |
//! | `image` | a PE file with IL and metadata |
//!
//! ```
//! use clr_metadata::{Metadata, Table, TypeDef, read, write};
//!
//! let mut metadata = Metadata::default();
//! let token = metadata.add(Table::TypeDef);
//! let name = metadata.strings.add("Acme");
//! metadata.set(token, TypeDef::Name, name);
//! let again = read(&write(&metadata))?;
//! assert_eq!(again.string(token, TypeDef::Name), "Acme");
//! # Ok::<(), clr_metadata::MetadataError>(())
//! ```
// A panic would end the profiler's process.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod body;
mod heap;
mod image;
mod lists;
mod read;
pub mod schema;
mod signature;
mod tables;
#[cfg(test)]
mod tests;
mod token;
mod write;

pub use body::{Il, body_size, body_size_by};
pub use heap::{Guids, Heap};
pub use image::{Format, Image, Layout};
pub use read::{MetadataError, Stream, read, streams};
pub use schema::*;
pub use signature::{compress, decompress, method_signature};
pub use tables::Metadata;
pub use token::{Token, row_of, table_of, token};
pub use write::{VERSION, write};
