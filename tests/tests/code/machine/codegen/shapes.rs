//! Code, roles, mistakes and unwind codes of shapes that compilers make.

use super::*;
use clr_codegen::PlacedPart;
use clr_unwind::RuntimeFunction;
use clr_unwind::win64::{Operation, UnwindInfo};
use iced_x86::{Formatter, IntelFormatter};

/// Renders the function `f` and its helpers.
fn render(text: &str) -> String {
    let linked = link(text);
    let index = parse(text).functions.iter().position(|function| function.name == "f").unwrap();
    let function = FunctionIndex(index as u32);
    let map = linked.code_map().unwrap();
    let mut out = String::new();
    for part in linked.parts.iter().filter(|part| part.function == function) {
        render_part(&mut out, &linked, &map, part);
    }
    let helpers: Vec<_> = linked.instructions.iter().filter(|i| i.function.is_none()).collect();
    // The last helper is the handler, which is only a ret.
    if helpers.len() > linked.units.len() {
        writeln!(out, "helpers").unwrap();
        for placed in helpers {
            render_instruction(&mut out, &linked, &map, placed.address, placed.address);
        }
    }
    out
}

fn render_part(out: &mut String, linked: &LinkedProgram, map: &CodeMap<'_>, part: &PlacedPart) {
    let what = if part.is_entry { "entry" } else { "part" };
    writeln!(out, "{what} {:#x}..{:#x}", part.begin, part.end).unwrap();
    let mut at = part.begin;
    while at < part.end {
        at = render_instruction(out, linked, map, at, part.begin);
    }
    match map.find_function(part.begin) {
        Some((region, entry)) => {
            assert_eq!(region.base() + u64::from(entry.begin), part.begin);
            assert_eq!(region.base() + u64::from(entry.end), part.end);
            render_info(out, region, entry);
        }
        None => writeln!(out, "  no unwind data").unwrap(),
    }
}

/// Renders a line for the instruction at `at`, and returns the address of the next one.
fn render_instruction(
    out: &mut String,
    linked: &LinkedProgram,
    map: &CodeMap<'_>,
    at: u64,
    begin: u64,
) -> u64 {
    let placed = linked.instruction(at).unwrap();
    let (region, rva) = map.find(at).unwrap();
    let bytes = &region.bytes_from(rva).unwrap()[..placed.len.into()];
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    assert_eq!(instruction.len(), bytes.len(), "at {at:#x}");
    let mut text = String::new();
    IntelFormatter::new().format(&instruction, &mut text);
    let mut hex = String::new();
    for byte in bytes {
        write!(hex, "{byte:02x}").unwrap();
    }
    let role = format!("{:?}", placed.role).to_lowercase();
    write!(out, "  {:3x}  {hex:20}  {text:36}  {role}", at - begin).unwrap();
    if let Some(mistake) = placed.mistake {
        write!(out, "  {mistake:?}").unwrap();
    }
    out.push('\n');
    at + u64::from(placed.len)
}

fn render_info(out: &mut String, region: &CodeRegion<'_>, entry: RuntimeFunction) {
    let info = UnwindInfo::read(region, entry.unwind_info).unwrap();
    write!(out, "  version {}, prologue {:#x}", info.version(), info.prologue_size()).unwrap();
    if info.frame_register() != 0 {
        let register = Gpr::from_number(info.frame_register());
        write!(out, ", frame {}-{:#x}", register.name(), info.frame_offset()).unwrap();
    }
    if info.handler().unwrap().is_some() {
        write!(out, ", handler").unwrap();
    }
    if let Some(parent) = info.parent().unwrap() {
        assert!(region.functions().iter().any(|entry| entry == parent), "{parent:x?}");
        write!(out, ", chained to {:#x}", region.base() + u64::from(parent.begin)).unwrap();
    }
    out.push('\n');
    if let Some(epilogs) = info.epilogs() {
        let starts: Vec<_> = epilogs.starts(entry.end).map(|start| start - entry.begin).collect();
        writeln!(out, "  epilogues of {} bytes at {starts:x?}", epilogs.size()).unwrap();
    }
    for code in info.codes() {
        let code = code.unwrap();
        if code.operation != Operation::Epilog {
            writeln!(out, "  {:3x}  {:?}", code.offset, code.operation).unwrap();
        }
    }
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $text:literal;)+) => {
        $($(#[$doc])* #[test]
        fn $name() {
            insta::assert_snapshot!(render($text));
        })+
    };
}

shapes! {
    /// RyuJIT: rbp is set last and not described; a finally handler is a funclet.
    ryujit_frame_with_a_funclet: r#"
        function "f" kind="jit" {
            push "rbp" "rsi" "rbx"; locals 0x20; unwind handler=#true; release "lea"
            frame "rbp" offset=6 set="after-saves" described=#false
            body { try { call "g" }; funclet { clobber "rbx"; call "g" } }
        }
        function "g" kind="jit""#;

    /// RyuJIT: with localloc the frame register is described.
    ryujit_localloc: r#"
        function "f" kind="jit" {
            push "rbp" "rdi"; locals 0x10; frame "rbp" offset=2 set="after-saves"; release "lea"
            body { alloca 4; call "g" }
        }
        function "g" kind="jit""#;

    /// RyuJIT: a frame of some pages is probed page by page.
    ryujit_probes: r#"
        function "f" kind="jit" { push "rbx"; locals 0x2500; allocation "probes" }"#;

    /// RyuJIT: a frame of many pages is probed by a loop.
    ryujit_probe_loop: r#"
        function "f" kind="jit" { push "rbx"; locals 0x8000; allocation "probe-loop" }"#;

    /// MSVC: registers in the home space and by mov, and all restored from r11.
    msvc_home_saves_and_r11: r#"
        function "f" {
            home "rbx" "rsi" "none" "rcx"; push "rdi"; locals 0x30; save "r12" "xmm6"
            release "r11"
            body { clobber "rbx"; clobber "rsi"; clobber "rdi"; call "g" }
        }
        function "g""#;

    /// MSVC: registers that only one path needs are saved there, under a chained UNWIND_INFO.
    msvc_chained_region: r#"
        function "f" {
            push "rbx"; locals 0x20; unwind handler=#true
            body { region "rsi" "rdi" { clobber "rsi"; call "g" }; work 1 }
        }
        function "g""#;

    /// gcc -O0: rbp is set after the pushes.
    gcc_unoptimised: r#"
        function "f" {
            push "rbp"; locals 0x28; frame "rbp" set="before-allocation"
            release "add"
            body { store 8; call "g" }
        }
        function "g""#;

    /// gcc: rarely executed code is separate, with an UNWIND_INFO of its own.
    gcc_separate_cold_part: r#"
        function "f" {
            push "rsi" "rbx"; locals 0x28; cold-parts "separate"
            body { cold { clobber "rsi"; call "g" } }
        }
        function "g""#;

    /// gcc: a large frame calls ___chkstk_ms, which pushes without unwind data.
    gcc_chkstk: r#"
        function "f" { push "rbx"; locals 0x2000; allocation "chkstk"; body { call "g" } }
        function "g""#;

    /// clang: 8 bytes that align the stack are pushed and popped.
    clang_push_and_pop: r#"
        function "f" {
            push "rsi" "rbx"; locals 8; allocation "push"; release "pop"
            body { if #false { tail-call "g" } }
        }
        function "g""#;

    /// A kernel's page fault handler: machine frame, error code, all volatile registers.
    interrupt_with_an_error_code: r#"
        function "main" { body { trap "f" } }
        function "f" {
            push "rbp"; locals 0x20
            entry "interrupt-with-error-code"
            body { clobber "rax" }
        }"#;

    /// MSVC with /d2epilogunwind: version 2 lists both epilogues.
    version_2_with_two_epilogues: r#"
        function "f" {
            push "rbx" "rdi"; locals 0x28; unwind "version-2"
            body { if #false { work 1; return }; call "g" }
        }
        function "g""#;

    /// A fiber switch: a callee on another stack.
    stack_switch: r#"
        function "f" {
            push "rbp"; locals 0x20; frame "rbp"; body { switch-stack "g" }
        }
        function "g""#;

    /// The System V convention: no home space, no saved vector registers.
    system_v: r#"
        convention "system-v"
        function "f" kind="ready-to-run" {
            push "rbp" "r15" "rbx"; locals 0x18; frame "rbp" set="after-saves" described=#false
            body { clobber "rsi"; call "g"; clobber "xmm6" }
        }
        function "g" kind="ready-to-run""#;

    /// All the ways to call, and to leave a function.
    calls_and_exits: r#"
        function "f" {
            push "rbx" "rcx"
            body {
                call "g"; call "g" by="register"; call "g" by="memory"; call "j"
                if #false { return "ret" }; if #false { return "ret-imm" }
                if #false { return "rep-ret" }; if #false { return "bnd-ret" }
                if #false { return "rex-ret" }
                if #false { tail-call "g" by="register" }
                if #false { tail-call "g" by="register-memory" }
                if #false { tail-call "g" by="memory" }; if #false { tail-call "j" }
            }
            tail-call "g"
        }
        function "g"; function "j" kind="jit""#;
}

/// Returns the prologue and the epilogue of a function with these forms of allocation and release.
fn frame(locals: u32, allocation: &str, set: &str, release: &str) -> String {
    let text = format!(
        "function f {{
             push rbx rbp; locals {locals}; allocation {allocation}
             frame rbp set={set}; release {release}
         }}"
    );
    let linked = link(&text);
    let map = linked.code_map().unwrap();
    let mut out = format!("{locals} {allocation} {set} {release}\n");
    render_part(&mut out, &linked, &map, &linked.parts[0]);
    out
}

#[test]
fn releases() {
    let frames = [
        frame(0x78, "sub", "after-allocation", "add"),
        frame(0x80, "sub", "after-allocation", "add"),
        frame(0x10, "sub-imm32", "after-allocation", "add-imm32"),
        frame(8, "push", "after-allocation", "pop"),
        frame(16, "push", "after-allocation", "pop"),
        frame(0x10, "sub", "after-allocation", "lea"),
        frame(0x10, "sub", "after-allocation", "lea-disp32"),
        frame(0x1000, "sub", "after-saves", "lea"),
        frame(0x10, "sub", "before-allocation", "lea"),
        frame(0x10, "sub", "before-allocation", "mov"),
        frame(0x10, "sub", "before-allocation", "leave"),
        frame(0x10, "sub", "before-allocation", "r11"),
        frame(0, "sub", "before-allocation", "add"),
    ];
    insta::assert_snapshot!(frames.concat());
}
