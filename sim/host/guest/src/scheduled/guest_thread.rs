//! Carriers: threads of the system that execute the guest's code, one at a time.
//!
//! A guest's thread is a thread of the system, because the guest's thread-local variables, exceptions
//! and `errno` belong to it. It is paired with a coroutine of the scheduler, which does for it whatever
//! other threads could observe. One of the two runs, and the other waits: the guest's thread asks, and
//! the coroutine answers, or has the thread execute something first, such as a callback.

use super::system::stopped;
use super::{backtrace, sanitizer, system};
use crate::limits::{Beyond, GuestLimits};
use clr_explore::{CurrentThread, ThreadIndex};
use clr_unwind::{Memory as _, Registers};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::{NonNull, null};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Real time that a thread has to stop.
#[cfg(target_os = "linux")]
const TO_STOP: Duration = Duration::from_secs(1);

/// Something that a coroutine does for a guest's thread.
type Request = Box<dyn FnOnce(&CurrentThread<'_, '_>) + Send>;
/// Something that a guest's thread executes.
type Task = Box<dyn FnOnce() + Send>;

/// A message from the guest's thread.
enum FromGuest {
    Does(Request),
    HasExecuted,
    HasEnded,
    /// A fault, by its number, would have ended the process.
    Faults(c_int),
}

/// A message to the guest's thread.
enum ToGuest {
    Execute(Task),
    Answered,
    #[cfg(target_os = "linux")]
    End,
}

/// A place for one message, from one thread to one other.
struct Slot<T> {
    content: Mutex<Content<T>>,
    put: Condvar,
}

struct Content<T> {
    message: Option<T>,
    /// The other thread waits for a message. One that does not is not woken: that would be a call of the system for nothing,
    /// and on one processor it is every other one.
    is_awaited: bool,
}

impl<T> Slot<T> {
    const fn new() -> Self {
        let content = Content { message: None, is_awaited: false };
        Self { content: Mutex::new(content), put: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Content<T>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: T) {
        let is_awaited = {
            let mut content = self.lock();
            content.message = Some(message);
            content.is_awaited
        };
        if is_awaited {
            self.put.notify_one();
        }
    }

    fn take(&self) -> T {
        let mut content = self.lock();
        loop {
            if let Some(message) = content.message.take() {
                content.is_awaited = false;
                return message;
            }
            content.is_awaited = true;
            content = self.put.wait(content).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_within(&self, limit: Duration) -> Option<T> {
        let mut content = self.lock();
        content.is_awaited = content.message.is_none();
        let waits =
            self.put.wait_timeout_while(content, limit, |content| content.message.is_none());
        let mut content = waits.unwrap_or_else(PoisonError::into_inner).0;
        content.is_awaited = false;
        content.message.take()
    }
}

/// The pairing of a guest's thread and a coroutine.
pub(super) struct GuestThread {
    from_guest: Slot<FromGuest>,
    to_guest: Slot<ToGuest>,
    /// The thread of the system; 0 until it has begun, and when it has ended.
    thread: AtomicI32,
    /// The registers with which the thread has stopped.
    stopped: Slot<Registers>,
}

thread_local! {
    /// The carrier of this thread of the system: a reference, or NULL. It has no destructor: those of the guest find it.
    static GUEST_THREAD: Cell<*const GuestThread> = const { Cell::new(null()) };
    /// The carriers of an interleaving's threads, on the scheduler's thread.
    static GUEST_THREADS: RefCell<BTreeMap<ThreadIndex, Arc<GuestThread>>> = RefCell::default();
    /// The limits of the guest, on the scheduler's thread.
    static LIMITS: Cell<GuestLimits> = Cell::default();
}

/// Number of threads that execute, or are to.
static ALIVE: AtomicU64 = AtomicU64::new(0);

/// Sets the limits of the guest.
pub(super) fn set_limits(limits: &GuestLimits) {
    LIMITS.set(*limits);
}

/// Ends the interleaving if it has as many threads as it may. Called before the guest starts another one.
pub(super) fn check_room(me: &CurrentThread<'_, '_>) {
    let most = LIMITS.get().threads;
    if ALIVE.load(Ordering::Relaxed) >= most {
        me.fail(format!("the profiler is beyond a limit: {}", Beyond::Threads(most)));
    }
}

/// Notes the carrier of a thread that the guest has started.
pub(super) fn register(thread: ThreadIndex, carrier: &Arc<GuestThread>) {
    GUEST_THREADS.with(|carriers| carriers.borrow_mut().insert(thread, Arc::clone(carrier)));
}

/// Returns the carrier of a thread of the interleaving. It is made if it is new.
pub(super) fn of(me: &CurrentThread<'_, '_>) -> Arc<GuestThread> {
    let known = GUEST_THREADS.with_borrow(|carriers| carriers.get(&me.index()).cloned());
    known.unwrap_or_else(|| {
        let carrier = system::starting(me, || {
            let carrier = GuestThread::new();
            let its = Arc::clone(&carrier);
            std::thread::spawn(move || {
                #[cfg(target_os = "linux")]
                system::end_with_thread(&its);
                its.carry();
            });
            carrier
        });
        register(me.index(), &carrier);
        carrier
    })
}

/// Returns the carrier of this thread of the system, if it executes the guest's code in an interleaving.
pub(super) fn current() -> Option<Arc<GuestThread>> {
    let carrier = NonNull::new(GUEST_THREAD.get().cast_mut())?;
    // SAFETY: the reference of `settle`, which `end` takes on this thread. One more is counted.
    unsafe {
        Arc::increment_strong_count(carrier.as_ptr());
        Some(Arc::from_raw(carrier.as_ptr()))
    }
}

impl GuestThread {
    pub(super) fn new() -> Arc<Self> {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            from_guest: Slot::new(),
            to_guest: Slot::new(),
            thread: AtomicI32::new(0),
            stopped: Slot::new(),
        })
    }

    /// Makes this thread of the system the carrier's.
    fn settle(self: &Arc<Self>) {
        GUEST_THREAD.set(Arc::into_raw(Arc::clone(self)));
        self.thread.store(system::thread_id(), Ordering::Relaxed);
        stopped::add_stack();
    }

    /// Makes this thread of the system execute tasks until it is to end.
    pub(super) fn carry(self: &Arc<Self>) {
        self.settle();
        sanitizer::enters_tool();
        #[cfg(target_os = "linux")]
        self.execute_until(|message| matches!(message, ToGuest::End));
        // Nothing ends it before its process.
        #[cfg(windows)]
        self.execute_until(|_| false);
        sanitizer::leaves_tool();
    }

    /// Waits until the coroutine of a thread that the guest has started lets it execute its code.
    pub(super) fn begin(self: &Arc<Self>) {
        self.settle();
        sanitizer::enters_tool();
        self.execute_until(|message| matches!(message, ToGuest::Answered));
        sanitizer::leaves_tool();
    }

    /// Lets a thread that the guest has started execute its code, and serves it until it has ended, with the
    /// destructors of its thread-local values.
    pub(super) fn serve_to_end(&self, me: &CurrentThread<'_, '_>) {
        self.to_guest.put(ToGuest::Answered);
        self.serve(me, |message| matches!(message, FromGuest::HasEnded));
    }

    /// Tells the coroutine that the thread executes nothing more.
    pub(super) fn end(&self) {
        let carrier = GUEST_THREAD.replace(null());
        if !carrier.is_null() {
            // SAFETY: the reference of `settle`. The caller has another one.
            drop(unsafe { Arc::from_raw(carrier) });
        }
        self.thread.store(0, Ordering::Relaxed);
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        self.from_guest.put(FromGuest::HasEnded);
    }

    /// Returns the thread of the system, if it executes.
    pub(super) fn id(&self) -> Option<c_int> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Notes that the thread executes nothing more: it has stopped with these registers, by a fault if there is
    /// one. Called in a signal handler of the thread, which does not return.
    pub(super) fn stops(&self, registers: &Registers, fault: Option<c_int>) {
        self.stopped.put(*registers);
        if let Some(signal) = fault {
            self.from_guest.put(FromGuest::Faults(signal));
        }
    }

    /// Returns the registers with which the thread has stopped, if it has.
    pub(super) fn stopped(&self) -> Option<Registers> {
        self.stopped.lock().message
    }

    /// Waits for a thread that is about to stop.
    #[cfg(target_os = "linux")]
    pub(super) fn wait_until_stopped(&self) -> Option<Registers> {
        let registers = self.stopped.take_within(TO_STOP)?;
        self.stopped.put(registers);
        Some(registers)
    }

    fn execute_until(&self, is_last: impl Fn(&ToGuest) -> bool) {
        loop {
            let message = self.to_guest.take();
            if is_last(&message) {
                return;
            }
            if let ToGuest::Execute(task) = message {
                task();
                self.from_guest.put(FromGuest::HasExecuted);
            }
        }
    }

    /// Has the coroutine do something, and waits for it. Meanwhile this thread executes what the
    /// coroutine gives it. What is handed over need not be `Send`: one of the two threads runs at a time.
    pub(super) fn ask<T>(&self, what: impl FnOnce(&CurrentThread<'_, '_>) -> T) -> Option<T> {
        sanitizer::enters_tool();
        let mut answer = None;
        let request = {
            let answer = &mut answer;
            let request: Box<dyn FnOnce(&CurrentThread<'_, '_>) + '_> =
                Box::new(move |me| *answer = Some(what(me)));
            // SAFETY: this thread goes on only when the coroutine has executed the request and
            // dropped it: what it borrows from this stack lives as long, and nothing is used by two
            // threads at a time.
            unsafe {
                std::mem::transmute::<Box<dyn FnOnce(&CurrentThread<'_, '_>) + '_>, Request>(
                    request,
                )
            }
        };
        self.from_guest.put(FromGuest::Does(request));
        self.execute_until(|message| matches!(message, ToGuest::Answered));
        sanitizer::leaves_tool();
        answer
    }

    /// Has the guest's thread execute something, and serves it until that has returned. Called by the
    /// coroutine. A guest that does not give back control has left the simulation, and ends the interleaving.
    pub(super) fn execute<T>(
        &self,
        me: &CurrentThread<'_, '_>,
        task: impl FnOnce() -> T,
    ) -> Option<T> {
        let mut result = None;
        let task = {
            let result = &mut result;
            let task: Box<dyn FnOnce() + '_> = Box::new(move || {
                sanitizer::leaves_tool();
                sanitizer::enters_guest();
                let done = task();
                sanitizer::leaves_guest();
                sanitizer::enters_tool();
                *result = Some(done);
            });
            // SAFETY: the coroutine goes on only when the guest's thread has executed the task and
            // dropped it, or never: a process whose guest has left the simulation ends. Nothing is used by
            // two threads at a time.
            unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Task>(task) }
        };
        self.to_guest.put(ToGuest::Execute(task));
        self.serve(me, |message| matches!(message, FromGuest::HasExecuted));
        result
    }

    /// Ends the guest's thread, and serves it until it has: it may have destructors to execute.
    #[cfg(target_os = "linux")]
    pub(super) fn finish(&self, me: &CurrentThread<'_, '_>) {
        self.to_guest.put(ToGuest::End);
        self.serve(me, |message| matches!(message, FromGuest::HasEnded));
    }

    fn serve(&self, me: &CurrentThread<'_, '_>, is_last: impl Fn(&FromGuest) -> bool) {
        loop {
            let Some(message) = self.from_guest.take_within(LIMITS.get().time) else {
                return me.fail(self.last_seen());
            };
            if is_last(&message) {
                return;
            }
            match message {
                FromGuest::Does(request) => {
                    request(me);
                    self.to_guest.put(ToGuest::Answered);
                }
                FromGuest::Faults(signal) => return me.fail(self.fault(signal)),
                FromGuest::HasExecuted | FromGuest::HasEnded => {}
            }
        }
    }

    /// Returns what the thread does instead of giving back control, in words.
    fn last_seen(&self) -> String {
        let call = self.id().and_then(stopped::waits_in);
        let registers = stopped::registers(self);
        let function = registers.and_then(|registers| backtrace::place(&registers).0);
        let words = match call {
            Some(call) => format!(": it waits in {call}"),
            None if function.is_some() => ": it runs on".to_owned(),
            None => String::new(),
        };
        let place = function.map(|function| format!(", in {function}")).unwrap_or_default();
        format!("the profiler has left the simulation: it has not given back control{words}{place}")
    }

    /// Returns a fault in words.
    fn fault(&self, signal: c_int) -> String {
        let registers = self.stopped();
        let (function, terminates) = registers.as_ref().map(backtrace::place).unwrap_or_default();
        let what = if terminates { "std::terminate" } else { stopped::name(signal) };
        let is_unmapped = registers
            .is_some_and(|registers| system::OwnMemory.read(registers.rip, &mut [0]).is_err());
        let place = if is_unmapped && !terminates { "unloaded code of " } else { "" };
        let place = function.map(|function| format!(" in {place}{function}")).unwrap_or_default();
        let remark = stopped::remark(signal).map(|remark| format!(": {remark}"));
        format!("{what}{place}{}", remark.unwrap_or_default())
    }
}

/// Calls `each` with the threads of the interleaving that have executed code of the guest.
pub(super) fn for_each(mut each: impl FnMut(ThreadIndex, &Arc<GuestThread>)) {
    GUEST_THREADS.with(|carriers| {
        for (thread, carrier) in &*carriers.borrow() {
            each(*thread, carrier);
        }
    });
}
