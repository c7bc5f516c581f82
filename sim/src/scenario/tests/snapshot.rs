//! Snapshots of stacks placed by hand.

use super::parse;
