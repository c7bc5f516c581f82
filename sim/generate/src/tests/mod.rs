#[cfg(feature = "arbitrary")]
mod arbitrary;
mod coverage;
mod fewer;
mod generate;
mod near_valid;
#[cfg(feature = "proptest")]
mod proptest;
mod shrink;
mod synthetic;

use super::{Seeded, Size, program};
use clr_codegen::Program;

fn programs(size: &Size, count: u64) -> impl Iterator<Item = Program> + '_ {
    (0..count).map(move |seed| program(&mut Seeded::new(seed), size))
}
