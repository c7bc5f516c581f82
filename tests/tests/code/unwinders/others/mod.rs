//! Other unwinders on the stacks of the every-instruction property: they make the listed mistakes
//! ([`Mistake`]), and no others.
//!
//! `UNWINDERS.md` describes the mistakes, with minimal cases that are tested here. For these
//! unwinders, a code heap is a module whose sections are all the heap.

mod code;
mod disagreements;
mod framehop;
mod page;
mod pe_unwind_info;
mod site;
mod tables;

use super::*;
use clr_codegen::execution::Execution;
use clr_codegen::shadow_stack::CallerState;
use clr_codegen::{FunctionIndex, Role, WindowsMistake};
use clr_generate::minimize;
use code::Code;
use disagreements::Mistake;
use framehop::Framehop;
use pe_unwind_info::PeUnwindInfo;
use site::Site;

/// Maximum number of boundaries checked per run.
const LIMIT: u64 = 20_000;

/// The unwinder under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    Framehop,
    PeUnwindInfo,
}

impl Which {
    const ALL: [Self; 2] = [Self::Framehop, Self::PeUnwindInfo];
}

/// The result of an unwinder's step.
struct Answer {
    registers: Registers,
    /// True if the unwinder restores vector registers.
    has_xmm: bool,
}

/// The difference between a step and the truth, in registers that a callee preserves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Difference {
    /// The step failed.
    Failed,
    /// The step yielded other values.
    Registers { rip: bool, gpr: Vec<Gpr>, xmm: Vec<u8> },
}

impl Difference {
    fn new(
        answer: Option<&Answer>,
        caller: &CallerState,
        convention: CallingConvention,
    ) -> Option<Self> {
        let Some(&Answer { ref registers, has_xmm }) = answer else { return Some(Self::Failed) };
        let truth = &caller.registers;
        let kept = match caller.position {
            Position::ReturnAddress => convention.nonvolatile(),
            Position::Interrupted => &Gpr::ALL,
        };
        let differs = |gpr: &Gpr| registers.get(*gpr) != truth.get(*gpr);
        let mut gpr: Vec<_> = kept.iter().copied().filter(differs).collect();
        if differs(&Gpr::Rsp) && !gpr.contains(&Gpr::Rsp) {
            gpr.push(Gpr::Rsp);
        }
        let mut xmm = Vec::new();
        if has_xmm && convention.has_nonvolatile_xmm() {
            let values = registers.xmm.into_iter().zip(truth.xmm);
            xmm.extend((6..).zip(values).filter(|(_, (a, b))| a != b).map(|(number, _)| number));
        }
        let rip = registers.rip != truth.rip;
        (rip || !gpr.is_empty() || !xmm.is_empty()).then_some(Self::Registers { rip, gpr, xmm })
    }

    /// Returns true if rip is correct, and all integer registers that differ satisfy `some`.
    fn only_registers(&self, some: impl Fn(Gpr) -> bool) -> bool {
        match self {
            Self::Failed => true,
            Self::Registers { rip, gpr, .. } => !rip && gpr.iter().all(|gpr| some(*gpr)),
        }
    }
}

/// Counts of a test, and its failure.
#[derive(Debug, Default)]
struct Tested {
    boundaries: u64,
    frames: u64,
    /// Number of frames that each unwinder unwinds wrongly, by mistake.
    mistakes: BTreeMap<(Which, Mistake), u64>,
    /// The first disagreement that is not a listed mistake.
    unlisted: Option<String>,
}

impl Tested {
    /// Tests the unwinders on each frame of the stack at each instruction of a program's run. Each
    /// step starts from the frame's true registers, so that one mistake does not hide the next.
    fn run(&mut self, program: &Program) {
        let linked = program.link().unwrap();
        let all = Code::all(&linked);
        let framehop = Framehop::new(&all);
        let pe_unwind_info = PeUnwindInfo::new(&all);
        let mut run = Execution::new(program, &linked, FunctionIndex(0), 0).unwrap();
        for _ in 0..LIMIT {
            self.boundaries += 1;
            let memory = run.machine();
            let mut frame = memory.cpu().registers();
            let mut position = Position::Interrupted;
            for caller in run.shadow_stack().callers().iter().rev() {
                let call = u64::from(position == Position::ReturnAddress);
                if Code::find(&all, frame.rip.wrapping_sub(call)).is_none() {
                    // The frame is in an ELF image.
                    (frame, position) = (caller.registers, caller.position);
                    continue;
                }
                self.frames += 1;
                let answers = [
                    (Which::Framehop, framehop.step(&frame, position, memory)),
                    (Which::PeUnwindInfo, pe_unwind_info.step(&frame, position, memory)),
                ];
                let rip = frame.rip;
                let pe_unwind_info_fails = answers[1].1.is_none();
                let linked = &linked;
                let site = Site { program, linked, memory, rip, position, pe_unwind_info_fails };
                for (which, answer) in answers {
                    let difference = Difference::new(answer.as_ref(), caller, program.convention);
                    if let Some(difference) = difference {
                        self.add(which, &site, &difference);
                    }
                }
                (frame, position) = (caller.registers, caller.position);
            }
            if run.step().is_err() {
                break;
            }
        }
    }

    fn add(&mut self, which: Which, site: &Site<'_>, difference: &Difference) {
        let mut mistakes = Mistake::ALL.into_iter().filter(|mistake| mistake.is_of(which));
        if let Some(mistake) = mistakes.find(|mistake| mistake.explains(site, difference)) {
            *self.mistakes.entry((which, mistake)).or_default() += 1;
        } else {
            self.unlisted.get_or_insert_with(|| {
                let (rip, position, bytes) = (site.rip, site.position, site.bytes());
                let placed = site.placed();
                format!(
                    "{which:?} at {rip:#x}, {position:?}, {bytes:02x?}: {difference:?}, {placed:?}"
                )
            });
        }
    }
}

/// Tests the unwinders on one program.
fn test(program: &Program) -> Tested {
    let mut tested = Tested::default();
    tested.run(program);
    tested
}

#[test]
fn every_disagreement_is_a_listed_mistake() {
    let mut tested = Tested::default();
    for seed in 0..cases(300) {
        let size = match seed % 8 {
            0 => Size::DEEP,
            1..3 => Size::TINY,
            _ => Size::SMALL,
        };
        let program = program(&mut Seeded::new(seed.into()), &size);
        if program.link().is_err() {
            continue;
        }
        tested.run(&program);
        if let Some(first) = &tested.unlisted {
            let fails =
                |program: &Program| program.link().is_ok() && test(program).unlisted.is_some();
            let small = minimize(program, fails);
            let last = test(&small).unlisted.unwrap();
            panic!("seed {seed}: {first}\n\nminimal:\n{}\n{last}", Scenario::new(small));
        }
    }
    println!("{tested:#?}");
}
