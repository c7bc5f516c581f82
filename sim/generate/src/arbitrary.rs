//! Programs, and calls about synthetic threads, from the bytes of a fuzzer.

use super::choices::Choices;
use super::generate;
use super::size::Size;
use super::synthetic::{SyntheticCall, synthetic_call};
use super::world::{WorldCase, WorldProgram, world_case, world_program};
use arbitrary::{Arbitrary, Unstructured};
use clr_codegen::Program;

/// Choices made by the bytes; after the last byte all choices are 0, which ends a program soon.
impl Choices for Unstructured<'_> {
    fn below(&mut self, n: u32) -> u32 {
        // An error would mean an empty range.
        self.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }
}

/// A program of size [`Size::SMALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallProgram(pub Program);

impl<'a> Arbitrary<'a> for SmallProgram {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self(generate::program(bytes, &Size::SMALL)))
    }
}

/// A synthetic thread of any size, and a call.
impl<'a> Arbitrary<'a> for SyntheticCall {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(synthetic_call(bytes))
    }
}

/// A program with threads of any size.
impl<'a> Arbitrary<'a> for WorldProgram {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(world_program(bytes))
    }
}

/// Such a program, the state that it is executed to, and a call.
impl<'a> Arbitrary<'a> for WorldCase {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(world_case(bytes))
    }
}
