//! Small functions compiled by cranelift.

use super::{CALLEE, CODE, PROBE};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{F64X2, I64};
use cranelift_codegen::ir::{
    AbiParam, ExternalName, Function, InstBuilder, LibCall, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, UserFuncName, Value,
};
use cranelift_codegen::isa::unwind::UnwindInfo;
use cranelift_codegen::isa::{self, CallConv};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, FinalizedRelocTarget, VERSION};
use std::fmt::Write;

const TRIPLE: &str = "x86_64-pc-windows-msvc";

/// A function that takes and returns one pointer.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    /// Number of values that live across a call, including the pointer; 0 if there is no call.
    integers: i32,
    vectors: i32,
    /// Size of a stack slot in bytes.
    slot: u32,
    settings: &'static [(&'static str, &'static str)],
}

const PLAIN: Shape = Shape { name: "", integers: 0, vectors: 0, slot: 0, settings: &[] };
const INLINE: &[(&str, &str)] = &[("enable_probestack", "true"), ("probestack_strategy", "inline")];
const OUTLINE: &[(&str, &str)] =
    &[("enable_probestack", "true"), ("probestack_strategy", "outline")];
const FRAME_POINTERS: &[(&str, &str)] = &[("preserve_frame_pointers", "true")];

/// At most 7 integers and 10 vectors fit in registers that a callee preserves.
const SHAPES: [Shape; 14] = [
    Shape { name: "leaf", ..PLAIN },
    Shape { name: "leaf_with_frame_pointers", settings: FRAME_POINTERS, ..PLAIN },
    Shape { name: "leaf_slot", slot: 64, ..PLAIN },
    Shape { name: "one_value", integers: 1, ..PLAIN },
    Shape { name: "two_values", integers: 2, ..PLAIN },
    Shape { name: "seven_values", integers: 7, ..PLAIN },
    Shape { name: "ten_vectors", integers: 1, vectors: 10, ..PLAIN },
    Shape { name: "everything", integers: 7, vectors: 10, ..PLAIN },
    Shape {
        name: "everything_with_frame_pointers",
        integers: 7,
        vectors: 10,
        settings: FRAME_POINTERS,
        ..PLAIN
    },
    Shape { name: "pages", integers: 2, slot: 0x2800, ..PLAIN },
    Shape { name: "pages_probed_inline", integers: 2, slot: 0x2800, settings: INLINE, ..PLAIN },
    Shape { name: "pages_probed_in_a_loop", integers: 2, slot: 0x6800, settings: INLINE, ..PLAIN },
    Shape {
        name: "pages_probed_by_a_call",
        integers: 7,
        vectors: 10,
        slot: 0x2800,
        settings: OUTLINE,
    },
    Shape { name: "leaf_probed_inline", slot: 0x1800, settings: INLINE, ..PLAIN },
];

/// Builds the function in cranelift's intermediate language. The function loads its values from
/// where the pointer points to, calls, and stores them there.
fn build(shape: &Shape) -> Function {
    let mut signature = Signature::new(CallConv::WindowsFastcall);
    signature.params.push(AbiParam::new(I64));
    signature.returns.push(AbiParam::new(I64));
    let mut function = Function::with_name_signature(UserFuncName::default(), signature);
    let callee = function.import_signature(Signature::new(CallConv::WindowsFastcall));
    let slot = (shape.slot > 0).then(|| {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, shape.slot, 4);
        function.create_sized_stack_slot(data)
    });
    let block = function.dfg.make_block();
    let pointer = function.dfg.append_block_param(block, I64);
    let mut at = FuncCursor::new(&mut function);
    at.insert_block(block);
    if let Some(slot) = slot {
        at.ins().stack_store(I64, pointer, slot, 0);
    }
    if shape.integers > 0 {
        let places = (1..shape.integers).map(|n| (I64, 8 * n));
        let places = places.chain((0..shape.vectors).map(|n| (F64X2, 64 + 16 * n)));
        let flags = MemFlagsData::trusted();
        let values: Vec<(Value, i32)> = places
            .map(|(ty, at_byte)| (at.ins().load(ty, flags, pointer, at_byte), at_byte))
            .collect();
        let address = at.ins().iconst(I64, CALLEE.cast_signed());
        at.ins().call_indirect(callee, address, &[]);
        for (value, at_byte) in values {
            at.ins().store(flags, value, pointer, at_byte);
        }
    }
    at.ins().return_(&[pointer]);
    function
}

/// Compiles a function to machine code and UNWIND_INFO.
fn compile(shape: &Shape) -> (Vec<u8>, Vec<u8>) {
    let mut flags = settings::builder();
    for (name, value) in shape.settings {
        flags.set(name, value).unwrap();
    }
    let isa = isa::lookup_by_name(TRIPLE).unwrap().finish(settings::Flags::new(flags)).unwrap();
    let mut context = Context::for_function(build(shape));
    let compiled = context.compile(&*isa, &mut ControlPlane::default()).unwrap();
    let mut code = compiled.code_buffer().to_vec();
    for reloc in compiled.buffer.relocs() {
        assert_eq!(reloc.kind, Reloc::X86CallPCRel4);
        let probe = ExternalName::LibCall(LibCall::Probestack);
        assert_eq!(reloc.target, FinalizedRelocTarget::ExternalName(probe));
        let place = CODE + u64::from(reloc.offset);
        let value = PROBE.wrapping_add_signed(reloc.addend).wrapping_sub(place) as u32;
        let at = reloc.offset as usize;
        code[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let Some(UnwindInfo::WindowsX64(info)) = compiled.create_unwind_info(&*isa).unwrap() else {
        panic!("{}: no unwind info for Windows x64", shape.name);
    };
    let mut unwind = vec![0; info.emit_size()];
    info.emit(&mut unwind);
    (code, unwind)
}

/// Formats a line of hexadecimal bytes, with a label before them.
fn line(what: &str, bytes: &[u8]) -> String {
    bytes.iter().fold(what.to_owned(), |line, byte| line + &format!(" {byte:02x}"))
}

/// Formats all functions as in `functions.snap`.
pub(super) fn functions() -> String {
    let mut text = format!("cranelift-codegen {VERSION}, {TRIPLE}\n");
    for shape in &SHAPES {
        let (code, unwind) = compile(shape);
        let (code, unwind) = (line("code", &code), line("unwind", &unwind));
        write!(text, "\n{}\n{code}\n{unwind}\n", shape.name).unwrap();
    }
    text
}
