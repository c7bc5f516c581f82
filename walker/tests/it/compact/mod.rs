//! Compact unwind information: tables and steps made by hand.

mod encodings;
mod images;
mod paths;
mod steps;
mod tables;
mod writer;

use crate::compact::writer::{Page, unwind_info};
use clr_walker::code_map::{CodeMap, CodeRegion, RegionKind};
use clr_walker::compact::{
    CompactError, CompactProblem, CompactSections, CompactTable, Encoding, Entry, Layout,
    Personality, SavedRegisters,
};
use clr_walker::image::{CfiSections, FunctionTable, Section, Sections};
use clr_walker::registers::{Gpr, RegisterSet, Registers};
use clr_walker::unwind::{Cache, Position, Step, Trust, UnwindError, Unwinder};
