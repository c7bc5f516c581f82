//! The file that calls are appended to.

use super::hidden::{Fact, Hidden};
use super::mask::Mask;
use super::referenced_code::ReferencedCode;
use super::text::{self, References};
use super::walk::Walk;
use crate::output;
use clr_walker::profiling::FunctionId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// The code and functions of a walk that a file has already.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The facts about code, by address (VA).
    pub(super) facts: BTreeMap<u64, Fact>,
    pub(super) functions: BTreeSet<FunctionId>,
}

/// A file, and what was written to it.
///
/// Each call is one write, so that a process that dies loses at most its last call, and one that does not fit on the
/// disk leaves nothing. Lines that a walk refers to come before it.
#[derive(Debug)]
pub(super) struct Output {
    file: output::Output,
    /// Bytes that may still be written.
    left: u64,
    workload: String,
    mask: Mask,
    functions: BTreeMap<FunctionId, u32>,
    images: BTreeMap<u64, u32>,
    /// The ends of bodies of code, by their starts (VA).
    bodies: BTreeMap<u64, u64>,
    /// The facts about machine code that was written, by address (VA).
    facts: BTreeMap<u64, Fact>,
    /// Code that the runtime has freed since it was written.
    freed: Vec<Range<u64>>,
    /// Functions that have ended since they were written: their ids are used again.
    ended: BTreeSet<FunctionId>,
    walks: u32,
}

impl Output {
    /// Creates the file, with its first line. An older file is replaced, one that another process writes is not.
    pub(super) fn create(
        path: &Path,
        header: &str,
        limit: u64,
        workload: String,
    ) -> io::Result<Self> {
        let mut file = output::Output::create(path, Duration::ZERO)?;
        file.write(header.as_bytes())?;
        Ok(Self {
            file,
            left: limit.saturating_sub(header.len() as u64),
            workload,
            mask: Mask::default(),
            functions: BTreeMap::new(),
            images: BTreeMap::new(),
            bodies: BTreeMap::new(),
            facts: BTreeMap::new(),
            freed: Vec::new(),
            ended: BTreeSet::new(),
            walks: 0,
        })
    }

    /// Returns the code and functions of a walk that the file has already.
    pub(super) fn known(&self, walk: &Walk) -> Known {
        let fact = |ip: u64| Some((ip, *self.facts.get(&ip)?));
        let functions = walk.answer.reports.iter().filter_map(|report| report.function);
        Known {
            facts: walk.passed.iter().filter_map(|frame| fact(frame.ip)).collect(),
            functions: functions.filter(|id| self.functions.contains_key(id)).collect(),
        }
    }

    /// Remembers that a function has ended and its code is freed: others may get its id and its addresses.
    pub(super) fn free(&mut self, function: FunctionId, starts: &[u64]) {
        if self.functions.contains_key(&function) {
            self.ended.insert(function);
        }
        let ends = starts.iter().filter_map(|start| self.bodies.get_key_value(start));
        self.freed.extend(ends.map(|(start, end)| *start..*end));
    }

    /// Appends a walk. Returns false if it does not fit: the file is then full, or memory of code
    /// or an id was used again, which a file cannot say.
    pub(super) fn append(
        &mut self,
        walk: &Walk,
        hidden: &Hidden,
        met: &ReferencedCode,
        is_code: &dyn Fn(u64) -> bool,
    ) -> io::Result<bool> {
        let is_freed = |ip: u64| self.freed.iter().any(|range| range.contains(&ip));
        if walk.passed.iter().any(|frame| is_freed(frame.ip)) {
            return Ok(false);
        }
        let reported = walk.answer.reports.iter().filter_map(|report| report.function);
        let passed = met.bodies.values().filter_map(|body| body.function);
        if reported.chain(passed).any(|function| self.ended.contains(&function)) {
            return Ok(false);
        }
        let clashes = |start: u64, end: u64| {
            let before = self.bodies.range(..end).next_back();
            before.is_some_and(|(other, last)| *last > start && (*other, *last) != (start, end))
        };
        if met.bodies.values().any(|body| clashes(body.range.start, body.range.end)) {
            return Ok(false);
        }
        let mut lines = String::new();
        for image in met.images.values() {
            let next = self.images.len() as u32 + 1;
            if let Entry::Vacant(place) = self.images.entry(image.base) {
                place.insert(next);
                lines += &text::image(next, image);
            }
        }
        for method in met.methods.values() {
            let next = self.functions.len() as u32 + 1;
            if let Entry::Vacant(place) = self.functions.entry(method.id) {
                place.insert(next);
                lines += &text::function(next, method);
            }
        }
        for body in met.bodies.values() {
            let next = self.bodies.len() as u32 + 1;
            if self.bodies.insert(body.range.start, body.range.end).is_none() {
                let function = body.function.and_then(|id| self.functions.get(&id).copied());
                let image = body.image.and_then(|base| self.images.get(&base).copied());
                lines += &text::code(next, function, image, body);
            }
        }
        for (address, code) in &met.bytes {
            let fact = met.facts.get(address).copied();
            if let Some(fact) = fact
                && self.facts.insert(*address, fact).is_none()
            {
                lines += &text::bytes(*address, code);
            }
        }
        let functions = &self.functions;
        let function = |id| functions.get(&FunctionId(id)).copied();
        let mut references =
            References { met, hidden, is_code, mask: &mut self.mask, function: &function };
        lines += &references.walk(self.walks + 1, &self.workload, walk);
        let Some(left) = self.left.checked_sub(lines.len() as u64) else {
            self.left = 0;
            return Ok(false);
        };
        self.file.write(lines.as_bytes())?;
        self.left = left;
        self.walks += 1;
        Ok(true)
    }

    /// Returns true if no more can be written.
    pub(super) const fn is_full(&self) -> bool {
        self.left == 0
    }
}
