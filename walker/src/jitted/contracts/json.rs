//! The subset of JSON that contract descriptors are written in: objects, arrays, integers, and
//! strings without escapes.
//!
//! The runtime's build makes the text (src/tools/cdac-build-tool in dotnet/runtime, compact format
//! of docs/design/datacontracts/data_descriptor.md). Anything else is refused with its place.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Depth of nested values at most; descriptors have 4.
const DEPTH: u32 = 8;

/// A value of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Object(BTreeMap<String, Value>),
    Array(Vec<Value>),
    String(String),
    Integer(i64),
}

impl Value {
    pub(super) const fn as_object(&self) -> Option<&BTreeMap<String, Self>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Returns an integer, which may be written as a decimal or hexadecimal string. Negative numbers
    /// become their two's complement.
    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => Some(number.cast_unsigned()),
            Self::String(text) => match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            Self::Object(_) | Self::Array(_) => None,
        }
    }
}

/// Parses `text`, which must be one value.
///
/// # Errors
/// The offset of the first byte that is not in the subset.
pub(super) fn parse(text: &[u8]) -> Result<Value, usize> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH)?;
    reader.skip_spaces();
    if reader.at == text.len() { Ok(value) } else { Err(reader.at) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes the next byte that is no space if it is `byte`.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), usize> {
        if self.take(byte) { Ok(()) } else { Err(self.at) }
    }

    fn value(&mut self, depth: u32) -> Result<Value, usize> {
        self.skip_spaces();
        let depth = depth.checked_sub(1).ok_or(self.at)?;
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            _ => self.integer(),
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, usize> {
        let mut members = BTreeMap::new();
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_spaces();
            let at = self.at;
            let name = self.string()?;
            self.expect(b':')?;
            // Readers disagree on which of two members counts.
            if members.insert(name, self.value(depth)?).is_some() {
                return Err(at);
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                return Ok(Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: u32) -> Result<Value, usize> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            if !self.take(b',') {
                self.expect(b']')?;
                return Ok(Value::Array(items));
            }
        }
    }

    fn string(&mut self) -> Result<String, usize> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let plain = |&byte: &u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
        let bytes: Vec<u8> = rest.iter().copied().take_while(plain).collect();
        self.at += bytes.len();
        self.expect_here(b'"')?;
        String::from_utf8(bytes).map_err(|_| self.at)
    }

    fn expect_here(&mut self, byte: u8) -> Result<(), usize> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.at)
        }
    }

    fn integer(&mut self) -> Result<Value, usize> {
        let begin = self.at;
        let negative = self.take(b'-');
        let mut number = 0_i64;
        let first = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = i64::from(digit - b'0');
            let digit = if negative { -digit } else { digit };
            number = number.checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or(begin)?;
            self.at += 1;
        }
        if self.at == first { Err(self.at) } else { Ok(Value::Integer(number)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_arrays_integers_and_strings_are_read() {
        let value = parse(br#" {"a" : [1, -2,"0x1F", [ ]], "!":{} } "#).unwrap();
        let members = value.as_object().unwrap();
        assert_eq!(members.len(), 2);
        assert_eq!(members["!"], Value::Object(BTreeMap::new()));
        let Value::Array(items) = &members["a"] else { panic!("{members:?}") };
        let numbers: Vec<_> = items.iter().map(Value::as_u64).collect();
        assert_eq!(numbers, [Some(1), Some(u64::MAX - 1), Some(31), None]);
    }

    #[test]
    fn what_is_not_in_the_subset_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\":1,\"a\":2}", 7),
            ("{\"a\" 1}", 5),
            ("\"a\\n\"", 2),
            ("\"a", 2),
            ("\"\u{e9}\"", 1),
            ("1.5", 1),
            ("9223372036854775808", 0),
            ("- 1", 1),
            ("true", 0),
            ("// a", 0),
            ("[[[[[[[[1]]]]]]]]", 8),
            ("1 1", 2),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(at), "{text}");
        }
        assert!(parse(b"[[[[[[[1]]]]]]]").is_ok());
    }
}
