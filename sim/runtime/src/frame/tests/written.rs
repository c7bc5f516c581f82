//! Tests that written Frames are read with the contents they were written with.

use super::*;
use clr_unwind::Registers;

/// Returns writable memory: around the Frame, and at the addresses it may point to.
fn memory() -> Words {
    let ranges = [AT..AT + 0x800, BLOCK..BLOCK + 0x800];
    Words::new(ranges.into_iter().flatten().step_by(8).map(|at| (at, 0x5107)))
}

/// Returns the fields to write: a method, and an address for the parts on the stack.
fn fields() -> FrameFields {
    let mut registers = Registers { rip: 0x7FF8_0042, ..Registers::default() };
    for register in Gpr::ALL {
        registers.set(register, value_of(register));
    }
    registers.set(Rsp, BLOCK + 0x100);
    registers.xmm = std::array::from_fn(|n| 0xF10A7 << 64 | n as u128);
    let method = 0x7FF8_1000;
    FrameFields { method, registers, context_flags: 0x10_000B, context_at: BLOCK, lazy: None }
}

fn write(generation: Generation, kind: FrameKind, memory: &mut Words) -> Result<(), Unreadable> {
    let identities = FrameIdentities::of(generation);
    FrameWriter { generation, identities: &identities, memory }.write(
        AT,
        FRAME_TOP,
        kind,
        &fields(),
    )
}

#[test]
fn written_frames_are_read_back() {
    for kind in FrameKind::ALL {
        for generation in generations_of(*kind) {
            let mut memory = memory();
            write(generation, *kind, &mut memory).unwrap();
            let said = ask(generation, &memory).unwrap();
            let mut expected = before();
            let FrameFields { method, registers, context_flags, .. } = fields();
            let shape = kind.shape();
            let function = match shape {
                FrameShape::InlinedCall | FrameShape::FramedMethod | FrameShape::HelperMethod => {
                    method
                }
                _ => 0,
            };
            let leads = shape != FrameShape::Mark;
            expected.registers.rip = if leads { registers.rip } else { 0 };
            match shape {
                FrameShape::Mark | FrameShape::UnmanagedToManaged => {}
                FrameShape::Resumable | FrameShape::FuncEval | FrameShape::Faulting => {
                    expected.registers = registers;
                    expected.flags = context_flags;
                }
                FrameShape::InlinedCall => {
                    expected.registers.set(Rsp, registers.rsp());
                    expected.registers.set(Rbp, registers.get(Rbp));
                }
                _ => {
                    for register in callee_saved(generation).iter().chain(&[Rsp]) {
                        expected.registers.set(*register, registers.get(*register));
                    }
                    // The stack pointer of a TailCallFrame is the end of the Frame.
                    if shape == FrameShape::TailCall {
                        let size = 0x20 + 8 * callee_saved(generation).len() as u64;
                        expected.registers.set(Rsp, AT + size);
                    }
                }
            }
            let expected = Said {
                next: 0xFFFF_FFFF_FFFF_FFFF,
                active: shape == FrameShape::InlinedCall,
                resumable: shape == FrameShape::Resumable,
                function,
                return_address: expected.registers.rip,
                context: expected,
            };
            assert_eq!(said, expected, "{kind}, {generation}");
        }
    }
}

#[test]
fn memory_that_cannot_be_written_is_an_error() {
    for kind in FrameKind::ALL {
        for generation in generations_of(*kind) {
            let mut whole = memory();
            write(generation, *kind, &mut whole).unwrap();
            for at in whole.written {
                let error = write(generation, *kind, &mut memory().without(at)).unwrap_err();
                assert_eq!(error, Unreadable { address: at, len: 8 }, "{kind}, {generation}");
            }
        }
    }
}

#[test]
fn a_kind_that_a_runtime_lacks_is_written_as_no_frame() {
    let mut memory = memory();
    write(Generation::Net10Windows, FrameKind::Gc, &mut memory).unwrap();
    assert_eq!(memory.get(AT), 0);
    let identities = FrameIdentities::of(Generation::Net10Windows);
    let frame = FrameReader::new(AT, Generation::Net10Windows, &identities, &memory).unwrap();
    assert!(frame.is_none());
}
