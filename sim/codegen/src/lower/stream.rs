//! A stream of instructions with labels and a note for each instruction.

use super::super::marks::{Role, WindowsMistake};
use super::super::program::FunctionIndex;
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

/// A position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// The facts about an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// The function in the source program, `None` for a helper's code.
    pub function: Option<FunctionIndex>,
    pub role: Role,
    /// Mistake of the Windows rules before this instruction.
    pub mistake: Option<WindowsMistake>,
    /// Label at which an exception thrown in this call is caught.
    pub landing: Option<Label>,
    /// Handler of the interrupt that this instruction raises.
    pub handler: Option<FunctionIndex>,
    /// The instruction is a call on another stack.
    pub switches_stack: bool,
    /// Bytes of arguments that have been pushed for this call.
    pub arguments: u32,
    /// Index of the innermost guarded statement that protects the instruction.
    pub guard: Option<u32>,
}

impl Note {
    /// The note of a helper's instruction.
    pub(crate) const HELPER: Self = Self {
        function: None,
        role: Role::Helper,
        mistake: None,
        landing: None,
        handler: None,
        switches_stack: false,
        arguments: 0,
        guard: None,
    };
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A register plus a displacement.
    At(Gpr, i64),
    /// A register plus a displacement that is always encoded in 8 bits.
    AtDisp8(Gpr, i64),
    /// A register plus a displacement that is always encoded in 32 bits.
    AtDisp32(Gpr, i64),
    /// The sum of two registers.
    Sum(Gpr, Gpr),
    /// An address (VA), relative to rip.
    Absolute(u64),
    /// A segment's base plus a displacement.
    Segment(Register, i64),
}

impl From<Place> for MemoryOperand {
    fn from(place: Place) -> Self {
        let near = |base, displacement, size| {
            Self::new(base, Register::None, 1, displacement, size, false, Register::None)
        };
        match place {
            Place::At(base, displacement) => {
                near(r64(base), displacement, u32::from(displacement != 0))
            }
            Place::AtDisp8(base, displacement) => near(r64(base), displacement, 1),
            Place::AtDisp32(base, displacement) => near(r64(base), displacement, 8),
            Place::Sum(base, index) => Self::with_base_index(r64(base), r64(index)),
            Place::Absolute(address) => Self::with_base_displ(Register::RIP, address.cast_signed()),
            Place::Segment(segment, displacement) => {
                Self::new(Register::None, Register::None, 1, displacement, 4, false, segment)
            }
        }
    }
}

/// Returns iced's name of a register.
pub(crate) fn r64(register: Gpr) -> Register {
    Register::RAX + u32::from(register.number())
}

fn r32(register: Gpr) -> Register {
    Register::EAX + u32::from(register.number())
}

/// The stream of one image's or heap's instructions.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub instructions: Vec<Instruction>,
    pub notes: Vec<Note>,
    /// Index of the instruction after each label.
    labels: Vec<Option<u32>>,
    /// The instructions that compute the address of a label.
    addresses: Vec<(u32, Label)>,
    /// Note for the next instructions.
    pub now: Option<Note>,
}

type Result<T = (), E = IcedError> = core::result::Result<T, E>;

impl Stream {
    /// Returns the index of the next instruction.
    pub(crate) fn here(&self) -> u32 {
        self.instructions.len() as u32
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the next instruction.
    pub(crate) fn bind(&mut self, label: Label) {
        if let Some(at) = self.labels.get_mut(label.0 as usize) {
            *at = Some(self.instructions.len() as u32);
        }
    }

    /// Returns true if a label is bound to the next instruction.
    pub(crate) fn has_label_here(&self) -> bool {
        self.labels.contains(&Some(self.here()))
    }

    /// Returns the index of the instruction that a label is bound to.
    pub(crate) fn index_of(&self, label: Label) -> Option<u32> {
        self.labels.get(label.0 as usize).copied().flatten()
    }

    /// Sets each instruction's address to its index + 1, and each branch's target to the address of
    /// its label.
    pub(crate) fn resolve(&mut self) {
        for index in 0..self.instructions.len() {
            let instruction = &mut self.instructions[index];
            if instruction.is_jmp_near() || instruction.is_call_near() || instruction.is_jcc_near()
            {
                let label = instruction.near_branch64() as usize;
                let target = self.labels.get(label).copied().flatten().unwrap_or(0);
                instruction.set_near_branch64(u64::from(target) + 1);
            }
            instruction.set_ip(index as u64 + 1);
        }
        for &(index, label) in &self.addresses {
            let target = u64::from(self.index_of(label).unwrap_or(0)) + 1;
            if let Some(instruction) = self.instructions.get_mut(index as usize) {
                instruction.set_memory_displacement64(target);
            }
        }
    }

    pub(crate) fn add(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
        self.notes.push(self.now.unwrap_or(Note::HELPER));
    }

    fn with1(&mut self, code: Code, register: Register) -> Result {
        self.add(Instruction::with1(code, register)?);
        Ok(())
    }

    pub(crate) fn push(&mut self, register: Gpr) -> Result {
        self.with1(Code::Push_r64, r64(register))
    }

    pub(crate) fn pop(&mut self, register: Gpr) -> Result {
        self.with1(Code::Pop_r64, r64(register))
    }

    /// Adds `add rsp, imm` or a similar instruction, with a short immediate if it fits and `long`
    /// is false.
    pub(crate) fn arithmetic(
        &mut self,
        (short, full): (Code, Code),
        register: Gpr,
        immediate: i32,
        long: bool,
    ) -> Result {
        let code = if !long && i8::try_from(immediate).is_ok() { short } else { full };
        self.add(Instruction::with2(code, r64(register), immediate)?);
        Ok(())
    }

    pub(crate) fn add_rsp(&mut self, bytes: u32, long: bool) -> Result {
        let codes = (Code::Add_rm64_imm8, Code::Add_rm64_imm32);
        self.arithmetic(codes, Gpr::Rsp, bytes.cast_signed(), long)
    }

    pub(crate) fn sub_rsp(&mut self, bytes: u32, long: bool) -> Result {
        let codes = (Code::Sub_rm64_imm8, Code::Sub_rm64_imm32);
        self.arithmetic(codes, Gpr::Rsp, bytes.cast_signed(), long)
    }

    pub(crate) fn mov(&mut self, to: Gpr, from: Gpr) -> Result {
        self.add(Instruction::with2(Code::Mov_r64_rm64, r64(to), r64(from))?);
        Ok(())
    }

    pub(crate) fn mov_imm64(&mut self, to: Gpr, immediate: u64) -> Result {
        self.add(Instruction::with2(Code::Mov_r64_imm64, r64(to), immediate)?);
        Ok(())
    }

    pub(crate) fn mov_imm32(&mut self, to: Gpr, immediate: u32) -> Result {
        self.add(Instruction::with2(Code::Mov_r32_imm32, r32(to), immediate)?);
        Ok(())
    }

    /// Adds `mov r11d, ecx`, whose result is not used.
    pub(crate) fn filler(&mut self) -> Result {
        self.add(Instruction::with2(Code::Mov_r32_rm32, Register::R11D, Register::ECX)?);
        Ok(())
    }

    pub(crate) fn lea(&mut self, to: Gpr, place: Place) -> Result {
        self.add(Instruction::with2(Code::Lea_r64_m, r64(to), MemoryOperand::from(place))?);
        Ok(())
    }

    pub(crate) fn load(&mut self, to: Gpr, place: Place) -> Result {
        self.add(Instruction::with2(Code::Mov_r64_rm64, r64(to), MemoryOperand::from(place))?);
        Ok(())
    }

    pub(crate) fn store(&mut self, place: Place, from: Gpr) -> Result {
        self.add(Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::from(place), r64(from))?);
        Ok(())
    }

    pub(crate) fn store_imm32(&mut self, place: Place, immediate: i32) -> Result {
        let memory = MemoryOperand::from(place);
        self.add(Instruction::with2(Code::Mov_rm64_imm32, memory, immediate)?);
        Ok(())
    }

    pub(crate) fn load_xmm(&mut self, n: u8, place: Place) -> Result {
        let memory = MemoryOperand::from(place);
        let register = Register::XMM0 + u32::from(n);
        self.add(Instruction::with2(Code::Movaps_xmm_xmmm128, register, memory)?);
        Ok(())
    }

    pub(crate) fn store_xmm(&mut self, place: Place, n: u8) -> Result {
        let memory = MemoryOperand::from(place);
        let register = Register::XMM0 + u32::from(n);
        self.add(Instruction::with2(Code::Movaps_xmmm128_xmm, memory, register)?);
        Ok(())
    }

    /// Fills both halves of a vector register with rax.
    pub(crate) fn spread_rax(&mut self, n: u8) -> Result {
        let register = Register::XMM0 + u32::from(n);
        self.add(Instruction::with2(Code::Movq_xmm_rm64, register, Register::RAX)?);
        self.add(Instruction::with2(Code::Punpcklqdq_xmm_xmmm128, register, register)?);
        Ok(())
    }

    /// Adds `lea to, [rip + …]`, which computes the address of a label.
    pub(crate) fn lea_label(&mut self, to: Gpr, label: Label) -> Result {
        self.addresses.push((self.here(), label));
        self.lea(to, Place::Absolute(0))
    }

    /// Adds an instruction with a memory operand and an immediate.
    pub(crate) fn memory_i32(&mut self, code: Code, place: Place, immediate: i32) -> Result {
        self.add(Instruction::with2(code, MemoryOperand::from(place), immediate)?);
        Ok(())
    }

    /// Adds `test [place], eax`, which touches a page.
    pub(crate) fn touch(&mut self, place: Place) -> Result {
        let memory = MemoryOperand::from(place);
        self.add(Instruction::with2(Code::Test_rm32_r32, memory, Register::EAX)?);
        Ok(())
    }

    /// Adds `cmp [place], register`.
    pub(crate) fn compare(&mut self, place: Place, with: Gpr) -> Result {
        let memory = MemoryOperand::from(place);
        self.add(Instruction::with2(Code::Cmp_rm64_r64, memory, r64(with))?);
        Ok(())
    }

    pub(crate) fn registers(&mut self, code: Code, a: Register, b: Register) -> Result {
        self.add(Instruction::with2(code, a, b)?);
        Ok(())
    }

    pub(crate) fn immediate(&mut self, code: Code, register: Register, immediate: i32) -> Result {
        self.add(Instruction::with2(code, register, immediate)?);
        Ok(())
    }

    /// Adds a call or jump through memory.
    pub(crate) fn through(&mut self, code: Code, place: Place) -> Result {
        self.add(Instruction::with1(code, MemoryOperand::from(place))?);
        Ok(())
    }

    pub(crate) fn jump_to(&mut self, register: Gpr) -> Result {
        self.with1(Code::Jmp_rm64, r64(register))
    }

    pub(crate) fn call_rax(&mut self) -> Result {
        self.with1(Code::Call_rm64, Register::RAX)
    }

    /// Adds a call, or a conditional or unconditional jump, to a label.
    pub(crate) fn branch(&mut self, code: Code, label: Label) -> Result {
        self.add(Instruction::with_branch(code, u64::from(label.0))?);
        Ok(())
    }

    pub(crate) fn plain(&mut self, code: Code) {
        self.add(Instruction::with(code));
    }

    /// Adds bytes that iced cannot express as an instruction: redundant prefixes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.add(Instruction::with_declare_byte(bytes)?);
        Ok(())
    }
}
