//! Tests of the unwind info that cranelift emits for Windows x64: does it restore the registers?
//!
//! For the functions in `functions.snap`, rip, rsp and rbp are restored correctly, except by inline
//! stack probes. Every other register that a function saves is restored wrongly between its save
//! and the end of the epilogue. The unwind info has four mistakes ([`Mistake`]); without them all
//! registers are restored correctly everywhere.
//!
//! `functions.snap` is the output of one version of cranelift. The feature `cranelift` enables a
//! test that compares it with the current output, which requires building cranelift. To renew it:
//!
//! ```console
//! $ INSTA_UPDATE=always cargo test -p clr-tests --features cranelift --test unwinders cranelift
//! ```

mod callee;
#[cfg(feature = "cranelift")]
mod compile;
mod mend;

use callee::Callee;
use clr_machine::{Machine, PAGE_SIZE, Protection};
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::image::FunctionTable;
use clr_walker::memory::Memory;
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::win64::{Operation, UnwindInfo};
use clr_walker::unwind::{Position, Rules, Unwinder};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use mend::Mistake;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Addresses of the function and of its callee (VA). All code lies in one block of a code heap.
const CODE: u64 = 0x1_8000_0000;
const CALLEE: u64 = CODE + 0x1000;
/// Address of the function that touches the pages of large frames (VA).
const PROBE: u64 = CODE + 0x1800;
const SIZE_OF_HEAP: usize = 0x2000;
const UNWIND_INFO: u32 = 0x1A00;
const CALLEE_UNWIND_INFO: u32 = 0x1C00;
const STACK: u64 = 0x20_0000;
const STACK_SIZE: u64 = 0x1_0000;
/// Address of the function's return address (VA). Above it are the home of four arguments and the
/// data that rcx points to.
const TOP: u64 = STACK + STACK_SIZE - 0x208;
const BACK: u64 = 0x7FFF_0000;
/// Maximum number of instructions that a function executes.
const LIMIT: usize = 1000;
/// Size in bytes of `pop rbp; ret`, with which all the functions end.
const EPILOGUE_SIZE: u32 = 2;

struct Function {
    name: &'static str,
    code: Vec<u8>,
    unwind_info: Vec<u8>,
}

/// Parses the functions of `functions.snap`: names, each with a line of code and one of
/// UNWIND_INFO.
fn functions() -> Vec<Function> {
    let text = include_str!("functions.snap").splitn(3, "---\n").nth(2).unwrap();
    let mut functions = Vec::new();
    for block in text.split("\n\n").skip(1) {
        let [name, code, unwind_info] = block.lines().collect::<Vec<_>>()[..] else {
            panic!("not three lines: {block}");
        };
        let bytes = |line: &str, what| -> Vec<u8> {
            let hex = line.strip_prefix(what).unwrap().split_whitespace();
            hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
        };
        let (code, unwind_info) = (bytes(code, "code"), bytes(unwind_info, "unwind"));
        assert_eq!(code[code.len() - EPILOGUE_SIZE as usize..], [0x5D, 0xC3], "{name}");
        functions.push(Function { name, code, unwind_info });
    }
    functions
}

fn function(name: &str) -> Function {
    functions().into_iter().find(|function| function.name == name).unwrap()
}

/// The code heap with a function and its callees.
struct Heap {
    bytes: Vec<u8>,
    table: Vec<u8>,
}

impl Heap {
    fn new(code: &[u8], unwind_info: &[u8], callee: Callee) -> Self {
        let mut bytes = vec![0xCC; SIZE_OF_HEAP];
        let mut put = |rva: u32, data: &[u8]| {
            bytes[rva as usize..][..data.len()].copy_from_slice(data);
            rva + data.len() as u32
        };
        let end = put(0, code);
        put((PROBE - CODE) as u32, &[0xC3]);
        put(UNWIND_INFO, unwind_info);
        let mut entries = vec![[0, end, UNWIND_INFO]];
        let begin = (CALLEE - CODE) as u32;
        let end = put(begin, &callee.code());
        if let Some(info) = callee.unwind_info() {
            put(CALLEE_UNWIND_INFO, &info);
            entries.push([begin, end, CALLEE_UNWIND_INFO]);
        }
        let table = entries.iter().flatten().flat_map(|field| field.to_le_bytes()).collect();
        Self { bytes, table }
    }

    fn region(&self) -> CodeRegion<'_> {
        CodeRegion::heap(CODE, &self.bytes, FunctionTable::new(&self.table)).unwrap()
    }

    /// Returns a machine about to execute the function, and the registers that its caller must find
    /// after the return.
    fn machine(&self) -> (Machine, Registers) {
        let mut machine = Machine::new();
        let pages = SIZE_OF_HEAP as u64 / PAGE_SIZE;
        machine.map(CODE, pages, Protection::READ_EXECUTE).unwrap();
        machine.map(STACK, STACK_SIZE / PAGE_SIZE, Protection::READ_WRITE).unwrap();
        machine.write(CODE, &self.bytes).unwrap();
        let mut registers = Registers {
            rip: CODE,
            gpr: core::array::from_fn(|n| 0x1111_2222_3333_0000 + n as u64),
            xmm: core::array::from_fn(|n| u128::MAX / 3 - n as u128),
        };
        registers.set(Gpr::Rsp, TOP);
        registers.set(Gpr::Rcx, TOP + 0x28);
        machine.cpu_mut().set_registers(&registers);
        machine.write(TOP, &BACK.to_le_bytes()).unwrap();
        for at in (TOP + 8..STACK + STACK_SIZE).step_by(8) {
            machine.write(at, &(!at).to_le_bytes()).unwrap();
        }
        machine.add_trap(BACK, 0);
        (machine, after_return(&registers, BACK))
    }
}

/// Returns the registers that the caller of a function finds; `registers` are those at the
/// function's first instruction.
fn after_return(registers: &Registers, rip: u64) -> Registers {
    let mut after = Registers { rip, ..*registers };
    after.set(Gpr::Rsp, registers.rsp() + 8);
    after
}

const XMM: [&str; 10] =
    ["xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"];

/// Formats names of registers in the order of their numbers, rip first.
fn list(names: &BTreeSet<&'static str>) -> String {
    let all = ["rip"].into_iter().chain(Gpr::ALL.map(Gpr::name)).chain(XMM);
    all.filter(|name| names.contains(name)).collect::<Vec<_>>().join(" ")
}

/// Returns the registers that differ, among rip and those that a callee must preserve.
fn differences(found: &Registers, expected: &Registers) -> BTreeSet<&'static str> {
    let gpr = Gpr::NONVOLATILE.into_iter().chain([Gpr::Rsp]);
    let gpr = gpr.filter(|r| found.get(*r) != expected.get(*r)).map(Gpr::name);
    let xmm = found.xmm.iter().zip(expected.xmm).zip(XMM);
    let xmm = xmm.filter(|((found, expected), _)| *found != expected).map(|(_, name)| name);
    let rip = (found.rip != expected.rip).then_some("rip");
    gpr.chain(xmm).chain(rip).collect()
}

/// The function's frame at a boundary between two instructions, the function's own or a callee's.
struct Boundary {
    /// Offset of the instruction that the function executes next.
    offset: u32,
    registers: Registers,
    /// Caller's registers that the walker restores wrongly.
    wrong: BTreeSet<&'static str>,
}

/// Returns the caller of a frame, and the position of its rip. The rules of Windows must give the
/// same result.
fn unwind(
    unwinder: &Unwinder<'_, '_>,
    frame: &Registers,
    position: Position,
    machine: &Machine,
) -> (Registers, Position) {
    let step = |rules| {
        let mut registers = *frame;
        let step = unwinder.with_rules(rules).step(&mut registers, position, machine).unwrap();
        (registers, step.caller)
    };
    assert_eq!(step(Rules::Precise), step(Rules::CoreClr), "at {:#x}", frame.rip);
    step(Rules::Precise)
}

/// Runs the function, and unwinds its frame before each instruction.
fn boundaries(code: &[u8], unwind_info: &[u8], callee: Callee) -> Vec<Boundary> {
    let heap = Heap::new(code, unwind_info, callee);
    let mut map = CodeMap::new();
    map.insert(heap.region()).unwrap();
    let unwinder = Unwinder::new(&map);
    let (mut machine, truth) = heap.machine();
    let mut boundaries = Vec::new();
    let mut frame = machine.cpu().registers();
    for _ in 0..LIMIT {
        let now = machine.cpu().registers();
        if now.rip == BACK {
            assert_eq!(
                differences(&now, &truth),
                BTreeSet::new(),
                "the function does not preserve registers"
            );
            return boundaries;
        }
        let mut position = Position::Interrupted;
        if now.rip < CODE + code.len() as u64 {
            frame = now;
        } else {
            if [CALLEE, PROBE].contains(&now.rip) {
                let mut back = [0; 8];
                machine.read(now.rsp(), &mut back).unwrap();
                frame = after_return(&now, u64::from_le_bytes(back));
            }
            let (found, below) = unwind(&unwinder, &now, position, &machine);
            assert_eq!(
                differences(&found, &frame),
                BTreeSet::new(),
                "the callee's frame is unwound wrongly"
            );
            position = below;
        }
        let (found, _) = unwind(&unwinder, &frame, position, &machine);
        let wrong = differences(&found, &truth);
        boundaries.push(Boundary { offset: (frame.rip - CODE) as u32, registers: frame, wrong });
        machine.step().unwrap();
    }
    panic!("the function does not return");
}

/// Returns the registers that a correct walker restores wrongly at a boundary, because of the
/// unwind info.
fn explained(code: &[u8], info: &UnwindInfo<'_>, boundary: &Boundary) -> BTreeSet<&'static str> {
    let Boundary { offset, registers, .. } = boundary;
    // In epilogues, unwinders follow the instructions.
    if offset + EPILOGUE_SIZE >= code.len() as u32 {
        return BTreeSet::new();
    }
    let mut wrong = BTreeSet::new();
    for code in info.codes().map(Result::unwrap) {
        let done = *offset >= u32::from(code.offset);
        match code.operation {
            Operation::SaveNonvol(register, _) if done => _ = wrong.insert(register.name()),
            Operation::SaveXmm128(n, _) if done => _ = wrong.insert(XMM[usize::from(n) - 6]),
            // An inline probe has moved rsp before the code that sets rbp takes effect.
            Operation::SetFpreg if !done && registers.rsp() < TOP - 8 => {
                wrong.extend(["rip", "rsp", "rbp"]);
            }
            _ => {}
        }
    }
    wrong
}

const CALLEES: [Callee; 2] = [Callee::Returns, Callee::Clobbers];

#[test]
fn saved_registers_are_wrong_as_explained() {
    for Function { name, code, unwind_info } in &functions() {
        for callee in CALLEES {
            let heap = Heap::new(code, unwind_info, callee);
            let region = heap.region();
            let info = UnwindInfo::read(&region, UNWIND_INFO).unwrap();
            for boundary in boundaries(code, unwind_info, callee) {
                assert_eq!(
                    boundary.wrong,
                    explained(code, &info, &boundary),
                    "{name} at {:#x}: not a known mistake of cranelift. If the unwind info restores \
                     more than before, it has been fixed: document that",
                    boundary.offset,
                );
            }
        }
    }
}

/// There are exactly four mistakes, and each of them matters.
#[test]
fn without_the_mistakes_everything_is_right() {
    for Function { name, code, unwind_info } in &functions() {
        let mended = mend::mend(unwind_info, None);
        for callee in CALLEES {
            for Boundary { offset, wrong, .. } in boundaries(code, &mended, callee) {
                assert_eq!(wrong, BTreeSet::new(), "{name} at {offset:#x}");
            }
        }
    }
    let Function { code, unwind_info, .. } = function("pages_probed_inline");
    for mistake in Mistake::ALL {
        let one_left = mend::mend(&unwind_info, Some(mistake));
        let found = boundaries(&code, &one_left, Callee::Returns);
        assert!(found.iter().any(|boundary| !boundary.wrong.is_empty()), "{mistake:?}");
    }
}

/// On x64 cranelift keeps a frame pointer in any case.
#[test]
fn frame_pointers_make_no_difference() {
    for name in ["leaf", "everything"] {
        let (without, with) = (function(name), function(&format!("{name}_with_frame_pointers")));
        assert_eq!((without.code, without.unwind_info), (with.code, with.unwind_info), "{name}");
    }
}

/// The smallest function that shows the mistake: it calls another one and returns its argument.
/// 0x1c is first the return address and then the next instruction.
#[test]
fn one_saved_register_is_wrong() {
    let Function { code, unwind_info, .. } = function("one_value");
    let mut listing = String::new();
    let mut formatter = IntelFormatter::new();
    for Boundary { offset, wrong, .. } in boundaries(&code, &unwind_info, Callee::Returns) {
        let at = &code[offset as usize..];
        let instruction = Decoder::with_ip(64, at, offset.into(), DecoderOptions::NONE).decode();
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let line = format!("{offset:02x} {text:24} {}", list(&wrong));
        writeln!(listing, "{}", line.trim_end()).unwrap();
    }
    insta::assert_snapshot!(listing, @"
    00 push rbp
    01 mov rbp,rsp
    04 sub rsp,30h
    08 mov [rsp+20h],rsi
    0d mov rsi,rcx              rsi
    10 mov rdx,180001000h       rsi
    1a call rdx                 rsi
    1c mov rax,rsi              rsi
    1c mov rax,rsi              rsi
    1f mov rsi,[rsp+20h]        rsi
    24 add rsp,30h              rsi
    28 mov rsp,rbp              rsi
    2b pop rbp
    2c ret
    ");
}

/// For each function: the number of wrong boundaries of all boundaries, loops and callees included,
/// their offsets, and the registers.
#[test]
fn summary() {
    let mut text = String::new();
    for Function { name, code, unwind_info } in &functions() {
        let boundaries = boundaries(code, unwind_info, Callee::Returns);
        let mut registers = BTreeSet::new();
        let mut offsets = Vec::new();
        for Boundary { offset, wrong, .. } in &boundaries {
            registers.extend(wrong);
            if !wrong.is_empty() {
                offsets.push(offset);
            }
        }
        offsets.sort_unstable();
        write!(text, "{name}: {} of {}", offsets.len(), boundaries.len()).unwrap();
        if let (Some(first), Some(last)) = (offsets.first(), offsets.last()) {
            write!(text, ", {first:#x} to {last:#x}: {}", list(&registers)).unwrap();
        }
        text.push('\n');
    }
    assert_file("summary", &text);
}

#[cfg(feature = "cranelift")]
#[test]
fn cranelift_makes_the_same() {
    assert_file("functions", &compile::functions());
}

/// Compares with a file in this directory.
fn assert_file(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(".");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
