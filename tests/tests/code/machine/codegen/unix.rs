//! ELF images and their CFI, as the walker parses them.

use super::*;
use clr_codegen::{CfiMistake, Format, Unit};
use clr_unwind::cfi::{CfaRule, CfiTable, Column, RegisterRule, Row};
use clr_unwind::{ElfImage, PeImage, TargetOs};

fn elf(linked: &LinkedProgram) -> &Unit {
    linked.units.iter().find(|unit| unit.format == Format::Elf).unwrap()
}

/// Returns the changes of the CFA in the first function, in the notation of assemblers.
fn cfas(text: &str) -> Vec<String> {
    let mut cfas: Vec<String> = rows(text).into_iter().map(|(cfa, _)| cfa).collect();
    cfas.dedup();
    cfas
}

fn rows(text: &str) -> Vec<(String, Row)> {
    let linked = link(text);
    let unit = elf(&linked);
    let image = ElfImage::parse(&unit.bytes).unwrap();
    let table = CfiTable::new(&image.cfi(), image.sections());
    assert_eq!(table.problems(), 0);
    let first =
        linked.instructions.iter().filter(|placed| placed.function.is_some_and(|f| f.0 == 0));
    let row = |address: u64| {
        let row = table.row((address - unit.base) as u32).unwrap().unwrap();
        let cfa = match row.cfa {
            CfaRule::Register { register, offset } => {
                format!("{}+{offset}", register.gpr().unwrap().name())
            }
            CfaRule::Expression(expression) => {
                format!("{:x?}", table.expression(expression))
            }
        };
        (cfa, row)
    };
    first.map(|placed| row(placed.address)).collect()
}

const ALL: &str = r#"
convention "system-v"
function "main" {
    push "rbp" "rbx"
    frame "rbp" set="behind-push"
    arguments 2
    unwind handler=#true
    body { call "aligned" by="plt"; trap "handler"; if #false { return }; cold { work 1 } }
}
function "aligned" {
    push "rbp" "rbx"
    frame "rbp" set="behind-push"
    realign "to-32"
    body { clobber "rbx"; call "managed" }
}
function "managed" kind="jit"
function "handler" { entry "signal" }
"#;

#[test]
fn native_code_of_unix_is_an_elf_file_and_managed_code_is_not() {
    let linked = link(ALL);
    let formats: Vec<_> = linked.units.iter().map(|unit| (unit.kind, unit.format)).collect();
    assert_eq!(formats, [(CodeKind::Native, Format::Elf), (CodeKind::Jit, Format::Heap)]);
    assert_eq!(CodeKind::Native.image_name(CallingConvention::SystemV), Some("libnative.so"));
    assert_eq!(CodeKind::ReadyToRun.format(CallingConvention::SystemV), Format::Pe);
    assert_eq!(link("function f").units[0].format, Format::Pe);
}

#[test]
fn ready_to_run_images_name_the_system_of_their_code() {
    for (convention, system, expected) in [
        ("windows-x64", TargetOs::Windows, Convention::WindowsX64),
        ("system-v", TargetOs::Linux, Convention::SystemV),
    ] {
        let linked =
            link(&format!("convention \"{convention}\"\nfunction \"f\" kind=\"ready-to-run\""));
        let [unit] = &linked.units[..] else {
            panic!("{convention}: {} units", linked.units.len())
        };
        assert_eq!(PeImage::parse(&unit.bytes).unwrap().target_os(), system);
        let mut map = CodeMap::new();
        map.insert(unit.region().unwrap()).unwrap();
        assert_eq!(Unwinder::new(&map).convention(), expected);
    }
}

#[test]
fn symbols_are_the_functions_and_the_shared_code() {
    let linked = link(ALL);
    let image = ElfImage::parse(&elf(&linked).bytes).unwrap();
    let symbols = image.symbols();
    let mut names: Vec<_> = symbols.as_slice().iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    let helpers = ["__gxx_personality_v0", "__restore_rt", "_dl_runtime_resolve"];
    assert_eq!(names, [&helpers[..], &["aligned", "handler", "main", "main.cold"]].concat());
}

/// gcc's prologue and epilogue of such a function have these directives: `.cfi_def_cfa 10, 0`,
/// `.cfi_escape 0xf,0x3,0x76,0x70,0x6`, `.cfi_def_cfa 10, 0`, `.cfi_def_cfa 7, 8`.
#[test]
fn realigned_frames_are_described_as_gcc_does() {
    let text = r#"
        convention "system-v"
        function "f" {
            push "rbp" "rbx"; frame "rbp" set="behind-push"; realign "to-32"
            body { clobber "rbx" }
        }
    "#;
    assert_eq!(cfas(text), ["rsp+8", "r10+0", "[76, 70, 6]", "r10+0", "rsp+8"]);
    let rows = rows(text);
    let inside = rows.iter().find(|(cfa, _)| cfa.starts_with('[')).unwrap();
    let reported = |register: Gpr| inside.1.registers[usize::from(register.number())];
    assert!(matches!(reported(Gpr::Rbp), Some(RegisterRule::Expression(_))));
    assert!(matches!(reported(Gpr::Rbx), Some(RegisterRule::Expression(_))));
    assert_eq!(reported(Gpr::R12), None);
}

#[test]
fn frames_without_a_register_are_described_by_rsp() {
    let text = r#"
        convention "system-v"
        function "f" { push "rbx" "r12"; locals 24; wrap "apart"; body { if #false { return } } }
    "#;
    let all = ["rsp+8", "rsp+16", "rsp+24", "rsp+48", "rsp+24", "rsp+16", "rsp+8"];
    // The epilogue in the middle has no effect on the rows after it.
    assert_eq!(cfas(text), [&all[..], &all[3..]].concat());
}

/// Assembly that does not remember the state before its first epilogue, such as libcoreclr's
/// DelayLoad_Helper.
#[test]
fn an_epilogue_may_continue_from_the_state_of_the_last() {
    let text = r#"
        convention "system-v"
        function "f" {
            push "rbx" "r12"; locals 24; epilogue-cfi "continued"; body { if #false { return } }
        }
    "#;
    let first = ["rsp+8", "rsp+16", "rsp+24", "rsp+48", "rsp+24", "rsp+16", "rsp+8"];
    assert_eq!(cfas(text)[..7], first);
    assert_eq!(cfas(text)[7..], ["rsp+-16", "rsp+-24", "rsp+-32"]);
    // The CFI has no rule for any register at the end.
    let last = rows(text).pop().unwrap().1;
    assert!(last.registers.iter().all(|rule| matches!(rule, None | Some(RegisterRule::SameValue))));
    // The CFI of all of the second epilogue is wrong, and nothing before it.
    let linked = link(text);
    let own = linked.instructions.iter().filter(|placed| placed.function.is_some());
    let marks: Vec<_> = own.map(|placed| (placed.role, placed.cfi_mistake)).collect();
    let (before, second) = marks.split_at(marks.len() - 4);
    assert!(before.iter().all(|(_, mistake)| mistake.is_none()), "{before:?}");
    assert_eq!(second, [(Role::Epilogue, Some(CfiMistake::Cfa)); 4]);
}

#[test]
fn frames_of_rbp_are_described_by_it_until_it_is_popped() {
    let text = r#"
        convention "system-v"
        function "f" {
            push "rbp" "rbx"; locals 24; frame "rbp" set="behind-push"; release "lea"; arguments 2
            body { call "g" }
        }
        function "g"
    "#;
    assert_eq!(cfas(text), ["rsp+8", "rsp+16", "rbp+16", "rsp+8"]);
    let rbx = rows(text)[4].1.registers[usize::from(Gpr::Rbx.number())];
    assert_eq!(rbx, Some(RegisterRule::Offset(-24)));
}

#[test]
fn code_outside_functions_is_described_too() {
    let linked = link(ALL);
    let unit = elf(&linked);
    let image = ElfImage::parse(&unit.bytes).unwrap();
    let table = CfiTable::new(&image.cfi(), image.sections());
    for placed in &linked.instructions {
        if placed.address < unit.base + u64::from(image.size()) {
            let rva = (placed.address - unit.base) as u32;
            assert!(table.row(rva).unwrap().is_some(), "{rva:#x}");
        }
    }
    let trampoline = linked.signal_return.unwrap();
    // Unwinders look up a return address minus 1.
    let row = table.row((trampoline - 1 - unit.base) as u32).unwrap().unwrap();
    assert!(row.signal_frame);
    assert_eq!(Column::from(Gpr::Rsp), Column(7));
}
