//! The book: tasks, each of which can be done alone, and reference to look things up in.
//!
//! # First steps
//!
//! In this order.
//!
//! 1. [What a snapshot is](a_snapshot)
//! 2. [Your first fixture](your_first_fixture)
//! 3. [Why was my seed refused?](why_was_my_seed_refused)
//! 4. [The matrix](the_matrix)
//! 5. [The tool](the_tool): the commands by example
//! 6. [The playground](the_playground): the tool in a page, and links that hold a text
//!
//! # A profiler in C++
//!
//! * [I have a C++ profiler](a_cpp_profiler)
//! * [Traces: your profiler in both worlds](traces)
//! * [The callbacks of `libclrsim`](the_callbacks)
//! * [The CLR's own profiler tests](the_tests_of_the_clr): which pass here
//!
//! # A profiler in Rust
//!
//! * [Write a sampler that does not hang](a_sampler)
//! * [In the process: registers, stacks, images](in_the_process)
//! * [Your profiler's locks in a Rust test](locks_in_a_test)
//! * [Jitted code](jitted_code)
//! * [The recorder: your walks, checked in a real CLR](the_recorder)
//!
//! # An unwinder
//!
//! * [Your walker against all fixtures](your_walker)
//! * [Unwinding a Windows x64 thread](unwinding)
//! * [Is the unwind data of your image right?](unwind_data)
//! * [The speed of the unwinder](speed)
//!
//! # Trouble in the field
//!
//! * [My customer's process hangs](a_hang): from a dump to a text that hangs in the same way
//! * [From a customer's process to a red test](from_a_customer)
//! * [From a field bug to a fixture](from_a_field_bug)
//!
//! # Reference
//!
//! * [The grammar](clr_scenario)
//! * [The contract](contract): the rules of the CLR, by section
//! * [The clauses](the_clauses)
//! * [The evidence](the_evidence): what supports each clause on each runtime
//! * [Errors](errors): the codes of the tool's errors
//! * [What .NET 11 changes for a profiler](net_11)
//! * [What is stable](stability): versions, and what they promise
//!
//! The tests run every text of the book on every generation and check the results that it states.

pub mod contract;
pub mod references;

/// Declares one module for each chapter. The modules contain no code.
macro_rules! chapters {
    ($($name:ident $file:literal,)*) => {
        $(
            #[doc = include_str!($file)]
            pub mod $name {}
        )*
    };
}

chapters! {
    a_snapshot "snapshot.md",
    your_first_fixture "first_fixture.md",
    why_was_my_seed_refused "seeds.md",
    the_matrix "matrix.md",
    from_a_field_bug "field_bug.md",
    your_walker "your_walker.md",
    a_sampler "sampler.md",
    in_the_process "in_process.md",
    locks_in_a_test "locks.md",
    the_tool "tool.md",
    the_playground "playground.md",
    unwinding "unwinding.md",
    jitted_code "jitted_code.md",
    the_recorder "recorder.md",
    from_a_customer "customer.md",
    a_cpp_profiler "cpp_profiler.md",
    the_callbacks "callbacks.md",
    speed "speed.md",
    unwind_data "lint.md",
    the_clauses "clauses.md",
    the_evidence "evidence.md",
    errors "errors.md",
    stability "stability.md",
    net_11 "net11.md",
    traces "traces.md",
    the_tests_of_the_clr "clr_suite.md",
    a_hang "hang.md",
}
