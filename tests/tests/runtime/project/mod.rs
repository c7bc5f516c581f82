//! Tests of the project itself: coverage and evidence of clauses, labels of expectations, citations, guides, runtimes, and the
//! files of fuzzing campaigns.

mod additions;
mod arrows;
mod book;
mod bugs;
mod callbacks;
mod callers;
mod campaigns;
mod circles;
mod contributing;
mod coverage;
mod dictionaries;
mod evidence;
mod figures;
mod fixtures;
mod labels;
mod lines;
mod outputs;
mod packages;
mod references;
mod repository;
mod runtimes;
mod surface;
mod wanted;
mod workflows;

use crate::gallery::{calls, gallery};
use crate::project::coverage::measured;
use crate::project::repository::{CREATED, cargo_metadata, files, names, path, read};
use clr_runtime::clause::{self, Chapter, Clause, ClauseEntry, Support, entries, is_source_read};
use clr_runtime::generation::{Family, Generation, Generations, Known, Product, QUESTIONS};
use clr_sim::book::references::{Kind, all, find};
use clr_tests::coverage::{By, Cover, Coverage, DIED, HOLES, RecordedCall, TESTED, outcome_word};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
