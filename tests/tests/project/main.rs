//! Tests of the project itself: clauses and their coverage, citations, guides, and the files of
//! fuzzing campaigns.

mod arrows;
mod campaigns;
mod clauses;
mod contributing;
mod coverage;
mod references;
