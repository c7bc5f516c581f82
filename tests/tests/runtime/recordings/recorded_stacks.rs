//! Whole stacks of threads that real CLRs walked, by the policy of each recorded call, in the
//! runtime that replays the recorded calls.
//!
//! Recordings have no unwind data of native code. [`stacks_hold_the_recorded_values`] pretends native
//! code between the recorded ends; without it, no walk may claim to be complete.

use super::*;
use clr_recording::{ReachedFrame, SeedOrigin};
use clr_runtime::MethodKind;

/// Walks every recorded thread that can be walked, by each policy that fits, and compares the walk
/// with the recording.
fn walk_all(pretend: bool, mut see: impl FnMut(&Recording, &Recorded<'_>)) -> Counts {
    let mut counts = Counts::default();
    for (name, recording) in recordings() {
        let code = RecordedCode::new(recording);
        let mut replay = RecordingReplay::new(recording, &code).unwrap();
        let generation = recording.generation;
        for line in &recording.walks {
            if !is_fit(line) {
                counts.add(format!("{generation}, not walked: unfit"));
                continue;
            }
            for &policy in policies(line) {
                let found = match walk(recording, &mut replay, line, policy, pretend) {
                    Ok(found) => found,
                    Err(Unwalked::NotRecorded(_)) => {
                        counts.add(format!("{generation}, not walked: memory not recorded"));
                        continue;
                    }
                    Err(Unwalked::Zeroed(_)) => {
                        counts.add(format!("{generation}, not walked: deadly without its seed"));
                        continue;
                    }
                    Err(error) => panic!("{name}, walk {}, {policy:?}: {error}", line.n),
                };
                if let Err(wrong) = found.judge(recording) {
                    let table = table(&found);
                    panic!("{name}, walk {}, {policy:?}: {wrong}\n{table}", line.n);
                }
                let refused = found.stack.snapshot != Some(HResult::OK);
                let refused = if refused { ", refused" } else { "" };
                let claim = claim(&found.stack);
                counts.add(format!("{generation}, {}{refused}: {claim}", policy.name()));
                see(recording, &found);
            }
        }
    }
    counts
}

#[test]
fn stacks_hold_the_recorded_values() {
    let mut sums = Counts::default();
    let counts = walk_all(true, |recording, found| {
        let mut sum = |what: &str, count: usize| {
            sums.add_many(format!("{}: {what}", recording.generation), count as u64);
        };
        let native = &found.native;
        let same =
            if found.same_call { "walks of the recorded call" } else { "walks of another call" };
        sum(same, 1);
        sum("callbacks found", found.callbacks_found(recording));
        sum("native runs pretended", native.runs);
        sum("native runs left out", native.left_out.len());
        sum("return addresses at their ends that were recorded", native.recorded_ends);
        sum("return addresses reported by another one (C-156)", native.moved_ends);
        sum("words at their ends that are no return address", native.lost_ends);
        for frame in &found.stack.frames {
            match frame.seen_by() {
                SeenBy::Snapshot => sum("frames of the snapshot alone", 1),
                SeenBy::Unwinder => sum("frames of the unwinder alone", 1),
                SeenBy::Both => sum("frames of both", 1),
            }
        }
    });
    check!(format!("{counts}\n{sums}"));
}

/// Recordings do not contain native code, so it is unknown: the run at the root suffices to make a
/// walk incomplete, unless the thread has no managed frame.
#[test]
fn walks_over_unknown_native_code_are_never_complete() {
    let counts = walk_all(false, |_, found| {
        let claim = found.stack.completeness();
        // A thread without managed frames has nothing but its leaf, which no claim includes.
        let only_leaf = found.stops.is_empty() && claim == Completeness::WithoutLeaf;
        assert!(matches!(claim, Completeness::Partial(_)) || only_leaf, "{}", table(found));
        // Unknown code follows each marker.
        for (index, frame) in found.stack.frames.iter().enumerate() {
            let marker = frame.reported && !matches!(frame.kind, FrameKind::Managed(_));
            let gap = found.stack.gaps.iter().any(|gap| gap.at == index + 1);
            assert!(!marker || gap, "no gap after frame {index}: {}", table(found));
        }
    });
    check!(counts);
}

/// Describes the frame at which the operating system's unwinder left native code, relative to the
/// first stops that the runtime found from its Frames, without using the seed.
fn place_of_seed(seed: (u64, u64), stops: &[ReachedFrame]) -> &'static str {
    let is = |stop: &ReachedFrame| (stop.registers.rip, stop.registers.rsp()) == seed;
    let first_method = stops.iter().position(|stop| stop.kind == MethodKind::Ordinary);
    let (_, sp) = seed;
    match stops.iter().position(is) {
        Some(0) => "the first frame",
        at @ Some(_) if at == first_method => "the first method, behind stubs",
        Some(_) => "a later frame",
        None if stops.iter().any(|stop| stop.registers.rsp() == sp) => {
            "another return address of the first frame (C-156)"
        }
        None if stops.first().is_none_or(|stop| sp < stop.registers.rsp()) => {
            "a frame before the first one"
        }
        None => "nothing",
    }
}

/// The unwinder searched for the first method, or for the first managed frame. Its result is on the
/// stitched stack if the code between the result and the first Frame was recorded.
#[test]
fn the_systems_unwinder_was_right() {
    let mut counts = Counts::default();
    let mut last = None;
    walk_all(true, |recording, found| {
        let this = (recording.name.clone(), found.walk.n);
        let preemptive = found.walk.state.mode.as_deref() == Some("preemptive");
        let Some(seed) = found.walk.unwound_to().filter(|_| preemptive) else { return };
        let unwinds = found.policy != Policy::Unseeded;
        if !unwinds || found.stops.is_empty() || last.replace(this.clone()) == Some(this) {
            return;
        }
        let place = place_of_seed((seed.rip, seed.rsp()), &found.stops);
        assert!(!["a later frame", "nothing"].contains(&place), "{place}: {}", table(found));
        let is_there = found.stack.frames.iter().any(|frame| frame.sp == seed.rsp());
        let there = if is_there { "" } else { ", and not on the stack" };
        counts.add(format!("{}: {place}{there}", recording.generation));
    });
    check!(counts);
}

/// Tests bad seeds, as far as the stack's bounds show that they are bad. For seeds that ended the
/// process, recordings have no registers; but the same seeds were made for other calls.
#[test]
fn seeds_beside_the_stack_are_refused() {
    let mut counts = Counts::default();
    for (name, recording) in recordings() {
        let code = RecordedCode::new(recording);
        let mut replay = RecordingReplay::new(recording, &code).unwrap();
        for line in &recording.walks {
            let Some(seed) = &line.call.seed else { continue };
            if line.stack.is_none() || line.state.target.is_some() {
                continue;
            }
            replay.prepare(line).unwrap();
            let native = SyntheticNative::default();
            let Some(target) = replay.target(line, Some(seed.registers()), 0, &native) else {
                continue;
            };
            let stopped = Stopped::itself(&target);
            let refused = match Seed::at_context(&stopped) {
                Ok(_) => "taken",
                Err(SeedRefused::OutsideStack { .. }) => "outside the stack",
                Err(SeedRefused::Unaligned { .. }) => "not aligned",
                Err(error) => panic!("{name}, walk {}: {error}", line.n),
            };
            let made = seed.made.as_str();
            let how = if seed.origin() == SeedOrigin::Other { made } else { "good" };
            let deadly = ["sp-8", "zero", "noncanonical", "above-base", "max", "plus-1", "plus-4"];
            let is_deadly = made.contains("sp-") && deadly.iter().any(|end| made.ends_with(end));
            assert!(!is_deadly || refused != "taken", "{name}, walk {}: {made}", line.n);
            assert!(how != "good" || refused == "taken", "{name}, walk {}: {made}", line.n);
            counts.add(format!("{how}: {refused}"));
        }
    }
    check!(counts);
}

/// Checks that callbacks were made only in walks that the advice says to use.
#[test]
fn advice_fits_what_came_back() {
    let mut counts = Counts::default();
    for (name, recording) in recordings() {
        for line in &recording.walks {
            let Some(hr) = line.result.hr else { continue };
            let result = HResult(hr.0 as u32);
            let advice = advice(result);
            let callbacks = !line.result.callbacks.is_empty();
            let used = matches!(advice, Advice::Use | Advice::UseWhatCame);
            assert!(used || !callbacks, "{name}, walk {}: {result} with callbacks", line.n);
            let came = if callbacks { "callbacks" } else { "none" };
            counts.add(format!("{result}, {came}: {advice:?}"));
        }
    }
    check!(counts);
}
