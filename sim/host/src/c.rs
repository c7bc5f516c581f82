//! The functions of `clrsim.h`.
//!
//! A `clrsim_session *` is a number, and never an address: each function looks it up, so that a
//! closed session, one of another thread, NULL or garbage is an error and nothing else.

use crate::session::{Role, Session, SessionError};
use clr_runtime::generation::Generation;
use clr_scenario::MAX_TEXT;
use clr_walker::profiling::HResult;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs::File;
use std::io::{self, Read as _};
use std::ptr::{null, null_mut};

/// The status of a call: `clrsim_status`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `CLRSIM_OK`.
    Ok = 0,
    /// `CLRSIM_BAD_ARGUMENT`: NULL, text that is not UTF-8, or a word that does not exist.
    BadArgument = 1,
    /// `CLRSIM_NO_SESSION`: the session is closed, of another thread, or never was one.
    NoSession = 2,
    /// `CLRSIM_NO_RUNTIME`: no runtime has this name.
    NoRuntime = 3,
    /// `CLRSIM_BAD_TEXT`: the text is not a scenario.
    BadText = 4,
    /// `CLRSIM_NO_FILE`: the file cannot be read.
    NoFile = 5,
    /// `CLRSIM_NOT_REACHED`: the threads cannot be run that far.
    NotReached = 6,
    /// `CLRSIM_DIFFERS`: a call of the text gives another result than the text expects, or its demands are not met.
    Differs = 7,
    /// `CLRSIM_NOTHING`: there is nothing of this kind, or nothing to compare with.
    Nothing = 8,
}

/// An open session, and the texts that it has given away.
struct Open {
    session: Session,
    report: CString,
    explanation: CString,
    explanation_of_call: CString,
    finding: [CString; 2],
}

thread_local! {
    static OPEN: RefCell<BTreeMap<usize, Open>> = const { RefCell::new(BTreeMap::new()) };
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Returns a text for C. A NUL in it would end it.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

fn fail(status: Status, message: &str) -> Status {
    let message = text(message);
    // During the end of the thread nobody reads it.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = message);
    status
}

/// Calls `act` on the session with this number.
fn with<T>(handle: *const c_void, act: impl FnOnce(&Session) -> T) -> Result<T, Status> {
    // The session must not be borrowed from the list meanwhile: the profiler may call back.
    let inner = OPEN
        .try_with(|open| open.borrow().get(&(handle as usize)).map(|open| open.session.share()));
    match inner {
        Ok(Some(session)) => Ok(act(&session)),
        _ => Err(fail(Status::NoSession, "there is no such session on this thread")),
    }
}

/// Reads a text of the caller.
///
/// # Safety
/// `from` is NULL, or points to a text with a final NUL.
unsafe fn read<'t>(from: *const c_char) -> Result<&'t str, Status> {
    if from.is_null() {
        return Err(fail(Status::BadArgument, "a text is NULL"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(from) };
    bytes.to_str().map_err(|_| fail(Status::BadArgument, "a text is not UTF-8"))
}

fn open(scenario: &str, runtime: &str) -> Result<usize, Status> {
    let Some(generation) = Generation::from_name(runtime) else {
        return Err(fail(Status::NoRuntime, &format!("there is no runtime `{runtime}`")));
    };
    let session = Session::open(scenario, generation).map_err(|error| failed(&error))?;
    let handle = session.key();
    let open = Open {
        session,
        report: CString::default(),
        explanation: CString::default(),
        explanation_of_call: CString::default(),
        finding: Default::default(),
    };
    let kept = OPEN.try_with(|all| all.borrow_mut().insert(handle, open));
    kept.map_err(|_| fail(Status::NoSession, "the thread is ending"))?;
    Ok(handle)
}

fn failed(error: &SessionError) -> Status {
    let status = match error {
        SessionError::Text(_) => Status::BadText,
        SessionError::Run(_) => Status::NotReached,
    };
    fail(status, &error.to_string())
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Ok)
}

/// Opens a text on a runtime, which is named as in texts: `net8-unix`.
///
/// # Safety
/// The texts are NULL or end with NUL; `session` is NULL or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clrsim_open(
    scenario: *const c_char,
    runtime: *const c_char,
    session: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    let opened = unsafe { read(scenario).and_then(|scenario| open(scenario, read(runtime)?)) };
    // SAFETY: the same.
    unsafe { give(opened, session) }
}

/// Opens the text in a file.
///
/// # Safety
/// As `clrsim_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clrsim_open_file(
    path: *const c_char,
    runtime: *const c_char,
    session: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    let opened = unsafe {
        read(path).and_then(|path| {
            let scenario = read_file(path)
                .map_err(|error| fail(Status::NoFile, &format!("{path}: {error}")))?;
            open(&scenario, read(runtime)?)
        })
    };
    // SAFETY: the same.
    unsafe { give(opened, session) }
}

/// Reads the text in a file, up to the first byte that no text can have: some files never end.
fn read_file(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_TEXT {
        let what = format!("has more than {MAX_TEXT} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

unsafe fn give(opened: Result<usize, Status>, session: *mut *mut c_void) -> Status {
    if session.is_null() {
        if let Ok(handle) = opened {
            clrsim_close(handle as *mut c_void);
        }
        return fail(Status::BadArgument, "session is NULL");
    }
    let (handle, status) = match opened {
        Ok(handle) => (handle as *mut c_void, Status::Ok),
        Err(status) => (null_mut(), status),
    };
    // SAFETY: it is not NULL: the caller's promise.
    unsafe { session.write_unaligned(handle) };
    status
}

/// Closes a session. Its objects may still be released.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_close(session: *mut c_void) {
    let closed = OPEN.try_with(|open| open.borrow_mut().remove(&(session as usize)));
    // Dropped when the list is no longer borrowed.
    drop(closed);
}

/// Returns the message of the last error on this thread, valid until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(null())
}

/// Returns the name of a runtime by its number, from 0, or NULL if there are no more.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_runtime_name(number: u32) -> *const c_char {
    thread_local! {
        static NAMES: Vec<CString> =
            Generation::ALL.iter().map(|generation| text(generation.name())).collect();
    }
    let name = |names: &Vec<CString>| names.get(number as usize).map_or(null(), |one| one.as_ptr());
    NAMES.try_with(name).unwrap_or(null())
}

/// Runs the text's threads to a stop, by its number from 0, from the beginning.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_run_to_stop(session: *mut c_void, stop: u32) -> Status {
    status(
        with(session, |session| session.run_to_stop(stop as usize))
            .and_then(|result| result.map_err(|error| failed(&error))),
    )
}

/// Loads a profiler: an object with `ICorProfilerCallback`. Returns the result of `Initialize`.
///
/// # Safety
/// `profiler` is NULL or such an object, which lives until the session is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clrsim_initialize(session: *mut c_void, profiler: *mut c_void) -> HResult {
    // SAFETY: the caller's promise.
    let loaded = with(session, |session| unsafe { session.initialize(profiler) });
    loaded.unwrap_or(HResult::UNEXPECTED)
}

/// Executes the text's program to its end, with the callbacks that the profiler has asked for.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_run(session: *mut c_void) -> Status {
    status(with(session, Session::run).and_then(|result| result.map_err(|error| failed(&error))))
}

/// Chooses the thread that the next calls are made on: 0 a thread that the runtime does not know,
/// 1 one that it knows, 2 the one that has stopped.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_act_as(session: *mut c_void, role: i32) -> Status {
    let role = match role {
        0 => Role::Native,
        1 => Role::Managed,
        2 => Role::Stopped,
        _ => return fail(Status::BadArgument, "there is no such role"),
    };
    status(with(session, |session| session.act_as(role)))
}

/// Returns the `ThreadID` of the thread that has stopped, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_stopped_thread(session: *mut c_void) -> u64 {
    with(session, Session::stopped_thread).ok().flatten().unwrap_or_default().0
}

/// Returns the runtime's object, an `ICorProfilerInfo *`, without counting a reference.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_info(session: *mut c_void) -> *mut c_void {
    with(session, Session::info).unwrap_or(null_mut())
}

/// Returns the number of findings so far, with the references that are left.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_findings(session: *mut c_void) -> u32 {
    with(session, |session| session.final_report().findings().len() as u32).unwrap_or_default()
}

/// Writes the kind of a finding, by its number from 0, and its sentence, as `clrsim_report` has them. Both are valid until
/// the next call of this function for the session, or its end.
///
/// # Safety
/// `kind` and `text` are NULL, or have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clrsim_finding(
    session: *mut c_void,
    number: u32,
    kind: *mut *const c_char,
    sentence: *mut *const c_char,
) -> Status {
    let found = with(session, |session| {
        let report = session.final_report();
        let finding = report.findings().get(number as usize);
        finding.map(|finding| [text(finding.kind()), text(&finding.to_string())])
    });
    let finding = match found {
        Ok(Some(finding)) => finding,
        Ok(None) => return fail(Status::Nothing, &format!("there is no finding {number}")),
        Err(status) => return status,
    };
    let kept = keep(session, |open| {
        open.finding = finding;
        open.finding.each_ref().map(|text| text.as_ptr())
    });
    for (to, text) in [kind, sentence].into_iter().zip(kept.into_iter().flatten()) {
        if !to.is_null() {
            // SAFETY: it is not NULL: the caller's promise.
            unsafe { to.write_unaligned(text) };
        }
    }
    Status::Ok
}

/// Makes the calls that the text itself has, on the session's runtime, and compares their results with what the text
/// expects.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_check(session: *mut c_void) -> Status {
    match with(session, Session::check) {
        Ok(Ok(Ok(0))) => {
            fail(Status::Nothing, "the text expects nothing of a call on this runtime")
        }
        Ok(Ok(Ok(_))) => Status::Ok,
        Ok(Ok(Err(wrong))) => {
            let stop = wrong.stop.map_or(String::new(), |stop| format!("stop {stop}, "));
            let differences: Vec<_> = wrong.differences.iter().map(ToString::to_string).collect();
            let message = format!("{stop}snapshot {}: {}", wrong.snapshot, differences.join("; "));
            fail(Status::Differs, &message)
        }
        Ok(Err(error)) => failed(&error),
        Err(status) => status,
    }
}

/// Judges the session's coverage so far by the text's demands. A method that was called and is not simulated is a fault,
/// too.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_covers(session: *mut c_void) -> Status {
    match with(session, Session::lacks) {
        Ok(None) => fail(Status::Nothing, "the text demands no coverage on this runtime"),
        Ok(Some(lacks)) if lacks.is_empty() => Status::Ok,
        Ok(Some(lacks)) => fail(Status::Differs, &lacks.join("; ")),
        Err(status) => status,
    }
}

/// Returns the version of the library: `0.1.0`. Functions are added with a new second or third number.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Returns the number of calls of a method: `DoStackSnapshot`.
///
/// # Safety
/// `method` is NULL, or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clrsim_calls_of(session: *mut c_void, method: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    let Ok(method) = (unsafe { read(method) }) else { return 0 };
    with(session, |session| session.report().calls_of(method)).unwrap_or_default()
}

/// Returns what was wrong, then what is not simulated, then all calls, a line each. The text is
/// valid until the next call of this function for the session, or its end.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_report(session: *mut c_void) -> *const c_char {
    let Ok(report) = with(session, |session| session.final_report().to_string()) else {
        return null();
    };
    lend(session, &report, |open| &mut open.report)
}

/// Returns the explanations of all walks so far. The text is valid as that of `clrsim_report`.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_explanation(session: *mut c_void) -> *const c_char {
    let Ok(explanation) = with(session, Session::explanation) else { return null() };
    lend(session, &explanation, |open| &mut open.explanation)
}

/// Returns the explanation of one walk, by its number from 0; NULL if there was none. The text is valid as that of
/// `clrsim_report`.
#[unsafe(no_mangle)]
pub extern "C" fn clrsim_explain_call(session: *mut c_void, number: u32) -> *const c_char {
    let Ok(Some(explanation)) = with(session, |it| it.explanation_of(number as usize)) else {
        return null();
    };
    lend(session, &explanation, |open| &mut open.explanation_of_call)
}

/// Keeps a text in its place, and returns it; NULL if the session is closed.
fn lend(
    session: *mut c_void,
    value: &str,
    place: impl FnOnce(&mut Open) -> &mut CString,
) -> *const c_char {
    let kept = keep(session, |open| {
        let place = place(open);
        *place = text(value);
        place.as_ptr()
    });
    kept.unwrap_or(null())
}

/// Changes the texts that a session has given away; `None` if it is closed.
fn keep<T>(session: *mut c_void, change: impl FnOnce(&mut Open) -> T) -> Option<T> {
    let kept = OPEN.try_with(|all| all.borrow_mut().get_mut(&(session as usize)).map(change));
    kept.ok().flatten()
}
