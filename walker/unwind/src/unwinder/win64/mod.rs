//! Unwinding by RUNTIME_FUNCTION and UNWIND_INFO.
//!
//! The rules are those of contract §8.2, which are Windows' and CoreCLR's own; where
//! [`Rules::Precise`](crate::compat::Rules::Precise) departs from them, execution on a real processor showed them wrong.

mod chkstk;
mod compile;
mod effects;
mod epilogue;
mod info;
mod prologue;
mod rule;
mod tail_jump;
mod undone;
mod version3;

pub use info::{
    Epilogs, Operation, UNW_FLAG_CHAININFO, UNW_FLAG_EHANDLER, UNW_FLAG_UHANDLER, UnwindCode,
    UnwindInfo,
};
pub use version3::{
    EpilogueV3, ExtendedGpr, UNW_FLAG_LARGE, UnwindInfoV3, Winding, WindingCode, WindingOperation,
};

use super::{Handler, Position, Step, Trust, UnwindError};
use crate::code_map::{CodeMap, CodeRegion, RegionKind};
use crate::compat::Rules;
use crate::image::{RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION};
use crate::memory::Memory;
use crate::registers::{Convention, RegisterSet, Registers};
pub(super) use compile::compile;
use effects::{Draft, Effects, Sources};
use epilogue::Leaving;
pub(crate) use rule::Rule;

/// The way in which unwind data is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) rules: Rules,
    /// True if generated code follows the System V convention.
    pub(super) unix: bool,
}

/// The position of control: rip, the function entry that covers it, and its unwind info.
#[derive(Clone, Copy)]
struct Site<'s, 'a> {
    rules: Rules,
    unix: bool,
    /// `None` if the result must not depend on other regions.
    map: Option<&'s CodeMap<'a>>,
    region: &'s CodeRegion<'a>,
    /// rip, or the return address.
    rva: u32,
    function: RuntimeFunction,
    info: UnwindInfo<'s>,
}

impl<'s, 'a> Site<'s, 'a> {
    fn new(reading: Reading, place: Place<'s, 'a>) -> Result<Self, UnwindError> {
        let function = resolve_indirect(place.region, place.function)?;
        Self::direct(reading, Place { function, ..place })
    }

    /// Creates a site, as [`new`](Self::new) does, for a function that is no indirect entry.
    #[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
    #[inline(always)]
    fn direct(reading: Reading, place: Place<'s, 'a>) -> Result<Self, UnwindError> {
        let info = info_of(place.region, place.function, reading.rules)?;
        Ok(Self::with_info(reading, place, info))
    }

    /// Creates a site, as [`new`](Self::new) does, for an info that may be of version 3.
    fn of_any_version(reading: Reading, place: Place<'s, 'a>) -> Result<Self, UnwindError> {
        let function = resolve_indirect(place.region, place.function)?;
        let info = any_info_of(place.region, function, reading.rules)?;
        Ok(Self::with_info(reading, Place { function, ..place }, info))
    }

    #[inline]
    const fn with_info(reading: Reading, place: Place<'s, 'a>, info: UnwindInfo<'s>) -> Self {
        let (Reading { rules, unix }, Place { map, region, rva, function }) = (reading, place);
        Self { rules, unix, map, region, rva, function, info }
    }

    /// Returns the payload of an info of version 3.
    fn version_3(&self) -> Option<UnwindInfoV3<'s>> {
        self.rules
            .has_version_3(self.info.version())
            .then(|| UnwindInfoV3::read(&self.info).ok())?
    }

    /// Returns the number of the frame register, or 0 if there is none.
    fn frame_register(&self) -> u8 {
        match self.version_3() {
            Some(payload) => payload.frame_register().unwrap_or_default(),
            None => self.info.frame_register(),
        }
    }

    /// Returns true if operation 11 is UWOP_SET_FPREG_LARGE here. Windows has no such operation, and
    /// images for Windows, whose compilers emit it for nothing else, do not mean it.
    fn has_set_fpreg_large(&self) -> bool {
        match self.rules {
            Rules::Precise => {
                let generated = matches!(self.region.kind(), RegionKind::CodeHeap);
                self.region.is_system_v() || generated && self.unix
            }
            Rules::CoreClr | Rules::Ntdll => false,
            Rules::CoreClrUnix => true,
        }
    }

    /// Returns the number of bytes from the function's begin to rip. If a chunk lies before the
    /// parent of its chain, the difference wraps around, and all of the parent's codes apply.
    #[inline]
    const fn offset(&self) -> u32 {
        self.rva.wrapping_sub(self.function.begin)
    }
}

/// Makes the step from a return address in `place`, whose function has a direct entry. [`step`] would do
/// the same, but slower.
#[inline]
pub(super) fn step_from_call<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    unix: bool,
    preserved: RegisterSet,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let reading = Reading { rules: Rules::Precise, unix };
    let step = match step_by_codes(place, reading, registers, memory) {
        Ok(step) => step,
        Err(error) => step_by_version_3(error, place, reading, registers, false, memory)?,
    };
    Ok(step.within(preserved))
}

#[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
#[inline(always)]
fn step_by_codes<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    reading: Reading,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let site = Site::direct(reading, place)?;
    let mut draft = Draft::new(registers, memory);
    let unwound = unwind_codes(&site, &mut draft);
    let (unwound, sources) = draft.finish(unwound)?;
    Ok(unwound.step(sources))
}

/// Makes the step again that failed with `error`, if that is because of version 3.
///
/// The usual path refuses it: all that is not inlined there costs speed.
#[cold]
fn step_by_version_3<M: Memory + ?Sized>(
    error: UnwindError,
    place: Place<'_, '_>,
    reading: Reading,
    registers: &mut Registers,
    interrupted: bool,
    memory: &M,
) -> Result<Step, UnwindError> {
    if !matches!(error, UnwindError::UnsupportedVersion { version: 3, .. }) {
        return Err(error);
    }
    let site = Site::of_any_version(reading, place)?;
    let mut draft = Draft::new(registers, memory);
    let found = if interrupted { epilogue_at(&site, &mut draft) } else { Ok(None) };
    let unwound = match found {
        Ok(Some(unwound)) => Ok(unwound),
        Ok(None) => version3::unwind(&site, &mut draft),
        Err(error) => Err(error),
    };
    let (unwound, sources) = draft.finish(unwound)?;
    Ok(unwound.step(sources))
}

/// Moves `registers` from a frame to its caller; on an error they stay as they were.
pub(super) fn step<M: Memory + ?Sized>(
    map: &CodeMap<'_>,
    reading: Reading,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let rules = reading.rules;
    let rip = registers.rip;
    // A call may be a function's last instruction, so that the return address is after the
    // function. Windows ignores this, and compilers put a nop or int3 there for its sake.
    let interrupted = position == Position::Interrupted || rules.is_windows();
    let lookup = if interrupted { rip } else { rip.wrapping_sub(1) };
    match map.find(lookup) {
        Some(found) => step_from(map, found, reading, registers, position, memory),
        None if rules.is_windows() => leaf(registers, memory),
        None => Err(UnwindError::UnknownCode { address: rip }),
    }
}

/// Does the same as [`step`] where the address that is looked up was found at this RVA: rip, or with precise
/// rules the byte before a return address.
pub(super) fn step_from<M: Memory + ?Sized>(
    map: &CodeMap<'_>,
    (region, lookup_rva): (&CodeRegion<'_>, u32),
    reading: Reading,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let rules = reading.rules;
    let interrupted = position == Position::Interrupted || rules.is_windows();
    let rva = if interrupted { lookup_rva } else { lookup_rva.wrapping_add(1) };
    let Some(function) = region.functions().find(lookup_rva) else {
        return without_entry(region, rva, rules, registers, position, memory);
    };
    let place = Place { map: Some(map), region, rva, function };
    step_in_function(place, reading, registers, interrupted, memory)
}

/// The place where a step begins: an RVA that belongs to a function.
#[derive(Clone, Copy)]
pub(super) struct Place<'c, 'a> {
    /// The map; `None` if the result must not depend on other regions.
    pub map: Option<&'c CodeMap<'a>>,
    pub region: &'c CodeRegion<'a>,
    pub rva: u32,
    pub function: RuntimeFunction,
}

/// Does the same as [`step`] from a place in a known function. Only for `interrupted` code it
/// checks whether rip is in an epilogue.
pub(super) fn step_in_function<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    reading: Reading,
    registers: &mut Registers,
    interrupted: bool,
    memory: &M,
) -> Result<Step, UnwindError> {
    step_by_codes_or_code(place, reading, registers, interrupted, memory)
        .or_else(|error| step_by_version_3(error, place, reading, registers, interrupted, memory))
}

fn step_by_codes_or_code<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    reading: Reading,
    registers: &mut Registers,
    interrupted: bool,
    memory: &M,
) -> Result<Step, UnwindError> {
    let site = Site::new(reading, place)?;
    let mut draft = Draft::new(registers, memory);
    let found = if interrupted { epilogue_at(&site, &mut draft) } else { Ok(None) };
    let unwound = match found {
        Ok(Some(unwound)) => Ok(unwound),
        Ok(None) => unwind_codes(&site, &mut draft),
        Err(error) => Err(error),
    };
    let (unwound, sources) = draft.finish(unwound)?;
    Ok(unwound.step(sources))
}

/// The results of a step, with addresses as values or as expressions.
struct Unwound<A> {
    trust: Trust,
    establisher_frame: A,
    // Not an `Option<Handler>`: its 12 bytes would be stored and read back in other sizes.
    handler_rva: Option<u32>,
    handler_data_rva: u32,
    caller: Position,
}

impl<A> Unwound<A> {
    #[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
    #[inline(always)]
    fn handler(&self) -> Option<Handler> {
        self.handler_rva.map(|rva| Handler { rva, data_rva: self.handler_data_rva })
    }
}

impl Unwound<u64> {
    #[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
    #[inline(always)]
    fn step(self, sources: Sources) -> Step {
        let Self { trust, establisher_frame, caller, .. } = self;
        // Only an interrupt's epilogue was executed between the frame and its caller.
        let kept = if trust == Trust::EpilogueInstructions && caller == Position::Interrupted {
            RegisterSet::ALL
        } else {
            NONVOLATILE
        };
        new_step(trust, establisher_frame, self.handler(), caller, kept, sources)
    }
}

const NONVOLATILE: RegisterSet = Convention::WindowsX64.nonvolatile();

/// Returns a step that loads the registers in `sources` and preserves `kept` of the rest.
#[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
#[inline(always)]
fn new_step(
    trust: Trust,
    establisher_frame: u64,
    handler: Option<Handler>,
    caller: Position,
    kept: RegisterSet,
    sources: Sources,
) -> Step {
    // A volatile register is pushed to be restored only by the handler of an interrupt. In other
    // functions the push is a way to allocate 8 bytes, which may have been overwritten since.
    let found = match caller {
        Position::Interrupted => sources.found,
        Position::ReturnAddress => sources.found.intersection(kept),
    };
    let kept = kept.difference(sources.found);
    let needed = sources.needed;
    Step { trust, establisher_frame, handler, caller, found, kept, needed }
}

/// Undoes the part of the prologue that ran before rip.
#[expect(clippy::inline_always, reason = "measured: the Draft must stay in registers")]
#[inline(always)]
fn unwind_codes<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Unwound<E::Address>, UnwindError> {
    let base = prologue::frame_base(site, effects)?;
    prologue::unwind(site, base, effects)
}

/// Executes the rest of an epilogue, if rip is in one.
#[inline]
fn epilogue_at<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Option<Unwound<E::Address>>, UnwindError> {
    if site.rules.has_version_3(site.info.version()) {
        return epilogue_of_version_3(site, effects);
    }
    // A chunk without codes has those of its parent to undo.
    if site.rules == Rules::Ntdll && site.info.slot_count() == 0 && !site.info.is_chained() {
        return Ok(None);
    }
    let establisher_frame = prologue::frame_base(site, effects)?;
    let unwound = |trust, machine_frame: bool, caller_rsp: E::Address| Unwound {
        trust,
        establisher_frame: match site.rules {
            // The frame register may be popped, but the return address is where it was.
            Rules::Ntdll if site.info.frame_register() != 0 && !machine_frame => {
                E::offset(caller_rsp, -8)
            }
            _ => establisher_frame,
        },
        handler_rva: None,
        handler_data_rva: 0,
        caller: Position::below(machine_frame),
    };
    let version = site.info.version();
    if version >= 2
        && let Some(epilogs) = site.info.epilogs()
    {
        let found = epilogue::by_codes(site, &epilogs, effects)?;
        let trust = Trust::EpilogueCodes;
        return Ok(found.map(|machine_frame| unwound(trust, machine_frame, effects.rsp())));
    }
    // Windows takes version 2 without EPILOG codes for a function without epilogues. Assemblers
    // that write version 2 without such codes prove it wrong.
    if version >= 2 && site.rules.is_windows() {
        return Ok(None);
    }
    let found = epilogue::by_code(site, effects)?;
    Ok(found.map(|leaving| {
        let machine_frame = leaving == Leaving::InterruptReturn;
        unwound(Trust::EpilogueInstructions, machine_frame, effects.rsp())
    }))
}

/// Does the same in a function of version 3. An epilogue that no descriptor covers is found by its
/// instructions, under precise rules.
#[cold]
fn epilogue_of_version_3<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Option<Unwound<E::Address>>, UnwindError> {
    let found = version3::epilogue_at(site, effects)?;
    if found.is_some() || site.rules.is_windows() {
        return Ok(found);
    }
    let establisher_frame = effects.rsp();
    Ok(epilogue::by_code(site, effects)?.map(|leaving| Unwound {
        trust: Trust::EpilogueInstructions,
        establisher_frame,
        handler_rva: None,
        handler_data_rva: 0,
        caller: Position::below(leaving == Leaving::InterruptReturn),
    }))
}

/// Unwinds code without a RUNTIME_FUNCTION: a leaf, which has not changed rsp or any nonvolatile
/// register.
#[cold]
fn without_entry<M: Memory + ?Sized>(
    region: &CodeRegion<'_>,
    rva: u32,
    rules: Rules,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    if rules.is_windows() {
        return leaf(registers, memory);
    }
    let address = registers.rip;
    if position == Position::ReturnAddress {
        return Err(UnwindError::CallerWithoutEntry { address });
    }
    if !region.is_executable(rva) {
        return Err(UnwindError::UnknownCode { address });
    }
    let establisher_frame = registers.rsp();
    let mut draft = Draft::new(registers, memory);
    let unwound = chkstk::unwind(region, rva, &mut draft);
    if let (true, sources) = draft.finish(unwound)? {
        // The function preserves even the registers that it uses.
        let (trust, caller, kept) = (Trust::KnownCode, Position::ReturnAddress, RegisterSet::ALL);
        return Ok(new_step(trust, establisher_frame, None, caller, kept, sources));
    }
    leaf(registers, memory)
}

fn leaf<M: Memory + ?Sized>(registers: &mut Registers, memory: &M) -> Result<Step, UnwindError> {
    let establisher_frame = registers.rsp();
    let mut draft = Draft::new(registers, memory);
    let popped = draft.pop_rip();
    let ((), sources) = draft.finish(popped)?;
    let (trust, caller) = (Trust::Leaf, Position::ReturnAddress);
    Ok(new_step(trust, establisher_frame, None, caller, NONVOLATILE, sources))
}

/// Returns the info of a direct entry, if its version is supported by the rules and has the layout of
/// versions 1 and 2. Versions 0 and 4 to 7 have none; Windows' own code treats 0 as 1, and every other
/// version as 2.
#[inline]
fn info_of<'a>(
    region: &'a CodeRegion<'_>,
    function: RuntimeFunction,
    rules: Rules,
) -> Result<UnwindInfo<'a>, UnwindError> {
    let info = UnwindInfo::read(region, function.unwind_info)?;
    match info.version() {
        1 | 2 => Ok(info),
        _ if rules.is_windows() && !rules.has_version_3(info.version()) => Ok(info),
        version => Err(UnwindError::UnsupportedVersion { version, rva: info.rva() }),
    }
}

/// Returns the info of a direct entry, if its version is supported by the rules: 3, too.
fn any_info_of<'a>(
    region: &'a CodeRegion<'_>,
    function: RuntimeFunction,
    rules: Rules,
) -> Result<UnwindInfo<'a>, UnwindError> {
    let info = UnwindInfo::read(region, function.unwind_info)?;
    if rules.has_version_3(info.version()) { Ok(info) } else { info_of(region, function, rules) }
}

/// Returns the entry that an indirect entry refers to, or the entry itself if it is direct.
pub(crate) fn resolve_indirect(
    region: &CodeRegion<'_>,
    mut function: RuntimeFunction,
) -> Result<RuntimeFunction, UnwindError> {
    for _ in 0..=info::CHAIN_LIMIT {
        let Some(rva) = function.indirect() else { return Ok(function) };
        function = region
            .unwind_data(rva)
            .and_then(<[u8]>::first_chunk::<SIZE_OF_RUNTIME_FUNCTION>)
            .map(RuntimeFunction::from_bytes)
            .ok_or(UnwindError::UnwindDataUnmapped { rva })?;
    }
    Err(UnwindError::ChainTooLong { rva: function.unwind_info })
}
