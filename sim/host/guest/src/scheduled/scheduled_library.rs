//! A library whose threads run under the scheduler.

use super::replacement::replace_imports;
use super::{backtrace, guest_thread, sanitizer, system};
use clr_com::ProfilerLibrary;
use clr_explore::CurrentThread;
use clrsim::hosting::Turns;
use std::ffi::{CStr, c_void};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::ptr::NonNull;
use system::loaded_objects;

/// The guest's threads, as the host asks for them.
struct GuestThreads;

impl Turns for GuestThreads {
    fn is_in_history(&self) -> bool {
        guest_thread::current().is_some()
    }

    fn ask(&self, method: &'static str, what: &mut dyn FnMut(&CurrentThread<'_, '_>)) {
        sanitizer::begins_call(method);
        if let Some(thread) = guest_thread::current() {
            thread.ask(what);
        }
        sanitizer::ends_call(method);
    }

    fn execute(&self, me: &CurrentThread<'_, '_>, call: &mut dyn FnMut()) {
        guest_thread::of(me).execute(me, call);
    }
}

/// A library whose threads run under the scheduler.
#[derive(Debug)]
pub struct ScheduledLibrary(ProfilerLibrary);

impl ScheduledLibrary {
    /// Prepares this process for a library.
    pub(super) fn prepare() {
        clrsim::hosting::install(&GuestThreads);
        #[cfg(windows)]
        system::reserve_simulated();
        #[cfg(target_os = "linux")]
        {
            // It is found once for all interleavings.
            clrsim::hosting::prepare_calls();
            sanitizer::prepare();
            system::last_key();
            system::destroys_values();
            system::note_pipes();
            system::find_message();
        }
    }

    /// Loads a library, and has its imports, and those of the libraries that it brings, lead to the scheduler.
    /// The library stays loaded.
    ///
    /// # Errors
    /// Returns the system's message.
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::prepare();
        let before = loaded_objects();
        #[cfg(target_os = "linux")]
        let library = Self::open(path)?;
        #[cfg(windows)]
        let library = ProfilerLibrary::load(path)?;
        let after = loaded_objects();
        for object in &before {
            backtrace::note(object, false);
        }
        for object in after.difference(&before) {
            backtrace::note(object, true);
        }
        // Initialisers may have loaded some of these.
        replace_imports(after.difference(&before), &system::replacements())
            .map_err(|page| format!("the page at {page:#x} stays read-only"))?;
        #[cfg(target_os = "linux")]
        system::note_own_calls();
        Ok(Self(library))
    }

    /// Loads a library. What its static objects do at the end is for interleavings.
    #[cfg(target_os = "linux")]
    fn open(path: &Path) -> Result<ProfilerLibrary, String> {
        let (library, new) = system::open_library(path);
        if !new.is_empty() {
            system::forget_exit();
        }
        system::initialise();
        system::skip_destructors();
        match NonNull::new(library) {
            // SAFETY: it was loaded above.
            Some(handle) => Ok(unsafe { ProfilerLibrary::of(handle) }),
            // The system says why there is none.
            None => ProfilerLibrary::load(path),
        }
    }

    /// Loads a library if its initialisers return, and start no threads. The others are for
    /// [`load_under_scheduler`](Self::load_under_scheduler).
    #[cfg(target_os = "linux")]
    pub(super) fn load_if_harmless(path: &Path) -> Result<Option<Self>, String> {
        if system::fork::can_be_loaded(|| _ = Self::open(path)) {
            return Self::load(path).map(Some);
        }
        Self::prepare();
        system::forget_exit();
        for object in &loaded_objects() {
            backtrace::note(object, false);
        }
        system::note_own_calls();
        Ok(None)
    }

    /// Loads a library in an interleaving: a thread executes its initialisers under the scheduler.
    #[cfg(target_os = "linux")]
    pub(super) fn load_under_scheduler(me: &CurrentThread<'_, '_>, path: &Path) {
        let carrier = guest_thread::of(me);
        let loaded = carrier.execute(me, || system::open_library(path));
        for object in &loaded.map(|(_, new)| new).unwrap_or_default() {
            backtrace::note(object, true);
        }
        carrier.execute(me, system::initialise);
    }

    /// Returns the address of an export.
    pub fn export(&self, name: &CStr) -> Option<*const c_void> {
        self.0.export(name).map(|found| found.as_ptr().cast_const())
    }
}
