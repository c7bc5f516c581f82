//! Tests of the project itself: clauses and their coverage, citations, and the files of fuzzing campaigns.

mod arrows;
mod campaigns;
mod clauses;
mod coverage;
mod references;
