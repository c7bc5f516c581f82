//! Following the code from an interrupted instruction to a place where the frame is known.
//!
//! Two such places are certain: at a return the return address is on top of the stack, and at a call
//! the table is right, since exceptions pass there. So it does not matter whether the instruction is
//! in a prologue, an epilogue, the body, or a part of a function that never makes a frame.

use super::super::code::{Effect, Instruction, Source, State, decode, mixed};
use super::{Described, Frame, describe};
use crate::code_map::CodeRegion;
use crate::compact::{CompactTable, Layout};
use crate::registers::Registers;

/// Maximum number of instructions on one path.
const PATH_LIMIT: u32 = 512;

/// Maximum number of branches whose other way is kept for later.
const MOST_BRANCHES: usize = 3;

/// Maximum number of paths.
const MOST_PATHS: u32 = 12;

/// The place that the code leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    /// A return, or a jump into another function: the return address is on top of the stack.
    Leaves(State),
    /// A call in a function with this frame.
    Calls(Frame, State),
    /// A call in a function with call frame information, whose rows hold up to there: no epilogue has a call.
    CallsByRow,
    /// None within the limits. The state is that at the end of the straightest path.
    Unknown(State),
}

/// The end of a path, whose state there is the path's.
enum End {
    /// A return, or a jump into another function.
    Leaves,
    /// A call in a function with this frame.
    Calls(Frame),
    /// A call in a function with call frame information.
    CallsByRow,
    /// The path is lost.
    Lost,
}

/// The state that is the answer if every path is lost. Only one is kept: a handler's stack is small.
struct Kept {
    state: State,
    /// The place that the state is from.
    from: KeptFrom,
}

/// A place on a path; later ones are worth more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeptFrom {
    /// The interrupted instruction.
    Start,
    /// The end of the straightest path.
    Straightest,
    /// A jump to the start of another function.
    Exit,
}

impl Kept {
    /// Replaces a state from a place before `from`.
    fn keep(&mut self, state: &State, from: KeptFrom) {
        if self.from < from {
            (self.state, self.from) = (*state, from);
        }
    }
}

/// A path through the code.
#[derive(Clone, Copy)]
struct Path {
    rva: u32,
    /// RVA that the last `lea register, [rip+…]` has computed: the table of a `switch`, if one
    /// follows.
    last_address: Option<u32>,
    state: State,
}

impl Path {
    /// Returns a number that is equal for equal paths, and rarely for others.
    fn hash(&self) -> u64 {
        let address = self.last_address.map_or(0, |address| u64::from(address) << 1 | 1);
        mixed(mixed(self.state.hash(), address), self.rva.into())
    }
}

/// The jumps or branches that paths have come by. A path that comes to one again in the same state leads to
/// nothing new: it goes around a loop, or follows a path that was lost.
///
/// Places that are forgotten cost only time. By equal hashes a path would be lost, no answer be wrong.
struct Places([u64; Places::COUNT]);

impl Places {
    const COUNT: usize = 32;
    const NONE: Self = Self([0; Self::COUNT]);

    /// Returns true if a path was there before, in the same state, and could be followed for `left` more
    /// instructions at least.
    fn has(&self, path: &Path, left: u32) -> bool {
        let seen = self.0[path.rva as usize % Self::COUNT];
        seen >> 16 == path.hash() >> 16 && seen & 0xFFFF >= u64::from(left)
    }

    fn add(&mut self, path: &Path, left: u32) {
        self.0[path.rva as usize % Self::COUNT] = path.hash() >> 16 << 16 | u64::from(left);
    }
}

/// The ways through the code that are known.
struct Seen {
    jumps: Places,
    /// Branches whose other way was kept for later.
    branches: Places,
    /// True if there was no room for the other way of a branch. Another path may come by it.
    has_left_out: bool,
}

impl Seen {
    const NOTHING: Self = Self { jumps: Places::NONE, branches: Places::NONE, has_left_out: false };

    /// Begins another path.
    fn begin(&mut self) {
        if self.has_left_out {
            self.jumps = Places::NONE;
        }
    }
}

/// Code that is followed.
pub(super) struct Code<'s, 'a> {
    pub(super) region: &'s CodeRegion<'a>,
    pub(super) table: &'s CompactTable<'a>,
    /// RVA of the interrupted instruction.
    pub(super) rva: u32,
    /// True if call frame information describes the interrupted instruction.
    pub(super) has_row: bool,
}

impl Code<'_, '_> {
    /// Follows the code from where the registers are `registers`. Where a branch leads nowhere, its
    /// other ways are tried.
    pub(super) fn follow(&self, registers: &Registers) -> Destination {
        let mut path = Path { rva: self.rva, last_address: None, state: State::new(registers) };
        if self.is_tail_jump() {
            return Destination::Leaves(path.state);
        }
        let mut others = [path; MOST_BRANCHES];
        let mut waiting = 0;
        let mut kept = Kept { state: path.state, from: KeptFrom::Start };
        let mut seen = Seen::NOTHING;
        for _ in 0..MOST_PATHS {
            let branch = |other: Path| {
                let Some(slot) = others.get_mut(waiting) else { return false };
                *slot = other;
                waiting += 1;
                true
            };
            seen.begin();
            match self.go(&mut path, branch, &mut seen, &mut kept) {
                End::Leaves => return Destination::Leaves(path.state),
                End::Calls(frame) => return Destination::Calls(frame, path.state),
                End::CallsByRow => return Destination::CallsByRow,
                End::Lost => kept.keep(&path.state, KeptFrom::Straightest),
            }
            let next = waiting.checked_sub(1).filter(|_| kept.from != KeptFrom::Exit);
            let Some(next) = next else { break };
            waiting = next;
            let Some(other) = others.get(next) else { break };
            path = *other;
        }
        match kept.from {
            KeptFrom::Exit => Destination::Leaves(kept.state),
            // The limit may cut an epilogue in two, far from the interrupted instruction.
            _ if kept.state.released => Destination::Unknown(State::new(registers)),
            _ => Destination::Unknown(kept.state),
        }
    }

    /// Follows one path to its end. Calls `branch` with each other way, which returns true if it is kept
    /// for later.
    fn go(
        &self,
        path: &mut Path,
        mut branch: impl FnMut(Path) -> bool,
        seen: &mut Seen,
        kept: &mut Kept,
    ) -> End {
        let from = |rva| self.region.bytes_from(rva).unwrap_or_default();
        let mut code = from(path.rva);
        for left in (0..PATH_LIMIT).rev() {
            if path.state.is_at_entry() && makes_frame(code) {
                return End::Leaves;
            }
            let Some(Instruction { len, effect }) = decode(code) else { break };
            let next = path.rva.wrapping_add(len.into());
            let following = code.get(usize::from(len)..).unwrap_or_default();
            match effect {
                // With words of its own on top of the stack no function leaves: this is not the way.
                Effect::Return | Effect::JumpOut if !path.state.can_leave() => break,
                Effect::Return | Effect::JumpOut => {
                    return End::Leaves;
                }
                Effect::Call => match describe(self.region, self.table, path.rva) {
                    Ok(Described::Frame(frame)) => {
                        return End::Calls(frame);
                    }
                    Ok(Described::ByDwarf) if self.has_row => return End::CallsByRow,
                    _ => break,
                },
                Effect::Jump(distance) => {
                    let target = self.target(next, distance);
                    let can_leave = path.state.can_leave();
                    let Some(rva) = target else {
                        if can_leave {
                            return End::Leaves;
                        }
                        break;
                    };
                    // What has released its frame goes to another function.
                    if can_leave && path.state.released && self.is_in_other_entry(rva) {
                        return End::Leaves;
                    }
                    if can_leave && self.is_other_function(rva) {
                        kept.keep(&path.state, KeptFrom::Exit);
                    }
                    if seen.jumps.has(path, left) {
                        break;
                    }
                    seen.jumps.add(path, left);
                    (path.rva, code) = (rva, from(rva));
                }
                Effect::Branch(distance) => {
                    if !seen.branches.has(path, left) {
                        let other = self.target(next, distance).map(|rva| Path { rva, ..*path });
                        if other.is_none_or(&mut branch) {
                            seen.branches.add(path, left);
                        } else {
                            seen.has_left_out = true;
                        }
                    } else if !seen.has_left_out {
                        break;
                    }
                    (path.rva, code) = (next, following);
                }
                // What is reached by releasing the frame can only leave.
                Effect::JumpAnywhere if path.state.released => {
                    return End::Leaves;
                }
                Effect::JumpAnywhere => match self.first_case(path) {
                    Some(rva) => (path.rva, code) = (rva, from(rva)),
                    None => break,
                },
                Effect::DeadEnd => break,
                Effect::LeaRip(register, distance) => {
                    path.state.overwrite(register, Source::Lost);
                    path.last_address = self.target(next, distance);
                    (path.rva, code) = (next, following);
                }
                effect => {
                    if path.state.apply(effect).is_none() {
                        break;
                    }
                    (path.rva, code) = (next, following);
                }
            }
        }
        End::Lost
    }

    /// Returns the RVA of the first case of the `switch` whose jump `path` has come to. Tables have
    /// distances from their own start, and cases are in the same entry.
    fn first_case(&self, path: &Path) -> Option<u32> {
        let table = path.last_address?;
        let distance = i32::from_le_bytes(*self.region.bytes_from(table)?.first_chunk()?);
        let rva = self.target(table, distance)?;
        let entry = self.table.find(path.rva).ok()??;
        entry.range.contains(&rva).then_some(rva)
    }

    /// Returns the RVA of a jump's target, if that is in the image.
    fn target(&self, end: u32, distance: i32) -> Option<u32> {
        let end = self.region.base().wrapping_add(end.into());
        self.region.rva(end.wrapping_add_signed(distance.into()))
    }

    /// Returns true if another function than the interrupted instruction's is at `rva`: an entry
    /// starts there, or the code has no information. A part of a function that a compiler has moved
    /// away has an entry.
    fn is_other_function(&self, rva: u32) -> bool {
        let entry = self.table.find(rva).ok().flatten();
        entry.is_some_and(|entry| {
            let is_start = entry.range.start == rva && !entry.encoding.is_not_function_start();
            let is_bare = entry.encoding.layout() == Ok(Layout::Nothing);
            !entry.range.contains(&self.rva) && (is_start || is_bare)
        })
    }

    /// Returns true if an entry for other functions describes `rva`. A linker merges the entries of
    /// functions with equal frames, so a function may start anywhere in one.
    fn is_in_other_entry(&self, rva: u32) -> bool {
        let entry = self.table.find(rva).ok().flatten();
        entry.is_some_and(|entry| {
            !entry.range.contains(&self.rva) && !entry.encoding.is_not_function_start()
        })
    }

    /// Returns true if the interrupted instruction jumps through a register, and the bytes before it
    /// are a `pop` of a preserved register or `add rsp, imm8`: no `switch` is right after them.
    fn is_tail_jump(&self) -> bool {
        let before = self.rva.checked_sub(4).and_then(|start| self.region.bytes_from(start));
        let Some((before, code)) = before.and_then(<[u8]>::split_first_chunk::<4>) else {
            return false;
        };
        decode(code).is_some_and(|instruction| instruction.effect == Effect::JumpAnywhere)
            && matches!(
                before,
                [.., 0x5B | 0x5D]
                    | [.., 0x41, 0x5C..=0x5F]
                    | [0x48, 0x83, 0xC4, _]
                    // A branch over the jump may be in between.
                    | [_, 0x5B | 0x5D, 0x70..=0x7F, _]
            )
    }
}

/// Returns true if the code is `push rbp; mov rbp, rsp`, which every frame with rbp begins with.
const fn makes_frame(code: &[u8]) -> bool {
    matches!(code, [0x55, 0x48, 0x89, 0xE5, ..] | [0x55, 0x48, 0x8B, 0xEC, ..])
}
