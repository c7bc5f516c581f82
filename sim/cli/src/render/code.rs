//! Names of code addresses, and instructions in words.

use clr_recording::vectors::fuzz::{self, FuzzRecord};
use clr_recording::vectors::replay::{ReplayError, fuzz_functions, fuzz_image};
use clr_unwind::win64::UnwindInfo;
use clr_unwind::{
    CodeMap, CodeRegion, FunctionTable, RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION, Symbols,
    UnwindError,
};
use iced_x86::{Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind};
use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::ops::Range;

/// Limit of the links of a chain, in the walker as in Windows.
const CHAIN_LIMIT: usize = 32;

/// Number of bytes before an instruction without a function entry in which its start is searched.
const LOOK_BACK: u32 = 0x100;

/// Code with names.
pub(crate) struct Code<'c, 'a> {
    /// The regions of code.
    pub(crate) map: &'c CodeMap<'a>,
    /// The names of the only region, if it has any.
    pub(crate) symbols: Symbols<'a>,
    /// Name of the region.
    pub(crate) image: String,
}

/// An address as a function and a distance.
pub(crate) struct Location<'a> {
    name: Option<&'a str>,
    /// RVA of the name.
    start: u32,
    rva: u32,
    /// True if there is a RUNTIME_FUNCTION.
    in_function: bool,
}

impl Location<'_> {
    /// Returns true if this is code of the function called `name`.
    pub(crate) fn is_in(&self, name: &str) -> bool {
        match self.name {
            Some(own) => own == name,
            None => self.in_function && self.function() == name,
        }
    }

    /// Returns the name that a symbol gives the function.
    pub(crate) const fn name(&self) -> Option<&str> {
        self.name
    }

    /// Returns true if more than the RVA is known of the place.
    pub(crate) const fn is_known(&self) -> bool {
        self.name.is_some() || self.in_function
    }

    /// Returns the name of the function, or one made of its RVA.
    fn function(&self) -> String {
        match self.name {
            Some(name) => name.to_owned(),
            None if self.in_function => format!("sub_{:x}", self.start),
            None => format!("RVA {:#x}", self.rva),
        }
    }
}

impl Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function())?;
        match self.rva.checked_sub(self.start) {
            Some(0) => Ok(()),
            Some(offset) => write!(f, "+{offset:#x}"),
            // The part of a function before its start.
            None => write!(f, "-{:#x}", self.start - self.rva),
        }
    }
}

/// A function entry and its unwind data.
#[derive(Clone, Copy)]
pub(crate) struct Link<'a> {
    /// The entry.
    pub(crate) entry: RuntimeFunction,
    /// The entry itself or, if it is indirect, its target.
    pub(crate) function: RuntimeFunction,
    /// The unwind data of the entry.
    pub(crate) info: Result<UnwindInfo<'a>, UnwindError>,
}

/// An instruction in words.
pub(crate) struct Line {
    /// RVA of the instruction.
    pub(crate) rva: u32,
    /// The bytes of the instruction.
    pub(crate) bytes: Vec<u8>,
    /// The instruction in Intel syntax, with the name of the target of a jump or call.
    pub(crate) text: String,
}

impl<'a> Code<'_, 'a> {
    /// Returns true if a function with this range of RVAs is meant by its name, or by an RVA in it
    /// as `0x…`. Without either, all functions are.
    pub(crate) fn is_meant(
        &self,
        region: &CodeRegion<'a>,
        range: &Range<u32>,
        function: Option<&str>,
    ) -> bool {
        let Some(function) = function else { return true };
        match function.strip_prefix("0x").map(|hex| u32::from_str_radix(hex, 16)) {
            Some(Ok(rva)) => range.contains(&rva),
            _ => self.locate(region, range.start).is_in(function),
        }
    }

    /// Returns the name of the function at `address` (VA).
    pub(crate) fn name(&self, address: u64) -> String {
        match self.map.find(address) {
            Some((region, rva)) => self.locate(region, rva).to_string(),
            None => "outside the image".to_owned(),
        }
    }

    /// Finds the function at an RVA.
    pub(crate) fn locate(&self, region: &CodeRegion<'a>, rva: u32) -> Location<'a> {
        if let Some(table) = region.cfi() {
            return self.locate_described(table.function(rva).as_ref(), rva);
        }
        let entry = region.functions().find(rva);
        let root = entry.and_then(|entry| chain(region, entry).last().map(|link| link.function));
        let start = entry.map_or(rva, |entry| root.unwrap_or(entry).begin);
        let unnamed = Location { name: None, start, rva, in_function: entry.is_some() };
        let own = |at| self.symbols.find(at).map(|(name, offset)| (name, at - offset));
        let named = |(name, start)| Location { name: Some(name), start, ..unnamed };
        // A symbol further back than the entry's begin is another function's.
        match (own(rva), entry) {
            (Some(symbol), Some(entry)) if symbol.1 >= entry.begin => named(symbol),
            // A symbol on the other side of a function entry is another function's too.
            (Some(symbol), None) if !begins_between(region, symbol.1, rva) => named(symbol),
            _ => match own(start) {
                Some(symbol) if entry.is_some() && symbol.1 == start => named(symbol),
                _ => unnamed,
            },
        }
    }

    /// Finds the function at an RVA by the ranges of call frame information.
    fn locate_described(&self, function: Option<&Range<u32>>, rva: u32) -> Location<'a> {
        let symbol = self.symbols.find(rva).map(|(name, offset)| (name, rva - offset));
        let start = function.map_or(rva, |range| range.start);
        let unnamed = Location { name: None, start, rva, in_function: function.is_some() };
        match symbol {
            // A symbol further back is another function's.
            Some((name, at)) if at >= start => Location { name: Some(name), start: at, ..unnamed },
            _ => unnamed,
        }
    }

    /// Returns the instruction at `address` (VA).
    pub(crate) fn instruction(&self, address: u64) -> Option<Line> {
        self.instructions(address, 0, 0).0.pop()
    }

    /// Returns the instruction at `address` (VA) with up to `before` and `after` of its neighbours,
    /// and the index of the instruction among them.
    pub(crate) fn instructions(
        &self,
        address: u64,
        before: usize,
        after: usize,
    ) -> (Vec<Line>, usize) {
        let Some((region, rva)) = self.map.find(address) else {
            return (Vec::new(), 0);
        };
        let start = self.step_back(region, rva, before);
        let end = region.functions().find(rva).map_or(u32::MAX, |entry| entry.end);
        let bytes = region.bytes_from(start).unwrap_or_default();
        let bytes = bytes.get(..end.saturating_sub(start) as usize).unwrap_or(bytes);
        let lines = self.decode(region, start, bytes);
        let mut following = 0;
        let lines: Vec<_> = lines
            .take_while(|line| {
                following += usize::from(line.rva > rva);
                following <= after
            })
            .collect();
        let own = lines.iter().take_while(|line| line.rva < rva).count();
        (lines, own)
    }

    /// Returns the RVA of the instruction `count` before the one at `rva`, or of the function's
    /// first. Instructions have to be decoded from the start of the function: if that does not lead
    /// to `rva`, returns `rva`.
    fn step_back(&self, region: &CodeRegion<'a>, rva: u32, count: usize) -> u32 {
        let location = self.locate(region, rva);
        let start = match region.functions().find(rva) {
            Some(entry) => entry.begin,
            None if location.name.is_some() && rva - location.start <= LOOK_BACK => location.start,
            None => rva,
        };
        let bytes = region.bytes_from(start).and_then(|bytes| bytes.get(..(rva - start) as usize));
        let mut decoder = Decoder::new(64, bytes.unwrap_or_default(), DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut starts = VecDeque::new();
        while decoder.can_decode() {
            starts.push_back(start.wrapping_add(decoder.position() as u32));
            if starts.len() > count {
                starts.pop_front();
            }
            decoder.decode_out(&mut instruction);
        }
        // An instruction that extends past `rva` is cut off, hence invalid.
        if instruction.is_invalid() { rva } else { starts.front().copied().unwrap_or(rva) }
    }

    fn decode<'s>(
        &'s self,
        region: &'s CodeRegion<'a>,
        rva: u32,
        bytes: &'s [u8],
    ) -> impl Iterator<Item = Line> + 's {
        let address = region.base().wrapping_add(u64::from(rva));
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        std::iter::from_fn(move || {
            if !decoder.can_decode() {
                return None;
            }
            let at = decoder.position();
            let instruction = decoder.decode();
            let own = bytes.get(at..decoder.position()).unwrap_or_default();
            Some(Line {
                rva: rva.wrapping_add(at as u32),
                bytes: own.to_vec(),
                text: self.text(&instruction),
            })
        })
    }

    fn text(&self, instruction: &Instruction) -> String {
        let mut text = intel(instruction);
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let target = instruction.near_branch64();
            if let Some((region, rva)) = self.map.find(target) {
                let location = self.locate(region, rva);
                if location.is_known() {
                    text = format!("{text} ({location})");
                }
            }
        }
        text
    }
}

/// Returns an instruction in Intel syntax.
pub(crate) fn intel(instruction: &Instruction) -> String {
    if instruction.is_invalid() {
        return "(not an instruction)".to_owned();
    }
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(false);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

/// Returns true if a function entry begins in `from..=to` (RVAs).
fn begins_between(region: &CodeRegion<'_>, from: u32, to: u32) -> bool {
    region.functions().iter().any(|entry| (from..=to).contains(&entry.begin))
}

/// Calls `act` with the code of a fuzz record and the bytes of its image.
pub(crate) fn with_fuzz_code<T>(
    record: &FuzzRecord<'_>,
    act: impl FnOnce(&Code<'_, '_>, &[u8]) -> T,
) -> Result<T, ReplayError> {
    let image = fuzz_image(record);
    let functions = fuzz_functions(record);
    let mut map = CodeMap::new();
    map.insert(CodeRegion::heap(fuzz::IMAGE_BASE, &image, FunctionTable::new(&functions))?)?;
    let symbols = Symbols::default();
    let code = Code { map: &map, symbols, image: "the record's own code".to_owned() };
    Ok(act(&code, &image))
}

/// Returns the entry and its chain parents up to the primary one.
pub(crate) fn chain<'a>(region: &'a CodeRegion<'_>, entry: RuntimeFunction) -> Vec<Link<'a>> {
    let mut links = Vec::new();
    let mut next = Some(entry);
    while let Some(entry) = next.take() {
        let (function, info) = match resolve(region, entry) {
            Ok(function) => (function, UnwindInfo::read(region, function.unwind_info)),
            Err(error) => (entry, Err(error)),
        };
        let parent = info.and_then(|info| info.parent());
        links.push(Link { entry, function, info });
        if let Ok(Some(parent)) = parent {
            if links.len() > CHAIN_LIMIT {
                let rva = parent.unwind_info;
                let info = Err(UnwindError::ChainTooLong { rva });
                links.push(Link { entry: parent, function: parent, info });
            } else {
                next = Some(parent);
            }
        }
    }
    links
}

/// Returns the target of an indirect entry, and any other entry itself.
fn resolve(
    region: &CodeRegion<'_>,
    mut entry: RuntimeFunction,
) -> Result<RuntimeFunction, UnwindError> {
    for _ in 0..=CHAIN_LIMIT {
        let Some(rva) = entry.indirect() else {
            return Ok(entry);
        };
        entry = region
            .bytes_from(rva)
            .and_then(<[u8]>::first_chunk::<SIZE_OF_RUNTIME_FUNCTION>)
            .map(RuntimeFunction::from_bytes)
            .ok_or(UnwindError::UnwindDataUnmapped { rva })?;
    }
    Err(UnwindError::ChainTooLong { rva: entry.unwind_info })
}
