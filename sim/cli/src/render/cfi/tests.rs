use super::expression::words;

#[test]
fn expressions_are_written_as_people_do() {
    for (bytes, text) in [
        // gcc's of a realigned frame: DW_OP_breg6 -16, DW_OP_deref.
        (&[0x76, 0x70, 0x06][..], "[rbp-0x10]"),
        (&[0x77, 0xA0, 0x01], "rsp+0xa0"),
        (&[0x77, 0xC0, 0x7E], "rsp-0xc0"),
        // Linkers' of the procedure linkage table.
        (
            &[0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22],
            "(rsp+0x8 + (((rip & 15) >= 11) << 3))",
        ),
        (&[0x08, 0xFF], "255"),
        (&[0x09, 0xFF], "-1"),
        (&[0x10, 0x80, 0x01], "128"),
        (&[0x11, 0x7F], "-1"),
        (&[0x23, 0x10], "(cfa + 16)"),
        (&[0x70, 0x00, 0x71, 0x00, 0x1C], "(rax - rdx)"),
        // Cut off, unknown, and without a value.
        (&[0x77], "expression 77"),
        (&[0x77, 0x80], "expression 77 80"),
        (&[0x97, 0x06], "expression 97 06"),
        (&[0x22], "expression 22"),
        (&[0x11, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], "-1"),
    ] {
        assert_eq!(words(bytes), text);
    }
    let mut doubling = vec![0x30];
    doubling.extend([0x30, 0x22].repeat(40));
    assert!(words(&doubling).starts_with("expression 30 30 22"));
}
