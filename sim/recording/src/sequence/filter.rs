//! The callbacks that recorded sequences leave out, as the README of their files lists them.

use super::{Sequence, SequenceCallback, SequenceLine};

/// Functions by which the program begins and ends the recording.
const OWN: [&str; 2] = ["App.Begin", "App.End"];
/// Beginnings of the names of the framework's functions and of IL stubs.
const FRAMEWORK: [&str; 3] = ["System.", "Internal.", "IL_STUB"];
/// The framework's functions whose transitions are recorded.
const EXCEPTION_HANDLING: &str = "System.Runtime.EH.";
/// The shape in which a thread always comes back to cooperative mode during a suspension.
const COMES_BACK: &str = "gc_running";
/// The shape in which an assembly is unloaded: other GCs came in each run at other times.
const UNLOADS: &str = "load_context";
/// The shape with the numbers of allocated objects.
const COUNTS_OBJECTS: &str = "gc_finalizer";

impl Sequence {
    /// Returns the simulated lines that a recording has, too.
    #[must_use]
    pub fn filtered<'l>(&self, simulated: &'l [SequenceLine]) -> Vec<&'l SequenceLine> {
        let (mut suspender, mut is_gc) = (None, false);
        let keeps = |line: &&SequenceLine| {
            let SequenceLine::Callback(callback) = line else { return true };
            if callback.name == "RuntimeSuspendStarted" {
                suspender = callback.thread;
                is_gc = callback.arguments == "GC";
            }
            let is_by_chance =
                self.shape == UNLOADS && is_gc && callback.name.starts_with("Runtime");
            !is_by_chance && self.keeps(callback, suspender)
        };
        simulated.iter().filter(keeps).collect()
    }

    /// Returns true if a recording has such a callback. The runtime was last suspended by a thread with this number.
    fn keeps(&self, callback: &SequenceCallback, suspender: Option<u32>) -> bool {
        let about = callback.arguments.split(' ').next().unwrap_or_default();
        let about = about.strip_prefix("dynamic:").unwrap_or(about);
        let is_framework = FRAMEWORK.iter().any(|prefix| about.starts_with(prefix));
        match callback.name.as_str() {
            "Enter" | "Leave" | "Tailcall" => !is_framework && !OWN.contains(&about),
            "ManagedToUnmanagedTransition" | "UnmanagedToManagedTransition" => {
                !is_framework || about.starts_with(EXCEPTION_HANDLING)
            }
            "JITCompilationStarted"
            | "JITCompilationFinished"
            | "ClassLoadStarted"
            | "ClassLoadFinished"
            | "DynamicMethodJITCompilationStarted"
            | "DynamicMethodJITCompilationFinished" => !is_framework,
            // Threads that come back by chance during a suspension report themselves.
            "RuntimeThreadSuspended" | "RuntimeThreadResumed" => {
                self.shape == COMES_BACK || callback.thread == suspender
            }
            // It says no name, and comes for classes of the framework, too.
            "ClassUnloadFinished" => false,
            "ObjectsAllocatedByClass" => self.shape == COUNTS_OBJECTS,
            _ => true,
        }
    }
}
