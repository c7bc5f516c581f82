//! Tests of the unwinders of `clr_walker`: against recorded vectors, execution, other decoders, other
//! unwinders, and mutants with known bugs.

mod allocation;
mod compact;
mod deceptions;
mod epilogues;
mod every_instruction;
mod external;
mod funclets;
mod jitted;
mod libraries;
mod lint;
mod mutant_programs;
mod mutants;
mod others;
mod readers;
mod stepping;
mod version3;
mod win64_vectors;

use allocation_counter::measure;
use clr_codegen::{CallingConvention, LinkedProgram, Program};
use clr_generate::{Seeded, Size, program};
use clr_machine::Machine;
use clr_recording::vectors::fuzz::{
    self, FuzzFile, FuzzMemory, FuzzRecord, IMAGE_BASE, STACK, stack_word,
};
use clr_recording::vectors::win64::{Vector, VectorFile, VectorKind};
use clr_recording::vectors::{DECOMPRESSED_LIMIT, UnwindStatus, decompress};
use clr_scenario::Scenario;
use clr_tests::cases;
use clr_tests::every_instruction::{Failure, ReferenceUnwinder, walk};
use clr_unwind::compat::Rules;
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, Convention, FunctionTable, Gpr, MachoImage, Memory,
    PeImage, Position, Registers, RuntimeFunction, Sections, Segments, Trust, Unreadable, Unwinder,
};
use std::collections::{BTreeMap, BTreeSet};
