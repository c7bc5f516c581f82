//! The lives of a program's objects.
//!
//! A text does not say what refers to an object. One that `new` makes lives as long as the method that made it runs, or a strong
//! handle holds it: of the program, or of the profiler (assumed). A GC collects it, if its generation is collected. Objects
//! that are thrown, or have finalizers, live for ever, and a GC that the profiler forces collects nothing (both assumed).

use super::allocated::Allocated;
use super::{ExceptionClass, World};
use clr_codegen::FunctionIndex;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{HeapKind, Object};
use clr_unwind::Position;
use core::hash::{Hash, Hasher};

/// The objects that can die.
#[derive(Clone, Debug, Default)]
pub(super) struct Mortal {
    homes: Vec<Home>,
    /// The GC in progress has still to look at the objects after this one.
    collects_from: Option<u64>,
}

/// An object, and the activation of the method that made it.
#[derive(Clone, Copy, Debug)]
struct Home {
    object: u64,
    thread: usize,
    /// Number of callers below it on the thread's stack.
    depth: usize,
    function: FunctionIndex,
}

/// Nothing that threads do depends on the lives of objects: states of a world that differ in these alone go on alike.
impl Hash for Mortal {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Mortal {
    /// Notes that a GC collects the objects after this one.
    pub(super) const fn collect_from(&mut self, object: u64) {
        self.collects_from = Some(object);
    }

    /// Lets an object live for ever.
    pub(super) fn keep(&mut self, object: u64) {
        self.homes.retain(|home| home.object != object);
    }
}

impl World<'_> {
    /// Notes the object that a thread has just made after another one, with its class and its home.
    pub(super) fn note_object(&mut self, thread: usize, before: u64) {
        let class = self.class_id(self.class_allocated(thread));
        let kind = Allocated::from_number(self.number_allocated(thread));
        let has_pinned = self.runtime.generation.family().is_core_since(5);
        let heap = match kind {
            Some(Allocated::Large) => HeapKind::Large,
            Some(Allocated::Pinned) if has_pinned => HeapKind::Pinned,
            _ => HeapKind::Generations,
        };
        let refers_to = if kind == Some(Allocated::Referring) { before } else { 0 };
        let made = Object { class, heap, refers_to, is_dead: false };
        self.runtime.objects.borrow_mut().make(made);
        let object = self.runtime.objects.borrow().made();
        if let Some((depth, function)) = self.innermost_method(thread) {
            self.made.mortal.homes.push(Home { object, thread, depth, function });
        }
    }

    /// Returns the innermost activation of a method of the program among the callers on a thread's stack.
    fn innermost_method(&self, thread: usize) -> Option<(usize, FunctionIndex)> {
        let callers = self.threads.get(thread)?.shadow_stack.callers();
        callers.iter().enumerate().rev().find_map(|(depth, caller)| {
            let function = self.linked.function_of(caller.registers.rip, caller.position)?;
            self.expanded.placed.contains(&function).then_some((depth, function))
        })
    }

    /// Returns true if an activation is still on its thread's stack.
    fn is_active(&self, home: &Home) -> bool {
        let Some(executed) = self.threads.get(home.thread) else { return false };
        let function = match executed.shadow_stack.callers().get(home.depth) {
            Some(caller) => self.linked.function_of(caller.registers.rip, caller.position),
            // The innermost frame is no caller.
            None => self
                .rip(home.thread)
                .and_then(|rip| self.linked.function_of(rip, Position::Interrupted)),
        };
        function == Some(home.function)
    }

    /// Collects the objects that nothing refers to, before the first callback of a GC that is about those that are left.
    pub(super) fn sweep_before(&mut self, kind: Kind) {
        if !matches!(kind, Kind::SurvivingReferences | Kind::MovedReferences | Kind::RootReferences)
        {
            return;
        }
        let Some(from) = self.made.mortal.collects_from.take() else { return };
        let homes = std::mem::take(&mut self.made.mortal.homes);
        let mut objects = self.runtime.objects.borrow_mut();
        let lives = |home: &Home| {
            home.object <= from
                || self.made.is_held(home.object)
                || objects.is_held(home.object)
                || self.is_active(home)
        };
        let (mut left, mut dead): (Vec<_>, Vec<_>) = homes.into_iter().partition(lives);
        // The newer object refers to the older one.
        while let Some(home) = dead.pop() {
            let is_referred_to = objects.alive().any(|(_, one)| one.refers_to == home.object);
            if is_referred_to {
                left.push(home);
            } else {
                objects.collect(home.object);
            }
        }
        left.sort_unstable_by_key(|home| home.object);
        drop(objects);
        self.made.mortal.homes = left;
    }

    /// Returns the `ClassID` of a class that the program or the runtime names, or 0.
    pub(super) fn class_id(&self, class: ExceptionClass) -> u64 {
        match class {
            ExceptionClass::Of(constructor) => {
                self.runtime.code.method(constructor).map_or(0, |(_, method)| method.class)
            }
            _ => 0,
        }
    }
}
