//! The every-instruction property: for any program, unwinding at each instruction boundary of its
//! run yields the true frames.

use clr_codegen::execution::Execution;
use clr_codegen::{CallingConvention, CodeKind, Program, UnwindData, WindowsMistake};
use clr_generate::near_valid::Mutation;
use clr_generate::{Seeded, Size, programs};
use clr_scenario::Scenario;
use clr_tests::every_instruction::{self, Checked, Failure, ReferenceUnwinder};
use clr_tests::{cases, mutants};
use clr_unwind::compat::Rules;
use clr_unwind::{CodeMap, CodeRegion, FunctionTable, Unwinder};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of boundaries checked per run, which few programs reach.
const LIMIT: u64 = 20_000;

const UNIX: Size = Size::SMALL.of(CallingConvention::SystemV);

/// A program that is printed as a text.
#[derive(Clone)]
struct Readable(Program);

impl fmt::Debug for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", Scenario::new(self.0.clone()))
    }
}

/// Returns a generator with the same numbers in each run, which depend on `CLR_TEST_SEED` only.
fn random() -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&clr_tests::seed().to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// Runs `check` on N programs. Returns the number of boundaries and frames checked.
fn for_programs(
    count: u32,
    size: Size,
    check: impl Fn(&Program) -> Result<Checked, Failure>,
) -> (u64, u64) {
    let Checked { boundaries, frames, .. } = sum_of_programs(count, size, check);
    (boundaries, frames)
}

/// Does the same, and returns all counts.
fn sum_of_programs(
    count: u32,
    size: Size,
    check: impl Fn(&Program) -> Result<Checked, Failure>,
) -> Checked {
    let config = ProptestConfig {
        cases: cases(count),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let sum = Cell::new(Checked::default());
    let test = |Readable(program): Readable| -> TestCaseResult {
        match check(&program) {
            Ok(checked) => {
                let before = sum.get();
                sum.set(Checked {
                    boundaries: before.boundaries + checked.boundaries,
                    frames: before.frames + checked.frames,
                    misdescribed: before.misdescribed + checked.misdescribed,
                    on_signal_stack: before.on_signal_stack + checked.on_signal_stack,
                    outcome: None,
                });
                Ok(())
            }
            // Only the size of a program's code may prevent linking.
            Err(Failure::Link(error)) if error.is_size() => Ok(()),
            Err(failure) => Err(TestCaseError::fail(failure.to_string())),
        }
    };
    let strategy = programs(size).prop_map(Readable);
    if let Err(error) = TestRunner::new_with_rng(config, random()).run(&strategy, test) {
        panic!("{error}");
    }
    let sum = sum.get();
    println!("{} boundaries, {} frames", sum.boundaries, sum.frames);
    sum
}

fn precise(program: &Program) -> Result<Checked, Failure> {
    every_instruction::precise(program, LIMIT)
}

fn second(program: &Program) -> Result<Checked, Failure> {
    let linked = program.link()?;
    let map = linked.code_map().unwrap();
    let unwinder = ReferenceUnwinder::new(&linked, &map).unwrap();
    every_instruction::walk(program, &linked, &unwinder, LIMIT)
}

#[test]
fn whole_stacks_are_unwound_to_the_shadow_stack() {
    let (boundaries, frames) = for_programs(6000, Size::SMALL, precise);
    assert!(boundaries > 100 * u64::from(cases(6000)), "only {boundaries} boundaries");
    assert!(frames > 2 * boundaries, "only {frames} frames in {boundaries} stacks");
}

#[test]
fn stacks_of_one_or_two_functions_are_unwound_to_the_shadow_stack() {
    for_programs(20_000, Size::TINY, precise);
}

#[test]
fn deep_stacks_are_unwound_to_the_shadow_stack() {
    let (boundaries, frames) = for_programs(60, Size::DEEP, precise);
    assert!(frames > 10 * boundaries, "{frames} frames in {boundaries} stacks are not deep");
}

#[test]
fn the_second_unwinder_agrees_with_the_shadow_stack() {
    for_programs(2000, Size::SMALL, second);
}

/// Returns the program with UNWIND_INFO of version 3 alone.
fn with_version_3(program: &Program) -> Program {
    let mut program = program.clone();
    for function in &mut program.functions {
        if function.shape.unwind != UnwindData::None {
            function.shape.unwind = UnwindData::Version3;
        }
    }
    program
}

#[test]
fn whole_stacks_with_version_3_are_unwound_to_the_shadow_stack() {
    let check = |program: &Program| precise(&with_version_3(program));
    let (boundaries, frames) = for_programs(3000, Size::SMALL, check);
    assert!(boundaries > 100 * u64::from(cases(3000)), "only {boundaries} boundaries");
    assert!(frames > 2 * boundaries, "only {frames} frames in {boundaries} stacks");
    for_programs(6000, Size::TINY, check);
    for_programs(1500, UNIX, check);
}

#[test]
fn the_second_unwinder_agrees_with_the_shadow_stack_on_version_3() {
    for_programs(1000, Size::SMALL, |program| {
        let program = with_version_3(program);
        let linked = program.link()?;
        let map = linked.code_map().unwrap();
        let reference = ReferenceUnwinder::new(&linked, &map).unwrap();
        every_instruction::walk(&program, &linked, &reference, LIMIT)
    });
}

/// Native code in ELF files with CFI, and managed code with UNWIND_INFO, are on the same stack.
#[test]
fn whole_stacks_of_unix_are_unwound_to_the_shadow_stack() {
    let sum = sum_of_programs(6000, UNIX, precise);
    let Checked { boundaries, frames, misdescribed, on_signal_stack, .. } = sum;
    println!("{misdescribed} of the frames misdescribed; {on_signal_stack} on the signal stack");
    assert!(boundaries > 100 * u64::from(cases(6000)), "only {boundaries} boundaries");
    assert!(frames > 2 * boundaries, "only {frames} frames in {boundaries} stacks");
    if cases(6000) >= 6000 {
        assert!(misdescribed * 1000 > frames, "{misdescribed} of {frames} frames misdescribed");
        assert!(on_signal_stack * 50 > boundaries, "{on_signal_stack} on the signal stack");
    }
}

#[test]
fn deep_stacks_of_unix_are_unwound_to_the_shadow_stack() {
    let size = Size::DEEP.of(CallingConvention::SystemV);
    let (boundaries, frames) = for_programs(60, size, precise);
    assert!(frames > 10 * boundaries, "{frames} frames in {boundaries} stacks are not deep");
}

#[test]
fn the_second_reader_of_cfi_agrees_with_the_shadow_stack() {
    let (boundaries, frames) = for_programs(3000, UNIX, second);
    assert!(frames > 2 * boundaries, "only {frames} frames in {boundaries} stacks");
}

#[test]
fn coreclr_is_wrong_exactly_where_windows_is_known_to_be() {
    is_wrong_where_windows_is(Rules::CoreClr);
}

#[test]
fn ntdll_is_wrong_exactly_where_windows_is_known_to_be() {
    is_wrong_where_windows_is(Rules::Ntdll);
}

fn is_wrong_where_windows_is(rules: Rules) {
    let seen = RefCell::new(BTreeSet::new());
    for_programs(6000, Size::SMALL, |program| {
        every_instruction::windows(program, rules, LIMIT, |mistake| {
            seen.borrow_mut().insert(mistake);
        })
    });
    // A slow emulator runs too few programs to meet all mistakes.
    if cases(6000) >= 6000 {
        assert_eq!(seen.take(), WindowsMistake::ALL.into_iter().collect());
    }
}

/// Walks with tables that are damaged in one place may give wrong answers, but must end.
#[test]
fn damaged_tables_end_in_an_answer() {
    const FRAMES: u32 = 100;
    let walks = Cell::new(0_u64);
    let config =
        ProptestConfig { cases: cases(1500), failure_persistence: None, ..Default::default() };
    let strategy = (programs(Size::SMALL).prop_map(Readable), any::<u64>());
    let test = |(Readable(mut program), seed): (Readable, u64)| -> TestCaseResult {
        for function in &mut program.functions {
            function.kind = CodeKind::Jit;
        }
        let Ok(linked) = program.link() else { return Ok(()) };
        let heap = &linked.units[0];
        let (mut bytes, mut table) = (heap.bytes.clone(), heap.runtime_functions.clone());
        let (rva, size) = heap.unwind_data;
        let unwind_data = &mut bytes[rva as usize..][..size as usize];
        if !Mutation::draw(&mut Seeded::new(seed)).apply(&mut table, unwind_data, rva) {
            return Ok(());
        }
        let mut map = CodeMap::new();
        let region = CodeRegion::heap(heap.base, &bytes, FunctionTable::new(&table));
        map.insert(region.unwrap()).unwrap();
        let start = clr_codegen::FunctionIndex(0);
        let mut run = Execution::new(&program, &linked, start, 0).unwrap();
        for _ in 0..500 {
            let registers = run.machine().cpu().registers();
            for rules in [Rules::Precise, Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll] {
                let unwinder = Unwinder::new(&map).with_rules(rules);
                let walk = unwinder.walk(&registers, run.machine()).with_limit(FRAMES);
                let items = walk.count();
                prop_assert!(items <= FRAMES as usize + 1, "{items} frames");
            }
            let frames = mutants::Unwinder::new(&map).walk(&registers, run.machine(), 20);
            prop_assert!(frames.len() <= 20);
            walks.set(walks.get() + 1);
            if run.step().is_err() {
                break;
            }
        }
        Ok(())
    };
    if let Err(error) = TestRunner::new_with_rng(config, random()).run(&strategy, test) {
        panic!("{error}");
    }
    assert!(walks.get() > 50 * u64::from(cases(1500)), "{} walks", walks.get());
}
