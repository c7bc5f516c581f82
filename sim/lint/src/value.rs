//! The values that are followed through a function, and their encoding as numbers for the unwinder.

use clr_unwind::Gpr;

/// rsp at the entry of every function (VA): below a 16-byte boundary by 8, as both calling conventions
/// demand, and no multiple of 32 or 64 either, so that aligning it moves it.
pub(crate) const ENTRY_RSP: u64 = 0x7A00_0010_0028;

/// The return address that every function is entered with. It is in no code.
pub(crate) const RETURN_ADDRESS: u64 = 0x5E7A_0000_0000_0000;

const CALLER: u64 = 0x5CA1_0000_0000_0000;
const OTHER: u64 = 0x5071_0000_0000_0000;
/// Below each address of the stack: an unknown rsp is below the frame.
const UNKNOWN: u64 = 0x5BAD_0000_0000;
const UNSAVED: u64 = 0x5A00_0000_0000_0000;

/// Bit of the register's number in these: sums with small numbers leave it as it is.
const REGISTER: u32 = 24;

/// Bytes from rsp at entry within which an address is one on the stack.
pub(crate) const FARTHEST: i64 = 0x1000_0000;

/// A value in a register or in a slot of the stack, as far as it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The value that the integer register has in the caller.
    Caller(Gpr),
    /// The value that xmm*n* has in the caller.
    CallerXmm(u8),
    /// The return address.
    Return,
    /// An address on the stack: rsp at entry plus N bytes.
    Stack(i64),
    /// A constant.
    Number(u64),
    /// Any value: it may be an address on the stack or a value of the caller.
    Unknown,
    /// A value that is neither an address of this frame nor a register of the caller: an argument, or a
    /// result of arithmetic.
    Other,
}

impl Value {
    /// Returns true if the value may lead to the frame or to a register of the caller.
    pub(crate) const fn is_followed(self) -> bool {
        !matches!(self, Self::Number(_) | Self::Other)
    }

    /// Returns true if the value is, or may be, an address on the stack.
    pub(crate) const fn may_be_stack(self) -> bool {
        matches!(self, Self::Stack(_) | Self::Unknown)
    }

    /// Returns the address N bytes from rsp at entry. No stack goes so far that a larger N would be on it:
    /// the number is one that stands for a size that cannot be allocated, on a path that ends in an overflow.
    const fn stack(at: Option<i64>) -> Self {
        match at {
            Some(at) if at >= -FARTHEST && at < FARTHEST => Self::Stack(at),
            _ => Self::Unknown,
        }
    }

    /// Returns the sum, with 64 bits.
    pub(crate) const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stack(at), Self::Number(n)) | (Self::Number(n), Self::Stack(at)) => {
                Self::stack(at.checked_add(n.cast_signed()))
            }
            (Self::Number(a), Self::Number(b)) => Self::Number(a.wrapping_add(b)),
            (value, Self::Number(0)) => value,
            _ => Self::mixed(self, other),
        }
    }

    /// Returns the difference, with 64 bits.
    pub(crate) const fn minus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stack(at), Self::Number(n)) => Self::stack(at.checked_sub(n.cast_signed())),
            (Self::Stack(a), Self::Stack(b)) => Self::Number(a.wrapping_sub(b).cast_unsigned()),
            (Self::Number(a), Self::Number(b)) => Self::Number(a.wrapping_sub(b)),
            (value, Self::Number(0)) => value,
            _ => Self::mixed(self, other),
        }
    }

    /// Returns the bitwise and, with 64 bits.
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stack(at), Self::Number(mask)) if mask.cast_signed() < 0 => {
                let address = ENTRY_RSP.wrapping_add(at.cast_unsigned()) & mask;
                Self::Stack(address.wrapping_sub(ENTRY_RSP).cast_signed())
            }
            (Self::Number(a), Self::Number(b)) => Self::Number(a & b),
            _ => Self::mixed(self, other),
        }
    }

    /// Returns the result of an operation on both values that is not followed.
    pub(crate) const fn mixed(self, other: Self) -> Self {
        if self.may_be_stack() || other.may_be_stack() { Self::Unknown } else { Self::Other }
    }

    /// Returns a number that differs for values that decide over a frame: constants do not.
    pub(crate) fn decisive(self) -> u64 {
        let value = if matches!(self, Self::Number(_)) { Self::Other } else { self };
        value.in_slot(0)
    }

    /// Returns the number that stands for this value in `register`.
    pub(crate) fn in_register(self, register: Gpr) -> u64 {
        let number = u64::from(register.number()) << REGISTER;
        match self {
            Self::Caller(of) => caller(of),
            Self::Return => RETURN_ADDRESS,
            Self::Stack(at) => ENTRY_RSP.wrapping_add(at.cast_unsigned()),
            Self::Number(n) => n,
            Self::Unknown => UNKNOWN | number,
            Self::Other | Self::CallerXmm(_) => OTHER | number,
        }
    }

    /// Returns the number that stands for this value in the stack slot at `at` bytes from rsp at entry.
    pub(crate) fn in_slot(self, at: i64) -> u64 {
        match self {
            Self::Unknown => UNKNOWN | 0xFF << REGISTER,
            Self::Other | Self::CallerXmm(_) => UNSAVED | at.cast_unsigned() & u64::from(u32::MAX),
            value => value.in_register(Gpr::Rsp),
        }
    }
}

/// Returns the number that stands for the value of `register` in the caller.
pub(crate) fn caller(register: Gpr) -> u64 {
    CALLER | u64::from(register.number()) << REGISTER
}

/// Returns the number that stands for the value of xmm*n* in the caller.
pub(crate) const fn caller_xmm(n: u8) -> u128 {
    let low = CALLER | 0x100 | n as u64;
    (low as u128) << 64 | low as u128
}

/// Returns true if `number` stands for a value that may be anything.
pub(crate) const fn is_unknown(number: u64) -> bool {
    number & !(0xFF << REGISTER) == UNKNOWN
}

/// A number as it can be shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shown {
    /// The value of this register in the caller.
    Caller(Gpr),
    /// The return address.
    ReturnAddress,
    /// An address N bytes from rsp.
    Rsp(i64),
    /// The word N bytes from rsp, in which neither the return address nor a register of the caller was
    /// stored.
    Word(i64),
    /// The value that this register has at the instruction, which is not the caller's.
    Register(Gpr),
    /// The value that xmm*n* has at the instruction, which is not the caller's.
    Vector(u8),
    /// Bytes at a place where the caller's value was never stored.
    Elsewhere,
    /// No value: the unwinder gives an error.
    Nothing,
    /// No value: it would be in memory at this register of the caller's plus N bytes.
    Beyond(Gpr, i64),
    /// Any other number.
    Number(u64),
}

impl Shown {
    /// Returns the meaning of an address that is not on the stack.
    pub(crate) fn beyond(address: u64) -> Self {
        let half = 1 << (REGISTER - 1);
        let rounded = address.wrapping_add(half) & !(2 * half - 1);
        let register = Gpr::from_number((rounded >> REGISTER) as u8);
        if rounded == caller(register) {
            Self::Beyond(register, address.wrapping_sub(rounded).cast_signed())
        } else {
            Self::Nothing
        }
    }

    /// Returns the meaning of a number where rsp is `rsp` bytes from its value at entry.
    pub(crate) fn new(number: u64, rsp: i64) -> Self {
        let register = Gpr::from_number((number >> REGISTER) as u8);
        match number & !0xFFFF_FFFF {
            _ if number == RETURN_ADDRESS => Self::ReturnAddress,
            CALLER => Self::Caller(register),
            OTHER | UNKNOWN => Self::Register(register),
            UNSAVED => Self::Word(i64::from((number as u32).cast_signed()) - rsp),
            _ => {
                let at = number.wrapping_sub(ENTRY_RSP).cast_signed();
                if (-FARTHEST..FARTHEST).contains(&at) {
                    Self::Rsp(at - rsp)
                } else {
                    Self::Number(number)
                }
            }
        }
    }
}

impl core::fmt::Display for Shown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let sum = |base: &str, n: i64| {
            let sign = if n < 0 { '-' } else { '+' };
            format!("{base}{sign}{:#x}", n.unsigned_abs())
        };
        let signed = |n: &i64| sum("rsp", *n);
        match self {
            Self::Caller(register) => write!(f, "the caller's {}", register.name()),
            Self::ReturnAddress => f.write_str("the return address"),
            Self::Rsp(n) => f.write_str(&signed(n)),
            Self::Word(n) => write!(f, "the word at [{}]", signed(n)),
            Self::Vector(n) => write!(f, "xmm{n} as it is here"),
            Self::Elsewhere => f.write_str("bytes of another place"),
            Self::Nothing => f.write_str("an error"),
            Self::Beyond(register, n) => {
                let name = register.name();
                write!(f, "the memory at {}, where {name} is the caller's", sum(name, *n))
            }
            Self::Register(register) => write!(f, "{} as it is here", register.name()),
            Self::Number(n) => write!(f, "{n:#x}"),
        }
    }
}
