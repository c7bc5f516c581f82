//! Calls of the system that wait outside of the simulation, or leave its process. A thread of an interleaving that makes
//! one would wait with the baton in its hand, for something that no simulated thread does: the interleaving ends with a
//! message that names the call.

use super::{Replacement, guest_thread};
use clr_explore::CurrentThread;
use libc::{c_long, c_void};
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

        /// Returns the functions that imports of the guest are to lead to.
        pub(super) fn replacements() -> Vec<Replacement> {
            vec![$(Replacement {
                name: stringify!($name),
                with: $name as *const c_void,
            }),*]
        }
    };
}

refused! {
    recvmmsg __recvfrom_chk
    msgrcv mq_receive mq_timedreceive semop semtimedop
    pthread_cancel
    kill killpg sigqueue pthread_sigqueue
    fork _Fork vfork clone execve execv execvp execvpe fexecve execl execlp execle
    posix_spawn posix_spawnp system popen wait wait3 wait4 waitpid waitid
}

/// Returns the name of a call of the system that is refused, by its number.
pub(super) const fn refused_number(number: c_long) -> Option<&'static str> {
    Some(match number {
        libc::SYS_pselect6 => "pselect",
        libc::SYS_epoll_pwait2 => "epoll_pwait2",
        libc::SYS_accept | libc::SYS_accept4 => "accept",
        libc::SYS_connect => "connect",
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => "recv",
        libc::SYS_rt_sigtimedwait => "sigwait",
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo => "kill",
        libc::SYS_fork | libc::SYS_vfork => "fork",
        libc::SYS_clone | libc::SYS_clone3 => "clone",
        libc::SYS_exit => "exit by syscall",
        libc::SYS_execve | libc::SYS_execveat => "execve",
        libc::SYS_wait4 | libc::SYS_waitid => "waitpid",
        _ => return None,
    })
}
