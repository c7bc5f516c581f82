//! A profiler's library as a guest: loaded, called and unloaded as a CLR does.

pub(crate) mod library;
mod load;
mod threads;

use crate::journal::{Entry, Journal};
use crate::report::Finding;
use crate::session::{Session, SessionError, Shared};
use crate::target::Target;
use clr_com::Guid;
use clr_runtime::generation::Generation;
pub(crate) use load::Loaded;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use threads::ThreadCount;

/// A profiler in a process that executes a text's program on a runtime.
///
/// The profiler's globals cannot be undone, and it may end the process: a visit is the last act of a
/// process, which ends after it.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'v> {
    /// The library.
    pub library: &'v Path,
    /// The class that is asked for.
    pub class: Guid,
    /// The text.
    pub text: &'v str,
    /// The runtime.
    pub generation: Generation,
}

/// Ends what is loaded, if it still is. The library stays if `stays` is set.
fn end(loaded: &RefCell<Option<Loaded>>, shared: &Shared, stays: bool) {
    let loaded = loaded.take();
    if let Some(loaded) = loaded {
        loaded.end(shared, stays);
    }
}

impl Visit<'_> {
    /// Loads the profiler, executes the program with its callbacks, and releases the profiler. All that
    /// happens is written to the journal.
    ///
    /// # Errors
    /// Returns [`SessionError`] if the text is no scenario, or its program cannot go on.
    pub fn run(&self, journal: Box<dyn Journal>) -> Result<(), SessionError> {
        let session = Session::open_with(self.text, self.generation, Some(journal))?;
        let inner = Rc::clone(session.inner());
        let threads = Rc::new(ThreadCount::new());
        inner.watch({
            let (shared, threads) = (inner.shared.clone(), Rc::clone(&threads));
            move |during| threads.look(&shared, during)
        });
        let shared = &inner.shared;
        let loaded = self.load(shared);
        threads.look(shared, "its loading");
        let Some(loaded) = loaded else {
            shared.write(&Entry::Over);
            return Ok(());
        };
        if let Err(why) = loaded.find_exports(&inner) {
            shared.write(&Entry::Unloadable(&why));
            loaded.end(shared, threads.were_found());
            shared.write(&Entry::Over);
            return Ok(());
        }
        // SAFETY: the pointers are NULL or to the profiler's object, with these interfaces; `loaded` has
        // references for as long as the target is used.
        let target = unsafe { Target::new(loaded.callbacks()) };
        let loaded = Rc::new(RefCell::new(Some(loaded)));
        inner.on_detach.replace(Some(Box::new({
            let (loaded, shared) = (Rc::clone(&loaded), inner.shared.clone());
            let threads = Rc::clone(&threads);
            move || end(&loaded, &shared, threads.were_found())
        })));
        let refused = session.load(target).is_failure();
        let mut ran = Ok(());
        if !refused {
            ran = session.run();
            if ran.is_ok() && !inner.has_ended() {
                session.shut_down();
            }
        }
        session.end_profiling();
        if !inner.has_ended() {
            end(&loaded, shared, !refused || threads.were_found());
            threads.look(shared, "its release");
        }
        for finding in session.final_report().findings() {
            if let Finding::Leak { .. } | Finding::Rule(_) = finding {
                shared.write(&Entry::Found(finding));
            }
        }
        shared.write(&Entry::Over);
        ran
    }
}
