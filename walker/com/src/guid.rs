//! Ids of interfaces and classes.

use std::fmt;

/// A GUID, in the layout that COM passes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid {
    /// The first eight hexadecimal digits.
    pub data1: u32,
    /// The next four.
    pub data2: u16,
    /// The next four.
    pub data3: u16,
    /// The rest, as bytes.
    pub data4: [u8; 8],
}

impl Guid {
    /// Returns the GUID with this text, of the form `00000000-0000-0000-c000-000000000046`, or
    /// `None` if the text has another form.
    pub const fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return None;
        }
        let (mut value, mut at) = (0_u128, 0);
        while at < text.len() {
            let digit = match text[at] {
                b'-' if matches!(at, 8 | 13 | 18 | 23) => None,
                _ if matches!(at, 8 | 13 | 18 | 23) => return None,
                digit @ b'0'..=b'9' => Some(digit - b'0'),
                digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
                digit @ b'A'..=b'F' => Some(digit - b'A' + 10),
                _ => return None,
            };
            if let Some(digit) = digit {
                value = value << 4 | digit as u128;
            }
            at += 1;
        }
        Some(Self {
            data1: (value >> 96) as u32,
            data2: (value >> 80) as u16,
            data3: (value >> 64) as u16,
            data4: (value as u64).to_be_bytes(),
        })
    }

    /// Returns the GUID of a constant text.
    pub(crate) const fn new(text: &str) -> Self {
        match Self::parse(text) {
            Some(guid) => guid,
            None => panic!("a GUID of another form"),
        }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail = u64::from_be_bytes(self.data4);
        let (clock, node) = (tail >> 48, tail & 0xFFFF_FFFF_FFFF);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{clock:04x}-{node:012x}",
            self.data1, self.data2, self.data3
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
