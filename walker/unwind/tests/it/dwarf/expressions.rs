//! Expressions.

use super::*;

const RIP: u8 = 16;

/// Returns `DW_OP_bregN offset`.
fn breg(register: u8, offset: i64) -> Vec<u8> {
    [vec![0x70 + register], sleb(offset)].concat()
}

/// Returns the value of an expression, with the CFA, slot 1, on the stack.
#[track_caller]
fn value(code: &[u8]) -> Result<u64, String> {
    let case = Case::function(&[Cfi::ValExpression(number(Gpr::Rbx), code.to_vec())], 0);
    case.step().map(|(after, _)| after.get(Gpr::Rbx)).map_err(|error| error.to_string())
}

fn constant(value: u64) -> Vec<u8> {
    [vec![0x0E], value.to_le_bytes().to_vec()].concat()
}

#[test]
fn operations_compute() {
    let minus = |n: i64| n.cast_unsigned();
    let cases: &[(&str, Vec<u8>, u64)] = &[
        ("the CFA is there already", vec![], slot(1)),
        ("lit31", vec![0x4F], 31),
        ("const1u", vec![0x08, 0xFF], 0xFF),
        ("const1s", vec![0x09, 0xFF], minus(-1)),
        ("const2u", vec![0x0A, 1, 0x80], 0x8001),
        ("const2s", vec![0x0B, 1, 0x80], minus(-0x7FFF)),
        ("const4u", vec![0x0C, 1, 0, 0, 0x80], 0x8000_0001),
        ("const4s", vec![0x0D, 1, 0, 0, 0x80], minus(-0x7FFF_FFFF)),
        ("const8s", vec![0x0F, 1, 0, 0, 0, 0, 0, 0, 0x80], 1 | 1 << 63),
        ("constu", [vec![0x10], uleb(1 << 40)].concat(), 1 << 40),
        ("consts", [vec![0x11], sleb(-5)].concat(), minus(-5)),
        (
            "addr moves with the image",
            [vec![0x03], (PREFERRED + 8).to_le_bytes().to_vec()].concat(),
            BASE + 8,
        ),
        ("breg5", breg(5, -3), held(Gpr::Rdi) - 3),
        ("breg16 is rip", breg(RIP, 2), at(0) + 2),
        ("bregx", vec![0x92, 12, 4], held(Gpr::R12) + 4),
        ("dup plus", vec![0x31, 0x12, 0x22], 2),
        ("drop", vec![0x31, 0x32, 0x13], 1),
        ("over", vec![0x31, 0x32, 0x14], 1),
        ("pick 2", vec![0x31, 0x32, 0x33, 0x15, 2], 1),
        ("swap minus", vec![0x31, 0x35, 0x16, 0x1C], 4),
        // 1 2 3 → 3 1 2.
        ("rot", vec![0x31, 0x32, 0x33, 0x17], 2),
        ("rot, then drop", vec![0x31, 0x32, 0x33, 0x17, 0x13], 1),
        ("rot, then drop twice", vec![0x31, 0x32, 0x33, 0x17, 0x13, 0x13], 3),
        ("abs", vec![0x09, 0xF6, 0x19], 10),
        ("and", vec![0x3C, 0x3A, 0x1A], 8),
        ("div is signed", vec![0x09, 0xF6, 0x33, 0x1B], minus(-3)),
        ("div of the lowest number", [constant(1 << 63), vec![0x09, 0xFF, 0x1B]].concat(), 1 << 63),
        ("mod is not", vec![0x09, 0xF6, 0x37, 0x1D], minus(-10) % 7),
        ("mul", vec![0x36, 0x37, 0x1E], 42),
        ("neg", vec![0x31, 0x1F], minus(-1)),
        ("not", vec![0x30, 0x20], u64::MAX),
        ("or", vec![0x33, 0x36, 0x21], 7),
        ("plus_uconst", vec![0x31, 0x23, 0x90, 1], 0x91),
        ("shl", vec![0x31, 0x33, 0x24], 8),
        ("shl by 64", vec![0x31, 0x08, 64, 0x24], 0),
        ("shr", vec![0x09, 0xFF, 0x08, 60, 0x25], 15),
        ("shr by 2^32", [vec![0x31], constant(1 << 32), vec![0x25]].concat(), 0),
        ("shra", vec![0x09, 0xF0, 0x32, 0x26], minus(-4)),
        ("shra by 62", [constant(1 << 62), vec![0x08, 62, 0x26]].concat(), 1),
        ("shra by 63", [constant(1 << 62), vec![0x08, 63, 0x26]].concat(), 0),
        (
            "shra of the lowest number",
            [constant(1 << 63), vec![0x08, 62, 0x26]].concat(),
            minus(-2),
        ),
        ("shra by 64", vec![0x09, 0xF0, 0x08, 64, 0x26], u64::MAX),
        ("xor", vec![0x35, 0x33, 0x27], 6),
        ("eq", vec![0x31, 0x31, 0x29], 1),
        ("ge is signed", vec![0x09, 0xFF, 0x31, 0x2A], 0),
        ("gt", vec![0x32, 0x31, 0x2B], 1),
        ("gt of equals", vec![0x32, 0x32, 0x2B], 0),
        ("le", vec![0x32, 0x31, 0x2C], 0),
        ("lt", vec![0x09, 0xFF, 0x31, 0x2D], 1),
        ("lt of equals", vec![0x31, 0x31, 0x2D], 0),
        ("ne", vec![0x32, 0x31, 0x2E], 1),
        ("bra taken", vec![0x31, 0x31, 0x28, 1, 0, 0x32], 1),
        ("bra not taken", vec![0x31, 0x30, 0x28, 1, 0, 0x32], 2),
        ("skip", vec![0x31, 0x2F, 1, 0, 0x32], 1),
        ("skip to the end", vec![0x31, 0x2F, 0, 0], 1),
        ("call_frame_cfa", vec![0x9C], slot(1)),
        ("nop", vec![0x31, 0x96], 1),
        ("deref", [constant(slot(9)), vec![0x06]].concat(), word(9)),
        ("deref_size 2", [constant(slot(9) + 6), vec![0x94, 2]].concat(), 0x5107),
    ];
    for (name, code, expected) in cases {
        assert_eq!(value(code), Ok(*expected), "{name}");
    }
}

#[test]
fn loops_end() {
    // 20 down to 0: lit20; 1: lit1 minus dup bra 1.
    let count_down = [0x08, 20, 0x31, 0x1C, 0x12, 0x28, 0xFA, 0xFF];
    assert_eq!(value(&count_down), Ok(0));
    let long = "an expression takes more than 1,000 operations";
    assert!(value(&[0x2F, 0xFD, 0xFF]).unwrap_err().starts_with(long));
}

#[test]
fn faulty_expressions_are_errors() {
    let stack = "an expression has too few or too many values";
    let operation = "an expression has an operation that cannot be evaluated";
    let branch = "an expression branches out of itself";
    let cases: &[(&[u8], &str)] = &[
        (&[0x13, 0x22], stack),
        (&[0x22], stack),
        (&[0x13], stack),
        (&[0x15, 1], stack),
        (&[0x30; 64], stack),
        (&[0x31, 0x30, 0x1B], "an expression divides by zero"),
        (&[0x31, 0x30, 0x1D], "an expression divides by zero"),
        (&[0x2F, 1, 0], branch),
        (&[0x2F, 0xFC, 0xFF], branch),
        // reg0, piece, stack_value, entry_value, fbreg, an unknown one, one that is cut off.
        (&[0x50], operation),
        (&[0x93, 8], operation),
        (&[0x9F], operation),
        (&[0xA3, 1, 0x30], operation),
        (&[0x91, 0], operation),
        (&[0xE1], operation),
        (&[0x0E, 1], operation),
        (&[0x94, 0], operation),
        (&[0x94, 9], operation),
        // regval_type and deref_type: nothing here has a type.
        (&[0xA5, 3, 1], operation),
        (&[0xA6, 8, 1], operation),
        (&[0x92, 20, 0], "DWARF register 20 is not tracked"),
    ];
    for (code, expected) in cases {
        let error = value(code).unwrap_err();
        assert_eq!(error, format!("{expected}, at .eh_frame+0x30"), "{code:x?}");
    }
    let unreadable = value(&[constant(8), vec![0x06]].concat()).unwrap_err();
    assert_eq!(unreadable, "cannot read 8 bytes at 0x8");
}

#[test]
fn an_address_is_read_and_a_value_is_not() {
    let rbx = number(Gpr::Rbx);
    // breg7 (rsp) + 24.
    let address = Case::function(&[Cfi::Expression(rbx, breg(7, 24))], 0);
    assert_eq!(address.changes(), "rbx=[3] rip=[0] rsp=1");
    let value = Case::function(&[Cfi::ValExpression(rbx, breg(7, 24))], 0);
    assert_eq!(value.changes(), "rbx=3 rip=[0] rsp=1");
    // The CFA, plus 16.
    let from_cfa = Case::function(&[Cfi::Expression(rbx, vec![0x23, 16])], 0);
    assert_eq!(from_cfa.changes(), "rbx=[3] rip=[0] rsp=1");
    let rip = Case::function(&[Cfi::Expression(RIP, breg(7, 40))], 0);
    assert_eq!(rip.changes(), "rip=[5] rsp=1");
}

/// A realigned stack, as gcc describes it: the CFA is saved below the frame pointer.
#[test]
fn a_cfa_may_be_read_from_memory() {
    let instructions = [
        Cfi::DefCfaExpression([breg(6, -16), vec![0x06]].concat()),
        Cfi::Expression(number(Gpr::Rbp), breg(6, 0)),
        Cfi::Expression(number(Gpr::R15), breg(6, -8)),
    ];
    let case = Case::function(&instructions, 0).register(Gpr::Rbp, slot(6)).word(4, slot(11));
    assert_eq!(case.changes(), "rbp=[6] r15=[5] rip=[10] rsp=11");
    // The expression begins with nothing on the stack.
    let cfa_of_cfa = Case::function(&[Cfi::DefCfaExpression(vec![0x23, 8])], 0);
    assert_eq!(
        cfa_of_cfa.changes(),
        "an expression has too few or too many values, at .eh_frame+0x2f"
    );
    let cfa_of_cfa = Case::function(&[Cfi::DefCfaExpression(vec![0x9C])], 0);
    let no = "an expression has an operation that cannot be evaluated, at .eh_frame+0x2f";
    assert_eq!(cfa_of_cfa.changes(), no);
}

/// The rule that GNU ld writes for the entries of a PLT: 8 more from their twelfth byte on.
#[test]
fn the_entries_of_a_plt_know_where_rip_is() {
    let code = [breg(7, 8), breg(RIP, 0), vec![0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22]];
    let case = |offset| Case::function(&[Cfi::DefCfaExpression(code.concat())], offset);
    for entry in [0x20, 0x90] {
        for offset in 0..11 {
            assert_eq!(case(entry + offset).changes(), "rip=[0] rsp=1", "{offset}");
        }
        for offset in 11..16 {
            assert_eq!(case(entry + offset).changes(), "rip=[1] rsp=2", "{offset}");
        }
    }
}

/// After an expression, an offset or another register has nothing to count from.
#[test]
fn half_a_rule_for_the_cfa_needs_the_other_half() {
    let expression = Cfi::DefCfaExpression(vec![0x30]);
    for half in [Cfi::DefCfaOffset(8), Cfi::DefCfaRegister(Gpr::Rbp), Cfi::Raw(vec![0x13, 1])] {
        let case = Case::function(&[expression.clone(), half], 0);
        let no = "an instruction has no meaning at its place, at .eh_frame+0x30";
        assert_eq!(case.changes(), no);
    }
}
