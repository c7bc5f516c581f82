//! A library of Rust with the habits of NativeAOT: destructors of keys, and a helper thread that polls its own pipe.

use std::cell::RefCell;
use std::ffi::{c_int, c_short, c_void};
use std::ptr::null;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[repr(C)]
struct Polled {
    descriptor: c_int,
    events: c_short,
    found: c_short,
}

unsafe extern "C" {
    fn pipe(ends: *mut c_int) -> c_int;
    fn poll(polled: *mut Polled, count: u64, limit: c_int) -> c_int;
    fn read(descriptor: c_int, buffer: *mut u8, len: usize) -> isize;
    fn write(descriptor: c_int, buffer: *const u8, len: usize) -> isize;
    fn pthread_key_create(key: *mut u32, end: extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    fn pthread_create(
        thread: *mut u64,
        attributes: *const c_void,
        code: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_detach(thread: u64) -> c_int;
}

struct Says(Sender<u32>);

impl Drop for Says {
    fn drop(&mut self) {
        let _ = self.0.send(2);
    }
}

thread_local! {
    static SAYS: RefCell<Option<Says>> = const { RefCell::new(None) };
}

/// What a thread sends, and the destructor of its value says, arrives in order.
#[unsafe(no_mangle)]
pub extern "C" fn values_of_rust() {
    let (to, from) = channel();
    let worker = thread::spawn(move || {
        SAYS.with_borrow_mut(|says| *says = Some(Says(to.clone())));
        to.send(1).unwrap();
    });
    assert!(from.recv() == Ok(1) && from.recv() == Ok(2) && from.recv().is_err());
    worker.join().unwrap();
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let of_other = Arc::clone(&pair);
    let other = thread::spawn(move || {
        *of_other.0.lock().unwrap() = true;
        of_other.1.notify_one();
    });
    drop(pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap());
    other.join().unwrap();
}

static DETACHED: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

extern "C" fn end(_: *mut c_void) {
    *DETACHED.0.lock().unwrap() += 1;
    DETACHED.1.notify_all();
}

extern "C" fn attached(key: *mut c_void) -> *mut c_void {
    unsafe { pthread_setspecific(key as usize as u32, 1 as *const c_void) };
    null::<c_void>().cast_mut()
}

/// The runtime detaches a thread in the destructor of a key, and somebody waits for that.
#[unsafe(no_mangle)]
pub extern "C" fn threads_detach() {
    let mut key = 0;
    unsafe {
        assert_eq!(pthread_key_create(&mut key, end), 0);
        for _ in 0..2 {
            let mut thread = 0;
            assert_eq!(pthread_create(&mut thread, null(), attached, key as usize as *mut c_void), 0);
            pthread_detach(thread);
        }
    }
    drop(DETACHED.1.wait_while(DETACHED.0.lock().unwrap(), |ended| *ended < 2).unwrap());
}

/// The helper does what comes by its pipe, until that says to end.
#[unsafe(no_mangle)]
pub extern "C" fn helper_polls() {
    let mut ends = [0; 2];
    assert_eq!(unsafe { pipe(ends.as_mut_ptr()) }, 0);
    let [from, to] = ends;
    let helper = thread::spawn(move || {
        let mut done = 0;
        loop {
            let mut one = Polled { descriptor: from, events: 1, found: 0 };
            let mut byte = 0;
            assert_eq!(unsafe { poll(&mut one, 1, -1) }, 1);
            assert_eq!(unsafe { read(from, &mut byte, 1) }, 1);
            match byte {
                0 => return done,
                more => done += u32::from(more),
            }
        }
    });
    for byte in [2, 3, 0] {
        assert_eq!(unsafe { write(to, &byte, 1) }, 1);
    }
    assert_eq!(helper.join().unwrap(), 5);
}
