//! Compact unwind information: tables and steps made by hand.

mod encodings;
mod images;
mod paths;
mod steps;
mod tables;
mod writer;

use crate::compact::writer::{Page, unwind_info};
use clr_unwind::compact::{
    CompactError, CompactProblem, CompactSections, CompactTable, Encoding, Entry, Layout,
    Personality, SavedRegisters,
};
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, FunctionTable, Gpr, Position, RegionKind, RegisterSet,
    Registers, Section, Sections, Step, Trust, UnwindError, Unwinder,
};
