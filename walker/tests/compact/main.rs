//! Compact unwind information: tables and steps made by hand.

mod encodings;
mod images;
mod steps;
mod tables;
mod writer;
