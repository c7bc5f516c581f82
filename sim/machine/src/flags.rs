//! Arithmetic flags, computed on demand.
//!
//! The flags of most results are never used, so an operation stores only its result and the vector
//! of its carries.

/// CF.
pub(super) const CF: u64 = 1;
/// Bit 1 of rflags, which is always set.
const ALWAYS: u64 = 1 << 1;
/// PF.
pub(super) const PF: u64 = 1 << 2;
/// AF.
pub(super) const AF: u64 = 1 << 4;
/// ZF.
pub(super) const ZF: u64 = 1 << 6;
/// SF.
pub(super) const SF: u64 = 1 << 7;
/// IF, which user code cannot clear.
const IF: u64 = 1 << 9;
/// DF.
pub(super) const DF: u64 = 1 << 10;
/// OF.
pub(super) const OF: u64 = 1 << 11;
/// NT, AC and ID: user code may set them, but they have no effect here.
const INERT: u64 = 1 << 14 | 1 << 18 | 1 << 21;

/// CF, PF, AF, ZF, SF and OF in the form of the values that they derive from, and the other flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    /// ZF is set if this value is 0.
    zero: u64,
    /// SF is the top bit of this value; PF is the parity of its low byte.
    sign: u64,
    /// Bit 63 is the carry (or borrow) out of the operation's top bit: CF. Bit 62 is the carry into
    /// the top bit: OF is set if the two differ. Bit 3 is the carry out of bit 3: AF. The other
    /// bits have no meaning.
    carries: u64,
    /// DF and the inert flags.
    other: u64,
}

/// Truncates `value` to the low `BITS` bits.
#[inline(always)]
pub(super) const fn low<const BITS: u32>(value: u64) -> u64 {
    value & (u64::MAX >> (64 - BITS))
}

/// Returns the low `BITS` bits of `value`, sign-extended.
#[inline(always)]
pub(super) const fn sign_extend<const BITS: u32>(value: u64) -> u64 {
    ((value << (64 - BITS)).cast_signed() >> (64 - BITS)).cast_unsigned()
}

impl Flags {
    /// The flags of a new thread.
    pub(super) const START: Self = Self { zero: 1, sign: 1, carries: 0, other: 0 };

    /// Returns the flags after an operation of `BITS` bits with this result and these carries of
    /// each bit, which are 0 for a logical operation.
    #[inline(always)]
    pub(super) const fn after<const BITS: u32>(self, result: u64, carries: u64) -> Self {
        let result = sign_extend::<BITS>(result);
        let carries = if BITS == 64 { carries } else { carries << (64 - BITS) | carries & 1 << 3 };
        Self { zero: result, sign: result, carries, other: self.other }
    }

    /// Sets only CF and OF.
    #[inline]
    pub(super) const fn with_carry_overflow(self, carry: bool, overflow: bool) -> Self {
        let carries =
            self.carries & 1 << 3 | (carry as u64) << 63 | ((carry != overflow) as u64) << 62;
        Self { carries, ..self }
    }

    /// Sets only CF.
    #[inline(always)]
    pub(super) const fn with_carry(self, carry: bool) -> Self {
        let overflow = self.overflow();
        self.with_carry_overflow(carry, overflow)
    }

    /// Sets only ZF.
    #[inline]
    pub(super) const fn with_zero(self, zero: bool) -> Self {
        Self { zero: !zero as u64, ..self }
    }

    #[inline(always)]
    pub(super) const fn carry(self) -> bool {
        self.carries >> 63 != 0
    }

    #[inline(always)]
    pub(super) const fn overflow(self) -> bool {
        (self.carries ^ self.carries << 1) >> 63 != 0
    }

    #[inline(always)]
    const fn sign(self) -> bool {
        self.sign >> 63 != 0
    }

    #[inline(always)]
    pub(super) const fn zero(self) -> bool {
        self.zero == 0
    }

    #[inline(always)]
    const fn parity(self) -> bool {
        (self.sign as u8).count_ones().is_multiple_of(2)
    }

    /// Returns the step of a string instruction per byte of its operand: 1 or -1 (DF).
    #[inline]
    pub(super) const fn direction(self) -> u64 {
        if self.other & DF == 0 { 1 } else { u64::MAX }
    }

    /// Returns true if the condition with this encoding (the low four bits of jcc's opcode) holds.
    #[inline(always)]
    pub(super) const fn condition(self, code: u8) -> bool {
        match code & 15 {
            0 => self.overflow(),
            1 => !self.overflow(),
            2 => self.carry(),
            3 => !self.carry(),
            4 => self.zero(),
            5 => !self.zero(),
            6 => self.carry() || self.zero(),
            7 => !(self.carry() || self.zero()),
            8 => self.sign(),
            9 => !self.sign(),
            10 => self.parity(),
            11 => !self.parity(),
            12 => self.sign() != self.overflow(),
            13 => self.sign() == self.overflow(),
            14 => self.zero() || self.sign() != self.overflow(),
            _ => !(self.zero() || self.sign() != self.overflow()),
        }
    }

    /// Returns rflags.
    pub(super) const fn to_bits(self) -> u64 {
        let mut bits = self.other | ALWAYS | IF;
        if self.carry() {
            bits |= CF;
        }
        if self.parity() {
            bits |= PF;
        }
        if self.carries & 1 << 3 != 0 {
            bits |= AF;
        }
        if self.zero() {
            bits |= ZF;
        }
        if self.sign() {
            bits |= SF;
        }
        if self.overflow() {
            bits |= OF;
        }
        bits
    }

    /// Creates flags from the bits that user code may set.
    pub(super) const fn from_bits(bits: u64) -> Self {
        let carry = bits & CF != 0;
        let overflow = bits & OF != 0;
        let carries = if bits & AF == 0 { 0 } else { 1 << 3 };
        Self {
            zero: !bits & ZF,
            sign: if bits & SF == 0 { 0 } else { 1 << 63 } | (bits & PF == 0) as u64,
            carries,
            other: bits & (DF | INERT),
        }
        .with_carry_overflow(carry, overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_survives() {
        for n in 0..1_u64 << 10 {
            let places = [CF, PF, AF, ZF, SF, OF, DF, 1 << 14, 1 << 18, 1 << 21];
            let bits = places.iter().enumerate().filter(|(i, _)| n >> i & 1 != 0);
            let bits = bits.map(|(_, bit)| bit).sum::<u64>() | ALWAYS | IF;
            assert_eq!(Flags::from_bits(bits).to_bits(), bits, "{bits:#x}");
            for carry in [false, true] {
                let expected = bits & !CF | if carry { CF } else { 0 };
                assert_eq!(Flags::from_bits(bits).with_carry(carry).to_bits(), expected);
                let expected = bits & !ZF | if carry { ZF } else { 0 };
                assert_eq!(Flags::from_bits(bits).with_zero(carry).to_bits(), expected);
            }
        }
        assert_eq!(Flags::from_bits(u64::MAX).to_bits(), 0x24_4ED7);
        assert_eq!(Flags::START.to_bits(), ALWAYS | IF);
    }

    #[test]
    fn conditions_are_those_of_the_manual() {
        for n in 0..32_u64 {
            let bit = |i: u64, flag| if n >> i & 1 != 0 { flag } else { 0 };
            let bits = bit(0, CF) | bit(1, PF) | bit(2, ZF) | bit(3, SF) | bit(4, OF);
            let flags = Flags::from_bits(bits);
            let set = |flag| bits & flag != 0;
            let holds = [
                set(OF),
                set(CF),
                set(ZF),
                set(CF) || set(ZF),
                set(SF),
                set(PF),
                set(SF) != set(OF),
                set(ZF) || set(SF) != set(OF),
            ];
            for (code, holds) in (0..).step_by(2).zip(holds) {
                assert_eq!(flags.condition(code), holds, "{code} {bits:#x}");
                assert_eq!(flags.condition(code + 1), !holds, "{code} {bits:#x}");
            }
        }
    }

    #[test]
    fn narrow_results_are_seen_at_their_width() {
        let flags = Flags::START.after::<8>(0x180, 1 << 7);
        assert_eq!(flags.to_bits() & !(ALWAYS | IF), CF | OF | SF);
        let flags = Flags::START.after::<16>(0x1_0000, 1 << 15 | 1 << 14 | 1 << 3);
        assert_eq!(flags.to_bits() & !(ALWAYS | IF), CF | ZF | PF | AF);
    }
}
