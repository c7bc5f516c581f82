//! Calls that read, write, connect and close descriptors.

use super::descriptors::{
    self, Connection, Waited, announce, is_ready, option_of, point, wait_for,
};
use super::polls::int;
use super::{Replacement, guest_thread, refuse, refused, timers};
use clr_explore::Interruption;
use libc::{c_int, c_short, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t, timeval};

/// Most bytes that a pipe or a socket takes at once when it is ready (`PIPE_BUF`).
const CHUNK: usize = 4_096;

/// Returns true if a call on the descriptor returns at once, whatever comes of it.
fn returns_at_once(descriptor: c_int, flags: c_int) -> bool {
    // SAFETY: no pointers.
    let modes = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    flags & libc::MSG_DONTWAIT != 0 || modes & libc::O_NONBLOCK != 0
}

/// Returns the time (µs) that a call on a socket waits at most.
fn limit_of(descriptor: c_int, wanted: c_short) -> Option<u64> {
    let name = if wanted == libc::POLLIN { libc::SO_RCVTIMEO } else { libc::SO_SNDTIMEO };
    let found = option_of(descriptor, name, timeval { tv_sec: 0, tv_usec: 0 })?;
    let micros = found.tv_sec.saturating_mul(1_000_000).saturating_add(found.tv_usec);
    u64::try_from(micros).ok().filter(|micros| *micros > 0)
}

/// Makes a call on a descriptor once it does not wait, and shows others that the descriptor has changed.
fn transfer(
    call: &'static str,
    (descriptor, wanted, flags): (c_int, c_short, c_int),
    transfer: impl Fn() -> ssize_t,
) -> ssize_t {
    if guest_thread::current().is_none() {
        return transfer();
    }
    let returns = returns_at_once(descriptor, flags);
    match descriptors::of(descriptor) {
        Connection::Nothing => return transfer(),
        // Who reads what this process writes takes it some time.
        Connection::Outside => {
            if wanted == libc::POLLIN && !returns && !is_ready(descriptor, wanted) {
                refused::refuse(call);
            }
            return transfer();
        }
        Connection::Threads if returns => point(),
        Connection::Threads => {
            let limit = limit_of(descriptor, wanted);
            // A call with a limit is never restarted (signal(7)).
            let by =
                if limit.is_some() { Interruption::Always } else { Interruption::UnlessRestarted };
            match wait_for(call, &[descriptor], (limit, by), || is_ready(descriptor, wanted)) {
                Waited::Ready => {}
                Waited::TimedOut => return refuse(libc::EAGAIN) as ssize_t,
                Waited::Interrupted => return refuse(libc::EINTR) as ssize_t,
            }
        }
    }
    let result = transfer();
    announce();
    result
}

/// Writes bytes in pieces that a descriptor which is ready takes without a wait.
fn write_all(
    call: &'static str,
    (descriptor, flags): (c_int, c_int),
    len: usize,
    write: impl Fn(usize, usize) -> ssize_t,
) -> ssize_t {
    let is_cut = len > CHUNK
        && !returns_at_once(descriptor, flags)
        && guest_thread::current().is_some()
        && descriptors::of(descriptor) == Connection::Threads
        && option_of(descriptor, libc::SO_TYPE, 0) != Some(libc::SOCK_DGRAM);
    let most = if is_cut { CHUNK } else { len };
    let mut done = 0;
    loop {
        let wanted = (descriptor, libc::POLLOUT, flags);
        let result = transfer(call, wanted, || write(done, most.min(len - done)));
        match usize::try_from(result) {
            Ok(more) => done += more,
            Err(_) if done == 0 => return result,
            Err(_) => break,
        }
        if done >= len || !is_cut {
            break;
        }
    }
    done.cast_signed()
}

/// Makes a call that may change what others wait for, and does not wait itself.
fn change<T>(descriptor: c_int, change: impl FnOnce() -> T) -> T {
    let is_own =
        guest_thread::current().is_some() && descriptors::of(descriptor) == Connection::Threads;
    if is_own {
        point();
    }
    let result = change();
    if is_own {
        announce();
    }
    result
}

unsafe extern "C" fn read(descriptor: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    let wanted = (descriptor, libc::POLLIN, 0);
    // SAFETY: the guest's arguments.
    let result = transfer("read", wanted, || unsafe { libc::read(descriptor, buffer, len) });
    if result == size_of::<u64>().cast_signed()
        && guest_thread::current().is_some()
        && let Some(expired) = timers::take(descriptor)
    {
        // SAFETY: the guest's room, which has a number of the system.
        unsafe { buffer.cast::<u64>().write_unaligned(expired) };
    }
    result
}

unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, len: size_t) -> ssize_t {
    write_all("write", (descriptor, 0), len, |from, len| {
        // SAFETY: the guest's arguments, or a part of them.
        unsafe { libc::write(descriptor, bytes.byte_add(from), len) }
    })
}

unsafe extern "C" fn send(
    socket: c_int,
    bytes: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    write_all("send", (socket, flags), len, |from, len| {
        // SAFETY: the guest's arguments, or a part of them.
        unsafe { libc::send(socket, bytes.byte_add(from), len, flags) }
    })
}

/// Declares calls that wait for something of a descriptor.
macro_rules! transfers {
    ($($name:ident $wanted:ident ($fd:ident $(, $argument:ident: $type:ty)*), $flags:expr;)*) => {$(
        unsafe extern "C" fn $name($fd: c_int $(, $argument: $type)*) -> ssize_t {
            transfer(stringify!($name), ($fd, libc::$wanted, $flags), || {
                // SAFETY: the guest's arguments.
                unsafe { libc::$name($fd $(, $argument)*) as ssize_t }
            })
        }
    )*};
}

transfers! {
    readv POLLIN (file, parts: *const iovec, count: c_int), 0;
    writev POLLOUT (file, parts: *const iovec, count: c_int), 0;
    recv POLLIN (socket, buffer: *mut c_void, len: size_t, flags: c_int), flags;
    recvfrom POLLIN (socket, buffer: *mut c_void, len: size_t, flags: c_int, from: *mut sockaddr, size: *mut socklen_t), flags;
    recvmsg POLLIN (socket, message: *mut msghdr, flags: c_int), flags;
    sendto POLLOUT (socket, buffer: *const c_void, len: size_t, flags: c_int, to: *const sockaddr, size: socklen_t), flags;
    sendmsg POLLOUT (socket, message: *const msghdr, flags: c_int), flags;
    accept POLLIN (socket, from: *mut sockaddr, size: *mut socklen_t), 0;
    accept4 POLLIN (socket, from: *mut sockaddr, size: *mut socklen_t, flags: c_int), 0;
}

/// Returns true if a connection may take as long as the world outside likes.
fn is_slow(socket: c_int, address: *const sockaddr) -> bool {
    // SAFETY: NULL, or the guest's address.
    let family = unsafe { address.as_ref() }.map(|address| c_int::from(address.sa_family));
    family.is_some_and(|family| family != libc::AF_UNIX && family != libc::AF_UNSPEC)
        && option_of(socket, libc::SO_TYPE, libc::SOCK_STREAM) == Some(libc::SOCK_STREAM)
        && !returns_at_once(socket, 0)
}

unsafe extern "C" fn connect(socket: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    if guest_thread::current().is_some() {
        if is_slow(socket, address) {
            refused::refuse("connect");
        }
        point();
    }
    // SAFETY: the guest's arguments.
    let result = unsafe { libc::connect(socket, address, len) };
    announce();
    result
}

unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    change(descriptor, || {
        timers::forget(descriptor);
        // SAFETY: the guest's descriptor.
        unsafe { libc::close(descriptor) }
    })
}

unsafe extern "C" fn shutdown(socket: c_int, how: c_int) -> c_int {
    // SAFETY: the guest's socket.
    change(socket, || unsafe { libc::shutdown(socket, how) })
}

unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the guest's descriptors.
    change(to, || unsafe { libc::dup2(from, to) })
}

unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the guest's descriptors.
    change(to, || unsafe { libc::dup3(from, to, flags) })
}

unsafe extern "C" fn close_stream(stream: *mut libc::FILE) -> c_int {
    // SAFETY: the guest's stream, here and below.
    change(unsafe { libc::fileno(stream) }, || unsafe { libc::fclose(stream) })
}

unsafe extern "C" fn flush(stream: *mut libc::FILE) -> c_int {
    // SAFETY: the guest's stream.
    let descriptor = if stream.is_null() { -1 } else { unsafe { libc::fileno(stream) } };
    // SAFETY: the guest's stream, or all.
    change(descriptor, || unsafe { libc::fflush(stream) })
}

unsafe extern "C" fn control_events(
    set: c_int,
    operation: c_int,
    descriptor: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    // SAFETY: the guest's arguments.
    change(set, || unsafe { libc::epoll_ctl(set, operation, descriptor, event) })
}

unsafe extern "C" fn read_counter(descriptor: c_int, value: *mut u64) -> c_int {
    // SAFETY: the guest's room for a number.
    let read = unsafe { read(descriptor, value.cast(), size_of::<u64>()) };
    if read == size_of::<u64>().cast_signed() { 0 } else { -1 }
}

unsafe extern "C" fn write_counter(descriptor: c_int, value: u64) -> c_int {
    // SAFETY: a local number.
    let written = unsafe { write(descriptor, (&raw const value).cast(), size_of::<u64>()) };
    if written == size_of::<u64>().cast_signed() { 0 } else { -1 }
}

unsafe extern "C" fn read_checked(
    descriptor: c_int,
    buffer: *mut c_void,
    len: size_t,
    _: size_t,
) -> ssize_t {
    // SAFETY: the guest's arguments.
    unsafe { read(descriptor, buffer, len) }
}

unsafe extern "C" fn recv_checked(
    socket: c_int,
    buffer: *mut c_void,
    len: size_t,
    _: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the guest's arguments.
    unsafe { recv(socket, buffer, len, flags) }
}

/// Makes a call of the system by its number, if it is one of these.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, [first, second, third]: [usize; 3]) -> Option<ssize_t> {
    let descriptor = int(first);
    // SAFETY: the caller's promise.
    Some(unsafe {
        match number {
            libc::SYS_read => read(descriptor, second as *mut c_void, third),
            libc::SYS_write => write(descriptor, second as *const c_void, third),
            libc::SYS_close => close(descriptor) as ssize_t,
            _ => return None,
        }
    })
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> Vec<Replacement> {
    let all = replacements! {
        "read" => read,
        "__read_chk" => read_checked,
        "readv" => readv,
        "write" => write,
        "writev" => writev,
        "recv" => recv,
        "__recv_chk" => recv_checked,
        "recvfrom" => recvfrom,
        "recvmsg" => recvmsg,
        "send" => send,
        "sendto" => sendto,
        "sendmsg" => sendmsg,
        "accept" => accept,
        "accept4" => accept4,
        "connect" => connect,
        "shutdown" => shutdown,
        "close" => close,
        "dup2" => dup2,
        "dup3" => dup3,
        "fclose" => close_stream,
        "fflush" => flush,
        "epoll_ctl" => control_events,
        "eventfd_read" => read_counter,
        "eventfd_write" => write_counter,
        "timerfd_settime" => timers::set,
        "timerfd_gettime" => timers::get,
    };
    all.into()
}
