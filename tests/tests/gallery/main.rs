//! Tests of scenarios: the texts of the gallery, and stacks and situations with known results.

mod field;
mod hazards;
mod sampler;
mod situations;
mod stories;
mod texts;
mod worked_stacks;
