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
//! | `sync`, `semaphore`, `barrier`, `futex`, `once`, `threads`, `time`, `random`, `ends` | the functions that imports lead to |
//! | `signals` | signals, and their handlers |
//! | `system_locks` | the locks of the heap and the loader |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `stopped`, `backtrace` | threads that have stopped, and their stacks |
//! | `sanitizer` | what ThreadSanitizer learns of the scheduler |
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

mod backtrace;
mod barrier;
mod carrier;
mod ends;
mod fork;
mod futex;
mod imports;
mod objects;
mod once;
mod random;
mod refused;
pub(crate) mod sanitizer;
mod semaphore;
mod signals;
mod stopped;
mod sync;
mod system_locks;
mod threads;
mod time;
mod visit;

pub use fork::{Died, fix_addresses, in_workers};
pub use visit::{ScheduledVisit, VisitError};

use crate::guest::library::Library;
use crate::report::Finding;
use clr_explore::{
    CurrentThread, Ending, Explorer, HistoryDetail, Limits, NotedHistory, NotingSearch,
    ProfilerRule, ScheduleString, Search, Setup, TestedProcess, Verdict,
};
use clr_walker::profiling::HResult;
use clr_world::BuildError;
use core::fmt;
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
        "exit" => ends::exit,
        "_exit" => ends::_exit,
        "_Exit" => ends::_exit,
        "quick_exit" => ends::quick_exit,
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
        for object in &before {
            backtrace::note(object, false);
        }
        for object in loaded_objects().difference(&before) {
            backtrace::note(object, true);
        }
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

/// A history that has ended, in the copy of the process in which it was executed.
#[derive(Debug)]
pub struct Executed<'e> {
    /// The end of the history. The last turn has the stacks of the guest's threads.
    pub ending: &'e Ending,
    /// The mistakes of the guest that are no verdict of the search: references that are left, for example.
    pub findings: &'e [Finding],
}

/// Makes bytes of a history in the copy of the process in which it was executed.
pub type Describe<'d> = dyn Fn(&Executed<'_>) -> Vec<u8> + 'd;

/// The parts of a history that are kept.
#[derive(Clone, Copy)]
pub enum Kept<'k> {
    /// The ending. The guest's output is dropped.
    Ending,
    /// The ending, and what this function makes of the history with its events, statuses and stacks. The
    /// guest's output is dropped.
    Description(&'k Describe<'k>),
    /// The same, and the guest's output is printed.
    Printed(&'k Describe<'k>),
    /// The same; the copy then stops, and this function is called with its process id.
    Stopped(&'k Describe<'k>, &'k dyn Fn(u32)),
}

impl fmt::Debug for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ending => "Ending",
            Self::Description(_) => "Description",
            Self::Printed(_) => "Printed",
            Self::Stopped(..) => "Stopped",
        })
    }
}

/// The end of a history of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuestEnding {
    /// The fingerprint of the verdict, or the findings, if the history failed.
    pub verdict: Option<String>,
    /// Number of turns.
    pub turns: u64,
    /// Digest of all turns: the same history has the same digest.
    pub digest: u64,
    /// The choices of the history.
    pub schedule: ScheduleString,
    /// True if a replay came to another history.
    pub strayed: bool,
    /// True if the history exceeded its limit of turns.
    pub in_turn: bool,
    /// The description of the history, as the bytes that `Kept` asked for.
    pub description: Vec<u8>,
    noted: NotedHistory,
}

impl GuestEnding {
    fn of(ending: &Ending, findings: &[Finding]) -> Self {
        let turns = ending.history.iter().flat_map(|history| &history.turns);
        let mut digest = 0xCBF2_9CE4_8422_2325_u64;
        for turn in turns {
            for byte in format!("{} {} {:?}\n", turn.at, turn.thread.0, turn.events).bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        let verdict = ending.verdict.as_ref().map(Verdict::fingerprint);
        Self {
            verdict: verdict.or_else(|| in_words(findings)),
            turns: ending.turns,
            digest,
            schedule: ending.schedule.clone(),
            strayed: false,
            in_turn: ending.in_turn,
            description: Vec::new(),
            noted: NotedHistory::default(),
        }
    }

    /// Makes the search learn from this history, which it has begun.
    pub fn teach(&self, search: &mut dyn Search) {
        self.noted.teach(search, &self.schedule, self.in_turn);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { verdict, turns, digest, schedule, strayed, in_turn, description, noted } = self;
        let verdict = verdict.as_deref().unwrap_or_default();
        let numbers = format!("{turns} {digest} {} {}", u8::from(*strayed), u8::from(*in_turn));
        let mut bytes = format!("{numbers}\n{schedule}\n{verdict}\n{noted}\n").into_bytes();
        bytes.extend(description);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(5, |byte| *byte == b'\n');
        let mut line = || std::str::from_utf8(parts.next()?).ok();
        let mut numbers = line()?.split(' ').map(str::parse);
        let mut number = || numbers.next()?.ok();
        let (turns, digest, strayed, in_turn) = (number()?, number()?, number()?, number()?);
        let schedule = line()?.parse().ok()?;
        let verdict = line().filter(|verdict| !verdict.is_empty()).map(str::to_owned);
        let noted = line()?.parse().ok()?;
        let description = parts.next()?.to_vec();
        let (strayed, in_turn) = (strayed != 0, in_turn != 0);
        Some(Self { verdict, turns, digest, schedule, strayed, in_turn, description, noted })
    }
}

/// The limits of histories, and what fails them.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    limits: Limits,
    /// A violation of any documented rule is a failure.
    all: bool,
}

impl Rules {
    /// Returns the verdict on the first violation of a rule that is a failure. Of those that do no harm in the
    /// simulation a walk that outlives its thread does in a CLR, which has freed the thread.
    fn broken(self, ending: &Ending) -> Option<Verdict> {
        let fails = |rule| self.all || rule == ProfilerRule::WalkOutlivesThread;
        let mut broken = ending.broken.iter();
        let of_rule = broken.find(|(_, rule)| fails(*rule));
        of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule })
    }
}

/// Returns findings in words, each kind once.
fn in_words(findings: &[Finding]) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for finding in findings {
        let one = match finding {
            Finding::Leak { interface, .. } => format!("references to {interface} are left"),
            other => other.to_string(),
        };
        if !words.contains(&one) {
            words.push(one);
        }
    }
    (!words.is_empty()).then(|| format!("findings: {}", words.join("; ")))
}

/// Adds the stacks of the guest's threads to the last turn of a history. The threads then stay where they are.
fn add_stacks(ending: &mut Ending) {
    let Some(turn) = ending.history.as_mut().and_then(|history| history.turns.last_mut()) else {
        return;
    };
    let imports = replacements().into_iter().map(|it| (it.with as u64, it.name)).collect();
    carrier::for_each(|thread, carrier| {
        let Some(registers) = stopped::registers(carrier) else { return };
        let frames = backtrace::frames(&registers, &imports);
        if let Some(status) = turn.statuses.get_mut(thread.index())
            && !frames.is_empty()
        {
            // The innermost activity is what the thread of the system executes.
            let rest = status.stack.split_off(1.min(status.stack.len()));
            let known = std::mem::replace(&mut status.stack, frames);
            status.stack.extend(known.into_iter().chain(rest));
        }
    });
}

/// Executes a history in a copy of this process.
fn run_in_copy<'p>(
    explorer: &mut Explorer<'_>,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    search: &mut dyn Search,
    rules: Rules,
    findings: &dyn Fn() -> Vec<Finding>,
    kept: Kept<'_>,
) -> Result<GuestEnding, Died> {
    let detail = match kept {
        Kept::Ending => HistoryDetail::Events,
        _ => HistoryDetail::Statuses,
    };
    let then = if let Kept::Stopped(_, then) = kept { Some(then) } else { None };
    let is_silent = matches!(kept, Kept::Ending | Kept::Description(_));
    let bytes = fork::in_copy(is_silent, then, || {
        stopped::handle_signals();
        sanitizer::enters_tool();
        let mut noting = NotingSearch::new(search);
        let mut ending = explorer.run(load, &mut noting, rules.limits, detail);
        let strayed = noting.has_strayed();
        ending.verdict = ending.verdict.take().or_else(|| rules.broken(&ending));
        let found = if ending.verdict.is_none() { findings() } else { Vec::new() };
        let mut told = GuestEnding { strayed, ..GuestEnding::of(&ending, &found) };
        match kept {
            Kept::Ending => told.noted = noting.into_noted(),
            Kept::Description(describe) | Kept::Printed(describe) | Kept::Stopped(describe, _) => {
                add_stacks(&mut ending);
                told.description = describe(&Executed { ending: &ending, findings: &found });
            }
        }
        sanitizer::leaves_tool();
        told.to_bytes()
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
        run_in_copy(&mut self.explorer, &load, search, Rules::default(), &Vec::new, Kept::Ending)
    }
}
