//! Tests of helpers with real unwind data below HelperMethodFrames that are captured and not
//! complete.

use super::*;
use crate::code_manager::{Block, CodeVersion, Method, RangeSection};
use crate::frame::{FrameIdentities, FrameKind};
use crate::generation::Generation;
use crate::words::Words;
use clr_codegen::{LIBRARY_TEXT, PlainFunction, library};
use clr_unwind::{CodeMap, CodeRegion, ElfImage, FunctionTable};
use clr_walker::profiling::FunctionId;

/// Address of the Frame (VA).
const AT: u64 = 0x1F_4000;
/// rsp when the state was captured: the address of the return address into the helper.
const CAPTURED_RSP: u64 = 0x1E_0000;
/// Address of native code (VA).
const NATIVE: u64 = 0x7FF8_0000_0000;
/// An address in the body of a helper that pushes rbx and allocates 0x20 bytes.
const HELPER: u64 = NATIVE + 0x50;
/// An address in the body of a function that pushes r12.
const INNER: u64 = NATIVE + 0x150;
/// An address in code without an entry.
const LEAF: u64 = NATIVE + 0x280;
/// An address in no known code.
const NOWHERE: u64 = 0x1_0000;
/// Address of managed code (VA).
const MANAGED: u64 = 0x7FF9_0000_0040;
/// The FCall's entry point (VA), and its method.
const ENTRY: u64 = NATIVE + 0x40;
const METHOD: u64 = 0x7FF9_1000;

/// Offsets in a HelperMethodFrame: pointers, m_pRetAddr, captured rip, captured rsp (contract
/// §3.5).
fn offsets(generation: Generation) -> [u64; 4] {
    if generation.is_unix() { [0x70, 0xA0, 0xD8, 0xE0] } else { [0x80, 0xC0, 0xC8, 0xD0] }
}

/// Returns the captured value of the callee-saved register with this index; they start at offset
/// 0x40.
const fn captured(n: u64) -> u64 {
    0xCA90_0000 + n
}

/// Returns the indices of rbx and r12 among them.
fn rbx_and_r12(generation: Generation) -> [u64; 2] {
    if generation.is_unix() { [4, 0] } else { [2, 4] }
}

/// Returns the native code with its unwind data.
fn native_bytes() -> Vec<u8> {
    let mut bytes = vec![0xCC; 0x400];
    // Version 1, prologue of 5 bytes, two codes: at 5, UWOP_ALLOC_SMALL of 0x20; at 1, push rbx.
    bytes[0x300..0x308].copy_from_slice(&[1, 5, 2, 0, 5, 0x32, 1, 0x30]);
    // One code: at 2, push r12.
    bytes[0x310..0x318].copy_from_slice(&[1, 2, 1, 0, 2, 0xC0, 0, 0]);
    bytes
}

/// Returns the same functions in a Unix library.
fn native_library() -> Vec<u8> {
    let function = |name, begin, pushes, locals| {
        let begin = LIBRARY_TEXT + begin;
        PlainFunction { name, begin, size: 0x40, pushes, locals, prologue: 5 }
    };
    let functions =
        [function("helper", 0x40, &[Gpr::Rbx], 0x20), function("inner", 0x140, &[Gpr::R12], 0)];
    library("libcoreclr.so", &[0xCC; 0x300], &functions).unwrap()
}

fn table(entries: &[[u32; 3]]) -> Vec<u8> {
    entries.iter().flatten().flat_map(|field| field.to_le_bytes()).collect()
}

struct World {
    generation: Generation,
    memory: Words,
}

impl World {
    /// Creates a helper whose state was captured; `stack` starts at the slot in which [`HELPER`]
    /// saved rbx.
    fn new(generation: Generation, fcall: u64, attributes: u64, stack: &[u64]) -> Self {
        let identities = FrameIdentities::of(generation);
        let word = identities.word(FrameKind::HelperMethod).unwrap();
        let [pointers, returns, rip, rsp] = offsets(generation);
        let mut memory = Words::default();
        for (offset, value) in [
            (0, word),
            (8, u64::MAX),
            (0x10, 0),
            (0x18, 0xFFFF_FFFF_0000_0000 | attributes),
            (0x28, fcall),
            (0x30, 0x5107),
            (0x38, 0x5107),
            (returns, 0),
            (rip, HELPER),
            (rsp, CAPTURED_RSP),
        ] {
            memory.put(AT + offset, value);
        }
        for n in 0..FrameConvention::of(generation).callee_saved.len() as u64 {
            memory.put(AT + 0x40 + 8 * n, captured(n));
            memory.put(AT + pointers + 8 * n, 0);
        }
        // 8 bytes for the return address into the helper, 0x20 for its own locals.
        for (value, n) in stack.iter().zip(0..) {
            memory.put(CAPTURED_RSP + 0x28 + 8 * n, *value);
        }
        Self { generation, memory }
    }

    fn missing(&self) -> Result<Option<Completion>, LazyStateError> {
        let (bytes, managed) = (native_bytes(), [0xCC; 0x100]);
        let library = native_library();
        let image = ElfImage::parse(&library).unwrap();
        let functions = table(&[[0x40, 0x80, 0x300], [0x140, 0x180, 0x310]]);
        let mut map = CodeMap::new();
        let region = if self.generation.is_unix() {
            CodeRegion::elf(NATIVE - u64::from(LIBRARY_TEXT), &image)
        } else {
            CodeRegion::heap(NATIVE, &bytes, FunctionTable::new(&functions))
        };
        map.insert(region.unwrap()).unwrap();
        let mut native = NativeCode::new(map);
        native.add_fcall(ENTRY, METHOD);
        let mut code = CodeManager::new();
        let method = code.add_method(Method { id: FunctionId(1), ..Method::default() });
        let start = MANAGED & !0xFF;
        let index =
            code.add_code(CodeVersion { method, start, size: 0x100, ..CodeVersion::default() });
        let heap = RangeSection::code_heap(start, start + 0x100, &[(start, Block::Code(index))]);
        let region = CodeRegion::heap(start, &managed, FunctionTable::new(&[]));
        code.add_section(heap.unwrap(), region.unwrap()).unwrap();
        let identities = FrameIdentities::of(self.generation);
        let frame = FrameReader::new(AT, self.generation, &identities, &self.memory);
        frame.unwrap().unwrap().missing(&native, &code)
    }

    /// Completes the Frame and returns its rip, rsp, rbx and r12.
    fn complete(&mut self) -> [u64; 4] {
        let before = self.memory.clone();
        let missing = self.missing().unwrap().expect("the state is not complete");
        missing.write(&mut self.memory).unwrap();
        let end = AT + offsets(self.generation)[1] + 8;
        assert!(before.written.is_empty());
        assert!(self.memory.written.iter().all(|at| (AT + 0x10..end).contains(at)));
        let [pointers, ..] = offsets(self.generation);
        let saved = rbx_and_r12(self.generation)
            .map(|n| self.memory.get(self.memory.get(AT + pointers + 8 * n)));
        [self.memory.get(AT + 0x30), self.memory.get(AT + 0x38), saved[0], saved[1]]
    }
}

fn generations() -> impl Iterator<Item = Generation> {
    Generation::ALL.into_iter().filter(|generation| FrameKind::HelperMethod.exists_in(*generation))
}

const CAPTURE_DEPTH_2: u64 = 0x10;
const EXACT_DEPTH: u64 = 0x20;

/// Values on the stack of [`HELPER`]: rbx and its return address; then [`INNER`]'s r12 and its
/// return address.
const RBX: u64 = 0x1B;
const R12: u64 = 0x12;

#[test]
fn as_many_native_frames_are_unwound_as_the_kind_says() {
    let through_inner = [RBX, INNER, R12, MANAGED];
    for generation in generations() {
        let [_, r12] = rbx_and_r12(generation);
        let one = CAPTURED_RSP + 0x38;
        let two = CAPTURED_RSP + 0x48;
        for (entry, attributes, stack, expected) in [
            // An FCall: one frame, wherever it returns to.
            (ENTRY, 0, &[RBX, MANAGED][..], [MANAGED, one, RBX, captured(r12)]),
            (ENTRY, 0, &through_inner, [INNER, one, RBX, captured(r12)]),
            (ENTRY, EXACT_DEPTH, &through_inner, [INNER, one, RBX, captured(r12)]),
            // Two frames.
            (ENTRY, CAPTURE_DEPTH_2, &through_inner, [MANAGED, two, RBX, R12]),
            (0, CAPTURE_DEPTH_2, &through_inner, [MANAGED, two, RBX, R12]),
            // A JIT helper: frames up to managed code, unless the depth is exact.
            (0, 0, &through_inner, [MANAGED, two, RBX, R12]),
            (0, 0, &[RBX, MANAGED], [MANAGED, one, RBX, captured(r12)]),
            (0, EXACT_DEPTH, &through_inner, [INNER, one, RBX, captured(r12)]),
        ] {
            let mut world = World::new(generation, entry, attributes, stack);
            let found = world.complete();
            let case = format!("{generation}, {entry:#x}, {attributes:#x}, {stack:x?}");
            assert_eq!(found, expected, "{case}");
            let method = if entry == 0 { 0 } else { METHOD };
            assert_eq!(world.memory.get(AT + 0x10), method, "{case}");
        }
    }
}

/// libunwind takes rip for a return address: a call may be the last instruction of its function,
/// and no call precedes the first instruction of a function.
#[test]
fn on_unix_the_description_before_rip_counts() {
    for generation in generations().filter(|generation| generation.is_unix()) {
        let [_, _, captured_rip, _] = offsets(generation);
        let mut world = World::new(generation, ENTRY, 0, &[RBX, MANAGED]);
        world.memory.put(AT + captured_rip, NATIVE + 0x80);
        let [_, r12] = rbx_and_r12(generation);
        let expected = [MANAGED, CAPTURED_RSP + 0x38, RBX, captured(r12)];
        assert_eq!(world.complete(), expected, "{generation}");
        let mut world = World::new(generation, ENTRY, 0, &[RBX, MANAGED]);
        world.memory.put(AT + captured_rip, NATIVE + 0x40);
        let error = LazyStateError::Native { at: NATIVE + 0x40 };
        assert_eq!(world.missing(), Err(error), "{generation}");
    }
}

#[test]
fn it_is_done_once() {
    for generation in generations() {
        let mut world = World::new(generation, ENTRY, 0, &[RBX, MANAGED]);
        world.complete();
        let [_, returns, captured_rip, _] = offsets(generation);
        assert_ne!(world.memory.get(AT + returns), 0, "{generation}");
        // From now on the Frame's memory is complete.
        world.memory.put(AT + captured_rip, NOWHERE);
        world.memory.put(AT + 0x30, 0x1234);
        assert_eq!(world.missing(), Ok(None), "{generation}");
        let identities = FrameIdentities::of(generation);
        let frame = FrameReader::new(AT, generation, &identities, &world.memory);
        let frame = frame.unwrap().unwrap();
        assert_eq!(frame.return_address(&identities), Ok(0x1234));
        assert_eq!(frame.function(), Ok(METHOD));
    }
}

#[test]
fn an_fcall_that_no_method_has_keeps_what_its_frame_said() {
    for generation in generations() {
        let mut world = World::new(generation, ENTRY + 1, 0, &[RBX, MANAGED]);
        world.memory.put(AT + 0x10, 0x77);
        world.complete();
        assert_eq!(world.memory.get(AT + 0x10), 0x77, "{generation}");
    }
}

#[test]
fn a_native_leaf_can_be_left_on_windows_alone() {
    for generation in generations() {
        let unix = generation.is_unix();
        for leaf in [LEAF, NOWHERE] {
            // The second frame of a JIT helper.
            let mut world = World::new(generation, 0, 0, &[RBX, leaf, MANAGED]);
            if unix {
                let error = LazyStateError::Native { at: leaf };
                assert_eq!(world.missing(), Err(error), "{generation}");
            } else {
                let [_, r12] = rbx_and_r12(generation);
                let expected = [MANAGED, CAPTURED_RSP + 0x40, RBX, captured(r12)];
                assert_eq!(world.complete(), expected, "{generation}");
            }
        }
    }
}

#[test]
fn unreadable_memory_is_an_error() {
    for generation in generations() {
        let world = World::new(generation, ENTRY, 0, &[RBX, MANAGED]);
        let [pointers, ..] = offsets(generation);
        for at in world.memory.addresses().into_iter().filter(|at| *at != AT) {
            let memory = world.memory.without(at);
            // The chain, the fields to be written, and the fields that are overwritten.
            let needed = (CAPTURED_RSP..AT).contains(&at)
                || at >= AT + 0x40 && !(AT + pointers..AT + offsets(generation)[1]).contains(&at)
                || [0x18, 0x28].contains(&at.wrapping_sub(AT));
            let world = World { generation, memory };
            match world.missing() {
                Err(LazyStateError::Fault(unreadable)) => {
                    assert!(needed, "{generation}, {at:#x}");
                    assert_eq!(unreadable.address & !7, at, "{generation}");
                }
                missing => {
                    assert!(!needed, "{generation}, {at:#x}: {missing:?}");
                    let mut memory = world.memory.clone();
                    let written = missing.unwrap().unwrap().write(&mut memory);
                    let expected =
                        if at == AT + 8 { Ok(()) } else { Err(Unreadable { address: at, len: 8 }) };
                    assert_eq!(written, expected, "{generation}");
                }
            }
        }
    }
}

#[test]
fn a_helper_without_end_is_given_up() {
    // Leaves that return to leaves: more frames than any stack has.
    let stack = vec![LEAF; 0x2000];
    for generation in generations().filter(|generation| !generation.is_unix()) {
        let world = World::new(generation, 0, 0, &stack);
        assert_eq!(world.missing(), Err(LazyStateError::Native { at: LEAF }), "{generation}");
    }
}
