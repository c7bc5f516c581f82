//! Placement of code, and lookup by address.

use super::*;
use clr_codegen::{LinkError, MAX_STACK, MethodHeader, WindowsMistake};
use clr_machine::Fnv1a;

/// Returns functions of all kinds and of several sizes.
fn program() -> Program {
    let mut text = String::from("function main { body {");
    for n in 0..15 {
        write!(text, " call f{n};").unwrap();
    }
    text.push_str(" } }\n");
    for n in 0..15 {
        let kind = ["jit", "ready-to-run", "native"][n % 3];
        let cold = if n < 6 { "cold { work 3 }" } else { "" };
        let body = format!("push rbx; body {{ work {}; {cold} }}", n * n);
        writeln!(text, "function f{n} kind={kind} {{ {body} }}").unwrap();
    }
    parse(&text)
}

#[test]
fn functions_are_aligned_by_kind() {
    let program = program();
    let linked = program.link().unwrap();
    let mut ends = Vec::new();
    for (function, entry) in program.functions.iter().zip(&linked.entries) {
        match function.kind {
            CodeKind::Jit => assert_eq!(entry % 32, 0),
            CodeKind::ReadyToRun => assert_eq!(entry % 16, 0),
            CodeKind::Native => ends.push(linked.part(*entry).unwrap().end),
        }
        assert_eq!(entry >> 28, function.kind.base() >> 28);
        assert!(linked.part(*entry).unwrap().is_entry);
    }
    // Native functions are not aligned: each begins where the previous one ends.
    let begins: Vec<_> = linked.parts.iter().map(|part| part.begin).collect();
    assert!(ends[..ends.len() - 1].iter().all(|end| begins.contains(end)));
    let entries = linked.parts.iter().filter(|part| part.is_entry).count();
    assert_eq!((entries, linked.parts.len()), (16, 16 + 6));
}

/// Searches instructions and parts linearly.
fn plain_search(linked: &LinkedProgram, address: u64) -> (Option<u64>, Option<u64>) {
    let instruction = linked
        .instructions
        .iter()
        .find(|placed| (placed.address..placed.address + u64::from(placed.len)).contains(&address));
    let part = linked.parts.iter().find(|part| (part.begin..part.end).contains(&address));
    (instruction.map(|placed| placed.address), part.map(|part| part.begin))
}

#[test]
fn instructions_and_parts_are_found_at_their_borders() {
    let linked = program().link().unwrap();
    let mut checked = 0;
    for placed in &linked.instructions {
        let end = placed.address + u64::from(placed.len);
        for address in [placed.address - 1, placed.address, end - 1, end] {
            let found = (
                linked.instruction(address).map(|placed| placed.address),
                linked.part(address).map(|part| part.begin),
            );
            assert_eq!(found, plain_search(&linked, address), "{address:#x}");
            checked += 1;
        }
        assert_eq!(linked.instruction(placed.address), Some(placed));
        assert_eq!(linked.instruction(end - 1), Some(placed));
    }
    assert!(checked > 1000);
    for address in [0, CodeKind::Native.base(), u64::MAX] {
        assert_eq!((linked.instruction(address), linked.part(address)), (None, None));
    }
}

#[test]
fn parts_know_their_root() {
    let linked = link(
        r#"function "f" {
            push "rbp"; frame "rbp"
            body { region "rsi" { work 1 }; cold { work 1 }; funclet { work 1 } }
        }"#,
    );
    let entry = linked.entries[0];
    let parts: Vec<_> =
        linked.parts.iter().map(|part| (part.is_entry, part.root == entry)).collect();
    // The function up to the region, the region, the rest, the funclet, the cold part.
    let expected = [(true, true), (false, true), (false, true), (false, false), (false, true)];
    assert_eq!(parts, expected);
}

#[test]
fn methods_are_found_as_by_a_plain_search() {
    let program = program();
    let linked = program.link().unwrap();
    for unit in &linked.units {
        let in_heap = unit.kind == CodeKind::Jit;
        let methods: Vec<_> = (0..)
            .zip(&linked.entries)
            .filter(|_| in_heap)
            .filter(|(_, entry)| (**entry).wrapping_sub(unit.base) < unit.bytes.len() as u64)
            .map(|(id, entry)| (*entry, MethodHeader { function: FunctionIndex(id) }))
            .collect();
        assert_eq!(methods.len(), if in_heap { 5 } else { 0 });
        let end = unit.base + unit.bytes.len() as u64;
        for address in unit.base - 2..=end + 2 {
            let mut before = methods.iter().filter(|method| method.0 <= address);
            // The end address itself still belongs to the heap.
            let expected = before.next_back().filter(|_| address <= end);
            assert_eq!(unit.find_method(address).as_ref(), expected, "{address:#x}");
        }
    }
}

#[test]
fn a_header_names_its_method() {
    for function in [0, 1, u32::MAX].map(FunctionIndex) {
        let header = MethodHeader { function };
        assert_eq!(MethodHeader::from_bytes(header.to_bytes()), Some(header));
    }
    assert_eq!(MethodHeader { function: FunctionIndex(6) }.to_bytes(), [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(MethodHeader::from_bytes([0; 8]), None);
    assert_eq!(MethodHeader::from_bytes([0xCC; 8]), None);
    assert_eq!(MethodHeader::from_bytes([1, 0, 0, 0, 1, 0, 0, 0]), None);
}

#[test]
fn windows_takes_a_call_at_the_end_for_the_next_function() {
    let linked = link(
        r#"function "main" { body { call "fatal" }; no-end }
           function "next" { body { call "fatal"; work 1 } }
           function "fatal" { body { stop }; no-end }"#,
    );
    let [main, next, fatal] = linked.entries[..] else { panic!() };
    assert_eq!(linked.part(main).unwrap().end, next);
    let call_at_end = Some(WindowsMistake::CallAtEnd);
    assert_eq!(linked.windows_mistake(next, Position::ReturnAddress), call_at_end);
    assert_eq!(linked.windows_mistake(next, Position::Interrupted), None);
    // The call before the other one returns into its own function.
    let inside = linked.instructions.iter().find(|i| i.address > next + 4).unwrap().address;
    assert_eq!(linked.windows_mistake(inside, Position::ReturnAddress), None);
    // There is no call before this address.
    assert_eq!(linked.windows_mistake(main, Position::ReturnAddress), None);
    // Helpers follow the last function.
    let end = linked.part(fatal).unwrap().end;
    assert_eq!(linked.windows_mistake(end, Position::ReturnAddress), call_at_end);
}

/// Returns FNV-1a of the bytes of all images and heaps.
fn digest(linked: &LinkedProgram) -> String {
    let mut hash = Fnv1a::default();
    for unit in &linked.units {
        for bytes in [&unit.bytes, &unit.runtime_functions, &unit.cells.1, &unit.nibble_map.bytes()]
        {
            hash.write(bytes);
        }
    }
    format!("{:016x}", hash.finish())
}

#[test]
fn linking_gives_the_same_bytes_everywhere() {
    let of_seed = |seed| {
        let program = clr_generate::program(&mut Seeded::new(seed), &Size::SMALL);
        let digest = digest(&program.link().unwrap());
        assert_eq!(digest, self::digest(&program.link().unwrap()));
        digest
    };
    insta::assert_snapshot!(digest(&program().link().unwrap()), @"297f9ee9256982b8");
    insta::assert_snapshot!([1, 2, 3].map(of_seed).join(" "), @"a7d46f924a3721c4 e5f3f8571a4922ae 290fea16b89f7639");
}

#[test]
fn a_program_that_may_need_too_much_stack_is_refused() {
    let mut text = "alloca 0xffff".to_owned();
    for nesting in 0..7 {
        let program = parse(&format!(
            "function \"main\" {{ push \"rbp\"; frame \"rbp\"; release \"lea\"; body {{ {text} }} }}"
        ));
        match program.link() {
            Ok(_) => assert!(nesting < 2),
            Err(LinkError::StackTooLarge { size }) => assert!(size > MAX_STACK && nesting > 1),
            Err(error) => panic!("{error}"),
        }
        text = format!("loop 255 {{ {text} }}");
    }
}

#[test]
fn functions_of_any_length_can_be_encoded() {
    for count in [30, 13_070, 13_106, 14_000] {
        let many = "clobber \"rax\"; ".repeat(count);
        let body = format!("{many} cold; {}", "clobber \"rax\"; ".repeat(30));
        let text = format!("function \"main\" kind=\"ready-to-run\" {{ body {{ {body} }} }}");
        assert_eq!(parse(&text).link().err(), None, "{count}");
    }
}
