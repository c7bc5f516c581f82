//! A real processor as the oracle of the machine, `clr_machine`.
//!
//! On Linux x86-64 the same code is stepped on the machine and, under ptrace, on the host's
//! processor, and all state is compared after each instruction:
//!
//! * `live::forms`: each form of instruction that the machine knows, with registers, addresses and
//!   immediates of many kinds, and operands at the edges of their ranges;
//! * `live::sequences`: programs at random, with jumps, loops and calls;
//! * `live::images`: the test functions of the compiled images.
//!
//! Where a process may not be stepped, these say so and end; with the variable `CI_REQUIRE_PTRACE`
//! they fail. `CLR_TEST_CASES` makes them longer (such as 20) or shorter.
//!
//! On every host `recorded` compares the machine with results that a processor gave earlier
//! (`CLR_RECORD=1 cargo test -p clr-tests --test host_cpu record` takes new ones), and `info`
//! compares it with what iced-x86 says of instructions.
//!
//! Not compared: what the manuals leave undefined (`defined`); the exceptions that mxcsr remembers;
//! bits of rflags that are neither arithmetic nor DF. Not tried, though the machine knows them:
//!
//! * `syscall`, `int`, `int3`: they are not for the processor alone to execute;
//! * `iretd`, which goes to 32-bit code;
//! * `movsxd` to 16 bits: AMD's processors read 4 bytes of memory for it, Intel's 2;
//! * selectors other than cs and ss, which depend on the system;
//! * branches to what is no address of 48 bits: processors differ in where the fault is;
//! * bits in memory (`bt` and its like) at a distance that is part of the address too;
//! * `ldmxcsr` of what the machine does not implement, and flags that would change how the process
//!   runs (TF, NT, AC), for `popfq` and `iretq`.

mod check;
mod defined;
mod encodings;
mod info;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod live;
mod random;
mod recorded;
mod samples;
mod state;

/// What the process that is stepped runs, would it be let run: it waits for its parent's end.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn tracee() {
    if std::env::var_os(live::TRACEE).is_some() {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }
}
