//! Clauses about GCs that a profiler forces.

use super::ClauseEntry;
use super::sets::{ALL, CLR4};

clauses! {
    ForcedGc:
    174: ALL, "proftoeeinterfaceimpl.cpp: ForceGC; AreCallbackStateFlagsSet; recordings",
        "ForceGC gives CORPROF_E_NOT_YET_AVAILABLE before the GC is initialized. On a thread of the \
         runtime it gives CORPROF_E_UNSUPPORTED_CALL_SEQUENCE in a callback, and outside of callbacks \
         if the thread has Frames, unless the thread has called ForceGC with success or requested a \
         ReJIT. Framework 2 gives E_FAIL on any thread of the runtime.";
    175: CLR4,
        "proftoeeinterfaceimpl.cpp: ForceGC; eventtrace.cpp: ForceGCForDiagnostics; recordings",
        "ForceGC makes a thread of the runtime of its caller, with ThreadCreated and \
         ThreadAssignedToOSThread, and waits until a GC of all generations is over. Later calls of \
         that thread count as calls in a callback where a GC may be triggered.";
}
