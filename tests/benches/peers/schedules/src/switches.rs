//! Benchmark of switches from one thread of control to another: coroutines of `clr-coroutine`, and
//! system threads that hand over by parking or through channels. Every round runs all contenders,
//! one after the other.
//!
//! ```console
//! $ cargo bench --manifest-path tests/benches/peers/Cargo.toml --bench switches
//! ```

#[path = "../../../shared/summary.rs"]
mod summary;

use clr_coroutine::{Id, Scope, Stacks, State, scope};
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;
use summary::Summary;

const ROUNDS: usize = 31;
/// Number of switches in one sample of coroutines, and in one sample of threads, which are slower.
const SWITCHES: u32 = 2_000_000;
const HAND_OVERS: u32 = 20_000;
/// Number of coroutines that take turns; there are two threads.
const PLAYERS: u32 = 3;

/// A function that switches N times and returns nanoseconds per switch.
type Measure = fn(u32) -> Result<f64, Box<dyn Error>>;

/// The contenders: name, number of switches in a sample, and the function that switches.
const CONTENDERS: [(&str, u32, Measure); 4] = [
    ("clr-coroutine", SWITCHES, coroutines),
    ("clr-coroutine, a new one each time", HAND_OVERS, starts),
    ("threads, park and unpark", HAND_OVERS, parked),
    ("threads, channels", HAND_OVERS, channels),
];

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = if std::env::args().any(|it| it == "--bench") { ROUNDS } else { 1 };
    let mut samples = [const { Vec::new() }; CONTENDERS.len()];
    for _ in 0..rounds {
        for ((_, count, measure), samples) in CONTENDERS.iter().zip(&mut samples) {
            samples.push(measure(*count)?);
        }
    }
    println!("medians of {rounds} interleaved rounds");
    println!("| ns per switch | |");
    println!("| --- | --: |");
    for ((name, ..), samples) in CONTENDERS.iter().zip(&mut samples) {
        println!("| {name} | {:.1} |", Summary::of(samples.iter().copied()));
    }
    Ok(())
}

/// Returns the nanoseconds since `start` per switch.
fn each(start: Instant, count: u32) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

/// Switches by resuming a coroutine, which is one switch, and by its yield, which is another.
fn coroutines(count: u32) -> Result<f64, Box<dyn Error>> {
    scope(&mut Stacks::new(STACK), |scope| {
        let players = (0..PLAYERS).map(|_| player(scope)).collect::<Result<Vec<_>, _>>()?;
        let mut turns = 0;
        let start = Instant::now();
        for player in players.iter().cycle().take(count as usize / 2) {
            turns += u32::from(scope.resume(*player) == Some(State::Yielded(())));
        }
        let time = each(start, count);
        assert_eq!(turns, count / 2);
        Ok(time)
    })
}

/// Stack size of each coroutine in bytes.
const STACK: usize = 64 * 1024;

fn player(scope: &mut Scope<'_, '_, ()>) -> std::io::Result<Id> {
    scope.start(|yielder| {
        loop {
            yielder.suspend(());
        }
    })
}

/// Creates a coroutine and executes it to its end; its stack is reused.
fn starts(count: u32) -> Result<f64, Box<dyn Error>> {
    scope(&mut Stacks::new(STACK), |scope: &mut Scope<'_, '_, ()>| {
        let start = Instant::now();
        for _ in 0..count / 2 {
            let id = scope.start(|_| ())?;
            assert_eq!(scope.resume(id), Some(State::Returned));
        }
        Ok(each(start, count))
    })
}

/// Switches between two threads that wake each other.
fn parked(count: u32) -> Result<f64, Box<dyn Error>> {
    let turn = AtomicU32::new(0);
    let wait = |own| {
        while turn.load(Ordering::Acquire) != own {
            thread::park();
        }
    };
    let first = thread::current();
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            for own in (1..count).step_by(2) {
                wait(own);
                turn.store(own + 1, Ordering::Release);
                first.unpark();
            }
        });
        let start = Instant::now();
        for own in (0..count).step_by(2) {
            wait(own);
            turn.store(own + 1, Ordering::Release);
            second.thread().unpark();
        }
        wait(count);
        Ok(each(start, count))
    })
}

/// Switches between two threads that send each other messages.
fn channels(count: u32) -> Result<f64, Box<dyn Error>> {
    let (there, arrives) = sync_channel(1);
    let (back, returns) = sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(move || arrives.iter().try_for_each(|turn: u32| back.send(turn)));
        let start = Instant::now();
        for turn in 0..count / 2 {
            there.send(turn)?;
            assert_eq!(returns.recv()?, turn);
        }
        let time = each(start, count);
        // The other thread ends.
        drop(there);
        Ok(time)
    })
}
