//! A sampler as the documentation wants it, over every thread of the gallery.

use clr_sim::harness::{Found, StackWalker, Target, judge};
use clr_sim::profiling::Context;
use clr_walker::profiling::{HResult, ProfilerInfo, SnapshotFlags, SnapshotFrame};
use clr_walker::unwind::{Position, Unwinder};

use core::fmt::Write as _;

struct Sampler;

impl StackWalker for Sampler {
    fn walk(&self, target: &Target<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let info = target.info();
        let (mut registers, mut position) = (target.registers, Position::Interrupted);
        let mut seed = None;
        for _ in 0..64 {
            if info.get_function_from_ip(registers.rip).is_ok() {
                seed = Some(Context { registers, flags: 0x10_000B }.to_bytes());
                break;
            }
            let unwinder = Unwinder::new(target.native());
            if unwinder.step(&mut registers, position, &target.memory()).is_err() {
                break;
            }
            position = Position::ReturnAddress;
        }
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            let ip = frame.ip;
            found.extend(frame.function.map(|function| Found { function, ip }));
            HResult::OK
        };
        let (flags, seed) = (SnapshotFlags::REGISTER_CONTEXT, seed.as_ref().map(|seed| &seed[..]));
        info.do_stack_snapshot(target.thread, Some(&mut callback), flags, 0, seed, 0x4D0)
            .map_err(|error| error.to_string())?;
        // S_OK may mean that nothing was walked at all.
        if found.is_empty() { Err("no managed frames".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn a_seeded_sampler_is_never_wrong() {
    let (mut complete, mut all, mut wrong) = (0, 0, String::new());
    for fixture in clr_fixtures::gallery() {
        let text = core::str::from_utf8(fixture.bytes).unwrap();
        for verdict in judge(&Sampler, text).unwrap() {
            all += 1;
            complete += usize::from(verdict.is_complete());
            if !verdict.is_right() {
                writeln!(wrong, "{}: {verdict}", fixture.name).unwrap();
            }
        }
    }
    assert!(complete > 500 && all > 2 * complete, "{complete} of {all}");
    assert!(wrong.is_empty(), "{wrong}");
}
