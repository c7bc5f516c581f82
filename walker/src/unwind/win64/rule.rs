//! What a step from a given return address does, as a list of loads: unwind codes read once.

use super::super::{Position, Step, Trust, UnwindError};
use super::effects::{Draft, Effects};
use super::{Site, unwind_codes};
use crate::memory::Memory;
use crate::registers::{Gpr, Registers};

const MAX_LOADS: usize = 12;

/// A register that addresses count from, as it is before the step, and a distance in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from_frame_register: bool,
    offset: i32,
}

/// One register to load, packed: register in bits 0–4 (16 and up: xmm), base in bit 5, offset in
/// 8-byte units above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load(u32);

impl Load {
    const XMM: u8 = 16;

    fn new(register: u8, place: Place) -> Option<Self> {
        let units = place.offset >> 3;
        let fits = place.offset % 8 == 0 && (units << 6) >> 6 == units;
        let base = u32::from(place.from_frame_register) << 5;
        fits.then_some(Self(u32::from(register) | base | units.cast_unsigned() << 6))
    }

    #[inline]
    const fn register(self) -> usize {
        (self.0 & 31) as usize
    }

    #[inline]
    fn address(self, bases: [u64; 2]) -> u64 {
        let base = bases[(self.0 >> 5 & 1) as usize];
        base.wrapping_add_signed(i64::from(self.0.cast_signed() >> 6) * 8)
    }
}

/// The effect of a step: which registers are loaded from where, in the order of the unwind codes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Rule {
    loads: [Load; MAX_LOADS],
    count: u8,
    frame_register: u8,
    trust: Trust,
    return_address: Load,
    establisher_frame: Load,
    handler: Option<super::Handler>,
}

impl Rule {
    /// The rule for the function entry and return address of `site`; `None` if the effect is not of
    /// this simple form (machine frames, offsets that are no multiple of 8, very many saves), or if
    /// the unwind data is faulty.
    pub(super) fn compile(site: &Site<'_, '_>) -> Option<Self> {
        let mut builder = Builder {
            rsp: Some(Place { from_frame_register: false, offset: 0 }),
            frame_register: site.info.frame_register(),
            frame_register_loaded: false,
            loads: [Load::default(); MAX_LOADS],
            count: 0,
            return_address: None,
            possible: true,
        };
        let unwound = unwind_codes(site, &mut builder).ok()?;
        let establisher_frame = Load::new(0, unwound.establisher_frame?)?;
        if !builder.possible || unwound.caller != Position::ReturnAddress {
            return None;
        }
        Some(Self {
            loads: builder.loads,
            count: builder.count as u8,
            frame_register: builder.frame_register,
            trust: unwound.trust,
            return_address: builder.return_address?,
            establisher_frame,
            handler: unwound.handler(),
        })
    }

    /// Makes the step.
    #[inline]
    pub(in super::super) fn apply<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let bases = [registers.rsp(), registers.get(Gpr::from_number(self.frame_register))];
        let step = Step {
            trust: self.trust,
            establisher_frame: self.establisher_frame.address(bases),
            handler: self.handler,
            caller: Position::ReturnAddress,
        };
        let mut draft = Draft::new(registers, memory);
        let loaded = self.load(bases, &mut draft);
        draft.finish(loaded)?;
        Ok(step)
    }

    #[inline]
    fn load<E: Effects<Address = u64>>(
        &self,
        bases: [u64; 2],
        effects: &mut E,
    ) -> Result<(), UnwindError> {
        for load in self.loads.iter().take(usize::from(self.count)) {
            let (register, address) = (load.register() as u8, load.address(bases));
            match register.checked_sub(Load::XMM) {
                Some(n) => effects.load_xmm(n, address)?,
                None => effects.load(Gpr::from_number(register), address)?,
            }
        }
        effects.set_rsp(self.return_address.address(bases));
        effects.pop_rip()
    }
}

/// The state of the interpreter of unwind codes when it runs on expressions instead of values.
struct Builder {
    /// `None` where it is not known as an expression.
    rsp: Option<Place>,
    frame_register: u8,
    frame_register_loaded: bool,
    loads: [Load; MAX_LOADS],
    count: usize,
    return_address: Option<Load>,
    possible: bool,
}

impl Builder {
    fn push(&mut self, register: u8, place: Option<Place>) {
        let load = place.and_then(|place| Load::new(register, place));
        match (load, self.loads.get_mut(self.count)) {
            (Some(load), Some(slot)) => {
                *slot = load;
                self.count += 1;
            }
            _ => self.possible = false,
        }
    }
}

impl Effects for Builder {
    type Address = Option<Place>;

    fn offset(address: Option<Place>, bytes: i64) -> Option<Place> {
        let place = address?;
        let offset = i32::try_from(i64::from(place.offset).checked_add(bytes)?).ok()?;
        Some(Place { offset, ..place })
    }

    fn value(&mut self, register: Gpr) -> Option<Place> {
        if register == Gpr::Rsp {
            return self.rsp;
        }
        // A chained info may name another frame register, or one that was restored meanwhile.
        if register.number() != self.frame_register || self.frame_register_loaded {
            self.possible = false;
            return None;
        }
        Some(Place { from_frame_register: true, offset: 0 })
    }

    fn set_rsp(&mut self, address: Option<Place>) {
        self.rsp = address;
    }

    fn load(&mut self, register: Gpr, address: Option<Place>) -> Result<(), UnwindError> {
        if register == Gpr::Rsp {
            self.possible = false;
        }
        self.frame_register_loaded |= register.number() == self.frame_register;
        self.push(register.number(), address);
        Ok(())
    }

    fn load_xmm(&mut self, n: u8, address: Option<Place>) -> Result<(), UnwindError> {
        self.push(Load::XMM + n, address);
        Ok(())
    }

    fn load_rip(&mut self, address: Option<Place>) -> Result<(), UnwindError> {
        self.return_address = address.and_then(|place| Load::new(0, place));
        self.possible &= self.return_address.is_some();
        Ok(())
    }
}
