//! Threads that wait for others, and such as wait for a while.

use super::Event;

/// Tells, step by step, whether a thread waits for others: what ends by itself, as Sleep does, lets it
/// wait once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The last step has come to waiting.
    once: bool,
}

impl Waiting {
    /// Whether the thread waits for others, now that a step has come to this.
    pub fn is_for_others(&mut self, event: Event) -> bool {
        let waits = event == Event::Waits;
        core::mem::replace(&mut self.once, waits) && waits
    }
}

#[test]
fn who_waits_twice_waits_for_others() {
    use Event::{Ended, Stepped, Waits};
    let mut waiting = Waiting::default();
    let events = [Stepped, Waits, Stepped, Waits, Waits, Waits, Ended, Waits];
    let told = events.map(|event| waiting.is_for_others(event));
    assert_eq!(told, [false, false, false, false, true, true, false, false]);
}
