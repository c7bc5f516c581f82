use super::Parts;
use super::writer::CoreWriter;
use crate::{ExplicitFrame, FrameKind, InspectError, Mode, Runtime};
use clr_unwind::{Segments, Unreadable};
use clr_walker::jitted::contracts::{ContractError, ContractVersion};

/// Addresses of what the runtime has: its descriptor, a variable, the list, threads, a stack.
pub(super) const DESCRIPTOR: u64 = 0x1000;
pub(super) const STORE: u64 = 0x3000;
pub(super) const THREADS: [u64; 2] = [0x4000, 0x5000];
const STACK: u64 = 0x8000;
/// The variable with the table of sync blocks.
pub(super) const TABLE: u64 = 0x11A0;
/// Where the text says that a thread has its link to the next.
const LINK: usize = 0x40;

pub(super) struct Process(Parts);

impl Process {
    /// Creates a process with two threads, by the descriptor of .NET 9 and 10, or of .NET 11.
    pub(super) fn new(version: u32, contract: &str, links: [u64; 3]) -> Self {
        let more = if version == 2 { r#","SyncBlock":"c1""# } else { "" };
        let text = format!(
            r#"{{"version":{version},"baseline":"empty","types":{{"ThreadStore":{{"FirstThreadLink":16,
            "ThreadCount":24,"UnstartedCount":28,"BackgroundCount":32,"PendingCount":36,"DeadCount":40}},
            "Thread":{{"Id":16,"OSId":24,"State":0,"PreemptiveGCDisabled":4,"Frame":8,"LinkNext":{LINK}}},
            "Frame":{{"Next":8}},"HijackFrame":{{"ReturnAddress":16}},"SyncBlock":{{"Lock":8}}}},
            "globals":{{"SyncTableEntries":["{TABLE}","pointer"],
            "ThreadStore":[[0],"pointer"],"GCThread":[[1],"pointer"],
            "FinalizerThread":[[2],"pointer"],"HijackFrameIdentifier":["0x77","uint64"]}},
            "contracts":{{"Thread":{contract}{more}}}}}"#
        );
        let mut process = Parts::default();
        process.put_descriptor(DESCRIPTOR, &text, 0x1100);
        process.part(0x1100, 0x100).part(STORE, 0x60).part(STACK, 0x100);
        // The pointers, and what they lead to.
        process.put(0x1100, 0x1180).put(0x1108, 0x1188).put(0x1110, 0x1190);
        process.put(0x1180, STORE).put(0x1188, 0).put(0x1190, THREADS[1]);
        process.put(STORE + 16, links[0]).put(STORE + 24, 2 | 3 << 32).put(STORE + 32, 4 | 5 << 32);
        process.put(STORE + 40, 6);
        for (index, thread) in THREADS.into_iter().enumerate() {
            process.part(thread, 0x80).put(thread, 0x202 | (index as u64) << 32);
            process.put(thread + 8, u64::MAX).put(thread + 16, index as u64 + 1);
            process.put(thread + 24, 100 + index as u64);
            process.put(thread + LINK as u64, links[index + 1]);
        }
        Self(process)
    }

    /// .NET 10: links lead to links.
    pub(super) fn net10() -> Self {
        let [first, second] = THREADS.map(|thread| thread + LINK as u64);
        Self::new(0, "1", [first, second, 0])
    }

    /// .NET 11: links lead to threads.
    pub(super) fn net11() -> Self {
        Self::new(2, "\"c1\"", [THREADS[0], THREADS[1], 0])
    }

    pub(super) fn put(&mut self, address: u64, word: u64) -> &mut Self {
        self.0.put(address, word);
        self
    }

    pub(super) fn add(&mut self, address: u64, size: usize) -> &mut Self {
        self.0.part(address, size);
        self
    }

    /// Returns a core of this memory, without threads.
    pub(super) fn core(&self) -> CoreWriter {
        let add = |core: CoreWriter, (address, bytes): &(u64, Vec<u8>)| core.page(*address, bytes);
        self.0.parts.iter().fold(CoreWriter::default(), add)
    }

    pub(super) fn memory(&self) -> Segments<'_> {
        self.0.memory()
    }

    pub(super) fn runtime(&self) -> Runtime {
        Runtime::read(&self.memory(), "/libcoreclr.so", DESCRIPTOR).unwrap()
    }
}

#[test]
fn threads_are_found_by_links_of_each_kind() {
    for (process, is_trapped) in [(Process::net10(), None), (Process::net11(), Some(true))] {
        let list = process.runtime().threads(&process.memory()).unwrap();
        assert_eq!(list.end, Ok(()));
        let found: Vec<_> = list
            .threads
            .iter()
            .map(|it| (it.address, it.id, it.os_id, it.state.0, it.mode, it.frames_end))
            .collect();
        assert_eq!(
            found,
            [
                (THREADS[0], 1, 100, 0x202, Mode::Preemptive, Ok(())),
                (THREADS[1], 2, 101, 0x202, Mode::Cooperative, Ok(())),
            ]
        );
        assert_eq!(list.threads[0].is_trapped, is_trapped);
        let state = list.threads[0].state;
        assert!(state.is_suspension_pending() && state.is_background());
        assert!(!state.has_ended() && !state.is_unstarted());
    }
}

#[test]
fn the_list_of_threads_has_counts_and_a_suspender() {
    let mut process = Process::net10();
    let store = process.runtime().threads(&process.memory()).unwrap().store;
    let counts = [store.count, store.unstarted, store.background, store.pending, store.dead];
    assert_eq!((store.address, counts), (STORE, [2, 3, 4, 5, 6]));
    assert_eq!((store.suspender, store.finalizer), (None, Some(THREADS[1])));
    process.put(0x1188, THREADS[0]);
    let store = process.runtime().threads(&process.memory()).unwrap().store;
    assert_eq!(store.suspender, Some(THREADS[0]));
}

#[test]
fn the_holder_of_the_lock_is_known_if_all_that_names_it_fits() {
    let holder = |words: [u64; 3]| {
        let mut process = Process::net10();
        process.put(STORE, words[0]).put(STORE + 56, words[1]).put(STORE + 64, words[2]);
        let store = process.runtime().threads(&process.memory()).unwrap().store;
        assert_eq!(store.lock(), STORE..STORE + 16);
        store.holder
    };
    assert_eq!(holder([101, THREADS[1], 101]), Some(101));
    // A thread that the runtime does not know.
    assert_eq!(holder([7 << 32, 0, 7]), Some(7));
    for words in [
        [0, 0, 0],
        [0, THREADS[1], 101],
        [100, THREADS[1], 100],
        [101, 0x9000, 101],
        [7, 0, 1 << 32 | 7],
    ] {
        assert_eq!(holder(words), None, "{words:x?}");
    }
}

#[test]
fn a_list_that_leads_back_breaks_off() {
    let mut process = Process::net10();
    process.put(THREADS[1] + LINK as u64, THREADS[0] + LINK as u64);
    let list = process.runtime().threads(&process.memory()).unwrap();
    assert_eq!(list.threads.len(), 2);
    let address = THREADS[0];
    assert_eq!(list.end, Err(InspectError::EndlessList { list: "threads", address }));
}

#[test]
fn a_list_breaks_off_at_an_unknown_thread() {
    let mut process = Process::net10();
    process.put(THREADS[0] + LINK as u64, 0x7000 + LINK as u64);
    let list = process.runtime().threads(&process.memory()).unwrap();
    assert_eq!(list.threads.len(), 1);
    assert_eq!(list.end, Err(InspectError::Unreadable(Unreadable { address: 0x7004, len: 4 })));
}

#[test]
fn frames_have_the_names_of_the_descriptor() {
    let mut process = Process::net10();
    process.put(THREADS[0] + 8, STACK).put(STACK, 0x77).put(STACK + 8, STACK + 0x20);
    process.put(STACK + 0x20, 0x78).put(STACK + 0x28, u64::MAX);
    let thread = process.runtime().threads(&process.memory()).unwrap().threads.remove(0);
    let frame = |address, kind| ExplicitFrame { address, kind };
    assert_eq!(
        thread.frames,
        [
            frame(STACK, FrameKind::Named("HijackFrame")),
            frame(STACK + 0x20, FrameKind::Unnamed(0x78)),
        ]
    );
    assert_eq!(thread.frames_end, Ok(()));
}

#[test]
fn a_broken_chain_of_frames_hides_no_thread() {
    for (next, end) in [
        (STACK, InspectError::FrameOrder { address: STACK, before: STACK }),
        (STACK - 8, InspectError::FrameOrder { address: STACK - 8, before: STACK }),
        (0, InspectError::FrameOrder { address: 0, before: STACK }),
        (0x9000, InspectError::Unreadable(Unreadable { address: 0x9000, len: 8 })),
    ] {
        let mut process = Process::net10();
        process.put(THREADS[0] + 8, STACK).put(STACK + 8, next);
        let list = process.runtime().threads(&process.memory()).unwrap();
        assert_eq!((list.threads.len(), list.end), (2, Ok(())));
        assert_eq!((list.threads[0].frames.len(), list.threads[0].frames_end), (1, Err(end)));
    }
}

#[test]
fn another_contract_of_threads_is_refused() {
    let process = Process::new(0, "2", [0; 3]);
    let error = Runtime::read(&process.memory(), "", DESCRIPTOR).unwrap_err();
    let (name, version) = ("Thread", ContractVersion::Number(2));
    assert_eq!(error, InspectError::Contract(ContractError::ContractVersion { name, version }));
}
