//! Compiling a step to a rule: the unwind codes or the epilogue run on expressions instead of values.

use super::effects::{Effects, Sources};
use super::rule::{Load, MAX_LOADS, Parts, Rule};
use super::{Reading, Site, chkstk, epilogue_at, unwind_codes, version3};
use crate::code_map::{CodeMap, CodeRegion};
use crate::compat::Rules;
use crate::registers::Gpr;
use crate::unwinder::{Position, Trust, UnwindError, rip_rva};

/// Returns the rule of the step from `position`, if it has one; `rva` is that of the address that is
/// looked up. Without a map, rules that depend on other regions are left out.
#[cold]
pub(in crate::unwinder) fn compile(
    map: Option<&CodeMap<'_>>,
    region: &CodeRegion<'_>,
    rva: u32,
    position: Position,
) -> Option<Rule> {
    let Some(function) = region.functions().find(rva) else {
        let is_leaf = position == Position::Interrupted
            && region.is_executable(rva)
            && chkstk::pushed_registers(region, rva).is_none();
        return is_leaf.then(Rule::leaf);
    };
    // A rule is the same for all unwinders of the code, so it must not depend on their convention.
    let reading = Reading { rules: Rules::Precise, unix: false };
    let place = super::Place { map, region, rva: rip_rva(rva, position), function };
    Rule::compile(&Site::of_any_version(reading, place).ok()?, position)
}

impl Rule {
    /// Returns the rule of interrupted code without a function entry.
    pub(super) fn leaf() -> Self {
        Self::new(&Parts {
            loads: [Load::PADDING; MAX_LOADS],
            count: 0,
            return_address: 0,
            len: 8,
            start: 0,
            found: Sources::RSP.found,
            handler: None,
            establisher_frame: 0,
            frame_register: 0,
            trust: Trust::Leaf,
            flags: Self::INTERRUPTED,
        })
    }

    /// Compiles the rule for the function entry and rip of `site`. Returns `None` if the effect is
    /// not of this simple form (machine frames, addresses counted from two registers, saves far
    /// apart or very many), or if the unwind data is faulty.
    pub(super) fn compile(site: &Site<'_, '_>, position: Position) -> Option<Self> {
        let mut builder = Builder::new(site.frame_register());
        let epilogue = match position {
            Position::Interrupted => epilogue_at(site, &mut builder).ok()?,
            Position::ReturnAddress => None,
        };
        let unwound = match epilogue {
            Some(unwound) => unwound,
            None if site.rules.has_version_3(site.info.version()) => {
                version3::unwind(site, &mut builder).ok()?
            }
            None => unwind_codes(site, &mut builder).ok()?,
        };
        let establisher_frame = unwound.establisher_frame?;
        if unwound.caller != Position::ReturnAddress {
            return None;
        }
        let Builder { saves, count, return_address, sources, frame_register, .. } = builder;
        let saves = saves.get(..count).filter(|_| builder.possible)?;
        let return_address = return_address?;
        let slots = || saves.iter().map(|save| save.place).chain([return_address]);
        if slots().any(|place| place.from_frame_register != return_address.from_frame_register) {
            return None;
        }
        let start = slots().map(|place| place.offset).min()?;
        let distance = |place: Place| u16::try_from(place.offset.checked_sub(start)?).ok();
        let return_at = distance(return_address)?;
        let mut len = return_at.checked_add(8)?;
        let mut loads = [Load::PADDING; MAX_LOADS];
        for (load, save) in loads.iter_mut().zip(saves) {
            let at = distance(save.place)?;
            *load = Load::new(save.register, at)?;
            len = len.max(at.checked_add(save.len())?);
        }
        let needs_frame_register = sources.needed.contains(Gpr::from_number(frame_register));
        let flags = [
            (return_address.from_frame_register, Self::FROM_FRAME_REGISTER),
            (establisher_frame.from_frame_register, Self::ESTABLISHED_BY_FRAME_REGISTER),
            (needs_frame_register, Self::NEEDS_FRAME_REGISTER),
            (position == Position::Interrupted, Self::INTERRUPTED),
        ];
        Some(Self::new(&Parts {
            loads,
            count: count as u8,
            return_address: return_at,
            len,
            start,
            found: sources.found,
            handler: unwound.handler(),
            establisher_frame: i16::try_from(establisher_frame.offset).ok()?,
            frame_register,
            trust: unwound.trust,
            flags: flags.iter().fold(0, |all, (is, flag)| if *is { all | flag } else { all }),
        }))
    }
}

/// A base register that addresses count from, with its value before the step, and a distance in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    from_frame_register: bool,
    offset: i32,
}

/// A register to load: 16 and up are xmm.
#[derive(Clone, Copy, Default)]
struct Save {
    register: u8,
    place: Place,
}

impl Save {
    const fn len(&self) -> u16 {
        if self.register < Load::XMM { 8 } else { 16 }
    }
}

/// The state of the interpreter of unwind codes when it runs on expressions instead of values.
struct Builder {
    /// `None` if rsp is not known as an expression.
    rsp: Option<Place>,
    frame_register: u8,
    frame_register_loaded: bool,
    saves: [Save; MAX_LOADS],
    count: usize,
    return_address: Option<Place>,
    possible: bool,
    sources: Sources,
}

impl Builder {
    fn new(frame_register: u8) -> Self {
        Self {
            rsp: Some(Place::default()),
            frame_register,
            frame_register_loaded: false,
            saves: [Save::default(); MAX_LOADS],
            count: 0,
            return_address: None,
            possible: true,
            sources: Sources::RSP,
        }
    }

    fn push(&mut self, register: u8, place: Option<Place>) {
        match (place, self.saves.get_mut(self.count)) {
            (Some(place), Some(slot)) => {
                *slot = Save { register, place };
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
        self.return_address = address;
        Ok(())
    }
}
