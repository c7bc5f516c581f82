//! The code map under a profiler's changes, beside the maps of the standard library.
//!
//! Run with `cargo bench -p clr-walker --bench code_map`.

use clr_walker::code_map::{CodeMap, CodeRegion, Run, SharedCodeMap};
use clr_walker::image::RuntimeFunction;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// Number of methods.
const METHODS: u64 = 100_000;
/// Number of look-ups of one measurement.
const LOOK_UPS: u64 = 5_000_000;
/// Base of the code heaps (VA), and distance of two methods in bytes.
const HEAP: u64 = 0x7F00_0000_0000;
const DISTANCE: u64 = 0x80;

fn main() {
    let regions: Vec<_> = (0..METHODS).map(scattered).map(method).collect();

    let start = Instant::now();
    let shared = SharedCodeMap::default();
    for region in &regions {
        shared.update(|map| map.insert(region.clone())).expect("methods do not overlap");
    }
    report("SharedCodeMap, a generation for each method", start, METHODS);

    let start = Instant::now();
    let mut map = CodeMap::new();
    for region in &regions {
        map.insert(region.clone()).expect("methods do not overlap");
    }
    report("CodeMap, methods one by one", start, METHODS);

    let start = Instant::now();
    let mut peer = BTreeMap::new();
    for region in &regions {
        peer.insert(region.start(), region.clone());
    }
    report("BTreeMap, methods one by one, no generations", start, METHODS);

    let start = Instant::now();
    for at in 0..LOOK_UPS {
        black_box(map.find(address(at)));
    }
    report("CodeMap, look-up", start, LOOK_UPS);

    let start = Instant::now();
    for at in 0..LOOK_UPS {
        let found = peer.range(..=address(at)).next_back();
        black_box(found.and_then(|(_, region)| Some((region, region.rva(address(at))?))));
    }
    report("BTreeMap, look-up", start, LOOK_UPS);

    let start = Instant::now();
    for at in 0..METHODS {
        shared.update(|map| map.remove(HEAP + scattered(at) * DISTANCE)).expect("it is there");
    }
    report("SharedCodeMap, removal one by one", start, METHODS);
}

fn report(what: &str, start: Instant, count: u64) {
    let (total, each) = (start.elapsed(), start.elapsed().as_nanos() / u128::from(count));
    println!("{what:46} {:6} ms {each:6} ns each", total.as_millis());
}

/// Returns numbers below [`METHODS`] in an order without a pattern, each once.
fn scattered(at: u64) -> u64 {
    at * 76_543 % METHODS
}

/// Returns an address in a method.
fn address(at: u64) -> u64 {
    HEAP + scattered(at % METHODS) * DISTANCE + at % 0x40
}

fn method(at: u64) -> CodeRegion<'static> {
    let begin = u32::try_from(at * DISTANCE).expect("the heap is below 4 GiB");
    let start = HEAP + u64::from(begin);
    let entry = RuntimeFunction { begin, end: begin + 0x40, unwind_info: begin + 0x40 };
    let runs = vec![Run { rva: begin, bytes: vec![0xCC; 0x48] }];
    CodeRegion::generated(start..start + 0x40, HEAP, &[entry], runs).expect("it is not empty")
}
