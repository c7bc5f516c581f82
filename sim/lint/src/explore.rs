//! The paths of a function: each of its instructions is executed and judged.

use crate::execute::{Executor, Next};
use crate::extent::Extents;
use crate::finding::Blame;
use crate::judge::{Answer, Judge, Wrong};
use crate::state::State;
use clr_walker::code_map::CodeRegion;
use clr_walker::registers::{Convention, Gpr, RegisterSet};
use crate::value::Value;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of states that an instruction is executed in.
const STATES: usize = 4;

/// The same for an instruction that is reached by a branch whose direction is known.
const STATES_OF_LOOP: usize = 4096;

/// Maximum number of executed instructions of a function.
const BUDGET: u32 = 200_000;

/// Maximum number of instructions of an epilogue: 15 pops, and some more.
const LONGEST_EPILOGUE: usize = 24;

/// An instruction of the function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Point {
    /// Length in bytes.
    pub(crate) len: u8,
    keys: Vec<u64>,
    /// rsp of the first state.
    rsp: Option<i64>,
    /// True if it was reached with another rsp.
    is_ambiguous: bool,
    /// Number of states in which the answer was right.
    pub(crate) right: u32,
    pub(crate) not_judged: u32,
    pub(crate) wrong: Option<Wrong>,
}

impl Point {
    /// Returns the wrong answer, if every state that got here has one.
    pub(crate) fn finding(&self) -> Option<&Wrong> {
        let certain = self.right == 0 && self.not_judged == 0 && !self.is_ambiguous;
        self.wrong.as_ref().filter(|_| certain)
    }
}

/// The execution of one function.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) points: BTreeMap<u32, Point>,
    /// The RVAs that the function calls directly.
    pub(crate) called: Vec<u32>,
    /// True if it returns, or ends in a tail call.
    pub(crate) returns: bool,
    /// The nonvolatile registers that it does not restore.
    pub(crate) not_restored: RegisterSet,
    /// True if a return did not find the return address, or rsp was loaded with a value from elsewhere:
    /// the function is not what the execution assumes.
    pub(crate) is_strange: bool,
    /// Number of calls that do not return, and of jumps that do not happen: the unwind data describes
    /// another state behind them.
    pub(crate) unfollowed: u32,
    /// Number of jumps to addresses that are not followed, within the function's frame.
    pub(crate) jump_tables: u32,
    /// True if the budget was used up.
    pub(crate) is_cut: bool,
}

/// A path to be followed.
struct Path {
    rva: u32,
    state: State,
    /// True if the direction of the branch that led here was known.
    decided: bool,
    /// True if the path begins in another range of unwind data than the jump to it.
    doubtful: bool,
}

/// Executes functions of a region.
pub(crate) struct Explorer<'m, 'a> {
    region: &'m CodeRegion<'a>,
    extents: &'m Extents<'m, 'a>,
    judge: Judge<'m, 'a>,
    executor: Executor,
    /// RVAs of the tables in code that the function reads.
    tables: BTreeSet<u32>,
}

impl<'m, 'a> Explorer<'m, 'a> {
    pub(crate) fn new(
        region: &'m CodeRegion<'a>,
        extents: &'m Extents<'m, 'a>,
        judge: Judge<'m, 'a>,
    ) -> Self {
        let executor = Executor::new(judge.convention());
        Self { region, extents, judge, executor, tables: BTreeSet::new() }
    }

    const fn convention(&self) -> Convention {
        self.judge.convention()
    }

    /// Returns true if the unwinder's answer is right for a function that is entered at `rva`, up to its
    /// first instruction that is no nop: the cold parts that gcc makes may begin with one.
    pub(crate) fn begins_like_a_function(&self, rva: u32) -> bool {
        let state = State::at_entry(self.convention());
        let bytes = self.region.bytes_from(rva).unwrap_or_default();
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        loop {
            let at = rva.wrapping_add(decoder.position() as u32);
            if self.judge.at(&state, at) != Answer::Right {
                return false;
            }
            if decoder.decode().mnemonic() != Mnemonic::Nop {
                return true;
            }
        }
    }

    /// Executes the function that is entered at `rva`.
    pub(crate) fn explore(&mut self, rva: u32) -> Explored {
        self.tables.clear();
        let explored = self.explore_once(rva);
        // A table that was executed before it was known: a path that does not exist led there.
        let is_hit = |table: &u32| explored.points.range(..=table).next_back().is_some_and(|(rva, point)| {
            rva.wrapping_add(point.len.into()) > *table
        });
        if self.tables.iter().any(is_hit) { self.explore_once(rva) } else { explored }
    }

    fn explore_once(&mut self, rva: u32) -> Explored {
        let mut explored = Explored::default();
        let state = State::at_entry(self.convention());
        let mut paths = vec![Path { rva, state, decided: false, doubtful: false }];
        let mut budget = BUDGET;
        while let Some(path) = paths.pop() {
            self.follow(path, &mut paths, &mut explored, &mut budget);
        }
        explored.is_cut = budget == 0;
        explored
    }

    /// Follows a path to its end, or to an instruction that was executed in the same state before.
    fn follow(
        &mut self,
        path: Path,
        paths: &mut Vec<Path>,
        explored: &mut Explored,
        budget: &mut u32,
    ) {
        let Path { mut rva, mut state, decided, doubtful } = path;
        let Some(bytes) = self.region.bytes_from(rva) else { return };
        let base = self.region.base();
        let address = base.wrapping_add(u64::from(rva));
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut limit = if decided { STATES_OF_LOOP } else { STATES };
        // True behind a call, up to the next instruction with an effect, and behind a jump to another
        // function's range: if the answer is wrong there, control never gets there in this state.
        let mut is_doubtful = doubtful;
        loop {
            if !self.extents.is_executable(rva) || !decoder.can_decode() {
                return;
            }
            let point = explored.points.entry(rva).or_default();
            let key = state.key(self.judge.convention());
            if point.keys.contains(&key) || point.keys.len() >= limit {
                return;
            }
            if *budget == 0 {
                return;
            }
            *budget -= 1;
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                explored.points.remove(&rva);
                return;
            }
            if !self.tables.is_empty()
                && self.tables.range(rva..rva.saturating_add(instruction.len() as u32)).next().is_some()
            {
                explored.points.remove(&rva);
                return;
            }
            self.note_table(&instruction);
            let point = explored.points.entry(rva).or_default();
            let mut answer = self.judge.at(&state, rva);
            if let Answer::Wrong(wrong) = &mut answer
                && wrong.blame == Blame::Data
                && self.region.cfi().is_none()
                && self.is_plain_epilogue(&state, rva)
            {
                wrong.blame = Blame::Walker;
            }
            if is_doubtful && matches!(answer, Answer::Wrong(_)) {
                explored.unfollowed += 1;
                if point.keys.is_empty() {
                    explored.points.remove(&rva);
                }
                return;
            }
            point.len = instruction.len() as u8;
            let rsp = state.rsp();
            if point.keys.is_empty() {
                point.rsp = rsp;
            } else if point.rsp != rsp {
                point.is_ambiguous = true;
            }
            point.keys.push(key);
            match answer {
                Answer::Right => point.right += 1,
                Answer::NotJudged => point.not_judged += 1,
                Answer::Wrong(wrong) => {
                    point.wrong.get_or_insert(wrong);
                }
            }
            let next_rva = rva.wrapping_add(instruction.len() as u32);
            let following = bytes.get(decoder.position()..).unwrap_or_default();
            is_doubtful &= instruction.mnemonic() == Mnemonic::Nop;
            let next = self.executor.execute(&mut state, &instruction, following);
            if !matches!(state.get(Gpr::Rsp), Value::Stack(_) | Value::Unknown) {
                // The stack was switched.
                explored.is_strange = true;
                return;
            }
            let in_image = |target: u64| self.region.rva(target);
            match next {
                Next::Follows => {}
                Next::AfterCall { target } => {
                    is_doubtful = !matches!(answer, Answer::Wrong(_));
                    limit = STATES;
                    explored.called.extend(target.and_then(in_image));
                    if let Answer::Wrong(wrong) = self.judge.at_return_address(&state, next_rva) {
                        let point = explored.points.entry(rva).or_default();
                        match &mut point.wrong {
                            Some(first) => first.at_return_address = true,
                            // Windows' rules differ at calls alone.
                            none => {
                                *none = Some(wrong);
                                point.right = 0;
                            }
                        }
                    }
                }
                Next::Return => {
                    self.leave(&state, explored);
                    return;
                }
                Next::JumpAway => {
                    if state.is_at_return_address() {
                        self.leave(&state, explored);
                    } else {
                        explored.jump_tables += 1;
                    }
                    return;
                }
                Next::End => return,
                Next::Jump(target) => {
                    self.jump(in_image(target), rva, state, true, paths, explored);
                    return;
                }
                Next::Either(target) => {
                    self.jump(in_image(target), rva, state.clone(), false, paths, explored);
                }
            }
            if !self.extents.is_same(rva, next_rva) {
                return;
            }
            rva = next_rva;
        }
    }

    /// Adds the path behind a jump from `from`, unless the jump is a tail call.
    fn jump(
        &self,
        target: Option<u32>,
        from: u32,
        state: State,
        decided: bool,
        paths: &mut Vec<Path>,
        explored: &mut Explored,
    ) {
        let doubtful = !target.is_some_and(|rva| self.extents.is_same(from, rva));
        if doubtful && state.is_at_return_address() {
            self.leave(&state, explored);
            return;
        }
        let Some(rva) = target else { return };
        let has_frame = state.rsp().is_some_and(|rsp| rsp < 0);
        if !doubtful || has_frame && self.extents.has_data(rva) {
            let decided = decided && state.compared.is_some();
            paths.push(Path { rva, state, decided, doubtful });
        }
    }

    /// Notes the table in code that an instruction reads by an index. MSVC puts the tables of `switch`
    /// behind the code of the function, and reads them at RVAs from the image's base.
    fn note_table(&mut self, instruction: &Instruction) {
        let is_indexed = instruction.memory_index() != Register::None
            && instruction.memory_base() != Register::None
            && instruction.op1_kind() == OpKind::Memory;
        if is_indexed
            && self.region.cfi().is_none()
            && let Ok(rva) = u32::try_from(instruction.memory_displacement64())
            && self.extents.is_executable(rva)
        {
            self.tables.insert(rva);
        }
    }

    /// Returns true if the code at `rva` can only be the rest of an epilogue: instructions that move rsp
    /// and pop registers up to a return, or to a jump through a register or memory that leaves the
    /// return address on the top of the stack.
    fn is_plain_epilogue(&mut self, state: &State, rva: u32) -> bool {
        let Some(bytes) = self.region.bytes_from(rva) else { return false };
        let mut state = state.clone();
        let mut instruction = Instruction::default();
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        for _ in 0..LONGEST_EPILOGUE {
            decoder.decode_out(&mut instruction);
            let moves_rsp = instruction.op0_register() == Register::RSP;
            match instruction.mnemonic() {
                Mnemonic::Ret | Mnemonic::Jmp => {
                    let leaves = matches!(
                        self.executor.execute(&mut state, &instruction, &[]),
                        Next::Return | Next::JumpAway
                    );
                    return leaves && state.is_at_return_address();
                }
                Mnemonic::Pop | Mnemonic::Leave | Mnemonic::Nop | Mnemonic::Vzeroupper => {}
                Mnemonic::Add | Mnemonic::Lea if moves_rsp => {}
                _ => return false,
            }
            self.executor.execute(&mut state, &instruction, &[]);
        }
        false
    }

    /// Checks the state at a return or a tail call.
    fn leave(&self, state: &State, explored: &mut Explored) {
        explored.returns = true;
        if !state.is_at_return_address() {
            explored.is_strange |= state.rsp().is_some();
            return;
        }
        let preserved = self.convention().nonvolatile();
        for register in preserved.without(Gpr::Rsp).gprs() {
            if state.get(register) != Value::Caller(register) {
                explored.not_restored = explored.not_restored.with(register);
            }
        }
        for (value, n) in state.xmm.iter().zip(0_u8..) {
            if preserved.contains_xmm(n) && *value != Value::CallerXmm(n) {
                explored.not_restored = explored.not_restored.with_xmm(n);
            }
        }
    }
}
