//! Tests of searches of the interleavings of texts.

use super::{parse, round_trip};
use crate::{Demands, ExpectedEnd, Exploration, Exploring, HistoryDifference, Results, bless};
use clr_explore::{ProfilerRule, SearchPoints};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_story::Hazard;

/// Returns a text with a profiler that has two locks and the given threads.
fn text(threads: &str, explore: &str) -> String {
    format!(
        "function \"App.Main\" kind=jit {{ body {{ work 3 }} }}
profiler {{ lock one two; event done; {threads} }}
{explore}"
    )
}

fn differences(text: &str) -> Vec<HistoryDifference> {
    let scenario = parse(text);
    round_trip(&scenario);
    let explored = scenario.explore_on(Generation::Net10Windows).unwrap();
    explored.into_iter().flat_map(|explored| explored.differences).collect()
}

const CROSSED: &str = "thread a { lock one { lock two } }; thread b { lock two { lock one } }";

#[test]
fn two_locks_in_different_order_are_found() {
    let expect = |ends: &str| text(CROSSED, &format!("explore {{ expect {{ {ends} }} }}"));
    let right = "deadlock; waits a for=b why=lock lock=two; waits b for=a lock=one";
    assert_eq!(differences(&expect(right)), []);
    let found = ExpectedEnd::Deadlock;
    let expected = ExpectedEnd::Survives { everything: false };
    assert_eq!(differences(&expect("survives")), [HistoryDifference::End { expected, found }]);
    let wrong = "deadlock; waits a for=b lock=one; hazard H-08";
    let hazard = HistoryDifference::Hazard { expected: Hazard::CallbackTakesLock, found: None };
    assert_eq!(differences(&expect(wrong)), [HistoryDifference::Wait(0), hazard]);
}

#[test]
fn two_locks_in_one_order_survive_everything() {
    let threads = "thread a { lock one { lock two } }; thread b { lock one { lock two } }";
    let by = |by: &str| format!("explore by={by} {{ expect {{ survives everything=#true }} }}");
    assert_eq!(differences(&text(threads, &by("exhaustive"))), []);
    let few = "exhaustive schedules=2";
    assert_eq!(differences(&text(threads, &by(few))), [HistoryDifference::NotEverything]);
}

#[test]
fn a_replay_string_is_held_against_the_text() {
    let scenario = parse(&text(CROSSED, "explore { expect { deadlock } }"));
    let explored = scenario.explore_on(Generation::Net10Windows).unwrap();
    let schedule = explored[0].found.failure.as_ref().unwrap().schedule.to_string();
    let expect = |string: &str| {
        text(CROSSED, &format!("explore {{ expect {{ deadlock; replay \"{string}\" }} }}"))
    };
    assert_eq!(differences(&expect(&schedule)), []);
    assert_eq!(differences(&expect("clr1:500b")), [HistoryDifference::Strays]);
    let survives = ExpectedEnd::Survives { everything: false };
    assert_eq!(differences(&expect("clr1:")), [HistoryDifference::Replay(survives)]);
}

#[test]
fn a_watchdog_and_reported_errors() {
    // A timed wait expires when no other thread can go on.
    let threads = "on ThreadCreated { wait done }
        thread dog { wait done micros=10; else { bark } }";
    assert_eq!(differences(&text(threads, "explore { expect { watchdog } }")), []);
    let threads = "thread a { try-lock one { sleep 5 }; else { fail taken } }
        thread b { lock one { sleep 5 } }";
    assert_eq!(differences(&text(threads, "explore { expect { failed } }")), []);
    let threads = "thread a { call EnumThreads returns=E_FAIL }";
    assert_eq!(differences(&text(threads, "explore { expect { failed } }")), []);
    let rule = "explore rules=#true { expect { rule lock-while-suspended } }";
    assert_eq!(differences(&text("thread a { suspend main { lock one } }", rule)), []);
    let survives = ExpectedEnd::Survives { everything: false };
    let expected = ExpectedEnd::Rule(ProfilerRule::LockWhileSuspended);
    let end = HistoryDifference::End { expected, found: survives };
    assert_eq!(differences(&text("thread a { lock one }", rule)), [end]);
}

/// Only schedule strings are blessed, and only those of searches that end as expected.
#[test]
fn the_string_of_a_history_is_written() {
    let right = text(CROSSED, "explore {\n    expect on=net10-windows { deadlock } // kept\n}\n");
    let explored = |text: &str| parse(text).explore_on(Generation::Net10Windows).unwrap();
    let new = bless(&right, Results::Histories(&explored(&right))).unwrap();
    assert!(new.contains("replay \"clr1:") && new.contains("} // kept"), "{new}");
    assert_eq!(differences(&new), []);
    assert_eq!(bless(&new, Results::Histories(&explored(&new))).unwrap(), new);
    // An outdated string is rewritten, unless a generation of the expectation was not searched.
    let (before, rest) = new.split_once("clr1:").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let old = format!("{before}clr1:900b\"{after}");
    assert_eq!(bless(&old, Results::Histories(&explored(&old))).unwrap(), new);
    let wrong = right.replace("deadlock", "survives");
    assert_eq!(bless(&wrong, Results::Histories(&explored(&wrong))).unwrap(), wrong);
    let more = right.replace("on=net10-windows", "on=windows");
    assert_eq!(bless(&more, Results::Histories(&explored(&more))).unwrap(), more);
}

#[test]
fn how_long_ago_an_event_was_set_is_asked() {
    let since = |micros: u32| {
        let threads =
            format!("thread a {{ set done; sleep 100; since done micros={micros} {{ bark }} }}");
        differences(&text(&threads, "explore { expect { watchdog } }"))
    };
    assert_eq!(since(50), []);
    let (expected, found) = (ExpectedEnd::Watchdog, ExpectedEnd::Survives { everything: false });
    assert_eq!(since(500), [HistoryDifference::End { expected, found }]);
    // The time since an event that was never set is not longer than any time.
    let threads = "thread a { sleep 100; since done micros=0 { bark } }";
    assert_eq!(differences(&text(threads, "explore { expect { survives } }")), []);
}

#[test]
fn state_that_remains_when_a_callback_never_returns() {
    // The thread is walked between its first callback and its last.
    let threads = |action: &str| {
        format!(
            "event alive; on ThreadCreated {{ set alive }}; on ThreadDestroyed {{ join a }};
            thread a {{ prepare; wait alive; snapshot main {{ {action} }} }}"
        )
    };
    let ends = |action: &str, expect: &str| {
        let explore = format!("explore {{ expect {{ {expect} }} }}");
        differences(&text(&threads(action), &explore).replace("work 3", "loop 3 { sleep }"))
    };
    assert_eq!(ends("escape", "rule resume-forgotten; hazard H-30"), []);
    assert_eq!(ends("log", "survives"), []);
}

#[test]
fn detached_profilers_get_no_answers() {
    let threads = "thread a { prepare; call GetEventMask returns=S_OK }; thread b { detach }";
    let explore = "explore { expect { failed; hazard H-24 } }";
    assert_eq!(differences(&text(threads, explore)), []);
}

#[test]
fn a_process_ends_with_the_thread_that_it_ends_with() {
    let process = |exits: bool, returns: &str| {
        let text = format!(
            "function App.Main kind=jit {{ body {{ sleep; sleep }} }}
            thread main exits=#{exits}; thread pool
            profiler {{
                lock walk; event gone
                on ThreadDestroyed {{ lock walk {{ set gone }} }}
                thread a {{ prepare; repeat 5 {{ lock walk {{ wait gone micros=0; else {{ snapshot pool }} }} }} }}
            }}
            explore schedules=2000 {{ expect {{ {returns} }} }}"
        );
        differences(&text)
    };
    // Threads that end once the shutdown has begun are not reported, even before the Shutdown
    // callback.
    assert_eq!(process(true, "killed; hazard H-04"), []);
    assert_eq!(process(false, "survives"), []);
}

#[test]
fn a_crash_is_reported_before_the_stack_is_unwound() {
    let crash = |threads: &str| {
        let text = format!(
            "function App.Main kind=jit {{ body {{ raise }} }}
            profiler {{ {threads} }}
            explore {{ expect {{ failed }} }}"
        );
        differences(&text)
    };
    assert_eq!(crash("on-crash { fail seen }"), []);
    let (expected, found) = (ExpectedEnd::Failed, ExpectedEnd::Survives { everything: false });
    assert_eq!(crash("on-crash { log }"), [HistoryDifference::End { expected, found }]);
}

/// Returns the end of the text's search, and the hazard that the failure is reported as.
fn reported(text: &str) -> (ExpectedEnd, Option<Hazard>) {
    let scenario = parse(text);
    let explored = scenario.explore_on(Generation::Net10Windows).unwrap();
    let found = explored[0].found.failure.as_ref();
    let hazard = found.and_then(|failure| Hazard::of(&failure.verdict, &failure.history));
    (ExpectedEnd::of(found.map(|failure| &failure.verdict)), hazard)
}

#[test]
fn similar_histories_are_no_hazard() {
    // Two samplers, each of which waits for a lock held by the thread that the other one has
    // suspended: no thread that suspends others is suspended itself.
    let crosswise = "function \"App.N\" kind=jit { body { name-thread } }
        function \"App.O\" kind=jit { body { new } }
        thread a start=\"App.N\"
        thread b start=\"App.O\"
        profiler {
            lock x y
            event ax by go sa sb
            thread first { prepare; wait ax; wait by; suspend a { set sa; wait sb; lock y } }
            thread second { prepare; wait ax; wait by; suspend b { set sb; wait sa; lock x } }
            on ThreadNameChanged { lock x { set ax; wait go } }
            on ObjectAllocated { lock y { set by; wait go } }
        }
        explore schedules=100 { expect { deadlock } }";
    assert_eq!(reported(crosswise), (ExpectedEnd::Deadlock, Some(Hazard::CallbackTakesLock)));
    // A call is refused because of the detach, which is unrelated to the locks.
    let detached = text(
        "thread a { lock one { sleep 5; lock two } }; thread b { lock two { sleep 5; lock one } }
        thread c { detach; call GetFunctionFromIP }
        on ThreadDestroyed { join a; join b; join c }",
        "explore schedules=100 { expect { deadlock } }",
    );
    let (ends, hazard) = reported(&detached);
    assert_eq!(ends, ExpectedEnd::Deadlock);
    assert_ne!(hazard, Some(Hazard::Detach));
    // The GC ended before the walk.
    let late = "function \"App.Main\" kind=jit { body { collect; new } }
        thread main start=\"App.Main\"
        profiler {
            event walked
            on ObjectAllocated { snapshot own { set walked; sleep 5 } }
            on RuntimeResumeFinished { log }
            on RuntimeSuspendStarted { log }
            thread dog { prepare; wait walked; bark }
        }
        explore schedules=100 { expect { watchdog } }";
    assert_eq!(reported(late), (ExpectedEnd::Watchdog, None));
}

/// H-05 needs a walker that waits for the destroyed thread, and a lock of the profiler.
#[test]
fn a_destruction_is_blocked_by_its_own_walker_alone() {
    let explore = "explore schedules=300 { expect { deadlock } }";
    let ends = |threads: &str| reported(&text(threads, explore));
    let found = |hazard| (ExpectedEnd::Deadlock, hazard);
    let blocked = found(Some(Hazard::BlockedDestruction));
    // The end of the sampler is waited for, or the end of its walk.
    let joined = "thread a { prepare; sleep 5; lock one; snapshot main }
        on ThreadDestroyed { lock one { join a } }";
    assert_eq!(ends(joined), blocked);
    let through = "thread a { prepare; lock two { sleep 5; lock one } }; thread b { join a }
        on ThreadDestroyed { lock one { join b } }";
    assert_eq!(ends(through), blocked);
    // A thread that ends by itself does not hold the lock of the list of threads.
    let listed = "thread a { prepare; lock one { call EnumThreads } }
        on ThreadDestroyed { lock one { set done } }";
    let survives = ExpectedEnd::Survives { everything: false };
    assert_eq!(ends(listed), (survives, None));
    // No walker waits: two threads of the program take two locks in different orders.
    let program = |callbacks: &str| {
        format!(
            "function App.Main kind=jit {{ body {{ new }} }}
            function App.Other kind=jit {{ body {{ work 1 }} }}
            thread main start=App.Main; thread other start=App.Other
            profiler {{ lock one two; {callbacks} }}
            {explore}"
        )
    };
    let crossed = "on ObjectAllocated { lock two { sleep 5; lock one } }
        on ThreadDestroyed { lock one { sleep 5; lock two } }";
    assert_eq!(reported(&program(crossed)), found(None));
    // The same order, but one of them walks in the callback.
    let walks = "on ObjectAllocated { lock two { snapshot own { lock one } } }
        on ThreadDestroyed { lock one { sleep 5; lock two } }";
    assert_eq!(reported(&program(walks)), blocked);
    // Its own walker waits for nothing: the deadlock is of the other threads.
    let others =
        "thread a { lock one { sleep 5; lock two } }; thread b { lock two { sleep 5; lock one } }
        on ThreadDestroyed { join a; join b }";
    assert_eq!(ends(others), found(None));
    // A GC holds the lock of the list of threads, which EnumThreads waits for.
    let in_gc = "function App.Main kind=jit { body { collect } }
        function App.Other kind=jit { body { work 1 } }
        thread main start=App.Main; thread other start=App.Other
        profiler {
            lock one
            on GarbageCollectionStarted { lock one }
            on ThreadDestroyed { lock one { sleep 5; call EnumThreads } }
        }
        explore schedules=300 { expect { deadlock } }";
    assert_eq!(reported(in_gc), found(Some(Hazard::LockOverGcTrigger)));
}

/// The id of a thread is over with ThreadDestroyed, though the thread cannot leave the list of threads while a GC holds
/// its lock (C-149).
#[test]
fn a_thread_that_waits_to_be_removed_is_not_to_be_walked() {
    let waits = "function App.Main kind=jit { body { name-thread; collect } }
        function App.Other kind=jit { body { new } }
        thread main start=App.Main; thread other start=App.Other
        profiler {
            event alive begun gone walked
            on ObjectAllocated { set alive }
            on ThreadNameChanged { wait alive }
            on GarbageCollectionStarted { set begun; wait walked }
            on ThreadDestroyed { wait begun; set gone }
            thread sampler { prepare; wait gone; sleep 50; snapshot other; set walked }
        }
        explore schedules=50 rules=#true { expect { rule walk-outlives-thread; hazard H-04 } }";
    assert_eq!(differences(waits), []);
}

#[test]
fn the_memory_of_a_script_is_shared() {
    // In all interleavings but one, the registers are written at the position where they were read.
    let shared = "function \"App.N\" kind=jit { body { name-thread; name-thread } }
        thread worker start=\"App.N\"
        profiler {
            lock x
            event ready done
            thread reader { lock x; set-context worker }
            thread walker { wait ready; context worker; set done }
            on ThreadNameChanged { set ready; wait done }
        }
        explore by=exhaustive schedules=20000 { expect { failed } }";
    assert_eq!(reported(shared), (ExpectedEnd::Failed, Some(Hazard::TwoHijackers)));
}

#[test]
fn when_an_event_was_set_makes_a_difference() {
    // The threads that have later turns do not access the event.
    let since = "function \"App.Main\" kind=jit { body { work 1 } }
        thread main start=\"App.Main\"
        profiler {
            lock x
            event e
            thread reader { join busy; join setter; since e micros=8 { bark } }
            thread busy { repeat 4 { lock x } }
            thread setter { set e }
        }
        explore by=exhaustive schedules=200000 { expect { watchdog } }";
    assert_eq!(reported(since), (ExpectedEnd::Watchdog, None));
}

#[test]
fn a_jump_leaves_locks_behind_and_others_alone() {
    let jumps = "function \"App.Main\" kind=jit { body { loop 3 { sleep } } }
        thread main start=\"App.Main\"
        profiler {
            lock x y
            event done jumped
            thread sampler {
                prepare
                snapshot main { lock x { set jumped; escape } }
                resume main
            }
            thread other { repeat 30 { lock y }; set done }
            thread watch {
                join other
                wait done micros=0
                else { fail \"other stopped in the middle of its code\" }
            }
            thread late {
                join sampler
                wait jumped micros=0 { try-lock x { fail \"the lock was given back\" } }
            }
            on ThreadDestroyed { join sampler }
        }
        explore schedules=1000 { expect { survives } }";
    assert_eq!(reported(jumps), (ExpectedEnd::Survives { everything: false }, None));
}

/// Minimisation keeps the cycle of waits: with one of three threads less, two would wait for each
/// other, which is another bug.
#[test]
fn a_smaller_text_has_the_same_fingerprint() {
    let ring =
        "thread a { lock one { lock two { log } } }; thread b { lock two { lock three { log } } }
        thread c { lock three { lock one { log } } }; thread d { lock two { lock one { log } } }";
    let text = text(ring, "explore { expect on=net10-windows { deadlock } }");
    let scenario = parse(&text.replace("lock one two;", "lock one two three;"));
    let on = Generation::Net10Windows;
    let (settings, failure) = (0..)
        .find_map(|seed| {
            let settings = Exploration { seed, ..scenario.explore[0].clone() };
            let exploring = Exploring::new(&scenario, on).unwrap();
            let failure = exploring.search(&settings.budget(), |_| true).unwrap().failure?;
            let is_ring = failure.verdict.fingerprint().ends_with("lock 3");
            is_ring.then_some((settings, failure))
        })
        .unwrap();
    let small = scenario.smallest_that_fails(on, &settings, &failure).unwrap();
    assert_eq!(small.profiler.as_ref().unwrap().threads.len(), 3, "{small}");
    let schedule = small.explore[0].expect[0].replay.clone().unwrap();
    let exploring = Exploring::new(&small, on).unwrap();
    let (verdict, _) = exploring.replay(&schedule, &settings.budget()).unwrap().unwrap();
    assert_eq!(verdict.unwrap().fingerprint(), failure.verdict.fingerprint());
}

/// A clause of a search's expectation has to have decided a call in an interleaving, whatever the others do; in one that ends
/// within the call, too. A clause that no decision of a call names is not judged.
#[test]
fn clauses_of_searches_are_judged() {
    let with = |actions: &str, expect: &str| {
        let text = format!(
            "function \"App.Main\" kind=jit {{ body {{ loop 2 {{ new }} }} }}
profiler {{ on ObjectAllocated {{ {actions} }} }}
explore schedules=5 {{ expect {{ {expect} }} }}"
        );
        differences(&text)
    };
    let named = |number| HistoryDifference::Clause(Clause::new(number));
    let walk = "snapshot own";
    assert_eq!(with(walk, "survives; clause C-058"), []);
    assert_eq!(with(walk, "survives; clause C-001 C-058"), []);
    assert_eq!(with(walk, "survives; clause C-001"), [named(1)]);
    assert_eq!(with("log", "survives; clause C-058"), [named(58)]);
    assert_eq!(with("log", "survives; clause C-150"), []);
    assert_eq!(with("snapshot own { fail \"no\" }", "failed; clause C-058"), []);
    assert_eq!(with("fail \"no\"", "failed; clause C-058"), [named(58)]);
}

/// Actions that no callback begins must begin, too, unless the text says that they do not. A search in which no interleaving
/// ends well says that it has judged nothing.
#[test]
fn actions_that_never_began_are_told() {
    let with = |profiler: &str, coverage: &str| {
        let text = format!(
            "function \"App.Main\" kind=jit {{ body {{ loop 2 {{ new }} }} }}
profiler {{ thread sampler {{ log }}; {profiler} }}
{coverage}
explore schedules=20 {{ expect {{ survives }} }}"
        );
        let all = differences(&text).into_iter().map(|difference| difference.to_string());
        all.collect::<Vec<_>>().join("\n")
    };
    for node in ["on-hook", "on-signal", "on-crash"] {
        let found = with(&format!("{node} {{ log }}"), "");
        assert!(found.starts_with(&format!("{node} never came")), "{found}");
        let none = format!("coverage {{ {node} most=0 in=each }}");
        assert_eq!(with(&format!("{node} {{ log }}"), &none), "");
        let found = with("", &format!("coverage {{ {node} }}"));
        assert!(found.contains(&format!("{node} comes 0 to 0 times")), "{found}");
    }
    let scenario = parse("function \"App.Main\" kind=jit { body { new } }\ncoverage { call Log }");
    let nothing = Demands::of(&scenario, Generation::Net10Windows).unmet(&SearchPoints::default());
    let words: Vec<_> = nothing.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["no interleaving ended well, so what the text demands was not judged"]);
}

/// A demand for a runtime on which no search is made is never judged.
#[test]
fn demands_name_runtimes_that_are_searched() {
    let with = |demand: &str, explore: &str| {
        let text = text("", &format!("coverage {{ {demand} }}; {explore}"));
        parse(&text).unchecked()
    };
    let unix = "explore { expect on=unix { survives } }";
    let windows = |generations: Generations| generations.without(Generations::UNIX);
    assert_eq!(with("call Log on=unix", unix), Generations::NONE);
    assert_eq!(with("call Log", unix), Generations::NONE);
    assert_eq!(with("call Log on=windows", ""), Generations::NONE);
    assert_eq!(with("call Log on=windows", unix), windows(Generations::ALL));
    let net8 = with("order ThreadCreated on=\"net8\"", unix);
    assert_eq!(net8, Generations::of(&[Generation::Net8Windows]));
}

/// A thread that never goes on after its first wait is a difference, unless the text says so; and a text that says so of
/// another thread is wrong.
#[test]
fn a_thread_that_is_stuck_at_once_is_said() {
    let unmet = |more: &str, demands: &str, by: &str| {
        let text = format!(
            "function \"App.Main\" kind=jit {{ body {{ work 1 }} }}
profiler {{ event go; thread sampler {{ wait go; log }}; {more} }}
{demands}
explore {by} {{ expect {{ survives }} }}"
        );
        let found = differences(&text).into_iter().map(|difference| match difference {
            HistoryDifference::Coverage(unmet) => (unmet.demand, unmet.to_string()),
            other => panic!("{other}"),
        });
        found.collect::<Vec<_>>()
    };
    let said = "coverage { stuck sampler }";
    let setter = "thread setter { set go }";
    for by in ["schedules=50", "by=exhaustive schedules=500"] {
        let [(None, words)] = &unmet("", "", by)[..] else { panic!("nothing is said") };
        assert!(words.starts_with("sampler never went on after its first wait"), "{words}");
        assert_eq!(unmet("", said, by), []);
        // Another search has the demand, and this one the difference.
        let elsewhere = "coverage { stuck sampler on=net8-windows }";
        let on_both =
            format!("{elsewhere}; explore schedules=1 {{ expect on=net8-windows {{ survives }} }}");
        assert_eq!(unmet("", &on_both, by).len(), 1);
        assert_eq!(unmet(setter, "", by), []);
        let [(Some(0), words)] = &unmet(setter, said, by)[..] else { panic!("all is well") };
        assert!(words.starts_with("sampler does not wait for ever"), "{words}");
        assert_eq!(unmet(setter, "coverage { stuck setter }", by).len(), 1);
    }
}

/// A survival says what it rests on: a callback with actions that never comes is a difference, unless the text says so,
/// and so is a demand on coverage that the interleavings do not fulfil.
#[test]
fn what_never_came_and_demands_are_judged() {
    let unmet = |demands: &str, by: &str| {
        let text = format!(
            "function \"App.Main\" kind=jit {{ body {{ loop 2 {{ new }} }} }}
profiler {{
    thread sampler {{ log }}
    on ObjectAllocated {{ snapshot own; log }}
    on GarbageCollectionStarted {{ log }}
    on ThreadDestroyed {{ log }}
}}
coverage {{ callback ThreadDestroyed; {demands} }}
explore {by} {{ expect {{ survives }} }}"
        );
        let found = differences(&text);
        let unmet = found.into_iter().map(|difference| match difference {
            HistoryDifference::Coverage(unmet) => unmet.demand,
            other => panic!("{other}"),
        });
        unmet.collect::<Vec<_>>()
    };
    let random = "schedules=50";
    assert_eq!(unmet("", random), [None]);
    let none = "callback GarbageCollectionStarted most=0 in=each";
    assert_eq!(unmet(none, random), []);
    for (demand, is_met) in [
        ("callback GarbageCollectionStarted", false),
        ("callback ObjectAllocated least=2 most=2 in=each by=main", true),
        ("callback ObjectAllocated least=3", false),
        ("callback ObjectAllocated most=1", false),
        ("callback ObjectAllocated by=sampler", false),
        ("call DoStackSnapshot returns=S_OK least=2 in=each", true),
        ("call DoStackSnapshot least=4", false),
        ("order ObjectAllocated ObjectAllocated ThreadDestroyed", true),
        ("order ObjectAllocated ThreadDestroyed", false),
        ("order ObjectAllocated ObjectAllocated ObjectAllocated", false),
        ("order ThreadDestroyed ObjectAllocated", false),
    ] {
        for by in [random, "by=exhaustive schedules=200"] {
            let more = if demand.contains("Garbage") { String::new() } else { format!("{none}; ") };
            let found = unmet(&format!("{more}{demand}"), by);
            assert_eq!(found.is_empty(), is_met, "{demand}, {by}: {found:?}");
        }
    }
}
