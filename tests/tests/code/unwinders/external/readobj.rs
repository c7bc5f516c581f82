//! Comparison of the images that clr-walker and `llvm-readobj` parse.

use clr_generate::{Seeded, Size, program};
use clr_tests::cases;
use clr_walker::code_map::CodeRegion;
use clr_walker::image::RuntimeFunction;
use clr_walker::image::pe::PeImage;
use clr_walker::registers::Gpr;
use clr_walker::unwind::win64::{Operation, UnwindInfo};
use std::collections::BTreeMap;
use std::process::Command;

const IMAGES: [&str; 5] = ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"];

/// Description of an image, with the facts that both tools report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Description {
    /// RVA, size of the bytes in the file, and true if executable; ascending.
    sections: Vec<(u32, u32, bool)>,
    functions: Vec<Function>,
}

/// A RUNTIME_FUNCTION with its UNWIND_INFO. Addresses are RVAs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Function {
    entry: RuntimeFunction,
    version: u8,
    flags: u8,
    prologue_size: u8,
    /// The frame register and its offset in bytes.
    frame: Option<(Gpr, u32)>,
    slots: usize,
    epilogs: Option<Epilogs>,
    codes: Vec<(u8, Operation)>,
    /// The parent of a chained entry; `None` if there is a handler, since llvm-readobj prints only
    /// one of them.
    parent: Option<RuntimeFunction>,
    handler: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Epilogs {
    size: u8,
    starts: Vec<u32>,
}

/// Compares the descriptions of an image by llvm-readobj and clr-walker, and returns it.
fn check(image: &[u8]) -> Description {
    let text = readobj(&for_windows(without_epilog_codes(image)));
    let ours = describe(image);
    let theirs = parse(image, &text);
    assert_eq!(ours.sections, theirs.sections);
    for (ours, theirs) in ours.functions.iter().zip(&theirs.functions) {
        assert_eq!(ours, theirs, "clr-walker on the left, llvm-readobj on the right");
    }
    assert_eq!(ours.functions.len(), theirs.functions.len());
    check_exports(image, &text);
    ours
}

/// Returns llvm-readobj's output for an image.
fn readobj(image: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.dll");
    std::fs::write(&path, image).unwrap();
    let mut command = Command::new("llvm-readobj");
    command.args(["--unwind", "--sections", "--coff-exports"]).arg(&path);
    let output = command.output().expect("llvm-readobj");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn parse_image(image: &[u8]) -> (PeImage<'_>, CodeRegion<'_>) {
    let parsed = PeImage::parse(image).unwrap();
    let region = CodeRegion::image(parsed.preferred_base(), &parsed).unwrap();
    (parsed, region)
}

/// Returns the image with ALLOC_SMALL codes in place of EPILOG codes, one for each slot, because
/// llvm-readobj 14 crashes on EPILOG codes. `parse` converts them back.
fn without_epilog_codes(image: &[u8]) -> Vec<u8> {
    let (parsed, region) = parse_image(image);
    let mut changed = image.to_vec();
    for entry in parsed.functions().iter() {
        let bytes = region.bytes_from(entry.unwind_info).unwrap();
        let start = bytes.as_ptr().addr() - image.as_ptr().addr();
        let info = UnwindInfo::read(&region, entry.unwind_info).unwrap();
        let mut slot = 0;
        for code in info.codes() {
            let code = code.unwrap();
            if code.operation == Operation::Epilog {
                for slot in slot..slot + usize::from(code.slots) {
                    let operation = &mut changed[start + 4 + 2 * slot + 1];
                    *operation = *operation & 0xF0 | 2;
                }
            }
            slot += usize::from(code.slots);
        }
    }
    changed
}

/// Returns the image with the Machine field of Windows: llvm-readobj prints no unwind data of others.
fn for_windows(mut image: Vec<u8>) -> Vec<u8> {
    let header = u32::from_le_bytes(*image[0x3C..].first_chunk().unwrap()) as usize;
    image[header + 4..header + 6].copy_from_slice(&0x8664_u16.to_le_bytes());
    image
}

/// Returns the number of slots that the EPILOG codes at the begin of an UNWIND_INFO take.
fn epilog_slots(info: &UnwindInfo<'_>) -> usize {
    let codes = info.codes().map(Result::unwrap);
    let epilogs = codes.take_while(|code| code.operation == Operation::Epilog);
    epilogs.map(|code| usize::from(code.slots)).sum()
}

/// Returns the description that clr-walker finds.
fn describe(image: &[u8]) -> Description {
    let (parsed, region) = parse_image(image);
    // llvm-readobj does not treat the headers as a section.
    let sections = parsed.sections().as_slice().iter().filter(|section| section.rva > 0);
    let sections =
        sections.map(|section| (section.rva, section.bytes.len() as u32, section.executable));
    let functions = parsed.functions().iter().map(|entry| {
        let info = UnwindInfo::read(&region, entry.unwind_info).unwrap();
        let handler = info.handler().unwrap().map(|handler| handler.rva);
        let codes = info.codes().map(Result::unwrap);
        let codes = codes.filter(|code| code.operation != Operation::Epilog);
        Function {
            entry,
            version: info.version(),
            flags: info.flags(),
            prologue_size: info.prologue_size(),
            frame: (info.frame_register() != 0)
                .then(|| (Gpr::from_number(info.frame_register()), info.frame_offset())),
            slots: info.slot_count(),
            epilogs: info.epilogs().map(|epilogs| Epilogs {
                size: epilogs.size(),
                starts: epilogs.starts(entry.end).collect(),
            }),
            codes: codes.map(|code| (code.offset, code.operation)).collect(),
            parent: if handler.is_none() { info.parent().unwrap() } else { None },
            handler,
        }
    });
    Description { sections: sections.collect(), functions: functions.collect() }
}

/// Parses llvm-readobj's `text` about `image`.
fn parse(image: &[u8], text: &str) -> Description {
    let (parsed, region) = parse_image(image);
    let base = parsed.preferred_base();
    let mut description = Description::default();
    let (mut virtual_size, mut chained) = (0, false);
    for line in text.lines().map(str::trim) {
        match line {
            "RuntimeFunction {" => description.functions.push(Function::default()),
            "Chained {" => chained = true,
            "}" => chained = false,
            _ => {}
        }
        let (key, value) = line.split_once(": ").unwrap_or((line, ""));
        match (key, description.sections.last_mut()) {
            ("VirtualSize", _) => virtual_size = number(value),
            ("VirtualAddress", _) => description.sections.push((number(value), 0, false)),
            ("RawDataSize", Some(section)) => section.1 = number(value).min(virtual_size),
            ("IMAGE_SCN_MEM_EXECUTE (0x20000000)", Some(section)) => section.2 = true,
            _ => {}
        }
        let Some(function) = description.functions.last_mut() else {
            continue;
        };
        let entry =
            if chained { function.parent.get_or_insert_default() } else { &mut function.entry };
        match key {
            "StartAddress" => entry.begin = rva(value, base),
            "EndAddress" => entry.end = rva(value, base),
            "UnwindInfoAddress" => entry.unwind_info = rva(value, base),
            "Version" => function.version = number(value) as u8,
            "PrologSize" => function.prologue_size = number(value) as u8,
            "FrameRegister" if value != "-" => {
                function.frame = Some((register(value.split(' ').next().unwrap()), 0));
            }
            "FrameOffset" if value != "-" => {
                function.frame.as_mut().unwrap().1 = number(value) * 16;
            }
            "UnwindCodeCount" => function.slots = number(value) as usize,
            "Handler" => function.handler = Some(rva(value, base)),
            _ if key.starts_with("Flags [") => function.flags = last_in_parentheses(key) as u8,
            _ if key.starts_with("0x") => function.codes.push((number(key) as u8, code(value))),
            _ => {}
        }
    }
    description.sections.retain(|(_, size, _)| *size > 0);
    description.sections.sort_unstable();
    for function in &mut description.functions {
        let info = UnwindInfo::read(&region, function.entry.unwind_info).unwrap();
        let slots = epilog_slots(&info);
        if slots > 0 {
            function.epilogs = Some(epilogs(function.codes.drain(..slots), function.entry.end));
        }
    }
    description
}

/// Converts codes back to the EPILOG codes that `without_epilog_codes` has replaced.
fn epilogs(codes: impl Iterator<Item = (u8, Operation)>, end: u32) -> Epilogs {
    let mut slots = codes.map(|(offset, operation)| match operation {
        Operation::Alloc(size) => (offset, size / 8 - 1),
        _ => panic!("{operation:?} is not ALLOC_SMALL"),
    });
    let (size, info) = slots.next().unwrap();
    let at_end = (info & 1 == 1).then(|| u32::from(size));
    let distances = slots.map(|(low, high)| u32::from(low) | high << 8);
    let distances = at_end.into_iter().chain(distances.take_while(|distance| *distance > 0));
    Epilogs { size, starts: distances.map(|distance| end - distance).collect() }
}

fn code(text: &str) -> Operation {
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    let operands: BTreeMap<_, _> =
        operands.split(", ").filter_map(|operand| operand.split_once('=')).collect();
    let value = |key| number(operands[key]);
    match name {
        "PUSH_NONVOL" => Operation::PushNonvol(register(operands["reg"])),
        "ALLOC_SMALL" | "ALLOC_LARGE" => Operation::Alloc(value("size")),
        "SET_FPREG" => Operation::SetFpreg,
        "SAVE_NONVOL" | "SAVE_NONVOL_FAR" => {
            Operation::SaveNonvol(register(operands["reg"]), value("offset"))
        }
        "SAVE_XMM128" | "SAVE_XMM128_FAR" => {
            let number = operands["reg"].strip_prefix("XMM").unwrap();
            Operation::SaveXmm128(number.parse().unwrap(), value("offset"))
        }
        "PUSH_MACHFRAME" => Operation::PushMachframe(operands["errcode"] == "yes"),
        _ => panic!("llvm-readobj names a code {text}"),
    }
}

fn register(name: &str) -> Gpr {
    (0..16)
        .map(Gpr::from_number)
        .find(|register| register.name().eq_ignore_ascii_case(name))
        .unwrap()
}

fn number(text: &str) -> u32 {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the number at the end of a line of the form `name (0x10)`.
fn last_in_parentheses(text: &str) -> u64 {
    let digits = text.rsplit_once("(0x").and_then(|(_, digits)| digits.strip_suffix(')'));
    u64::from_str_radix(digits.unwrap_or_else(|| panic!("{text}")), 16).unwrap()
}

fn rva(text: &str, base: u64) -> u32 {
    last_in_parentheses(text).checked_sub(base).unwrap().try_into().unwrap()
}

/// Checks that each export is a symbol; of several names of one address, the walker keeps one.
fn check_exports(image: &[u8], text: &str) {
    let mut exports = BTreeMap::<u32, Vec<&str>>::new();
    let mut name = "";
    let (_, text) = text.split_once("\nExport {").unwrap_or_default();
    for line in text.lines().map(str::trim) {
        match line.split_once(": ") {
            Some(("Name", value)) => name = value,
            Some(("RVA", value)) => exports.entry(number(value)).or_default().push(name),
            _ => {}
        }
    }
    let (parsed, _) = parse_image(image);
    let symbols = parsed.symbols();
    for (rva, names) in exports {
        let (symbol, distance) = symbols.find(rva).unwrap();
        assert!(distance == 0 && names.contains(&symbol), "{symbol}+{distance:#x}: {names:?}");
    }
}

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap()
}

#[test]
#[ignore = "external: needs llvm-readobj"]
fn the_fixtures_are_read_alike() {
    let mut functions = Vec::new();
    for name in IMAGES {
        let description = check(fixture(name));
        functions.extend(description.functions);
    }
    let codes = || functions.iter().flat_map(|function| &function.codes);
    let count = |of: fn(&Operation) -> bool| codes().filter(|(_, code)| of(code)).count();
    let has = |of: fn(&Function) -> bool| functions.iter().filter(|function| of(function)).count();
    // The fixtures contain all kinds of data.
    assert_eq!(functions.len(), 1203);
    assert_eq!(has(|function| function.version == 2), 85);
    assert_eq!(has(|function| function.epilogs.is_some()), 76);
    assert_eq!(has(|function| function.parent.is_some()), 150);
    assert_eq!(has(|function| function.handler.is_some()), 26);
    assert_eq!(has(|function| function.frame.is_some()), 337);
    assert_eq!(count(|code| matches!(code, Operation::PushMachframe(_))), 24);
    assert_eq!(count(|code| matches!(code, Operation::SaveXmm128(..))), 222);
    assert_eq!(count(|code| matches!(code, Operation::SaveNonvol(..))), 233);
}

#[test]
#[ignore = "external: needs llvm-readobj"]
fn generated_images_are_read_alike() {
    let (mut images, mut functions) = (0, Vec::new());
    let mut seeds = 0..;
    while images < cases(120).max(120) {
        let mut program = program(&mut Seeded::new(seeds.next().unwrap()), &Size::SMALL);
        // llvm-readobj 14 does not know version 3.
        for function in &mut program.functions {
            if function.shape.unwind == clr_codegen::UnwindData::Version3 {
                function.shape.unwind = clr_codegen::UnwindData::Version1;
            }
        }
        let Ok(linked) = program.link() else { continue };
        for unit in linked.units.iter().filter(|unit| unit.format == clr_codegen::Format::Pe) {
            let description = check(&unit.bytes);
            functions.extend(description.functions);
            images += 1;
        }
    }
    // The images contain all kinds of unwind data.
    let has = |of: fn(&Function) -> bool| functions.iter().any(of);
    let has_code = |of: fn(&Operation) -> bool| {
        let mut codes = functions.iter().flat_map(|function| &function.codes);
        codes.any(|(_, code)| of(code))
    };
    assert!(has(|function| function.epilogs.is_some()));
    assert!(has(|function| function.parent.is_some()));
    assert!(has(|function| function.handler.is_some()));
    assert!(has(|function| function.frame.is_some()));
    assert!(has_code(|code| matches!(code, Operation::PushMachframe(_))));
    assert!(has_code(|code| matches!(code, Operation::SaveXmm128(..))));
    assert!(has_code(|code| matches!(code, Operation::SaveNonvol(..))));
    println!("{images} images, {} functions", functions.len());
}

#[test]
#[ignore = "external: needs llvm-readobj"]
fn a_changed_bit_is_noticed() {
    let image = fixture("asm_raw");
    let text = readobj(&without_epilog_codes(image));
    let theirs = parse(image, &text);
    let (parsed, region) = parse_image(image);
    let entries = parsed.functions().iter().filter(|entry| {
        let info = UnwindInfo::read(&region, entry.unwind_info).unwrap();
        let first = info.codes().next().and_then(Result::ok);
        // Codes whose info has a significant bit that does not change their length.
        first.is_some_and(|code| code.slots == 1 && code.operation != Operation::SetFpreg)
    });
    let mut changes = 0;
    for entry in entries.take(50) {
        let bytes = region.bytes_from(entry.unwind_info).unwrap();
        let start = bytes.as_ptr().addr() - image.as_ptr().addr();
        // Flags, SizeOfProlog, frame register, CodeOffset, OpInfo.
        for (at, bit) in [(0, 0x08), (1, 0x01), (3, 0x01), (4, 0x01), (5, 0x10)] {
            let mut other = image.to_vec();
            other[start + at] ^= bit;
            assert_ne!(describe(&other), theirs, "{:#x}+{at}", entry.unwind_info);
            changes += 1;
        }
    }
    assert_eq!(changes, 250);
}
