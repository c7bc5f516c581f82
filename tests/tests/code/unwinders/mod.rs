//! Tests of the unwinders of `clr_walker`: against recorded vectors, execution, other decoders, other
//! unwinders, and mutants with known bugs.

mod allocation;
mod compact;
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
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::image::macho::MachoImage;
use clr_walker::image::pe::PeImage;
use clr_walker::image::{CfiSections, FunctionTable, RuntimeFunction, Sections};
use clr_walker::memory::{Memory, Segments, Unreadable};
use clr_walker::registers::{Convention, Gpr, Registers};
use clr_walker::unwind::{self, Cache, Position, Rules, Trust, Unwinder};
use std::collections::{BTreeMap, BTreeSet};
