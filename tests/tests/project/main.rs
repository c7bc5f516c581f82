//! Tests of the project itself: coverage of clauses, citations, guides, and the files of
//! fuzzing campaigns.

mod arrows;
mod campaigns;
mod contributing;
mod coverage;
mod references;
mod repository;
