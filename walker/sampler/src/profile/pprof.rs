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
