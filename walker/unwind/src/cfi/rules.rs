//! The distinct rules of an image, each kept once.

use super::error::{CfiError, CfiProblem};
use super::program::{State, Terms};
use super::row::RegisterRule;
use super::rows::RuleId;
use super::rule::{GeneralRule, Place, Rule};
use crate::registers::Gpr;
use alloc::vec;
use alloc::vec::Vec;

/// The distinct rules, by kind.
pub(super) struct Rules {
    pub(super) usual: Vec<Rule>,
    /// Hash table of `usual`: an index plus 1, or 0 for an empty slot. The length is a power of
    /// two.
    index: Vec<u32>,
    pub(super) unusual: Vec<GeneralRule>,
    pub(super) registers: Vec<(Gpr, RegisterRule)>,
    pub(super) faults: Vec<CfiError>,
    /// Maximum number of register rules of all general rules: in a hostile section each could have
    /// sixteen.
    general_limit: usize,
}

impl Rules {
    pub(super) fn new(len: usize) -> Self {
        Self {
            usual: Vec::with_capacity(256),
            index: vec![0; 1024],
            unusual: Vec::new(),
            registers: Vec::new(),
            faults: Vec::new(),
            general_limit: 4096 + len / 4,
        }
    }

    pub(super) fn fault(&mut self, error: CfiError) -> RuleId {
        if self.faults.last() != Some(&error) && self.faults.len() < RuleId::LIMIT {
            self.faults.push(error);
        }
        RuleId::of_fault(self.faults.len() - 1)
    }

    /// Returns a simple rule with this hash, adding it if it is new.
    #[inline]
    pub(super) fn simple(&mut self, rule: Rule, hash: u64) -> RuleId {
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let Some(&known) = self.index.get(slot & mask) else { return RuleId::NOTHING };
            let Some(at) = (known as usize).checked_sub(1) else { break };
            if self.usual.get(at) == Some(&rule) {
                return RuleId::of_simple(at);
            }
            slot = (slot + 1) & mask;
        }
        let at = self.usual.len();
        if at >= RuleId::LIMIT {
            return RuleId::NOTHING;
        }
        self.usual.push(rule);
        if let Some(known) = self.index.get_mut(slot & mask) {
            *known = at as u32 + 1;
        }
        if self.usual.len() * 2 > self.index.len() {
            self.grow();
        }
        RuleId::of_simple(at)
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.index.len() * 2 - 1;
        let mut index = vec![0; mask + 1];
        for (at, rule) in (1..).zip(&self.usual) {
            let mut slot = rule.hash(rule.hash_of_saved()) as usize & mask;
            // The table is half empty, so this ends.
            while index.get(slot & mask).is_some_and(|known| *known != 0) {
                slot += 1;
            }
            if let Some(known) = index.get_mut(slot & mask) {
                *known = at;
            }
        }
        self.index = index;
    }

    /// Returns the rule for a state that no simple rule fits, adding it if it is new.
    #[cold]
    pub(super) fn general(
        &mut self,
        state: &State,
        terms: &Terms<'_>,
        signal_frame: bool,
        place: Place,
    ) -> RuleId {
        let first = self.registers.len();
        if first > self.general_limit {
            return self.fault(place.error(CfiProblem::TooManyRules));
        }
        self.registers.extend(state.registers(terms));
        let rule = GeneralRule {
            cfa: state.cfa(terms),
            return_address: state.return_address(terms),
            signal_frame,
            registers: (first as u32, (self.registers.len() - first) as u8),
            place,
        };
        let same = self.unusual.last().is_some_and(|last| {
            let known = self.registers.get(last.registers.0 as usize..first);
            let without_registers = GeneralRule { registers: rule.registers, ..*last };
            without_registers == rule && known == self.registers.get(first..)
        });
        if same {
            self.registers.truncate(first);
        } else {
            self.unusual.push(rule);
        }
        RuleId::of_general(self.unusual.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfi::row::Column;

    /// More rules than there is room for at first; those of one half differ in their saved registers.
    #[test]
    fn each_rule_is_kept_once_however_many_there_are() {
        let mut rules = Rules::new(0);
        let known: Vec<Rule> = (1..=3000)
            .map(|n| {
                let rule = Rule::new().with_cfa(Column::from(Gpr::Rsp), 8 * (n / 2)).unwrap();
                rule.with_load(Gpr::Rbx.number(), -8 * (n % 2 + 2)).unwrap()
            })
            .collect();
        for time in 1..=2 {
            for (at, rule) in known.iter().enumerate() {
                let id = rules.simple(*rule, rule.hash(rule.hash_of_saved()));
                assert_eq!(id, RuleId::of_simple(at), "time {time}");
            }
        }
        assert_eq!(rules.usual, known);
    }

    /// All rules begin their search at the same slot, or at the last one.
    #[test]
    fn rules_with_the_same_hash_are_reported_apart() {
        for hash in [0, 5, u64::MAX] {
            let mut rules = Rules::new(0);
            for at in [0_u8, 1, 2, 0, 1, 2, 3] {
                let rule = Rule::new().with_cfa(Column::from(Gpr::Rbp), i32::from(at)).unwrap();
                assert_eq!(rules.simple(rule, hash), RuleId::of_simple(usize::from(at)));
            }
        }
    }
}
