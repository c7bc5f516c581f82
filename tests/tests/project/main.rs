//! Tests of the project itself: coverage and evidence of clauses, citations, guides, runtimes, and the
//! files of fuzzing campaigns.

mod arrows;
mod campaigns;
mod contributing;
mod coverage;
mod evidence;
mod references;
mod repository;
mod runtimes;
