//! Tests of threads of the profiler that the runtime knows, and that end.

use super::*;

const MAIN: ThreadIndex = ThreadIndex(0);
/// The index of the profiler's thread that collects: the program has two.
const COLLECTOR: ThreadIndex = ThreadIndex(2);

/// Creates a process with a program and the finalizer's thread.
fn with_finalizer(generation: Generation) -> TestedProcess {
    let convention = if generation.is_unix() {
        CallingConvention::SystemV
    } else {
        CallingConvention::default()
    };
    let functions = vec![function("Main", vec![Statement::Work(250)])];
    let threads =
        [("Main", ThreadStart::Managed(FunctionIndex(0))), ("finalizer", ThreadStart::Finalizer)];
    on(generation, &Program { convention, functions, ..Program::default() }, &threads)
}

/// Executes `after` when a thread of the profiler, known to the runtime because of `ForceGC`, has ended, and `destroyed` in
/// ThreadDestroyed for it.
fn after_its_end<'p>(
    setup: &mut Setup<'p>,
    destroyed: impl Fn(&CurrentThread<'_, '_>) + 'p,
    after: impl FnOnce(&CurrentThread<'_, '_>, ThreadId) + 'p,
) {
    let id = Rc::new(Cell::new(ThreadId(0)));
    let known = Rc::clone(&id);
    setup.thread("collector", move |me| {
        assert_eq!(me.info().force_gc(), Ok(()));
        known.set(me.info().get_current_thread_id().unwrap());
        assert!(me.info().enum_threads().unwrap().contains(&known.get()));
    });
    let ended = Rc::clone(&id);
    setup.on(CallbackKind::ThreadDestroyed, move |me| {
        if me.callback().is_some_and(|callback| callback.thread == ended.get()) {
            destroyed(me);
        }
    });
    setup.thread("other", move |me| {
        me.join(COLLECTOR);
        if !me.has_ended(MAIN) {
            after(me, id.get());
        }
    });
}

#[test]
fn a_thread_that_has_ended_is_neither_listed_nor_walked() {
    for generation in [Generation::Net8Unix, Generation::Net9Windows] {
        let process = with_finalizer(generation);
        let load = |setup: &mut Setup<'_>| {
            after_its_end(
                setup,
                |_| (),
                |me, id| {
                    assert!(!me.info().enum_threads().unwrap().contains(&id));
                    let handle = me.info().get_handle_from_thread(id);
                    assert_eq!(handle, Err(CallError::Failed(HResult::INVALID_ARGUMENT)));
                    let request = SnapshotRequest { thread: id, ..SnapshotRequest::default() };
                    let _ = me.info().do_stack_snapshot(&request, None);
                },
            );
        };
        let report = check(&process, &load, &Budget::random(1, 100)).unwrap();
        let verdicts = report.failure.map(|failure| failure.verdict);
        if generation.is_unix() {
            assert_eq!(verdicts, None);
        } else {
            let killed = |verdict: &Verdict| matches!(verdict, Verdict::ProcessKilled { .. });
            assert!(verdicts.as_ref().is_some_and(killed), "{verdicts:?}");
        }
    }
}

#[test]
fn the_finalizers_thread_reports_the_end_and_holds_the_list_of_threads() {
    let process = with_finalizer(Generation::Net9Unix);
    let (reports, blocked) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let load = |setup: &mut Setup<'_>| {
        let (reports, blocked) = (Rc::clone(&reports), Rc::clone(&blocked));
        let asks = Rc::new(Cell::new(false));
        let asked = Rc::clone(&asks);
        let destroyed = move |me: &CurrentThread<'_, '_>| {
            reports.set(reports.get() + 1);
            assert_eq!(me.index(), ThreadIndex(1));
            assert_eq!(me.kernel.runtime.process.get().owner(Lock::ThreadStore), Some(me.os));
            asked.set(true);
            me.sleep(10);
            asked.set(false);
        };
        after_its_end(setup, destroyed, move |me, _| {
            while !asks.get() && !me.has_ended(MAIN) {
                me.point();
            }
            let began = asks.get();
            let listed = me.info().enum_threads();
            assert!(listed.is_ok() && !(began && asks.get()), "it waits for the callback's end");
            blocked.set(blocked.get() + u32::from(began));
        });
    };
    let budget = Budget { limits: SHORT, ..Budget::random(1, 60) };
    let report = check(&process, &load, &budget).unwrap();
    assert!(report.survives(), "{report}");
    assert!(reports.get() > 20 && blocked.get() > 5, "{reports:?} {blocked:?}");
}

/// Limits with which the profiler runs in the middle of the program.
const SHORT: Limits = Limits { turns: 20_000, instructions: 5, every_instruction: false };
