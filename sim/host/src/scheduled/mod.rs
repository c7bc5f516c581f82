//! A guest's threads under the scheduler of `clr-explore` (Linux on x86-64 with glibc).
//!
//! The imports of the guest, and of the libraries that came with it, lead to functions here: threads,
//! locks, condition variables, initialisations, clocks. One thread runs at a time; where threads could
//! observe each other, a search chooses the next one. What the scheduler does not see, such as a spin loop
//! or a call of the system, ends the history with a message when the guest does not give back control.
//!
//! | module | content |
//! |---|---|
//! | `imports` | imports of loaded objects, replaced |
//! | `carrier` | threads of the system, paired with coroutines |
//! | `objects` | the guest's objects, by address |
//! | `sync`, `semaphore`, `barrier`, `futex`, `once`, `threads`, `time`, `random` | the functions that imports lead to |
//! | `signals` | signals, and their handlers |
//! | `system_locks` | the locks of the heap and the loader |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `fork` | a process for each history |
//! | `visit` | a profiler over a text, in histories |

/// Lists names of imports, and the functions that they are to lead to.
macro_rules! replacements {
    ($($name:literal => $with:path),* $(,)?) => {
        [$($crate::scheduled::imports::Replacement {
            name: $name,
            with: $with as *const std::ffi::c_void,
        }),*]
    };
}

mod barrier;
mod carrier;
mod fork;
mod futex;
mod imports;
mod objects;
mod once;
mod random;
mod refused;
mod semaphore;
mod signals;
mod sync;
mod system_locks;
mod threads;
mod time;
mod visit;

pub use fork::{Died, fix_addresses};
pub use visit::{ScheduledVisit, VisitError};

use crate::guest::library::Library;
use clr_explore::{
    CurrentThread, Ending, Explorer, HistoryDetail, Limits, ProfilerRule, Search, Setup,
    TestedProcess, Verdict, story,
};
use clr_walker::profiling::HResult;
use clr_world::BuildError;
use imports::{Replacement, loaded_objects};
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;

/// Returns the functions that the guest's imports are to lead to.
fn replacements() -> Vec<Replacement> {
    let own = replacements! {
        "pthread_create" => threads::create,
        "pthread_join" => threads::join,
        "pthread_detach" => threads::detach,
        "pthread_exit" => threads::exit,
        "pthread_once" => once::once,
        "__cxa_guard_acquire" => once::guard_acquire,
        "__cxa_guard_release" => once::guard_release,
        "__cxa_guard_abort" => once::guard_abort,
        "pthread_mutex_lock" => sync::mutex_acquire,
        "pthread_mutex_trylock" => sync::mutex_try,
        "pthread_mutex_timedlock" => sync::mutex_timed,
        "pthread_mutex_clocklock" => sync::mutex_clock,
        "pthread_mutex_unlock" => sync::mutex_release,
        "pthread_mutex_destroy" => sync::mutex_destroy,
        "pthread_cond_wait" => sync::condition_wait,
        "pthread_cond_timedwait" => sync::condition_timed,
        "pthread_cond_clockwait" => sync::condition_clock,
        "pthread_cond_signal" => sync::condition_signal,
        "pthread_cond_broadcast" => sync::condition_broadcast,
        "pthread_cond_destroy" => sync::condition_destroy,
        "pthread_rwlock_rdlock" => sync::read_lock,
        "pthread_rwlock_tryrdlock" => sync::try_read_lock,
        "pthread_rwlock_wrlock" => sync::write_lock,
        "pthread_rwlock_trywrlock" => sync::try_write_lock,
        "pthread_rwlock_unlock" => sync::release_shared,
        "pthread_rwlock_destroy" => sync::destroy_shared,
        "pthread_rwlock_timedrdlock" => sync::read_lock_timed,
        "pthread_rwlock_clockrdlock" => sync::read_lock_clock,
        "pthread_rwlock_timedwrlock" => sync::write_lock_timed,
        "pthread_rwlock_clockwrlock" => sync::write_lock_clock,
        "sem_wait" => semaphore::wait,
        "sem_trywait" => semaphore::try_wait,
        "sem_timedwait" => semaphore::timed_wait,
        "sem_clockwait" => semaphore::clock_wait,
        "sem_post" => semaphore::post,
        "sem_destroy" => semaphore::destroy,
        "pthread_barrier_wait" => barrier::barrier_wait,
        "pthread_barrier_destroy" => barrier::barrier_destroy,
        "pthread_spin_lock" => barrier::spin_lock,
        "pthread_spin_trylock" => barrier::spin_try,
        "pthread_spin_unlock" => barrier::spin_unlock,
        "pthread_spin_destroy" => barrier::spin_destroy,
        "syscall" => futex::syscall,
        "getrandom" => random::getrandom,
        "getentropy" => random::getentropy,
        "clock_gettime" => time::clock_gettime,
        "gettimeofday" => time::gettimeofday,
        "time" => time::seconds,
        "nanosleep" => time::nanosleep,
        "clock_nanosleep" => time::clock_nanosleep,
        "usleep" => time::usleep,
        "sleep" => time::sleep,
        "sched_yield" => time::sched_yield,
        "pthread_kill" => signals::thread_kill,
        "tgkill" => signals::tgkill,
        "raise" => signals::raise,
        "pthread_self" => signals::thread_self,
        "gettid" => signals::gettid,
        "sigaction" => signals::sigaction,
        "signal" => signals::signal,
    };
    own.into_iter().chain(refused::replacements()).chain(system_locks::replaced()).collect()
}

/// Returns -1, with an error of the system in `errno`.
fn refuse(error: c_int) -> c_int {
    // SAFETY: the variable of this thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Returns true if this thread of the system is a thread of a history.
pub(crate) fn is_in_history() -> bool {
    carrier::current().is_some()
}

/// Has the coroutine of this thread of the system do something, if it is a thread of a history.
pub(crate) fn ask<T>(what: impl FnOnce(&CurrentThread<'_, '_>) -> T) -> Option<T> {
    carrier::current()?.ask(what)
}

/// Calls the guest on the thread of the system that belongs to a thread of the history.
pub(crate) fn execute(me: &CurrentThread<'_, '_>, call: impl FnOnce() -> HResult) -> HResult {
    carrier::of(me).execute(me, call).unwrap_or(HResult::UNEXPECTED)
}

/// A library whose threads run under the scheduler.
#[derive(Debug)]
pub struct ScheduledLibrary(Library);

impl ScheduledLibrary {
    /// Loads a library, and has its imports, and those of the libraries that it brings, lead to the scheduler.
    /// It stays loaded.
    ///
    /// # Errors
    /// Returns the system's message.
    pub fn load(path: &Path) -> Result<Self, String> {
        let before = loaded_objects();
        let library = Library::load(path)?;
        for object in loaded_objects().difference(&before).filter(|it| it.is_replaced()) {
            let changed = object.replace_imports(&replacements());
            changed.map_err(|page| format!("the page at {page:#x} stays read-only"))?;
        }
        Ok(Self(library))
    }

    /// Returns the address of an export.
    #[must_use]
    pub fn export(&self, name: &CStr) -> Option<*const c_void> {
        self.0.export(name).map(|found| found.as_ptr().cast_const())
    }
}

/// The parts of a history that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The ending. The guest's output is dropped.
    Ending,
    /// The ending, and the story of a failure. The guest's output is printed.
    Story,
}

/// The end of a history of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestEnding {
    /// The fingerprint of the verdict, if the history failed.
    pub verdict: Option<String>,
    /// Number of turns.
    pub turns: u64,
    /// Digest of all turns: the same history has the same digest.
    pub digest: u64,
    /// The verdict and how it came about, in lines, if the history failed and its story is kept.
    pub story: Vec<String>,
}

impl GuestEnding {
    fn of(ending: &Ending, kept: Kept) -> Self {
        let turns = ending.history.iter().flat_map(|history| &history.turns);
        let mut digest = 0xCBF2_9CE4_8422_2325_u64;
        for turn in turns {
            for byte in format!("{} {} {:?}\n", turn.at, turn.thread.0, turn.events).bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        let mut found = Self { verdict: None, turns: ending.turns, digest, story: Vec::new() };
        // Of the rules that do no harm in the simulation this one does in a CLR: it has freed the thread.
        let outlives = |(_, rule): &&(_, ProfilerRule)| *rule == ProfilerRule::WalkOutlivesThread;
        let of_rule = ending.broken.iter().find(outlives);
        let of_rule = of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule });
        if let (Some(verdict), Some(history)) =
            (ending.verdict.as_ref().or(of_rule.as_ref()), &ending.history)
        {
            found.verdict = Some(verdict.fingerprint());
            if kept == Kept::Story {
                let rows = story::story(verdict, history);
                found.story.extend(rows.iter().map(ToString::to_string));
            }
        }
        found
    }

    fn to_bytes(&self) -> Vec<u8> {
        let verdict = self.verdict.as_deref().unwrap_or_default();
        let lines = self.story.iter().flat_map(|line| ["\n", line]);
        let story: String = lines.collect();
        format!("{} {} {verdict}{story}", self.turns, self.digest).into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.split('\n');
        let mut parts = lines.next()?.splitn(3, ' ');
        let turns = parts.next()?.parse().ok()?;
        let digest = parts.next()?.parse().ok()?;
        let verdict = parts.next().filter(|verdict| !verdict.is_empty()).map(str::to_owned);
        Some(Self { verdict, turns, digest, story: lines.map(str::to_owned).collect() })
    }
}

/// Executes a history in a copy of this process.
fn run_in_copy<'p>(
    explorer: &mut Explorer<'_>,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    search: &mut dyn Search,
    kept: Kept,
) -> Result<GuestEnding, Died> {
    let detail = match kept {
        Kept::Ending => HistoryDetail::Events,
        Kept::Story => HistoryDetail::Statuses,
    };
    let bytes = fork::in_copy(kept == Kept::Ending, || {
        GuestEnding::of(&explorer.run(load, search, Limits::default(), detail), kept).to_bytes()
    })?;
    GuestEnding::from_bytes(&bytes).ok_or(Died::Exit(0))
}

/// A process with a library whose function is called by a thread of the profiler, once in each history.
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

    /// Executes a history in a copy of this process. A strategy that learns from the histories before does
    /// not learn from this one.
    ///
    /// # Errors
    /// Returns [`Died`] if the guest ended its process, or this one has other threads.
    pub fn run_in_copy(&mut self, search: &mut dyn Search) -> Result<GuestEnding, Died> {
        // SAFETY: the promise of `new`.
        let main = unsafe { std::mem::transmute::<*const c_void, extern "C" fn()>(self.main) };
        let load = move |setup: &mut Setup<'_>| {
            setup.thread("main", move |me| {
                let carrier = carrier::of(me);
                carrier.execute(me, || main());
                carrier.finish(me);
            });
            setup.on_signal(signals::handle);
        };
        run_in_copy(&mut self.explorer, &load, search, Kept::Ending)
    }
}
