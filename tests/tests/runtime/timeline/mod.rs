//! Tests of drawn histories: in the terminal, as a page, and as a page in a browser; and of the
//! book's site in a browser.

mod browser;
mod external;
mod rows;
mod searched;
mod seen;
mod site;
mod story;

use crate::timeline::browser::Browser;
use crate::timeline::story::{ENDING, MAIN, SAMPLER, Story, WORKER, frozen_in_malloc, long, waits};
use clr_explore::{BlockReason, Edge, History, ThreadKind, ThreadStatus, Turn, TurnEvent};
use clr_story::timeline::{RowOptions, Timeline};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
