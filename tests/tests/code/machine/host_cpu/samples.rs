//! Initial states for an instruction: operands at the edges of their ranges, and addresses in
//! mapped memory, or just beyond it.

use super::*;
use iced_x86::{FlowControl, MemorySize};

const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;
/// Mask of the lower half of canonical addresses, which belongs to processes.
const CANONICAL: u64 = 0x7FFF_FFFF_FFFF;

/// Returns random registers, flags and window. State that does not matter to an instruction keeps
/// these values.
pub(crate) fn background(seed: u64, rip: u64) -> Start {
    let mut random = Random::new(seed);
    let gpr = core::array::from_fn(|_| random.next());
    let xmm = core::array::from_fn(|_| random.wide());
    let flags = random.next() & FLAGS;
    let mut window = [0; WINDOW_LEN];
    for word in window.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    Start { state: State { rip, gpr, flags, xmm, mxcsr: MXCSR }, window }
}

/// Returns a state to execute the instruction in, which depends on the seed.
pub(crate) fn sample(encoding: &Encoding, seed: u64) -> Start {
    let i = &encoding.instruction;
    let mut random = Random::new(!seed);
    let mut start = background(seed, encoding.at);
    let elements = elements(i, &mut random);
    let bits = operand_bits(i);
    for register in read_registers(i) {
        if random.one_in(5) {
            continue;
        }
        if register.is_xmm() {
            let vector = random.vector(elements);
            start.state.xmm[register.number()] = vector;
        } else if register.is_gpr() {
            let mask = u64::MAX >> (64 - bits);
            let value = &mut start.state.gpr[number(register)];
            *value = *value & !mask | random.integer(bits);
            if register.size() == 1 && random.one_in(2) {
                *value = *value & !0xFFFF | random.integer(16);
            }
        }
    }
    counts(i, &mut start.state, &mut random);
    let target = place_operands(i, &mut start, &mut random);
    if let Some(at) = target.checked_sub(WINDOW)
        && let Some(bytes) = start.window.get_mut(at as usize..at as usize + 16)
        && !random.one_in(5)
    {
        let vector = match elements {
            Elements::Integer(bits) if bits >= 8 => random.vector(Elements::Integer(bits)),
            other => random.vector(other),
        };
        bytes.copy_from_slice(&vector.to_le_bytes());
    }
    special(i, &mut start, target, &mut random);
    start
}

/// Returns the number of the integer register that contains a register.
pub(crate) fn number(register: Register) -> usize {
    register.full_register().number()
}

/// Returns the registers that an instruction reads.
fn read_registers(i: &Instruction) -> Vec<Register> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(i).used_registers();
    let mut registers: Vec<Register> = used.iter().map(iced_x86::UsedRegister::register).collect();
    registers.dedup();
    registers
}

/// Returns the size of integer operands in bits.
fn operand_bits(i: &Instruction) -> u32 {
    let registers = (0..i.op_count()).map(|n| i.op_register(n)).filter(|r| r.is_gpr());
    let size = registers.map(Register::size).next().unwrap_or(i.memory_size().size());
    (8 * size as u32).clamp(8, 64)
}

/// Returns the kind of elements for the instruction's vectors: most often the instruction's own.
fn elements(i: &Instruction, random: &mut Random) -> Elements {
    let any = [
        Elements::Random,
        Elements::Single,
        Elements::Double,
        Elements::Integer(8),
        Elements::Integer(16),
        Elements::Integer(32),
        Elements::Integer(64),
    ];
    let other = random.pick(&any);
    let size = i.code().op_code().memory_size();
    if random.one_in(6) {
        return other;
    }
    match (size.element_type(), 8 * size.element_type().size() as u32) {
        (MemorySize::Float32, _) => Elements::Single,
        (MemorySize::Float64, _) => Elements::Double,
        (_, bits @ (8 | 16 | 32 | 64)) => Elements::Integer(bits),
        _ => other,
    }
}

/// Sets the counts of shifts, most often to small ones.
fn counts(i: &Instruction, state: &mut State, random: &mut Random) {
    const COUNTS: [u64; 14] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64];
    let counted = (0..i.op_count()).any(|n| i.op_register(n) == Register::CL)
        || matches!(
            i.mnemonic(),
            Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx | Mnemonic::Bzhi | Mnemonic::Bextr
        );
    if counted && !random.one_in(4) {
        let last = i.op_register(i.op_count() - 1);
        let value = &mut state.gpr[number(last)];
        *value = *value & !0xFFFF | random.pick(&COUNTS) << 8 | random.pick(&COUNTS);
        if random.one_in(3) {
            *value += 1;
        }
    }
    let vector_counts =
        matches!(
            i.mnemonic(),
            Mnemonic::Psllw | Mnemonic::Pslld | Mnemonic::Psllq | Mnemonic::Psrlw | Mnemonic::Psrld
        ) || matches!(i.mnemonic(), Mnemonic::Psrlq | Mnemonic::Psraw | Mnemonic::Psrad)
            || matches!(i.mnemonic(), Mnemonic::Vpsllw | Mnemonic::Vpslld | Mnemonic::Vpsllq)
            || matches!(i.mnemonic(), Mnemonic::Vpsrlw | Mnemonic::Vpsrld | Mnemonic::Vpsrlq)
            || matches!(i.mnemonic(), Mnemonic::Vpsraw | Mnemonic::Vpsrad);
    let last = i.op_register(i.op_count().saturating_sub(1));
    if vector_counts && last.is_xmm() && !random.one_in(4) {
        let count = random.pick(&COUNTS);
        state.xmm[last.number()] = random.wide() << 64 | u128::from(count);
    }
}

/// Sets the address registers so that the operands are in the window, or sometimes where they
/// cannot be accessed. Returns the address (VA) of the operand in memory; 0 if there is none.
fn place_operands(i: &Instruction, start: &mut Start, random: &mut Random) -> u64 {
    let state = &mut start.state;
    let size = i.memory_size().size() as u64;
    let mut target = WINDOW + 0x40 + random.below(0x80);
    let nasty = random.one_in(12);
    if nasty && random.one_in(2) {
        // Across the end of mapped memory.
        target = NOTHING.wrapping_sub(random.below(size.max(1)));
    } else if nasty {
        // In the middle, or ending exactly at the end.
        let end = CONSTANT + PAGE_SIZE - size;
        target = if random.one_in(2) { end } else { CONSTANT + 0x40 + random.below(0x80) };
    } else if size == 16 && !random.one_in(8) || is_indirect(i) {
        target &= !15;
    } else if random.one_in(3) {
        // Across the border of two pages.
        target = WINDOW + 0x80 - random.below(size.max(1));
    }
    let stack = match target {
        // Neither a push nor a pop has all the memory that it needs.
        _ if nasty && target < CONSTANT => NOTHING + 1 + random.below(8),
        _ if nasty => target,
        _ => WINDOW + 0x100 + 8 * random.below(8),
    };
    let mut found = 0;
    if (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory) {
        found = aim(i, state, target);
    }
    let string = |kind| (0..i.op_count()).any(|n| i.op_kind(n) == kind);
    if string(OpKind::MemorySegRSI) {
        state.gpr[RSI] = WINDOW + 0x60 + random.below(0x40);
    }
    if string(OpKind::MemoryESRDI) {
        state.gpr[RDI] = if nasty { target } else { WINDOW + 0x70 + random.below(0x40) };
        found = state.gpr[RDI];
    }
    if i.is_stack_instruction() && i.memory_base() != Register::RSP {
        state.gpr[RSP] = stack;
    }
    if i.mnemonic() == Mnemonic::Leave {
        state.gpr[RBP] = stack;
    }
    found
}

/// Chooses the registers of the address so that it is `target`, or slightly above. An address
/// without registers stays unchanged. Returns the address.
fn aim(i: &Instruction, state: &mut State, target: u64) -> u64 {
    let segment = match i.memory_segment() {
        Register::FS => FS_BASE,
        Register::GS => GS_BASE,
        _ => 0,
    };
    let (base, index) = (i.memory_base(), i.memory_index());
    let scale = u64::from(i.memory_index_scale());
    let rest = |target: u64| target.wrapping_sub(segment).wrapping_sub(i.memory_displacement64());
    match (base, index) {
        (Register::RIP | Register::None, Register::None) => {
            i.memory_displacement64().wrapping_add(segment)
        }
        (base, Register::None) => {
            state.gpr[number(base)] = rest(target);
            target
        }
        (base, index) => {
            let factor = if base == index { scale + 1 } else { scale };
            if base != Register::None && base != index {
                // The index keeps its low bits, and the base compensates for it.
                let value = &mut state.gpr[number(index)];
                *value &= 0xFFFF;
                let value = *value;
                state.gpr[number(base)] = rest(target).wrapping_sub(value.wrapping_mul(factor));
                return target;
            }
            let fits = |target: &u64| rest(*target).is_multiple_of(factor);
            let aligned = (target..).step_by(16).take(16).find(fits);
            let target = aligned.or_else(|| (target..).take(16).find(fits)).unwrap_or(target);
            state.gpr[number(index)] = rest(target) / factor;
            target
        }
    }
}

/// Returns true if the instruction jumps to an address from a register or memory.
fn is_indirect(i: &Instruction) -> bool {
    matches!(
        i.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return
    )
}

/// Sets state that some instructions need for diverse results.
fn special(i: &Instruction, start: &mut Start, target: u64, random: &mut Random) {
    let Start { state, window } = start;
    let at = target.wrapping_sub(WINDOW) as usize;
    match i.mnemonic() {
        Mnemonic::Iretq | Mnemonic::Iretd => {
            let rsp = state.gpr[RSP].wrapping_sub(WINDOW) as usize;
            let flags = random.next() & FLAGS;
            let selectors = if random.one_in(6) { [0x10, 0x2B] } else { [0x33, 0x2B] };
            let to = random.next() & CANONICAL;
            let frame = [to, selectors[0], flags, random.next() & CANONICAL, selectors[1]];
            for (n, value) in frame.into_iter().enumerate() {
                put(window, rsp.wrapping_add(8 * n), &value.to_le_bytes());
            }
        }
        Mnemonic::Popfq => {
            let rsp = state.gpr[RSP].wrapping_sub(WINDOW) as usize;
            put(window, rsp, &(random.next() & FLAGS).to_le_bytes());
        }
        Mnemonic::Ldmxcsr => {
            let value = MXCSR | random.next() as u32 & 0x3F;
            put(window, at, &value.to_le_bytes());
        }
        Mnemonic::Div | Mnemonic::Idiv => {
            // Most quotients fit into the result.
            let bits = operand_bits(i);
            let high = match random.below(3) {
                0 => 0,
                1 => (state.gpr[0] << (64 - bits)).cast_signed() >> 63,
                _ => random.below(5).cast_signed(),
            };
            if bits == 8 && !random.one_in(4) {
                state.gpr[0] = state.gpr[0] & !0xFF00 | high.cast_unsigned() << 8 & 0xFF00;
            } else if !random.one_in(4) {
                state.gpr[2] = high.cast_unsigned();
            }
        }
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
            if i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register =>
        {
            // Bits near the operand, on both sides if there is memory.
            let in_window = target < WINDOW + WINDOW_LEN as u64;
            let bit =
                if in_window { random.below(400).wrapping_sub(200) } else { random.below(16) };
            state.gpr[number(i.op1_register())] = bit;
        }
        Mnemonic::Cmpxchg if random.one_in(2) => match i.op0_kind() {
            OpKind::Register if i.op0_register().size() > 1 => {
                state.gpr[0] = state.gpr[number(i.op0_register())];
            }
            OpKind::Memory if at < 0x100 => {
                put(window, at, &state.gpr[0].to_le_bytes());
            }
            _ => {}
        },
        Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b if random.one_in(2) && at < 0x100 => {
            let low = state.gpr[0].to_le_bytes();
            let half = if i.mnemonic() == Mnemonic::Cmpxchg8b { 4 } else { 8 };
            put(window, at, &low[..half]);
            put(window, at + half, &state.gpr[2].to_le_bytes()[..half]);
        }
        Mnemonic::Jecxz | Mnemonic::Jrcxz | Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
            state.gpr[1] = random.pick(&[0, 1, 2, 1 << 32, 0x1_0000_0001, u64::MAX]);
        }
        _ => {}
    }
    if (0..i.op_count()).any(|n| matches!(i.op_kind(n), OpKind::MemorySegRSI | OpKind::MemoryESRDI))
    {
        if !random.one_in(8) {
            state.gpr[1] = random.below(4);
        }
        if random.one_in(2) {
            state.flags &= !DF;
        }
        // Some strings have equal elements.
        if random.one_in(2) {
            let from = window[0x60..0x70].to_vec();
            for at in (0x40..0xC0).step_by(16) {
                put(window, at, &from);
            }
        }
    }
    if is_indirect(i) {
        // Processors differ in their treatment of non-canonical targets.
        let memory = [i.memory_base(), i.memory_index()];
        for (n, value) in state.gpr.iter_mut().enumerate() {
            if !memory.iter().any(|r| r.is_gpr() && number(*r) == n) {
                *value &= CANONICAL;
            }
        }
        for word in window.chunks_exact_mut(8) {
            word[6..].fill(0);
            word[5] &= 0x7F;
        }
    }
}

fn put(window: &mut Window, at: usize, bytes: &[u8]) {
    if let Some(end) = at.checked_add(bytes.len())
        && let Some(place) = window.get_mut(at..end)
    {
        place.copy_from_slice(bytes);
    }
}
