//! Exports of a profiler's library that threads of the program call, and the memory that these get pointers to.

/// An export of a profiler's library, and what its calls are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Name of the export.
    pub name: String,
    /// Arguments, at most [`MOST_ARGUMENTS`](Self::MOST_ARGUMENTS).
    pub arguments: Vec<ExportArgument>,
    /// The buffer that gets the result: as many of its low bytes as the buffer has.
    pub result: Option<u32>,
    /// The conditions on buffers after each call.
    pub expect: Vec<ExpectedContent>,
}

impl Export {
    /// The maximum number of arguments.
    pub const MOST_ARGUMENTS: usize = 12;
}

/// An argument of an export. Buffers are named by their indices in [`Scenario::buffers`](crate::Scenario::buffers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportArgument {
    /// An integer.
    Number(u64),
    /// The address of a buffer.
    Address(u32),
    /// The [number](Buffer::width) that a buffer holds when the call begins.
    Content(u32),
}

/// Memory that exports get a pointer to. It keeps its content from call to call of an execution of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the buffer.
    pub name: String,
    /// Size in bytes, at most [`MOST_BYTES`](Self::MOST_BYTES).
    pub size: u32,
    /// The number that the buffer holds at first. Bytes that nothing sets are 0.
    pub number: u64,
    /// The text that the buffer holds at first, in UTF-8.
    pub text: Option<String>,
}

impl Buffer {
    /// The size of a buffer whose text does not say it: a pointer's.
    pub const SIZE: u32 = 8;
    /// The maximum size.
    pub const MOST_BYTES: u32 = 1 << 16;

    /// Returns the number of bytes, at most 8, that are read and written as a number, the lowest first.
    #[must_use]
    pub fn width(&self) -> usize {
        self.size.min(8) as usize
    }

    /// Returns true if the buffer can hold a number.
    #[must_use]
    pub fn fits(&self, number: u64) -> bool {
        self.width() == 8 || number >> (8 * self.width()) == 0
    }
}

/// A condition on a buffer after a call: it holds a number, or any other than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedContent {
    /// Index of the buffer.
    pub buffer: u32,
    /// The number that it must hold.
    pub is: Option<u64>,
    /// The number that it must not hold.
    pub not: Option<u64>,
}

impl ExpectedContent {
    /// Returns true if a number is as expected.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        self.is.is_none_or(|is| is == number) && self.not != Some(number)
    }
}
