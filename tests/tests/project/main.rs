//! Tests of the project itself: coverage of clauses, citations, guides, runtimes, and the files of
//! fuzzing campaigns.

mod arrows;
mod campaigns;
mod contributing;
mod coverage;
mod references;
mod repository;
mod runtimes;
