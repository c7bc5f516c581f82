//! Tests that neither a walk nor a snapshot allocates.

use super::*;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{HResult, Policy, PolicyWalker, SimulatedThread, SnapshotRequest};
use clr_runtime::{FrameKind, Outcome};
use clr_walker::mixed::{FrameKind as Kind, MixedFrame, WalkBuffer};
use clr_world::synthetic::{NATIVE_WALKER, SELF, SyntheticThread};
use std::hint::black_box;

const NAMES: [&str; 5] = ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"];

/// Calls `use_one` with every vector of the fixtures that has a chain, with its code and its stack.
fn each_chain(mut use_one: impl FnMut(&CodeMap<'_>, &Vector<'_>, &Segments<'_>)) {
    for name in NAMES {
        let get = |path: String| clr_fixtures::get(&path).unwrap();
        let image = PeImage::parse(get(format!("win64/img/{name}.dll"))).unwrap();
        let vectors = get(format!("win64/vec/{name}.vec.gz"));
        let vectors = decompress(vectors, DECOMPRESSED_LIMIT).unwrap();
        let file = VectorFile::parse(&vectors).unwrap();
        let mut map = CodeMap::new();
        map.insert_image(file.image_base(), &image).unwrap();
        for vector in file.iter().map(Result::unwrap) {
            if !vector.chain.is_empty() {
                let memory = Segments::new(vector.segments()).unwrap();
                use_one(&map, &vector, &memory);
            }
        }
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(black_box(Box::new(1)))).count_total, 1);
    // The root of its tree.
    assert_eq!(measure(|| drop(black_box(CodeMap::new()))).count_total, 1);
    // Allocations for the entries and their successors, of both kinds of code.
    assert_eq!(measure(|| drop(black_box(Cache::new()))).count_total, 4);
}

#[test]
fn walking_allocates_nothing() {
    let mut frames = 0;
    each_chain(|map, vector, memory| {
        for rules in [Rules::Precise, Rules::CoreClr] {
            let info = measure(|| {
                let walk = Unwinder::new(map).with_rules(rules).walk(&vector.registers, memory);
                frames += walk.take_while(Result::is_ok).count();
            });
            assert_eq!(info.count_total, 0, "{rules:?} at {:#x}", vector.rva);
        }
    });
    assert!(frames > 4_000, "{frames}");
}

#[test]
fn stepping_allocates_nothing() {
    let mut steps = 0;
    let mut cache = Cache::new();
    each_chain(|map, vector, memory| {
        let unwinder = Unwinder::new(map);
        let info = measure(|| {
            let (mut registers, mut position) = (vector.registers, Position::Interrupted);
            while let Ok(step) = unwinder.step(&mut registers, position, memory) {
                position = step.caller;
                black_box(map.find(registers.rip));
                steps += 1;
            }
        });
        assert_eq!(info.count_total, 0, "at {:#x}", vector.rva);
        // The second time, the cache knows the steps.
        for time in 1..=2 {
            let info = measure(|| {
                let (mut registers, mut position) = (vector.registers, Position::Interrupted);
                while let Ok(step) =
                    unwinder.step_cached(&mut cache, &mut registers, position, memory)
                {
                    position = step.caller;
                    steps += 1;
                }
            });
            assert_eq!(info.count_total, 0, "at {:#x}, time {time}", vector.rva);
        }
    });
    assert!(steps > 6_000, "{steps}");
}

/// Stages a thread in a helper that has set up its Frame.
fn in_a_helper(generation: Generation) -> SyntheticThread {
    let helper = if generation.has_helper_method_frames() {
        FrameKind::HelperMethod
    } else {
        FrameKind::DynamicHelper
    };
    SyntheticThread::new(generation)
        .cooperative()
        .native("coreclr.dll!JIT_New+0x80", 0x1F_E000)
        .jit("App.Foo+0x40", 0x1F_E300)
        .ready_to_run("App.Bar+0x20", 0x1F_E340)
        .saves_all()
        .native("coreclr.dll!CallDescrWorkerInternal+0x7c", 0x1F_E400)
        .frame(helper, 0x1F_E100, "App.Foo")
}

/// Snapshots over Frames, with contexts, from the chain and from a seed.
#[test]
fn a_snapshot_allocates_nothing() {
    for generation in Generation::ALL {
        let set = in_a_helper(generation).build().unwrap();
        let mut seed = set.seed("App.Foo").unwrap().to_bytes().to_vec();
        seed.resize(generation.context_size() as usize, 0);
        for seed in [None, Some(seed.as_slice())] {
            let runtime = set.runtime();
            let call = SnapshotRequest { seed, ..set.call() };
            let (mut callbacks, mut outcome) = (0, Outcome::Endless);
            let info = measure(|| {
                outcome = runtime.on(SELF).do_stack_snapshot(
                    &call,
                    Some(&mut |frame| {
                        callbacks += black_box(frame).context.len().min(1);
                        HResult::OK
                    }),
                );
            });
            assert_eq!((outcome, callbacks), (Outcome::Returned(HResult::OK), 3), "{generation}");
            assert_eq!(info.count_total, 0, "{generation}, seeded: {}", seed.is_some());
        }
    }
}

/// Nothing is allocated between suspension and resumption: after `take` the thread runs again, and
/// only then are the frames named.
#[test]
fn a_mixed_walk_allocates_nothing_while_the_thread_is_suspended() {
    let mut buffer = WalkBuffer::new(64);
    for generation in Generation::ALL {
        let set = in_a_helper(generation).build().unwrap();
        for policy in Policy::ALL {
            let runtime = set.runtime();
            let map = runtime.profilers_code_map().unwrap();
            let calling_thread = if policy.is_for_itself() { SELF } else { NATIVE_WALKER };
            let target = SimulatedThread::new(&runtime, SELF, 0).unwrap().called_by(calling_thread);
            let info = runtime.on(calling_thread);
            let walker = PolicyWalker::new(&info, &map, policy);
            let mut taken = Ok(());
            let counted = measure(|| taken = walker.take(&target, &mut buffer));
            assert_eq!(taken, Ok(()), "{generation}, {policy:?}");
            assert_eq!(runtime.rule_violation(), None, "{generation}, {policy:?}");
            assert_eq!(counted.count_total, 0, "{generation}, {policy:?}");
            let stack = walker.stitch(&buffer).unwrap();
            let managed = |frame: &MixedFrame| matches!(frame.kind, Kind::Managed(_));
            let expected = match policy {
                Policy::SignalSnapshot | Policy::Synchronous => 2,
                Policy::Seeded if !generation.is_unix() => 2,
                _ => continue,
            };
            let found = stack.frames.iter().filter(|frame| managed(frame)).count();
            assert_eq!(found, expected, "{generation}, {policy:?}: {stack:#x?}");
        }
    }
}
