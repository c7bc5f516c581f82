use super::*;
use crate::{NoFiles, StoppedProcess as _, Wait};

const LOCK: u64 = 0x5000;
/// The control block of the second thread, and where glibc has the thread's id in it.
const BLOCK: u64 = 0x6000;
const ID: u64 = BLOCK + 0x2D0;

/// The registers of a thread that matter here.
#[derive(Clone, Copy)]
struct Call {
    number: u64,
    address: u64,
    operation: u64,
    expected: u64,
}

const MUTEX: Call = Call { number: 202, address: LOCK, operation: 0x80, expected: 2 };
const JOIN: Call = Call { number: 202, address: ID, operation: 0x109, expected: 8 };

/// Returns what thread 7 waits for, beside thread 8.
fn wait(call: Call, words: &[(u64, u32)]) -> Option<Wait> {
    let thread = |id: u32, call: Call, block: u64| {
        let mut status = vec![0; 336];
        status[32..36].copy_from_slice(&id.to_le_bytes());
        // Places in `struct user_regs_struct`: rdx, rsi, rdi, orig_rax, fs_base.
        let places = [(12, call.expected), (13, call.operation), (14, call.address)];
        for (place, value) in places.into_iter().chain([(15, call.number), (21, block)]) {
            status[112 + 8 * place..][..8].copy_from_slice(&value.to_le_bytes());
        }
        status
    };
    let core = CoreWriter::default().note(1, &thread(7, call, 0x9000));
    let mut core = core.note(1, &thread(8, Call { number: 0, ..call }, BLOCK));
    for (address, word) in words {
        core = core.page(*address, &word.to_le_bytes());
    }
    let core = core.write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    Wait::of(&dump, dump.thread(7).unwrap())
}

/// A mutex: lock, count, owner, users, kind.
fn mutex(lock: u32, owner: u32, users: u32, kind: u32) -> Vec<(u64, u32)> {
    (LOCK..).step_by(4).zip([lock, 0, owner, users, kind]).collect()
}

#[test]
fn a_mutex_says_who_owns_it() {
    let owned = Some(Wait::Mutex { address: LOCK, owner: 8 });
    assert_eq!(wait(MUTEX, &mutex(2, 8, 1, 0)), owned);
    assert_eq!(owned.and_then(Wait::on), Some(8));
    // Recursive, and of two users.
    assert_eq!(wait(MUTEX, &mutex(2, 8, 2, 1)), owned);
    // A thread that waits for itself.
    assert_eq!(wait(MUTEX, &mutex(2, 7, 1, 0)), Some(Wait::Mutex { address: LOCK, owner: 7 }));
}

#[test]
fn an_owner_is_not_named_if_a_word_does_not_fit() {
    for (lock, owner, users, kind) in
        [(1, 8, 1, 0), (2, 9, 1, 0), (2, 8, 0, 0), (2, 8, 3, 0), (2, 8, 1, 0x400), (3, 8, 1, 0)]
    {
        let found = wait(MUTEX, &mutex(lock, owner, users, kind));
        assert_eq!(found, Some(Wait::Word { address: LOCK, value: Some(lock) }), "{owner} {users}");
    }
    // What is unknown is no zero.
    let words = mutex(2, 8, 1, 0);
    let word = |value| Some(Wait::Word { address: LOCK, value });
    assert_eq!(wait(MUTEX, &words[..4]), word(Some(2)));
    assert_eq!(wait(MUTEX, &words[1..]), word(None));
    assert_eq!(word(None).and_then(Wait::on), None);
}

#[test]
fn a_join_says_which_thread_has_to_end() {
    assert_eq!(wait(JOIN, &[(ID, 8)]), Some(Wait::Thread { id: 8 }));
    assert_eq!(Wait::Thread { id: 8 }.on(), Some(8));
    // A thread that ended, and a word elsewhere that is a thread's id.
    assert_eq!(wait(JOIN, &[(ID, 0)]), Some(Wait::Word { address: ID, value: Some(0) }));
    let elsewhere = Call { address: LOCK, ..JOIN };
    assert_eq!(wait(elsewhere, &[(LOCK, 8)]), Some(Wait::Word { address: LOCK, value: Some(8) }));
}

#[test]
fn other_calls_have_their_number() {
    let call = |number, operation| wait(Call { number, operation, ..MUTEX }, &mutex(2, 8, 1, 0));
    assert_eq!(call(7, 0), Some(Wait::Call { number: 7 }));
    // FUTEX_WAKE.
    assert_eq!(call(202, 1), Some(Wait::Call { number: 202 }));
    assert_eq!(call(u64::MAX, 0), None);
}
