//! A library without a profiler, in interleavings.

use super::{fork, guest_thread, signals};
use crate::limits::GuestLimits;
use crate::scheduled::ending::{Detail, Died, GuestEnding, Rules};
use crate::scheduled::run::run;
use clr_explore::{Explorer, Search, Setup, TestedProcess};
use clr_scenario::Demands;
use clr_world::BuildError;
use clrsim::Report;
use std::ffi::c_void;

/// A process with a library whose function is called by a thread of the profiler, once in each interleaving.
#[derive(Debug)]
pub struct GuestProcess<'b> {
    explorer: Explorer<'b>,
    main: *const c_void,
}

impl<'b> GuestProcess<'b> {
    /// Prepares a process.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the process cannot be built.
    ///
    /// # Safety
    /// `main` is a function without arguments.
    pub unsafe fn new(process: &'b TestedProcess, main: *const c_void) -> Result<Self, BuildError> {
        Ok(Self { explorer: Explorer::new(process)?, main })
    }

    /// Executes an interleaving in a copy of this process. A strategy that learns from the interleavings before does
    /// not learn from this one.
    ///
    /// # Errors
    /// Returns [`Died`] if the guest ended its process, or this one has other threads.
    pub fn run_in_copy(&mut self, search: &mut dyn Search) -> Result<GuestEnding, Died> {
        // SAFETY: the promise of `new`.
        let main = unsafe { std::mem::transmute::<*const c_void, extern "C" fn()>(self.main) };
        let load = move |setup: &mut Setup<'_>| {
            setup.hide_places();
            setup.thread("main", move |me| {
                let carrier = guest_thread::of(me);
                carrier.execute(me, || main());
                carrier.finish(me);
            });
            setup.on_signal(signals::handle);
        };
        let Self { explorer, .. } = self;
        let rules = Rules::default();
        let demands = Demands::of_library(&[], explorer.runtime().generation);
        let run =
            || run(explorer, &load, search, rules, &Report::default, &demands, Detail::Ending);
        fork::run_in_copy(&GuestLimits::default(), Detail::Ending, run)
    }
}
