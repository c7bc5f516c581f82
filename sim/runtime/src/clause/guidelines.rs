//! Clauses about the documentation's requirements on a profiler, with their reasons.

use super::ClauseEntry;
use super::sets::ALL;

clauses! {
    Guidelines:
    148: ALL, "docs: DoStackSnapshot",
        "Suspend threads only from a thread on which managed code has never run. Any other may be \
         stopped by a suspension of the runtime, which waits for the thread that it has suspended \
         itself.";
    149: ALL, "docs: DoStackSnapshot",
        "Do not return from ThreadDestroyed while that thread is being walked: its stack would be \
         gone.";
    150: ALL, "docs: DoStackSnapshot",
        "Call nothing that may trigger a GC while you hold a lock. A callback of the GC that \
         wants the lock would wait for ever.";
    151: ALL, "docs: DoStackSnapshot",
        "Before a thread of the profiler suspends another thread for the first time, let it walk a \
         running thread once, with at least one frame reported. The runtime then sets up state for \
         it, which may need a lock that a suspended thread owns.";
    152: ALL, "docs: StackSnapshotCallback",
        "Take no lock in StackSnapshotCallback that the target may own: it is suspended and cannot \
         release it.";
}
