//! The lifetimes of methods: which method had an id, or was at an address, when a sample was taken.
//!
//! A runtime uses the id of a freed dynamic method again, often for the next one, and its memory for other code. A
//! sample is named some time after it was taken. So the end of each method is kept for some seconds, with what was
//! known of it, and a question has a time.
//!
//! The runtime does not announce the ends of methods that a collectible module takes along, nor of those that are generic
//! over a type in it: .NET 8.0.34 and 9.0.23 make ModuleUnloadStarted alone. So each method has its modules.
//!
//! Only ends are compared with times. Other threads may execute a method before its callback, so its beginning is
//! not known; but a method on a stack does not end.

use crate::lock::lock;
use crate::os;
use crate::profile::Label;
use clr_com::ModuleId;
use clr_walker::profiling::FunctionId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

/// The time after which no sample from before an end is named any more.
const KEPT: Duration = Duration::from_secs(10);

/// The methods of the process that have ended, and the names of the dynamic ones that have not.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The names of dynamic methods that live. Nobody can be asked after the end.
    dynamic: HashMap<FunctionId, Label>,
    /// The modules without which a method that lives cannot be, and the other way round.
    modules: HashMap<FunctionId, Vec<ModuleId>>,
    methods: HashMap<ModuleId, HashSet<FunctionId>>,
    /// How many methods with an id have ended.
    ends: HashMap<FunctionId, u64>,
    /// The last ends, in the order of time.
    last: VecDeque<Ended>,
}

/// A method that has ended.
#[derive(Debug)]
struct Ended {
    /// The time of the end ([`os::now`]).
    at: u64,
    function: FunctionId,
    /// Its number among the methods with this id.
    lifetime: u64,
    is_dynamic: bool,
    /// The name of a dynamic method, if its beginning was seen.
    label: Option<Label>,
    /// The addresses of its code (VA).
    bodies: Vec<Range<u64>>,
}

/// One of the methods that have had an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// Its number, from 0.
    pub(crate) number: u64,
    /// True if it has ended.
    pub(crate) has_ended: bool,
    /// The name of a dynamic method.
    pub(crate) label: Option<Label>,
}

impl Lifetimes {
    /// Notes a dynamic method and its name, while it can be asked for.
    pub(crate) fn begin_dynamic(&self, function: FunctionId, label: Label) {
        lock(&self.0).dynamic.insert(function, label);
    }

    /// Returns true if the modules of a method are known.
    pub(crate) fn has_modules(&self, function: FunctionId) -> bool {
        lock(&self.0).modules.contains_key(&function)
    }

    /// Notes the modules with which a method ends.
    pub(crate) fn set_modules(&self, function: FunctionId, modules: Vec<ModuleId>) {
        let mut known = lock(&self.0);
        for module in &modules {
            known.methods.entry(*module).or_default().insert(function);
        }
        known.modules.insert(function, modules);
    }

    /// Returns the methods that end with a module.
    pub(crate) fn methods(&self, module: ModuleId) -> Vec<FunctionId> {
        let known = lock(&self.0);
        let mut methods: Vec<_> =
            known.methods.get(&module).into_iter().flatten().copied().collect();
        methods.sort_unstable();
        methods
    }

    /// Notes the end of a method, before its memory is used again. `bodies`: its code (VA).
    pub(crate) fn end(&self, function: FunctionId, is_dynamic: bool, bodies: Vec<Range<u64>>) {
        let mut known = lock(&self.0);
        // The time is read under the lock, so that the list is in order.
        let at = os::now();
        let count = known.ends.entry(function).or_default();
        let lifetime = *count;
        *count += 1;
        let label = known.dynamic.remove(&function);
        let is_dynamic = is_dynamic || label.is_some();
        for module in known.modules.remove(&function).unwrap_or_default() {
            if let Some(methods) = known.methods.get_mut(&module) {
                methods.remove(&function);
                if methods.is_empty() {
                    known.methods.remove(&module);
                }
            }
        }
        known.last.push_back(Ended { at, function, lifetime, is_dynamic, label, bodies });
        let kept = at.saturating_sub(KEPT.as_nanos() as u64);
        let old = known.last.iter().take_while(|ended| ended.at < kept).count();
        known.last.drain(..old);
    }

    /// Returns the method that had this id at a time.
    pub(crate) fn of(&self, function: FunctionId, time: u64) -> Lifetime {
        let known = lock(&self.0);
        if let Some(ended) = known.first_after(time, |ended| ended.function == function) {
            let (number, label) = (ended.lifetime, ended.label.clone());
            return Lifetime { number, has_ended: true, label };
        }
        let number = known.ends.get(&function).copied().unwrap_or_default();
        let label = known.dynamic.get(&function).cloned();
        Lifetime { number, has_ended: false, label }
    }

    /// Returns the method whose code was at `address` (VA) at a time and which has ended since; and whether it was
    /// a dynamic one.
    pub(crate) fn ended_at(&self, address: u64, time: u64) -> Option<(FunctionId, bool)> {
        let known = lock(&self.0);
        let has = |ended: &Ended| ended.bodies.iter().any(|body| body.contains(&address));
        let ended = known.first_after(time, has)?;
        Some((ended.function, ended.is_dynamic))
    }
}

impl Known {
    /// Returns the first end after a time that `is_it`: of all methods with an id, or at an address, only one
    /// lived then.
    fn first_after(&self, time: u64, is_it: impl Fn(&Ended) -> bool) -> Option<&Ended> {
        let after = self.last.iter().rev().take_while(|ended| ended.at > time);
        after.filter(|ended| is_it(ended)).last()
    }
}
