//! The table.

use crate::DEPTHS;
use crate::adding::Adding;
use crate::contenders::{
    CONTENDERS, FRAMEHOP, FRAMEHOP_CACHED, FRAMEHOP_NEW_CACHE, OURS, OURS_CACHED,
};
use crate::first::First;
use crate::measure::{Samples, Workload};
use crate::summary::Summary;
use std::fmt::Write as _;

/// All measurements.
pub(crate) struct Report<'i> {
    pub(crate) rounds: u32,
    /// Number of recorded stacks, and of call sites, that a contender gets wrong.
    pub(crate) left_out: [usize; 2],
    /// Number of call sites in the images that deep stacks are made of.
    pub(crate) sites: usize,
    /// Real stacks, then those of each of [`DEPTHS`].
    pub(crate) workloads: [Workload<'i>; 3],
    pub(crate) adding: Adding,
    pub(crate) first: First<'i>,
}

impl Report<'_> {
    /// Returns the table and its explanation.
    pub(crate) fn markdown(&self) -> String {
        let [shallow, deep] = DEPTHS;
        let mut text = format!(
            "| ns per frame | restores | real stacks | depth {shallow} | depth {deep} |\n\
             | --- | --- | --: | --: | --: |\n"
        );
        for (n, contender) in CONTENDERS.iter().enumerate() {
            let cells = self.cells(|samples| Summary::of(samples[n].iter().copied()));
            let (name, restores) = (contender.name, contender.restores);
            writeln!(text, "| {name} | {restores} | {cells} |").expect("a String takes all");
        }
        text.push('\n');
        text.push_str(&self.explanation());
        text.push('\n');
        text
    }

    fn cells(&self, summary: impl Fn(&[Samples]) -> Summary) -> String {
        let cell = |workload: &Workload<'_>| format!("{:.1}", summary(&workload.samples));
        self.workloads.each_ref().map(cell).join(" | ")
    }

    /// Returns the time of a contender as a multiple of `ours`, workload by workload.
    fn ratios(&self, theirs: impl Fn(&[Samples], usize) -> f64, ours: usize) -> String {
        let [real, shallow, deep] = self.workloads.each_ref().map(|workload| {
            let samples = &workload.samples;
            let ratio = |round: usize| theirs(samples, round) / samples[ours][round];
            Summary::of((0..samples[ours].len()).map(ratio)).median
        });
        format!("{real:.1}, {shallow:.1} and {deep:.1}")
    }

    fn explanation(&self) -> String {
        let [real, ..] = &self.workloads;
        let uncached = self.ratios(|samples, round| samples[FRAMEHOP][round], OURS);
        let walking_only = self.ratios(
            |samples, round| samples[FRAMEHOP][round] - samples[FRAMEHOP_NEW_CACHE][round],
            OURS,
        );
        let cached = self.ratios(|samples, round| samples[FRAMEHOP_CACHED][round], OURS_CACHED);
        let [depth_64, depth_512] = DEPTHS;
        let [real_left_out, sites_left_out] = self.left_out;
        let [few, many] = Adding::ENTRIES;
        let adding = |samples: &Samples| Summary::of(samples.iter().copied()).median;
        let [ours, framehop] = [&self.adding.ours, &self.adding.framehop].map(adding);
        let [ours_few, ours_many] = self.adding.by_entries.each_ref().map(adding);
        format!(
            "A map keeps the rules of steps that were made, in a limited number of slots; the last line \
             is what a step costs without, for instance in generated code. Medians of {rounds} interleaved rounds of one run, in changing order, ± half the distance between the \
             quartiles, on {os} {arch}. Every contender reads the same memory and finds the same rip \
             and rsp in every frame. Real stacks: {real_stacks} recorded ones of code by gcc and \
             clang, {real_frames} frames (left out because a contender gets them wrong: \
             {real_left_out}). Depth {depth_64} and {depth_512}: a stack each, laid out by the unwind \
             codes of the same code, with {distinct_64} and {distinct_512} different return addresses \
             (left out for the same reason: {sites_left_out} of {sites}). A warm cache has seen all \
             stacks of its column. framehop with a new cache for every walk takes {uncached} times as \
             long as clr-unwind with none but the map's ({walking_only} times without the making of the cache); \
             with warm caches it is {cached} times. Adding an image of {functions} functions takes \
             {ours:.0} ns (`PeImage::parse` and `CodeMap::insert_image`), framehop's `add_module` \
             with `object` {framehop:.0} ns; with {few} functions it takes {ours_few:.0} ns, with \
             {many} {ours_many:.0} ns. The first step from an address, which compiles its rule, takes \
             {first:.0} ns (depth {depth_512}, with a map that nobody has used).\n",
            first = adding(&self.first.samples),
            rounds = self.rounds,
            os = std::env::consts::OS,
            arch = std::env::consts::ARCH,
            real_stacks = real.stack_count(),
            real_frames = real.frame_count(),
            distinct_64 = self.sites.min(depth_64),
            distinct_512 = self.sites.min(depth_512),
            sites = self.sites + sites_left_out,
            functions = self.adding.functions(),
        )
    }
}
