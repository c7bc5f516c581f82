//! Interleavings in processes of their own: what a guest has done to its variables, its threads and its heap
//! cannot be undone, so each interleaving begins with a copy of a process that has loaded the guest, and called
//! nothing.

use super::reports::{self, Garbled, Kind};
use super::streams::Streams;
use crate::confined::{PAUSE, adopt, end_descendants, end_group, live_with_parent, usage};
use crate::limits::{Beyond, GuestLimits, Usage};
use crate::scheduled::ending::{Detail, Died, GuestEnding};
use crate::thread_count;
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Gives this process the same addresses each time it is started, so that containers that are ordered by
/// address are traversed in the same order. Returns true if the process has to be started again for that.
pub fn fix_addresses() -> bool {
    // SAFETY: no pointers: the value asks for the current flags.
    let flags = unsafe { libc::personality(0xFFFF_FFFF) };
    if flags < 0 || flags & libc::ADDR_NO_RANDOMIZE != 0 {
        return false;
    }
    // SAFETY: no pointers. A system that refuses leaves addresses random.
    unsafe { libc::personality(u64::from((flags | libc::ADDR_NO_RANDOMIZE).cast_unsigned())) >= 0 }
}

/// Executes an interleaving in a copy of this process.
pub(crate) fn run_in_copy(
    limits: &GuestLimits,
    detail: Detail<'_>,
    run: impl FnOnce() -> GuestEnding,
) -> Result<GuestEnding, Died> {
    let then = if let Detail::Stopped(_, then) = detail { Some(then) } else { None };
    let is_silent = matches!(detail, Detail::Ending | Detail::Description(_));
    let streams = if is_silent { None } else { Streams::new() };
    let ended = in_copy(limits, (is_silent, streams.as_ref()), then, || run().to_bytes());
    if let (Some(streams), None) = (&streams, then) {
        streams.print(limits.output);
    }
    GuestEnding::from_bytes(&ended?).ok_or(Died::Garbled)
}

/// Executes `act` in a copy of this process, which ends after it, and returns its bytes. The copy prints nothing, or what it
/// prints is in `streams`. With `then` the copy stops before its end, and `then` is called with its process id.
///
/// # Errors
/// Returns [`Died`] if the copy ended otherwise. If this process has other threads there is none: a lock that
/// one of them owns would never be released in the copy.
fn in_copy(
    limits: &GuestLimits,
    (silent, streams): (bool, Option<&Streams>),
    then: Option<&dyn Fn(u32)>,
    act: impl FnOnce() -> Vec<u8>,
) -> Result<Vec<u8>, Died> {
    if thread_count::count() != Some(1) {
        return Err(Died::NoProcess(None));
    }
    let [mut from, mut to] = pipe()?;
    let strangers = adopt();
    // SAFETY: this thread is the only one.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error().into()),
        0 => {
            drop(from);
            live_with_parent();
            stay_here();
            reports::settle(&to);
            if silent {
                be_silent();
            } else if let Some(streams) = streams {
                streams.take();
            }
            let bytes = act();
            print_all();
            // If the other process has ended, nobody waits for the bytes.
            let is_sent = reports::send(&mut to, &bytes);
            // The guest may have closed it.
            let _ = to.into_raw_fd();
            if then.is_some() {
                // SAFETY: no pointers: any process may trace this one, which stops here.
                unsafe {
                    libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY);
                    libc::raise(libc::SIGSTOP);
                }
            }
            // SAFETY: no destructors are executed: the guest's threads may wait for ever.
            unsafe { libc::_exit(if is_sent { 0 } else { NOT_SENT }) }
        }
        child => {
            drop(to);
            let beyond = watch(child, &from, limits, streams, None);
            // The guest's own copies may have the other end, too: no end of the file is waited for.
            let report = if beyond.is_none() { reports::receive(&mut from) } else { Ok(None) };
            drop(from);
            if report.is_err() {
                // What it does meanwhile is for nobody.
                // SAFETY: no pointers: a child that was not waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            let status = wait(child, if then.is_some() { libc::WUNTRACED } else { 0 });
            if let Some(then) = then
                && libc::WIFSTOPPED(status)
            {
                if let Some(streams) = streams {
                    streams.print(limits.output);
                }
                then(child.cast_unsigned());
                // SAFETY: no pointers; nothing waits for its end but this.
                unsafe { libc::kill(child, libc::SIGKILL) };
                wait(child, 0);
                let is_done = matches!(report, Ok(Some(_)));
                let died = if is_done { Died::Exit(0) } else { Died::Signal(libc::SIGKILL) };
                return done(report, died);
            }
            // SAFETY: no pointers: what the guest has started outside of the simulation ends, too.
            unsafe { libc::kill(-child, libc::SIGKILL) };
            end_descendants(&strangers);
            match (died(status), beyond) {
                (_, Some(beyond)) => Err(Died::Beyond(beyond)),
                (Died::Exit(NOT_SENT), None) => done(report, Died::Garbled),
                (died, None) => done(report, died),
            }
        }
    }
}

/// The exit code of a copy that could not send its report.
const NOT_SENT: i32 = 117;

/// Returns the bytes of what a copy has done, or how it ended: without a report it `died` so.
fn done(report: Result<Option<(Kind, Vec<u8>)>, Garbled>, died: Died) -> Result<Vec<u8>, Died> {
    match (report, died) {
        (Ok(Some((Kind::DamagedHeap, message))), _) => {
            Err(Died::DamagedHeap(String::from_utf8_lossy(&message).into_owned()))
        }
        (Ok(Some((Kind::Done, bytes))), Died::Exit(_)) => Ok(bytes),
        (Err(Garbled), _) => Err(Died::Garbled),
        (Ok(_), died) => Err(died),
    }
}

/// Waits until a copy of this process has sent something, or has ended. Ends it beyond its limits; its time is one of them
/// if it has begun at `start`.
fn watch(
    child: libc::pid_t,
    from: &File,
    limits: &GuestLimits,
    streams: Option<&Streams>,
    start: Option<Instant>,
) -> Option<Beyond> {
    let mut one = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, here and below.
    while unsafe { libc::poll(&raw mut one, 1, PAUSE.subsec_millis().cast_signed()) } == 0 {
        // Threads are counted as the guest starts them.
        let used = Usage {
            output: streams.map_or(0, Streams::bytes),
            threads: 0,
            ..usage(child).unwrap_or_default()
        };
        let exceeded =
            start.map_or(limits.exceeded(used), |start| limits.exceeded_since(start, used));
        if let beyond @ Some(_) = exceeded {
            // SAFETY: no pointers: a child that was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return beyond;
        }
    }
    None
}

/// Prints what the guest has left in the buffer of its standard output, unless a thread has stopped in there.
fn print_all() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(stream: *mut libc::FILE) -> i32;
        fn fflush_unlocked(stream: *mut libc::FILE) -> i32;
    }
    // SAFETY: the C library's stream, which this thread locks; the process ends after this.
    unsafe {
        if ftrylockfile(stdout) == 0 {
            fflush_unlocked(stdout);
        }
    }
}

/// Real time that a library has to be loaded before its initialisers are found to need the scheduler.
const TO_LOAD: Duration = Duration::from_secs(2);

/// Returns true if a library can be loaded here: its initialisers return, and start no threads. A copy of this process tries it.
pub(crate) fn can_be_loaded(load: impl FnOnce()) -> bool {
    let Ok([from, mut to]) = pipe() else { return true };
    let strangers = adopt();
    // SAFETY: the copy executes what follows alone.
    match unsafe { libc::fork() } {
        -1 => true,
        0 => {
            live_with_parent();
            be_silent();
            load();
            let is_alone = thread_count::count() == Some(1);
            let _ = to.write_all(&[u8::from(is_alone)]);
            // SAFETY: no destructors are executed: threads may be in their code.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(to);
            let limits = GuestLimits { time: TO_LOAD, ..GuestLimits::default() };
            let mut answer = [0];
            if watch(child, &from, &limits, None, Some(Instant::now())).is_none() {
                let _ = (&from).read(&mut answer);
            }
            end_group(child);
            wait(child, 0);
            end_descendants(&strangers);
            answer == [1]
        }
    }
}

/// Creates a pipe. Returns the end to read from, and the end to write to.
fn pipe() -> Result<[File; 2], Died> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last_os_error().into());
    }
    // SAFETY: two descriptors that nothing else owns.
    Ok(ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) })))
}

/// Waits for a child of this process, and returns its status.
fn wait(child: libc::pid_t, options: i32) -> i32 {
    let mut status = 0;
    // SAFETY: room for a status.
    unsafe { libc::waitpid(child, &raw mut status, options) };
    status
}

/// Returns the way in which a process with this status ended.
fn died(status: i32) -> Died {
    if libc::WIFSIGNALED(status) {
        Died::Signal(libc::WTERMSIG(status))
    } else {
        Died::Exit(libc::WEXITSTATUS(status))
    }
}

/// Drops what this process prints.
fn be_silent() {
    let Ok(nowhere) = File::options().write(true).open("/dev/null") else { return };
    for stream in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: two descriptors of this process.
        unsafe { libc::dup2(nowhere.as_raw_fd(), stream) };
    }
}

/// Keeps this process, and its copies, on the processor that it is on: one of their threads runs at a time, and handing over
/// to another one is several times as fast on the same processor.
pub fn stay_here() {
    // SAFETY: a set of processors is plain data, of which an empty one is made here; the calls have no other
    // pointers. Without success the process is slower.
    unsafe {
        let Ok(processor) = usize::try_from(libc::sched_getcpu()) else { return };
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Calls `work` in copies of this process, side by side, with their numbers and a function that sends a record;
/// `receive` gets the records as they come. Returns when all copies have ended.
///
/// # Errors
/// Returns [`Died`] if a copy cannot be made, or has not returned from `work`; records may have come before.
pub fn in_workers(
    count: usize,
    mut work: impl FnMut(usize, &mut dyn FnMut(&[u8])),
    mut receive: impl FnMut(&[u8]),
) -> Result<(), Died> {
    let mut workers = Vec::new();
    for number in 0..count {
        let [from, mut to] = pipe()?;
        // SAFETY: no other thread is needed in the copy.
        match unsafe { libc::fork() } {
            -1 => return Err(Error::last_os_error().into()),
            0 => {
                drop(from);
                // It stays in the group of the tool, as interrupts are for it, too.
                // SAFETY: no pointers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                stay_on(number);
                let mut is_heard = true;
                work(number, &mut |record| {
                    is_heard = is_heard && reports::send(&mut to, record);
                });
                // SAFETY: no destructors are executed, as in an interleaving.
                unsafe { libc::_exit(i32::from(!is_heard)) }
            }
            child => workers.push((child, from)),
        }
    }
    let mut polled: Vec<_> = workers
        .iter()
        .map(|(_, from)| libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let mut ended = Ok(());
    while polled.iter().any(|one| one.fd >= 0) {
        // SAFETY: the descriptors of the pipes; those that have ended are negative, and left out.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, -1) };
        for (one, (child, from)) in polled.iter_mut().zip(&mut workers) {
            if one.fd < 0 || one.revents == 0 {
                continue;
            }
            match reports::receive(from) {
                Ok(Some((_, record))) => receive(&record),
                Ok(None) => one.fd = -1,
                Err(Garbled) => {
                    (one.fd, ended) = (-1, Err(Died::Garbled));
                    // SAFETY: no pointers: a child that was not waited for, and might wait for this process.
                    unsafe { libc::kill(*child, libc::SIGKILL) };
                }
            }
        }
    }
    for (child, _) in workers {
        match died(wait(child, 0)) {
            Died::Exit(0) => {}
            other => ended = ended.and(Err(other)),
        }
    }
    ended
}

/// Keeps this process, and its copies, on one of the processors that it may use.
fn stay_on(number: usize) {
    // SAFETY: a set of processors is plain data; the calls have no other pointers. Without success copies may
    // share processors.
    unsafe {
        let (mut allowed, mut own): (libc::cpu_set_t, libc::cpu_set_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        let size = size_of::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size, &raw mut allowed);
        let all = || 0..libc::CPU_SETSIZE as usize;
        let processors = || all().filter(|processor| libc::CPU_ISSET(*processor, &allowed));
        let Some(processor) = processors().cycle().nth(number) else { return };
        libc::CPU_SET(processor, &mut own);
        libc::sched_setaffinity(0, size, &raw const own);
    }
}
