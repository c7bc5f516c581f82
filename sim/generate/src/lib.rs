//! Generators of programs and of synthetic threads, with shrinking on the generated value.
//!
//! ```
//! use clr_generate::{Seeded, Size, minimize, program};
//!
//! let fails = |program: &clr_codegen::Program| program.functions.len() > 1;
//! let mut seeds = (0..).map(|seed| program(&mut Seeded::new(seed), &Size::SMALL));
//! let large = seeds.find(fails).expect("some program has two functions");
//! assert_eq!(minimize(large, fails).functions.len(), 2);
//! ```
//!
//! There is one generator for each kind of input: [`program`] turns [`Choices`] into a valid
//! program, whether the choices come from a seed ([`Seeded`]), from proptest (feature `proptest`)
//! or from a fuzzer's bytes (feature `arbitrary`). [`synthetic_call`] does the same for synthetic
//! threads and calls about them, and [`world_case`] for programs that go through the runtime.
//! Shrinking ([`shrunk`], [`minimize`]) works on the generated value itself, never on the choices,
//! so that each step is small, wherever the value came from.

#[cfg(feature = "arbitrary")]
mod arbitrary;
mod body;
mod budget;
mod choices;
mod clauses;
mod edit;
mod exits;
mod generate;
mod measure;
pub mod near_valid;
#[cfg(feature = "proptest")]
mod proptest;
mod reduce_bytes;
mod repair;
mod repaired;
mod shape;
mod shrink;
mod size;
mod statement;
mod steps;
pub mod synthetic;
pub mod world;

#[cfg(feature = "proptest")]
pub use self::proptest::{Generated, Tree, programs, synthetic_calls, world_cases};
#[cfg(feature = "arbitrary")]
pub use arbitrary::SmallProgram;
pub use choices::{Choices, Seeded};
pub use generate::program;
pub use measure::Measure;
pub use reduce_bytes::minimize_list;
pub use repaired::{repaired_program, repaired_world};
pub use shrink::{MAX_TRIALS, Shrink, minimize, shrunk};
pub use size::Size;
pub use synthetic::{SyntheticCall, SyntheticSeed, synthetic_call};
pub use world::{WorldCase, WorldProgram, world_call, world_case, world_program};
