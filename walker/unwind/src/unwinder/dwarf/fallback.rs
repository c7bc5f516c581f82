//! Steps from native code without call frame information: stubs and system calls known by their
//! bytes, and frame pointers.

use super::super::{Guesses, Position, Step, Trust, UnwindError};
use super::Place;
use crate::cfi::NONVOLATILE;
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};

/// Makes a step from code without any rule.
#[cold]
pub(super) fn step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    guesses: Guesses,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let address = registers.rip;
    if !place.region.is_executable(place.rva) {
        return Err(UnwindError::UnknownCode { address });
    }
    if position == Position::Interrupted
        && let Some(code) = place.region.bytes_from(place.rva)
        && let Some(pushed) = stub(before(place), code)
    {
        let needed = RegisterSet::of(&[Gpr::Rsp]);
        return pop(registers, memory, pushed, Trust::Stub, needed);
    }
    if position == Position::Interrupted
        && let Some(made) = clone_call(place)
    {
        return leave_clone(made, registers, memory);
    }
    if position == Position::Interrupted
        && let Some(pushed) = pushed_by_init(place).or_else(|| pushed_by_frame_dummy(place))
    {
        let needed = RegisterSet::of(&[Gpr::Rsp]);
        return pop(registers, memory, pushed, Trust::KnownCode, needed);
    }
    if guesses == Guesses::FramePointers {
        return frame_pointer(place, registers, memory);
    }
    Err(UnwindError::NoFrameInformation { address })
}

/// Returns the six bytes before the instruction, or none if there are fewer.
fn before<'c>(place: Place<'c, '_>) -> &'c [u8] {
    let start = place.rva.checked_sub(6).and_then(|rva| place.region.bytes_from(rva));
    start.and_then(|bytes| bytes.get(..6)).unwrap_or_default()
}

/// Returns the number of bytes that a stub has pushed, if `code`, which follows `before`, is the
/// rest of a stub that only jumps on: a PLT entry.
///
/// Entries of the System V psABI (figures 5.2 and 5.3 and their variants with `endbr64` and `bnd`):
/// `jmp *slot(%rip)`; then `push n; jmp first`; and the first entry, `push slot(%rip); jmp
/// *slot(%rip)`, which is entered with `n` pushed.
pub(super) fn stub(before: &[u8], code: &[u8]) -> Option<u64> {
    let code = code.strip_prefix(&[0xF3, 0x0F, 0x1E, 0xFA]).unwrap_or(code);
    let unbound = |code: &[u8]| code.strip_prefix(&[0xF2]).unwrap_or(code).first_chunk().copied();
    let is_jump_to_slot = |code| unbound(code) == Some([0xFF, 0x25]);
    match (before, code) {
        ([0xFF, 0x35, ..], code) if is_jump_to_slot(code) => Some(16),
        ([_, 0x68, ..], [0xE9, ..] | [0xF2, 0xE9, ..]) => Some(8),
        (_, code) if is_jump_to_slot(code) => Some(0),
        (_, [0x68, _, _, _, _, 0xE9, ..] | [0x68, _, _, _, _, 0xF2, 0xE9, ..]) => Some(0),
        (_, [0xFF, 0x35, _, _, _, _, rest @ ..]) if is_jump_to_slot(rest) => Some(8),
        _ => None,
    }
}

/// Returns to the address `pushed` bytes above rsp.
pub(in crate::unwinder) fn pop<M: Memory + ?Sized>(
    registers: &mut Registers,
    memory: &M,
    pushed: u64,
    trust: Trust,
    needed: RegisterSet,
) -> Result<Step, UnwindError> {
    let at = registers.rsp().wrapping_add(pushed);
    let (rsp, caller_rsp) = (registers.rsp(), at.wrapping_add(8));
    if caller_rsp <= rsp {
        return Err(UnwindError::NoProgress { rsp, caller_rsp });
    }
    registers.rip = memory.read_u64(at)?;
    registers.set(Gpr::Rsp, caller_rsp);
    Ok(Step {
        trust,
        establisher_frame: caller_rsp,
        handler: None,
        caller: Position::ReturnAddress,
        found: RegisterSet::of(&[Gpr::Rsp]),
        kept: NONVOLATILE.without(Gpr::Rsp),
        needed,
    })
}

/// The moment in a function that makes a thread or a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloneCall {
    /// Before the system call, or at the return, which the child does not reach.
    Parent,
    /// After the system call: rax is 0 in the child.
    Either,
}

/// Finds out whether `place` is in glibc's `clone` or `clone3`, at or behind the system call, where
/// their call frame information has a hole: from there on two threads execute the code, of which one
/// has an empty stack. The bytes are `syscall; test rax, rax; jl error; jz child; ret`
/// (glibc's `sysdeps/unix/sysv/linux/x86_64/clone.S`, and `clone3.S` from 2.34 on).
fn clone_call(place: Place<'_, '_>) -> Option<CloneCall> {
    let jump = |code: &[u8], condition: u8| match code {
        [short, ..] if *short == 0x70 | condition => Some(2),
        [0x0F, near, ..] if *near == 0x80 | condition => Some(6),
        _ => None,
    };
    let instructions = |code: &[u8]| {
        code.strip_prefix(&[0x0F, 0x05, 0x48, 0x85, 0xC0])?;
        let jz = 5 + jump(code.get(5..)?, 0xC)?;
        let ret = jz + jump(code.get(jz..)?, 0x4)?;
        (code.get(ret) == Some(&0xC3)).then_some([0, 2, 5, jz, ret])
    };
    (0..=17).find_map(|back| {
        let start = place.rva.checked_sub(back)?;
        let instructions = instructions(place.region.bytes_from(start)?)?;
        match instructions.iter().position(|at| *at == back as usize)? {
            0 | 4 => Some(CloneCall::Parent),
            _ => Some(CloneCall::Either),
        }
    })
}

fn leave_clone<M: Memory + ?Sized>(
    call: CloneCall,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    if call == CloneCall::Either && registers.get(Gpr::Rax) == 0 {
        return Err(UnwindError::EndOfStack { address: registers.rip });
    }
    let needed = match call {
        CloneCall::Parent => RegisterSet::of(&[Gpr::Rsp]),
        CloneCall::Either => RegisterSet::of(&[Gpr::Rsp, Gpr::Rax]),
    };
    pop(registers, memory, 0, Trust::KnownCode, needed)
}

/// Returns the number of bytes of the stack that `_init` has allocated, if `place` is in its first
/// instructions, in which glibc (`crti.S`) has no call frame information: `sub rsp, 8; mov rax, [rip+slot];
/// test rax, rax; je`.
fn pushed_by_init(place: Place<'_, '_>) -> Option<u64> {
    [(0, 0), (4, 8), (11, 8), (14, 8)].into_iter().find_map(|(back, pushed)| {
        let code = place.region.bytes_from(place.rva.checked_sub(back)?)?.first_chunk()?;
        let is_init = matches!(
            code,
            [0x48, 0x83, 0xEC, 8, 0x48, 0x8B, 5, _, _, _, _, 0x48, 0x85, 0xC0, 0x74]
        );
        is_init.then_some(pushed)
    })
}

/// Returns 0 if `place` is in the first instructions of `frame_dummy`, which gcc up to 6 adds to each
/// image (`crtstuff.c`) without call frame information: `lea rdi, [rip+list]; cmp qword ptr [rdi], 0; jne;
/// jmp`. The loader calls it, and that is often the first use of a page of the image, which takes long.
fn pushed_by_frame_dummy(place: Place<'_, '_>) -> Option<u64> {
    let is_there = [0, 7, 11, 13].into_iter().any(|back| {
        let code = place.rva.checked_sub(back).and_then(|start| place.region.bytes_from(start));
        let begin = code.and_then(<[u8]>::first_chunk);
        matches!(begin, Some([0x48, 0x8D, 0x3D, _, _, _, _, 0x48, 0x83, 0x3F, 0, 0x75, _, 0xE9]))
    });
    is_there.then_some(0)
}

/// Takes rbp for a frame pointer if everything that it leads to looks like one: a saved rbp further
/// up, and a return address in known code.
fn frame_pointer<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let no = UnwindError::NoFrameInformation { address: registers.rip };
    let (rsp, frame) = (registers.rsp(), registers.get(Gpr::Rbp));
    let caller_rsp = frame.checked_add(16).ok_or(no)?;
    if frame < rsp || frame % 8 != 0 {
        return Err(no);
    }
    let (saved, rip) = (memory.read_u64(frame)?, memory.read_u64(frame.wrapping_add(8))?);
    // The outermost frame has 0 here.
    let leads_up = saved == 0 || saved >= caller_rsp;
    let (region, rva) = place.map.find(rip.wrapping_sub(1)).ok_or(no)?;
    if !leads_up || !region.is_executable(rva) {
        return Err(no);
    }
    registers.rip = rip;
    registers.set(Gpr::Rbp, saved);
    registers.set(Gpr::Rsp, caller_rsp);
    Ok(Step {
        trust: Trust::FramePointer,
        establisher_frame: caller_rsp,
        handler: None,
        caller: Position::ReturnAddress,
        found: RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]),
        // The code saves other registers in unknown places.
        kept: RegisterSet::EMPTY,
        needed: RegisterSet::of(&[Gpr::Rbp]),
    })
}
