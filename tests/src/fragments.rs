//! Random functions of UNWIND_INFO versions 1 and 3: mostly well-formed ones, with code that does not belong to
//! them.

use clr_unwind::RuntimeFunction;

/// RVA after the last byte of the image, which no damaged count reaches.
pub const SIZE: usize = 0x600;

/// The functions: one, a chunk that mostly is chained to it, and one without a parent.
const FUNCTIONS: [RuntimeFunction; 3] = [
    RuntimeFunction { begin: 0x20, end: 0x60, unwind_info: 0x100 },
    RuntimeFunction { begin: 0x60, end: 0x90, unwind_info: 0x200 },
    RuntimeFunction { begin: 0x90, end: 0xC0, unwind_info: 0x300 },
];

/// Instructions of epilogues, and others.
const PIECES: [&[u8]; 12] = [
    &[0x48, 0x83, 0xC4, 0x10],
    &[0x48, 0x8D, 0x65, 0xF0],
    &[0x49, 0x8D, 0x64, 0x24, 0x10],
    &[0x58],
    &[0x5B],
    &[0x41, 0x5C],
    &[0xC3],
    &[0xEB, 0xF0],
    &[0xEB, 0x20],
    &[0x48, 0xFF, 0xE0],
    &[0x48, 0xCF],
    &[0x90],
];

/// An image with its table of functions.
#[derive(Clone, Debug)]
pub struct Image {
    /// The bytes from RVA 0 on.
    pub bytes: Vec<u8>,
    /// The RUNTIME_FUNCTION entries as bytes.
    pub table: Vec<u8>,
}

/// Makes an image by the numbers that `random` returns, each below its argument.
#[must_use]
pub fn image(random: &mut impl FnMut(usize) -> usize) -> Image {
    let mut bytes = vec![0xCC; SIZE];
    let mut at = 0x20;
    while at < 0xC0 {
        let piece = PIECES[random(PIECES.len())];
        bytes[at..][..piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    for (index, function) in FUNCTIONS.into_iter().enumerate() {
        let mut info = match random(10) {
            0 => small_function(),
            1..=3 => version_1(random),
            _ => version_3(random, function.end - function.begin),
        };
        if index == 1 && random(4) > 0 {
            info[0] |= 4 << 3;
            let [begin, end, unwind_info] = fields(FUNCTIONS[0]);
            info.extend([begin, end, unwind_info].into_iter().flat_map(u32::to_le_bytes));
        }
        if random(4) == 0 {
            let at = random(info.len());
            info[at] = random(256) as u8;
        }
        bytes[function.unwind_info as usize..][..info.len()].copy_from_slice(&info);
    }
    let table = FUNCTIONS.into_iter().flat_map(fields).flat_map(u32::to_le_bytes).collect();
    Image { bytes, table }
}

fn fields(function: RuntimeFunction) -> [u32; 3] {
    [function.begin, function.end, function.unwind_info]
}

/// Returns a function that pushes rbx and allocates.
fn small_function() -> Vec<u8> {
    vec![1, 5, 2, 0, 5, 0x32, 1, 0x30]
}

fn version_1(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut slots: Vec<u8> = Vec::new();
    let mut offset = random(16);
    let size = offset + random(4);
    for _ in 0..random(7) {
        // Of each operation, its number and the number of its further slots.
        let [operation, operands] = match random(12) {
            0..=3 => [0, 0],
            4 => [0x11, 2],
            5 | 6 => [2 | random(16) << 4, 0],
            7 => [3, 0],
            8 => [4 | random(16) << 4, 1],
            9 => [8 | random(10) << 4, 1],
            10 => [1, 1],
            _ => [0xA | random(2) << 4, 0],
        };
        let push = [3, 5, 6, 7, 12, 13, 14, 15][random(8)] << 4;
        slots.extend([offset as u8, if operation == 0 { push } else { operation } as u8]);
        slots.extend(
            (0..operands).flat_map(|at| [if at == 0 { random(16) as u8 * 8 } else { 0 }, 0]),
        );
        offset = offset.saturating_sub(random(6));
    }
    let frame = if random(2) == 0 { 0 } else { [5, 13, 12, 3][random(4)] | random(4) << 4 };
    let mut info = vec![1, size as u8, (slots.len() / 2) as u8, frame as u8];
    info.extend(slots);
    info.resize(info.len().next_multiple_of(4), 0);
    info
}

fn version_3(random: &mut impl FnMut(usize) -> usize, len: u32) -> Vec<u8> {
    let large = random(6) == 0;
    let operations: Vec<_> = (0..random(7)).map(|_| operation(random)).collect();
    let mut ips: Vec<_> = operations.iter().map(|_| random(12)).collect();
    ips.sort_unstable_by(|a, b| b.cmp(a));
    let size = ips.first().map_or(0, |ip| ip + random(4));
    let number = |number: usize, wide: bool| number.to_le_bytes()[..=usize::from(wide)].to_vec();
    let mut payload = if large { vec![(size >> 8) as u8] } else { Vec::new() };
    payload.extend(ips.iter().flat_map(|ip| number(*ip, large)));
    let epilogues = random(4);
    let from_end = random(2) == 0;
    for index in 0..epilogues {
        let distance = random(len as usize / 3).cast_signed() as i16 + i16::from(from_end);
        let distance = if from_end { -distance } else { distance };
        let first = random(operations.len() + 1);
        let count = operations.len() - first;
        if count == 0 || index > 0 && random(2) == 0 {
            payload.push(random(8) as u8);
            payload.extend(distance.to_le_bytes());
            continue;
        }
        let mut flags = random(4);
        if flags & 1 != 0 && random(2) == 0 {
            flags ^= 1;
        }
        payload.push((flags | count << 3) as u8);
        payload.extend(distance.to_le_bytes());
        let before: usize = operations[..first].iter().map(Vec::len).sum();
        payload.extend(number(before, true));
        let mut offsets: Vec<_> = (0..count).map(|_| random(10)).collect();
        offsets.sort_unstable();
        let last = offsets.last().map_or(0, |last| last + random(3));
        payload.extend(number(last, flags & 2 != 0));
        payload.extend(offsets.iter().flat_map(|offset| number(*offset, flags & 2 != 0)));
    }
    payload.extend(operations.concat());
    if payload.len() % 2 == 1 {
        payload.push(0);
    }
    let counts = operations.len() | epilogues << 5;
    let flags = if large { 3 | 8 << 3 } else { 3 };
    let mut info = vec![flags, size as u8, (payload.len() / 2) as u8, counts as u8];
    info.extend(payload);
    info.resize(info.len().next_multiple_of(4), 0);
    info
}

/// Returns a winding operation.
fn operation(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let register = match random(3) {
        0 => random(32),
        _ => [3, 5, 6, 7, 12, 13][random(6)],
    } as u8;
    let small = random(12) as u8;
    match random(14) {
        0..=3 => vec![4 | register << 3],
        4 => vec![7 | register << 3],
        5 => vec![0x20 | register << 6, register >> 2 & 7 | (random(32) as u8) << 3],
        6 | 7 => vec![8 | small << 4],
        8 => vec![2, small, 0],
        9 => vec![0, [5, 13, 0][random(3)] | small << 4],
        10 => vec![6 | register << 3, small, 0],
        11 => vec![0x0A | (register & 15) << 4, small, 0],
        12 => match random(3) {
            0 => vec![1, small << 3, 0, 0, 0],
            1 => vec![5 | register << 3, small << 3, 0, 0, 0],
            _ => vec![0x09 | (register & 15) << 4, small << 4, 0, 0, 0],
        },
        _ => vec![3, random(3) as u8],
    }
}
