//! Assembly: instructions become bytes, each branch in its shortest form.

use core::ops::Range;
use iced_x86::{Encoder, IcedError, Instruction};

/// The placement of the pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Address of the first piece (VA).
    pub start: u64,
    /// Alignment of the pieces in bytes.
    pub alignment: u64,
    /// Minimum distance between pieces in bytes, before alignment.
    pub gap: u64,
}

/// Instructions with bytes and addresses.
#[derive(Debug)]
pub(super) struct Assembled {
    /// The bytes from the first piece on, with int3 between pieces.
    pub code: Vec<u8>,
    /// Address of each instruction, then the end of the last one (VA).
    pub addresses: Vec<u64>,
    /// Length of each instruction in bytes.
    pub lengths: Vec<u8>,
}

/// Encodes instructions that lie in pieces, ascending ranges of indices without holes. The target of
/// a branch within the instructions, or of an operand relative to rip, is the index of its instruction plus 1;
/// other targets are addresses. Branches between pieces are never short.
pub(super) fn assemble(
    instructions: &[Instruction],
    pieces: &[Range<usize>],
    layout: Layout,
) -> Result<Assembled, IcedError> {
    let mut encoder = Encoder::new(64);
    let mut lengths = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        // At its own target any instruction can be encoded.
        let length = encoder.encode(instruction, target(instruction).unwrap_or_default())?;
        lengths.push(length as u8);
    }
    let longest = encoder.take_buffer();
    let longest_lengths = lengths.clone();
    for piece in pieces {
        shorten(instructions, piece.clone(), &mut lengths);
    }
    let addresses = place(pieces, &lengths, layout);
    let address = |index: usize| addresses.get(index).copied().unwrap_or(layout.start);

    let mut code = Vec::with_capacity(longest.len());
    let mut from = 0;
    for (index, instruction) in instructions.iter().enumerate() {
        let at = address(index);
        // int3 between functions.
        code.resize((at - layout.start) as usize, 0xCC);
        let bytes = from..from + usize::from(longest_lengths[index]);
        from = bytes.end;
        let Some(target) = target(instruction) else {
            code.extend_from_slice(&longest[bytes]);
            continue;
        };
        let target = index_of(target, instructions.len()).map_or(target, address);
        let mut instruction = *instruction;
        if instruction.is_ip_rel_memory_operand() {
            instruction.set_memory_displacement64(target);
        } else {
            instruction.set_near_branch64(target);
            if lengths[index] < longest_lengths[index] {
                instruction.as_short_branch();
            }
        }
        encoder.set_buffer(code);
        encoder.encode(&instruction, at)?;
        code = encoder.take_buffer();
    }
    Ok(Assembled { code, addresses, lengths })
}

/// Returns the target of a branch or of an operand relative to rip.
fn target(instruction: &Instruction) -> Option<u64> {
    if can_be_short(instruction) || instruction.is_call_near() {
        Some(instruction.near_branch64())
    } else if instruction.is_ip_rel_memory_operand() {
        Some(instruction.memory_displacement64())
    } else {
        None
    }
}

fn can_be_short(instruction: &Instruction) -> bool {
    instruction.is_jmp_near() || instruction.is_jcc_near()
}

/// Returns the index of the instruction that a target names, if it names one of `count`.
fn index_of(target: u64, count: usize) -> Option<usize> {
    let index = usize::try_from(target.checked_sub(1)?).ok()?;
    (index < count).then_some(index)
}

/// Shortens all branches within a piece that can be short. A branch that gets shorter only brings
/// others nearer to their targets, so the result does not depend on the order.
fn shorten(instructions: &[Instruction], piece: Range<usize>, lengths: &mut [u8]) {
    let mut long: Vec<_> = piece
        .clone()
        .filter(|index| can_be_short(&instructions[*index]))
        .filter_map(|index| {
            let target = index_of(instructions[index].near_branch64(), instructions.len())?;
            piece.contains(&target).then_some((index, target))
        })
        .collect();
    // Offset of each instruction of the piece.
    let mut offsets = vec![0_u32; piece.len()];
    loop {
        let mut next = 0;
        for (offset, length) in offsets.iter_mut().zip(&lengths[piece.clone()]) {
            *offset = next;
            next += u32::from(*length);
        }
        let before = long.len();
        long.retain(|(index, target)| {
            let [from, to] = [*index, *target].map(|index| i64::from(offsets[index - piece.start]));
            let own = u32::from(lengths[*index]);
            // The opcode gets a byte shorter too, except for that of `jmp`.
            let short = own - if instructions[*index].is_jmp_near() { 3 } else { 4 };
            // A target ahead comes nearer as the branch itself gets shorter. As in iced's block encoder,
            // this does not count.
            let end = from + i64::from(short);
            let fits = i8::try_from(to - end).is_ok();
            if fits {
                lengths[*index] = short as u8;
            }
            !fits
        });
        if long.len() == before {
            return;
        }
    }
}

/// Returns the address of each instruction, then the end of the last one (VA).
fn place(pieces: &[Range<usize>], lengths: &[u8], layout: Layout) -> Vec<u64> {
    let mut addresses = Vec::with_capacity(lengths.len() + 1);
    let (mut at, mut gap) = (layout.start, 0);
    for piece in pieces {
        at = (at + gap).next_multiple_of(layout.alignment);
        gap = layout.gap;
        for length in &lengths[piece.clone()] {
            addresses.push(at);
            at += u64::from(*length);
        }
    }
    addresses.push(at);
    addresses
}

#[cfg(test)]
mod tests;
