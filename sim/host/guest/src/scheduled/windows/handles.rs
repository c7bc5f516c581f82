//! Kernel objects by handle: events, semaphores, mutexes and threads. `waits` waits for them.
//!
//! The system makes the objects, so that their handles are handles, and the scheduler has their states.

use super::adopted::adopted;
use super::{Bool, current, succeeds};
use crate::scheduled::Replacement;
use crate::scheduled::objects::{self, place};
use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock, ThreadIndex};
use std::cell::RefCell;
use std::collections::BTreeMap;
use windows_sys::Win32::Foundation::{
    CloseHandle, DuplicateHandle, ERROR_ALREADY_EXISTS, ERROR_INVALID_HANDLE, ERROR_NOT_OWNER,
    ERROR_TOO_MANY_POSTS, HANDLE,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading::{
    CreateEventA, CreateEventExA, CreateEventExW, CreateEventW, CreateMutexA, CreateMutexExA,
    CreateMutexExW, CreateMutexW, CreateSemaphoreA, CreateSemaphoreExA, CreateSemaphoreExW,
    CreateSemaphoreW, GetCurrentThread, ReleaseMutex, ReleaseSemaphore, ResetEvent, SetEvent,
};

/// Bits of the places of mutexes, which no address has.
const MUTEXES: usize = 1 << 62;

/// `CREATE_EVENT_MANUAL_RESET`, `CREATE_EVENT_INITIAL_SET`, and `CREATE_MUTEX_INITIAL_OWNER`.
const EVENT_MANUAL: u32 = 1;
const EVENT_SET: u32 = 2;
const MUTEX_OWNED: u32 = 1;

/// A kernel object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Event {
        manual: bool,
    },
    /// A semaphore with the largest count that it may have.
    Semaphore(i64),
    Mutex,
    Thread(ThreadIndex),
    Timer {
        manual: bool,
    },
}

/// The state of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// 1 for an event that is set and a thread that has ended; the count of a semaphore.
    pub(super) count: i64,
    /// Number of suspensions of a thread.
    pub(super) suspensions: u32,
    /// True for a thread that was started suspended, and has not begun.
    pub(super) is_held_back: bool,
    /// The time (µs) that a timer is set to.
    pub(super) due: Option<u64>,
    /// The time (µs) between two times of a periodic timer, or 0.
    pub(super) period: u64,
}

impl Object {
    const fn new(kind: Kind, count: i64) -> Self {
        Self { kind, count, suspensions: 0, is_held_back: false, due: None, period: 0 }
    }
}

/// The objects of an interleaving.
#[derive(Default)]
struct Handles {
    objects: Vec<Object>,
    /// Indices of objects by handle.
    handles: BTreeMap<usize, usize>,
}

thread_local! {
    /// The objects, on the scheduler's thread.
    static STATE: RefCell<Handles> = RefCell::default();
}

fn with<T>(act: impl FnOnce(&mut Handles) -> T) -> T {
    STATE.with(|state| act(&mut state.borrow_mut()))
}

/// Notes a handle of a new object.
fn insert(handle: usize, object: Object) {
    with(|state| {
        state.objects.push(object);
        state.handles.insert(handle, state.objects.len() - 1);
    });
}

/// Notes a handle of a new object with a count.
pub(super) fn add(handle: usize, kind: Kind, count: i64) {
    insert(handle, Object::new(kind, count));
}

/// Notes the handle of a thread, unless it is known.
pub(super) fn add_thread(handle: usize, thread: ThreadIndex, is_held_back: bool) {
    if !with(|state| state.handles.contains_key(&handle)) {
        let new = Object::new(Kind::Thread(thread), 0);
        insert(handle, Object { suspensions: is_held_back.into(), is_held_back, ..new });
    }
}

/// Forgets a handle.
pub(super) fn forget(handle: usize) {
    with(|state| state.handles.remove(&handle));
}

/// Returns the object of a handle: a handle that the runtime has given stands for a thread of the program.
pub(super) fn find(me: &CurrentThread<'_, '_>, handle: usize) -> Option<(usize, Object)> {
    let known = || {
        with(|state| {
            let at = *state.handles.get(&handle)?;
            Some((at, *state.objects.get(at)?))
        })
    };
    // SAFETY: no pointers.
    if handle == unsafe { GetCurrentThread() } as usize {
        return Some((usize::MAX, Object::new(Kind::Thread(me.index()), 0)));
    }
    known().or_else(|| {
        let thread = me.thread_with_handle(handle as u64).map(|thread| (Kind::Thread(thread), 0));
        let (kind, count) = thread.or_else(|| adopted(handle))?;
        add(handle, kind, count);
        known()
    })
}

/// Returns the state of an object.
pub(super) fn state(at: usize) -> Option<Object> {
    with(|state| state.objects.get(at).copied())
}

/// Changes the state of an object.
pub(super) fn change<T>(at: usize, change: impl FnOnce(&mut Object) -> T) -> Option<T> {
    with(|state| state.objects.get_mut(at).map(change))
}

/// Returns the lock of all handles, and the condition variable of their changes.
pub(super) fn shared(me: &CurrentThread<'_, '_>) -> (ProfilerLock, ConditionVariable) {
    let lock = objects::lock(me, place::HANDLES, LockKind::Plain, "handles of the process");
    (lock, objects::condition(me, place::HANDLES))
}

/// Returns the lock of a mutex.
pub(super) fn mutex_lock(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, MUTEXES | at, LockKind::Reentrant, "mutex")
}

/// Changes an object, and lets the threads that wait look again. `None` if the handle is of no such object.
pub(super) fn change_and_notify<T>(
    me: &CurrentThread<'_, '_>,
    handle: usize,
    act: impl FnOnce(&mut Object) -> T,
) -> Option<T> {
    let (at, _) = find(me, handle)?;
    let (lock, changed) = shared(me);
    me.acquire(lock);
    let done = change(at, act);
    me.wake(changed, true);
    me.unlock(lock);
    done
}

/// Waits until an object is as wanted.
pub(super) fn wait_until(
    me: &CurrentThread<'_, '_>,
    handle: usize,
    is_so: impl Fn(&Object) -> bool,
) {
    let (lock, changed) = shared(me);
    me.acquire(lock);
    while !me.is_over() && find(me, handle).is_some_and(|(_, object)| !is_so(&object)) {
        me.wait_on(changed, lock, None);
    }
    me.unlock(lock);
}

/// Makes an object known that the system has made.
pub(super) fn made(handle: HANDLE, kind: Kind, count: i64) -> HANDLE {
    let exists = super::last_error() == ERROR_ALREADY_EXISTS;
    if let Some(carrier) = current().filter(|_| !handle.is_null()) {
        let at = handle as usize;
        carrier.ask(move |me| {
            if exists {
                me.fail("the profiler has left the simulation: it opens an object that exists");
            }
            let owned = kind == Kind::Mutex && count != 0;
            add(at, kind, if kind == Kind::Mutex { 0 } else { count });
            if let Some((at, _)) = find(me, at).filter(|_| owned) {
                me.acquire(mutex_lock(me, at));
            }
        });
    }
    handle
}

/// Declares functions that make an object, each in the variants for two kinds of text: the system makes it, and
/// the scheduler has its state.
macro_rules! makes {
    ($($($name:ident $real:ident $text:ty),+: $rest:tt;)*) => {
        $($($crate::scheduled::windows::handles::makes! { @one $name $real $text, $rest })+)*
    };
    (@one $name:ident $real:ident $text:ty, {
        ($security:ident, $($before:ident: $type:ty,)* * $text_name:ident $(, $after:ident: $after_type:ty)*)
        ($($passed:expr),*) $kind:expr, $count:expr
    }) => {
        unsafe extern "system" fn $name(
            $security: *const SECURITY_ATTRIBUTES,
            $($before: $type,)*
            $text_name: *const $text,
            $($after: $after_type,)*
        ) -> HANDLE {
            // SAFETY: the guest's arguments.
            made(unsafe { $real($($passed),*) }, $kind, i64::from($count))
        }
    };
}
pub(super) use makes;

makes! {
    event_a CreateEventA u8, event_w CreateEventW u16: {
        (security, manual: Bool, set: Bool, *name) (security, manual, set, name)
        Kind::Event { manual: manual != 0 }, set != 0
    };
    event_ex_a CreateEventExA u8, event_ex_w CreateEventExW u16: {
        (security, *name, flags: u32, access: u32) (security, name, flags, access)
        Kind::Event { manual: flags & EVENT_MANUAL != 0 }, flags & EVENT_SET != 0
    };
    semaphore_a CreateSemaphoreA u8, semaphore_w CreateSemaphoreW u16: {
        (security, count: i32, most: i32, *name) (security, count, most, name)
        Kind::Semaphore(most.into()), count
    };
    semaphore_ex_a CreateSemaphoreExA u8, semaphore_ex_w CreateSemaphoreExW u16: {
        (security, count: i32, most: i32, *name, flags: u32, access: u32)
        (security, count, most, name, flags, access) Kind::Semaphore(most.into()), count
    };
    // The system's mutex has no owner.
    mutex_a CreateMutexA u8, mutex_w CreateMutexW u16: {
        (security, owned: Bool, *name) (security, 0, name) Kind::Mutex, owned != 0
    };
    mutex_ex_a CreateMutexExA u8, mutex_ex_w CreateMutexExW u16: {
        (security, *name, flags: u32, access: u32) (security, name, 0, access)
        Kind::Mutex, flags & MUTEX_OWNED != 0
    };
}

pub(super) unsafe extern "system" fn close(handle: HANDLE) -> Bool {
    let at = handle as usize;
    if let Some(carrier) = current() {
        carrier.ask(move |_| forget(at));
    }
    // SAFETY: the guest's handle.
    unsafe { CloseHandle(handle) }
}

unsafe extern "system" fn duplicate(
    from: HANDLE,
    handle: HANDLE,
    to: HANDLE,
    new: *mut HANDLE,
    access: u32,
    inherit: Bool,
    options: u32,
) -> Bool {
    // SAFETY: the guest's arguments.
    let done = unsafe { DuplicateHandle(from, handle, to, new, access, inherit, options) };
    if let Some(carrier) = current().filter(|_| done != 0 && !new.is_null()) {
        // SAFETY: the system has written a handle.
        let (at, new) = (handle as usize, unsafe { new.read() } as usize);
        carrier.ask(move |me| match find(me, at) {
            Some((usize::MAX, own)) => add(new, own.kind, 0),
            Some((object, _)) => _ = with(|state| state.handles.insert(new, object)),
            None => {}
        });
    }
    done
}

/// Changes an object of the scheduler's, or calls the system.
macro_rules! changes {
    ($handle:expr, $real:expr, $error:expr, |$object:ident| $body:expr) => {{
        let at = $handle as usize;
        let known = current().and_then(|carrier| {
            carrier.ask(move |me| change_and_notify(me, at, |$object| $body)).flatten()
        });
        match known {
            Some(done) => succeeds(done, $error),
            // SAFETY: the guest's arguments.
            None => unsafe { $real },
        }
    }};
}

pub(super) unsafe extern "system" fn set_event(event: HANDLE) -> Bool {
    changes!(event, SetEvent(event), ERROR_INVALID_HANDLE, |object| {
        object.count = 1;
        matches!(object.kind, Kind::Event { .. })
    })
}

unsafe extern "system" fn reset_event(event: HANDLE) -> Bool {
    changes!(event, ResetEvent(event), ERROR_INVALID_HANDLE, |object| {
        object.count = 0;
        matches!(object.kind, Kind::Event { .. })
    })
}

unsafe extern "system" fn release_semaphore(
    semaphore: HANDLE,
    more: i32,
    before: *mut i32,
) -> Bool {
    let mut old = None;
    let into = &mut old;
    let done = changes!(
        semaphore,
        ReleaseSemaphore(semaphore, more, before),
        ERROR_TOO_MANY_POSTS,
        |object| {
            let now = object.count + i64::from(more);
            let fits = matches!(object.kind, Kind::Semaphore(most) if more > 0 && now <= most);
            if fits {
                *into = Some(object.count as i32);
                object.count = now;
            }
            fits
        }
    );
    if let (Some(old), false) = (old, before.is_null()) {
        // SAFETY: the guest's room for a number.
        unsafe { before.write(old) };
    }
    done
}

unsafe extern "system" fn release_mutex(mutex: HANDLE) -> Bool {
    let at = mutex as usize;
    let known = current().and_then(|carrier| {
        carrier
            .ask(move |me| {
                let (at, _) = find(me, at).filter(|(_, object)| object.kind == Kind::Mutex)?;
                let lock = mutex_lock(me, at);
                let owns = me.owns(lock);
                me.unlock(lock);
                Some(owns)
            })
            .flatten()
    });
    match known {
        Some(owned) => succeeds(owned, ERROR_NOT_OWNER),
        // SAFETY: the guest's handle.
        None => unsafe { ReleaseMutex(mutex) },
    }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> Vec<Replacement> {
    let all = replacements! {
        "CreateEventA" => event_a,
        "CreateEventW" => event_w,
        "CreateEventExA" => event_ex_a,
        "CreateEventExW" => event_ex_w,
        "CreateSemaphoreA" => semaphore_a,
        "CreateSemaphoreW" => semaphore_w,
        "CreateSemaphoreExA" => semaphore_ex_a,
        "CreateSemaphoreExW" => semaphore_ex_w,
        "CreateMutexA" => mutex_a,
        "CreateMutexW" => mutex_w,
        "CreateMutexExA" => mutex_ex_a,
        "CreateMutexExW" => mutex_ex_w,
        "CloseHandle" => close,
        "DuplicateHandle" => duplicate,
        "SetEvent" => set_event,
        "ResetEvent" => reset_event,
        "ReleaseSemaphore" => release_semaphore,
        "ReleaseMutex" => release_mutex,
    };
    all.to_vec()
}
