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

/// All tests that exercise clauses which no single call demonstrates.
pub const TESTED: &[Tested] = &[
    Tested {
        clauses: &[23],
        generations: Generations::ALL,
        file: "tests/tests/runtime/gallery/worked_stacks.rs",
        test: "context_flags_of_seeds_play_no_part",
    },
    Tested {
        clauses: &[29],
        generations: Generations::WINDOWS,
        file: "sim/runtime/src/profiling/tests/suspension.rs",
        test: "the_target_is_suspended_and_resumed_with_callbacks_on_the_walker",
    },
    Tested {
        clauses: &[89],
        generations: Generations::ALL,
        file: "tests/tests/runtime/gallery/worked_stacks.rs",
        test: "callbacks_get_the_arguments_of_the_call",
    },
    Tested {
        clauses: &[101],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/code.rs",
        test: "a_frame_info_is_of_its_function_while_its_callback_lasts",
    },
    Tested {
        clauses: &[136],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/code.rs",
        test: "in_the_callbacks_of_a_walk_methods_are_allowed_as_around_it",
    },
    Tested {
        clauses: &[114, 115, 117],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/lookup.rs",
        test: "ips_belong_to_the_function_with_their_code",
    },
    Tested {
        clauses: &[118],
        generations: Generations::CLR_4,
        file: "sim/runtime/src/profiling/tests/lookup.rs",
        test: "ips_belong_to_the_function_with_their_code",
    },
    Tested {
        clauses: &[116],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/lookup.rs",
        test: "a_thread_that_must_not_be_suspended_cannot_ask",
    },
    Tested {
        clauses: &[119, 122, 173],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/calls.rs",
        test: "requirements_on_the_caller_depend_on_the_method",
    },
    Tested {
        clauses: &[120],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/threads.rs",
        test: "threads_of_the_runtime_have_ids",
    },
    Tested {
        clauses: &[121],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/threads.rs",
        test: "ids_lead_to_the_systems_threads",
    },
    Tested {
        clauses: &[123],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/code.rs",
        test: "a_frame_info_is_of_its_function_while_its_callback_lasts",
    },
    Tested {
        clauses: &[124],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/code.rs",
        test: "functions_have_their_numbers",
    },
    Tested {
        clauses: &[125],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/code.rs",
        test: "code_has_one_or_two_pieces",
    },
    Tested {
        clauses: &[126, 127],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/runtime.rs",
        test: "one_suspension_at_a_time",
    },
    Tested {
        clauses: &[174],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/force_gc.rs",
        test: "threads_of_the_runtime_are_refused_in_callbacks_and_with_frames",
    },
    Tested {
        clauses: &[175],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/force_gc.rs",
        test: "a_thread_of_the_profiler_collects_and_becomes_one_of_the_runtime",
    },
    Tested {
        clauses: &[168],
        generations: Generations::ALL,
        file: "sim/runtime/src/profiling/tests/runtime.rs",
        test: "walks_in_these_callbacks_have_these_results",
    },
    Tested {
        clauses: &[137, 138],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/prologues.rs",
        test: "only_executed_operations_are_undone",
    },
    Tested {
        clauses: &[139, 140],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/epilogues.rs",
        test: "an_epilogue_ends_in_a_return_or_a_tail_call",
    },
    Tested {
        clauses: &[141],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/epilogues.rs",
        test: "a_jump_that_leaves_the_function_ends_an_epilogue",
    },
    Tested {
        clauses: &[142],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/epilogues.rs",
        test: "other_lea_is_no_epilogue",
    },
    Tested {
        clauses: &[143],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/chains.rs",
        test: "a_chain_to_itself_is_too_long",
    },
    Tested {
        clauses: &[144],
        generations: Generations::ALL,
        file: "walker/tests/it/win64/prologues.rs",
        test: "a_machine_frame_has_rip_and_rsp",
    },
    Tested {
        clauses: &[147],
        generations: Generations::ALL,
        file: "sim/codegen/src/nibble_map.rs",
        test: "a_start_is_found_from_itself_on",
    },
];

/// All clauses that nothing exercises yet.
pub const HOLES: &[Hole] = &[
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
