//! Tests of hashes of what determines the next step of a thread.

use super::*;
use crate::content::ContentHasher;
use clr_machine::PAGE_SIZE;
use core::hash::Hasher as _;

/// Returns the hash of what `write` writes.
fn hash(write: impl Fn(&mut ContentHasher)) -> u64 {
    let mut hasher = ContentHasher::default();
    write(&mut hasher);
    hasher.finish()
}

/// Schedules and tables of searches depend on these values: they are the same on every system.
#[test]
fn a_hash_is_the_same_on_every_system() {
    assert_eq!(hash(|_| ()), 0x18E5_72A2_00F4_AFA7);
    assert_eq!(hash(|hasher| hasher.write_u64(1)), 0x9754_6B5D_F44F_0097);
    let long = hash(|hasher| hasher.write(&[1, 0, 0, 0, 0, 0, 0, 0, 2]));
    assert_eq!(long, hash(|hasher| [1, 2].into_iter().for_each(|word| hasher.write_u64(word))));
}

#[test]
fn numbers_of_all_sizes_count() {
    let hashes = [
        hash(|_| ()),
        hash(|hasher| hasher.write_u8(7)),
        hash(|hasher| hasher.write_u16(8)),
        hash(|hasher| hasher.write_u32(9)),
        hash(|hasher| hasher.write_u64(1 << 63)),
        hash(|hasher| hasher.write_u64(1 << 40)),
        hash(|hasher| hasher.write_usize(10)),
        hash(|hasher| hasher.write_u128(1 << 127)),
        hash(|hasher| hasher.write_u128(1 << 90)),
        hash(|hasher| hasher.write_u128(11)),
        hash(|hasher| [1, 2].iter().for_each(|word| hasher.write_u64(*word))),
        hash(|hasher| [2, 1].iter().for_each(|word| hasher.write_u64(*word))),
    ];
    let different: BTreeSet<_> = hashes.into_iter().collect();
    assert_eq!(different.len(), hashes.len(), "{hashes:x?}");
    // Each bit of a word changes about half of the hash's bits.
    for bit in 0..64 {
        let changed =
            hash(|hasher| hasher.write_u64(1 << bit)) ^ hash(|hasher| hasher.write_u64(0));
        assert!((10..=54).contains(&changed.count_ones()), "bit {bit}: {changed:#x}");
    }
}

fn build() -> Build {
    let functions = vec![
        function(
            "App.Main",
            CodeKind::Jit,
            vec![
                runtime(Kind::New, None),
                Statement::Call(CallForm::Near, FunctionIndex(1)),
                Statement::Work(2),
            ],
        ),
        function("App.Work", CodeKind::Jit, vec![Statement::Work(5)]),
    ];
    let program = Program { functions, ..Program::default() };
    Build::new(&program, &BTreeMap::new(), Generation::Net9Unix).unwrap()
}

const MAIN: ThreadStart = ThreadStart::Managed(FunctionIndex(0));

fn poke(world: &mut World<'_>, address: u64, value: u8) {
    world.runtime().memory.borrow_mut().write(address, &[value]).unwrap();
}

fn peek(world: &mut World<'_>, address: u64) -> u8 {
    let mut byte = [0];
    world.runtime().memory.borrow().read(address, &mut byte).unwrap();
    byte[0]
}

/// `World::content_of` covers the stack from rsp to its base, and the Thread object. No code reads memory below rsp.
#[test]
fn a_threads_content_has_its_stack_from_rsp_on_and_its_object() {
    let build = build();
    let mut world = build.world(&[MAIN, MAIN]).unwrap();
    world.step(0).unwrap();
    let (limit, base) = world.threads[0].stack;
    let own = world.threads[0].own;
    let rsp = world.runtime().memory.borrow().cpu().rsp();
    assert!(base - rsp > 8 && rsp - limit > 0x200, "{limit:x} {rsp:x} {base:x}");
    for (address, counts) in [
        (rsp - 1, false),
        (rsp - 0x100, false),
        (limit, false),
        (rsp, true),
        (rsp + 1, true),
        (base - 1, true),
        (own, true),
        (own + clr_runtime::THREAD_OBJECT_SIZE - 1, true),
        (own + clr_runtime::THREAD_OBJECT_SIZE, false),
    ] {
        let before = (world.content_of(0), world.content_of(1));
        let value = peek(&mut world, address);
        poke(&mut world, address, !value);
        assert_eq!(world.content_of(0) != before.0, counts, "{address:#x}");
        assert_eq!(world.content_of(1), before.1, "{address:#x}");
        poke(&mut world, address, value);
        assert_eq!(world.content_of(0), before.0, "{address:#x}");
    }
}

/// Parts of 256 bytes are hashed one after the other: each byte of a deep stack counts.
#[test]
fn every_byte_of_a_deep_stack_counts() {
    let build = build();
    let mut world = build.world(&[MAIN]).unwrap();
    let (limit, base) = world.threads[0].stack;
    let low = base - 0x345;
    assert!(low > limit);
    world.step(0).unwrap();
    world.runtime().memory.borrow_mut().cpu_mut().set(Gpr::Rsp, low);
    let before = world.content_of(0);
    for address in low..base {
        let value = peek(&mut world, address);
        poke(&mut world, address, value ^ 0x10);
        assert_ne!(world.content_of(0), before, "{address:#x}");
        poke(&mut world, address, value);
    }
    // With an rsp outside of the stack all of it counts.
    world.runtime().memory.borrow_mut().cpu_mut().set(Gpr::Rsp, base + PAGE_SIZE);
    let before = world.content_of(0);
    let value = peek(&mut world, limit);
    poke(&mut world, limit, !value);
    assert_ne!(world.content_of(0), before);
}

/// Everything that a thread has left below rsp is cleared, and nothing else.
#[test]
fn what_a_thread_has_left_below_rsp_is_cleared() {
    let build = build();
    let mut world = build.world(&[MAIN]).unwrap();
    let (limit, base) = world.threads[0].stack;
    let (mut deepest, mut cleared) = (base, 0);
    loop {
        let ended = world.step(0).unwrap() == crate::StepEvent::Ended;
        let rsp = world.runtime().memory.borrow().cpu().rsp();
        deepest = deepest.min(rsp);
        if ended || rsp > deepest + 0x180 {
            let above = (rsp..base).map(|address| peek(&mut world, address)).collect::<Vec<_>>();
            let left = (limit..rsp).filter(|address| peek(&mut world, *address) != 0).count();
            cleared += left;
            world.clear_below(0);
            for address in limit..rsp {
                assert_eq!(peek(&mut world, address), 0, "{address:#x} below {rsp:#x}");
            }
            assert_eq!((rsp..base).map(|it| peek(&mut world, it)).collect::<Vec<_>>(), above);
            deepest = rsp;
        }
        if ended {
            break;
        }
    }
    assert!(cleared > 0);
    // A thread that the world does not have.
    world.clear_below(9);
}

#[test]
fn a_locks_content_is_its_owner_and_its_count() {
    let build = build();
    let mut world = build.world(&[MAIN]).unwrap();
    let free = Lock::ALL.map(|lock| world.content_of_lock(lock));
    assert!(free.iter().all(|content| *content == free[0]), "{free:x?}");
    let mut contents = BTreeSet::from([free[0]]);
    let mut change = |owner, times: u32| {
        world.runtime().change_process(|process| {
            for _ in 0..times {
                process.try_acquire(Lock::ThreadStore, owner);
            }
        });
        let content = world.content_of_lock(Lock::ThreadStore);
        world.runtime().change_process(|process| {
            while process.owner(Lock::ThreadStore).is_some() {
                process.release(Lock::ThreadStore, owner);
            }
        });
        assert_eq!(world.content_of_lock(Lock::ThreadStore), free[0]);
        content
    };
    assert!(contents.insert(change(OsThreadId(1), 1)));
    assert!(contents.insert(change(OsThreadId(2), 1)));
    assert!(contents.insert(change(OsThreadId(2), 2)));
}
