//! The functions of a profiler's providers of events.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::{Role, Session};
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null;

const TEXT: &str = r#"function "App.Main" kind="jit" { body { work 1 } }"#;
/// A filter, as it is asked for and as it arrives.
const FILTER: &str = "a=b";
const FILTERED: &[u8] = b"a\0b\0";

/// The arguments of a call: whether the provider is enabled, level, keywords, filter, whether a source is named.
type Told = (bool, u8, u64, &'static [u8], bool);

thread_local! {
    static TOLD: RefCell<Vec<Told>> = const { RefCell::new(Vec::new()) };
}

/// `COR_PRF_FILTER_DATA`.
#[repr(C)]
struct FilterData {
    bytes: *const u8,
    size: u32,
    kind: u32,
}

unsafe extern "system" fn on_change(
    source: *const c_void,
    is_enabled: u32,
    level: u8,
    any: u64,
    all: u64,
    filter: *const FilterData,
    data: *const c_void,
) {
    assert_eq!((all, data), (0, null()));
    // SAFETY: the runtime's filter, or NULL.
    let filter = unsafe {
        filter.as_ref().map(|filter| {
            assert_eq!(filter.kind, 0);
            std::slice::from_raw_parts(filter.bytes, filter.size as usize)
        })
    };
    let filter = match filter {
        None => &[],
        Some(FILTERED) => FILTERED,
        Some(other) => panic!("{other:?}"),
    };
    let told = (is_enabled != 0, level, any, filter, !source.is_null());
    TOLD.with_borrow_mut(|all| all.push(told));
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

fn start(info: &ICorProfilerInfo14, name: &str, keywords: u64, level: u32, filter: &str) -> u64 {
    let (name, text) = (wide(name), wide(filter));
    let filter = if filter.is_empty() { null() } else { text.as_ptr() };
    let config = EventProviderConfig { name: name.as_ptr(), keywords, level, filter };
    let mut session = 0;
    // SAFETY: the pointers are to what is announced.
    let result = unsafe { info.EventPipeStartSession(1, &raw const config, 0, &raw mut session) };
    assert_eq!(result, HResult::OK);
    session
}

fn create(info: &ICorProfilerInfo14, name: &str) {
    let mut provider = 0;
    // SAFETY: the pointers are to a text, a function of this signature, and to room.
    let made = unsafe {
        info.EventPipeCreateProvider2(
            wide(name).as_ptr(),
            on_change as *const c_void,
            &raw mut provider,
        )
    };
    assert_eq!(made, HResult::OK);
}

/// Values recorded on 8.0.34, 10.0.15 and 11.0.0.
#[test]
fn a_provider_is_told_of_sessions_that_begin_and_end() {
    for on in Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 14) {
        let session = Session::open(TEXT, on).unwrap();
        session.act_as(Role::Native);
        // SAFETY: the session's object, which is not counted.
        let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
        let info = ManuallyDrop::new(info.cast::<ICorProfilerInfo14>().unwrap());
        create(&info, "One");
        let first = start(&info, "One", 1, 4, "");
        assert_eq!(TOLD.take(), [(true, 4, 1, &b""[..], true)], "{on}");
        let second = start(&info, "One", 2, 5, FILTER);
        assert_eq!(TOLD.take(), [(true, 5, 3, FILTERED, true)], "{on}");
        let third = start(&info, "Two", 0, 5, "");
        assert_eq!(TOLD.take(), [], "{on}: no provider of this name");
        create(&info, "Two");
        assert_eq!(TOLD.take(), [(true, 5, 0, &b""[..], true)], "{on}");
        let name = wide("One");
        let added =
            EventProviderConfig { name: name.as_ptr(), keywords: 8, level: 2, filter: null() };
        // SAFETY: the pointers are to texts.
        let added = unsafe { info.EventPipeAddProviderToSession(third, added) };
        assert_eq!((added, TOLD.take()), (HResult::OK, vec![]), "{on}");
        let told = [first, second, third].map(|one| {
            // SAFETY: no pointers.
            assert_eq!(unsafe { info.EventPipeStopSession(one) }, HResult::OK);
            TOLD.take()
        });
        let expected = [
            vec![(true, 5, 0xB, &b""[..], false)],
            vec![(false, 5, 0xA, FILTERED, false)],
            vec![(false, 2, 8, &b""[..], false), (false, 5, 0, &b""[..], false)],
        ];
        assert_eq!(told, expected, "{on}");
    }
}
