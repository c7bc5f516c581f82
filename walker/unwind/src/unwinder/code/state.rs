//! The state of a frame some instructions after the interrupted one, in terms of the state there.

use super::instruction::Effect;
use crate::registers::{Gpr, Registers};
use crate::x64::Base;

/// The registers that callees preserve, rsp apart.
pub(in crate::unwinder) const PRESERVED: [Gpr; 6] =
    [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// The place of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::unwinder) enum Source {
    /// A register, as it is at the interrupted instruction.
    Register(Gpr),
    /// The stack, N bytes above the interrupted rsp.
    Stack(i32),
    /// Nowhere: the value is not one that the frame had.
    #[default]
    Lost,
}

/// Number of words that are remembered.
const MOST_WORDS: usize = 10;

/// The state.
#[derive(Clone, Copy, Debug)]
pub(in crate::unwinder) struct State {
    /// rsp of the interrupted frame (VA).
    start: u64,
    /// rsp (VA), unless it is unknown.
    pub(in crate::unwinder) rsp: Option<u64>,
    /// rbp (VA), unless it is unknown.
    pub(in crate::unwinder) rbp: Option<u64>,
    /// The values of [`PRESERVED`].
    registers: [Source; 6],
    /// Words that were written to the stack, the last one last: distance from `start`, and value.
    words: [(i32, Source); MOST_WORDS],
    count: u8,
    /// True if rbp at the interrupted instruction has an effect on the state.
    pub(in crate::unwinder) needs_rbp: bool,
    /// True if an instruction has removed a part of the frame.
    pub(in crate::unwinder) released: bool,
}

impl State {
    pub(in crate::unwinder) fn new(registers: &Registers) -> Self {
        Self {
            start: registers.rsp(),
            rsp: Some(registers.rsp()),
            rbp: Some(registers.get(Gpr::Rbp)),
            registers: PRESERVED.map(Source::Register),
            words: [(0, Source::Lost); MOST_WORDS],
            count: 0,
            needs_rbp: false,
            released: false,
        }
    }

    /// Returns a number that is equal for equal states of one frame, and rarely for others.
    #[cfg(feature = "macho")]
    pub(in crate::unwinder) fn hash(&self) -> u64 {
        let number = |source: &Source| match *source {
            Source::Register(register) => 1 << 32 | u64::from(register.number()),
            Source::Stack(distance) => 2 << 32 | u64::from(distance.cast_unsigned()),
            Source::Lost => 0,
        };
        let address = |hash, address: Option<u64>| match address {
            Some(address) => mixed(hash, address),
            None => mixed(hash, 1).rotate_left(1),
        };
        let flags = u64::from(self.needs_rbp) << 1 | u64::from(self.released);
        let hash = address(address(flags, self.rsp), self.rbp);
        let hash = self.registers.iter().fold(hash, |hash, source| mixed(hash, number(source)));
        self.words().fold(hash, |hash, (distance, source)| {
            mixed(mixed(hash, u64::from(distance.cast_unsigned())), number(source))
        })
    }

    /// Returns true if the stack pointer, rbp and the stack are still those of the interrupted
    /// instruction.
    #[cfg(feature = "macho")]
    pub(in crate::unwinder) fn is_unchanged(&self) -> bool {
        let rbp = self.register(Gpr::Rbp) == Source::Register(Gpr::Rbp);
        self.has_made_nothing() && !self.released && rbp
    }

    /// Returns true if rsp has not gone down.
    #[cfg(feature = "macho")]
    pub(in crate::unwinder) fn has_made_nothing(&self) -> bool {
        self.count == 0 && self.rsp.is_some_and(|rsp| rsp >= self.start)
    }

    /// Returns true if the word on top of the stack can be the return address: it was there before the
    /// interrupted instruction, or the stack pointer is unknown.
    #[cfg(feature = "macho")]
    pub(in crate::unwinder) fn can_leave(&self) -> bool {
        matches!(self.top(), Some((_, Source::Stack(_))) | None)
    }

    /// Returns true if a function can begin here: nothing of the frame is made, or all that was made is
    /// released.
    #[cfg(feature = "macho")]
    pub(in crate::unwinder) fn is_at_entry(&self) -> bool {
        self.has_made_nothing() || self.released && self.rsp.is_some() && self.can_leave()
    }

    /// Returns the value of a preserved register.
    pub(in crate::unwinder) fn register(&self, register: Gpr) -> Source {
        let at = PRESERVED.iter().position(|it| *it == register);
        at.and_then(|at| self.registers.get(at)).copied().unwrap_or_default()
    }

    fn set(&mut self, register: Gpr, value: Source) {
        let at = PRESERVED.iter().position(|it| *it == register);
        if let Some(slot) = at.and_then(|at| self.registers.get_mut(at)) {
            *slot = value;
        }
    }

    fn distance(&self, address: u64) -> Option<i32> {
        i32::try_from(address.wrapping_sub(self.start).cast_signed()).ok()
    }

    /// Returns the value of the word at `address`. Below the interrupted rsp only what was written
    /// since then is known.
    pub(in crate::unwinder) fn word(&self, address: u64) -> Source {
        let Some(distance) = self.distance(address) else { return Source::Lost };
        let written = self.words.iter().take(self.count.into()).rev();
        match written.into_iter().find(|(at, _)| *at == distance) {
            Some((_, value)) => *value,
            None if distance >= 0 => Source::Stack(distance),
            None => Source::Lost,
        }
    }

    /// Remembers that `value` is written to `address`. Returns `None` if there is no room.
    fn write(&mut self, address: u64, value: Source) -> Option<()> {
        let word = self.words.get_mut(usize::from(self.count))?;
        let distance = address.wrapping_sub(self.start).cast_signed();
        *word = (i32::try_from(distance).ok()?, value);
        self.count += 1;
        Some(())
    }

    /// Returns true if a register has the value that it had where the thread was interrupted.
    pub(in crate::unwinder) fn is_own(&self, register: Gpr) -> bool {
        self.register(register) == Source::Register(register)
    }

    /// Returns the value of a register that addresses a frame.
    fn base(&mut self, base: Base) -> Option<u64> {
        match base {
            Base::Rsp => self.rsp,
            Base::Rbp => {
                self.needs_rbp |= self.is_own(Gpr::Rbp);
                self.rbp
            }
        }
    }

    /// Returns the word that rsp points to.
    pub(in crate::unwinder) fn top(&self) -> Option<(u64, Source)> {
        let rsp = self.rsp?;
        Some((rsp, self.word(rsp)))
    }

    /// Applies the effect of an instruction that goes on to the next one. Returns `None` if the
    /// state cannot be followed.
    pub(in crate::unwinder) fn apply(&mut self, effect: Effect) -> Option<()> {
        match effect {
            Effect::Push(register) => {
                let Some(rsp) = self.rsp else { return Some(()) };
                let rsp = rsp.wrapping_sub(8);
                let value = register.map_or(Source::Lost, |register| self.register(register));
                self.rsp = Some(rsp);
                self.write(rsp, value)?;
            }
            Effect::Pop(register) => {
                let value = self.top().map_or(Source::Lost, |(_, value)| value);
                self.rsp = self.rsp.map(|rsp| rsp.wrapping_add(8));
                if let Some(register) = register {
                    self.overwrite(register, value);
                    self.released |= PRESERVED.contains(&register);
                }
            }
            Effect::AddRsp(by) => {
                self.rsp = self.rsp.map(|rsp| rsp.wrapping_add_signed(by.into()));
                self.released |= by > 0;
            }
            Effect::AndRsp(mask) => {
                self.rsp = self.rsp.map(|rsp| rsp & i64::from(mask).cast_unsigned());
            }
            Effect::Lea(register, base, by) => {
                let value = self.base(base).map(|base| base.wrapping_add_signed(by.into()));
                match register {
                    Gpr::Rsp => {
                        self.released |= base == Base::Rbp || by > 0;
                        self.rsp = value;
                    }
                    Gpr::Rbp => {
                        self.overwrite(register, Source::Lost);
                        self.rbp = value;
                    }
                    other => self.overwrite(other, Source::Lost),
                }
            }
            Effect::Load(register, base, by) => {
                let address = self.base(base).map(|base| base.wrapping_add_signed(by.into()));
                let value = address.map_or(Source::Lost, |address| self.word(address));
                self.overwrite(register, value);
            }
            Effect::Store(register, base, by) => {
                // The first copy of a preserved register may be the one that the caller's value
                // comes back from.
                if self.register(register) == Source::Register(register)
                    && !self.words().any(|(_, value)| *value == Source::Register(register))
                    && let Some(address) = self.base(base)
                {
                    self.write(address.wrapping_add_signed(by.into()), Source::Register(register))?;
                }
            }
            Effect::Write(register) => self.overwrite(register, Source::Lost),
            Effect::Leave => {
                self.rsp = self.base(Base::Rbp);
                self.apply(Effect::Pop(Some(Gpr::Rbp)))?;
            }
            Effect::Unknown => return None,
            _ => {}
        }
        Some(())
    }

    fn words(&self) -> impl Iterator<Item = &(i32, Source)> {
        self.words.iter().take(self.count.into())
    }

    /// Overwrites a register.
    pub(in crate::unwinder) fn overwrite(&mut self, register: Gpr, value: Source) {
        match register {
            Gpr::Rsp => self.rsp = None,
            Gpr::Rbp => self.rbp = None,
            _ => {}
        }
        self.set(register, value);
    }
}

/// Returns a number in which each bit of `hash` and of `word` counts.
#[cfg(feature = "macho")]
pub(in crate::unwinder) const fn mixed(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}
