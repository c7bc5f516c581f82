//! Compact unwind information: tables and steps made by hand.

mod encodings;
mod images;
mod paths;
mod steps;
mod tables;
mod writer;
