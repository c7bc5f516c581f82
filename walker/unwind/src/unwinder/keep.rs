//! Steps by UNWIND_INFO whose rule the region does not have yet.
//!
//! The parts are not inlined into each other: the stack need of a step in a signal handler is that of
//! the largest one, not of their sum.

use super::{Position, Step, UnwindError, Unwinder, code_place, rip_rva, win64};
use crate::code_map::CodeRegion;
use crate::memory::Memory;
use crate::registers::Registers;

impl<'a> Unwinder<'_, 'a> {
    /// Makes a step by the unwind data at an RVA, and keeps its rule in the region, if there is one and
    /// a slot is free.
    #[inline(never)]
    pub(super) fn step_and_keep<M: Memory + ?Sized>(
        &self,
        (region, rva): (&CodeRegion<'a>, u32),
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        match compile_and_keep(region, rva, position) {
            Some(rule) => self.apply(&rule, registers, memory),
            None => self.step_without_rule((region, rva), registers, position, memory),
        }
    }

    #[inline(never)]
    fn apply<M: Memory + ?Sized>(
        &self,
        rule: &win64::Rule,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        Ok(rule.apply(registers, memory)?.within(self.preserved))
    }

    #[inline(never)]
    fn step_without_rule<M: Memory + ?Sized>(
        &self,
        (region, rva): (&CodeRegion<'a>, u32),
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let Some(function) = region.functions().find(rva) else {
            return self.any_step(registers, position, memory);
        };
        let map = Some(self.map);
        let place = win64::Place { map, region, rva: rip_rva(rva, position), function };
        if position == Position::ReturnAddress && function.indirect().is_none() {
            return self.step_from_call(place, registers, memory);
        }
        let interrupted = position == Position::Interrupted;
        let step = win64::step_in_function(place, self.reading(), registers, interrupted, memory)?;
        Ok(step.within(self.preserved))
    }

    #[inline(never)]
    fn step_from_call<M: Memory + ?Sized>(
        &self,
        place: win64::Place<'_, '_>,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        win64::step_from_call(place, self.reading().unix, self.preserved, registers, memory)
    }
}

/// Compiles the rule of an RVA, and keeps it in the region if a slot is free. Returns `None` if there is
/// no rule, or the region has it already or has no room.
#[inline(never)]
fn compile_and_keep(region: &CodeRegion<'_>, rva: u32, position: Position) -> Option<win64::Rule> {
    let (rules, key) = (region.rules(), code_place(rva, position));
    if !rules.has_room(key) || rules.get(key).is_some() {
        return None;
    }
    let rule = win64::compile(None, region, rva, position);
    let kept = rule.unwrap_or_default();
    let is_after_call = position == Position::ReturnAddress && region.is_call(rva);
    rules.put(key, if is_after_call { kept.after_call() } else { kept }.to_words());
    rule
}
