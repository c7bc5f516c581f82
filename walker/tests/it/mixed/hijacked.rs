//! Threads whose return address the runtime has replaced.

use super::*;

/// Places of the two words in the Thread object in bytes: as in two versions, and the last ones.
const PLACES: [usize; 3] = [0x128, 0x2F8, 0x7F0];

/// Creates a thread of which frame 1's return address is the start of a function, as that of
/// `OnHijackTripThread` is.
fn thread(ips: &[u64]) -> Mock {
    let mut mock = Mock::new(ips);
    mock.knows_managed = true;
    mock.poke(sp(2) - 8, NATIVE + 0x500);
    mock
}

fn put(mock: &mut Mock, at: usize, words: [u64; 2]) {
    for (n, word) in words.iter().enumerate() {
        mock.object[at + 8 * n..][..8].copy_from_slice(&word.to_le_bytes());
    }
}

const IPS: [u64; 4] =
    [MANAGED + 0x130, returns_to(MANAGED, 2), returns_to(MANAGED, 3), returns_to(NATIVE, 4)];

#[test]
fn the_thread_object_has_the_true_return_address() {
    for at in PLACES {
        let mut mock = thread(&IPS);
        put(&mut mock, at, [IPS[2], sp(2) - 8]);
        let stack = mock.walk(Policy::Signal);
        let found: Vec<_> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
        let expected: Vec<_> = (0..).zip(IPS).map(|(n, ip)| (ip, sp(n))).collect();
        assert_eq!(found, expected, "{at:#x}");
        assert_eq!(stack.completeness(), Completeness::Whole, "{at:#x}");
    }
}

#[test]
fn other_words_of_the_thread_object_are_not_believed() {
    let lost = Completeness::Partial(Reason::NotACall { address: NATIVE + 0x500 });
    for (at, words) in [
        (0x128, [IPS[2], sp(3) - 8]),      // of another slot
        (0x128, [IPS[2] + 1, sp(2) - 8]),  // behind no call
        (0x128, [0x6666_0042, sp(2) - 8]), // in no known code
        (0x7F8, [IPS[2], sp(2) - 8]),      // too far
    ] {
        let mut mock = thread(&IPS);
        put(&mut mock, at, words);
        let stack = mock.walk(Policy::Signal);
        assert_eq!((stack.frames.len(), stack.completeness()), (2, lost), "{words:x?}");
    }
}
