//! A second reader of CFI, and mistakes that can be planted in it.
//!
//! The reader shares no code with the walker's, nor with gimli, which writes the CFI. Its code is
//! meant to be read, not to be fast: each step executes the CFI anew. A test that claims to find
//! wrong unwinds must find each planted [`Bug`].

mod bug;
mod expression;
mod image;
mod program;
mod reader;

pub use bug::Bug;
use image::Image;
use program::{Cfa, Row, Rule};

use clr_codegen::{Format, LinkedProgram};
use clr_unwind::{Gpr, Memory, Position, Registers, Unreadable};

/// A reason why a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No image contains rip.
    UnknownCode,
    /// No FDE covers the address.
    NoDescription,
    /// Memory could not be read.
    Memory(Unreadable),
    /// The image is not an ELF file with a pointer to its `.eh_frame`.
    BadImage,
    /// The CFI is truncated or contains something unknown.
    BadTable,
    /// The CFI marks the caller as unknown.
    End,
    /// rsp decreases, which a bug treats as an error.
    GoesDown,
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Self::Memory(error)
    }
}

/// DWARF number of the return address.
const RETURN_ADDRESS: u64 = 16;

/// An unwinder for the ELF images of a program.
#[derive(Clone, Debug)]
pub struct Unwinder<'a> {
    images: Vec<Image<'a>>,
    bug: Option<Bug>,
}

impl<'a> Unwinder<'a> {
    /// Creates an unwinder without a bug.
    ///
    /// # Errors
    /// [`Error`] if an image cannot be parsed.
    pub fn new(linked: &'a LinkedProgram) -> Result<Self, Error> {
        let units = linked.units.iter().filter(|unit| unit.format == Format::Elf);
        let images = units.map(|unit| Image::new(unit.base, &unit.bytes));
        Ok(Self { images: images.collect::<Result<_, _>>()?, bug: None })
    }

    /// Creates an unwinder for an image that is not a file: its bytes from RVA 0 to the end of its
    /// `.eh_frame`, which begins at `eh_frame` (RVA) and ends with a length of 0. `size` is the image's size
    /// in bytes.
    ///
    /// # Errors
    /// [`Error::BadTable`] if the section cannot be parsed.
    pub fn of_eh_frame(
        base: u64,
        size: u64,
        bytes: &'a [u8],
        eh_frame: u32,
    ) -> Result<Self, Error> {
        let image = Image::of_eh_frame(base, size, bytes, eh_frame.into())?;
        Ok(Self { images: vec![image], bug: None })
    }

    /// Returns the addresses (VA) at which functions begin.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        self.images.iter().flat_map(Image::begins)
    }

    /// Plants this bug, and no other.
    #[must_use]
    pub fn with_bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Returns the address at which a frame's description is looked up (VA).
    fn place(&self, rip: u64, position: Position) -> u64 {
        let calls = position == Position::ReturnAddress;
        rip.wrapping_sub(u64::from(calls && self.bug != Some(Bug::RowAtReturnAddress)))
    }

    /// Returns true if a frame is in one of the unwinder's images.
    #[must_use]
    pub fn knows(&self, rip: u64, position: Position) -> bool {
        let inside = rip.wrapping_sub(u64::from(position == Position::ReturnAddress));
        self.images.iter().any(|image| image.contains(inside))
    }

    /// Unwinds `registers` from a frame to its caller, and returns the position of the caller's
    /// rip.
    ///
    /// # Errors
    /// [`Error`]; `registers` are then unchanged.
    pub fn step<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Position, Error> {
        let address = self.place(registers.rip, position);
        let image = self.images.iter().find(|image| image.contains(address));
        let fde = image.ok_or(Error::UnknownCode)?.find(address).ok_or(Error::NoDescription)?;
        let row = program::row(fde, address, self.bug)?;
        let frame = Frame { registers: *registers, memory, bug: self.bug };
        let caller = frame.caller(&row, fde.cie.return_address)?;
        let goes_down = caller.rsp() < registers.rsp();
        if self.bug == Some(Bug::SignalStackRefused) && fde.cie.signal && goes_down {
            return Err(Error::GoesDown);
        }
        *registers = caller;
        let interrupted = fde.cie.signal && self.bug != Some(Bug::SignalFrameIsCall);
        Ok(if interrupted { Position::Interrupted } else { Position::ReturnAddress })
    }
}

/// A frame whose caller is to be found.
struct Frame<'m, M: ?Sized> {
    registers: Registers,
    memory: &'m M,
    bug: Option<Bug>,
}

impl<M: Memory + ?Sized> Frame<'_, M> {
    fn gpr(&self, number: u64) -> Option<Gpr> {
        use Gpr::{R8, R9, R10, R11, R12, R13, R14, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};
        let mut order =
            [Rax, Rdx, Rcx, Rbx, Rsi, Rdi, Rbp, Rsp, R8, R9, R10, R11, R12, R13, R14, R15];
        if self.bug == Some(Bug::RegisterOrderMixed) {
            order.swap(4, 7);
        }
        order.get(usize::try_from(number).ok()?).copied()
    }

    fn register(&self, number: u64) -> Result<u64, Error> {
        match self.gpr(number) {
            Some(register) => Ok(self.registers.get(register)),
            None if number == RETURN_ADDRESS => Ok(self.registers.rip),
            None => Err(Error::BadTable),
        }
    }

    fn caller(&self, row: &Row<'_>, return_address: u64) -> Result<Registers, Error> {
        let cfa = match row.cfa {
            Cfa::Above(register, offset) => {
                self.register(register)?.wrapping_add(offset.cast_unsigned())
            }
            Cfa::Expression(expression) => self.evaluate(expression, None)?,
        };
        let mut caller = self.registers;
        // The default rule for rsp.
        caller.set(Gpr::Rsp, cfa);
        for (number, rule) in &row.rules {
            let at = |offset: i64| cfa.wrapping_add(offset.cast_unsigned());
            let value = match rule {
                Rule::Same => self.register(*number)?,
                Rule::Undefined if *number == return_address => return Err(Error::End),
                Rule::Undefined => 0,
                Rule::At(offset) => self.memory.read_u64(at(*offset))?,
                Rule::Value(offset) => at(*offset),
                Rule::In(other) => self.register(*other)?,
                Rule::AtExpression(expression) => {
                    self.memory.read_u64(self.evaluate(*expression, Some(cfa))?)?
                }
                Rule::ValueExpression(expression) => self.evaluate(*expression, Some(cfa))?,
            };
            if *number == return_address {
                caller.rip = value;
            } else {
                caller.set(self.gpr(*number).ok_or(Error::BadTable)?, value);
            }
        }
        Ok(caller)
    }
}
