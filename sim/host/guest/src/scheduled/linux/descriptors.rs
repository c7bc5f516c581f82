//! Descriptors that connect the guest's own threads: pipes, counters, sockets, timers, and sets of them.
//!
//! A descriptor stays one of the system, and its blocking is simulated: a thread whose call would wait does so in the scheduler,
//! until `poll` says that the call returns. Calls that may change what others wait for have them look again. What waits for
//! another process has left the simulation.

use super::{guest_thread, refused, sanitizer, timers};
use clr_explore::{CurrentThread, EventObject, Interruption};
use libc::{c_int, c_short, pollfd};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a call on a descriptor may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// Nothing: it is of a file, for example.
    Nothing,
    /// Threads of this process.
    Threads,
    /// Another process, a person, the system.
    Outside,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The call returns without a wait now.
    Ready,
    /// The time is over.
    TimedOut,
    /// A signal's handler has interrupted the wait.
    Interrupted,
}

/// The device of all pipes without a name, and the pipes of the process that the guest has not made.
static PIPES: OnceLock<(libc::dev_t, BTreeSet<libc::ino_t>)> = OnceLock::new();

/// Number of threads that wait, and the place that orders what they did for ThreadSanitizer.
static WAITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The events of threads that wait, and those that nothing uses, on the scheduler's thread.
    static EVENTS: RefCell<[Vec<EventObject>; 2]> = RefCell::default();
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: a status is plain data, of which an empty one is made here, with room for another one.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut status) == 0).then_some(status)
    }
}

/// Returns the numbers of a process's own files that have a number as their name.
fn listed(folder: &str) -> Vec<c_int> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Notes the pipes that are there before the guest: they lead to other processes.
pub(in crate::scheduled) fn note_pipes() {
    PIPES.get_or_init(|| {
        let is_pipe = |status: &libc::stat| status.st_mode & libc::S_IFMT == libc::S_IFIFO;
        let open = listed("/proc/self/fd").into_iter().filter_map(status).filter(is_pipe);
        let open = open.map(|status| status.st_ino).collect();
        let mut ends = [-1; 2];
        // SAFETY: room for two descriptors, which nothing else uses.
        let device = unsafe {
            libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC);
            let found = status(ends[0]).map_or(0, |status| status.st_dev);
            for end in ends {
                libc::close(end);
            }
            found
        };
        (device, open)
    });
}

/// Returns an option of a socket, of this size or a smaller one.
pub(super) fn option_of<T: Copy>(descriptor: c_int, name: c_int, empty: T) -> Option<T> {
    let (mut found, mut size) = (empty, size_of::<T>() as libc::socklen_t);
    // SAFETY: room for the option, with its size.
    let result = unsafe {
        libc::getsockopt(descriptor, libc::SOL_SOCKET, name, (&raw mut found).cast(), &raw mut size)
    };
    (result == 0).then_some(found)
}

/// Returns true if a socket leads to this process: it is of a pair, or of a connection, or waits for one, by a name of Unix.
fn is_own_socket(descriptor: c_int) -> bool {
    let nobody = libc::ucred { pid: 0, uid: 0, gid: 0 };
    // SAFETY: no pointers.
    let own = unsafe { libc::getpid() };
    option_of(descriptor, libc::SO_PEERCRED, nobody).is_some_and(|peer| peer.pid == own)
}

/// Returns true if a set of descriptors has one that connects threads, or none.
fn is_own_set(descriptor: c_int) -> bool {
    let members = members(descriptor);
    members.is_empty() || members.into_iter().any(|member| of(member) == Connection::Threads)
}

/// Returns the descriptors of a set of `epoll`: `tfd:` of the kernel's fs/eventpoll.c, `ep_show_fdinfo`.
fn members(descriptor: c_int) -> Vec<c_int> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"));
    let text = text.unwrap_or_default();
    let of_line = |line: &str| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(of_line).filter(|member| *member != descriptor).collect()
}

/// Returns the descriptors, and those of the sets among them.
pub(super) fn with_members(descriptors: &[c_int]) -> Vec<c_int> {
    let sets = descriptors
        .iter()
        .filter(|it| status(**it).is_some_and(|it| it.st_mode & libc::S_IFMT == 0));
    descriptors.iter().copied().chain(sets.flat_map(|set| members(*set))).collect()
}

/// Returns what a call on a descriptor may wait for.
pub(super) fn of(descriptor: c_int) -> Connection {
    let Some(found) = status(descriptor) else { return Connection::Nothing };
    let is_own = match found.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => return Connection::Nothing,
        libc::S_IFCHR => {
            // SAFETY: no pointers.
            let is_terminal = unsafe { libc::isatty(descriptor) != 0 };
            return if is_terminal { Connection::Outside } else { Connection::Nothing };
        }
        libc::S_IFIFO => PIPES.get().is_some_and(|(device, before)| {
            found.st_dev == *device && !before.contains(&found.st_ino)
        }),
        libc::S_IFSOCK => is_own_socket(descriptor),
        _ => {
            let name = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
            match name.as_deref().map(Path::to_str) {
                Ok(Some("anon_inode:[eventfd]" | "anon_inode:[timerfd]")) => true,
                Ok(Some("anon_inode:[eventpoll]")) => is_own_set(descriptor),
                _ => false,
            }
        }
    };
    if is_own { Connection::Threads } else { Connection::Outside }
}

/// Returns true if one of these things has come for a descriptor, or its end.
pub(super) fn is_ready(descriptor: c_int, wanted: c_short) -> bool {
    let mut one = pollfd { fd: descriptor, events: wanted, revents: 0 };
    // SAFETY: one descriptor.
    unsafe { libc::poll(&raw mut one, 1, 0) != 0 }
}

/// Waits until `is_ready`, at most this time (µs): the descriptors say which timers count.
fn wait(
    me: &CurrentThread<'_, '_>,
    watched: &[c_int],
    limit: Option<u64>,
    is_ready: &dyn Fn() -> bool,
) -> Waited {
    me.point();
    let until = limit.map(|limit| me.now().saturating_add(limit));
    let event = EVENTS.with_borrow_mut(|[_, unused]| unused.pop());
    let event = event.unwrap_or_else(|| me.new_event());
    let waited = loop {
        timers::expire(me);
        me.shares();
        if is_ready() || me.is_over() {
            break Waited::Ready;
        }
        let left = until.map(|until| until.saturating_sub(me.now()));
        if left == Some(0) {
            break Waited::TimedOut;
        }
        if me.is_interrupted() {
            break Waited::Interrupted;
        }
        // Who sets the event after this is not missed, wherever this thread is then.
        EVENTS.with_borrow_mut(|[waiting, _]| waiting.push(event));
        WAITING.fetch_add(1, Ordering::Relaxed);
        match left.into_iter().chain(timers::next(me, watched)).min() {
            None => me.wait_for(event),
            Some(least) => _ = me.wait_at_most(event, least),
        }
        EVENTS.with_borrow_mut(|[waiting, _]| waiting.retain(|it| *it != event));
        WAITING.fetch_sub(1, Ordering::Relaxed);
        me.reset(event);
    };
    EVENTS.with_borrow_mut(|[_, unused]| unused.push(event));
    waited
}

/// Waits until a call on these descriptors returns, at most this time (µs), or until a handler interrupts it. A call that waits
/// for another process ends the interleaving.
pub(super) fn wait_for(
    call: &'static str,
    watched: &[c_int],
    (limit, interruption): (Option<u64>, Interruption),
    is_ready: impl Fn() -> bool,
) -> Waited {
    let Some(carrier) = guest_thread::current() else { return Waited::Ready };
    if !watched.iter().any(|descriptor| of(*descriptor) == Connection::Threads) {
        if !is_ready() {
            refused::refuse(call);
        }
        return Waited::Ready;
    }
    let waited =
        carrier.ask(|me| me.interruptible(interruption, || wait(me, watched, limit, &is_ready)));
    sanitizer::acquires(&raw const WAITING as usize);
    waited.unwrap_or(Waited::Ready)
}

/// Waits for a handler of a signal, and nothing else. The wait begins at once: no handler comes before it.
pub(super) fn wait_for_handler(me: &CurrentThread<'_, '_>) {
    let never = me.new_event();
    me.interruptible(Interruption::Always, || {
        while !me.is_interrupted() && !me.is_over() {
            me.wait_for(never);
        }
    });
}

/// Lets other threads run before a call that does not wait.
pub(super) fn point() {
    if let Some(carrier) = guest_thread::current() {
        carrier.ask(|me| {
            me.point();
            timers::expire(me);
        });
    }
}

/// Has the threads that wait look again. The errors of this thread stay.
pub(super) fn announce() {
    sanitizer::releases(&raw const WAITING as usize);
    if WAITING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(carrier) = guest_thread::current() else { return };
    // SAFETY: the variable of this thread.
    let error = unsafe { *libc::__errno_location() };
    carrier.ask(|me| {
        let waiting = EVENTS.with_borrow(|[waiting, _]| waiting.clone());
        for event in waiting {
            me.set(event);
        }
    });
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}
