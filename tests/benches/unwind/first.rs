//! The time of a first step, which compiles a rule.

use crate::contenders::ours_in;
use crate::images::{Images, map_of};
use crate::measure::{Samples, nanoseconds};
use crate::stacks::{Frame, Stack};
use std::hint::black_box;
use std::time::Instant;

/// A stack whose frames have different return addresses, and the time of its first walk.
pub(crate) struct First<'i> {
    images: &'i Images,
    stack: Stack,
    callers: Vec<Frame>,
    /// Nanoseconds per frame, one for each round.
    pub(crate) samples: Samples,
}

impl<'i> First<'i> {
    pub(crate) fn new(images: &'i Images, stack: Stack) -> Self {
        let callers = vec![Frame::default(); stack.callers.len()];
        Self { images, stack, callers, samples: Samples::new() }
    }

    /// Takes a sample with a map that nobody has used.
    pub(crate) fn round(&mut self) {
        let map = map_of(&self.images.all);
        let mut walk = ours_in(&map);
        let start = Instant::now();
        let found = walk(black_box(&self.stack), &mut self.callers);
        let time = nanoseconds(start.elapsed());
        assert_eq!((found, &self.callers), (self.stack.callers.len(), &self.stack.callers));
        self.samples.push(time / f64::from(u32::try_from(found).unwrap_or(u32::MAX)));
    }
}
