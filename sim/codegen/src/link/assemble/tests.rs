//! Tests of assembly against iced's own block encoder.

use super::{Layout, assemble};
use core::ops::Range;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, BlockEncoderResult, Code, Instruction, InstructionBlock,
    MemoryOperand, Register,
};

const START: u64 = 0x1_8000_1000;

/// Numbers drawn from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Draws `count` instructions, with branches in all directions over all distances.
    fn instructions(&mut self, count: usize) -> Vec<Instruction> {
        let mut instructions: Vec<_> = (0..count).map(|_| self.instruction(count)).collect();
        for (instruction, ip) in instructions.iter_mut().zip(1..) {
            instruction.set_ip(ip);
        }
        instructions
    }

    fn instruction(&mut self, count: usize) -> Instruction {
        let near = 1 + self.below(count as u64);
        let relative = |displacement: u64| {
            let place = MemoryOperand::with_base_displ(Register::RIP, displacement.cast_signed());
            Instruction::with2(Code::Lea_r64_m, Register::R9, place)
        };
        let instruction = match self.below(12) {
            0 | 1 => Instruction::with_branch(Code::Jmp_rel32_64, near),
            2 | 3 => Instruction::with_branch(Code::Jne_rel32_64, near),
            4 => Instruction::with_branch(Code::Call_rel32_64, near),
            5 => relative(near),
            6 => relative(0x1_7000_0000 + near),
            7 => Instruction::with2(Code::Mov_r64_imm64, Register::R11, 0x1234_5678_9ABC_u64),
            8 => Instruction::with_declare_byte(&[0xF3, 0xC3]),
            9 => Instruction::with1(Code::Push_r64, Register::R12),
            _ => Ok(Instruction::with(Code::Nopd)),
        };
        instruction.expect("the instruction exists")
    }

    fn pieces(&mut self, count: usize) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut next = 0;
        while next < count {
            let end = count.min(next + 1 + self.below(120) as usize);
            pieces.push(next..end);
            next = end;
        }
        pieces
    }
}

fn lengths(block: &BlockEncoderResult) -> Vec<u8> {
    let offsets = &block.new_instruction_offsets;
    let ends = offsets.iter().skip(1).copied().chain([block.code_buffer.len() as u32]);
    offsets.iter().zip(ends).map(|(offset, end)| (end - *offset) as u8).collect()
}

fn encode(blocks: &[InstructionBlock<'_>], options: u32) -> Vec<BlockEncoderResult> {
    let options = options | BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    BlockEncoder::encode_slice(64, blocks, options).expect("the blocks can be encoded")
}

#[test]
fn one_piece_has_the_bytes_of_the_block_encoder() {
    for seed in 1..400 {
        let mut draw = Draw(seed * 0x9E37_79B9);
        let count = 1 + draw.below(300) as usize;
        let instructions = draw.instructions(count);
        let layout = Layout { start: START, alignment: 1, gap: 0 };
        let whole = 0..count;
        let found = assemble(&instructions, std::slice::from_ref(&whole), layout)
            .expect("all can be encoded");
        let expected = encode(&[InstructionBlock::new(&instructions, START)], 0).remove(0);
        assert_eq!(found.code, expected.code_buffer, "seed {seed}");
        assert_eq!(found.lengths, lengths(&expected), "seed {seed}");
        assert_eq!(found.addresses.len(), count + 1);
        assert_eq!(found.addresses.last(), Some(&(START + found.code.len() as u64)));
    }
}

/// The encoder chooses the branches of each piece where no other piece is near, and then places
/// the pieces without choosing again.
#[test]
fn pieces_have_the_bytes_of_the_block_encoder() {
    const APART: u64 = 0x2000;
    for seed in 1..200 {
        let mut draw = Draw(seed * 0x9E37_79B9);
        let count = 1 + draw.below(600) as usize;
        let mut instructions = draw.instructions(count);
        let pieces = draw.pieces(count);
        let layout = Layout { start: START, alignment: 16, gap: 8 };
        let found = assemble(&instructions, &pieces, layout).expect("all can be encoded");

        let far: Vec<_> = pieces
            .iter()
            .zip((START..).step_by(APART as usize))
            .map(|(piece, at)| InstructionBlock::new(&instructions[piece.clone()], at))
            .collect();
        let far = encode(&far, 0);
        let (mut next, mut starts) = (START, Vec::new());
        for (piece, block) in pieces.iter().zip(&far) {
            starts.push(next.next_multiple_of(layout.alignment));
            next = starts[starts.len() - 1] + block.code_buffer.len() as u64 + layout.gap;
            for (instruction, length) in instructions[piece.clone()].iter_mut().zip(lengths(block))
            {
                if length == 2 && (instruction.is_jmp_near() || instruction.is_jcc_near()) {
                    instruction.as_short_branch();
                }
            }
        }
        let placed: Vec<_> = pieces
            .iter()
            .zip(&starts)
            .map(|(piece, at)| InstructionBlock::new(&instructions[piece.clone()], *at))
            .collect();
        let expected = encode(&placed, BlockEncoderOptions::DONT_FIX_BRANCHES);
        for (piece, block) in pieces.iter().zip(&expected) {
            let from = (block.rip - START) as usize;
            let bytes = &found.code[from..from + block.code_buffer.len()];
            assert_eq!(bytes, block.code_buffer, "seed {seed}");
            assert_eq!(found.addresses[piece.start], block.rip, "seed {seed}");
            assert_eq!(found.lengths[piece.clone()], lengths(block), "seed {seed}");
        }
        // int3 fills the gaps.
        let inside = |at: usize| {
            expected.iter().any(|block| {
                let from = (block.rip - START) as usize;
                (from..from + block.code_buffer.len()).contains(&at)
            })
        };
        assert!((0..found.code.len()).all(|at| inside(at) || found.code[at] == 0xCC));
    }
}

#[test]
fn a_branch_that_makes_another_one_short_is_found() {
    // The outer branch fits only once the inner one is short.
    let jump = |to| Instruction::with_branch(Code::Jmp_rel32_64, to).expect("it is a branch");
    let mut instructions = vec![jump(124), jump(3)];
    instructions.extend([Instruction::with(Code::Nopd); 125]);
    let layout = Layout { start: START, alignment: 1, gap: 0 };
    let whole = 0..instructions.len();
    let found = assemble(&instructions, std::slice::from_ref(&whole), layout).expect("it is code");
    assert_eq!(found.lengths[..3], [2, 2, 1]);
    assert_eq!(found.code[..4], [0xEB, 123, 0xEB, 0]);
}
