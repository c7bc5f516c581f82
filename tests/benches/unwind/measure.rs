//! Interleaved rounds, and the statistics of their samples.

use crate::contenders::{CONTENDERS, Contender, Walk};
use crate::images::Images;
use crate::stacks::{Frame, Stack};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Minimum number of frames that one sample unwinds: long against the clock's resolution, short
/// against the times for which a machine runs faster or slower.
const FRAMES_PER_SAMPLE: u32 = 4096;

/// Nanoseconds, one for each round.
pub(crate) type Samples = Vec<f64>;

/// Stacks, and the contenders that walk them.
pub(crate) struct Workload<'i> {
    stacks: Vec<Stack>,
    frames: u32,
    passes: u32,
    walks: Vec<Walk<'i>>,
    /// Nanoseconds per frame of each contender.
    pub(crate) samples: Vec<Samples>,
    callers: Vec<Frame>,
}

impl<'i> Workload<'i> {
    /// Creates a workload of stacks that all contenders agree on. Walking them once warms the
    /// caches.
    ///
    /// # Panics
    /// If a contender does not walk a stack as it should.
    pub(crate) fn new(images: &'i Images, stacks: Vec<Stack>) -> Self {
        let mut walks: Vec<_> =
            CONTENDERS.iter().map(|contender| (contender.make)(images)).collect();
        for (contender, walk) in CONTENDERS.iter().zip(&mut walks) {
            for stack in &stacks {
                assert!(is_right(contender, walk, stack), "{} goes wrong", contender.name);
            }
        }
        let frames = stacks.iter().map(|stack| stack.callers.len()).sum::<usize>() as u32;
        let longest = stacks.iter().map(|stack| stack.callers.len()).max().unwrap_or(0);
        Self {
            stacks,
            frames,
            passes: FRAMES_PER_SAMPLE.div_ceil(frames),
            samples: vec![Samples::new(); walks.len()],
            walks,
            callers: vec![Frame::default(); longest],
        }
    }

    pub(crate) fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    pub(crate) fn frame_count(&self) -> u32 {
        self.frames
    }

    /// Takes one sample of each contender, and begins with another one each time: the first brings the
    /// stacks into the processor's caches for all.
    pub(crate) fn round(&mut self) {
        let first = self.samples.first().map_or(0, Samples::len) % self.walks.len();
        let (before, from_first) = (0..first, first..self.walks.len());
        for at in from_first.chain(before) {
            let (walk, samples) = (&mut self.walks[at], &mut self.samples[at]);
            let start = Instant::now();
            for _ in 0..self.passes {
                for stack in &self.stacks {
                    let callers = &mut self.callers[..stack.callers.len()];
                    black_box(walk(black_box(stack), callers));
                    black_box(callers);
                }
            }
            samples.push(nanoseconds(start.elapsed()) / f64::from(self.frames * self.passes));
        }
    }
}

/// Returns true if all contenders find all callers of `stack`.
pub(crate) fn all_agree(images: &Images, stack: &Stack) -> bool {
    CONTENDERS.iter().all(|contender| is_right(contender, &mut (contender.make)(images), stack))
}

fn is_right(contender: &Contender, walk: &mut Walk<'_>, stack: &Stack) -> bool {
    let mut callers = vec![Frame::default(); stack.callers.len()];
    let found = walk(stack, &mut callers);
    !contender.unwinds || (found == callers.len() && callers == stack.callers)
}

pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
