//! ThreadSanitizer's view of the scheduler, if it is in the process (its library has to be preloaded).
//!
//! One thread of an interleaving runs at a time, but a thread of a guest is ordered with another one only by what the guest
//! does: its locks, its joins, and the runtime's suspensions. Here the sanitizer learns these orders, and that the
//! tool's own accesses are none of the guest's, so that it finds a guest's data races in any interleaving.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A function of the sanitizer's annotations without an address.
type Plain = unsafe extern "C" fn(*const c_char, c_int);
/// A function of the sanitizer's annotations for an address.
type OfAddress = unsafe extern "C" fn(*const c_char, c_int, *const c_void);

/// The sanitizer's functions.
struct Annotations {
    before: OfAddress,
    after: OfAddress,
    /// Begin and end of accesses that it does not look at: reads, then writes.
    begin: [Plain; 2],
    end: [Plain; 2],
}

/// Returns a function of the sanitizer.
#[cfg(target_os = "linux")]
fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text with a final NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Returns none: the sanitizer is not for this system.
#[cfg(not(target_os = "linux"))]
const fn find(_: &CStr) -> Option<*mut c_void> {
    None
}

/// Returns true if a sanitizer of LLVM or GCC is in the process.
#[cfg(target_os = "linux")]
pub(super) fn is_there() -> bool {
    [c"__tsan_acquire", c"__asan_init", c"__msan_init"].into_iter().any(|name| find(name).is_some())
}

const HERE: *const c_char = c"clr-host".as_ptr();

/// Places for orders that no object of the guest stands for: what threads have done when they are suspended, and
/// what a thread does before it resumes them.
static SUSPENDED: u8 = 0;
static RESUMED: u8 = 0;
/// The place for what was done before a thread first executes code of the guest.
static BEFORE: u8 = 0;

fn annotations() -> Option<&'static Annotations> {
    static FOUND: OnceLock<Option<Annotations>> = OnceLock::new();
    let all = || {
        // Valgrind's tools have annotations of the same names; ThreadSanitizer has this function, too.
        find(c"__tsan_acquire")?;
        // SAFETY: functions of these names have these types (dynamic_annotations.h of LLVM).
        unsafe {
            let plain = |name| Some(std::mem::transmute::<*mut c_void, Plain>(find(name)?));
            let of = |name| Some(std::mem::transmute::<*mut c_void, OfAddress>(find(name)?));
            Some(Annotations {
                before: of(c"AnnotateHappensBefore")?,
                after: of(c"AnnotateHappensAfter")?,
                begin: [plain(c"AnnotateIgnoreReadsBegin")?, plain(c"AnnotateIgnoreWritesBegin")?],
                end: [plain(c"AnnotateIgnoreReadsEnd")?, plain(c"AnnotateIgnoreWritesEnd")?],
            })
        }
    };
    FOUND.get_or_init(all).as_ref()
}

/// Finds the sanitizer, if there is one.
#[cfg(target_os = "linux")]
pub(super) fn prepare() {
    annotations();
}

/// Orders what this thread has done before what a thread does that [`acquires`] the object after this.
pub(super) fn releases(at: usize) {
    if let Some(annotations) = annotations() {
        // SAFETY: the sanitizer takes any address.
        unsafe { (annotations.before)(HERE, 0, at as *const c_void) };
    }
}

/// Orders what this thread does after what threads have done that have [released](releases) the object.
pub(super) fn acquires(at: usize) {
    if let Some(annotations) = annotations() {
        // SAFETY: as above.
        unsafe { (annotations.after)(HERE, 0, at as *const c_void) };
    }
}

/// Begins code of the tool on a guest's thread.
pub(super) fn enters_tool() {
    for begin in annotations().iter().flat_map(|annotations| annotations.begin) {
        // SAFETY: the sanitizer counts.
        unsafe { begin(HERE, 0) };
    }
}

/// Ends code of the tool on a guest's thread.
pub(super) fn leaves_tool() {
    for end in annotations().iter().flat_map(|annotations| annotations.end) {
        // SAFETY: the sanitizer counts.
        unsafe { end(HERE, 0) };
    }
}

/// Begins code of the guest that the runtime calls.
pub(super) fn enters_guest() {
    acquires(&raw const BEFORE as usize);
    acquires(&raw const RESUMED as usize);
}

/// Ends code of the guest that the runtime has called.
pub(super) fn leaves_guest() {
    releases(&raw const SUSPENDED as usize);
}

/// Ends the runtime's start: all threads of the program come after it.
pub(super) fn has_started() {
    releases(&raw const BEFORE as usize);
}

/// Orders a call of the runtime that resumes threads before what they do then.
pub(crate) fn begins_call(method: &str) {
    if method == "ResumeRuntime" {
        releases(&raw const RESUMED as usize);
    }
}

/// Orders a call of the runtime that has suspended threads after what they have done.
pub(crate) fn ends_call(method: &str) {
    if method == "SuspendRuntime" {
        acquires(&raw const SUSPENDED as usize);
    }
}
