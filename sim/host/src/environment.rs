//! The environment of the simulated process: that of this process, with the changes that the profiler makes. A CLR on
//! Unix has a copy of its own, too (src/coreclr/pal/src/misc/environ.cpp of dotnet/runtime).

use std::cell::RefCell;
use std::collections::BTreeMap;

/// The changes since the profiler was loaded: a value, or none for a variable that was removed.
#[derive(Default)]
pub(crate) struct Environment(RefCell<BTreeMap<String, Option<String>>>);

impl Environment {
    /// Forgets the changes.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Returns the value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        match self.0.borrow().get(name) {
            Some(changed) => changed.clone(),
            // A name with these characters names no variable, and some systems refuse it.
            None if name.contains(['=', '\0']) => None,
            None => std::env::var(name).ok(),
        }
    }

    /// Changes or removes a variable.
    pub(crate) fn set(&self, name: String, value: Option<String>) {
        self.0.borrow_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_forgotten() {
        let environment = Environment::default();
        let own = std::env::var("PATH").ok();
        assert_eq!(environment.get("PATH"), own);
        environment.set("PATH".to_owned(), None);
        environment.set("A new one".to_owned(), Some("x".to_owned()));
        assert_eq!(
            (environment.get("PATH"), environment.get("A new one").as_deref()),
            (None, Some("x"))
        );
        environment.clear();
        assert_eq!((environment.get("PATH"), environment.get("A new one")), (own, None));
        assert_eq!(environment.get("A=B"), None);
    }
}
