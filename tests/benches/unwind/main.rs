//! Benchmark of steps, against other unwinders of Windows x64 code.
//!
//! `cargo bench -p clr-tests --bench unwind` prints a table. Without `--bench`, as `cargo test --benches` runs it, it takes one round only.

mod adding;
mod contenders;
mod first;
mod images;
mod measure;
mod report;
mod stacks;
#[path = "../shared/summary.rs"]
mod summary;

use adding::Adding;
use first::First;
use images::Images;
use measure::{Workload, all_agree};
use stacks::{CallSite, Random, Stack, call_sites, deep, recorded};

const ROUNDS: u32 = 301;
const DEPTHS: [usize; 2] = [64, 512];

fn main() {
    let is = |name: &str| std::env::args().any(|argument| argument == name);
    // Cargo passes `--bench` only to benchmarks.
    let quick = is("--test") || !is("--bench");
    let rounds = if quick { 1 } else { ROUNDS };

    let images = Images::load();
    let mut real = recorded(&images);
    let all_real = real.len();
    real.retain(|stack| all_agree(&images, stack));
    let mut random = Random::new();
    let mut sites = call_sites(&images);
    let all_sites = sites.len();
    // A thread stopped after its call is the harder case: peers take some jumps for tail calls.
    sites.retain(|site| all_agree(&images, &deep(&images, &[site], &mut random)));
    let left_out = [all_real - real.len(), all_sites - sites.len()];
    let [depth_64, depth_512] =
        DEPTHS.map(|depth| vec![deep_stack(&images, &sites, depth, &mut random)]);
    let mut first = First::new(&images, deep_stack(&images, &sites, DEPTHS[1], &mut random));

    let stacks = [real, depth_64, depth_512];
    let mut workloads = stacks.map(|stacks| Workload::new(&images, stacks));
    let mut adding = Adding::new();
    for _ in 0..rounds {
        for workload in &mut workloads {
            workload.round();
        }
        adding.round();
        first.round();
    }

    let report = report::Report { rounds, left_out, sites: sites.len(), workloads, adding, first };
    print!("{}", report.markdown());
}

/// Builds a stack of `depth` frames with as few repeated call sites as possible.
fn deep_stack(images: &Images, sites: &[CallSite], depth: usize, random: &mut Random) -> Stack {
    let mut shuffled: Vec<_> = sites.iter().collect();
    random.shuffle(&mut shuffled);
    let chosen: Vec<_> = shuffled.into_iter().cycle().take(depth).collect();
    deep(images, &chosen, random)
}
