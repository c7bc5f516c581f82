//! Profiles, and the formats of files.

use clr_sampler::profile::{Format, Label, Profile};
use serde_json::{Value, json};
use std::path::Path;

/// Two stacks with a common caller, whose names need care in each format.
fn example() -> Profile {
    let mut profile = Profile::default();
    let label = |name: &str, file: &str| Label { name: name.into(), file: file.into() };
    let main = profile.number(&label("Program.Main", "app.dll"));
    let odd = profile.number(&label("<a;b>\"\\\n é", "app.dll"));
    let native = profile.number(&label("libc.so.6+0x10", "libc.so.6"));
    assert_eq!(profile.number(&label("Program.Main", "app.dll")), main);
    profile.add(vec![main, odd]);
    profile.add(vec![main, odd, native]);
    profile.add(vec![main, odd]);
    profile
}

#[test]
fn an_extension_stands_for_a_format() {
    let of = |path: &str| Format::of_path(Path::new(path));
    assert_eq!(of("/tmp/app.folded"), Format::Folded);
    assert_eq!(of("/tmp/json"), Format::Folded);
    assert_eq!(of("app.speedscope.json"), Format::Speedscope);
    assert_eq!([of("app.pb"), of("app.pprof")], [Format::Pprof; 2]);
}

fn written(format: Format) -> Vec<u8> {
    example().write(format, "a \"title\"")
}

#[test]
fn a_line_is_a_stack() {
    assert_eq!(
        String::from_utf8(written(Format::Folded)).unwrap(),
        "Program.Main;<a:b>\"\\  é 2\nProgram.Main;<a:b>\"\\  é;libc.so.6+0x10 1\n"
    );
}

#[test]
fn a_speedscope_file_is_json_with_stacks_from_the_root() {
    let file: Value = serde_json::from_slice(&written(Format::Speedscope)).unwrap();
    assert_eq!(file["name"], "a \"title\"");
    let frames = &file["shared"]["frames"];
    assert_eq!(frames[1], json!({ "name": "<a;b>\"\\\n é", "file": "app.dll" }));
    let profile = &file["profiles"][0];
    assert_eq!((&profile["type"], &profile["unit"]), (&json!("sampled"), &json!("none")));
    assert_eq!((&profile["startValue"], &profile["endValue"]), (&json!(0), &json!(3)));
    assert_eq!(profile["samples"], json!([[0, 1], [0, 1, 2]]));
    assert_eq!(profile["weights"], json!([2, 1]));
}

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
fn the_messages_of_pprof_can_be_read_back() {
    let file = written(Format::Pprof);
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
    let mut profile = Profile::default();
    (0..300).for_each(|_| profile.add(vec![0]));
    let file = profile.write(Format::Pprof, "");
    assert_eq!(packed(all_bytes(all_bytes(&file, 2)[0], 2)[0]), [300]);
    assert!(file.windows(3).any(|bytes| bytes == [2, 0xAC, 0x02]));
}
