//! Clauses that tests exercise, and clauses that nothing exercises yet.

use clr_runtime::generation::Generations;

/// A test that exercises clauses which no single call demonstrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The clauses, by number.
    pub clauses: &'static [u16],
    /// Generations on which the test exercises them.
    pub generations: Generations,
    /// Path of the test's file, from the root of the repository.
    pub file: &'static str,
    /// Name of the test function.
    pub test: &'static str,
}

/// Clauses that nothing exercises, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The clauses, by number.
    pub clauses: &'static [u16],
    /// Generations on which the clauses are not exercised.
    pub generations: Generations,
    /// Reason why nothing exercises the clauses.
    pub reason: &'static str,
}

const WORKED_STACKS: &str = "tests/tests/runtime/gallery/worked_stacks.rs";
const SUSPENSION: &str = "sim/runtime/src/profiling/tests/suspension.rs";
const CODE: &str = "sim/runtime/src/profiling/tests/code.rs";
const LOOKUP: &str = "sim/runtime/src/profiling/tests/lookup.rs";
const CALLS: &str = "sim/runtime/src/profiling/tests/calls.rs";
const THREADS: &str = "sim/runtime/src/profiling/tests/threads.rs";
const RUNTIME: &str = "sim/runtime/src/profiling/tests/runtime.rs";
const SEQUENCES: &str = "tests/tests/runtime/sequences.rs";
const FORCE_GC: &str = "sim/runtime/src/profiling/tests/force_gc.rs";
const PROLOGUES: &str = "walker/unwind/tests/it/win64/prologues.rs";
const EPILOGUES: &str = "walker/unwind/tests/it/win64/epilogues.rs";
const CHAINS: &str = "walker/unwind/tests/it/win64/chains.rs";
const NIBBLE_MAP: &str = "sim/codegen/src/nibble_map.rs";

const fn tested(
    clauses: &'static [u16],
    generations: Generations,
    file: &'static str,
    test: &'static str,
) -> Tested {
    Tested { clauses, generations, file, test }
}

/// All tests that exercise clauses which no single call demonstrates.
pub const TESTED: &[Tested] = &[
    tested(&[23], Generations::ALL, WORKED_STACKS, "context_flags_of_seeds_play_no_part"),
    tested(
        &[29],
        Generations::WINDOWS,
        SUSPENSION,
        "the_target_is_suspended_and_resumed_with_callbacks_on_the_walker",
    ),
    tested(&[89], Generations::ALL, WORKED_STACKS, "callbacks_get_the_arguments_of_the_call"),
    tested(
        &[101],
        Generations::ALL,
        CODE,
        "a_frame_info_is_of_its_function_while_its_callback_lasts",
    ),
    tested(
        &[136],
        Generations::ALL,
        CODE,
        "in_the_callbacks_of_a_walk_methods_are_allowed_as_around_it",
    ),
    tested(
        &[114, 115, 117],
        Generations::ALL,
        LOOKUP,
        "ips_belong_to_the_function_with_their_code",
    ),
    tested(&[118], Generations::CLR_4, LOOKUP, "ips_belong_to_the_function_with_their_code"),
    tested(&[116], Generations::ALL, LOOKUP, "a_thread_that_must_not_be_suspended_cannot_ask"),
    tested(
        &[119, 122, 173],
        Generations::ALL,
        CALLS,
        "requirements_on_the_caller_depend_on_the_method",
    ),
    tested(&[120], Generations::ALL, THREADS, "threads_of_the_runtime_have_ids"),
    tested(&[121], Generations::ALL, THREADS, "ids_lead_to_the_systems_threads"),
    tested(
        &[123],
        Generations::ALL,
        CODE,
        "a_frame_info_is_of_its_function_while_its_callback_lasts",
    ),
    tested(&[124], Generations::ALL, CODE, "functions_have_their_numbers"),
    tested(&[125], Generations::ALL, CODE, "code_has_one_or_two_pieces"),
    tested(&[126, 127], Generations::ALL, RUNTIME, "one_suspension_at_a_time"),
    tested(
        &[174],
        Generations::ALL,
        FORCE_GC,
        "threads_of_the_runtime_are_refused_in_callbacks_and_with_frames",
    ),
    tested(
        &[175],
        Generations::ALL,
        FORCE_GC,
        "a_thread_of_the_profiler_collects_and_becomes_one_of_the_runtime",
    ),
    tested(
        &[176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190],
        Generations::UNIX,
        SEQUENCES,
        "sequences_come_out",
    ),
    tested(
        &[181, 183, 188, 189],
        Generations::NEW.both(Generations::WINDOWS),
        SEQUENCES,
        "sequences_come_out",
    ),
    tested(&[168], Generations::ALL, RUNTIME, "walks_in_these_callbacks_have_these_results"),
    tested(&[137, 138], Generations::ALL, PROLOGUES, "only_executed_operations_are_undone"),
    tested(&[139, 140], Generations::ALL, EPILOGUES, "an_epilogue_ends_in_a_return_or_a_tail_call"),
    tested(&[141], Generations::ALL, EPILOGUES, "a_jump_that_leaves_the_function_ends_an_epilogue"),
    tested(&[142], Generations::ALL, EPILOGUES, "other_lea_is_no_epilogue"),
    tested(&[143], Generations::ALL, CHAINS, "a_chain_to_itself_is_too_long"),
    tested(&[144], Generations::ALL, PROLOGUES, "a_machine_frame_has_rip_and_rsp"),
    tested(&[147], Generations::ALL, NIBBLE_MAP, "a_start_is_found_from_itself_on"),
];

/// All clauses that nothing exercises yet.
pub const HOLES: &[Hole] = &[
    Hole {
        clauses: &[176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189],
        generations: Generations::WINDOWS,
        reason: "No such sequence of callbacks was recorded on this runtime.",
    },
    Hole {
        clauses: &[68],
        generations: Generations::ALL,
        reason: "An inlined method has no frame, so no stack shows that it was there.",
    },
    Hole {
        clauses: &[75],
        generations: Generations::UNIX,
        reason: "On Unix a call suspends no thread.",
    },
    Hole {
        clauses: &[30, 148, 149, 150, 151, 152, 157],
        generations: Generations::ALL,
        reason: "Needs schedules of several threads.",
    },
    Hole {
        clauses: &[155],
        generations: Generations::ALL,
        reason: "Memory before a code heap is not simulated.",
    },
];
