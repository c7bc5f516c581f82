//! Objects between a profiler and the runtime, which pass each call on.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_trace::{Names, Writer, as_text};
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use clrsim::Session;
use clrsim::hosting::Lookup;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { first-call "App.Save" } }
function "App.Save" kind="jit" { body { work 1 } }
"#;
/// COR_PRF_MONITOR_JIT_COMPILATION, COR_PRF_ENABLE_STACK_SNAPSHOT.
const EVENTS: u32 = 0x1000_0020;

thread_local! {
    static INFO: RefCell<Option<ManuallyDrop<ICorProfilerInfo3>>> = const { RefCell::new(None) };
}

/// Client data of the walk, which the profiler's callback has to get.
const CLIENT: usize = 0x1234;

/// A profiler that asks for names, lists threads and walks.
struct Walker;

impl IUnknownMethods for Walker {}

impl ICorProfilerCallbackMethods for Walker {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: an object with `IUnknown`, whose references are not counted.
        let unknown = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
        let info: ICorProfilerInfo3 = unknown.cast().unwrap();
        // SAFETY: no pointers.
        let result = unsafe { info.SetEventMask(EVENTS) };
        INFO.set(Some(ManuallyDrop::new(info)));
        result
    }

    unsafe fn JITCompilationStarted(&self, function: FunctionId, _: Bool) -> HResult {
        INFO.with_borrow(|info| {
            let info = info.as_ref().unwrap();
            let (mut token, mut import) = (0, null_mut());
            let mut threads = null_mut();
            let mut thread = ThreadId(0);
            // SAFETY: the pointers are to locals.
            unsafe {
                let iid: *const Guid = &IMetaDataImport::IID;
                let to = (&raw mut import, &raw mut token);
                let _ = info.GetTokenAndMetaDataFromFunction(function, iid, to.0, to.1);
                let import = IMetaDataImport::from_raw(import).unwrap();
                let (mut name, mut len) = ([0_u16; 4], 0);
                let none = (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
                let (name, len) = (name.as_mut_ptr(), &raw mut len);
                let _ = import.GetMethodProps(
                    token,
                    null_mut(),
                    name,
                    4,
                    len,
                    none.0,
                    none.1,
                    none.2,
                    none.3,
                    none.4,
                );
                let _ = info.cast::<ICorProfilerInfo4>().unwrap().EnumThreads(&raw mut threads);
                let threads = ICorProfilerThreadEnum::from_raw(threads).unwrap();
                let _ = threads.Next(1, &raw mut thread, null_mut());
                let _ = info.GetThreadInfo(ThreadId(0), null_mut());
                let client = CLIENT as *mut c_void;
                info.DoStackSnapshot(ThreadId(0), Some(frame), 0, client, null(), 0)
            }
        })
    }
}

impl ICorProfilerCallback2Methods for Walker {}

unsafe extern "system" fn frame(
    _: FunctionId,
    _: u64,
    _: u64,
    _: u32,
    _: *mut u8,
    client: *mut c_void,
) -> HResult {
    assert_eq!(client as usize, CLIENT);
    HResult::OK
}

/// The names of the simulated process, and what was written.
struct Known(Lookup);

impl Names for Known {
    fn name(&mut self, kind: clr_trace::IdKind, id: u64) -> Option<String> {
        match kind {
            clr_trace::IdKind::Function => self.0.function(FunctionId(id)),
            clr_trace::IdKind::Thread => self.0.thread(ThreadId(id)),
            _ => None,
        }
    }

    fn module_of(&mut self, _: clr_trace::IdKind, _: u64) -> Option<String> {
        None
    }
}

struct Observer {
    lookup: Lookup,
    written: Mutex<(Writer<Known>, String)>,
}

impl CallObserver for Observer {
    fn notice(&self, moment: Moment) {
        let (os, thread) = self.lookup.acting().unwrap();
        let (writer, text) = &mut *self.written.lock().unwrap();
        for line in writer.lines(thread, os, &moment) {
            *text += &(serde_json::to_string(&line).unwrap() + "\n");
        }
    }
}

/// Each call arrives with its arguments; objects that pass through are observed, too; the profiler's callback of a walk gets its
/// own client data.
#[test]
fn each_call_is_passed_on_and_observed() {
    let session = Session::open(TEXT, Generation::Net8Unix).unwrap();
    let lookup = session.lookup();
    let head = "{\"trace\":{\"version\":1,\"runtime\":\"net8-unix\"}}\n".to_owned();
    let written = Mutex::new((Writer::new(Known(lookup)), head));
    let observer = Arc::new(Observer { lookup, written });
    let forwarding = Forwarding::new(Arc::clone(&observer) as _);
    let profiler: ICorProfilerCallback2 = create(Walker);
    // SAFETY: the object has the interface.
    let forwarder = unsafe { forwarding.wrap(profiler.as_raw(), &ICorProfilerCallback2::IID) };
    // SAFETY: it outlives the session.
    assert_eq!(unsafe { session.initialize(forwarder) }, HResult::OK);
    session.run().unwrap();
    let text = as_text(&observer.written.lock().unwrap().1).unwrap();
    let expected = "\
net8-unix
main         Initialize info=pointer
main           QueryInterface riid=ICorProfilerInfo3 object=pointer -> S_OK object=pointer
main           SetEventMask events=268435488 -> S_OK
main         Initialize -> S_OK
main         JITCompilationStarted function=App.Save is_safe_to_block=true
main           GetTokenAndMetaDataFromFunction function=App.Save riid=IMetaDataImport import=pointer token=pointer -> S_OK import=pointer token=0x06000002
main           GetMethodProps token=0x06000002 class=null name=pointer name_capacity=4 name_len=pointer attr=null signature=null signature_size=null code_rva=null impl_flags=null -> 0x00131106 name=\"Sav\" name_len=5
main           QueryInterface riid=ICorProfilerInfo4 object=pointer -> S_OK object=pointer
main           EnumThreads enumerator=pointer -> S_OK enumerator=pointer
main           Next capacity=1 threads=pointer fetched=null -> S_OK threads=main
main           GetThreadInfo thread=null os_thread=null -> E_INVALIDARG
main           DoStackSnapshot thread=null callback=pointer info_flags=0 client_data=pointer context=null context_size=0
main             frame App.Main
main             frame null
main           DoStackSnapshot -> S_OK
main         JITCompilationStarted -> S_OK
main         JITCompilationFinished function=App.Save status=S_OK is_safe_to_block=true -> S_OK
";
    assert_eq!(text, expected);
    INFO.set(None);
}
