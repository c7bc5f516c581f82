//! The objects that a program has made: their classes, where they are, and which of them are alive.

/// The objects of a process, by their numbers: from 1 in the order in which the program makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    all: Vec<Object>,
    /// The objects that strong handles of the profiler's hold, once for each.
    held: Vec<u64>,
}

/// An object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// `ClassID`, or 0 if the program names no class.
    pub class: u64,
    /// The heap that the object is in.
    pub heap: HeapKind,
    /// The object that it refers to, or 0.
    pub refers_to: u64,
    /// The object was collected.
    pub is_dead: bool,
}

/// A heap of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeapKind {
    /// The generations 0 to 2.
    #[default]
    Generations,
    /// Large objects.
    Large,
    /// Pinned objects (.NET 5 and newer).
    Pinned,
}

impl Objects {
    /// Makes an object.
    pub fn make(&mut self, object: Object) {
        self.all.push(object);
    }

    /// Returns the number of objects that were made.
    pub const fn made(&self) -> u64 {
        self.all.len() as u64
    }

    /// Returns an object, dead or alive.
    pub fn get(&self, number: u64) -> Option<Object> {
        self.all.get(index_of(number)?).copied()
    }

    /// Returns the objects that are alive, with their numbers.
    pub fn alive(&self) -> impl Iterator<Item = (u64, Object)> + '_ {
        (1..).zip(self.all.iter().copied()).filter(|(_, object)| !object.is_dead)
    }

    /// Collects an object.
    pub fn collect(&mut self, number: u64) {
        if let Some(object) = index_of(number).and_then(|index| self.all.get_mut(index)) {
            object.is_dead = true;
        }
    }

    /// Notes that a strong handle holds an object.
    pub fn hold(&mut self, number: u64) {
        self.held.push(number);
    }

    /// Notes that a strong handle holds an object no longer.
    pub fn let_go(&mut self, number: u64) {
        if let Some(at) = self.held.iter().position(|held| *held == number) {
            self.held.swap_remove(at);
        }
    }

    /// Returns true if a strong handle of the profiler's holds an object.
    pub fn is_held(&self, number: u64) -> bool {
        self.held.contains(&number)
    }
}

/// Returns the index of an object, given its number from 1.
fn index_of(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_alive_until_it_is_collected() {
        let mut objects = Objects::default();
        let first = Object { class: 7, ..Object::default() };
        objects.make(first);
        objects.make(Object::default());
        assert_eq!([0, 1, 3].map(|number| objects.get(number)), [None, Some(first), None]);
        objects.collect(1);
        objects.collect(9);
        assert_eq!(objects.get(1), Some(Object { is_dead: true, ..first }));
        assert_eq!((objects.made(), objects.alive().map(|(number, _)| number).sum()), (2, 2));
    }

    #[test]
    fn an_object_is_held_as_long_as_one_handle_holds_it() {
        let mut objects = Objects::default();
        objects.make(Object::default());
        objects.hold(1);
        objects.hold(1);
        objects.let_go(1);
        assert!(objects.is_held(1));
        objects.let_go(1);
        objects.let_go(1);
        assert!(!objects.is_held(1));
    }
}
