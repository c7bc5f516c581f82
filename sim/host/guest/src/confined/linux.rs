//! A guard for the process of a guest.

use super::{PAUSE, Watched, bytes};
use crate::limits::{GuestLimits, Usage};
use libc::{c_int, pid_t};
use std::collections::BTreeSet;
use std::ffi::c_ulong;
use std::io::{self, Error};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Signals that end the guard, and with it the guest. The first one comes when the tool has ended.
const ENDS: [c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// The time in which processes are ended that were left: each of them may start others meanwhile.
const TO_END: Duration = Duration::from_secs(2);

/// Starts the process of a guest.
///
/// # Errors
/// Returns the system's error.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Waits for a process that has a [`guard`].
///
/// # Errors
/// Returns the system's error.
pub fn wait(child: &mut Child, _: &GuestLimits, _: &[&Path]) -> io::Result<(ExitStatus, Watched)> {
    Ok((child.wait()?, Watched::default()))
}

/// Makes this process the guard of another one, in which this function returns: the process of a guest, which ends beyond its
/// limits. `tell` is then called here; this process, which must not have other threads, ends as the guest's has.
/// `written` are files that grow besides the standard output.
///
/// # Errors
/// Returns the system's error.
pub fn guard(
    limits: &GuestLimits,
    written: &[&Path],
    tell: impl FnOnce(&Watched),
) -> io::Result<()> {
    let strangers = adopt();
    let signals = signals();
    // SAFETY: a local set; the call has no other pointers. The other process is made by the only thread.
    let guest = unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as c_ulong);
        libc::fork()
    };
    match guest {
        -1 => Err(Error::last_os_error()),
        0 => {
            live_with_parent();
            // SAFETY: as above.
            unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, null_mut()) };
            Ok(())
        }
        guest => {
            let output: Vec<_> =
                [Path::new("/proc/self/fd/1")].into_iter().chain(written.iter().copied()).collect();
            let mut watched = Watched::default();
            let status = watch(guest, limits, &output, &signals, &mut watched);
            end_descendants(&strangers);
            tell(&watched);
            end_like(status)
        }
    }
}

/// Returns the signals that a guard waits for.
fn signals() -> libc::sigset_t {
    // SAFETY: a set of signals is plain data, which the first call makes empty.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGCHLD].iter().chain(&ENDS) {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Waits for the end of a guest, and ends it beyond its limits. Returns its status.
fn watch(
    guest: pid_t,
    limits: &GuestLimits,
    output: &[&Path],
    signals: &libc::sigset_t,
    watched: &mut Watched,
) -> c_int {
    let start = Instant::now();
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
    loop {
        // SAFETY: a set of blocked signals, and a time.
        let signal = unsafe { libc::sigtimedwait(signals, null_mut(), &raw const pause) };
        let mut status = 0;
        // SAFETY: room for a status.
        if unsafe { libc::waitpid(guest, &raw mut status, libc::WNOHANG) } == guest {
            watched.left = children(|state| state != "Z").len();
            end_group(guest);
            return status;
        }
        let used = Usage { output: bytes(output), ..usage(guest).unwrap_or_default() };
        watched.beyond = limits.exceeded_since(start, used);
        if watched.beyond.is_some() || ENDS.contains(&signal) {
            end_group(guest);
            // SAFETY: as above.
            unsafe { libc::waitpid(guest, &raw mut status, 0) };
            return 0;
        }
    }
}

/// Ends a child of this process that was not waited for, and the group that it is the first of.
pub(crate) fn end_group(guest: pid_t) {
    for target in [guest, -guest] {
        // SAFETY: no pointers.
        unsafe { libc::kill(target, libc::SIGKILL) };
    }
}

/// Ends this process with the status of another one.
fn end_like(status: c_int) -> ! {
    // SAFETY: no pointers but to a local limit; nothing of this process is needed any more.
    unsafe {
        if libc::WIFEXITED(status) {
            libc::_exit(libc::WEXITSTATUS(status));
        }
        let signal = libc::WTERMSIG(status);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const all, null_mut());
        libc::kill(libc::getpid(), signal);
        libc::_exit(128 + signal)
    }
}

/// Makes this process end with the one that has made it. It is the first of its own group.
pub(crate) fn live_with_parent() {
    // SAFETY: no pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        libc::setpgid(0, 0);
    }
}

/// The children that a process had before: those of a shell that it has taken the place of, or of the program that uses this
/// crate as a library. They are nobody's guests.
pub(crate) struct Strangers(BTreeSet<pid_t>);

/// Makes this process the parent of what its children leave behind.
pub(crate) fn adopt() -> Strangers {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong) };
    Strangers(if has_children() {
        children(|_| true).into_iter().collect()
    } else {
        BTreeSet::new()
    })
}

/// Ends all processes that this one has made since it [adopts](adopt) them, and theirs.
pub(crate) fn end_descendants(strangers: &Strangers) {
    let start = Instant::now();
    while has_children() && start.elapsed() <= TO_END {
        let mut own = children(|_| true);
        own.retain(|child| !strangers.0.contains(child));
        if own.is_empty() {
            return;
        }
        for child in own {
            // SAFETY: no room for a status is needed.
            unsafe {
                if libc::waitpid(child, null_mut(), libc::WNOHANG) == 0 {
                    libc::kill(child, libc::SIGKILL);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if this process has children. It is quicker than to look for them.
fn has_children() -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a local result; nothing is reaped.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, options) == 0
    }
}

/// Returns the children of this process in these states (proc(5)). Those that have ended are in `Z`.
fn children(is_wanted: impl Fn(&str) -> bool) -> Vec<pid_t> {
    let own = std::process::id().to_string();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.flatten().filter_map(|one| one.file_name().to_str()?.parse().ok());
    let is_child = |number: &pid_t| {
        let fields = fields(*number);
        matches!(fields.as_deref(), Some([state, parent, ..]) if *parent == own && is_wanted(state))
    };
    numbers.filter(is_child).collect()
}

/// Returns the fields of a process from its state on (proc(5): the third of `stat`).
fn fields(process: pid_t) -> Option<Vec<String>> {
    const LAST: usize = 21;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some(fields.collect()).filter(|fields: &Vec<_>| fields.len() > LAST)
}

/// Returns what a process uses, its output left aside.
pub(crate) fn usage(process: pid_t) -> Option<Usage> {
    let fields = fields(process)?;
    let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
    // SAFETY: no pointers.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    Some(Usage { threads: number(20)?, memory: number(24)? * page, output: 0 })
}

#[cfg(test)]
mod tests {
    use super::{adopt, end_descendants};
    use std::process::Command;

    #[test]
    fn children_of_others_are_left_alone() {
        let sleep = || Command::new("sleep").arg("600").spawn().unwrap();
        let mut other = sleep();
        let strangers = adopt();
        let mut own = sleep();
        // A process whose parent ends is adopted, and ends like the others.
        let left =
            Command::new("sh").args(["-c", "sleep 600 >&- 2>&- & echo $!"]).output().unwrap();
        let left = String::from_utf8(left.stdout).unwrap();
        let is_there = || std::fs::exists(format!("/proc/{}", left.trim())).unwrap();
        assert!(is_there());
        end_descendants(&strangers);
        assert!(!is_there());
        assert!(own.try_wait().is_err(), "it has been waited for");
        assert!(other.try_wait().unwrap().is_none(), "it still runs");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
