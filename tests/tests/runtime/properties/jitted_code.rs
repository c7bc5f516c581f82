//! Jitted code in memory with faults: the reader gives a method that is whole, or an error; never a
//! panic or an endless loop.

#[path = "../../../../walker/tests/it/jitted/recording.rs"]
mod recording;

use clr_tests::cases;
use clr_unwind::Convention;
use clr_walker::jitted::contracts::{CodeAt, ContractDescriptor, ExecutionManager};
use clr_walker::jitted::{CodeHeaderLayout, JittedMethod};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use recording::Recording;

fn config(normal: u32) -> ProptestConfig {
    ProptestConfig {
        cases: cases(normal),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x117 ^ clr_tests::seed()),
        ..ProptestConfig::default()
    }
}

/// A fault: 1, 4 or 8 bytes of a recording overwritten. Small numbers, and copies of other words, are
/// more probable than others.
fn faults() -> impl Strategy<Value = Vec<(Index, Index, u8, u64)>> {
    let word = prop_oneof![any::<u64>(), 0_u64..0x100, Just(u64::MAX)];
    vec((any::<Index>(), any::<Index>(), any::<u8>(), word), 1..8)
}

fn apply(recording: &mut Recording, faults: &[(Index, Index, u8, u64)]) {
    for (run, at, kind, word) in faults {
        let count = recording.runs.len();
        let (_, bytes) = &mut recording.runs[run.index(count)];
        let at = at.index(bytes.len());
        let word = match kind % 4 {
            // The word 8 bytes before: pointers to other structures.
            3 if at >= 16 => u64::from_le_bytes(bytes[at - 16..at - 8].try_into().unwrap()),
            _ => *word,
        };
        let len = [1, 4, 8, 8][usize::from(kind % 4)].min(bytes.len() - at);
        bytes[at..at + len].copy_from_slice(&word.to_le_bytes()[..len]);
    }
}

/// Checks what every method must be, whatever the memory was.
fn is_whole(method: &JittedMethod) -> bool {
    let (code, unwind_data) = (method.code(), method.unwind_data());
    let end = code.rva + code.bytes.len() as u32;
    let mut next = code.rva;
    let adjacent = method.functions().iter().all(|function| {
        let begins = function.begin == next && function.begin < function.end;
        next = function.end;
        let offset = function.unwind_info.wrapping_sub(unwind_data.rva) as usize;
        let info = unwind_data.bytes.get(offset..offset + 8);
        begins && info.is_some_and(|info| info[0] == 0x19)
    });
    let range = method.code_range();
    let placed = range.start == method.base() + u64::from(code.rva);
    adjacent && next == end && placed && method.region(Convention::SystemV).is_ok()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_method_read_from_faulty_memory_is_whole(faults in faults(), which in any::<Index>()) {
        let names =
            ["coreclr-3.1.23-linux", "net-9.0.7-linux", "net-10.0.9-linux", "net-11.0.0-linux"];
        let mut recording = Recording::new(names[which.index(4)]);
        apply(&mut recording, &faults);
        for code in &recording.methods {
            let layout = CodeHeaderLayout::CORE_3_1_TO_10;
            if let Ok(method) = JittedMethod::read(&recording, &layout, code.start, None) {
                prop_assert!(is_whole(&method), "{} {:?}", code.name, method);
            }
        }
    }

    #[test]
    fn code_found_in_faulty_memory_covers_the_address(faults in faults(), which in any::<Index>()) {
        let names = ["net-10.0.9-linux", "net-11.0.0-linux"];
        let mut recording = Recording::new(names[which.index(2)]);
        apply(&mut recording, &faults);
        // Where the descriptor itself has the fault, there is nothing to look up.
        let descriptor = ContractDescriptor::read(&recording, recording.descriptor);
        let manager = descriptor.and_then(|descriptor| ExecutionManager::new(&descriptor));
        if let Ok(manager) = manager {
            let code = which.get(&recording.methods);
            for address in [code.start, code.start + u64::from(code.size) - 1] {
                if let Ok(Some(CodeAt::Method(method))) = manager.find(&recording, address) {
                    prop_assert!(is_whole(&method) && method.code_range().contains(&address));
                }
            }
            prop_assert!(manager.all(&recording).is_err(), "a part of the tree was recorded");
        }
    }

    #[test]
    fn a_descriptor_of_any_text_is_an_answer_or_an_error(
        text in "[\\{\\}\\[\\]:,\"a-z0-9 !-]{0,80}",
        cut in any::<Index>(),
    ) {
        let mut recording = Recording::new("net-9.0.7-linux");
        let address = recording.descriptor;
        let at = cut.index(3000);
        for (start, bytes) in &mut recording.runs {
            // The text is the longest run.
            if bytes.len() > 3000 && !(*start..*start + bytes.len() as u64).contains(&address) {
                bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
            }
        }
        if let Ok(descriptor) = ContractDescriptor::read(&recording, address) {
            prop_assert!(ExecutionManager::new(&descriptor).is_err());
        }
    }
}
