//! A sampler of the own process, without a runtime, on Linux: what all samplers begin with, and all that one needs that counts
//! native frames alone.
//!
//! ```text
//! cargo run -p clr-sampler --example native
//! ```
//!
//! The thread that samples sends a signal to another one. Its handler walks the stack that it has interrupted, and hands
//! the walk over; names are made afterwards. `cargo test` runs it, too.
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), allow(unused))]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sampler {
    use clr_sampler::profile::{Format, Label, Profile};
    use clr_sampler::{Interrupted, NativeImages, NoRuntime, Slot, os};
    use clr_unwind::Registers;
    use clr_walker::mixed::{Completeness, FrameKind, Policy, WalkBuffer, Walker};
    use clr_walker::profiling::{StackBounds, ThreadId};
    use std::sync::OnceLock;
    use std::time::Duration;

    /// What the handler needs. It lives as long as the process: a signal may come at any time.
    static SAMPLER: OnceLock<Sampler> = OnceLock::new();

    struct Sampler {
        images: NativeImages,
        slot: Slot<Sample>,
    }

    /// A walk, and the stack that it is of.
    struct Sample {
        stack: Option<StackBounds>,
        buffer: WalkBuffer,
    }

    /// A thread that can be sampled.
    #[derive(Clone, Copy)]
    pub(super) struct Target {
        tid: i32,
        stack: StackBounds,
    }

    impl Target {
        /// Describes the calling thread. The bounds of a stack cannot be asked for in a handler.
        pub(super) fn this_thread() -> Option<Self> {
            Some(Self { tid: os::own_tid(), stack: os::own_stack()? })
        }
    }

    /// Takes samples of a thread for as long as `is_wanted`. Returns the profile in the folded format, and how many of how
    /// many stacks are whole.
    ///
    /// # Errors
    /// A text for people. A process can have one sampler.
    pub(super) fn sample(
        target: Target,
        pause: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(String, u32, u32), String> {
        let images = NativeImages::new(|text| eprintln!("native: {text}"));
        let slot = Slot::new(Sample { stack: None, buffer: WalkBuffer::new(256) });
        SAMPLER.set(Sampler { images, slot }).map_err(|_| "there is a sampler")?;
        let sampler = SAMPLER.get().ok_or("there is no sampler")?;
        if !os::install(on_signal) {
            return Err("the signal handler cannot be installed".to_owned());
        }
        let walker = Walker::new(&NoRuntime, &sampler.images, Policy::Signal);
        let (mut profile, mut whole, mut all) = (Profile::default(), 0, 0);
        while is_wanted() {
            sampler.images.look();
            let prepare = |sample: &mut Sample| sample.stack = Some(target.stack);
            // SAFETY: only this thread asks, and the answer is used until the end of the turn.
            if let Some(sample) = unsafe { sampler.slot.ask(target.tid, 0, prepare) } {
                let Ok(stack) = walker.stitch(&sample.buffer);
                let label = |kind| match kind {
                    FrameKind::Native { image, rva } => {
                        sampler.images.label(image + u64::from(rva))
                    }
                    _ => Label { name: "[unknown]".to_owned(), file: String::new() },
                };
                let frames = stack.frames.iter().rev();
                let numbers = frames.map(|frame| profile.number(&label(frame.kind))).collect();
                profile.add(numbers);
                all += 1;
                whole += u32::from(stack.completeness() == Completeness::Whole);
            }
            std::thread::sleep(pause);
        }
        let text = profile.write(Format::Folded, "native");
        Ok((String::from_utf8_lossy(&text).into_owned(), whole, all))
    }

    /// Walks the interrupted stack. Nothing here allocates, takes a lock or waits.
    fn on_signal(value: usize, registers: &Registers) {
        let Some(Sampler { images, slot }) = SAMPLER.get() else { return };
        slot.fill(value as u32, |sample| {
            let Some(stack) = sample.stack else { return };
            // SAFETY: the signal was sent to the thread with this stack, and this is its handler.
            let thread = unsafe { Interrupted::new(ThreadId(0), stack, registers) };
            let walker = Walker::new(&NoRuntime, images, Policy::Signal);
            let Ok(()) = walker.take(&thread, &mut sample.buffer);
        });
    }
}

/// Works for some time, to be sampled.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn example() -> Result<(String, u32, u32), String> {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[inline(never)]
    fn work(depth: u32, is_over: &AtomicBool) -> u64 {
        if depth > 0 {
            return std::hint::black_box(work(depth - 1, is_over)) / 2;
        }
        let mut sum = 0;
        while !is_over.load(Ordering::Relaxed) {
            sum ^= std::hint::black_box(vec![1_u64; 100]).iter().sum::<u64>();
        }
        sum
    }

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let is_over = &is_over;
        scope.spawn(move || {
            let _ = send.send(sampler::Target::this_thread());
            std::hint::black_box(work(10, is_over));
        });
        let end = Instant::now() + Duration::from_millis(300);
        let target = receive.recv().ok().flatten();
        let sampled = target.ok_or("no thread").map_err(str::to_owned).and_then(|target| {
            sampler::sample(target, Duration::from_millis(1), || Instant::now() < end)
        });
        is_over.store(true, Ordering::Relaxed);
        sampled
    })
}

fn main() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    match example() {
        Ok((text, whole, all)) => println!("{text}{whole} of {all} stacks are whole"),
        Err(why) => eprintln!("native: {why}"),
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[test]
fn every_stack_goes_from_the_thread_s_start_to_its_work() {
    let (text, whole, all) = example().unwrap();
    assert!(all > 20 && whole == all, "{whole} of {all}\n{text}");
    let depth = |line: &str| line.split(';').count();
    assert!(text.lines().all(|line| depth(line) > 12 && !line.contains("[unknown]")), "{text}");
}
