use super::threads::{Process, STORE, THREADS};
use crate::{Cause, Diagnosis, Doubt, Edge, Evidence, InspectError, StackWalker, Unknown, Verdict};
use clr_dump::{CoreDump, NoFiles};

/// Addresses of two mutexes, a word, and control blocks of threads by their ids.
const MUTEXES: [u64; 2] = [0x2_0000, 0x2_0040];
const WORD: u64 = 0x2_0080;
const BLOCKS: u64 = 0x3_0000;

pub(super) fn block(id: u32) -> u64 {
    BLOCKS + u64::from(id) * 0x1000
}

/// A thread in a system call.
#[derive(Clone, Copy)]
pub(super) struct Call {
    thread: u32,
    number: u64,
    address: u64,
    expected: u64,
    timeout: u64,
    pub(super) stack: u64,
}

/// A thread in futex(2), without a timeout.
pub(super) const fn waits(thread: u32, address: u64, expected: u64) -> Call {
    Call { thread, number: 202, address, expected, timeout: 0, stack: 0 }
}

/// A thread that waits for a mutex.
const fn wants(thread: u32, mutex: usize) -> Call {
    waits(thread, MUTEXES[mutex], 2)
}

impl Call {
    /// Returns the thread's note in a core.
    fn note(&self) -> [u8; 336] {
        let mut status = [0; 336];
        status[32..36].copy_from_slice(&self.thread.to_le_bytes());
        // Places in `struct user_regs_struct`: r10, rdx, rsi, rdi, orig_rax, rsp, fs_base.
        for (place, value) in [
            (7, self.timeout),
            (12, self.expected),
            (13, 0x80),
            (14, self.address),
            (15, self.number),
            (19, self.stack),
            (21, block(self.thread)),
        ] {
            status[112 + 8 * place..][..8].copy_from_slice(&value.to_le_bytes());
        }
        status
    }
}

/// Diagnoses threads of a process whose mutexes have these owners.
pub(super) fn diagnose(mut process: Process, owners: [u32; 2], threads: &[Call]) -> Diagnosis {
    process.add(MUTEXES[0], 0x100);
    for (mutex, owner) in MUTEXES.into_iter().zip(owners) {
        process.put(mutex, 2).put(mutex + 8, u64::from(owner) | 1 << 32);
    }
    for id in threads.iter().map(|call| call.thread) {
        process.add(block(id), 0x10).put(block(id), id.into());
    }
    let core = threads.iter().fold(process.core(), |core, call| core.note(1, &call.note())).write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    let mut walker = StackWalker::new(&dump, dump.code_map(), None);
    Diagnosis::of(&dump, Ok(&process.runtime()), &mut walker)
}

fn edge(from: u32, to: u32, evidence: Evidence) -> Edge {
    Edge { from, to, evidence, doubt: None }
}

/// Returns the waits of each circle, and the mistake behind it.
fn circles(found: &Diagnosis) -> Vec<(Vec<Edge>, Cause)> {
    found.circles.iter().map(|circle| (circle.edges.clone(), circle.cause)).collect()
}

const fn mutex(index: usize) -> Evidence {
    Evidence::Mutex { address: MUTEXES[index] }
}

#[test]
fn mutexes_in_a_circle_are_proved() {
    let threads = [wants(6, 0), wants(7, 0), wants(8, 1), wants(9, 1)];
    let found = diagnose(Process::net10(), [8, 7], &threads);
    assert_eq!(found.verdict(), Verdict::Proved);
    assert_eq!(
        circles(&found),
        [(vec![edge(7, 8, mutex(0)), edge(8, 7, mutex(1))], Cause::LockOrder)]
    );
    assert_eq!(found.followers(), [edge(6, 8, mutex(0)), edge(9, 7, mutex(1))]);
    assert_eq!(found.unknown, []);
}

#[test]
fn a_thread_may_wait_for_itself() {
    let found = diagnose(Process::net10(), [7, 0], &[wants(7, 0)]);
    assert_eq!(found.verdict(), Verdict::Proved);
    assert_eq!(circles(&found), [(vec![edge(7, 7, mutex(0))], Cause::LockTwice)]);
}

#[test]
fn a_chain_is_no_circle() {
    let threads = [wants(7, 0), wants(8, 1), waits(9, WORD, 0)];
    let found = diagnose(Process::net10(), [8, 9], &threads);
    assert_eq!((found.verdict(), found.edges.len()), (Verdict::Nothing, 2));
    assert_eq!(found.followers(), []);
}

#[test]
fn a_wait_with_an_end_is_not_proved() {
    let mut threads = [wants(7, 0), wants(8, 1)];
    threads[1].timeout = 0x1000;
    let found = diagnose(Process::net10(), [8, 7], &threads);
    assert_eq!(found.verdict(), Verdict::Fits);
    assert_eq!(found.circles[0].edges[1].doubt, Some(Doubt::Timeout));
}

#[test]
fn a_join_of_a_thread_that_wants_a_lock() {
    let threads = [waits(7, block(8), 8), wants(8, 0)];
    let found = diagnose(Process::net10(), [7, 0], &threads);
    assert_eq!(found.verdict(), Verdict::Proved);
    let joins = edge(7, 8, Evidence::End { address: block(8) });
    assert_eq!(circles(&found), [(vec![joins, edge(8, 7, mutex(0))], Cause::JoinUnderLock)]);
}

/// Threads 100 and 101 are the runtime's; 7 has suspended it.
fn suspended(mut process: Process) -> Process {
    process.put(STORE, 7).put(STORE + 64, 7);
    // In preemptive mode.
    process.put(THREADS[1], 0x202);
    process
}

#[test]
fn a_suspender_wants_the_lock_of_a_trapped_thread() {
    let threads = [wants(7, 0), waits(101, WORD, 0)];
    let found = diagnose(suspended(Process::net11()), [101, 0], &threads);
    let evidence = Evidence::Suspension { address: WORD, store: STORE };
    assert_eq!(found.verdict(), Verdict::Proved);
    let circle = vec![edge(7, 101, mutex(0)), edge(101, 7, evidence)];
    assert_eq!(circles(&found), [(circle, Cause::LockWhileSuspended)]);
    // A word that has changed, a thread that is not trapped, and a runtime that does not say so.
    let threads_of_another_word = [wants(7, 0), waits(101, WORD, 1)];
    let mut free = suspended(Process::net11());
    free.put(THREADS[1], 0x200);
    for (process, threads) in [
        (suspended(Process::net11()), &threads_of_another_word),
        (free, &threads),
        (suspended(Process::net10()), &threads),
    ] {
        assert_eq!(diagnose(process, [101, 0], threads).verdict(), Verdict::Nothing);
    }
}

#[test]
fn a_suspension_alone_is_no_hang() {
    let threads = [waits(7, WORD, 0), waits(100, WORD, 0), waits(101, WORD, 0)];
    let found = diagnose(suspended(Process::net11()), [0, 0], &threads);
    assert_eq!((found.verdict(), found.edges.len()), (Verdict::Nothing, 2));
    // The suspender waits for another word of the lock that it holds.
    let found = diagnose(suspended(Process::net11()), [0, 0], &[waits(7, STORE + 8, 0)]);
    assert_eq!(found.edges, []);
}

/// The lock of the list of threads alone does not say that its holder waits for threads in cooperative mode.
#[test]
fn a_holder_that_may_not_suspend_is_not_proved() {
    let mut process = suspended(Process::net10());
    process.put(THREADS[1], 0x200 | 1 << 32);
    let found = diagnose(process, [101, 7], &[waits(7, WORD, 0), wants(101, 1)]);
    assert_eq!(found.verdict(), Verdict::Fits);
    let doubts: Vec<_> = found.circles[0].edges.iter().map(|edge| edge.doubt).collect();
    assert_eq!(doubts, [Some(Doubt::Holder), None]);
}

/// Thread 100 begins a GC; 101 is in cooperative mode.
fn collecting() -> Process {
    let mut process = Process::net10();
    process.put(STORE, 100).put(STORE + 56, THREADS[0]).put(STORE + 64, 100);
    process.put(0x1188, THREADS[0]);
    process
}

#[test]
fn a_gc_waits_for_a_thread_that_wants_a_lock() {
    let mut sleeps = waits(100, 0, 0);
    sleeps.number = 230;
    // The lock of the list of threads is wanted by 7, which owns the mutex.
    let threads = [waits(7, STORE + 8, 0), sleeps, wants(101, 0)];
    let found = diagnose(collecting(), [7, 0], &threads);
    assert_eq!(found.verdict(), Verdict::Proved);
    let lock = Evidence::ThreadStoreLock { address: STORE + 8, store: STORE };
    let mode = Evidence::CooperativeMode { thread: THREADS[1] };
    let circle = vec![edge(7, 100, lock), edge(100, 101, mode), edge(101, 7, mutex(0))];
    assert_eq!(circles(&found), [(circle, Cause::LockOverCollection)]);
    // The same GC, and nobody in its way.
    assert_eq!(diagnose(collecting(), [0, 0], &threads[..2]).verdict(), Verdict::Nothing);
}

#[test]
fn what_is_unknown_is_said() {
    let threads = [waits(7, 0x9_0000, 0)];
    let found = diagnose(Process::net10(), [0, 0], &threads);
    assert_eq!(found.unknown, [Unknown::Word { thread: 7, address: 0x9_0000 }]);
    assert_eq!(found.verdict(), Verdict::Nothing);
    let core = Process::net10().core().note(1, &threads[0].note()).write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    let mut walker = StackWalker::new(&dump, dump.code_map(), None);
    let found = Diagnosis::of(&dump, Err(InspectError::NoRuntime), &mut walker);
    assert_eq!(found.unknown.first(), Some(&Unknown::Runtime(InspectError::NoRuntime)));
    assert_eq!(found.verdict(), Verdict::Open);
}

/// Diagnoses two dumps of a process whose mutexes have threads 8 and 7 as their owners.
fn diagnose_twice(
    earlier: &[Call],
    later: &[Call],
    addresses: [u64; 2],
) -> Result<Diagnosis, InspectError> {
    let mut process = Process::net10();
    process.add(MUTEXES[0], 0x100);
    for (mutex, owner) in MUTEXES.into_iter().zip([8_u64, 7]) {
        process.put(mutex, 2).put(mutex + 8, owner | 1 << 32);
    }
    let cores = [(earlier, addresses[0]), (later, addresses[1])].map(|(threads, base)| {
        let auxiliary: Vec<u8> = [7, base, 0, 0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let core = threads.iter().fold(process.core(), |core, call| core.note(1, &call.note()));
        core.note(6, &auxiliary).write()
    });
    let dumps = cores.each_ref().map(|core| CoreDump::open(core, &NoFiles).unwrap());
    let runtime = process.runtime();
    let [earlier, later] = dumps.each_ref().map(|dump| {
        let mut walker = StackWalker::new(dump, dump.code_map(), None);
        Diagnosis::of(dump, Ok(&runtime), &mut walker)
    });
    later.compare(&dumps[1], &earlier, &dumps[0])
}

#[test]
fn of_two_dumps_counts_what_did_not_move() {
    let proved = [wants(7, 0), wants(8, 1)];
    let mut doubtful = proved;
    doubtful[1].timeout = 0x1000;
    let mut other = doubtful;
    other[0].timeout = 1;
    let twice = |earlier: &[Call], later: &[Call]| {
        let found = diagnose_twice(earlier, later, [1, 1]).unwrap();
        (found.verdict(), found.circles.len(), found.moved.len())
    };
    assert_eq!(twice(&doubtful, &doubtful), (Verdict::Fits, 1, 0));
    // A thread has waited since in another call, or does no more.
    assert_eq!(twice(&other, &doubtful), (Verdict::Nothing, 0, 1));
    assert_eq!(twice(&doubtful, &proved[..1]), (Verdict::Nothing, 0, 0));
    // What memory says needs no second dump.
    assert_eq!(twice(&proved[..1], &proved), (Verdict::Proved, 1, 0));
}

#[test]
fn dumps_of_different_processes_are_refused() {
    let threads = [wants(7, 0), wants(8, 1)];
    let refused =
        |earlier: &[Call], addresses| diagnose_twice(earlier, &threads, addresses).unwrap_err();
    assert_eq!(refused(&threads, [1, 2]), InspectError::OtherProcess);
    assert_eq!(refused(&[wants(9, 0)], [1, 1]), InspectError::OtherProcess);
}
