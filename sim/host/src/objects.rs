//! The objects of the program, as a profiler is told of them.

use crate::heap::{number_of, object_id};
use crate::inner::Inner;
use clr_com::{ClassId, ObjectId};
use clr_runtime::Object;

impl Inner {
    /// Returns a class by its number, or `System.Object` for 0: the class of objects for which a text names none (assumed).
    pub(crate) fn class_or_object(&self, class: u64) -> ClassId {
        let object = || self.stage().map_or(0, |stage| stage.runtime().metadata.object_class());
        ClassId(if class == 0 { object() } else { class })
    }

    /// Returns the objects that are alive, with their numbers.
    pub(crate) fn alive(&self) -> Vec<(u64, Object)> {
        self.stage().map_or_else(Vec::new, |one| one.runtime().objects.borrow().alive().collect())
    }

    /// Returns an object by its number, alive or not.
    fn object_made(&self, number: u64) -> Object {
        let found = self.stage().and_then(|one| one.runtime().objects.borrow().get(number));
        found.unwrap_or_default()
    }

    /// Returns the class of an object by its number, alive or not.
    pub(crate) fn class_made(&self, number: u64) -> ClassId {
        self.class_or_object(self.object_made(number).class)
    }

    /// Returns the id of an object by its number, or 0.
    pub(crate) fn object_id(&self, number: u64) -> ObjectId {
        object_id(number, self.object_made(number).heap)
    }

    /// Returns the class of an object of the program that is alive: `System.Object`, if the program does not name it (assumed).
    pub(crate) fn class_of_object(&self, object: ObjectId) -> Option<ClassId> {
        let (number, heap) = number_of(object)?;
        let found = self.stage()?.runtime().objects.borrow().get(number)?;
        let is_there = found.heap == heap && !found.is_dead;
        is_there.then(|| self.class_or_object(found.class))
    }
}
