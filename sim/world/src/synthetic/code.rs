//! The code of a synthetic thread's functions: nops, and calls before the return addresses, with
//! unwind data that fits the activations.

use super::{CodeLocation, SyntheticActivation, SyntheticError, SyntheticThread};
use clr_codegen::{LIBRARY_TEXT, PlainFunction, library};
use clr_runtime::code_manager::{Funclet, MethodKind, StubKind};
use clr_runtime::frame::layout::FrameConvention;
use clr_unwind::Gpr;
use std::collections::BTreeMap;

/// Base addresses of the code (VA), by [`CodeLocation`].
pub const CODE: [u64; 3] = [0x7FF8_0000_0000, 0x7FF8_1000_0000, 0x7FF8_2000_0000];

/// Distance between two functions in bytes, or a multiple of it for large ones; the gap is padding.
const PITCH: u32 = 0x400;
/// Padding after a function in bytes.
const PADDING: u32 = 0x40;
/// Size of a function's code in bytes, unless an activation is further from its start.
pub const SIZE: u32 = PITCH - PADDING;
/// Limit of an activation's offset from the start of its function, in bytes (exclusive).
pub const MAX_OFFSET: u32 = 0x1_0000;
/// Size of a prologue in bytes: rip of an activation is after it.
pub const PROLOGUE: u8 = 0x10;
/// add rsp, imm32
const RELEASE: [u8; 3] = [0x48, 0x81, 0xC4];
/// call rax
const CALL: [u8; 2] = [0xFF, 0xD0];
/// Start of the unwind data, after any code (RVA).
const UNWIND_DATA: u32 = 0x40_0000;

/// A function, or a funclet of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    pub place: CodeLocation,
    pub kind: MethodKind,
    pub funclet: Option<Funclet>,
    pub gs_cookie: Option<u32>,
    /// The block is a stub, not a function.
    pub stub: Option<StubKind>,
    /// First byte (VA).
    pub start: u64,
    pub size: u32,
}

impl Function {
    /// Returns the name without the version of the code.
    pub(super) fn method_name(&self) -> &str {
        self.name.split('@').next().unwrap_or(&self.name)
    }
}

/// A range of code: its bytes and tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub base: u64,
    pub bytes: Vec<u8>,
    pub functions: Vec<u8>,
    pub unwind_data: Vec<u8>,
}

impl Unit {
    /// RVA of the unwind data.
    pub(super) const UNWIND_DATA: u32 = UNWIND_DATA;

    /// Makes the function at `start` (VA) make a call before `offset`.
    fn call_before(&mut self, start: u64, offset: u32) {
        let at = (start - self.base) as usize + offset as usize;
        // An activation at its function's first instruction has not called.
        if (offset as usize) < CALL.len() {
            return;
        }
        let before = at.checked_sub(CALL.len()).and_then(|begin| self.bytes.get_mut(begin..at));
        if let Some(before) = before {
            before.copy_from_slice(&CALL);
        }
    }

    /// Ends the function at `begin` (offset into the bytes) with the epilogue of a frame of `size`
    /// bytes below the pushed registers. The epilogue is omitted if it does not fit after `last`,
    /// the largest offset of an activation.
    fn epilogue(&mut self, begin: u32, code_size: u32, saves: &[Gpr], size: u32, last: u32) {
        let mut code = Vec::from(RELEASE);
        code.extend(size.to_le_bytes());
        for register in saves.iter().rev() {
            let number = register.number();
            code.extend((number >= 8).then_some(0x41));
            code.push(0x58 | number & 7);
        }
        code.push(0xC3);
        let start = code_size - code.len() as u32;
        let end = (begin + code_size) as usize;
        if let Some(room) = self.bytes.get_mut((begin + start) as usize..end)
            && last <= start
        {
            room.copy_from_slice(&code);
        }
    }
}

/// All code of a synthetic thread.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub functions: Vec<Function>,
    /// Code by [`CodeLocation`].
    pub units: [Unit; 3],
    /// On Unix, the native module as an ELF file; its load address puts the code where its unit is.
    pub library: Option<Library>,
}

/// An ELF file.
#[derive(Clone, Debug)]
pub(super) struct Library {
    /// Load address (VA).
    pub base: u64,
    pub bytes: Vec<u8>,
}

/// The identity of a function: activations with the same key share it.
type Key<'s> = (&'s str, CodeLocation, Option<Funclet>);

impl Layout {
    pub(super) fn new(thread: &SyntheticThread) -> Result<Self, SyntheticError> {
        let mut units = CODE.map(|base| Unit { base, ..Unit::default() });
        let mut functions: Vec<Function> = Vec::new();
        let mut described = Vec::new();
        let has_library = thread.generation.is_unix();
        let mut known: BTreeMap<Key<'_>, (usize, u64)> = BTreeMap::new();
        for (index, activation) in thread.activations.iter().enumerate() {
            let error = SyntheticError::Activation { index };
            let end = thread
                .activations
                .get(index + 1)
                .map_or(activation.sp.wrapping_add(0x40), |activation| activation.sp);
            let size = frame_size(activation, end).ok_or(error)?;
            // A function calls only after its prologue.
            let first = u32::from(PROLOGUE) + u32::from(index > 0);
            let in_code =
                activation.offset < MAX_OFFSET && (activation.leaf || activation.offset >= first);
            if !in_code {
                return Err(error);
            }
            let key = (activation.function.as_str(), activation.place, activation.funclet);
            if let Some((other, other_size)) = known.get(&key) {
                let same = functions.get(*other).is_some_and(|other| other.kind == activation.kind);
                if *other_size != size || !same {
                    return Err(error);
                }
                continue;
            }
            let same = thread.activations.iter().filter(|other| is_same_code(other, activation));
            let last = same.map(|other| other.offset).max().unwrap_or_default();
            let code_size = code_size(last);
            let unit = &mut units[activation.place as usize];
            let begin = unit.bytes.len() as u32;
            known.insert(key, (functions.len(), size));
            functions.push(Function {
                name: activation.function.clone(),
                place: activation.place,
                kind: activation.kind,
                funclet: activation.funclet,
                gs_cookie: activation.gs_cookie,
                stub: None,
                start: unit.base + u64::from(begin),
                size: code_size,
            });
            unit.bytes.resize((begin + code_size + PADDING) as usize, 0x90);
            if activation.leaf {
                continue;
            }
            // The runtime does not look for cookies elsewhere.
            if activation.gs_cookie.is_some() && activation.place != CodeLocation::Native {
                unit.epilogue(begin, code_size, &activation.saves, size as u32, last);
            }
            if has_library && activation.place == CodeLocation::Native {
                described.push(PlainFunction {
                    name: &activation.function,
                    begin: LIBRARY_TEXT + begin,
                    size: code_size,
                    pushes: &activation.saves,
                    locals: size,
                    prologue: PROLOGUE,
                });
            } else {
                let at = UNWIND_DATA + unit.unwind_data.len() as u32;
                let entry = [begin, begin + code_size, at];
                unit.functions.extend(entry.into_iter().flat_map(u32::to_le_bytes));
                unwind_info(&mut unit.unwind_data, &activation.saves, size);
            }
        }
        for (name, kind) in &thread.stubs {
            let unit = &mut units[CodeLocation::Heap as usize];
            functions.push(Function {
                name: name.clone(),
                place: CodeLocation::Heap,
                kind: MethodKind::Ordinary,
                funclet: None,
                gs_cookie: None,
                stub: Some(*kind),
                start: unit.base + unit.bytes.len() as u64,
                size: SIZE,
            });
            unit.bytes.resize(unit.bytes.len() + PITCH as usize, 0x90);
        }
        for activation in thread.activations.iter().skip(1) {
            let key = (activation.function.as_str(), activation.place, activation.funclet);
            let function = known.get(&key).and_then(|(index, _)| functions.get(*index));
            if let Some(function) = function {
                units[activation.place as usize].call_before(function.start, activation.offset);
            }
        }
        let native = &units[CodeLocation::Native as usize];
        let library =
            (has_library && !native.bytes.is_empty()).then(|| Library::new(native, &described));
        let library = library.transpose()?;
        Ok(Self { functions, units, library })
    }

    /// Returns the function of an activation.
    pub(super) fn function_of(&self, activation: &SyntheticActivation) -> Option<&Function> {
        self.functions.iter().find(|function| {
            function.name == activation.function
                && function.place == activation.place
                && function.funclet == activation.funclet
        })
    }

    /// Returns the function at an address (VA), and the offset of the address in the function.
    pub(super) fn find(&self, address: u64) -> Option<(&Function, u64)> {
        let function = self.functions.iter().find(|function| {
            let size = u64::from(function.size + PADDING);
            address.wrapping_sub(function.start) < size
        })?;
        Some((function, address - function.start))
    }
}

impl Library {
    fn new(unit: &Unit, functions: &[PlainFunction<'_>]) -> Result<Self, SyntheticError> {
        let bytes = library("libcoreclr.so", &unit.bytes, functions).ok_or(SyntheticError::Size)?;
        Ok(Self { base: unit.base - u64::from(LIBRARY_TEXT), bytes })
    }
}

/// Returns true if two activations share a function's code.
fn is_same_code(one: &SyntheticActivation, other: &SyntheticActivation) -> bool {
    let key = |it: &SyntheticActivation| (it.place, it.funclet);
    one.function == other.function && key(one) == key(other)
}

/// Returns the size in bytes of a function's code with an activation at the offset `last`.
fn code_size(last: u32) -> u32 {
    if last < SIZE { SIZE } else { (last + 2 * PADDING).next_multiple_of(PITCH) - PADDING }
}

/// Returns the size of a frame without the return address and the pushed registers, in bytes.
fn frame_size(activation: &SyntheticActivation, end: u64) -> Option<u64> {
    let size = end.checked_sub(activation.sp)?.checked_sub(8)?;
    if activation.leaf {
        return (size == 0).then_some(0);
    }
    let locals = size.checked_sub(8 * activation.saves.len() as u64)?;
    (locals.is_multiple_of(8) && locals < 1 << 31).then_some(locals)
}

/// Writes an UNWIND_INFO of version 1: pushes, then an allocation of `size` bytes.
fn unwind_info(data: &mut Vec<u8>, saves: &[Gpr], size: u64) {
    let mut codes = Vec::new();
    match (size / 8, size) {
        (0, _) => {}
        (words @ 1..=16, _) => codes.extend([PROLOGUE, (words as u8 - 1) << 4 | 2]),
        (words @ 17..=0xFFFF, _) => {
            codes.extend([PROLOGUE, 1]);
            codes.extend((words as u16).to_le_bytes());
        }
        (_, size) => {
            codes.extend([PROLOGUE, 0x11]);
            codes.extend((size as u32).to_le_bytes());
        }
    }
    for (index, register) in saves.iter().enumerate().rev() {
        codes.extend([index as u8 + 1, register.number() << 4]);
    }
    data.extend([1, PROLOGUE, (codes.len() / 2) as u8, 0]);
    data.extend(&codes);
    data.resize(data.len().next_multiple_of(4), 0);
}

/// Returns the register values of each activation: a function's own values in the registers that it
/// pushes, its caller's values in the others.
pub(super) fn register_values(thread: &SyntheticThread) -> Vec<[u64; 16]> {
    let saved = FrameConvention::of(thread.generation).callee_saved;
    let mut values = [0; 16];
    for register in saved {
        values[usize::from(register.number())] = 0xC0DE_0000 + u64::from(register.number());
    }
    let mut activations = Vec::with_capacity(thread.activations.len());
    for (index, activation) in thread.activations.iter().enumerate().rev() {
        for register in &activation.saves {
            let number = register.number();
            values[usize::from(number)] =
                0xC0DE_0000 + ((index as u64 + 1) << 8) + u64::from(number);
        }
        values[usize::from(Gpr::Rsp.number())] = activation.sp;
        activations.push(values);
    }
    activations.reverse();
    activations
}
