//! Walks that are made again over a copy of the stack.

use clr_sampler::{CopiedStack, NoRuntime, Retry, Sample};
use clr_unwind::{CodeMap, CodeRegion, Convention, Gpr, Run, RuntimeFunction, SharedCodeMap};
use clr_walker::mixed::{Policy, Walker};
use clr_walker::profiling::{ModuleSource, StackBounds, StackRoot, ThreadId};
use std::ops::Deref;

const HEAP: u64 = 0x7F00_0000_0000;
const STACK: u64 = 0x7FFF_0000_0000;

struct Modules(SharedCodeMap<'static>);

impl ModuleSource for Modules {
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
        self.0.read()
    }
}

/// A method at `at`: a call, and 16 bytes of stack.
fn method(at: u64) -> CodeRegion<'static> {
    let mut code = vec![0x90; 0x40];
    // sub rsp, 16; call
    code[..4].copy_from_slice(&[0x48, 0x83, 0xEC, 0x10]);
    code[0x1B] = 0xE8;
    let rva = (at - HEAP) as u32;
    let unwind_info = vec![1, 4, 1, 0, 4, 0x12, 0, 0];
    let runs = vec![Run { rva, bytes: code }, Run { rva: rva + 0x100, bytes: unwind_info }];
    let function = RuntimeFunction { begin: rva, end: rva + 0x40, unwind_info: rva + 0x100 };
    let region = CodeRegion::generated(at..at + 0x40, HEAP, &[function], runs).unwrap();
    region.with_convention(Convention::SystemV)
}

/// A sample of a thread in the method `leaf`, called by `caller`, which the thread's first function
/// has called, on a stack that has changed since.
fn sample(modules: &Modules, leaf: u64, caller: u64) -> Sample {
    let mut sample = Sample::new(0x100);
    sample.thread = ThreadId(7);
    sample.nanoseconds = 5;
    sample.stack =
        StackBounds { limit: STACK, base: STACK + 0x80, root: StackRoot::ReturnAddress(0) };
    sample.registers.rip = leaf + 0x10;
    sample.registers.set(Gpr::Rsp, STACK + 0x40);
    sample.copy_from = STACK + 0x40;
    let words = [0, 0, caller + 0x20, 0, 0, 0, 0, 0];
    sample.copy = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    let stack = CopiedStack {
        registers: sample.registers,
        bounds: sample.stack,
        from: sample.copy_from,
        copy: sample.copy.clone(),
        thread_pointer: sample.thread_pointer,
    };
    stack.walk(&NoRuntime, modules, &mut sample.buffer).unwrap();
    sample
}

/// Returns a map that has the method `leaf` alone, and the addresses of `leaf` and its caller.
fn without_caller() -> (Modules, u64, u64) {
    let (leaf, caller) = (HEAP + 0x1000, HEAP + 0x2000);
    let modules = Modules(SharedCodeMap::default());
    modules.0.update(|map| map.insert(method(leaf))).unwrap();
    (modules, leaf, caller)
}

fn frames(modules: &Modules, sample: &Sample) -> Vec<u64> {
    let walker = Walker::new(&NoRuntime, modules, Policy::Signal);
    let Ok(stack) = walker.stitch(&sample.buffer);
    stack.frames.iter().map(|frame| frame.ip).collect()
}

#[test]
fn a_walk_goes_on_when_the_map_has_the_callers_code() {
    let (modules, leaf, caller) = without_caller();
    let sample = sample(&modules, leaf, caller);
    let mut late = Retry::default();
    assert!(late.keep(&sample, 1));
    assert!(late.finish(&NoRuntime, &modules, 1, false).is_none(), "the map is the same");
    assert!(late.finish(&NoRuntime, &modules, 2, false).is_none(), "it has got something else");
    modules.0.update(|map| map.insert(method(caller))).unwrap();
    assert!(late.finish(&NoRuntime, &modules, 2, false).is_none(), "nothing is known to be new");
    let finished = late.finish(&NoRuntime, &modules, 3, false).unwrap();
    assert!(finished.is_late && !finished.buffer.lacks_code());
    assert_eq!((finished.thread, finished.nanoseconds), (ThreadId(7), 5));
    assert_eq!((finished.copy_from, &finished.copy), (sample.copy_from, &sample.copy));
    assert_eq!(frames(&modules, finished), [leaf + 0x10, caller + 0x20]);
    assert!(late.finish(&NoRuntime, &modules, 4, true).is_none(), "none waits");
}

#[test]
fn a_sample_that_stays_short_is_finished_in_the_end() {
    let (modules, leaf, caller) = without_caller();
    let sample = sample(&modules, leaf, caller);
    let mut late = Retry::default();
    assert!(late.keep(&sample, 1));
    assert!(late.finish(&NoRuntime, &modules, 2, false).is_none());
    let finished = late.finish(&NoRuntime, &modules, 2, true).unwrap();
    assert!(finished.buffer.lacks_code());
}

#[test]
fn whole_walks_and_those_beyond_the_limit_do_not_wait() {
    let (modules, leaf, caller) = without_caller();
    let short = sample(&modules, leaf, caller);
    modules.0.update(|map| map.insert(method(caller))).unwrap();
    let mut late = Retry::default();
    assert!(!late.keep(&sample(&modules, leaf, caller), 1));
    let mut without_copy = sample(&Modules(SharedCodeMap::default()), leaf, caller);
    assert!(without_copy.buffer.lacks_code());
    without_copy.copy.clear();
    assert!(!late.keep(&without_copy, 1));
    assert_eq!((0..100).filter(|_| late.keep(&short, 1)).count(), 64);
}
