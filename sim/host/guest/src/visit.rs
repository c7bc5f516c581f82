//! A profiler's library as a guest: loaded, called and unloaded as a CLR does.

use crate::load::Loaded;
use crate::thread_count::ThreadCount;
use crate::tracing::{Sink, forwarding};
use clr_com::{Forwarding, Guid, ProfilerLibrary};
use clr_runtime::generation::Generation;
use clrsim::hosting::{Pointers, Shared};
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

/// Loads the library as a program's first call of an export does, without `DllMain` on Unix, and keeps it loaded:
/// `LocalLoadLibraryHelper` (src/coreclr/vm/nativelibrary.cpp of dotnet/runtime).
pub(crate) fn import(library: &Path, session: &Session) {
    let library = ProfilerLibrary::load(library);
    let imported = library.and_then(|library| session.import(&|name| library.export(name)));
    if let Err(why) = imported {
        session.shared_state().write(&Entry::Unloadable(&why));
    }
}

/// The profiler of a visit.
struct Guest<'v> {
    visit: &'v Visit<'v>,
    session: &'v Session,
    loaded: &'v Rc<RefCell<Option<Loaded>>>,
    threads: &'v Rc<ThreadCount>,
    forwarding: Option<Arc<Forwarding>>,
}

impl Guest<'_> {
    /// Loads the library, and begins profiling by `start`, which returns false if the profiler refuses. Returns `None` if the
    /// library cannot be loaded, or lacks an export.
    fn begin(&self, start: impl FnOnce(Pointers) -> bool) -> Option<bool> {
        let Self { session, threads, .. } = *self;
        let shared = session.shared_state();
        let loaded = self.visit.load(shared);
        threads.look(shared, "its loading");
        let loaded = loaded?;
        if let Err(why) = loaded.find_exports(session) {
            shared.write(&Entry::Unloadable(&why));
            loaded.end(shared, threads.were_found());
            return None;
        }
        session.load_for_notifications(loaded.is_notification_only);
        let pointers = loaded.callbacks(self.forwarding.as_ref());
        *self.loaded.borrow_mut() = Some(loaded);
        session.on_detach({
            let (loaded, shared) = (Rc::clone(self.loaded), Arc::clone(shared));
            let threads = Rc::clone(threads);
            move || end(&loaded, &shared, threads.were_found())
        });
        Some(start(pointers))
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
        session.offer_dispenser();
        let shared = session.shared_state();
        let threads = Rc::new(ThreadCount::new());
        session.watch({
            let (shared, threads) = (Arc::clone(shared), Rc::clone(&threads));
            move |during| threads.look(&shared, during)
        });
        let loaded = Rc::default();
        let forwarding = trace.map(|sink| forwarding(&session, sink));
        let (session, threads) = (&session, &threads);
        let guest = Guest { visit: self, session, loaded: &loaded, threads, forwarding };
        let refused = if session.attaches() {
            session.start_alone();
            false
        } else {
            // SAFETY: the pointers are NULL or to the profiler's object, with these interfaces; `loaded` has references until
            // profiling ends. So it is below.
            let start = |pointers| !unsafe { session.load_profiler(pointers) }.is_failure();
            let Some(has_started) = guest.begin(start) else {
                shared.write(&Entry::Over);
                return Ok(());
            };
            !has_started
        };
        let enter = |function| {
            if session.is_first_import(function) {
                import(self.library, session);
            }
            if !session.is_asked_to_attach(function) {
                return;
            }
            // SAFETY: as above.
            let start = |pointers| unsafe { session.attach_profiler(function, pointers) };
            if guest.begin(start) == Some(false) {
                end(&loaded, shared, threads.were_found());
            }
        };
        let ran = if refused { Ok(()) } else { session.run_to_end(&enter) };
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
