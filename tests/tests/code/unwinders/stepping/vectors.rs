//! Recorded steps: the input of an unwinder, and the true caller.
//!
//! The file is gzipped JSON with one value per line. First come the images, each with the part of
//! its `.eh_frame` that the vectors need (assembled anew; addresses in it are RVAs, since images of
//! libraries have base 0), then the vectors. Numbers are hexadecimal text.

use super::*;
use crate::unwinders::stepping::shadow::{Began, PRESERVED};
use clr_unwind::cfi::CfiTable;
use clr_unwind::{
    CfiSections, CodeMap, CodeRegion, FunctionTable, Memory, Position, RegionKind, Section,
    Sections, Unreadable, Unwinder,
};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub name: String,
    /// Build id.
    pub build: String,
    /// Size in memory in bytes.
    pub size: u32,
    /// A part of the image's `.eh_frame`.
    pub eh_frame: Vec<u8>,
}

/// A step to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vector {
    /// Index of the image.
    pub image: usize,
    pub position: Position,
    /// Event that began the activation of the frame that the step unwinds.
    pub began: Began,
    /// Registers of the frame; rip is an RVA in the image.
    pub registers: Registers,
    /// Words of the stack, by address (VA).
    pub words: BTreeMap<u64, u64>,
    /// Registers of the caller; after a call only the preserved ones matter. rip is an address
    /// (VA).
    pub caller: Registers,
}

/// Returns the registers of a caller that are known.
pub(crate) fn known(began: Began) -> impl Iterator<Item = Gpr> {
    let all = Gpr::ALL.into_iter().filter(move |_| began == Began::Signal);
    let call = PRESERVED.into_iter().chain([Gpr::Rsp]).filter(move |_| began == Began::Call);
    all.chain(call)
}

/// Describes the difference between the caller that was found and the true one.
pub(crate) fn difference(began: Began, found: &Registers, caller: &Registers) -> Option<String> {
    let mut wrong = Vec::new();
    if found.rip != caller.rip {
        wrong.push(format!("rip {:#x}, expected {:#x}", found.rip, caller.rip));
    }
    for register in known(began).filter(|one| found.get(*one) != caller.get(*one)) {
        let (found, caller) = (found.get(register), caller.get(register));
        wrong.push(format!("{register:?} {found:#x}, expected {caller:#x}"));
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

fn hex(value: u64) -> Value {
    json!(format!("{value:x}"))
}

fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?, 16).ok()
}

impl Image {
    pub(crate) fn to_line(&self) -> String {
        let eh_frame = HEXLOWER.encode(&self.eh_frame);
        let size = hex(self.size.into());
        json!({"image": self.name, "build": self.build, "size": size, "eh_frame": eh_frame})
            .to_string()
    }

    fn from_value(value: &Value) -> Option<Self> {
        Some(Self {
            name: value.get("image")?.as_str()?.to_owned(),
            build: value.get("build")?.as_str()?.to_owned(),
            size: u32::try_from(number(value.get("size")?)?).ok()?,
            eh_frame: HEXLOWER.decode(value.get("eh_frame")?.as_str()?.as_bytes()).ok()?,
        })
    }

    /// Returns the RVA at which [`Self::eh_frame`] is placed: after the image.
    pub(crate) const fn eh_frame_rva(size: u32) -> u32 {
        (size + 0xFFF) & !0xFFF
    }
}

impl Vector {
    pub(crate) fn to_line(&self) -> String {
        let gpr: Vec<_> = self.registers.gpr.iter().copied().map(hex).collect();
        let caller: Vec<_> = known(self.began).map(|one| hex(self.caller.get(one))).collect();
        // Runs of words, each preceded by its address.
        let mut words: Vec<Vec<Value>> = Vec::new();
        let mut next = None;
        for (address, word) in &self.words {
            match words.last_mut().filter(|_| next == Some(*address)) {
                Some(run) => run.push(hex(*word)),
                None => words.push(vec![hex(*address), hex(*word)]),
            }
            next = Some(address + 8);
        }
        json!({
            "in": self.image,
            "is": match self.position { Position::Interrupted => "stopped", Position::ReturnAddress => "calls" },
            "began": match self.began { Began::Call => "call", Began::Signal => "signal" },
            "rip": hex(self.registers.rip),
            "gpr": gpr,
            "stack": words,
            "back": hex(self.caller.rip),
            "caller": caller,
        })
        .to_string()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let began = match value.get("began")?.as_str()? {
            "call" => Began::Call,
            "signal" => Began::Signal,
            _ => return None,
        };
        let mut registers = Registers { rip: number(value.get("rip")?)?, ..Registers::default() };
        for (own, value) in registers.gpr.iter_mut().zip(value.get("gpr")?.as_array()?) {
            *own = number(value)?;
        }
        let mut caller = Registers { rip: number(value.get("back")?)?, ..Registers::default() };
        for (register, value) in known(began).zip(value.get("caller")?.as_array()?) {
            caller.set(register, number(value)?);
        }
        let mut words = BTreeMap::new();
        for run in value.get("stack")?.as_array()? {
            let (first, run) = run.as_array()?.split_first()?;
            for (word, address) in run.iter().zip((number(first)?..).step_by(8)) {
                words.insert(address, number(word)?);
            }
        }
        Some(Self {
            image: usize::try_from(value.get("in")?.as_u64()?).ok()?,
            position: match value.get("is")?.as_str()? {
                "stopped" => Position::Interrupted,
                "calls" => Position::ReturnAddress,
                _ => return None,
            },
            began,
            registers,
            words,
            caller,
        })
    }
}

/// Parses the images and vectors of a decompressed file.
pub(crate) fn parse(text: &str) -> Result<(Vec<Image>, Vec<Vector>), String> {
    let (mut images, mut vectors) = (Vec::new(), Vec::new());
    for (line, n) in text.lines().zip(1..) {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("{n}: {error}"))?;
        if value.get("image").is_some() {
            images.push(Image::from_value(&value).ok_or(format!("{n}: no image"))?);
        } else {
            vectors.push(Vector::from_value(&value).ok_or(format!("{n}: no vector"))?);
        }
    }
    Ok((images, vectors))
}

/// A memory that contains exactly the words of a vector.
struct Words<'v>(&'v BTreeMap<u64, u64>);

impl Memory for Words<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        for (chunk, at) in buffer.chunks_mut(8).zip((address..).step_by(8)) {
            let word = self.0.get(&at).ok_or(unreadable)?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

/// Distance in bytes between the bases of images.
const APART: u64 = 1 << 32;

/// Makes every step, and describes those that go wrong, by their number.
pub(crate) fn wrong_ones(images: &[Image], vectors: &[Vector]) -> Vec<String> {
    let code: Vec<Vec<u8>> = images.iter().map(|image| vec![0; image.size as usize]).collect();
    let mut map = CodeMap::new();
    for ((image, code), n) in images.iter().zip(&code).zip(1..) {
        let sections =
            Sections::new(vec![Section { rva: 0, bytes: code, executable: true }]).unwrap();
        let rva = Image::eh_frame_rva(image.size);
        let eh_frame = Some(Section { rva, bytes: &image.eh_frame, executable: false });
        let table = CfiTable::new(&CfiSections { eh_frame, ..CfiSections::default() }, &sections);
        assert_eq!(table.first_problem(), None, "{}", image.name);
        let (kind, functions) = (RegionKind::Image, FunctionTable::default());
        let region = CodeRegion::from_sections(n * APART, image.size, kind, sections, functions);
        map.insert(region.unwrap().with_cfi(table)).unwrap();
    }
    let unwinder = Unwinder::new(&map);
    let step = |vector: &Vector| {
        let base = APART * (vector.image as u64 + 1);
        let mut registers = vector.registers;
        registers.rip += base;
        match unwinder.step(&mut registers, vector.position, &Words(&vector.words)) {
            Ok(_) => difference(vector.began, &registers, &vector.caller),
            Err(error) => Some(error.to_string()),
        }
    };
    let reported = |(n, vector): (usize, &Vector)| {
        let name = images.get(vector.image).map_or("?", |image| &image.name);
        Some(format!("vector {n}, {name} + {:#x}: {}", vector.registers.rip, step(vector)?))
    };
    vectors.iter().enumerate().filter_map(reported).collect()
}
