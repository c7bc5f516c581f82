//! Tests of each module, by its public items.

mod paste;
