//! Comparison of every form of instruction that the machine knows with the host, with operands at
//! their edges.

use super::*;
use crate::machine::host_cpu::external::host::Host;

/// Executes one instruction, which is in the host's memory, on the host.
pub(super) fn execute(host: &mut Host, encoding: &Encoding, start: &Start) -> Truth {
    host.set(&start.state);
    host.write(WINDOW, &start.window);
    let outcome = host.step();
    if outcome == Outcome::Done && encoding.instruction.mnemonic() == Mnemonic::Pushfq {
        host.hide_trap_flag();
    }
    let state = host.state();
    let mut window = [0; WINDOW_LEN];
    host.read(WINDOW, &mut window);
    Truth { outcome, state, window }
}

/// Returns the seed of a sample of an encoding.
pub(super) fn seed(code: Code, encoding: usize, sample: u32) -> u32 {
    (code as u32) << 18 ^ (encoding as u32) << 11 ^ sample
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    forms: u32,
    /// Forms that are valid in 64-bit mode and could be encoded, but that the machine does not
    /// know.
    unknown: u32,
    /// Forms that the host does not support.
    missing: u32,
    encodings: u32,
    instructions: u64,
    /// Number of instructions that faulted.
    faults: u64,
}

#[test]
#[ignore = "external: steps a process by ptrace"]
fn every_form_does_as_on_the_host() {
    let mut host = host();
    let mut machine = machine();
    let mut counts = Counts::default();
    let mut complaints = Complaints::default();
    for code in Code::values() {
        let built = encodings(code);
        let mut known = false;
        for (n, encoding) in built.iter().enumerate() {
            if !is_known(&mut machine, encoding, &sample(encoding, 0)) {
                continue;
            }
            known = true;
            if !is_supported(code) {
                counts.missing += 1;
                break;
            }
            counts.encodings += 1;
            host.write(encoding.at, &encoding.bytes);
            for k in 0..clr_tests::cases(if n == 0 { 40 } else { 12 }) {
                let start = sample(encoding, seed(code, n, k).into());
                let truth = execute(&mut host, encoding, &start);
                counts.instructions += 1;
                counts.faults += u64::from(truth.outcome != Outcome::Done);
                complaints.add(check(&mut machine, encoding, &start, &truth));
            }
        }
        counts.forms += u32::from(known);
        counts.unknown += u32::from(!known && !built.is_empty());
    }
    println!("{counts:?}");
    complaints.settle();
    // No write has missed the window.
    let mut data = vec![0; (DATA_PAGES * PAGE_SIZE) as usize];
    host.read(DATA, &mut data);
    data[(WINDOW - DATA) as usize..][..WINDOW_LEN].fill(0);
    assert!(data.iter().all(|byte| *byte == 0));
    assert!(counts.forms > 1000, "{counts:?}");
}
