//! A trace of the calls between the simulated runtime and a profiler: objects of `clr-com` stand between the two, as in
//! a real CLR under `clr-recorder`.

use clr_com::{CallObserver, Forwarding, Moment};
use clr_trace::{IdKind, Line, Names, Writer};
use clr_walker::profiling::{FunctionId, ThreadId};
use clrsim::Session;
use clrsim::hosting::Lookup;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A receiver of lines.
pub type Sink = Box<dyn FnMut(&Line) + Send>;

/// The number of the first thread of the system that is none of the program: above those of the runtime.
const FIRST_OTHER: u64 = 0x1_0000;

/// An observer that writes lines.
struct Tracer {
    lookup: Lookup,
    written: Mutex<(Writer<Simulated>, Sink)>,
}

/// Returns a forwarding whose calls are written. The first line says the runtime.
pub(crate) fn forwarding(session: &Session, mut sink: Sink) -> Arc<Forwarding> {
    let runtime = session.generation().name().to_owned();
    sink(&Line::Trace { version: 1, runtime });
    let lookup = session.lookup();
    let written = Mutex::new((Writer::new(Simulated(lookup)), sink));
    Forwarding::new(Arc::new(Tracer { lookup, written }))
}

/// Returns the number of a thread of the system that is none of the program.
fn other_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(FIRST_OTHER);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl CallObserver for Tracer {
    fn notice(&self, moment: Moment) {
        let (os_thread, thread) =
            self.lookup.acting().unwrap_or_else(|| (other_thread(), ThreadId(0)));
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, sink) = &mut *written;
        for line in writer.lines(thread, os_thread, &moment) {
            sink(&line);
        }
    }
}

/// The names that the simulated process has.
struct Simulated(Lookup);

impl Names for Simulated {
    fn name(&mut self, kind: IdKind, id: u64) -> Option<String> {
        let Self(lookup) = self;
        match kind {
            IdKind::Assembly => lookup.assembly(id),
            IdKind::Class => lookup.class(id),
            IdKind::Function => lookup.function(FunctionId(id)),
            IdKind::Module => lookup.module(id),
            IdKind::Thread => lookup.thread(ThreadId(id)),
            IdKind::AppDomain | IdKind::OsThread => None,
        }
    }

    fn module_of(&mut self, kind: IdKind, id: u64) -> Option<String> {
        self.0.module_of(kind == IdKind::Class, id)
    }
}
