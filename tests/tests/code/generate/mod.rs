mod arbitrary;
mod coverage;
mod fewer;
mod limits;
mod near_valid;
mod proptest;
mod shrink;
mod synthetic;

use clr_codegen::{EhClauseKind, Exit, Program, Statement, estimate};
use clr_generate::{Choices, Seeded, Size, minimize, program, shrunk};
use std::collections::{BTreeMap, BTreeSet};

fn programs(size: &Size, count: u64) -> impl Iterator<Item = Program> + '_ {
    (0..count).map(move |seed| program(&mut Seeded::new(seed), size))
}
