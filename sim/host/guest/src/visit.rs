//! A profiler's library as a guest: loaded, called and unloaded as a CLR does.

use crate::load::Loaded;
use crate::thread_count::ThreadCount;
use crate::tracing::{Sink, forwarding};
use clr_com::Guid;
use clr_runtime::generation::Generation;
use clrsim::hosting::Shared;
use clrsim::{Entry, Finding, Journal, Session, SessionError};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

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
    /// Loads the profiler, executes the program with its callbacks, and releases the profiler if the runtime does. All
    /// that happens is written to the journal; with a sink, all calls with their arguments into that, too.
    ///
    /// # Errors
    /// Returns [`SessionError`] if the text is no scenario, or its program cannot go on.
    pub fn run(&self, journal: Box<dyn Journal>, trace: Option<Sink>) -> Result<(), SessionError> {
        let session = Session::open_with(self.text, self.generation, Some(journal))?;
        let shared = session.shared_state();
        let threads = Rc::new(ThreadCount::new());
        session.watch({
            let (shared, threads) = (Arc::clone(shared), Rc::clone(&threads));
            move |during| threads.look(&shared, during)
        });
        let loaded = self.load(shared);
        threads.look(shared, "its loading");
        let Some(loaded) = loaded else {
            shared.write(&Entry::Over);
            return Ok(());
        };
        if let Err(why) = loaded.find_exports(&session) {
            shared.write(&Entry::Unloadable(&why));
            loaded.end(shared, threads.were_found());
            shared.write(&Entry::Over);
            return Ok(());
        }
        session.load_for_notifications(loaded.is_notification_only);
        let forwarding = trace.map(|sink| forwarding(&session, sink));
        let pointers = loaded.callbacks(forwarding.as_ref());
        let loaded = Rc::new(RefCell::new(Some(loaded)));
        session.on_detach({
            let (loaded, shared) = (Rc::clone(&loaded), Arc::clone(shared));
            let threads = Rc::clone(&threads);
            move || end(&loaded, &shared, threads.were_found())
        });
        // SAFETY: the pointers are NULL or to the profiler's object, with these interfaces; `loaded` has
        // references until profiling ends.
        let refused = unsafe { session.load_profiler(pointers) }.is_failure();
        let ran = if refused { Ok(()) } else { session.run_to_end() };
        session.end_profiling();
        if !session.has_ended() && (refused || self.generation.releases_profiler_at_end()) {
            end(&loaded, shared, !refused || threads.were_found());
            threads.look(shared, "its release");
        }
        let report = session.final_report();
        for finding in report.findings() {
            match finding {
                Finding::Leak { .. } if report.excuses(finding, 0) => {
                    shared.write(&Entry::Kept(finding));
                }
                Finding::Leak { .. } | Finding::Rule(_) => shared.write(&Entry::Found(finding)),
                _ => {}
            }
        }
        shared.write(&Entry::Over);
        ran
    }
}
