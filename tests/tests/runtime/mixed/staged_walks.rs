//! Whole stacks of threads that are set up by hand. With any damage, a walk ends and stays within
//! the buffer's capacity; without damage, no frame is invented.

use super::*;
use clr_generate::synthetic_call;

/// Number of stages in a full run.
const STAGES: u32 = 5_000;

#[test]
fn walks_of_any_thread_end_and_invent_nothing() {
    let mut sum = Staged::default();
    for seed in (first_seed()..).take(cases(STAGES) as usize) {
        let target = synthetic_call(&mut Seeded::new(seed)).target;
        let room = if seed % 3 == 0 { 4 } else { 64 };
        match walk_staged(&target, room) {
            Ok(None) => {}
            Ok(Some(staged)) => {
                sum.walks += staged.walks;
                sum.whole += staged.whole;
                sum.complete += staged.complete;
                sum.fatal += staged.fatal;
                sum.frames += staged.frames;
            }
            Err(broken) => panic!("seed {seed}: {broken}\n{target:#x?}"),
        }
    }
    println!("{sum:?}");
    assert!(sum.whole * 4 > sum.walks && sum.frames > sum.walks, "{sum:?}");
    assert!(sum.complete * 10 > sum.whole, "{sum:?}");
}
