//! The instructions of a function that were executed, with the judgements.

use crate::judge::{Answer, Wrong};
use crate::state::State;
use clr_unwind::RegisterSet;
use std::collections::{BTreeMap, BTreeSet};

/// An instruction of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Point {
    /// Length in bytes.
    pub(crate) len: u8,
    /// A number for each state that it was executed in.
    keys: Vec<u64>,
    /// rsp of the first state.
    rsp: Option<i64>,
    /// True if it was reached with another rsp.
    is_ambiguous: bool,
    /// Number of states in which the answer was right.
    pub(crate) right: u32,
    /// Number of states in which nothing could be said.
    not_judged: u32,
    /// The first wrong answer; few instructions have one.
    pub(crate) wrong: Option<Box<Wrong>>,
}

impl Point {
    /// Returns true if there is a state to execute: a new one, and fewer than `limit` before it.
    pub(crate) fn is_new(&self, key: u64, limit: usize) -> bool {
        self.keys.len() < limit && !self.keys.contains(&key)
    }

    /// Adds a state.
    pub(crate) fn add(&mut self, state: &State, key: u64) {
        if self.keys.is_empty() {
            self.rsp = state.rsp();
        } else if self.rsp != state.rsp() {
            self.is_ambiguous = true;
        }
        self.keys.push(key);
    }

    /// Adds the judgement of a state.
    pub(crate) fn judge(&mut self, answer: Answer) {
        match answer {
            Answer::Right => self.right += 1,
            Answer::NotJudged => self.not_judged += 1,
            Answer::Wrong(wrong) => {
                self.wrong.get_or_insert_with(|| Box::new(wrong));
            }
        }
    }

    /// Adds a wrong answer for the return address of the call here. The rules of Windows may differ there
    /// alone.
    pub(crate) fn judge_return_address(&mut self, wrong: Wrong) {
        if let Some(first) = &mut self.wrong {
            first.at_return_address = true;
        } else {
            (self.wrong, self.right) = (Some(Box::new(wrong)), 0);
        }
    }

    /// Returns true if the answer was right in every state.
    pub(crate) const fn is_right(&self) -> bool {
        self.right > 0 && self.wrong.is_none()
    }

    /// Returns the wrong answer, if every state has one.
    pub(crate) fn finding(&self) -> Option<&Wrong> {
        let certain = self.right == 0 && self.not_judged == 0 && !self.is_ambiguous;
        self.wrong.as_deref().filter(|_| certain)
    }
}

/// The execution of one function.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) points: BTreeMap<u32, Point>,
    /// The RVAs that the function calls directly.
    pub(crate) called: Vec<u32>,
    /// True if it returns, or ends in a tail call.
    pub(crate) returns: bool,
    /// The nonvolatile registers that it does not restore.
    pub(crate) not_restored: RegisterSet,
    /// True if a return did not find the return address, or rsp was loaded with a value from elsewhere:
    /// the function is not what the execution assumes.
    pub(crate) is_strange: bool,
    /// Number of calls that do not return, and of jumps that do not happen: the unwind data describes
    /// another state behind them.
    pub(crate) unfollowed: u32,
    /// Number of paths that end at bytes that are no known instruction.
    pub(crate) undecoded: u32,
    /// Number of jumps to addresses that are not known, within the function's frame.
    pub(crate) unknown_jumps: u32,
    /// The instructions from which a path leads to a return; known only of accused functions.
    pub(crate) returning: BTreeSet<u32>,
    /// True if the budget was used up.
    pub(crate) is_cut: bool,
}
