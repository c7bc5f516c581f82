//! Tests of access sets: which accesses meet, and their texts.

use super::*;

const SINGLE: [Footprint; 8] = [
    Footprint::SUSPENSION,
    Footprint::CODE,
    Footprint::READERS,
    Footprint::RUNTIME,
    Footprint::THREADS,
    Footprint::OBJECTS,
    Footprint::MEMORY,
    Footprint::MADE,
];

fn profilers(lock: u32) -> Footprint {
    Footprint::lock(LockName::Profiler(lock))
}

fn runtimes(lock: Lock) -> Footprint {
    Footprint::lock(LockName::Runtime(lock))
}

/// Returns the changes of as many things of each kind as have a bit of their own.
fn things() -> Vec<Footprint> {
    let threads = (0..48).map(|thread| Footprint::thread(ThreadIndex(thread)));
    let locks = Lock::ALL.into_iter().map(runtimes).chain((0..32).map(profilers));
    let objects = (0..16).map(Footprint::event).chain((0..8).map(Footprint::condition));
    threads.chain(locks).chain(objects).chain(SINGLE).collect()
}

#[test]
fn changes_of_different_things_do_not_meet() {
    let things = things();
    for (place, one) in things.iter().enumerate() {
        for (other_place, other) in things.iter().enumerate() {
            assert_eq!(one.meets(*other), place == other_place, "{one} {other}");
        }
        assert!(one.meets(Footprint::ALL) && Footprint::ALL.meets(*one));
        assert!(one.meets(Footprint::TIME), "each turn advances time");
        assert!(!one.meets(Footprint::default()) && !Footprint::default().meets(*one));
    }
}

#[test]
fn reads_meet_changes_and_no_reads() {
    for thing in things() {
        assert!(thing.meets(thing.read()) && thing.read().meets(thing));
        assert!(!thing.read().meets(thing.read()));
        assert_eq!(thing.read().read(), thing.read());
    }
}

#[test]
fn things_beyond_the_bits_of_their_kind_share_one() {
    assert_eq!(Footprint::thread(ThreadIndex(48)), Footprint::thread(ThreadIndex(0)));
    assert_eq!(Footprint::thread(ThreadIndex(95)), Footprint::thread(ThreadIndex(47)));
    assert_eq!((profilers(32), profilers(63)), (profilers(0), profilers(31)));
    assert_eq!(Footprint::event(17), Footprint::event(1));
    assert_eq!(Footprint::condition(10), Footprint::condition(2));
}

#[test]
fn a_number_of_threads_are_the_first_ones() {
    for count in [0, 1, 5, 47, 48, 60] {
        let all = Footprint::threads(count);
        for thread in 0..48 {
            let one = Footprint::thread(ThreadIndex(thread));
            assert_eq!(all.meets(one), thread < count, "{thread} of {count}");
        }
        assert!(!all.meets(runtimes(Lock::ProcessHeap)), "{count}");
    }
}

#[test]
fn all_of_the_runtime_has_nothing_of_the_profiler() {
    let all = Footprint::OF_RUNTIME;
    assert!(Lock::ALL.into_iter().all(|lock| all.meets(runtimes(lock))));
    let has = SINGLE.map(|thing| all.meets(thing));
    assert_eq!(has, [true, true, true, true, true, true, false, false]);
    let others = (0..32).map(profilers).chain((0..16).map(Footprint::event));
    let mut others = others.chain((0..48).map(|thread| Footprint::thread(ThreadIndex(thread))));
    assert!(others.all(|other| !all.meets(other)));
}

#[test]
fn two_sets_together_have_what_either_has() {
    let (one, other) = (Footprint::CODE, Footprint::RUNTIME.read());
    for both in [one | other, other | one, one.and(other)] {
        assert!(both.meets(Footprint::CODE.read()), "changed");
        assert!(both.meets(Footprint::RUNTIME) && !both.meets(Footprint::RUNTIME.read()), "read");
        assert!(!both.meets(Footprint::THREADS));
    }
    // What is changed and read is changed.
    assert_eq!(one | one.read(), one);
    let mut both = one;
    both |= other;
    assert_eq!(both, one | other);
}

#[test]
fn a_set_is_written_as_changes_and_reads() {
    assert_eq!(Footprint::default().to_string(), "0.0");
    assert_eq!(Footprint::thread(ThreadIndex(4)).to_string(), "10.0");
    let both = Footprint::thread(ThreadIndex(0)) | Footprint::thread(ThreadIndex(5)).read();
    assert_eq!(both.to_string(), "1.20");
    for set in things().into_iter().chain([both, both.read(), Footprint::ALL]) {
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    // Others may write what is changed as read, too.
    let [both, changed]: [Footprint; 2] = ["1.1", "1.0"].map(|text| text.parse().unwrap());
    assert!(both.meets(changed) && changed.meets(both) && both.read().meets(changed));
    for wrong in ["", "1", "1.", "g.0", "1.0.0", "."] {
        assert!(wrong.parse::<Footprint>().is_err(), "{wrong}");
    }
}
