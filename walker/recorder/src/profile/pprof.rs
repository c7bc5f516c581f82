//! The format of pprof, a protocol buffer: the messages of `proto/profile.proto` (google/pprof). pprof
//! reads it with and without compression.

use super::Profile;
use std::collections::HashMap;

// Numbers of fields.
const PROFILE_SAMPLE_TYPE: u32 = 1;
const PROFILE_SAMPLE: u32 = 2;
const PROFILE_LOCATION: u32 = 4;
const PROFILE_FUNCTION: u32 = 5;
const PROFILE_STRING_TABLE: u32 = 6;
const VALUE_TYPE_TYPE: u32 = 1;
const VALUE_TYPE_UNIT: u32 = 2;
const SAMPLE_LOCATION_ID: u32 = 1;
const SAMPLE_VALUE: u32 = 2;
const LOCATION_ID: u32 = 1;
const LOCATION_LINE: u32 = 4;
const LINE_FUNCTION_ID: u32 = 1;
const FUNCTION_ID: u32 = 1;
const FUNCTION_NAME: u32 = 2;
const FUNCTION_SYSTEM_NAME: u32 = 3;
const FUNCTION_FILENAME: u32 = 4;

/// Returns the file. Each label is a function with one location; ids count from 1.
pub(super) fn write(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut file = Message::default();
    let mut samples = Message::default();
    samples.number(VALUE_TYPE_TYPE, strings.index("samples"));
    samples.number(VALUE_TYPE_UNIT, strings.index("count"));
    file.bytes(PROFILE_SAMPLE_TYPE, &samples.0);
    for (stack, count) in &profile.stacks {
        let mut sample = Message::default();
        // The leaf comes first.
        sample.numbers(SAMPLE_LOCATION_ID, stack.iter().rev().map(|number| id(*number)));
        sample.numbers(SAMPLE_VALUE, [*count]);
        file.bytes(PROFILE_SAMPLE, &sample.0);
    }
    for (number, label) in (0..).zip(&profile.labels) {
        let mut line = Message::default();
        line.number(LINE_FUNCTION_ID, id(number));
        let mut location = Message::default();
        location.number(LOCATION_ID, id(number));
        location.bytes(LOCATION_LINE, &line.0);
        file.bytes(PROFILE_LOCATION, &location.0);
        let mut function = Message::default();
        function.number(FUNCTION_ID, id(number));
        let name = strings.index(&label.name);
        function.number(FUNCTION_NAME, name);
        function.number(FUNCTION_SYSTEM_NAME, name);
        function.number(FUNCTION_FILENAME, strings.index(&label.file));
        file.bytes(PROFILE_FUNCTION, &function.0);
    }
    for string in &strings.all {
        file.bytes(PROFILE_STRING_TABLE, string.as_bytes());
    }
    file.0
}

fn id(number: u32) -> u64 {
    u64::from(number) + 1
}

/// The string table.
struct Strings {
    all: Vec<String>,
    indices: HashMap<String, u64>,
}

impl Default for Strings {
    /// Makes the table with the empty string, which has to be its first.
    fn default() -> Self {
        Self { all: vec![String::new()], indices: HashMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    fn index(&mut self, string: &str) -> u64 {
        let next = self.all.len() as u64;
        let index = *self.indices.entry(string.to_owned()).or_insert(next);
        if index == next {
            self.all.push(string.to_owned());
        }
        index
    }
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a number: wire type 0.
    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Adds a string or a message: wire type 2.
    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds a repeated number, packed.
    fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        for value in values {
            packed.varint(value);
        }
        self.bytes(field, &packed.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;

    /// A field as it is read back.
    #[derive(Debug, PartialEq, Eq)]
    enum Field<'f> {
        Number(u64),
        Bytes(&'f [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let len = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (number, rest) = bytes.split_at(len);
        *bytes = rest;
        number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F))
    }

    fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let number = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(number),
                2 => {
                    let (content, rest) = bytes.split_at(usize::try_from(number).unwrap());
                    bytes = rest;
                    Field::Bytes(content)
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        fields
    }

    fn all_bytes(message: &[u8], number: u64) -> Vec<&[u8]> {
        let of_field = |field| match field {
            (at, Field::Bytes(bytes)) if at == number => Some(bytes),
            _ => None,
        };
        fields(message).into_iter().filter_map(of_field).collect()
    }

    fn number(message: &[u8], number: u64) -> u64 {
        let mut found = fields(message).into_iter().filter(|(at, _)| *at == number);
        match (found.next(), found.next()) {
            (Some((_, Field::Number(value))), None) => value,
            other => panic!("field {number}: {other:?}"),
        }
    }

    fn packed(mut bytes: &[u8]) -> Vec<u64> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            values.push(varint(&mut bytes));
        }
        values
    }

    #[test]
    fn the_messages_can_be_read_back() {
        let file = super::write(&example());
        let strings = all_bytes(&file, 6);
        let string =
            |index: u64| std::str::from_utf8(strings[usize::try_from(index).unwrap()]).unwrap();
        assert_eq!(string(0), "", "the first string is empty");
        let types = all_bytes(&file, 1);
        let [kind] = types[..] else { panic!("{types:?}") };
        assert_eq!((string(number(kind, 1)), string(number(kind, 2))), ("samples", "count"));
        let functions = all_bytes(&file, 5);
        let locations = all_bytes(&file, 4);
        let name_of = |location: u64| {
            let location = locations.iter().find(|found| number(found, 1) == location).unwrap();
            let lines = all_bytes(location, 4);
            let [line] = lines[..] else { panic!("{lines:?}") };
            let function = number(line, 1);
            let function = functions.iter().find(|found| number(found, 1) == function).unwrap();
            assert_eq!(number(function, 2), number(function, 3));
            (string(number(function, 2)), string(number(function, 4)))
        };
        let samples: Vec<_> = all_bytes(&file, 2)
            .into_iter()
            .map(|sample| {
                let [stack, counts] = [1, 2].map(|field| packed(all_bytes(sample, field)[0]));
                (stack.into_iter().map(name_of).collect::<Vec<_>>(), counts)
            })
            .collect();
        let main = ("Program.Main", "app.dll");
        let odd = ("<a;b>\"\\\n é", "app.dll");
        let native = ("libc.so.6+0x10", "libc.so.6");
        assert_eq!(
            samples,
            [(vec![odd, main], vec![2]), (vec![native, odd, main], vec![1])],
            "leaf first"
        );
    }

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let mut message = super::Message::default();
        message.number(1, 300);
        assert_eq!(message.0, [0x08, 0xAC, 0x02]);
        assert_eq!(fields(&message.0), [(1, Field::Number(300))]);
    }
}
