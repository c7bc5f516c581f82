//! Comparison of the machine with the host's processor, step by step.

mod forms;
mod host;
mod images;
mod program;
pub(super) mod record;
mod sequences;

use crate::machine::host_cpu::check::{Complaints, Truth, check, execute, is_known};
use crate::machine::host_cpu::encodings::{Encoding, encodings};
use crate::machine::host_cpu::external::program::{Program, Supply};
use crate::machine::host_cpu::random::Random;
use crate::machine::host_cpu::samples::{background, number, sample};
use crate::machine::host_cpu::state::{
    CODE, CODE_PAGES, CONSTANT, DATA, DATA_PAGES, FLAGS, FS_BASE, GS_BASE, MXCSR, MXCSR_STICKY,
    Outcome, Start, State, WINDOW, WINDOW_LEN, Window, machine, window,
};
use clr_machine::{Machine, PAGE_SIZE};
pub(crate) use host::TRACEE;
use host::{EXECUTE, Host, READ, WRITE};
use iced_x86::{Code, Mnemonic};

/// Returns a process with everything mapped.
///
/// # Panics
/// If the system does not permit that.
fn host() -> Host {
    let start = || {
        let mut host = Host::start()?;
        host.map(CODE, CODE_PAGES, READ | EXECUTE)?;
        host.map(DATA, DATA_PAGES, READ | WRITE)?;
        host.map(CONSTANT, 1, READ)?;
        Ok::<_, std::io::Error>(host)
    };
    start().expect("a process that can be stepped")
}

/// Returns true if the host's processor supports the instruction.
fn is_supported(code: iced_x86::Code) -> bool {
    use iced_x86::CpuidFeature;
    code.cpuid_features().iter().all(|feature| match feature {
        CpuidFeature::BMI1 => is_x86_feature_detected!("bmi1"),
        CpuidFeature::BMI2 => is_x86_feature_detected!("bmi2"),
        CpuidFeature::LZCNT => is_x86_feature_detected!("lzcnt"),
        CpuidFeature::POPCNT => is_x86_feature_detected!("popcnt"),
        CpuidFeature::AVX => is_x86_feature_detected!("avx"),
        CpuidFeature::FMA => is_x86_feature_detected!("fma"),
        CpuidFeature::SSE3 => is_x86_feature_detected!("sse3"),
        CpuidFeature::SSE4_1 => is_x86_feature_detected!("sse4.1"),
        CpuidFeature::CMPXCHG16B => is_x86_feature_detected!("cmpxchg16b"),
        // Features of every 64-bit processor.
        _ => true,
    })
}
