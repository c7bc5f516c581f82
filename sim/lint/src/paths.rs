//! The paths of a function: each of its instructions is executed and judged.

use crate::execute::{Executor, Next};
use crate::extent::Extents;
use crate::finding::{Blame, Cause};
use crate::judge::{Answer, Judge};
use crate::layout::Layout;
use crate::point::{Explored, Point};
use crate::state::{State, Table};
use crate::steps::Steps;
use crate::value::{Shown, Value};
use clr_unwind::{CodeRegion, Convention, Gpr, Trust};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// Maximum number of states that an instruction is executed in.
const STATES: usize = 4;

/// The same for an instruction that is reached by a branch whose direction is known.
const STATES_OF_LOOP: usize = 4096;

/// The same where states are told apart by all that may lead to a frame.
const STATES_OF_CAREFUL: usize = 32;

/// Maximum number of executed instructions of a function.
const BUDGET: u32 = 200_000;

/// Maximum number of instructions of an epilogue: 15 pops, and some more.
const LONGEST_EPILOGUE: usize = 24;

/// Maximum number of entries of a jump table.
const TABLE: u64 = 4096;

/// A path to be followed.
struct Path {
    rva: u32,
    state: State,
    /// Maximum number of states of its instructions.
    limit: usize,
    /// True if control may never reach this path: after a call that may not return, up to the next instruction with
    /// an effect, and after a guessed jump table or a jump to another range of unwind data. A wrong answer here is
    /// not reported.
    is_doubtful: bool,
    /// True if the answer at the call was wrong, so that wrong answers after it say nothing of whether it
    /// returns.
    is_wrong: bool,
    /// RVA of the instruction before.
    before: Option<u32>,
}

/// Executes functions of a region.
pub(crate) struct Paths<'m, 'a> {
    region: &'m CodeRegion<'a>,
    extents: Extents<'m, 'a>,
    layout: &'m Layout<'a>,
    /// RVAs that other functions call, ascending; none if they are not known yet.
    called: &'m [u32],
    judge: Judge<'m, 'a>,
    executor: Executor,
    /// RVAs of the tables in code that the function reads.
    tables: BTreeSet<u32>,
    /// Paths that are not followed yet.
    left: Vec<Path>,
    /// The steps of accused functions.
    steps: Steps,
    explored: Explored,
    /// RVA at which the function is entered.
    entry: u32,
    budget: u32,
    /// True if states are told apart by all that may lead to a frame.
    is_careful: bool,
    /// True if it is noted which instructions lead to a return.
    notes_steps: bool,
}

impl<'m, 'a> Paths<'m, 'a> {
    pub(crate) fn new(
        region: &'m CodeRegion<'a>,
        extents: Extents<'m, 'a>,
        layout: &'m Layout<'a>,
        judge: Judge<'m, 'a>,
    ) -> Self {
        Self {
            region,
            extents,
            layout,
            called: &[],
            executor: Executor::new(judge.convention()),
            judge,
            tables: BTreeSet::new(),
            left: Vec::new(),
            steps: Steps::default(),
            explored: Explored::default(),
            entry: 0,
            budget: 0,
            is_careful: false,
            notes_steps: false,
        }
    }

    /// Returns the executor for functions that were accused, with knowledge of what is called. Where a
    /// function is accused still it tells states apart by all that may lead to a frame, which takes more time,
    /// so that none is accused at an instruction whose answer is right on another path.
    pub(crate) fn with_called(self, called: &'m [u32]) -> Self {
        Self { called, notes_steps: true, ..self }
    }

    /// Returns true if another function than the one that leads from `from` to `rva` starts there. In the range
    /// of a function, what looks like a start is another way to enter it.
    fn is_other_start(&self, from: u32, rva: u32) -> bool {
        (self.layout.is_start(rva) || self.called.binary_search(&rva).is_ok())
            && !self.extents.is_one_function(from, rva)
    }

    const fn convention(&self) -> Convention {
        self.judge.convention()
    }

    /// Returns true if the unwinder's answer is right for a function that is entered at `rva`, up to its
    /// first instruction that is no nop: the cold parts that gcc makes may begin with one. Data that is
    /// refused has no answer.
    pub(crate) fn begins_like_a_function(&self, rva: u32) -> bool {
        let state = State::at_entry(self.convention());
        let bytes = self.region.bytes_from(rva).unwrap_or_default();
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        loop {
            let at = rva.wrapping_add(decoder.position() as u32);
            match self.judge.at(&state, at) {
                Answer::Right => {}
                Answer::Wrong(wrong) if wrong.cause == Cause::Refused => return true,
                _ => return false,
            }
            if decoder.decode().mnemonic() != Mnemonic::Nop {
                return true;
            }
        }
    }

    /// Executes the function that is entered at `rva`.
    pub(crate) fn explore(&mut self, rva: u32) -> Explored {
        self.tables.clear();
        self.judge.set_language(self.layout.language(rva));
        self.is_careful = false;
        let mut explored = self.explore_once(rva);
        // Code without data is accused whatever its states are.
        let is_open = |point: &Point| point.finding().is_some_and(|it| it.cause != Cause::NoData);
        if self.notes_steps && explored.points.values().any(is_open) {
            self.is_careful = true;
            let careful = self.explore_once(rva);
            for (rva, point) in &mut explored.points {
                if careful.points.get(rva).is_some_and(|it| it.right > 0) {
                    point.judge(Answer::Right);
                }
            }
            explored.returning.extend(careful.returning);
        }
        // A table that was executed before it was known: a path that does not exist led there.
        let end = |rva: u32, point: &Point| rva.wrapping_add(point.len.into());
        let is_hit = |table: &u32| {
            let before = explored.points.range(..=table).next_back();
            before.is_some_and(|(rva, point)| end(*rva, point) > *table)
        };
        if self.tables.iter().any(is_hit) { self.explore_once(rva) } else { explored }
    }

    fn explore_once(&mut self, rva: u32) -> Explored {
        let state = State::at_entry(self.convention());
        (self.entry, self.budget) = (rva, BUDGET);
        self.left.push(Path {
            rva,
            state,
            limit: STATES,
            is_doubtful: false,
            is_wrong: false,
            before: None,
        });
        while let Some(path) = self.left.pop() {
            self.follow(path);
        }
        self.explored.is_cut = self.budget == 0;
        self.explored.returning = self.steps.take_returning();
        core::mem::take(&mut self.explored)
    }

    /// Follows a path to its end, or to an instruction that was executed in the same state before.
    fn follow(&mut self, mut path: Path) {
        let Some(bytes) = self.region.bytes_from(path.rva) else { return };
        let address = self.region.base().wrapping_add(u64::from(path.rva));
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let described = self.extents.of(path.rva).unwrap_or_default();
        while self.extents.is_executable(path.rva) && decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let rva = path.rva;
            path.rva = rva.wrapping_add(instruction.len() as u32);
            let before = path.before.replace(rva);
            if self.notes_steps {
                self.steps.note(before, rva);
            }
            if self.tables.range(rva..path.rva).next().is_some() {
                return;
            }
            let Some(answer) = self.enter(rva, &instruction, &path) else { return };
            path.is_doubtful &= instruction.mnemonic() == Mnemonic::Nop;
            let following = bytes.get(decoder.position()..).unwrap_or_default();
            let next = self.executor.execute(&mut path.state, &instruction, following);
            if !matches!(path.state.get(Gpr::Rsp), Value::Stack(_) | Value::Unknown) {
                // The stack was switched.
                self.explored.is_strange = true;
                return;
            }
            let is_described = described.contains(&rva) && described.contains(&path.rva);
            if !self.go_on(rva, next, answer, &mut path) {
                return;
            }
            // Entries of compact unwind information cover more than one function, and code without data is
            // not divided at all.
            if path.is_doubtful && self.is_other_start(rva, path.rva) {
                self.explored.unfollowed += 1;
                return;
            }
            if !is_described && !self.extents.is_same(rva, path.rva) {
                return;
            }
        }
    }

    /// Judges the answer at an instruction, if it was not executed in this state before and its path is
    /// a possible one.
    fn enter(&mut self, rva: u32, instruction: &Instruction, path: &Path) -> Option<Answer> {
        let (key, limit) = if self.is_careful {
            (path.state.whole_key(), path.limit.max(STATES_OF_CAREFUL))
        } else {
            (path.state.key(self.judge.convention()), path.limit)
        };
        let known = self.explored.points.get(&rva);
        // Two zeroes are padding, and no add to [rax] that a compiler would make.
        if self.region.bytes_from(rva).is_some_and(|code| code.starts_with(&[0, 0])) {
            return None;
        }
        if instruction.is_invalid() {
            self.explored.undecoded += u32::from(!path.is_doubtful);
            return None;
        }
        if self.budget == 0 || !known.is_none_or(|point| point.is_new(key, limit)) {
            return None;
        }
        self.budget -= 1;
        self.note_table(rva, instruction);
        let mut answer = self.judge.at(&path.state, rva);
        if let Answer::Wrong(wrong) = &mut answer {
            if path.is_doubtful && !path.is_wrong {
                self.explored.unfollowed += 1;
                return None;
            }
            if path.is_doubtful && instruction.mnemonic() == Mnemonic::Nop {
                // Padding after a call that does not return, perhaps.
                return Some(Answer::NotJudged);
            }
            // Where the data describes the epilogue, the data is wrong.
            if wrong.blame == Blame::Data
                && wrong.found.trust != Some(Trust::EpilogueCodes)
                && self.region.cfi().is_none()
                && self.is_plain_epilogue(&path.state, rva, wrong.found.got)
            {
                wrong.blame = Blame::Walker;
            }
            if wrong.blame == Blame::Walker && self.leaves_to_wrong_data(&path.state, rva) {
                wrong.blame = Blame::Data;
            }
        }
        let point = self.explored.points.entry(rva).or_default();
        point.len = instruction.len() as u8;
        point.add(&path.state, key);
        point.judge(answer);
        Some(answer)
    }

    /// Adds the paths to the targets of the instruction at `rva`. Returns true if `path` goes on behind it.
    fn go_on(&mut self, rva: u32, next: Next, answer: Answer, path: &mut Path) -> bool {
        match next {
            Next::Follows => true,
            Next::AfterCall { target } => {
                (path.is_doubtful, path.is_wrong) = (true, matches!(answer, Answer::Wrong(_)));
                path.limit = STATES;
                let target = target.and_then(|target| self.region.rva(target));
                self.explored.called.extend(target);
                let answer = self.judge.at_return_address(&path.state, path.rva);
                if let (Answer::Wrong(wrong), Some(point)) =
                    (answer, self.explored.points.get_mut(&rva))
                {
                    point.judge_return_address(wrong);
                }
                true
            }
            Next::Return => {
                self.leave(rva, &path.state);
                false
            }
            Next::JumpAway => {
                self.jump_by_table(rva, &path.state);
                false
            }
            Next::End => false,
            Next::Jump(target) => {
                let is_decided = path.state.compared.is_some();
                let limit = if is_decided { STATES_OF_LOOP } else { STATES };
                self.jump(target, rva, path.state.clone(), limit);
                false
            }
            Next::Either(target) => {
                self.jump(target, rva, path.state.clone(), STATES);
                true
            }
        }
    }

    /// Adds the path behind a jump from `from` to `target` (VA), unless the jump is a tail call.
    fn jump(&mut self, target: u64, from: u32, state: State, limit: usize) {
        let target = self.region.rva(target);
        let is_same = |rva| self.extents.is_same(from, rva);
        let is_tail_call = |rva| {
            state.is_at_return_address() && rva != self.entry && self.is_other_start(from, rva)
        };
        let is_inside = target.is_some_and(|rva| is_same(rva) && !is_tail_call(rva));
        if !is_inside && state.is_at_return_address() {
            return self.leave(from, &state);
        }
        let Some(rva) = target else { return };
        let has_frame = state.rsp().is_some_and(|rsp| rsp < 0);
        if is_inside || has_frame && self.extents.has_data(rva) {
            let (is_doubtful, before) = (!is_inside, Some(from));
            self.left.push(Path { rva, state, limit, is_doubtful, is_wrong: false, before });
        }
    }

    /// Adds the paths behind a jump by a table of targets in the same function.
    fn jump_by_table(&mut self, from: u32, state: &State) {
        let targets = state.table.map(|table| self.targets(from, table)).unwrap_or_default();
        for rva in &targets {
            let mut state = state.clone();
            (state.table, state.bound) = (None, None);
            let (rva, limit, before) = (*rva, STATES, Some(from));
            self.left.push(Path { rva, state, limit, is_doubtful: true, is_wrong: false, before });
        }
        if targets.is_empty() {
            if state.is_at_return_address() {
                self.leave(from, state);
            } else {
                self.explored.unknown_jumps += 1;
            }
        }
    }

    /// Returns the targets in a table: none, if any is not in the same function.
    fn targets(&self, from: u32, table: Table) -> BTreeSet<u32> {
        let bytes = self.region.rva(table.at).and_then(|rva| self.region.bytes_from(rva));
        let bytes = bytes.unwrap_or_default();
        let count = usize::try_from(table.count.min(TABLE)).unwrap_or_default();
        let targets: Option<BTreeSet<u32>> = if let Some(base) = table.base {
            let entries = bytes.as_chunks::<4>().0.iter().take(count);
            let distances = entries.map(|entry| i64::from(i32::from_le_bytes(*entry)));
            let targets = distances.map(|distance| base.wrapping_add_signed(distance));
            targets.map(|target| self.inside(from, target)).collect()
        } else {
            let entries = bytes.as_chunks::<8>().0.iter().take(count);
            entries.map(|entry| self.inside(from, u64::from_le_bytes(*entry))).collect()
        };
        targets.unwrap_or_default()
    }

    /// Returns the RVA of `target` (VA), if it is in the same function as `from`.
    fn inside(&self, from: u32, target: u64) -> Option<u32> {
        let rva = self.region.rva(target)?;
        (self.extents.has_data(rva) && self.extents.is_same(from, rva)).then_some(rva)
    }

    /// Notes the table in code that an instruction reads by an index. MSVC puts the tables of `switch`
    /// behind the code of the function, and reads them at RVAs from the image's base.
    fn note_table(&mut self, at: u32, instruction: &Instruction) {
        let is_indexed = instruction.mnemonic() != Mnemonic::Lea
            && instruction.memory_index() != Register::None
            && instruction.memory_base() != Register::None
            && instruction.op1_kind() == OpKind::Memory;
        if is_indexed
            && self.region.cfi().is_none()
            && let Ok(rva) = u32::try_from(instruction.memory_displacement64())
            && rva > at
            && self.extents.is_executable(rva)
        {
            self.tables.insert(rva);
        }
    }

    /// Returns true if the code at `rva` can only be the rest of an epilogue: instructions that move rsp
    /// and pop registers up to a return, or to a jump through a register or memory that leaves the
    /// return address on the top of the stack. The unwinder's answer at `rva` is `got`.
    fn is_plain_epilogue(&mut self, state: &State, rva: u32, got: Shown) -> bool {
        // A register that an epilogue restores before it releases the stack is restored by a move.
        let is_moved = matches!(got, Shown::Beyond(..));
        let Some(bytes) = self.region.bytes_from(rva) else { return false };
        let mut state = state.clone();
        let mut instruction = Instruction::default();
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        for n in 0..LONGEST_EPILOGUE {
            decoder.decode_out(&mut instruction);
            let moves_rsp = instruction.op0_register() == Register::RSP;
            match instruction.mnemonic() {
                // Without pops before it, a jump ends an epilogue only in the forms that Windows documents.
                Mnemonic::Jmp if n == 0 && !is_marked_tail_jump(bytes) => return false,
                Mnemonic::Ret | Mnemonic::Jmp => {
                    let leaves = matches!(
                        self.executor.execute(&mut state, &instruction, &[]),
                        Next::Return | Next::JumpAway
                    );
                    return leaves && state.is_at_return_address();
                }
                Mnemonic::Pop | Mnemonic::Leave | Mnemonic::Nop | Mnemonic::Vzeroupper => {}
                // Windows documents one release of the stack, before all pops.
                Mnemonic::Add | Mnemonic::Lea if moves_rsp && n == 0 && !is_moved => {}
                _ => return false,
            }
            self.executor.execute(&mut state, &instruction, &[]);
        }
        false
    }

    /// Returns true if the code at `rva` is the rest of an epilogue, and jumps to code whose data is wrong
    /// then: it describes a frame there, so that the jump is not taken for a tail call.
    fn leaves_to_wrong_data(&mut self, state: &State, rva: u32) -> bool {
        let Some(bytes) = self.region.bytes_from(rva) else { return false };
        let mut state = state.clone();
        let ip = self.region.base().wrapping_add(rva.into());
        let mut decoder = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE);
        for _ in 0..LONGEST_EPILOGUE {
            let instruction = decoder.decode();
            let moves_rsp = instruction.op0_register() == Register::RSP;
            match instruction.mnemonic() {
                Mnemonic::Jmp if instruction.is_jmp_short_or_near() => {
                    let target = self.region.rva(instruction.near_branch_target());
                    let answer = target.map(|target| self.judge.at(&state, target));
                    return matches!(answer, Some(Answer::Wrong(it)) if it.blame == Blame::Data);
                }
                Mnemonic::Pop | Mnemonic::Leave | Mnemonic::Nop => {}
                Mnemonic::Add | Mnemonic::Lea if moves_rsp => {}
                _ => return false,
            }
            self.executor.execute(&mut state, &instruction, &[]);
        }
        false
    }

    /// Checks the state at a return or a tail call at `rva`.
    fn leave(&mut self, rva: u32, state: &State) {
        let preserved = self.convention().nonvolatile();
        if self.notes_steps {
            self.steps.leave(rva);
        }
        let explored = &mut self.explored;
        explored.returns = true;
        if !state.is_at_return_address() {
            explored.is_strange |= state.rsp().is_some();
            return;
        }
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

/// Returns true if `code` is a jump through memory at an address relative to rip, or one with REX.W: the mark
/// of a tail call.
const fn is_marked_tail_jump(code: &[u8]) -> bool {
    matches!(code, [0xFF, 0x25, ..] | [0x48..=0x4F, 0xFF, ..])
}
