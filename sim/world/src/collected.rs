//! The callbacks of GCs.

use super::step::Step;
use super::{Collection, World};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_unwind::Gpr;

impl World<'_> {
    /// Returns the collection that a thread asks for in r10, if its program asks for any but a full one.
    pub(super) fn wanted_collection(&self, thread: usize) -> Option<Collection> {
        Collection::from_number(self.registers_of(thread)?.get(Gpr::R10))
    }

    /// Returns the steps between the suspension and the resumption of the other threads.
    ///
    /// A full GC that the program asks for moves nothing (recorded on 3.1.3, 8.0.34, 9.0.23 and 10.0.15), and one of
    /// generation 0 reports nothing if no object was made since the last one. Others move objects each second time
    /// (assumed).
    pub(super) fn collected(&mut self, thread: usize) -> Vec<Step> {
        let collection = self.threads.get(thread).and_then(|one| one.collection);
        let moves = self.next_gc_moves();
        let known = self.made.at_last_gc();
        let has_new = self.made.note_gc();
        let is_full = matches!(collection, Some(Collection::Full | Collection::Compacting));
        self.made.mortal.collect_from(if is_full { 0 } else { known });
        let references: &[Kind] = match collection {
            None if moves => &[Kind::MovedReferences],
            None | Some(Collection::Full) => &[Kind::SurvivingReferences],
            Some(Collection::Compacting) => &[Kind::SurvivingReferences, Kind::MovedReferences],
            Some(Collection::Youngest | Collection::Young) => {
                if has_new {
                    &[Kind::SurvivingReferences]
                } else {
                    &[]
                }
            }
        };
        let mut steps = vec![Step::Callback(Kind::GarbageCollectionStarted)];
        steps.extend(has_new.then_some(Step::Callback(Kind::ObjectsAllocatedByClass)));
        if self.has_finalizer() {
            let queued = self.queue_finalizers();
            steps.extend(queued.then_some(Step::Callback(Kind::FinalizeableObjectQueued)));
        }
        steps.extend(references.iter().map(|kind| Step::Callback(*kind)));
        steps.extend([
            Step::Callback(Kind::RootReferences),
            Step::Callback(Kind::ObjectReferences),
            Step::Callback(Kind::GarbageCollectionFinished),
        ]);
        steps
    }
}
