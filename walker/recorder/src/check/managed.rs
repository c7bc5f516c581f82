//! A second reader of UNWIND_INFO, for methods: written for this check from the published format, and
//! sharing no code with `clr-walker`'s.
//!
//! The runtime says where a method is; its unwind data are read from memory.

use super::frame::{Frame, Pages, StackCopy};
use clr_com::{ModuleId, RuntimeInfo};
use clr_walker::profiling::{CodeRange, FunctionId, ProfilerInfo, ReJitId};

/// Numbers of registers in unwind codes.
const RSP: usize = 4;

/// `Magic` of an optional header for 64 bits.
const PE32_PLUS: u32 = 0x20B;

/// A function with unwind data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    /// The address that RVAs count from (VA).
    base: u64,
    begin: u32,
    unwind_info: u32,
}

/// Returns the method at `ip` (VA), as the runtime says: a dynamic one or an IL stub, too.
pub(super) fn method_at(info: &RuntimeInfo, ip: u64) -> Option<FunctionId> {
    let dynamic = info.get_function_from_ip3(ip).map(|(function, _)| function);
    dynamic.or_else(|_| info.get_function_from_ip(ip)).ok()
}

/// Returns the method's function or funclet at `ip` (VA).
pub(super) fn function_at(
    reader: Reader<'_>,
    info: &RuntimeInfo,
    method: FunctionId,
    ip: u64,
) -> Option<Function> {
    let module = info.get_function_info2(method, None, 0).ok().map(|found| found.module);
    if let Some(module) = module
        && let Ok((base, _)) = info.get_module_info(ModuleId(module))
        && let Some(function) = precompiled(reader, base, ip)
    {
        return Some(function);
    }
    jitted(reader, start_of(info, method, ip)?, ip)
}

/// Returns the start of the method's body that has `ip` (VA), as the runtime says.
fn start_of(info: &RuntimeInfo, method: FunctionId, ip: u64) -> Option<u64> {
    let mut starts = [0; 64];
    let count = info.get_native_code_starts(method, ReJitId(0), &mut starts).unwrap_or(0);
    let mut ranges = [CodeRange { start: 0, size: 0 }; 4];
    for start in starts.iter().take(count as usize) {
        let count = info.get_code_info4(*start, &mut ranges).unwrap_or(0);
        let has_ip = |range: &CodeRange| (range.start..range.start + range.size).contains(&ip);
        if ranges.iter().take(count as usize).any(has_ip) {
            return Some(*start);
        }
    }
    let count = info.get_code_info2(method, &mut ranges).unwrap_or(0);
    ranges
        .iter()
        .take(count as usize)
        .find(|range| (range.start..range.start + range.size).contains(&ip))
        .map(|range| range.start)
}

/// Unwind data and code, as they are now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'p>(pub(super) &'p Pages);

impl Reader<'_> {
    fn u32(self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.0.fill(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }
}

/// Returns the function of the exception directory of the image at `base` (VA).
pub(super) fn precompiled(reader: Reader<'_>, base: u64, ip: u64) -> Option<Function> {
    let [begin, _, unwind_info] = entry_at(reader, base, ip)?;
    Some(Function { base, begin, unwind_info })
}

/// Returns the entry of the exception directory of the image at `base` (VA): begin, end and unwind
/// data as RVAs. An image for 32 bits, as an assembly that has only IL often is, has none: its
/// directories lie elsewhere.
pub(super) fn entry_at(reader: Reader<'_>, base: u64, ip: u64) -> Option<[u32; 3]> {
    let rva = u32::try_from(ip.checked_sub(base).filter(|_| base != 0)?).ok()?;
    let header = base + u64::from(reader.u32(base + 0x3C)?);
    if reader.u32(header + 24)? & 0xFFFF != PE32_PLUS {
        return None;
    }
    // The fourth directory of a PE32+ optional header.
    let directory = header + 24 + 112 + 3 * 8;
    let (table, size) = (reader.u32(directory)?, reader.u32(directory + 4)?);
    if size < 12 {
        return None;
    }
    let entry = |index: u32| base + u64::from(table) + u64::from(index) * 12;
    let (mut low, mut high) = (0, size / 12);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if reader.u32(entry(middle))? <= rva { low = middle } else { high = middle }
    }
    let at = entry(low);
    let (begin, end, unwind_info) = (reader.u32(at)?, reader.u32(at + 4)?, reader.u32(at + 8)?);
    (begin <= rva && rva < end).then_some([begin, end, unwind_info])
}

/// Returns the function of a jitted body: the word before the code leads to the code header.
fn jitted(reader: Reader<'_>, start: u64, ip: u64) -> Option<Function> {
    let header = reader.0.read(start - 8)?;
    let count = reader.u32(header + 0x20)?;
    let base = start - u64::from(reader.u32(header + 0x24)?);
    let entries = (0..u64::from(count)).map(|index| header + 0x24 + index * 12);
    for entry in entries {
        let (begin, end) = (reader.u32(entry)?, reader.u32(entry + 4)?);
        if (base + u64::from(begin)..base + u64::from(end)).contains(&ip) {
            return Some(Function { base, begin, unwind_info: reader.u32(entry + 8)? });
        }
    }
    None
}

/// Moves a frame of a method to its caller. `is_interrupted`: the thread stopped at rip, so that may
/// be in a prologue or an epilogue.
pub(super) fn step(
    reader: Reader<'_>,
    function: Function,
    frame: &mut Frame,
    stack: &StackCopy<'_>,
    is_interrupted: bool,
) -> Option<()> {
    let offset = frame.rip - (function.base + u64::from(function.begin));
    let mut info = function.base + u64::from(function.unwind_info & !1);
    let mut first = true;
    loop {
        let header = reader.u32(info)?.to_le_bytes();
        let [version, prologue, count, frame_register] = header;
        let in_prologue = first && is_interrupted && offset < u64::from(prologue);
        if first && is_interrupted && !in_prologue && epilogue(reader, frame, stack).is_some() {
            return Some(());
        }
        let mut codes = Vec::new();
        for index in 0..u64::from(count) {
            let pair = reader.u32(info + 4 + index * 2)?;
            codes.push((pair as u8, (pair >> 8) as u8 & 15, usize::from((pair >> 12) as u8 & 15)));
        }
        let slot = |index: usize| {
            codes.get(index).map(|(low, op, value)| {
                u64::from(*low) | u64::from(*op) << 8 | (*value as u64) << 12
            })
        };
        let rsp_at_saves = {
            let register = usize::from(frame_register & 15);
            let set = codes.iter().position(|(_, op, _)| matches!(op, 3 | 11));
            let is_set = set.and_then(|at| codes.get(at));
            let is_set = is_set.is_some_and(|(at, ..)| !in_prologue || u64::from(*at) <= offset);
            if register != 0 && is_set {
                frame.registers.get(register)? - u64::from(frame_register >> 4) * 16
            } else {
                frame.registers[RSP]
            }
        };
        let mut index = 0;
        while let Some((at, op, value)) = codes.get(index).copied() {
            let slots = match (op, value) {
                (0 | 2 | 3 | 10, _) => 1,
                (1, 0) | (4 | 8, _) => 2,
                (1 | 5 | 9 | 11, _) => 3,
                _ => return None,
            };
            if !in_prologue || u64::from(at) <= offset {
                let rsp = frame.registers[RSP];
                let long = || Some(slot(index + 1)? | slot(index + 2)? << 16);
                match op {
                    0 => {
                        frame.registers[value] = stack.read(rsp)?;
                        frame.registers[RSP] = rsp + 8;
                    }
                    1 if value == 0 => frame.registers[RSP] = rsp + slot(index + 1)? * 8,
                    1 => frame.registers[RSP] = rsp + long()?,
                    2 => frame.registers[RSP] = rsp + value as u64 * 8 + 8,
                    3 => frame.registers[RSP] = rsp_at_saves,
                    4 => {
                        frame.registers[value] = stack.read(rsp_at_saves + slot(index + 1)? * 8)?;
                    }
                    5 => frame.registers[value] = stack.read(rsp_at_saves + long()?)?,
                    8 | 9 => {}
                    11 => {
                        let register = usize::from(frame_register & 15);
                        frame.registers[RSP] = frame.registers.get(register)? - long()? * 16;
                    }
                    _ => return None,
                }
            }
            index += slots;
        }
        if version >> 3 & 4 == 0 {
            break;
        }
        // The entry of the function whose prologue comes first lies after the codes.
        let chained = info + 4 + u64::from(count).next_multiple_of(2) * 2;
        info = function.base + u64::from(reader.u32(chained + 8)?);
        first = false;
    }
    frame.rip = stack.read(frame.registers[RSP])?;
    frame.registers[RSP] += 8;
    Some(())
}

/// Executes the rest of an epilogue, if rip is in one.
fn epilogue(reader: Reader<'_>, frame: &mut Frame, stack: &StackCopy<'_>) -> Option<()> {
    let mut registers = frame.registers;
    let mut ip = frame.rip;
    let mut adjusts = true;
    for _ in 0..20 {
        let mut code = [0; 8];
        reader.0.fill(ip, &mut code).or_else(|| reader.0.fill(ip, &mut code[..4]))?;
        let word = |at: usize| {
            code.get(at..at + 4)?.try_into().ok().map(|bytes| i64::from(i32::from_le_bytes(bytes)))
        };
        let len = match code {
            // vzeroupper
            [0xC5, 0xF8, 0x77, ..] => 3,
            // add rsp, imm8; add rsp, imm32
            [0x48, 0x83, 0xC4, by, ..] if adjusts => {
                registers[RSP] = registers[RSP].wrapping_add_signed(i64::from(by.cast_signed()));
                4
            }
            [0x48, 0x81, 0xC4, ..] if adjusts => {
                registers[RSP] = registers[RSP].wrapping_add_signed(word(3)?);
                7
            }
            // lea rsp, [rbp]; lea rsp, [rbp+disp8]; lea rsp, [rbp+disp32]
            [0x48, 0x8D, 0x65, by, ..] if adjusts => {
                registers[RSP] = registers[5].wrapping_add_signed(i64::from(by.cast_signed()));
                4
            }
            [0x48, 0x8D, 0xA5, ..] if adjusts => {
                registers[RSP] = registers[5].wrapping_add_signed(word(3)?);
                7
            }
            [0x58..=0x5F, ..] => {
                adjusts = false;
                registers[usize::from(code[0] & 7)] = stack.read(registers[RSP])?;
                registers[RSP] += 8;
                1
            }
            [0x41, 0x58..=0x5F, ..] => {
                adjusts = false;
                registers[usize::from(code[1] & 7) + 8] = stack.read(registers[RSP])?;
                registers[RSP] += 8;
                2
            }
            // ret; rep ret; jmp to another function
            [0xC3 | 0xE9, ..]
            | [0xF3, 0xC3, ..]
            | [0xFF, 0x25 | 0xE0..=0xE7, ..]
            | [0x48, 0xFF, 0x25 | 0xE0..=0xE7, ..] => {
                if code[0] != 0xC3 && code[0] != 0xF3 && adjusts && ip == frame.rip {
                    // A jump within the function, as far as one can see.
                    return None;
                }
                frame.rip = stack.read(registers[RSP])?;
                registers[RSP] += 8;
                frame.registers = registers;
                return Some(());
            }
            _ => return None,
        };
        adjusts &= matches!(code, [0xC5, ..]);
        ip += len;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image in memory with one entry where a PE32+ image has its exception directory.
    #[repr(align(8))]
    struct Image([u8; 0x200]);

    fn image(magic: u32, size: u32) -> Image {
        let mut bytes = [0; 0x200];
        let directory = 0x40 + 24 + 112 + 3 * 8;
        for (at, word) in [
            (0x3C, 0x40),
            (0x40 + 24, magic),
            (directory, 0x180),
            (directory + 4, size),
            (0x180, 0x10),
            (0x184, 0x1000),
            (0x188, 0x1234),
        ] {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        Image(bytes)
    }

    #[test]
    fn only_images_for_64_bits_have_an_exception_directory() {
        let find = |image: &Image, rva: u64| {
            let base = image.0.as_ptr() as u64;
            let found = precompiled(Reader(&Pages::default()), base, base + rva);
            found.map(|function| (function.base - base, function.begin, function.unwind_info))
        };
        let wide = image(PE32_PLUS, 12);
        assert_eq!(find(&wide, 0x20), Some((0, 0x10, 0x1234)));
        assert_eq!(find(&wide, 0x1000), None, "behind the function");
        assert_eq!(find(&image(0x10B, 12), 0x20), None, "PE32");
        assert_eq!(find(&image(PE32_PLUS, 0), 0x20), None, "an empty directory");
    }
}
