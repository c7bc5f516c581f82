//! Compiled rules: the effect of a step from a given return address as a list of loads. The unwind
//! codes are read only once.

use super::super::{Position, Step, Trust, UnwindError};
use super::effects::{Draft, Effects, Sources};
use super::{NONVOLATILE, Site, new_step, unwind_codes, version3};
use crate::memory::Memory;
use crate::registers::{Gpr, Registers};

const MAX_LOADS: usize = 12;

/// A base register that addresses count from, with its value before the step, and a distance in
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from_frame_register: bool,
    offset: i32,
}

/// A register to load, packed: register in bits 0–4 (16 and up: xmm), base in bit 5, offset in
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
    const fn base(self) -> usize {
        (self.0 >> 5 & 1) as usize
    }

    /// Returns the distance from the base in bytes.
    #[inline]
    const fn offset(self) -> i32 {
        (self.0.cast_signed() >> 6) * 8
    }

    /// Returns the number of bytes that are read.
    const fn len(self) -> i32 {
        if self.register() < Self::XMM as usize { 8 } else { 16 }
    }

    /// Returns the bytes of this load from a window that begins `start` bytes from the base and was
    /// measured for it.
    #[inline]
    fn bytes<const N: usize>(self, window: &[u8], start: i32) -> [u8; N] {
        let at = self.offset().wrapping_sub(start).cast_unsigned() as usize;
        window.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }

    #[inline]
    fn address(self, bases: [u64; 2]) -> u64 {
        bases[self.base()].wrapping_add_signed(i64::from(self.offset()))
    }
}

/// The range of the stack that holds everything that a rule loads.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Distance in bytes from the base that all loads share.
    start: i32,
    len: u32,
}

impl Window {
    fn around(loads: &[Load], return_address: Load) -> Option<Self> {
        let all = || loads.iter().copied().chain([return_address]);
        let same_base = all().all(|load| load.base() == return_address.base());
        let start = all().map(Load::offset).min()?;
        let end = all().filter_map(|load| load.offset().checked_add(load.len())).max()?;
        let len = u32::try_from(end.checked_sub(start)?).ok()?;
        same_base.then_some(Self { start, len })
    }
}

/// The effect of a step: the registers that are loaded and their addresses, in the order of the
/// unwind codes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Rule {
    loads: [Load; MAX_LOADS],
    count: u8,
    frame_register: u8,
    trust: Trust,
    return_address: Load,
    establisher_frame: Load,
    window: Option<Window>,
    handler: Option<super::Handler>,
    sources: Sources,
}

impl Rule {
    /// Compiles the rule for the function entry and return address of `site`. Returns `None` if the
    /// effect is not of this simple form (machine frames, offsets that are no multiple of 8, very
    /// many saves), or if the unwind data is faulty.
    pub(super) fn compile(site: &Site<'_, '_>) -> Option<Self> {
        let mut builder = Builder {
            rsp: Some(Place { from_frame_register: false, offset: 0 }),
            frame_register: site.frame_register(),
            frame_register_loaded: false,
            loads: [Load::default(); MAX_LOADS],
            count: 0,
            return_address: None,
            possible: true,
            sources: Sources::RSP,
        };
        let unwound = if site.rules.has_version_3(&site.info) {
            version3::unwind(site, &mut builder).ok()?
        } else {
            unwind_codes(site, &mut builder).ok()?
        };
        let establisher_frame = Load::new(0, unwound.establisher_frame?)?;
        if !builder.possible || unwound.caller != Position::ReturnAddress {
            return None;
        }
        let return_address = builder.return_address?;
        Some(Self {
            loads: builder.loads,
            count: builder.count as u8,
            frame_register: builder.frame_register,
            trust: unwound.trust,
            return_address,
            establisher_frame,
            window: Window::around(builder.loads.get(..builder.count)?, return_address),
            handler: unwound.handler(),
            sources: builder.sources,
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
        let step = new_step(
            self.trust,
            self.establisher_frame.address(bases),
            self.handler,
            Position::ReturnAddress,
            NONVOLATILE,
            self.sources,
        );
        if let Some(window) = self.window {
            let base = bases[self.return_address.base()];
            let start = base.wrapping_add_signed(i64::from(window.start));
            if let Some(bytes) = memory.window(start, window.len as usize) {
                self.load_from(bytes, window.start, registers);
                let return_address = i64::from(self.return_address.offset());
                registers.set(Gpr::Rsp, base.wrapping_add_signed(return_address + 8));
                return Ok(step);
            }
        }
        let mut draft = Draft::new(registers, memory);
        let loaded = self.load(bases, &mut draft);
        draft.finish(loaded)?;
        Ok(step)
    }

    /// Loads all registers except rsp from the bytes of the window. This cannot fail.
    #[inline]
    fn load_from(&self, window: &[u8], start: i32, registers: &mut Registers) {
        for load in self.loads.iter().take(usize::from(self.count)) {
            match load.register().checked_sub(usize::from(Load::XMM)) {
                None => {
                    let value = u64::from_le_bytes(load.bytes(window, start));
                    registers.gpr[load.register() & 15] = value;
                }
                Some(n) => {
                    if let Some(xmm) = n.checked_sub(6).and_then(|i| registers.xmm.get_mut(i)) {
                        *xmm = u128::from_le_bytes(load.bytes(window, start));
                    }
                }
            }
        }
        registers.rip = u64::from_le_bytes(self.return_address.bytes(window, start));
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
    /// `None` if rsp is not known as an expression.
    rsp: Option<Place>,
    frame_register: u8,
    frame_register_loaded: bool,
    loads: [Load; MAX_LOADS],
    count: usize,
    return_address: Option<Load>,
    possible: bool,
    sources: Sources,
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
        self.sources.need(register);
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
        self.sources.found = self.sources.found.with(register);
        self.push(register.number(), address);
        Ok(())
    }

    fn load_xmm(&mut self, n: u8, address: Option<Place>) -> Result<(), UnwindError> {
        self.sources.found = self.sources.found.with_xmm(n);
        self.push(Load::XMM + n, address);
        Ok(())
    }

    fn load_rip(&mut self, address: Option<Place>) -> Result<(), UnwindError> {
        self.return_address = address.and_then(|place| Load::new(0, place));
        self.possible &= self.return_address.is_some();
        Ok(())
    }
}
