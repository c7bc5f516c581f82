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
