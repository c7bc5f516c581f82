//! Calls of the system that wait outside of the simulation, or leave its process. A thread of an interleaving that makes
//! one would wait with the baton in its hand, for something that no simulated thread does: the interleaving ends with a
//! message that names the call. Those that wait for a time alone are sleeps.

use super::{Replacement, guest_thread, time};
use clr_explore::CurrentThread;
use libc::{c_int, c_long, c_void, nfds_t, pollfd, timespec, timeval};
use std::ffi::CString;

/// Ends the interleaving.
fn end(me: &CurrentThread<'_, '_>, name: &str) {
    me.fail(format!("the profiler has left the simulation: it called {name}"));
}

/// Ends the interleaving of this thread of the system, if it is in one; the call then never returns.
pub(super) fn refuse(name: &'static str) {
    if let Some(carrier) = guest_thread::current() {
        carrier.ask(move |me| end(me, name));
    }
}

/// A function of the C library whose arguments are in registers.
type Real = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

/// Calls the function of the C library that a thread outside of interleavings wants.
///
/// # Safety
/// The arguments are those of the function, whose arguments are at most six integers or pointers, unless it is one of
/// `execl`, `execlp` and `execle`.
unsafe fn real(name: &str, arguments: [usize; 6]) -> isize {
    let Ok(name) = CString::new(name) else { return -1 };
    // SAFETY: a text with a final NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // The arguments of these are as many as the caller likes.
    if found.is_null() || name.to_bytes().starts_with(b"execl") {
        return super::refuse(libc::ENOSYS) as isize;
    }
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the function of this name, and the caller's promise.
    unsafe {
        let real = std::mem::transmute::<*mut c_void, Real>(found);
        real(first, second, third, fourth, fifth, sixth)
    }
}

macro_rules! refused {
    ($($name:ident)*) => {
        $(unsafe extern "C" fn $name(
            first: usize,
            second: usize,
            third: usize,
            fourth: usize,
            fifth: usize,
            sixth: usize,
        ) -> isize {
            refuse(stringify!($name));
            // SAFETY: the guest's own call.
            unsafe {
                real(stringify!($name), [first, second, third, fourth, fifth, sixth])
            }
        })*

        /// Returns the functions that are refused whatever their arguments are.
        fn always() -> Vec<Replacement> {
            vec![$(Replacement {
                name: stringify!($name),
                with: $name as *const c_void,
            }),*]
        }
    };
}

refused! {
    ppoll __ppoll_chk pselect epoll_pwait epoll_pwait2
    accept accept4 connect recv __recv_chk recvfrom __recvfrom_chk recvmsg recvmmsg
    msgrcv mq_receive mq_timedreceive semop semtimedop
    pause sigsuspend sigwait sigwaitinfo sigtimedwait
    kill killpg sigqueue pthread_sigqueue setitimer timer_create alarm ualarm
    fork _Fork vfork execve execv execvp execvpe fexecve execl execlp execle
    posix_spawn posix_spawnp system popen wait wait3 wait4 waitpid waitid
}

unsafe extern "C" fn poll(polled: *mut pollfd, count: nfds_t, limit: c_int) -> c_int {
    if limit != 0 && guest_thread::current().is_some() {
        if count != 0 || limit < 0 {
            refuse("poll");
        }
        time::sleeps(u64::from(limit.unsigned_abs()) * 1_000);
        return 0;
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::poll(polled, count, limit) }
}

unsafe extern "C" fn poll_checked(
    polled: *mut pollfd,
    count: nfds_t,
    limit: c_int,
    _: usize,
) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe { poll(polled, count, limit) }
}

unsafe extern "C" fn select(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    failed: *mut libc::fd_set,
    limit: *mut timeval,
) -> c_int {
    // SAFETY: NULL, or the guest's time.
    let limited = unsafe { limit.as_ref() }.map(|limit| {
        // SAFETY: a local.
        unsafe { time::read(&timespec { tv_sec: limit.tv_sec, tv_nsec: limit.tv_usec * 1_000 }) }
    });
    if limited != Some(0) && guest_thread::current().is_some() {
        match limited {
            Some(limit) if count == 0 => _ = time::sleeps(limit),
            _ => refuse("select"),
        }
        return 0;
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::select(count, read, write, failed, limit) }
}

unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: c_int,
) -> c_int {
    if limit != 0 {
        refuse("epoll_wait");
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::epoll_wait(set, events, most, limit) }
}

/// Returns true if a read of the descriptor can wait: it is of a pipe, a socket, a terminal, or a counter.
fn may_wait(descriptor: c_int) -> bool {
    // SAFETY: a status is plain data, of which an empty one is made here.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: room for a status.
    let found = unsafe { libc::fstat(descriptor, &raw mut status) } == 0;
    found
        && match status.st_mode & libc::S_IFMT {
            libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => false,
            // SAFETY: no pointers.
            libc::S_IFCHR => unsafe { libc::isatty(descriptor) != 0 },
            _ => true,
        }
}

unsafe extern "C" fn read(descriptor: c_int, buffer: *mut c_void, len: usize) -> isize {
    if guest_thread::current().is_some() && may_wait(descriptor) {
        refuse("read");
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::read(descriptor, buffer, len) }
}

unsafe extern "C" fn read_checked(
    descriptor: c_int,
    buffer: *mut c_void,
    len: usize,
    _: usize,
) -> isize {
    // SAFETY: the guest's arguments.
    unsafe { read(descriptor, buffer, len) }
}

/// Returns the name of a call of the system that is refused, by its number.
pub(super) const fn refused_number(number: c_long) -> Option<&'static str> {
    Some(match number {
        libc::SYS_poll => "poll",
        libc::SYS_ppoll => "ppoll",
        libc::SYS_select => "select",
        libc::SYS_pselect6 => "pselect",
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => "epoll_wait",
        libc::SYS_accept | libc::SYS_accept4 => "accept",
        libc::SYS_connect => "connect",
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => "recv",
        libc::SYS_pause | libc::SYS_rt_sigsuspend => "pause",
        libc::SYS_rt_sigtimedwait => "sigwait",
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo => "kill",
        libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => "fork",
        libc::SYS_execve | libc::SYS_execveat => "execve",
        libc::SYS_wait4 | libc::SYS_waitid => "waitpid",
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => "nanosleep by syscall",
        _ => return None,
    })
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replacements() -> Vec<Replacement> {
    let mut all = always();
    all.extend(replacements! {
        "poll" => poll,
        "__poll_chk" => poll_checked,
        "select" => select,
        "epoll_wait" => epoll_wait,
        "read" => read,
        "__read_chk" => read_checked,
    });
    all
}
