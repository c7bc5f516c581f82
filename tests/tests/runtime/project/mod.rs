//! Tests of the project itself: coverage and evidence of clauses, labels of expectations, citations, guides, runtimes, and the
//! files of fuzzing campaigns.

mod arrows;
mod bugs;
mod campaigns;
mod contributing;
mod coverage;
mod dictionaries;
mod evidence;
mod figures;
mod fixtures;
mod labels;
mod lines;
mod references;
mod repository;
mod runtimes;
mod workflows;
