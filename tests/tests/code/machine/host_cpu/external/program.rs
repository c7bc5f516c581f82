//! Random programs: instructions of all forms, in loops, after conditional jumps, and in functions.

use super::*;
use iced_x86::{
    Encoder, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};

/// Registers that only the program's frame changes: rbx points to the data, rsp to the stack, and
/// r15 counts the rounds of a loop.
const RESERVED: [usize; 3] = [3, 4, 15];

/// Code at [`CODE`] that ends by reaching `end`.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<u8>,
    pub(crate) end: u64,
}

/// The instructions that programs are made of, by form.
#[derive(Debug)]
pub(crate) struct Supply(Vec<Vec<Instruction>>);

/// An instruction, with the index of its target if it is a branch.
type Piece = (Instruction, Option<usize>);

impl Supply {
    pub(crate) fn new(machine: &mut Machine) -> Self {
        let mut forms = Vec::new();
        for code in Code::values().filter(|code| is_supported(*code)) {
            let mut form = Vec::new();
            for encoding in encodings(code) {
                let done = |machine: &mut Machine| {
                    (0..4).any(|seed| {
                        execute(machine, &sample(&encoding, seed)) == Some(Outcome::Done)
                    })
                };
                if is_usable(&encoding)
                    && is_known(machine, &encoding, &sample(&encoding, 0))
                    && done(machine)
                {
                    form.push(encoding.instruction);
                }
            }
            if !form.is_empty() {
                forms.push(form);
            }
        }
        Self(forms)
    }

    /// Generates a program of 20 to 60 instructions, not counting jumps, loops, calls and other
    /// glue.
    pub(crate) fn program(&self, random: &mut Random) -> Program {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut calls = Vec::new();
        let mut left = 20 + random.below(41) as usize;
        while left > 0 {
            let some = (1 + random.below(6) as usize).min(left);
            left -= some;
            match random.below(8) {
                0 => {
                    // A conditional jump over a few instructions.
                    let condition = random.below(16) as usize;
                    let jump = Code::try_from(Code::Jo_rel32_64 as usize + 3 * condition).unwrap();
                    let at = pieces.len();
                    pieces.push((branch(jump), None));
                    self.plain(&mut pieces, some, random);
                    pieces[at].1 = Some(pieces.len());
                }
                1 => {
                    let rounds = 1 + random.below(4) as u32;
                    pieces.push((
                        Instruction::with2(Code::Mov_r32_imm32, Register::R15D, rounds).unwrap(),
                        None,
                    ));
                    let start = pieces.len();
                    self.plain(&mut pieces, some, random);
                    let count = Instruction::with1(Code::Dec_rm32, Register::R15D).unwrap();
                    pieces.push((count, None));
                    pieces.push((branch(Code::Jne_rel32_64), Some(start)));
                }
                2 => {
                    calls.push((pieces.len(), some));
                    pieces.push((branch(Code::Call_rel32_64), None));
                }
                3 => {
                    let push = Register::RAX + random.below(16) as u32;
                    let pop = random.pick(&[Register::RAX, Register::RDX, Register::R10]);
                    pieces.push((Instruction::with1(Code::Push_r64, push).unwrap(), None));
                    self.plain(&mut pieces, some, random);
                    pieces.push((Instruction::with1(Code::Pop_r64, pop).unwrap(), None));
                }
                _ => self.plain(&mut pieces, some, random),
            }
        }
        let end = pieces.len();
        // The functions follow the end, which is marked by an int3.
        pieces.push((Instruction::with(Code::Int3), None));
        for (from, some) in calls {
            pieces[from].1 = Some(pieces.len());
            self.plain(&mut pieces, some, random);
            pieces.push((Instruction::with(Code::Retnq), None));
        }
        assemble(&pieces, end)
    }

    /// Adds some instructions that do not branch.
    fn plain(&self, pieces: &mut Vec<Piece>, some: usize, random: &mut Random) {
        for _ in 0..some {
            let form = &self.0[random.below(self.0.len() as u64) as usize];
            let mut i = random.pick(form);
            if is_string(&i) {
                for (to, count) in [(Register::RSI, 0x20), (Register::RDI, 0x30)] {
                    pieces.push((lea(to, random.below(count).cast_signed()), None));
                }
                let count = random.below(5) as u32;
                pieces.push((
                    Instruction::with2(Code::Mov_r32_imm32, Register::ECX, count).unwrap(),
                    None,
                ));
            }
            if matches!(i.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
                let clear =
                    Instruction::with2(Code::Xor_r32_rm32, Register::EDX, Register::EDX).unwrap();
                pieces.push((clear, None));
            }
            if (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory)
                && i.code() != Code::Lea_r64_m
                && (i.memory_base().is_gpr() || i.memory_index().is_gpr())
            {
                i.set_memory_base(Register::RBX);
                i.set_memory_index(Register::None);
                i.set_segment_prefix(Register::None);
                let displacement = random.below(0xD0).cast_signed() - 0x70;
                let aligned = i.memory_size().size() == 16;
                let displacement = if aligned { displacement & !15 } else { displacement };
                i.set_memory_displacement64(displacement.cast_unsigned());
                i.set_memory_displ_size(1);
            }
            pieces.push((i, None));
        }
    }
}

fn is_string(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| matches!(i.op_kind(n), OpKind::MemorySegRSI | OpKind::MemoryESRDI))
}

fn lea(to: Register, displacement: i64) -> Instruction {
    let memory = iced_x86::MemoryOperand::with_base_displ(Register::RBX, displacement);
    Instruction::with2(Code::Lea_r64_m, to, memory).unwrap()
}

fn branch(code: Code) -> Instruction {
    Instruction::with_branch(code, CODE).unwrap()
}

/// Returns true if an instruction may be anywhere in a program.
fn is_usable(encoding: &Encoding) -> bool {
    let i = &encoding.instruction;
    let mut factory = InstructionInfoFactory::new();
    let harmless = factory.info(i).used_registers().iter().all(|used| {
        let register = used.register();
        let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        reads || !register.is_gpr() || !RESERVED.contains(&number(register))
    });
    let bit_string =
        matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
            && i.op0_kind() == OpKind::Memory
            && i.op1_kind() == OpKind::Register;
    // Some results of these are undefined, or not compared.
    let undefined = matches!(
        i.mnemonic(),
        Mnemonic::Shld | Mnemonic::Shrd | Mnemonic::Stmxcsr | Mnemonic::Ldmxcsr
    ) || matches!(i.code(), Code::Bsf_r32_rm32 | Code::Bsr_r32_rm32);
    harmless
        && !bit_string
        && !undefined
        && !i.is_stack_instruction()
        && i.flow_control() == FlowControl::Next
}

/// Encodes the pieces one after the other. Branches have a fixed size, so that the first round
/// determines all addresses.
fn assemble(pieces: &[Piece], end: usize) -> Program {
    let mut places = vec![CODE; pieces.len() + 1];
    let mut code = Vec::new();
    for _ in 0..2 {
        let mut encoder = Encoder::new(64);
        let mut at = CODE;
        for (n, (instruction, target)) in pieces.iter().enumerate() {
            places[n] = at;
            let mut instruction = *instruction;
            if let Some(target) = target {
                instruction.set_near_branch64(places[*target]);
            }
            at += encoder.encode(&instruction, at).unwrap() as u64;
        }
        code = encoder.take_buffer();
    }
    Program { code, end: places[end] }
}
