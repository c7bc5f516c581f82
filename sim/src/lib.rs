//! A deterministic simulator of the .NET runtime for testing stack walks.

pub mod replay;
pub mod vectors;
